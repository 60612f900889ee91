/*
 * scheduler_fire.c - fires what is due of one schedule.
 */
#include "duty/scheduler_private.h"

#include "base/mem.h"
#include "duty/firing.h"

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

/* Whether the message of the last firing is neither gone nor dead. A shard that does not answer: the tick waits. */
static int
look_at_last(struct duty *d, const struct scheduled *row, bool *runs, struct slu_err *err)
{
	struct op_row found;
	struct op op;
	int rc;

	*runs = false;
	if (row->s.overlap == SCHEDULE_ALLOW || !row->s.last_id)
		return 0;
	opwait_op(&d->wait, &op, OP_GET, slice_of(row->row.space), slice_of(row->s.queue));
	op.id = row->s.last_id;
	op.rows = &found;
	op.max_rows = 1;
	rc = duty_run(d, &op, 1, err);
	if (rc)
		return rc == SLU_ENOTFOUND ? 0 : rc;
	*runs = op.n_rows > 0 && found.state != MSG_DEAD && found.state != MSG_DAMAGED;
	op_unpin(&op);
	return 0;
}

/* SCHEDULER-1 */
static int
store(struct duty *d, struct firing *f, uint32_t n, struct slu_err *err)
{
	struct duty_row *const row = &f->row->row;
	int rc = firing_schedule(&f->next, slice_of(row->space), &f->memory, &f->puts[0], err);

	if (!rc)
		rc = duty_store(d, row, f->puts, 1 + n, err);
	if (!rc)
		f->row->s = f->next;
	return rc;
}

/* SCHEDULER-2 */
static int
send_over(struct duty *d, struct firing *f, struct slu_err *err)
{
	struct op op;
	int rc;

	for (uint32_t i = 0; i < f->n; i++)
		f->puts[1 + i].m.id = 0;
	opwait_op(&d->wait, &op, OP_ENQUEUE, f->puts[1].m.space, f->puts[1].m.queue);
	op.puts = f->puts + 1;
	op.n_puts = f->n;
	rc = duty_run(d, &op, 1, err);
	if (rc)
		return rc;
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
fire_messages(struct duty *d, struct firing *f, slu_time now, struct slu_err *err)
{
	const struct slice space = slice_of(f->row->row.space);
	int rc = firing_puts(&f->row->s, space, f->due.ticks, f->n, &f->memory, f->puts + 1, err);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < f->n; i++)
		f->ids[i] = f->puts[1 + i].m.id = broker_new_id(d->broker, space, f->puts[1].m.queue);
	note(f, now);
	rc = store(d, f, f->n, err);
	if (rc != SLU_ETOGETHER)
		return rc;
	rc = send_over(d, f, err);
	if (rc)
		return rc;
	note(f, now);
	return store(d, f, 0, err);
}

static int
run(struct duty *d, struct firing *f, slu_time now, struct slu_err *err)
{
	bool runs;
	int rc = f->due.n ? look_at_last(d, f->row, &runs, err) : 0;

	if (rc)
		return rc;
	f->n = f->due.n && !runs ? f->due.n : 0;
	if (f->n)
		return fire_messages(d, f, now, err);
	f->next = f->row->s;
	schedule_fire(&f->next, &f->due, NULL, now);
	return store(d, f, 0, err);
}

static void
count(struct duty *d, const struct firing *f)
{
	duty_count(d, SCHEDULER_FIRED, f->n);
	duty_count(d, SCHEDULER_OVERLAPPED, f->due.n - f->n);
	duty_count(d, SCHEDULER_LOST, f->due.lost);
}

static int
fire(struct duty *d, struct firing *f, struct slu_err *err)
{
	const slu_time now = clock_wall(&clock_system);
	struct scheduled *const row = f->row;
	int rc = 0;

	schedule_due(&row->s, &row->plan, now, &f->due);
	if (f->due.last || f->due.lost)
		rc = run(d, f, now, err);
	arena_release(&f->memory);
	if (rc)
		return rc;
	if (f->due.last || f->due.lost)
		count(d, f);
	row->due = schedule_next(&row->s, &row->plan);
	return 0;
}

int
scheduler_fire(struct duty *d, struct duty_row *one, struct slu_err *err)
{
	struct firing *const f = mem_zalloc(sizeof *f); /* too large for a stack */
	int rc;

	if (!f)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	f->row = CONTAINER(one, struct scheduled, row);
	rc = fire(d, f, err);
	mem_free(f);
	return rc;
}
