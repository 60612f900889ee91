/*
 * queues.c - CreateQueue, DeleteQueue, GetQueueUrl, ListQueues, PurgeQueue, GetQueueAttributes,
 * SetQueueAttributes.
 *
 *      CreateQueue   is it there? ── no ──> document, then policy: the queue is there when it is complete
 *                                └─ yes ──> has it the same attributes?
 */
#include "api/queue/letters.h"
#include "api/sqs/attributes.h"
#include "api/sqs/out.h"
#include "api/sqs/queue.h"
#include "api/queue/known.h"
#include "api/limits.h"
#include "api/queuestats.h"
#include "auth/guard.h"
#include "base/parse.h"

#include <inttypes.h>
#include <stdio.h>

struct state {
	struct op_queue seen;
	struct policy policy;
	struct queuestats *page; /* of a list */
	uint64_t cursor;
	uint32_t most, n;
	char (*names)[NAME_TEXT]; /* found so far */
	uint32_t rounds;
	bool sources;                    /* lists the queues whose dead-letter queue this is */
	struct op_queue target;          /* the dead-letter queue */
	void (*then)(struct apicall *a); /* check_target: what comes next */
};

static struct state *
begin(struct apicall *a)
{
	struct state *const t = arena_alloc(&a->memory, sizeof *t);

	if (!t) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return NULL;
	}
	sqs_of(a)->own = memset(t, 0, sizeof *t);
	return t;
}

static int64_t
seconds_now(struct apicall *a)
{
	return clock_wall(a->api->clock) / SLU_SEC;
}

/* After a change of the queue. */
static void
changed(struct apicall *a)
{
	known_changed(a->api->known);
	if (!sqs_failed(a))
		sqs_out_nothing(a);
}

/* --- GetQueueUrl, CreateQueue --------------------------------------------------- */

static void
answer_url(struct apicall *a)
{
	const struct sqs_call *const s = sqs_of(a);
	const struct state *const t = s->own;
	struct sqs_out o;
	char url[SQS_URL];

	sqs_out_begin(&o, a, NULL);
	sqs_out_text(&o, "QueueUrl", slice_of(sqs_url(s, t->seen.shown[0] ? t->seen.shown : s->as, url)));
	sqs_out_end(&o);
}

void
sqs_get_url(struct apicall *a)
{
	struct state *const t = begin(a);

	if (t)
		sqs_queue_look(a, &t->seen, answer_url);
}

static void
created(struct apicall *a)
{
	known_changed(a->api->known);
	if (!sqs_failed(a))
		answer_url(a);
}

/* The dead-letter queue is checked: it exists, and its dead letters do not come back. */
static void
letters_checked(struct apicall *a, int rc, const struct slu_err *err)
{
	const struct state *const t = sqs_of(a)->own;

	if (rc == SLU_EINVAL)
		sqs_refuse(a, SQS_BAD_VALUE, "Value for parameter RedrivePolicy is invalid. Reason: %s", err->text);
	else if (!apicall_refused(a, rc, err->text))
		t->then(a);
}

static void
target_seen(struct apicall *a)
{
	const struct sqs_call *const s = sqs_of(a);
	const struct state *const t = s->own;

	if (a->op.rc == SLU_ENOTFOUND)
		sqs_refuse(a, SQS_BAD_VALUE, "Value for parameter RedrivePolicy is invalid. Reason: Dead letter target does not exist.");
	else if (a->op.rc)
		apicall_refuse_op(a, &a->op);
	else
		letters_check(a, s->space, s->queue, t->policy.dead_letter_queue, letters_checked);
}

/* Checks the dead-letter queue of t->policy if the request names it, then calls `then`. */
static void
check_target(struct apicall *a, void (*then)(struct apicall *a))
{
	const struct sqs_call *const s = sqs_of(a);
	struct state *const t = s->own;

	t->then = then;
	if (!t->policy.dead_letter_queue[0] || !sqs_pairs_find(&s->q.attributes, "RedrivePolicy").n) {
		then(a);
		return;
	}
	apicall_op(a, &a->op, OP_STATS, slice_of(s->space), slice_of(t->policy.dead_letter_queue));
	a->op.queues = &t->target;
	a->op.max_queues = 1;
	apicall_run(a, target_seen);
}

static void
set_policy(struct apicall *a)
{
	const struct sqs_call *const s = sqs_of(a);
	const struct state *const t = s->own;

	apicall_op(a, &a->op, OP_POLICY_SET, slice_of(s->space), slice_of(s->queue));
	a->op.as = (struct spelling){ .queue = slice_of(s->as) };
	a->op.policy = t->policy;
	apicall_run(a, created);
}

/* Copies attributes into the document; an empty value removes one. */
static bool
keep_attributes(struct apicall *a, const struct sqs_pairs *given, struct sqs_pairs *kept)
{
	for (uint32_t i = 0; i < given->n; i++) {
		const struct sqs_pair *const pair = &given->items[i];

		if (pair->value.n == 0)
			sqs_pairs_remove(kept, pair->name);
		else if (!sqs_pairs_set(kept, &a->memory, pair->name, pair->value))
			return false;
	}
	return true;
}

/* The document of a new queue. */
static enum sqs_code
make_document(struct apicall *a, struct slu_err *err)
{
	const struct sqs_request *const q = &sqs_of(a)->q;
	struct sqs_document *const d = sqs_document(a);
	bool fits;

	*d = (struct sqs_document){ .created = seconds_now(a), .modified = seconds_now(a) };
	fits = keep_attributes(a, &q->attributes, &d->attributes);
	for (uint32_t i = 0; i < q->tags.n; i++)
		fits &= sqs_pairs_set(&d->tags, &a->memory, q->tags.items[i].name, q->tags.items[i].value);
	if (fits)
		return SQS_OK;
	(void)slu_fail(err, SLU_EINVAL, "too many attributes or tags");
	return SQS_OVER_LIMIT;
}

/* A queue with this name is there: it must have the attributes of the request. */
static void
compare(struct apicall *a)
{
	const struct sqs_call *const s = sqs_of(a);
	struct state *const t = s->own;
	const struct sqs_shown shown = { sqs_document(a), &t->policy, &t->seen };
	char name[64], room[SQS_URL];

	for (uint32_t i = 0; i < s->q.attributes.n; i++) {
		const struct sqs_pair *const pair = &s->q.attributes.items[i];

		(void)snprintf(name, sizeof name, "%.*s", (int)pair->name.n, pair->name.p); /* a known one fits */
		if (!slice_eq(pair->value, sqs_attributes_value(a, &shown, name, room)) &&
		    !(pair->value.n == 0 || slice_eq(pair->value, SLICE("false")))) {
			sqs_refuse(a, SQS_NAME_EXISTS, "A queue already exists with the same name and a different value for attribute %s", name);
			return;
		}
	}
	answer_url(a);
}

static void
got_policy(struct apicall *a)
{
	struct state *const t = sqs_of(a)->own;

	if (sqs_failed(a))
		return;
	t->policy = a->op.policy;
	sqs_store_load(a, compare);
}

static void
get_policy(struct apicall *a, void (*then)(struct apicall *a))
{
	const struct sqs_call *const s = sqs_of(a);

	apicall_op(a, &a->op, OP_POLICY_GET, slice_of(s->space), slice_of(s->queue));
	apicall_run(a, then);
}

static void
create_checked(struct apicall *a)
{
	sqs_store_change(a, make_document, set_policy);
}

static void
looked(struct apicall *a)
{
	struct sqs_call *const s = sqs_of(a);
	struct state *const t = s->own;

	if (a->op.rc == 0) {
		get_policy(a, got_policy);
		return;
	}
	if (a->op.rc != SLU_ENOTFOUND) {
		apicall_refuse_op(a, &a->op);
		return;
	}
	a->terms.needs = RIGHT_ADMIN; /* only a queue that is there may be named without */
	sqs_attributes_new(s->queue, &t->policy);
	sqs_attributes_apply(&s->q.attributes, &t->policy);
	check_target(a, create_checked);
}

/* The rule of SQS for new queues. */
static bool
is_name(struct slice name)
{
	static const struct slice end = SLICE(".fifo");

	if (name.n > SQS_NAME_MAX)
		return false;
	if (name.n > end.n && memcmp(name.p + name.n - end.n, end.p, end.n) == 0)
		name.n -= end.n;
	for (size_t i = 0; i < name.n; i++) {
		const char c = ascii_lower(name.p[i]);

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'))
			return false;
	}
	return name.n > 0;
}

void
sqs_create(struct apicall *a)
{
	const struct sqs_call *const s = sqs_of(a);
	struct state *const t = begin(a);
	struct slu_err err = { 0 };
	enum sqs_code code;

	if (!t)
		return;
	if (!is_name(s->q.queue_name)) {
		sqs_refuse(a, SQS_BAD_VALUE, "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length");
		return;
	}
	if (sqs_is_fifo(s->queue) && !slice_eq(sqs_pairs_find(&s->q.attributes, "FifoQueue"), SLICE("true"))) {
		sqs_refuse(a, SQS_BAD_VALUE, "The name of a FIFO queue ends in .fifo, and its attribute FifoQueue is true");
		return;
	}
	code = sqs_attributes_check(s, &s->q.attributes, true, &err);
	if (code) {
		sqs_refuse(a, code, "%s", err.text);
		return;
	}
	apicall_op(a, &a->op, OP_STATS, slice_of(s->space), slice_of(s->queue));
	a->op.queues = &t->seen;
	a->op.max_queues = 1;
	apicall_run(a, looked);
}

/* --- attributes ---------------------------------------------------------------- */

static void
show(struct apicall *a)
{
	const struct sqs_call *const s = sqs_of(a);
	struct state *const t = s->own;
	const struct sqs_shown shown = { sqs_document(a), &t->policy, &t->seen };
	struct sqs_out o;

	sqs_out_begin(&o, a, NULL);
	sqs_out_map(&o, "Attributes", "Attribute", "Name");
	sqs_attributes_write(&o, &shown, &s->q.names);
	sqs_out_map_end(&o);
	sqs_out_end(&o);
}

static void
show_policy(struct apicall *a)
{
	struct state *const t = sqs_of(a)->own;

	if (sqs_failed(a))
		return;
	t->policy = a->op.policy;
	sqs_store_load(a, show);
}

static void
show_found(struct apicall *a)
{
	get_policy(a, show_policy);
}

void
sqs_get_attributes(struct apicall *a)
{
	const struct sqs_request *const q = &sqs_of(a)->q;
	struct state *const t = begin(a);

	for (uint32_t i = 0; t && i < q->names.n; i++)
		if (!sqs_attributes_known(q->names.items[i])) {
			sqs_refuse(a, SQS_BAD_ATTRIBUTE, "Unknown Attribute %.*s.", (int)q->names.items[i].n, q->names.items[i].p);
			return;
		}
	if (t)
		sqs_queue_look(a, &t->seen, show_found);
}

static enum sqs_code
edit_attributes(struct apicall *a, struct slu_err *err)
{
	const struct sqs_request *const q = &sqs_of(a)->q;
	struct sqs_document *const d = sqs_document(a);

	d->modified = seconds_now(a);
	if (keep_attributes(a, &q->attributes, &d->attributes))
		return SQS_OK;
	(void)slu_fail(err, SLU_EINVAL, "too many attributes");
	return SQS_OVER_LIMIT;
}

static void
policy_set(struct apicall *a)
{
	if (!sqs_failed(a))
		sqs_store_change(a, edit_attributes, changed);
}

static void
edit_checked(struct apicall *a)
{
	const struct sqs_call *const s = sqs_of(a);
	const struct state *const t = s->own;

	apicall_op(a, &a->op, OP_POLICY_SET, slice_of(s->space), slice_of(s->queue));
	a->op.policy = t->policy;
	apicall_run(a, policy_set);
}

static void
edit_policy(struct apicall *a)
{
	const struct sqs_call *const s = sqs_of(a);
	struct state *const t = s->own;

	if (sqs_failed(a))
		return;
	t->policy = a->op.policy;
	sqs_attributes_apply(&s->q.attributes, &t->policy);
	check_target(a, edit_checked);
}

static void
edit_found(struct apicall *a)
{
	get_policy(a, edit_policy);
}

void
sqs_set_attributes(struct apicall *a)
{
	const struct sqs_call *const s = sqs_of(a);
	struct state *const t = begin(a);
	struct slu_err err = { 0 };
	enum sqs_code code;

	if (!t)
		return;
	if (!s->q.attributes.given) {
		sqs_refuse(a, SQS_MISSING, "The request must contain the parameter Attributes.");
		return;
	}
	code = sqs_attributes_check(s, &s->q.attributes, false, &err);
	if (code)
		sqs_refuse(a, code, "%s", err.text);
	else
		sqs_queue_look(a, &t->seen, edit_found);
}

/* --- DeleteQueue, PurgeQueue ---------------------------------------------------- */

enum {
	FORGET_ROUNDS = 1000000 /* slices; reached only if producers are as fast */
};

static void forget_step(struct apicall *a);

static void
forgot(struct apicall *a)
{
	struct state *const t = sqs_of(a)->own;

	known_changed(a->api->known);
	if (a->op.rc && !(a->op.rc == SLU_ENOTFOUND && t->rounds > 0)) {
		(void)sqs_failed(a); /* it has */
		return;
	}
	if (a->op.rc == 0 && a->op.cursor && ++t->rounds < FORGET_ROUNDS)
		forget_step(a);
	else
		sqs_store_remove(a, changed);
}

static void
forget_step(struct apicall *a)
{
	const struct sqs_call *const s = sqs_of(a);

	apicall_op(a, &a->op, OP_FORGET, slice_of(s->space), slice_of(s->queue));
	a->op.force = true;
	apicall_run(a, forgot);
}

void
sqs_delete_queue(struct apicall *a)
{
	if (begin(a))
		forget_step(a);
}

static void
purged(struct apicall *a)
{
	if (a->op.rc == SLU_EBUSY)
		sqs_refuse(a, SQS_PURGING, "The last purge of this queue is still under way.");
	else
		changed(a);
}

static void
purge_found(struct apicall *a)
{
	const struct sqs_call *const s = sqs_of(a);

	apicall_op(a, &a->op, OP_PURGE, slice_of(s->space), slice_of(s->queue));
	apicall_run(a, purged);
}

void
sqs_purge(struct apicall *a)
{
	struct state *const t = begin(a);

	if (t)
		sqs_queue_look(a, &t->seen, purge_found);
}

/* --- ListQueues ----------------------------------------------------------------- */

static void
answer_list(struct apicall *a)
{
	const struct sqs_call *const s = sqs_of(a);
	const struct state *const t = s->own;
	char url[SQS_URL], token[24];
	struct sqs_out o;

	sqs_out_begin(&o, a, NULL);
	if (t->n > 0 || t->sources) {
		sqs_out_list(&o, t->sources ? "queueUrls" : "QueueUrls", "QueueUrl");
		for (uint32_t i = 0; i < t->n; i++)
			sqs_out_element(&o, slice_of(sqs_url(s, t->names[i], url)));
		sqs_out_list_end(&o);
	}
	(void)snprintf(token, sizeof token, "%" PRIu64, t->cursor); /* fits */
	if (t->cursor)
		sqs_out_text(&o, "NextToken", slice_of(token));
	sqs_out_end(&o);
}

/* Names of SQS queues that begin with the prefix, or whose dead-letter queue is the queue of the call. */
static bool
is_listed(const struct sqs_call *s, const struct op_queue *queue)
{
	const struct state *const t = s->own;
	const struct sqs_request *const q = &s->q;
	const size_t n = strlen(queue->shown);

	return (!t->sources || strcmp(queue->letters, s->queue) == 0) && queue->name[0] != '.' && n <= SQS_NAME_MAX && n >= q->prefix.n &&
	       (q->prefix.n == 0 || memcmp(queue->shown, q->prefix.p, q->prefix.n) == 0);
}

static void
take_page(struct apicall *a)
{
	const struct sqs_call *const s = sqs_of(a);
	struct state *const t = s->own;

	if (queuestats_refused(a, t->page, NULL))
		return;
	for (uint32_t i = 0; i < t->page->n_queues; i++)
		if (is_listed(s, &t->page->queues[i]))
			memcpy(t->names[t->n++], t->page->queues[i].shown, NAME_TEXT);
	t->cursor = t->page->cursor;
	if (t->cursor && t->n < t->most)
		queuestats_queues(a, t->page, slice_of(s->space), t->cursor, t->most - t->n, take_page);
	else
		answer_list(a);
}

static void
list(struct apicall *a)
{
	const struct sqs_call *const s = sqs_of(a);
	struct state *const t = s->own;

	if (s->q.max_results != SQS_NOT_GIVEN && (s->q.max_results < 1 || s->q.max_results > API_PAGE_MAX)) {
		sqs_refuse(a, SQS_BAD_VALUE, "Value for parameter MaxResults is invalid. Reason: Must be between 1 and 1000.");
		return;
	}
	if (s->q.token.n > 0 && parse_u64(s->q.token, 1, UINT64_MAX, &t->cursor, NULL)) {
		sqs_refuse(a, SQS_BAD_VALUE, "Invalid NextToken.");
		return;
	}
	t->most = s->q.max_results == SQS_NOT_GIVEN ? API_PAGE_MAX : (uint32_t)s->q.max_results;
	t->page = arena_alloc(&a->memory, sizeof *t->page);
	t->names = arena_array(&a->memory, t->most, sizeof *t->names);
	if (!t->page || !t->names) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	memset(t->page, 0, sizeof *t->page);
	queuestats_queues(a, t->page, slice_of(s->space), t->cursor, t->most, take_page);
}

void
sqs_list(struct apicall *a)
{
	if (begin(a))
		list(a);
}

/* --- ListDeadLetterSourceQueues ------------------------------------------------- */

void
sqs_dead_letter_sources(struct apicall *a)
{
	struct state *const t = begin(a);

	if (!t)
		return;
	t->sources = true;
	sqs_queue_look(a, &t->seen, list);
}
