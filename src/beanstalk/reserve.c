/*
 * reserve.c - reserve, reserve-with-timeout, reserve-job.
 *
 *      claim each watched tube, without a wait ── several granted: the best one stays, the others go back
 *          │ none
 *      claim each watched tube, with the wait  ── the first grant ends the other waits
 *          │ one
 *      read the record ── its ttr is another than that of the claim: extend ── RESERVED
 *
 * One watched tube needs one claim. Lanes answer on their own threads; every answer goes to the loop first,
 * where the others are canceled.
 */
#include "beanstalk/beanstalk_private.h"

#include "api/holder.h"
#include "base/time.h"

struct one {
	struct op *op; /* in a->ops */
	struct op_row row;
	struct loop_work work;
	struct apicall *apicall;
	void (*done)(struct op *op); /* of the apicall */
	struct tube *tube;
};

struct reserve {
	struct bean_find find; /* reserve-job; begins with struct bean_reading */
	struct op *ops;        /* one a tube */
	struct one *claims;
	unsigned n;
	slu_time wait;
	slu_time lease;    /* that the claims ask for */
	bool soon;         /* the wait ends at the margin of a reservation */
	bool waits;        /* counted as waiting */
	bool canceled;     /* one claim was granted: the others need not wait */
	unsigned returns;  /* claims on their way back */
	struct one *won;   /* whose job the client gets */
	struct op_item to; /* of the extend */
	bool given;        /* the connection has the job */
};

/* ---- The end of the exchange ---- */

static void
count_waiting(const struct apicall *a, bool waits)
{
	struct bean_shared *const shared = bean_shared(a->x);
	struct reserve *const s = a->state;

	if (waits == s->waits)
		return;
	s->waits = waits;
	for (unsigned i = 0; i < s->n; i++)
		atomic_fetch_add(&s->claims[i].tube->waiting, waits ? 1u : UINT32_MAX);
	atomic_fetch_add(&shared->waiting, waits ? 1u : UINT32_MAX);
}

static void
close_tubes(const struct apicall *a)
{
	struct reserve *const s = a->state;

	for (unsigned i = 0; i < s->n; i++)
		tubes_close(&bean_shared(a->x)->tubes, s->claims[i].tube);
	s->n = 0;
}

/* On the shard's thread. */
static void
went_back(struct op *op)
{
	apicall_free(op->owner);
}

/* BEAN-3 */
static void
ended(struct exchange *x, bool sent)
{
	struct apicall *const a = x->user;
	struct reserve *const s = a->state;

	count_waiting(a, false);
	close_tubes(a);
	if (!s->won || (sent && s->given)) {
		apicall_end(a);
		return;
	}
	s->won->op->done = went_back;
	if (broker_return(a->api->broker, s->won->op, 0))
		apicall_free(a); /* stopped: the lease ends by itself */
}

/* ---- RESERVED ---- */

static void
give(struct apicall *a, slu_time ttr)
{
	struct reserve *const s = a->state;
	struct bean_conn *const bc = bean_conn_of(a->x);
	const struct bean_job job = {
		.id = s->won->row.id,
		.token = s->won->row.token,
		.ttr = ttr,
		.until = time_add(clock_mono(a->api->clock), ttr),
		.tube = s->won->tube,
	};

	if (bc && bean_job_add(bc, &job)) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	s->given = bc != NULL;
	if (bc)
		bc->ttr = ttr;
	bean_answer_job(a, "RESERVED", job.id, s->find.reading.record.payload);
}

static void
extended(struct apicall *a)
{
	struct reserve *const s = a->state;
	const slu_time left = s->to.until - clock_wall(a->api->clock);

	if (apicall_failed(a))
		return;
	if (s->to.rc)
		apicall_refuse(a, s->to.rc, NULL);
	else
		give(a, s->find.reading.record.ttr ? s->find.reading.record.ttr : left > SLU_SEC ? left
												 : SLU_SEC);
}

/* The ttr is known when the record is read: until then the lease is that of the claim. */
static void
have_record(struct apicall *a)
{
	struct reserve *const s = a->state;
	const struct bean_record *const record = &s->find.reading.record;

	if (record->rc) {
		apicall_refuse(a, record->rc, NULL);
		return;
	}
	if (record->ttr == s->lease) {
		give(a, record->ttr);
		return;
	}
	a->ops = &a->op;
	a->n_ops = 1;
	apicall_op(a, &a->op, OP_EXTEND, bean_space(a->x), bean_queue(s->won->tube));
	s->to = (struct op_item){ .id = s->won->row.id, .token = s->won->row.token, .time = record->ttr };
	a->op.items = &s->to;
	a->op.n_items = 1;
	apicall_run(a, extended);
}

/* ---- The claims ---- */

static void claim(struct apicall *a, slu_time wait);

/* Of several granted jobs the best by (priority, due, number). */
static bool
is_better(const struct op_row *a, const struct op_row *b)
{
	if (a->prio != b->prio)
		return a->prio < b->prio;
	if (a->due != b->due)
		return a->due < b->due;
	return a->number < b->number;
}

static void
all_back(struct apicall *a)
{
	struct reserve *const s = a->state;

	bean_read(a, s->won->op, &s->won->row, have_record);
}

static void
one_back(struct loop_work *w)
{
	struct apicall *const a = CONTAINER(w, struct one, work)->apicall;
	struct reserve *const s = a->state;

	if (--s->returns == 0)
		all_back(a);
}

/* On the shard's thread: what follows is on the loop. */
static void
post_one(struct op *op, void (*run)(struct loop_work *w))
{
	const struct apicall *const a = op->owner;
	const struct reserve *const s = a->state;
	struct one *const one = &s->claims[op - s->ops];

	one->work.run = run;
	loop_post(exchange_loop(a->x), &one->work);
}

static void
returned(struct op *op)
{
	post_one(op, one_back);
}

/* All but the best go back; the answer waits for that, because the memory is that of the call. */
static void
return_others(struct apicall *a)
{
	struct reserve *const s = a->state;

	s->returns = 1;
	for (unsigned i = 0; i < s->n; i++) {
		struct one *const one = &s->claims[i];

		if (one == s->won || one->op->rc || one->op->n_rows == 0)
			continue;
		one->op->done = returned;
		if (broker_return(a->api->broker, one->op, 0) == 0)
			s->returns++;
		else
			op_unpin(one->op);
	}
	if (--s->returns == 0)
		all_back(a);
}

static void
nothing(struct apicall *a)
{
	struct reserve *const s = a->state;

	if (s->wait > 0 && !a->gone) {
		const slu_time wait = s->wait;

		s->wait = 0;
		count_waiting(a, true);
		claim(a, wait);
		return;
	}
	bean_answer(a->x, s->soon ? "DEADLINE_SOON\r\n" : "TIMED_OUT\r\n");
}

static void
claimed(struct apicall *a)
{
	struct reserve *const s = a->state;
	const struct op *failed = NULL;

	for (unsigned i = 0; i < s->n; i++) {
		struct one *const one = &s->claims[i];

		if (one->op->rc && one->op->rc != SLU_ECANCELED)
			failed = one->op;
		if (one->op->rc || one->op->n_rows == 0)
			continue;
		if (!s->won || is_better(&one->row, &s->won->row))
			s->won = one;
	}
	if (s->won)
		return_others(a);
	else if (failed)
		apicall_refuse_op(a, failed);
	else
		nothing(a);
}

/* On the loop: the first grant ends the waits of the others. */
static void
one_claimed(struct loop_work *w)
{
	struct one *const one = CONTAINER(w, struct one, work);
	struct apicall *const a = one->apicall;
	struct reserve *const s = a->state;

	if (!s->canceled && (one->op->n_rows || one->op->rc)) {
		s->canceled = true;
		for (unsigned i = 0; i < s->n; i++)
			if (&s->claims[i] != one)
				broker_cancel(a->api->broker, s->claims[i].op);
	}
	one->done(one->op);
}

static void
claim_done(struct op *op)
{
	post_one(op, one_claimed);
}

static void
claim(struct apicall *a, slu_time wait)
{
	struct reserve *const s = a->state;

	s->canceled = false;
	for (unsigned i = 0; i < s->n; i++) {
		struct op *const op = s->claims[i].op;

		apicall_op(a, op, OP_CLAIM, bean_space(a->x), bean_queue(s->claims[i].tube));
		op->rows = &s->claims[i].row;
		op->max_rows = 1;
		op->wait = wait;
		op->claim.id = s->find.id;
		op->claim.lease = s->lease;
		op->claim.holder = holder_of(a, (struct slice){ 0 });
		if (s->n > 1 && wait > 0) {
			s->claims[i].done = op->done;
			op->done = claim_done;
		}
	}
	apicall_run(a, claimed);
}

/* ---- The commands ---- */

/* Room for n claims. Returns false if the call was refused. */
static bool
make_room(struct apicall *a, unsigned n)
{
	struct reserve *const s = a->state;

	s->ops = arena_array(&a->memory, n, sizeof *s->ops);
	s->claims = s->ops ? arena_array(&a->memory, n, sizeof *s->claims) : NULL;
	if (!s->claims) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return false;
	}
	memset(s->claims, 0, n * sizeof *s->claims);
	for (unsigned i = 0; i < n; i++) {
		s->claims[i].op = &s->ops[i];
		s->claims[i].apicall = a;
	}
	a->ops = s->ops;
	a->n_ops = n;
	a->x->ended = ended;
	return true;
}

static void
begin(struct apicall *a, const struct bean_conn *bc)
{
	struct reserve *const s = a->state;
	const slu_time now = clock_mono(a->api->clock), end = bean_job_next_end(bc, now);
	const slu_time margin = end == SLU_NEVER ? SLU_NEVER : end - BEAN_MARGIN - now;

	s->lease = bc->ttr;
	if (margin < s->wait) {
		s->soon = true;
		s->wait = margin > 0 ? margin : 0;
	}
}

static void
start(struct apicall *a)
{
	struct reserve *const s = a->state;
	const slu_time wait = s->wait;

	if (s->n > 1 || wait == 0) {
		claim(a, 0);
		return;
	}
	s->wait = 0;
	count_waiting(a, true);
	claim(a, wait);
}

void
bean_reserve(struct apicall *a)
{
	const struct bean_line *const line = &bean_call(a->x)->line;
	struct bean_conn *const bc = bean_conn_of(a->x);
	struct tubes *const tubes = &bean_shared(a->x)->tubes;
	struct reserve *const s = apicall_state(a, sizeof *s);

	if (!s || !make_room(a, bc->n_watched))
		return;
	if (bc->n_watched > 1)
		exchange_hold(a->x); /* BEAN-2 */
	s->wait = line->command == BEAN_RESERVE ? SLU_NEVER : (slu_time)line->numbers[0] * SLU_SEC;
	begin(a, bc);
	if (s->wait > 0)
		a->x->gone = apicall_gone;
	for (; s->n < bc->n_watched; s->n++)
		s->claims[s->n].tube = tubes_keep(tubes, bc->watched[s->n]);
	start(a);
}

static void
found_job(struct apicall *a)
{
	struct reserve *const s = a->state;
	int rc;

	if (!make_room(a, 1))
		return;
	s->claims[0].tube = tubes_open(&bean_shared(a->x)->tubes, s->find.reading.record.m.queue, &rc);
	if (!s->claims[0].tube) {
		apicall_refuse(a, rc, NULL);
		return;
	}
	s->n = 1;
	claim(a, 0);
}

void
bean_reserve_job(struct apicall *a)
{
	const struct bean_conn *const bc = bean_conn_of(a->x);
	struct reserve *const s = apicall_state(a, sizeof *s);

	if (!s)
		return;
	s->lease = bc->ttr;
	bean_find(a, bean_call(a->x)->line.numbers[0], found_job);
}
