#include "api/admin/total.h"

enum {
	QUEUES = 200, /* of a page */
	PAGES = 20
};

static void count(struct apicall *a, struct admin_total *t, uint64_t cursor);

static uint64_t
sum(const struct op_queue *q, enum msg_state only)
{
	uint64_t n = 0;

	for (unsigned state = 0; state < MSG_STATES; state++)
		if (!only || only == (enum msg_state)state)
			n += q->count[state];
	return n;
}

/* A page ends with its shard. */
static void
counted(struct apicall *a)
{
	struct admin_total *const t = a->part;

	for (uint32_t i = 0; !a->op.rc && i < a->op.n_queues; i++)
		if (t->queue.n || a->op.queues[i].name[0] != '.')
			t->of += sum(&a->op.queues[i], t->only);
	t->known = !a->op.rc && a->op.cursor == 0;
	if (!a->op.rc && a->op.cursor && ++t->pages < PAGES) {
		count(a, t, a->op.cursor);
		return;
	}
	a->part = NULL;
	t->then(a);
}

static void
count(struct apicall *a, struct admin_total *t, uint64_t cursor)
{
	apicall_op(a, &a->op, t->queue.n ? OP_STATS : OP_QUEUES, t->namespace, t->queue);
	a->op.cursor = cursor;
	a->op.max_queues = t->queue.n ? 1 : QUEUES;
	a->op.queues = t->queues;
	a->part = t;
	apicall_run(a, counted);
}

void
admin_total_count(struct apicall *a, struct admin_total *t, const struct admin_total *ask)
{
	*t = *ask;
	t->queues = arena_array(&a->memory, QUEUES, sizeof *t->queues);
	if (t->queues)
		count(a, t, 0);
	else
		apicall_refuse(a, SLU_ENOMEM, NULL);
}
