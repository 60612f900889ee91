/*
 * forget.c - DELETE /v1/admin/queues/NAMESPACE/QUEUE: a queue goes, with all it has.
 *
 *      OP_FORGET ──> not yet (a slice of its messages has gone): OP_FORGET again
 *                └─> gone
 */
#include "api/admin/admin.h"

#include "api/handler.h"
#include "api/flat/view.h"
#include "core/names.h"

#include <stdio.h>

enum {
	/* Slices; reached only if producers add messages as fast as they are deleted. */
	FORGET_ROUNDS = 1000000,
	FORGET_TEXT = 512
};

static const struct slice prefix = SLICE("/v1/admin/queues/");

struct state {
	char space[NAME_TEXT];
	char queue[NAME_TEXT];
	bool force;
	uint64_t messages; /* number of deleted messages */
	uint32_t rounds;
};

static const struct param params[] = {
	PARAM(flag, struct state, force),
};

static void
refuse(struct apicall *a)
{
	const struct state *const s = a->state;
	char text[FORGET_TEXT];

	if (a->op.rc != SLU_ENOTFOUND) {
		apicall_refuse_op(a, &a->op);
		return;
	}
	(void)snprintf(text, sizeof text, "namespace %s has no queue %s", s->space, s->queue);
	apicall_refuse(a, a->op.rc, text);
}

static void answer_step(struct apicall *a);

static void
run_step(struct apicall *a)
{
	struct state *const s = a->state;

	apicall_op(a, &a->op, OP_FORGET, slice_of(s->space), slice_of(s->queue));
	a->op.force = s->force;
	apicall_run(a, answer_step);
}

/* A queue that another call deleted between two steps counts as deleted. */
static bool
is_gone(const struct apicall *a)
{
	const struct state *const s = a->state;

	return a->op.rc == 0 || (a->op.rc == SLU_ENOTFOUND && s->rounds > 0);
}

static void
answer_step(struct apicall *a)
{
	struct state *const s = a->state;
	struct json_out w;

	if (!is_gone(a)) {
		refuse(a);
		return;
	}
	s->messages += a->op.count;
	if (a->op.cursor && ++s->rounds < FORGET_ROUNDS) {
		run_step(a);
		return;
	}
	if (a->op.cursor) {
		apicall_refuse(a, SLU_ENOTEMPTY, "messages come faster than they are deleted; stop the producers");
		return;
	}
	apicall_object(a, &w);
	flat_view_place(&w, slice_of(s->space), slice_of(s->queue));
	json_out_bool(&w, "deleted", true);
	json_out_u64(&w, "messages", s->messages);
	apicall_reply_object(a, &w, 200);
}

/* The two names behind the prefix. */
static int
read_names(struct slice path, struct state *s, struct slu_err *err)
{
	struct slice space;
	int rc;

	slice_skip(&path, prefix.n);
	if (!slice_cut(&path, '/', &space))
		return slu_fail(err, SLU_EINVAL,
				"invalid path; expected /v1/admin/queues/NAMESPACE/QUEUE");
	rc = name_fold(space, "namespace", s->space, err);
	return rc ? rc : name_fold(path, "queue", s->queue, err);
}

static void
forget(struct apicall *a)
{
	struct slu_err err = { 0 };

	if (read_names(call_of(a->x)->path, a->state, &err))
		apicall_refuse(a, SLU_EINVAL, err.text);
	else
		run_step(a);
}

const struct handler admin_forget = { forget, sizeof(struct state), QUERY_ROWS(params) };
