/*
 * find.c - a message by its id alone: a lane has it, and they are asked in turn.
 */
#include "beanstalk/beanstalk_private.h"

static void look(struct apicall *a);

static void
found(struct apicall *a)
{
	struct bean_find *const s = a->state;

	if (s->reading.record.rc)
		apicall_refuse(a, s->reading.record.rc, NULL);
	else
		s->found(a);
}

static void
looked(struct apicall *a)
{
	struct bean_find *const s = a->state;

	if (a->op.rc == SLU_ENOTFOUND && ++s->lane < broker_lanes(a->api->broker))
		look(a);
	else if (!apicall_failed(a))
		bean_read(a, &a->op, &s->row, found);
}

static void
look(struct apicall *a)
{
	struct bean_find *const s = a->state;

	apicall_op(a, &a->op, OP_GET, bean_space(a->x), (struct slice){ 0 });
	a->op.id = s->id;
	a->op.cursor = (uint64_t)s->lane << BROKER_CURSOR_BITS;
	a->op.rows = &s->row;
	a->op.max_rows = 1;
	apicall_run(a, looked);
}

void
bean_find(struct apicall *a, uint64_t number, void (*found_it)(struct apicall *a))
{
	struct bean_find *const s = a->state;

	s->id = bean_id_in(number);
	s->found = found_it;
	if (s->id)
		look(a);
	else
		bean_answer(a->x, "NOT_FOUND\r\n");
}
