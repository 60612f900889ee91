#include "base/episode.h"

#include "base/log.h"

#include <stdio.h>
#include <string.h>

void
episodes_init(struct episodes *es, struct slu_log *log, struct clock *clock)
{
	memset(es, 0, sizeof *es);
	es->log = log;
	es->clock = clock;
	pthread_mutex_init(&es->mtx, NULL); /* cannot fail with these attributes */
}

void
episodes_release(struct episodes *es)
{
	if (es->clock)
		pthread_mutex_destroy(&es->mtx);
	es->clock = NULL;
}

static void
tell(const struct episodes *es, const struct episode *e, uint64_t n)
{
	if (es->tell && n > 0)
		es->tell(es->arg, e, n);
}

/* --- note ----------------------------------------------------------------------- */

/* Under mtx. */
static struct episode *
find(struct episodes *es, const struct episode_kind *kind, const char *reason,
     const char *place)
{
	for (unsigned i = 0; i < es->n; i++) {
		struct episode *const e = &es->items[i];

		if (e->kind == kind && e->reason == reason &&
		    strncmp(e->place, place, sizeof e->place - 1) == 0)
			return e;
	}
	return NULL;
}

/* Under mtx. */
static struct episode *
find_or_begin(struct episodes *es, const struct episode_kind *kind, const char *reason,
	      const char *place)
{
	static const char others[] = "others";
	struct episode *e = find(es, kind, reason, place);

	if (!e && es->n >= EPISODES_MAX - EPISODES_OTHERS) {
		place = others;
		e = find(es, kind, reason, place);
	}
	if (e || es->n == EPISODES_MAX)
		return e;
	e = &es->items[es->n++];
	*e = (struct episode){ .kind = kind, .reason = reason };
	(void)snprintf(e->place, sizeof e->place, "%s", place); /* cut when long */
	return e;
}

static void
log_begin(const struct episodes *es, const struct episode *e, const char *why)
{
	log_warn(es->log, e->kind->begins, F_STR("reason", e->reason), F_STR(e->kind->place, e->place),
		 F_STR("why", why));
}

void
episode_note(struct episodes *es, const struct episode_kind *kind, const char *reason,
	     const char *place, const char *why)
{
	const slu_time now = clock_mono(es->clock);
	struct episode first = { 0 };
	struct episode *e;

	pthread_mutex_lock(&es->mtx);
	e = find_or_begin(es, kind, reason, place);
	if (e && e->count++ > 0) {
		e->untold++;
	} else if (e) {
		e->began = e->told_at = now;
		first = *e;
	}
	if (e)
		e->last = now;
	pthread_mutex_unlock(&es->mtx);
	if (first.count == 0)
		return;
	log_begin(es, &first, why);
	tell(es, &first, 1);
}

/* --- tick ----------------------------------------------------------------------- */

static void
log_end(const struct episodes *es, const struct episode *e)
{
	log_info(es->log, e->kind->ends, F_STR("reason", e->reason),
		 F_STR(e->kind->place, e->place), F_U64("count", e->count),
		 F_TIME("seconds", e->last - e->began));
}

/* The next episode that has ended, or that `tell` is due for. Returns false if no episode is left. */
static bool
take_due(struct episodes *es, slu_time now, bool all, struct episode *out, bool *ended)
{
	bool found = false;

	pthread_mutex_lock(&es->mtx);
	for (unsigned i = 0; i < es->n && !found; i++) {
		struct episode *const e = &es->items[i];

		*ended = all || now - e->last >= EPISODE_QUIET;
		found = *ended || (e->untold > 0 && now - e->told_at >= EPISODE_QUIET);
		if (!found)
			continue;
		*out = *e;
		e->untold = 0;
		e->told_at = now;
		if (*ended)
			*e = es->items[--es->n];
	}
	pthread_mutex_unlock(&es->mtx);
	return found;
}

static void
end_due(struct episodes *es, bool all)
{
	const slu_time now = clock_mono(es->clock);
	struct episode e;
	bool ended;

	while (take_due(es, now, all, &e, &ended)) {
		tell(es, &e, e.untold);
		if (ended)
			log_end(es, &e);
	}
}

void
episodes_tick(struct episodes *es)
{
	end_due(es, false);
}

void
episodes_end(struct episodes *es)
{
	end_due(es, true);
}
