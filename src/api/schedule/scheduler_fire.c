/*
 * scheduler_fire.c - fires what is due of one schedule.
 */
#include "api/schedule/scheduler_private.h"

#include "api/schedule/firing.h"

/* What a firing stores. */
struct firing {
	struct scheduled *row;
	struct schedule next; /* the schedule after it */
	struct schedule_due due;
	struct op_put puts[1 + SCHEDULE_MOST]; /* the schedule, then the messages */
	uint64_t ids[SCHEDULE_MOST];
	uint32_t n; /* messages */
	struct arena memory;
};

static int
explain(const struct op *op, int rc, struct slu_err *err)
{
	*err = op->err;
	return op->err.code ? rc : slu_fail(err, (enum slu_code)rc, "%s", slu_err_row(rc)->text);
}

/* Whether the message of the last firing is neither gone nor dead. A shard that does not answer: the tick waits. */
static int
look_at_last(struct scheduler *s, const struct scheduled *row, bool *runs, struct slu_err *err)
{
	struct op_row found;
	struct op op;
	int rc;

	*runs = false;
	if (row->s.overlap == SCHEDULE_ALLOW || !row->s.last_id)
		return 0;
	scheduler_op(s, &op, OP_GET, slice_of(row->space), slice_of(row->s.queue));
	op.route.local = false;
	op.id = row->s.last_id;
	op.rows = &found;
	op.max_rows = 1;
	rc = scheduler_run(s, &op);
	if (rc == SLU_ENOTFOUND)
		return 0;
	if (rc)
		return explain(&op, rc, err);
	*runs = op.n_rows > 0 && found.state != MSG_DEAD && found.state != MSG_DAMAGED;
	op_unpin(&op);
	return 0;
}

/* SCHEDULER-1 */
static int
store(struct scheduler *s, struct firing *f, uint32_t n, struct slu_err *err)
{
	const struct slice space = slice_of(f->row->space);
	struct op_item item = { .id = schedule_id(space, slice_of(f->row->s.name)), .number = f->row->number };
	struct op op;
	int rc = firing_schedule(&f->next, space, &f->memory, &f->puts[0], err);

	if (rc)
		return rc;
	scheduler_op(s, &op, OP_SCHEDULE, space, SLICE(SCHEDULE_QUEUE));
	op.items = &item;
	op.n_items = 1;
	op.puts = f->puts;
	op.n_puts = 1 + n;
	rc = scheduler_run(s, &op);
	if (rc)
		return explain(&op, rc, err);
	s->expected++;
	f->row->number = f->puts[0].m.number;
	f->row->s = f->next;
	return 0;
}

/* SCHEDULER-2 */
static int
send_over(struct scheduler *s, struct firing *f, struct slu_err *err)
{
	struct op op;
	int rc;

	for (uint32_t i = 0; i < f->n; i++)
		f->puts[1 + i].m.id = 0;
	scheduler_op(s, &op, OP_ENQUEUE, f->puts[1].m.space, f->puts[1].m.queue);
	op.route.local = false;
	op.puts = f->puts + 1;
	op.n_puts = f->n;
	rc = scheduler_run(s, &op);
	if (rc)
		return explain(&op, rc, err);
	for (uint32_t i = 0; i < f->n; i++)
		f->ids[i] = f->puts[1 + i].m.id;
	return 0;
}

static void
note(struct firing *f, slu_time now)
{
	f->next = f->row->s;
	schedule_fire(&f->next, &f->due, f->ids, now);
	(void)memcpy(f->next.queue, f->puts[1].m.queue.p, f->puts[1].m.queue.n);
	f->next.queue[f->puts[1].m.queue.n] = '\0';
}

/* In one group, or by the idempotency key. */
static int
fire_messages(struct scheduler *s, struct firing *f, slu_time now, struct slu_err *err)
{
	const struct slice space = slice_of(f->row->space);
	int rc = firing_puts(&f->row->s, space, f->due.ticks, f->n, &f->memory, f->puts + 1, err);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < f->n; i++)
		f->ids[i] = f->puts[1 + i].m.id = broker_new_id(s->broker, space, f->puts[1].m.queue);
	note(f, now);
	rc = store(s, f, f->n, err);
	if (rc != SLU_ETOGETHER)
		return rc;
	rc = send_over(s, f, err);
	if (rc)
		return rc;
	note(f, now);
	return store(s, f, 0, err);
}

static int
run(struct scheduler *s, struct firing *f, slu_time now, struct slu_err *err)
{
	bool runs;
	int rc = f->due.n ? look_at_last(s, f->row, &runs, err) : 0;

	if (rc)
		return rc;
	f->n = f->due.n && !runs ? f->due.n : 0;
	if (f->n)
		return fire_messages(s, f, now, err);
	f->next = f->row->s;
	schedule_fire(&f->next, &f->due, NULL, now);
	return store(s, f, 0, err);
}

static void
count(struct scheduler *s, const struct firing *f)
{
	atomic_fetch_add(&s->fired, f->n);
	atomic_fetch_add(&s->overlapped, f->due.n - f->n);
	atomic_fetch_add(&s->lost, f->due.lost);
}

int
scheduler_fire(struct scheduler *s, struct scheduled *row, slu_time now, struct slu_err *err)
{
	static struct firing f; /* large; of the one thread */
	int rc = 0;

	f = (struct firing){ .row = row };
	schedule_due(&row->s, &row->plan, now, &f.due);
	if (f.due.last || f.due.lost)
		rc = run(s, &f, now, err);
	arena_release(&f.memory);
	if (rc)
		return rc;
	if (f.due.last || f.due.lost)
		count(s, &f);
	row->due = schedule_next(&row->s, &row->plan);
	return 0;
}
