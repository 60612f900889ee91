#include "api/codeq/topic.h"

#include "api/queue/known.h"

_Static_assert(sizeof(struct codeq_facts) <= KNOWN_VALUE, "the facts fit");

/* --- the document ------------------------------------------------------------- */

static void
read_tiers(struct json *r, const struct json_field *f, void *place)
{
	uint16_t *const tiers = place;
	const char *const at = r->p;

	(void)f;
	*tiers = 0;
	json_array(r);
	while (json_element(r)) {
		const int64_t tier = json_i64(r, INT32_MIN, INT32_MAX);

		if (tier < 0 || tier >= TOPIC_TIERS || *tiers & 1u << tier)
			json_fail(r, SLU_ECONFLICT, NULL, "expected different numbers from 0 to %d", TOPIC_TIERS - 1);
		else
			*tiers |= (uint16_t)(1u << tier);
	}
	if (*tiers == 0)
		json_fail(r, SLU_ECONFLICT, at, "expected 1 to 10 numbers");
	if (*tiers == (1u << TOPIC_TIERS) - 1)
		json_fail(r, SLU_ECONFLICT, at, "expected at most 10 numbers");
}

static void
read_label(struct json *r, const struct json_field *f, void *place)
{
	const struct slice text = json_text(r);
	bool good = text.n <= TOPIC_LABEL;

	(void)f;
	for (size_t i = 0; i < text.n; i++)
		good &= (text.p[i] >= 'a' && text.p[i] <= 'z') || (text.p[i] >= '0' && text.p[i] <= '9') ||
			(text.p[i] == '-' && i > 0 && i + 1 < text.n);
	if (!good)
		json_fail(r, SLU_ECONFLICT, NULL, "expected a DNS label of at most %d bytes", TOPIC_LABEL);
	else
		memcpy(place, text.p, text.n);
}

/* A whole number; out of range it is well formed and refused. */
static void
read_number(struct json *r, const struct json_field *f, void *place)
{
	const int64_t n = json_i64(r, INT64_MIN, INT64_MAX);

	if (n < f->min || n > f->max)
		json_fail(r, SLU_ECONFLICT, NULL, "expected %lld to %lld", (long long)f->min, (long long)f->max);
	else if (f->size == sizeof(uint32_t))
		*(uint32_t *)place = (uint32_t)n;
	else
		*(int64_t *)place = n;
}

static const struct json_field fields[] = {
	JSON_ROW("priorityTiers", read_tiers, struct codeq_topic, tiers),
	JSON_ROW("maxAttempts", read_number, struct codeq_topic, max_attempts, .min = 1, .max = TOPIC_ATTEMPTS),
	JSON_ROW("deadLetterTopicRef", read_label, struct codeq_topic, letters),
	JSON_ROW("retentionSeconds", read_number, struct codeq_topic, retention, .min = 0, .max = INT32_MAX),
	JSON_ROW("maxConsumers", read_number, struct codeq_topic, max_consumers, .min = 0, .max = TOPIC_CONSUMERS),
	JSON_ROW("version", json_read_u64, struct codeq_topic, version), /* last: of a stored document alone */
};

int
codeq_topic_parse(struct codeq_topic *t, struct slice text, bool stored, struct slu_err *err)
{
	char room[256];
	struct json r;

	*t = (struct codeq_topic){ 0 };
	json_init(&r, text, JSON_DEPTH);
	json_room(&r, room, sizeof room);
	(void)json_fields(&r, fields, COUNT(fields) - !stored, JSON_STRICT, t); /* absent members have their defaults */
	return json_end(&r, err);
}

void
codeq_topic_write(struct json_out *w, const struct codeq_topic *t)
{
	if (t->tiers) {
		json_out_array(w, "priorityTiers");
		for (unsigned i = 0; i < TOPIC_TIERS; i++)
			if (t->tiers & 1u << i)
				json_out_u64(w, NULL, i);
		json_out_close(w);
	}
	if (t->max_attempts)
		json_out_u64(w, "maxAttempts", t->max_attempts);
	if (t->letters[0])
		json_out_str(w, "deadLetterTopicRef", slice_of(t->letters));
	json_out_i64(w, "retentionSeconds", t->retention);
	json_out_u64(w, "maxConsumers", t->max_consumers);
	json_out_u64(w, "version", t->version);
}

bool
codeq_topic_is_same(const struct codeq_topic *a, const struct codeq_topic *b)
{
	return a->tiers == b->tiers && a->max_attempts == b->max_attempts && a->max_consumers == b->max_consumers &&
	       a->retention == b->retention && strcmp(a->letters, b->letters) == 0;
}

/* --- the facts of a create ---------------------------------------------------- */

/* The name of the facts in the table that dialects share; n 0: it does not fit. */
static struct slice
known_name(const struct codeq_facts_of *f)
{
	const struct slice key = slice_of(f->kept.key);

	return key.n <= NAME_LONGEST ? key : (struct slice){ 0 };
}

static void
loaded(struct apicall *a)
{
	struct codeq_facts_of *const f = a->part;
	struct codeq_topic t = { 0 };
	struct slu_err err = { 0 };

	if (f->kept.text.n > 0 && codeq_topic_parse(&t, f->kept.text, true, &err)) {
		codeq_refuse_rc(a, SLU_ECORRUPT, err.text);
		return;
	}
	f->facts = (struct codeq_facts){ .retention = t.retention ? t.retention : CODEQ_RETENTION, .tiers = t.tiers };
	if (known_name(f).n > 0)
		known_put(a->api->known, exchange_thread(a->x), f->kept.space, known_name(f), clock_mono(a->api->clock),
			  f->changes, &f->facts, sizeof f->facts);
	f->then(a);
}

void
codeq_topic_facts(struct codeq_facts_of *f, struct apicall *a, struct slice queue, void (*then)(struct apicall *a))
{
	ownstate_init(&f->kept, a, codeq_space(a), "~codeq/", queue);
	f->queue = queue;
	f->then = then;
	f->changes = known_changes(a->api->known);
	if (known_name(f).n > 0 && known_find(a->api->known, exchange_thread(a->x), f->kept.space, known_name(f),
					      clock_mono(a->api->clock), &f->facts, sizeof f->facts))
		then(a);
	else
		ownstate_load(&f->kept, a, loaded);
}
