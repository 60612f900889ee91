/*
 * topics.c - PUT, GET and DELETE /admin/topics/{name}.
 *
 *      PUT      policy read, changed and set ──> document compared and written ──> 201, or 200
 *      DELETE   document removed ──> policy as without a topic ──> 204
 */
#include "api/codeq/topic.h"

#include "api/queue/known.h"
#include "api/limits.h"

#include <stdio.h>

struct state {
	struct ownstate kept; /* first: apicall.part */
	char queue[NAME_TEXT], shown[NAME_TEXT];
	struct codeq_topic next;
	bool made;                      /* the document is new */
	bool missing;                   /* DELETE: the topic does not exist */
	void (*set)(struct apicall *a); /* after the policy was set */
};

static struct state *
state_of(struct apicall *a)
{
	return codeq_of(a)->own;
}

/* The name of the path. Returns false if it refused the call. */
static bool
take_name(struct apicall *a)
{
	struct state *const s = state_of(a);
	const struct slice name = codeq_rest(a);
	struct slu_err err = { 0 };

	if (name_fold(name, "topic", s->queue, &err)) {
		codeq_refuse(a, 400, "%s", err.text);
		return false;
	}
	(void)snprintf(s->shown, sizeof s->shown, "%.*s", (int)name.n, name.p); /* fits: it is a name */
	ownstate_init(&s->kept, a, codeq_space(a), "~codeq/", slice_of(s->queue));
	return true;
}

static void
answer(struct apicall *a, unsigned status, const struct codeq_topic *t)
{
	const struct state *const s = state_of(a);
	char physical[2 * NAME_TEXT];
	struct json_out w;

	(void)snprintf(physical, sizeof physical, "%s.%s", codeq_of(a)->space, s->queue); /* fits */
	apicall_object(a, &w);
	json_out_str(&w, "name", slice_of(s->shown));
	json_out_str(&w, "tenantId", codeq_space(a));
	json_out_str(&w, "physicalId", slice_of(physical));
	codeq_topic_write(&w, t);
	apicall_reply_object(a, &w, status);
}

/* --- the policy --------------------------------------------------------------- */

static void
policy_set(struct apicall *a)
{
	if (a->op.rc == SLU_EINVAL)
		codeq_refuse(a, 422, "%s", a->op.err.text);
	else if (!apicall_failed(a))
		state_of(a)->set(a);
}

static void
set_policy(struct apicall *a)
{
	struct state *const s = state_of(a);
	struct policy policy;

	if (apicall_failed(a))
		return;
	policy = a->op.policy;
	policy.max_attempts = s->next.max_attempts ? s->next.max_attempts : policy_default.max_attempts;
	policy.concurrency = s->next.max_consumers;
	policy.dlq_retention = s->next.retention * SLU_SEC;
	memset(policy.dead_letter_queue, 0, sizeof policy.dead_letter_queue);
	memcpy(policy.dead_letter_queue, s->next.letters, sizeof s->next.letters);
	apicall_op(a, &a->op, OP_POLICY_SET, codeq_space(a), slice_of(s->queue));
	a->op.as = (struct spelling){ .queue = slice_of(s->shown) };
	a->op.policy = policy;
	apicall_run(a, policy_set);
}

static void
change_policy(struct apicall *a, void (*then)(struct apicall *a))
{
	struct state *const s = state_of(a);

	s->set = then;
	apicall_op(a, &a->op, OP_POLICY_GET, codeq_space(a), slice_of(s->queue));
	apicall_run(a, set_policy);
}

/* --- PUT ---------------------------------------------------------------------- */

static int
edit(struct apicall *a, struct slu_err *err)
{
	struct state *const s = state_of(a);
	struct codeq_topic old = { 0 };
	struct json_out w;
	struct buf text;

	if (s->kept.text.n > 0 && codeq_topic_parse(&old, s->kept.text, true, err))
		return SLU_ECORRUPT;
	s->made = s->kept.text.n == 0;
	s->next.version = s->made ? 1 : old.version + !codeq_topic_is_same(&old, &s->next);
	buf_init(&text, OWNSTATE_MAX);
	json_out_open(&w, &text);
	codeq_topic_write(&w, &s->next);
	json_out_close(&w);
	s->kept.next = !text.failed ? arena_copy(&a->memory, buf_slice(&text)) : (struct slice){ 0 };
	buf_release(&text);
	return s->kept.next.n ? 0 : slu_fail(err, SLU_ENOMEM, "out of memory");
}

static void
stored(struct apicall *a)
{
	const struct state *const s = state_of(a);

	known_changed(a->api->known);
	answer(a, s->made ? 201 : 200, &s->next);
}

static void
store(struct apicall *a)
{
	ownstate_change(&state_of(a)->kept, a, edit, stored);
}

static void
put(struct apicall *a)
{
	struct state *const s = state_of(a);
	struct slu_err err = { 0 };
	int rc;

	if (!take_name(a))
		return;
	rc = codeq_topic_parse(&s->next, call_of(a->x)->body, false, &err);
	if (!rc && strcmp(s->next.letters, s->queue) == 0)
		rc = slu_fail(&err, SLU_ECONFLICT, "deadLetterTopicRef: expected another topic");
	if (rc)
		codeq_refuse(a, rc == SLU_ECONFLICT ? 422 : 400, "%s", err.text);
	else
		change_policy(a, store);
}

/* --- GET, DELETE -------------------------------------------------------------- */

static void
show(struct apicall *a)
{
	const struct state *const s = state_of(a);
	struct codeq_topic t;
	struct slu_err err = { 0 };

	if (s->kept.text.n == 0)
		codeq_refuse(a, 404, "topic not found");
	else if (codeq_topic_parse(&t, s->kept.text, true, &err))
		codeq_refuse_rc(a, SLU_ECORRUPT, err.text);
	else
		answer(a, 200, &t);
}

static void
get(struct apicall *a)
{
	if (take_name(a))
		ownstate_load(&state_of(a)->kept, a, show);
}

static void
gone(struct apicall *a)
{
	known_changed(a->api->known);
	call_answer(call_of(a->x), 204, NULL, NULL);
}

static int
remove_it(struct apicall *a, struct slu_err *err)
{
	struct state *const s = state_of(a);

	(void)err;
	s->missing = s->kept.text.n == 0;
	return 0; /* kept.next is empty */
}

static void
removed(struct apicall *a)
{
	if (state_of(a)->missing)
		codeq_refuse(a, 404, "topic not found");
	else
		change_policy(a, gone); /* next is empty: the defaults */
}

static void delete (struct apicall *a)
{
	if (!slice_eq(codeq_of(a)->deletion, SLICE("Delete"))) {
		codeq_refuse(a, 400, "expected ?deletionPolicy=Delete");
		return;
	}
	if (take_name(a))
		ownstate_change(&state_of(a)->kept, a, remove_it, removed);
}

const struct codeq_action codeq_topic_put = { put, sizeof(struct state), CODEQ_ADMINS, 0 };
const struct codeq_action codeq_topic_get = { get, sizeof(struct state), CODEQ_ADMINS, 0 };
const struct codeq_action codeq_topic_delete = { delete, sizeof(struct state), CODEQ_ADMINS, 0 };
