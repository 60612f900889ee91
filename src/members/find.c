#include "members/find.h"

#include "base/clock.h"
#include "base/hash.h"
#include "members/on_store.h"
#include "store/probe.h"

#include <time.h>

#define PAUSE (10 * SLU_MS)

static int
begin(struct settings_search *s, uint32_t shards, enum settings_place place, struct slu_err *err)
{
	static const struct slu_backoff retry = {
		.kind = SLU_BACKOFF_EXPONENTIAL, .base = 10 * SLU_MS, .max = SLU_SEC
	};
	struct settings proposal = { .version = 1, .format = settings_format(place), .shards = shards, .place = place };
	int rc;

	rc = hash_random(proposal.uuid, sizeof proposal.uuid, err);
	if (!rc)
		rc = hash_random(proposal.secret, sizeof proposal.secret, err);
	if (!rc)
		settings_search_init(s, &proposal, &retry);
	return rc;
}

/* One step of the search, or a pause. */
static int
step(struct store *store, struct settings_search *s, struct store_request *to, slu_time until,
     struct slu_err *err)
{
	static const struct timespec pause = { .tv_nsec = PAUSE };
	const slu_time now = clock_boot(&clock_system);
	struct line_request r;
	struct line_answer answer;

	if (!settings_search_next(s, now, &r)) {
		nanosleep(&pause, NULL);
		return 0;
	}
	on_store_ask(to, &r);
	store_execute(store, to, &clock_system);
	if (to->result == STORE_REFUSED)
		return slu_fail(err, to->err.code, "%s", to->err.text);
	if (to->result == STORE_FAILED && now > until)
		return slu_fail(err, SLU_EDOWN, "the store does not answer: %.200s", to->err.text);
	answer = on_store_answer(to);
	settings_search_reply(s, &answer, now, 0);
	return 0;
}

static int
check(const struct settings_search *s, struct slu_err *err)
{
	if (s->failed)
		return slu_fail(err, s->err.code, "%s", s->err.text);
	if (s->settings.format > SETTINGS_FORMAT)
		return slu_fail(err, SLU_EINVAL, "the store has format %u, which is newer than this program's %d",
				s->settings.format, SETTINGS_FORMAT);
	return 0;
}

/* Returns SLU_EINVAL if the store has objects and no settings: `sluice admin store adopt` puts the settings
 * last. A store that fails here fails in the search, too, which has the patience. */
static int
refuse_unfinished(struct store *store, struct slu_err *err)
{
	struct store_names settings = { 0 };
	char any[STORE_NAME_MAX] = "";
	const bool known = store_list(store, SETTINGS_PREFIX, "", 1, &settings, err) == STORE_OK &&
			   store_first(store, any, err) == STORE_OK;
	int rc = 0;

	if (known && settings.n == 0 && any[0] && strncmp(any, SETTINGS_PREFIX, strlen(SETTINGS_PREFIX)) != 0)
		rc = slu_fail(err, SLU_EINVAL, "the store has objects (%.100s) and no settings: an adopt was not finished; "
					       "expected an empty store",
			      any);
	store_names_release(&settings);
	return rc;
}

/* The next version is there: another node has put it, or an earlier try of this one. */
static enum store_result
read_next(struct store *store, const char *name, struct settings *s, struct slu_err *err)
{
	const uint64_t version = s->version + 1;
	struct buf object;
	enum store_result r;

	buf_init(&object, 2 * SETTINGS_SIZE);
	r = store_get(store, name, 0, SETTINGS_SIZE + 1, &object, NULL, err);
	if (r == STORE_OK && (settings_decode(s, buf_slice(&object), err) || s->version != version)) {
		(void)slu_fail(err, SLU_ECORRUPT, "%s: damaged settings of the store", name);
		r = STORE_REFUSED;
	}
	buf_release(&object);
	return r;
}

static enum store_result
raise_once(struct store *store, struct settings *s, uint32_t format, struct slu_err *err)
{
	struct settings next = *s;
	char object[SETTINGS_SIZE], name[LINE_NAME_MAX];
	enum store_result r;

	next.version++;
	next.format = format;
	settings_name(name, next.version);
	settings_encode(&next, object);
	r = store_put(store, name, (struct slice){ object, sizeof object }, STORE_IF_ABSENT, err);
	if (r == STORE_OK)
		*s = next;
	return r == STORE_EXISTS ? read_next(store, name, s, err) : r;
}

int
settings_raise(struct store *store, struct settings *s, uint32_t format, slu_time patience, struct slu_err *err)
{
	static const struct timespec pause = { .tv_nsec = PAUSE };
	const slu_time until = clock_boot(&clock_system) + patience;

	while (s->format < format) {
		const enum store_result r = raise_once(store, s, format, err);

		if (r == STORE_REFUSED || (r != STORE_OK && clock_boot(&clock_system) > until))
			return err->code ? (int)err->code : SLU_EDOWN;
		if (r != STORE_OK)
			nanosleep(&pause, NULL);
	}
	return 0;
}

int
settings_find(struct store *store, uint32_t shards, enum settings_place place, slu_time patience,
	      bool (*goes_on)(void), struct settings *out, struct slu_err *err)
{
	const slu_time until = clock_boot(&clock_system) + patience;
	struct settings_search s = { 0 };
	struct store_request r;
	int rc = refuse_unfinished(store, err);

	if (!rc)
		rc = begin(&s, shards, place, err);
	store_request_init(&r);
	while (!rc && !s.found && !s.failed)
		rc = goes_on && !goes_on() ? slu_fail(err, SLU_ECANCELED, "canceled")
					   : step(store, &s, &r, until, err);
	store_request_release(&r);
	if (!rc)
		rc = check(&s, err);
	if (!rc)
		*out = s.settings;
	return rc;
}
