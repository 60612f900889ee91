/*
 * reserve.c - reserve, reserve-with-timeout, reserve-job.
 *
 *      claim any of the watched tubes (api/anyclaim.h); of several granted jobs the best by (priority, due, number) stays
 *          │ one
 *      read the record ── the claim has another lease than its ttr: extend ── RESERVED
 */
#include "beanstalk/beanstalk_private.h"

#include "api/anyclaim.h"
#include "api/holder.h"
#include "base/time.h"
#include "core/queue/policy.h"

struct reserve {
	struct bean_find find; /* reserve-job; begins with struct bean_reading */
	struct anyclaim any;   /* a claim a tube; tag: the struct tube */
	unsigned n_kept;       /* tubes that are kept */
	slu_time lease;        /* that the claims ask for */
	bool soon;             /* the wait ends at the margin of a reservation */
	bool waits;            /* counted as waiting */
	struct op_item to;     /* of the extend */
	bool given;            /* the connection has the job */
};

static struct tube *
tube_of(const struct reserve *s, unsigned i)
{
	return s->any.claims[i].tag;
}

/* ---- The end of the exchange ---- */

static void
count_waiting(const struct apicall *a, bool waits)
{
	struct bean_shared *const shared = bean_shared(a->x);
	struct reserve *const s = a->state;

	if (waits == s->waits)
		return;
	s->waits = waits;
	for (unsigned i = 0; i < s->n_kept; i++)
		atomic_fetch_add(&tube_of(s, i)->waiting, waits ? 1u : UINT32_MAX);
	atomic_fetch_add(&shared->waiting, waits ? 1u : UINT32_MAX);
}

static void
close_tubes(const struct apicall *a)
{
	struct reserve *const s = a->state;

	for (unsigned i = 0; i < s->n_kept; i++)
		tubes_close(&bean_shared(a->x)->tubes, tube_of(s, i));
	s->n_kept = 0;
}

/* BEAN-3 */
static void
ended(struct exchange *x, bool sent)
{
	struct apicall *const a = x->user;
	struct reserve *const s = a->state;

	count_waiting(a, false);
	close_tubes(a);
	if (!s->any.won || (sent && s->given))
		apicall_end(a);
	else
		anyclaim_return(&s->any, a);
}

/* ---- RESERVED ---- */

static void
give(struct apicall *a, slu_time ttr)
{
	struct reserve *const s = a->state;
	struct bean_conn *const bc = bean_conn_of(a->x);
	const struct bean_job job = {
		.id = s->any.won->row.id,
		.token = s->any.won->row.token,
		.ttr = ttr,
		.until = time_add(clock_mono(a->api->clock), ttr),
		.tube = s->any.won->tag,
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

/* Returns whether the claim has the lease that the ttr asks for. */
static bool
has_lease(const struct reserve *s, slu_time ttr)
{
	const struct op_row *const row = &s->any.won->row;
	const slu_time longest = ttr < POLICY_LEASE_MAX ? ttr : POLICY_LEASE_MAX;

	return s->any.won->op->claim.lease == 0 ? !ttr || row->until - row->claimed == longest : ttr == s->lease;
}

/* The lease is the message's own. If it has none, its ttr is known when the record is read: until then the lease comes from
 * the claim. */
static void
have_record(struct apicall *a)
{
	struct reserve *const s = a->state;
	const struct bean_record *const record = &s->find.reading.record;
	const struct op_row *const row = &s->any.won->row;

	if (record->rc) {
		apicall_refuse(a, record->rc, NULL);
		return;
	}
	if (has_lease(s, record->ttr)) {
		give(a, record->ttr ? record->ttr : row->until - row->claimed);
		return;
	}
	a->ops = &a->op;
	a->n_ops = 1;
	apicall_op(a, &a->op, OP_EXTEND, bean_space(a->x), bean_queue(s->any.won->tag));
	s->to = (struct op_item){ .id = s->any.won->row.id, .token = s->any.won->row.token, .time = record->ttr };
	a->op.items = &s->to;
	a->op.n_items = 1;
	apicall_run(a, extended);
}

/* ---- The claims ---- */

static bool
is_better(const struct anyclaim_one *x, const struct anyclaim_one *y)
{
	const struct op_row *const a = &x->row, *const b = &y->row;

	if (a->prio != b->prio)
		return a->prio < b->prio;
	if (a->due != b->due)
		return a->due < b->due;
	return a->number < b->number;
}

static void
waits(struct apicall *a)
{
	count_waiting(a, true);
}

static void
begin_claim(struct apicall *a, struct anyclaim_one *one)
{
	const struct reserve *const s = a->state;

	apicall_op(a, one->op, OP_CLAIM, bean_space(a->x), bean_queue(one->tag));
	one->op->claim.id = s->find.id;
	one->op->claim.lease = bean_has_leases(a, bean_queue(one->tag)) ? 0 : s->lease;
	one->op->claim.holder = holder_of(a, (struct slice){ 0 });
}

static void
claimed(struct apicall *a)
{
	struct reserve *const s = a->state;

	if (s->any.won)
		bean_read(a, s->any.won->op, &s->any.won->row, have_record);
	else if (s->any.failed)
		apicall_refuse_op(a, s->any.failed);
	else
		bean_answer(a->x, s->soon ? "DEADLINE_SOON\r\n" : "TIMED_OUT\r\n");
}

/* ---- The commands ---- */

/* Room for n claims. Returns false if the call was refused. */
static bool
make_room(struct apicall *a, unsigned n)
{
	struct reserve *const s = a->state;

	if (anyclaim_init(&s->any, a, n)) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return false;
	}
	s->any.begin = begin_claim;
	s->any.is_better = is_better;
	s->any.waits = waits;
	s->any.then = claimed;
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
	if (margin < s->any.wait) {
		s->soon = true;
		s->any.wait = margin > 0 ? margin : 0;
	}
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
	s->any.wait = line->command == BEAN_RESERVE ? SLU_NEVER : (slu_time)line->numbers[0] * SLU_SEC;
	begin(a, bc);
	if (s->any.wait > 0)
		a->x->gone = apicall_gone;
	for (; s->n_kept < bc->n_watched; s->n_kept++)
		s->any.claims[s->n_kept].tag = tubes_keep(tubes, bc->watched[s->n_kept]);
	anyclaim_run(&s->any, a);
}

static void
found_job(struct apicall *a)
{
	struct reserve *const s = a->state;
	int rc;

	if (!make_room(a, 1))
		return;
	s->any.claims[0].tag = tubes_open(&bean_shared(a->x)->tubes, s->find.reading.record.m.queue, &rc);
	if (!s->any.claims[0].tag) {
		apicall_refuse(a, rc, NULL);
		return;
	}
	s->n_kept = 1;
	anyclaim_run(&s->any, a);
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
