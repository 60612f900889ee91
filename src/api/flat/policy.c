#include "api/flat/policy.h"

#include "api/audit/change.h"
#include "api/handler.h"
#include "api/flat/flat.h"
#include "api/flat/view.h"
#include "api/queue/letters.h"
#include "api/limits.h"
#include "form/retry.h"
#include "core/bucket.h"

#include <assert.h>

/* --- decode ------------------------------------------------------------------- */

static const struct form_word idempotencies[] = {
	{ "first", false },
	{ "strict", true },
};

static void
read_idempotency(struct json *r, const struct json_field *f, void *place)
{
	bool *const strict = place;

	assert(f->size == sizeof *strict);
	*strict = form_word_read(r, idempotencies, COUNT(idempotencies), "first or strict", *strict);
}

static void
read_retry(struct json *r, const struct json_field *f, void *place)
{
	assert(f->size == sizeof(struct slu_backoff));
	form_retry_read(r, place);
}

static void
read_u32(struct json *r, const struct json_field *f, void *place)
{
	assert(f->size == sizeof(uint32_t));
	*(uint32_t *)place = (uint32_t)json_u64(r, (uint64_t)f->min, (uint64_t)f->max);
}

/* A text in char[size]. */
static void
read_line(struct json *r, const struct json_field *f, void *place, size_t size)
{
	struct json_str s;
	struct slice text;

	assert(f->size == size);
	if (!json_string(r, &s))
		return;
	if (s.n >= size || s.has_nul) {
		json_fail(r, SLU_EINVAL, NULL, "expected a text of at most %zu bytes", size - 1);
		return;
	}
	memset(place, 0, size);
	text = json_str_text(&s, place);
	if (text.p != place)
		memcpy(place, text.p, text.n);
}

static void
read_weights(struct json *r, const struct json_field *f, void *place)
{
	read_line(r, f, place, POLICY_WEIGHTS);
}

static void
read_rules(struct json *r, const struct json_field *f, void *place)
{
	read_line(r, f, place, RULES_TEXT);
}

static void
read_tags(struct json *r, const struct json_field *f, void *place)
{
	read_line(r, f, place, POLICY_TAGS);
}

static void
read_attribute(struct json *r, const struct json_field *f, void *place)
{
	read_line(r, f, place, POLICY_ATTRIBUTE);
}

static void
read_queue(struct json *r, const struct json_field *f, void *place)
{
	const struct slice name = json_text(r);
	struct slu_err err;

	assert(f->size == NAME_TEXT);
	if (r->state == JSON_FAILED)
		return;
	if (name.n == 0)
		memset(place, 0, NAME_TEXT);
	else if (name_fold(name, "queue", place, &err))
		json_fail(r, SLU_EINVAL, NULL, "%s", err.text);
}

static const struct json_field fields[] = {
	JSON_FIELD(span, struct policy, lease, .min = SLU_MS, .max = API_LEASE_MAX),
	JSON_ROW("max_attempts", read_u32, struct policy, max_attempts, .min = 1, .max = API_ATTEMPTS_MAX),
	JSON_ROW("retry", read_retry, struct policy, retry),
	JSON_FIELD(span, struct policy, ttl, .max = API_DELAY_MAX),
	JSON_ROW("max_depth", read_u32, struct policy, max_depth, .max = UINT32_MAX),
	JSON_ROW("max_rate", read_u32, struct policy, max_rate, .max = BUCKET_RATE_MAX),
	JSON_ROW("burst", read_u32, struct policy, burst, .max = BUCKET_RATE_MAX),
	JSON_ROW("warn_depth", read_u32, struct policy, warn_depth, .max = UINT32_MAX),
	JSON_FIELD(span, struct policy, warn_age, .max = API_DELAY_MAX),
	JSON_ROW("tags", read_tags, struct policy, tags),
	JSON_ROW("idempotency_window", json_read_span, struct policy, window, .max = POLICY_WINDOW_MAX),
	JSON_ROW("idempotency", read_idempotency, struct policy, strict),
	JSON_FIELD(span, struct policy, dlq_retention, .max = API_DELAY_MAX),
	JSON_ROW("dlq_max", read_u32, struct policy, dlq_max, .max = UINT32_MAX),
	JSON_FIELDS(bool, struct policy, require_lease, paused, draining),
	JSON_ROW("share_weights", read_weights, struct policy, share_weights),
	JSON_ROW("rules", read_rules, struct policy, rules),
	JSON_ROW("breakers", read_rules, struct policy, breakers),
	JSON_ROW("concurrency", read_u32, struct policy, concurrency, .max = UINT32_MAX),
	JSON_ROW("share_concurrency", read_u32, struct policy, share_concurrency, .max = UINT32_MAX),
	JSON_ROW("rate", read_u32, struct policy, rate, .max = UINT32_MAX),
	JSON_ROW("rate_burst", read_u32, struct policy, rate_burst, .max = UINT32_MAX),
	JSON_ROW("share_rate", read_u32, struct policy, share_rate, .max = UINT32_MAX),
	JSON_ROW("share_rate_burst", read_u32, struct policy, share_rate_burst, .max = UINT32_MAX),
	JSON_ROW("key_rate", read_u32, struct policy, key_rate, .max = UINT32_MAX),
	JSON_ROW("key_rate_burst", read_u32, struct policy, key_rate_burst, .max = UINT32_MAX),
	JSON_ROW("limit_attribute", read_attribute, struct policy, limit_attribute),
	JSON_ROW("attribute_concurrency", read_u32, struct policy, attribute_concurrency, .max = UINT32_MAX),
	JSON_ROW("attribute_rate", read_u32, struct policy, attribute_rate, .max = UINT32_MAX),
	JSON_ROW("attribute_rate_burst", read_u32, struct policy, attribute_rate_burst, .max = UINT32_MAX),
	JSON_FIELD(span, struct policy, max_runtime, .max = API_DELAY_MAX),
	JSON_ROW("dead_letter_queue", read_queue, struct policy, dead_letter_queue),
};

int
flat_policy_decode(struct policy *p, struct slice body, struct slu_err *err)
{
	struct json r;

	json_init(&r, body, JSON_DEPTH);
	(void)json_fields(&r, fields, COUNT(fields), JSON_STRICT, p);
	if (json_end(&r, NULL))
		return json_explain(&r, -1, err);
	if (!p->paused)
		policy_resume(p); /* its reason and end go with it */
	return policy_check(p, err);
}

/* --- encode ------------------------------------------------------------------- */

void
flat_policy_encode(const struct policy *p, struct json_out *w)
{
	form_span_write(w, "lease", p->lease);
	json_out_u64(w, "max_attempts", p->max_attempts);
	form_retry_write(w, "retry", &p->retry);
	form_span_write(w, "ttl", p->ttl);
	json_out_u64(w, "max_depth", p->max_depth);
	json_out_u64(w, "max_rate", p->max_rate);
	json_out_u64(w, "burst", p->burst);
	json_out_u64(w, "warn_depth", p->warn_depth);
	form_span_write(w, "warn_age", p->warn_age);
	json_out_str(w, "tags", slice_of(p->tags));
	form_span_write(w, "idempotency_window", p->window);
	json_out_str(w, "idempotency", slice_of(idempotencies[p->strict].name));
	form_span_write(w, "dlq_retention", p->dlq_retention);
	json_out_u64(w, "dlq_max", p->dlq_max);
	json_out_bool(w, "require_lease", p->require_lease);
	json_out_bool(w, "paused", p->paused);
	json_out_bool(w, "draining", p->draining);
	json_out_str(w, "share_weights", slice_of(p->share_weights));
	json_out_str(w, "rules", slice_of(p->rules));
	json_out_str(w, "breakers", slice_of(p->breakers));
	json_out_u64(w, "concurrency", p->concurrency);
	json_out_u64(w, "share_concurrency", p->share_concurrency);
	json_out_u64(w, "rate", p->rate);
	json_out_u64(w, "rate_burst", p->rate_burst);
	json_out_u64(w, "share_rate", p->share_rate);
	json_out_u64(w, "share_rate_burst", p->share_rate_burst);
	json_out_u64(w, "key_rate", p->key_rate);
	json_out_u64(w, "key_rate_burst", p->key_rate_burst);
	json_out_str(w, "limit_attribute", slice_of(p->limit_attribute));
	json_out_u64(w, "attribute_concurrency", p->attribute_concurrency);
	json_out_u64(w, "attribute_rate", p->attribute_rate);
	json_out_u64(w, "attribute_rate_burst", p->attribute_rate_burst);
	form_span_write(w, "max_runtime", p->max_runtime);
	json_out_str(w, "dead_letter_queue", slice_of(p->dead_letter_queue));
}

/* --- the call ----------------------------------------------------------------- */

struct state {
	struct slice namespace; /* namespace and queue as the caller spells them */
	struct slice queue;
	char space[NAME_TEXT]; /* both names in lower case */
	char name[NAME_TEXT];
	struct slice body;
	bool dry_run;
	bool whole;          /* PUT: members that the body lacks get their default */
	struct policy was;   /* the policy before */
	struct policy would; /* the policy that results */
};

static const struct param params[] = {
	PARAM(spelling, struct state, namespace, .required = true),
	PARAM(spelling, struct state, queue, .required = true, .also = "topic"),
	/* only for PUT and POST */
	PARAM(flag, struct state, dry_run),
};

enum {
	SET_PARAMS = COUNT(params),
	GET_PARAMS = SET_PARAMS - 1
};

static void
answer(struct apicall *a)
{
	const struct state *const s = a->state;
	struct json_out w;

	if (apicall_failed(a))
		return;
	apicall_object(a, &w);
	flat_view_place(&w, slice_of(s->space), slice_of(s->name));
	flat_policy_encode(&a->op.policy, &w);
	apicall_reply_object(a, &w, 200);
}

/* Answers a dry run: nothing was set. */
static void
answer_dry(struct apicall *a)
{
	const struct state *const s = a->state;

	a->op.policy = s->would;
	answer(a);
}

static void
note(struct apicall *a, const struct state *s)
{
	struct change_note n;

	if (!change_begin(a, &n))
		return;
	flat_policy_encode(&s->was, &n.before);
	flat_policy_encode(&s->would, &n.after);
	change_end(a, &n);
}

static void
set_checked(struct apicall *a, int rc, const struct slu_err *err)
{
	struct state *const s = a->state;

	if (apicall_refused(a, rc, err->text))
		return;
	if (s->dry_run) {
		apicall_op(a, &a->op, OP_POLICY_GET, slice_of(s->space), slice_of(s->name));
		apicall_run(a, answer_dry);
		return;
	}
	note(a, s);
	apicall_op(a, &a->op, OP_POLICY_SET, slice_of(s->space), slice_of(s->name));
	a->op.as = (struct spelling){ s->namespace, s->queue };
	a->op.policy = s->would;
	apicall_run(a, answer);
}

/* base: the policy that the members of the body change. */
static void
set(struct apicall *a, const struct policy *base)
{
	struct state *const s = a->state;
	struct slu_err err = { 0 };
	int rc;

	s->would = *base;
	rc = flat_policy_decode(&s->would, s->body, &err);
	if (apicall_refused(a, rc, err.text))
		return;
	letters_check(a, s->space, s->name, s->would.dead_letter_queue, set_checked);
}

static void
change(struct apicall *a)
{
	struct state *const s = a->state;

	if (apicall_failed(a))
		return;
	s->was = a->op.policy;
	set(a, s->whole ? &policy_default : &s->was);
}

static void
begin(struct apicall *a)
{
	struct state *const s = a->state;

	s->body = call_of(a->x)->body;
	(void)name_fold(s->namespace, "", s->space, NULL); /* both are valid names */
	(void)name_fold(s->queue, "", s->name, NULL);
	apicall_op(a, &a->op, OP_POLICY_GET, slice_of(s->space), slice_of(s->name));
}

static void
get(struct apicall *a)
{
	begin(a);
	apicall_run(a, answer);
}

static void
replace(struct apicall *a)
{
	struct state *const s = a->state;

	begin(a);
	s->whole = true;
	apicall_run(a, change);
}

static void
update(struct apicall *a)
{
	begin(a);
	apicall_run(a, change);
}

const struct handler flat_policy_get = { get, sizeof(struct state), .query = params, .n = GET_PARAMS };
const struct handler flat_policy_put = { replace, sizeof(struct state), .query = params, .n = SET_PARAMS };
const struct handler flat_policy_post = { update, sizeof(struct state), .query = params, .n = SET_PARAMS };
