#include "api/queue/letters.h"

struct letters {
	const char *space, *queue;
	char at[NAME_TEXT]; /* the queue whose policy is asked for */
	unsigned hops;
	void (*then)(struct apicall *a, int rc, const struct slu_err *err);
};

static void look(struct apicall *a);

static void
looked(struct apicall *a)
{
	struct letters *const t = a->part;

	if (a->op.rc) {
		t->then(a, a->op.rc, &a->op.err);
		return;
	}
	memcpy(t->at, a->op.policy.dead_letter_queue, sizeof t->at);
	look(a);
}

static void
look(struct apicall *a)
{
	struct letters *const t = a->part;
	struct slu_err err = { 0 };

	if (!t->at[0]) {
		t->then(a, 0, &err);
	} else if (strcmp(t->at, t->queue) == 0 || t->hops++ == LETTERS_HOPS) {
		(void)slu_fail(&err, SLU_EINVAL, "invalid dead_letter_queue; expected a queue whose dead letters do not come back to queue %s",
			       t->queue);
		t->then(a, SLU_EINVAL, &err);
	} else {
		apicall_op(a, &a->op, OP_POLICY_GET, slice_of(t->space), slice_of(t->at));
		apicall_run(a, looked);
	}
}

void
letters_check(struct apicall *a, const char *space, const char *queue, const char *target,
	      void (*then)(struct apicall *a, int rc, const struct slu_err *err))
{
	struct letters *const t = arena_alloc(&a->memory, sizeof *t);
	struct slu_err err = { 0 };

	if (!t) {
		then(a, slu_fail(&err, SLU_ENOMEM, "out of memory"), &err);
		return;
	}
	*t = (struct letters){ .space = space, .queue = queue, .then = then };
	memcpy(t->at, target, strlen(target) + 1);
	a->part = t;
	look(a);
}
