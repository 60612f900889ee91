/*
 * lane_commit.c - the open batch: committed by the engine, or answered before it is (LANE-12 to LANE-15).
 */
#include "broker/lane_private.h"

#include "base/mem.h"
#include "broker/standin.h"

#include <inttypes.h>

enum {
	GATHER = 2, /* LANE-15: this part of the last batch's time */
	PAUSE = 10, /* LANE-15: this part of it without an op ends it */
	DEBT_BYTES = 256,
	REST_OPS = 256 /* ops that wake a lane that waits for the budget */
};

#define GATHER_MIN (500 * SLU_US)
#define GATHER_MAX (20 * SLU_MS)
#define PAUSE_MIN  SLU_MS
#define REST_MAX   SLU_SEC

/* ---- Grants that go back ---- */

/* A return of messages, or the release of a key. The names are copies. */
struct lane_debt {
	struct lane_debt *next;
	struct op op;
	char space[MESSAGE_NAME_MAX];
	char queue[MESSAGE_NAME_MAX];
	char key[LOCK_KEY_MAX];
	struct op_row rows[];
};

static struct slice
copy(char *out, struct slice text)
{
	if (text.n)
		memcpy(out, text.p, text.n);
	return (struct slice){ out, text.n };
}

static void
paid(struct op *op)
{
	mem_free(op->owner);
}

static bool
was_granted(const struct op *op)
{
	return op->rc == 0 && (op->verb == OP_ACQUIRE || (op->verb == OP_CLAIM && op->n_rows > 0));
}

/* Remembers what the op was granted. SLU_ENOMEM. */
static int
owe(struct lane *s, const struct op *op)
{
	const bool key = op->verb == OP_ACQUIRE;
	const uint32_t n = key ? 0 : op->n_rows;
	struct lane_debt *const d = mem_zalloc(sizeof *d + n * sizeof d->rows[0]);

	if (!d)
		return SLU_ENOMEM;
	op_init(&d->op, key ? OP_RELEASE : OP_RETURN, copy(d->space, op->space), copy(d->queue, op->queue), paid, d);
	d->op.route.cost = 1;
	d->op.route.bytes = DEBT_BYTES;
	if (key) {
		d->op.lock.key = copy(d->key, op->lock.key);
		d->op.lock.token = op->lock.token;
		memcpy(d->op.lock.txn, op->lock.txn, sizeof op->lock.txn);
		d->op.lock.rollback = d->op.lock.undo = true;
	}
	for (uint32_t i = 0; i < n; i++)
		d->rows[i] = (struct op_row){ .id = op->rows[i].id, .token = op->rows[i].token };
	d->op.rows = d->rows;
	d->op.n_rows = d->op.max_rows = n;
	d->next = s->debts;
	s->debts = d;
	return 0;
}

static struct lane_debt *
take_debt(struct lane *s)
{
	struct lane_debt *const d = s->debts;

	if (d)
		s->debts = d->next;
	return d;
}

/* Without memory the leases run out by themselves. */
static void
pay_debts(struct lane *s)
{
	struct lane_debt *d;

	while ((d = take_debt(s)) != NULL)
		if (lane_adopt(s, &d->op))
			mem_free(d);
}

void
lane_forget_debts(struct lane *s)
{
	struct lane_debt *d;

	while ((d = take_debt(s)) != NULL)
		mem_free(d);
}

/* ---- An engine that does not answer (LANE-14) ---- */

/* When the open batch hangs, in shard time. */
static slu_time
hangs_from(const struct lane *s)
{
	const slu_time patience = s->conf.patience;

	return s->ran + (patience && patience < LANE_HUNG ? patience : LANE_HUNG);
}

static bool
is_patience_over(const struct lane *s)
{
	return s->conf.patience && s->now - s->ran >= s->conf.patience;
}

/* Sets err to the reason why ops fail now. */
static void
explain(const struct lane *s, enum slu_code code, struct slu_err *err)
{
	const char *const folder = s->conf.folder ? s->conf.folder : s->engine->ops->name;
	const char *const what = s->waits_for.text[0] ? s->waits_for.text : folder;

	(void)slu_fail(err, code, "no answer from %.200s for %" PRId64 " ms", what, (s->now - s->ran) / SLU_MS);
}

/* An op that was granted something, but has no memory for a return, stays in the batch. */
static void
answer_unknown(struct lane *s)
{
	struct op *next, *kept = NULL;
	struct slu_err err;

	explain(s, SLU_EUNKNOWN, &err);
	for (struct op *op = s->batch; op; op = next) {
		next = op->route.next;
		if (was_granted(op) && owe(s, op)) {
			op->route.next = kept;
			kept = op;
		} else {
			lane_fail_op(s, op, SLU_EUNKNOWN, &err);
		}
	}
	s->batch = kept;
}

static void
doubt(struct lane *s)
{
	if (!s->doubted)
		lane_note_doubt(s, &s->down);
	answer_unknown(s);
}

/* The batch has ended. Ops that wait look again: an answer that was SLU_EUNKNOWN has woken nothing. */
static void
end_doubt(struct lane *s)
{
	lane_note_doubt(s, NULL);
	if (s->failed) {
		lane_forget_debts(s);
		return;
	}
	pay_debts(s);
	dispatch_ready(&s->dispatch, (struct slice){ 0 }, (struct slice){ 0 }, UINT32_MAX);
}

/* Returns true if the op, which has not run, fails now. */
static bool
is_held_too_long(const struct lane *s, const struct op *op)
{
	if (op->wait == 0)
		return s->doubted;
	return op->route.waited || time_add(op->route.arrived, op->wait) <= s->now;
}

void
lane_end_held(struct lane *s)
{
	struct op *op;

	if (!s->open || s->now < hangs_from(s))
		return;
	explain(s, SLU_EDOWN, &s->down);
	if (is_patience_over(s))
		doubt(s);
	while ((op = dispatch_overdue(&s->dispatch, s->now)) != NULL)
		lane_end_wait(s, op, SLU_EDOWN);
	LIST_EACH_SAFE(n, &s->fairqueue.ages) {
		op = CONTAINER(n, struct op, route.age);
		if (!is_held_too_long(s, op))
			continue;
		fairqueue_remove(&s->fairqueue, op);
		lane_end_wait(s, op, SLU_EDOWN);
	}
}

/* An end that has passed belongs to a waitlist that is marked, or to an op of the fair queue. */
slu_time
lane_held_until(const struct lane *s)
{
	const slu_time hangs = hangs_from(s), look = s->now + LANE_SLOW;
	const slu_time end = dispatch_first_end(&s->dispatch);
	const slu_time patience = time_add(s->ran, s->conf.patience);
	slu_time until = s->now < hangs ? hangs : look;

	if (end > s->now && end < until)
		until = end;
	if (s->conf.patience && s->now < patience && patience < until)
		until = patience;
	return until;
}

/* ---- Settling ---- */

/* LANE-15 */
static slu_time
gather_time(const struct lane *s)
{
	const slu_time part = s->took / GATHER;

	if (s->took > 0 && part < GATHER_MIN) /* a simulated clock may stand still */
		return GATHER_MIN;
	return part < GATHER_MAX ? part : GATHER_MAX;
}

static slu_time
pause_time(const struct lane *s)
{
	const slu_time part = s->took / PAUSE;

	return part > PAUSE_MIN ? part : PAUSE_MIN;
}

void
lane_gather_on(struct lane *s)
{
	slu_time until;

	if (!s->gather_end)
		return;
	until = s->now + pause_time(s);
	s->gather_until = until < s->gather_end ? until : s->gather_end;
}

static slu_time
rest_time(const struct lane *s)
{
	const slu_time rest = s->engine->ops->rest ? s->engine->ops->rest(s->engine) : 0;

	return rest < REST_MAX ? rest : REST_MAX;
}

static void
begin_gathering(struct lane *s)
{
	s->came = 0;
	s->gather_until = 0;
	s->gather_end = s->late && !s->failed ? s->now + gather_time(s) : 0;
	s->rest_until = s->failed ? 0 : s->now + rest_time(s);
	lane_gather_on(s);
}

/* LANE-13. The stand-in reads `committing` after it has announced that it sleeps, and the lane reads
 * that announcement after it has set `committing`: so no commit goes unnoticed. */
static int
commit(struct lane *s, struct slu_err *err)
{
	int rc;

	atomic_store(&s->committing, s->began);
	standin_wake(s->standin);
	rc = s->engine->ops->commit(s->engine, err);
	pthread_mutex_lock(&s->turn);
	atomic_store(&s->committing, 0);
	pthread_mutex_unlock(&s->turn);
	return rc;
}

void
lane_commit(struct lane *s)
{
	struct slu_err err; /* zeroed, it would cost more than the rest of this function */
	int rc;

	err.code = 0;
	err.text[0] = '\0';
	rc = commit(s, &err);
	if (rc == ENGINE_LATER) {
		s->late = true;
		s->waits_for = err;
		return;
	}
	lane_end_batch(s, rc, &err);
	if (s->doubted)
		end_doubt(s);
	s->waits_for.text[0] = '\0';
	begin_gathering(s);
}

bool
lane_gathers(const struct lane *s)
{
	return !s->closed && s->now < lane_gathers_until(s);
}

slu_time
lane_gathers_until(const struct lane *s)
{
	const slu_time until = s->came < s->answered ? s->gather_until : 0;

	return until > s->rest_until ? until : s->rest_until;
}

uint32_t
lane_enough(const struct lane *s)
{
	if (s->open || !lane_gathers(s))
		return 1;
	return s->now < s->rest_until ? REST_OPS : s->answered - s->came;
}
