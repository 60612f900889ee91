/*
 * look.c - peek, kick, pause-tube, and their variants.
 */
#include "beanstalk/beanstalk_private.h"

/* ---- peek ---- */

static void
show(struct apicall *a)
{
	const struct bean_find *const s = a->state;

	bean_answer_job(a, "FOUND", s->row.id, s->reading.record.payload);
}

void
bean_peek(struct apicall *a)
{
	if (apicall_state(a, sizeof(struct bean_find)))
		bean_find(a, bean_call(a->x)->line.numbers[0], show);
}

static void
have_peeked(struct apicall *a)
{
	const struct bean_find *const s = a->state;

	if (!apicall_refused(a, s->reading.record.rc, NULL))
		show(a);
}

static void
peeked(struct apicall *a)
{
	struct bean_find *const s = a->state;

	if (apicall_failed(a))
		return;
	if (a->op.n_rows == 0)
		bean_answer(a->x, "NOT_FOUND\r\n");
	else
		bean_read(a, &a->op, &s->row, have_peeked);
}

void
bean_peek_tube(struct apicall *a)
{
	const enum bean_command command = bean_call(a->x)->line.command;
	struct bean_find *const s = apicall_state(a, sizeof *s);

	if (!s)
		return;
	apicall_op(a, &a->op, command == BEAN_PEEK_BURIED ? OP_LIST : OP_PEEK, bean_space(a->x),
		   arena_copy(&a->memory, bean_queue(bean_conn_of(a->x)->used)));
	if (command == BEAN_PEEK_BURIED)
		a->op.state = MSG_DEAD;
	else if (command == BEAN_PEEK_DELAYED)
		a->op.state = MSG_DELAYED;
	a->op.rows = &s->row;
	a->op.max_rows = 1;
	apicall_run(a, peeked);
}

/* ---- kick ---- */

struct kick {
	struct slice queue;
	uint64_t left; /* jobs that may be kicked */
	uint64_t kicked;
	bool delayed; /* no job is buried: delayed jobs are kicked */
	uint32_t room;
	struct op_row *rows;
	struct op_item *items;
};

static void next_page(struct apicall *a);

static void
end_kick(struct apicall *a)
{
	const struct kick *const s = a->state;

	buf_printf(&a->x->out, "KICKED %llu\r\n", (unsigned long long)s->kicked);
	exchange_answer(a->x);
}

static void
kicked(struct apicall *a)
{
	struct kick *const s = a->state;
	uint64_t n = 0;

	if (apicall_failed(a))
		return;
	for (uint32_t i = 0; i < a->op.n_items; i++)
		n += s->items[i].rc == 0;
	s->kicked += n;
	s->left -= n;
	if (n == 0 || s->left == 0)
		end_kick(a);
	else
		next_page(a);
}

static void
listed(struct apicall *a)
{
	struct kick *const s = a->state;
	const uint32_t n = a->op.n_rows;

	if (a->op.rc == SLU_EINVAL && s->delayed) {
		end_kick(a); /* the engine has no order of delayed messages */
		return;
	}
	if (apicall_failed(a))
		return;
	for (uint32_t i = 0; i < n; i++)
		s->items[i] = (struct op_item){ .id = s->rows[i].id, .delayed = s->delayed };
	op_unpin(&a->op);
	if (n > 0) {
		apicall_op(a, &a->op, OP_REDRIVE, bean_space(a->x), s->queue);
		a->op.items = s->items;
		a->op.n_items = n;
		apicall_run(a, kicked);
	} else if (s->delayed || s->kicked) {
		end_kick(a);
	} else {
		s->delayed = true;
		next_page(a);
	}
}

static void
next_page(struct apicall *a)
{
	struct kick *const s = a->state;

	apicall_op(a, &a->op, s->delayed ? OP_PEEK : OP_LIST, bean_space(a->x), s->queue);
	a->op.state = s->delayed ? MSG_DELAYED : MSG_DEAD;
	a->op.rows = s->rows;
	a->op.max_rows = s->left < s->room ? (uint32_t)s->left : s->room;
	apicall_run(a, listed);
}

void
bean_kick(struct apicall *a)
{
	const uint64_t bound = bean_call(a->x)->line.numbers[0];
	struct kick *const s = apicall_state(a, sizeof *s);

	if (!s)
		return;
	s->queue = arena_copy(&a->memory, bean_queue(bean_conn_of(a->x)->used));
	s->left = bound;
	s->room = bound < BEAN_PAGE ? (uint32_t)bound : BEAN_PAGE;
	s->rows = arena_array(&a->memory, s->room, sizeof *s->rows);
	s->items = arena_array(&a->memory, s->room, sizeof *s->items);
	if (bound == 0)
		end_kick(a);
	else if (!s->rows || !s->items || !s->queue.n)
		apicall_refuse(a, SLU_ENOMEM, NULL);
	else
		next_page(a);
}

struct kick_job {
	struct bean_find find;
	struct op_item item;
};

static void
kicked_job(struct apicall *a)
{
	const struct kick_job *const s = a->state;

	if (apicall_failed(a))
		return;
	if (!apicall_refused(a, s->item.rc, NULL))
		bean_answer(a->x, "KICKED\r\n");
}

static void
found_job(struct apicall *a)
{
	struct kick_job *const s = a->state;

	apicall_op(a, &a->op, OP_REDRIVE, bean_space(a->x), s->find.reading.record.m.queue);
	s->item = (struct op_item){ .id = s->find.id, .delayed = true };
	a->op.items = &s->item;
	a->op.n_items = 1;
	apicall_run(a, kicked_job);
}

void
bean_kick_job(struct apicall *a)
{
	if (apicall_state(a, sizeof(struct kick_job)))
		bean_find(a, bean_call(a->x)->line.numbers[0], found_job);
}

/* ---- pause-tube ---- */

struct tube_pause {
	struct slice queue;
	slu_time left; /* the hold to set; 0: none */
};

static void
paused(struct apicall *a)
{
	struct tubes *const tubes = &bean_shared(a->x)->tubes;
	const struct tube_pause *const s = a->state;
	struct tube *tube;

	if (apicall_failed(a))
		return;
	tube = tubes_find(tubes, s->queue.p);
	if (tube) {
		atomic_fetch_add(&tube->pauses, 1);
		atomic_store(&tube->pause, bean_call(a->x)->line.numbers[0]);
		tubes_close(tubes, tube);
	}
	bean_answer(a->x, "PAUSED\r\n");
}

static void
hold(struct apicall *a, slu_time time, void (*then)(struct apicall *a))
{
	const struct tube_pause *const s = a->state;

	apicall_op(a, &a->op, OP_HOLD, bean_space(a->x), s->queue);
	a->op.limits.scope = GATE_QUEUE;
	a->op.limits.hold = time;
	apicall_run(a, then);
}

/* The hold before has ended. */
static void
ended(struct apicall *a)
{
	const struct tube_pause *const s = a->state;

	if (a->op.rc || s->left == 0)
		paused(a);
	else
		hold(a, s->left, paused);
}

/* The later of two holds counts, and the last pause: the hold before is ended first. */
void
bean_pause(struct apicall *a)
{
	const struct bean_line *const line = &bean_call(a->x)->line;
	struct tube_pause *const s = apicall_state(a, sizeof *s);
	char folded[NAME_TEXT];
	struct slu_err err = { 0 };

	if (!s || apicall_refused(a, name_fold(line->tube, "tube", folded, &err), err.text))
		return;
	s->queue = bean_text(a, folded);
	s->left = (slu_time)line->numbers[0] * SLU_SEC;
	if (s->queue.n)
		hold(a, 0, ended);
	else
		apicall_refuse(a, SLU_ENOMEM, NULL);
}
