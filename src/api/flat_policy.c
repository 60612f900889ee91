#include "api/flat_policy.h"

#include "api/ask.h"
#include "api/flat_view.h"
#include "api/limits.h"
#include "api/values.h"
#include "base/parse.h"
#include "core/bucket.h"

#include <assert.h>

/* --- decode ------------------------------------------------------------------- */

struct word {
	const char *name;
	int value;
};

static const struct word kinds[] = {
	{ "exponential", SLU_BACKOFF_EXPONENTIAL },
	{ "linear", SLU_BACKOFF_LINEAR },
	{ "fixed", SLU_BACKOFF_FIXED },
	{ "none", SLU_BACKOFF_NONE },
};

static const struct word jitters[] = {
	{ "none", SLU_JITTER_NONE },
	{ "full", SLU_JITTER_FULL },
};

static const struct word idempotencies[] = {
	{ "first", false },
	{ "strict", true },
};

static const char *
expected(const struct word *words)
{
	if (words == kinds)
		return "exponential, linear, fixed or none";
	return words == jitters ? "none or full" : "first or strict";
}

static int
read_word(struct json *r, const struct word *words, size_t n, int otherwise)
{
	struct json_str s;

	if (!json_string(r, &s))
		return otherwise;
	for (size_t i = 0; i < n; i++)
		if (json_str_is(&s, slice_of(words[i].name)))
			return words[i].value;
	json_fail(r, SLU_EINVAL, NULL, "expected %s", expected(words));
	return otherwise;
}

static void
read_kind(struct json *r, const struct json_field *f, void *place)
{
	enum slu_backoff_kind *const kind = place;

	assert(f->size == sizeof *kind);
	*kind = read_word(r, kinds, sizeof kinds / sizeof kinds[0], *kind);
}

static void
read_jitter(struct json *r, const struct json_field *f, void *place)
{
	enum slu_jitter *const jitter = place;

	assert(f->size == sizeof *jitter);
	*jitter = read_word(r, jitters, sizeof jitters / sizeof jitters[0], *jitter);
}

static void
read_idempotency(struct json *r, const struct json_field *f, void *place)
{
	bool *const strict = place;

	assert(f->size == sizeof *strict);
	*strict = read_word(r, idempotencies, sizeof idempotencies / sizeof idempotencies[0],
			    *strict);
}

static const struct json_field retry_fields[] = {
	{ .name = { "kind", 4 },
	  .read = read_kind,
	  .offset = offsetof(struct slu_backoff, kind),
	  .size = sizeof(enum slu_backoff_kind) },
	{ .name = { "jitter", 6 },
	  .read = read_jitter,
	  .offset = offsetof(struct slu_backoff, jitter),
	  .size = sizeof(enum slu_jitter) },
	JSON_FIELD(span, struct slu_backoff, base, .max = API_DELAY_MAX),
	JSON_FIELD(span, struct slu_backoff, max, .max = API_DELAY_MAX),
};

static void
read_retry(struct json *r, const struct json_field *f, void *place)
{
	assert(f->size == sizeof(struct slu_backoff));
	(void)json_fields(r, retry_fields, sizeof retry_fields / sizeof retry_fields[0],
			  JSON_STRICT, place); /* what is not given stays */
}

static void
read_u32(struct json *r, const struct json_field *f, void *place)
{
	assert(f->size == sizeof(uint32_t));
	*(uint32_t *)place = (uint32_t)json_u64(r, (uint64_t)f->min, (uint64_t)f->max);
}

#define FIELD(text, how, member, ...)                            \
	{                                                        \
		.name = { text, sizeof text - 1 },               \
		.read = how,                                     \
		.offset = offsetof(struct policy, member),       \
		.size = sizeof(((struct policy *)NULL)->member), \
		__VA_ARGS__                                      \
	}

static const struct json_field fields[] = {
	FIELD("lease", json_read_span, lease, .min = SLU_MS, .max = API_LEASE_MAX),
	FIELD("max_attempts", read_u32, max_attempts, .min = 1, .max = API_ATTEMPTS_MAX),
	FIELD("retry", read_retry, retry),
	FIELD("ttl", json_read_span, ttl, .max = API_DELAY_MAX),
	FIELD("max_depth", read_u32, max_depth, .max = UINT32_MAX),
	FIELD("max_rate", read_u32, max_rate, .max = BUCKET_RATE_MAX),
	FIELD("burst", read_u32, burst, .max = BUCKET_RATE_MAX),
	FIELD("warn_depth", read_u32, warn_depth, .max = UINT32_MAX),
	FIELD("idempotency_window", json_read_span, window, .max = POLICY_WINDOW_MAX),
	FIELD("idempotency", read_idempotency, strict),
	FIELD("dlq_retention", json_read_span, dlq_retention, .max = API_DELAY_MAX),
	FIELD("dlq_max", read_u32, dlq_max, .max = UINT32_MAX),
	FIELD("require_lease", json_read_bool, require_lease),
	FIELD("paused", json_read_bool, paused),
};

int
flat_policy_decode(struct policy *p, struct slice body, struct slu_err *err)
{
	struct json r;

	json_init(&r, body, JSON_DEPTH);
	(void)json_fields(&r, fields, sizeof fields / sizeof fields[0], JSON_STRICT, p);
	if (json_end(&r, NULL))
		return json_explain(&r, -1, err);
	return policy_check(p, err);
}

/* --- encode ------------------------------------------------------------------- */

static void
write_span(struct json_out *w, const char *name, slu_time span)
{
	char text[DURATION_TEXT];

	json_out_str(w, name, slice_of(format_duration(span, text, sizeof text)));
}

void
flat_policy_encode(const struct policy *p, struct json_out *w)
{
	write_span(w, "lease", p->lease);
	json_out_u64(w, "max_attempts", p->max_attempts);
	json_out_object(w, "retry");
	json_out_str(w, "kind", slice_of(kinds[p->retry.kind].name));
	json_out_str(w, "jitter", slice_of(jitters[p->retry.jitter].name));
	write_span(w, "base", p->retry.base);
	write_span(w, "max", p->retry.max);
	json_out_close(w);
	write_span(w, "ttl", p->ttl);
	json_out_u64(w, "max_depth", p->max_depth);
	json_out_u64(w, "max_rate", p->max_rate);
	json_out_u64(w, "burst", p->burst);
	json_out_u64(w, "warn_depth", p->warn_depth);
	write_span(w, "idempotency_window", p->window);
	json_out_str(w, "idempotency", slice_of(idempotencies[p->strict].name));
	write_span(w, "dlq_retention", p->dlq_retention);
	json_out_u64(w, "dlq_max", p->dlq_max);
	json_out_bool(w, "require_lease", p->require_lease);
	json_out_bool(w, "paused", p->paused);
}

/* --- the call ----------------------------------------------------------------- */

struct state {
	struct slice namespace; /* as they are spelled */
	struct slice topic;
	char space[NAME_TEXT]; /* the same, folded */
	char queue[NAME_TEXT];
	struct slice body;
	bool dry_run;
	struct policy would; /* dry_run: what it would be set to */
};

static const struct param params[] = {
	PARAM(spelling, struct state, namespace, .required = true),
	PARAM(spelling, struct state, topic, .required = true, .also = "queue"),
	/* of what sets it alone */
	PARAM(flag, struct state, dry_run),
};

enum {
	SET_PARAMS = sizeof params / sizeof params[0],
	GET_PARAMS = SET_PARAMS - 1
};

static void
answer(struct ask *a)
{
	const struct state *const s = a->state;
	struct json_out w;

	if (a->op.rc) {
		ask_refuse_op(a, &a->op);
		return;
	}
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	flat_view_place(&w, slice_of(s->space), slice_of(s->queue));
	flat_policy_encode(&a->op.policy, &w);
	json_out_close(&w);
	ask_reply(a, 200);
}

/* Nothing was set. */
static void
answer_dry(struct ask *a)
{
	const struct state *const s = a->state;

	a->op.policy = s->would;
	answer(a);
}

/* base: what it is where the body names nothing. */
static void
set(struct ask *a, const struct policy *base)
{
	struct state *const s = a->state;
	struct policy policy = *base;
	struct slu_err err = { 0 };
	const int rc = flat_policy_decode(&policy, s->body, &err);

	if (rc) {
		ask_refuse(a, rc, err.text);
		return;
	}
	if (s->dry_run) {
		s->would = policy;
		ask_op(a, &a->op, OP_POLICY_GET, slice_of(s->space), slice_of(s->queue));
		ask_run(a, answer_dry);
		return;
	}
	ask_op(a, &a->op, OP_POLICY_SET, slice_of(s->space), slice_of(s->queue));
	a->op.as = (struct spelling){ s->namespace, s->topic };
	a->op.policy = policy;
	ask_run(a, answer);
}

static void
change(struct ask *a)
{
	if (a->op.rc)
		ask_refuse_op(a, &a->op);
	else
		set(a, &a->op.policy);
}

static struct ask *
begin(struct call *c, struct api *api, size_t n_params)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;

	if (!s || !ask_params(a, params, n_params, s))
		return NULL;
	s->body = c->body;
	(void)name_fold(s->namespace, "", s->space, NULL); /* both are names */
	(void)name_fold(s->topic, "", s->queue, NULL);
	ask_op(a, &a->op, OP_POLICY_GET, slice_of(s->space), slice_of(s->queue));
	return a;
}

void
flat_policy_get(struct call *c, void *api)
{
	struct ask *const a = begin(c, api, GET_PARAMS);

	if (a)
		ask_run(a, answer);
}

void
flat_policy_put(struct call *c, void *api)
{
	struct ask *const a = begin(c, api, SET_PARAMS);

	if (a)
		set(a, &policy_default);
}

void
flat_policy_post(struct call *c, void *api)
{
	struct ask *const a = begin(c, api, SET_PARAMS);

	if (a)
		ask_run(a, change);
}
