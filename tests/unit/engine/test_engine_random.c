/*
 * Random work on an engine, checked against what its answers promised. The invariants
 * are those of the checker in the list of faults: I1, I3 to I9.
 */
#include "engine_rig.h"

enum {
	STEPS = 20000,
	KEYS = 8,
	QUEUES = 3,
	RECENT = 32
};

/* What is known about a message from the answers alone. */
struct known {
	uint64_t id;
	uint64_t token; /* of the last lease */
	slu_time due, until;
	uint32_t queue, key; /* key 0: none */
	bool gone, dead, delivered;
};

struct history {
	struct rig *r;
	uint64_t random;
	struct known *list;          /* by id - 1 */
	uint64_t last_token[QUEUES]; /* where queues are apart; else one for all */
	uint64_t pushed, gone;
	uint64_t recent[RECENT]; /* the last that were handed out */
	uint32_t next_recent;
	uint64_t last_first[QUEUES][KEYS + 1]; /* id of the last first delivery */
};

static const char *const queues[QUEUES] = { "a", "b", "c" };
static const char *const keys[KEYS + 1] = { NULL, "1", "2", "3", "4", "5", "6", "7", "8" };

static uint32_t
roll(struct history *h, uint32_t n)
{
	return (uint32_t)(test_random(&h->random) % n);
}

/* A message that was handed out a short or a long time ago, or never; or NULL. */
static struct known *
any_known(struct history *h)
{
	const uint64_t id = h->recent[roll(h, RECENT)];

	if (id && roll(h, 4))
		return &h->list[id - 1];
	return h->pushed ? &h->list[roll(h, (uint32_t)h->pushed)] : NULL;
}

static void
push(struct history *h)
{
	struct known k = { .queue = roll(h, QUEUES), .key = roll(h, KEYS + 1) };
	const slu_time delay = roll(h, 3) ? 0 : 1 + roll(h, 2000) * SLU_MS;
	const struct rig_msg msg = {
		.key = keys[k.key],
		.prio = (int32_t)roll(h, 5),
		.delay = delay,
		.payload = "work",
	};

	k.id = rig_put(h->r, queues[k.queue], &msg);
	CHECK_EQ(h->pushed + 1, k.id);
	k.due = h->r->now + delay;
	h->list[h->pushed++] = k;
}

/* I6: of a key, first deliveries go by (due, acceptance). */
static void
check_first(struct history *h, const struct known *k)
{
	uint64_t *last = &h->last_first[k->queue][k->key];
	const struct known *before = *last ? &h->list[*last - 1] : NULL;

	if (k->key == 0)
		return;
	if (before)
		CHECK(before->due < k->due || (before->due == k->due && before->id < k->id));
	*last = k->id;
}

/* Is another message of the key leased? */
static bool
key_is_busy(const struct history *h, const struct known *k)
{
	for (uint64_t i = 0; k->key && i < h->pushed; i++) {
		const struct known *o = &h->list[i];

		if (o != k && o->queue == k->queue && o->key == k->key && !o->gone &&
		    !o->dead && o->token && o->until > h->r->now)
			return true;
	}
	return false;
}

static void
check_delivery(struct history *h, const struct op_row *row)
{
	struct known *k = &h->list[row->id - 1];
	uint64_t *last = &h->last_token[h->r->one_queue ? k->queue : 0];

	CHECK(row->id >= 1 && row->id <= h->pushed);
	CHECK(!k->gone && !k->dead);  /* I3, I8 */
	CHECK(k->until <= h->r->now); /* I4: leases do not overlap */
	CHECK(row->token > *last);    /* I4: tokens rise */
	CHECK(k->due <= h->r->now);   /* I7 */
	CHECK(!key_is_busy(h, k));
	if (!k->delivered)
		check_first(h, k);
	*last = row->token;
	k->token = row->token;
	k->until = row->until;
	k->delivered = true;
	h->recent[h->next_recent++ % RECENT] = k->id;
}

static void
claim(struct history *h)
{
	struct rig *r = h->r;

	rig_unpin(r);
	rig_op(&r->op, OP_CLAIM, RIG_SPACE, queues[roll(h, QUEUES)]);
	r->op.claim.lease = (1 + roll(h, 300)) * SLU_MS;
	r->op.rows = r->rows;
	r->op.max_rows = 1 + roll(h, 4);
	CHECK_EQ(0, rig_do(r, &r->op));
	r->n = r->op.n_rows;
	for (uint32_t i = 0; i < r->n; i++)
		check_delivery(h, &r->rows[i]);
	if (r->n && roll(h, 10) == 0) {
		rig_return(r);
		for (uint32_t i = 0; i < r->n; i++)
			h->list[r->rows[i].id - 1].until = 0;
	}
}

/* What must the answer be? I4, I5. */
static int
want_rc(const struct history *h, const struct known *k, uint64_t token)
{
	if (k->gone)
		return SLU_ENOTFOUND;
	return !k->dead && k->until > h->r->now && token == k->token ? 0 : SLU_ELEASE;
}

static void
settle(struct history *h)
{
	static const enum op_verb verbs[] = { OP_ACK, OP_ACK, OP_NACK, OP_EXTEND };
	const enum op_verb verb = verbs[roll(h, COUNT(verbs))];
	struct known *k = any_known(h);
	struct op_item item = { .time = (slu_time)roll(h, 200) * SLU_MS };
	int rc;

	if (!k || !k->token)
		return;
	item.id = k->id;
	item.token = k->token - roll(h, 8) / 7;
	if (verb == OP_EXTEND)
		item.time++;
	rc = rig_item(h->r, verb, &item);
	CHECK_EQ(want_rc(h, k, item.token), rc);
	if (rc)
		return;
	k->until = verb == OP_EXTEND ? item.until : 0;
	k->gone = verb == OP_ACK;
	h->gone += verb == OP_ACK;
	k->dead = item.died;
}

/* Leases that run out also count, so the engine decides which message is dead. */
static void
pass(struct history *h)
{
	struct rig *r = h->r;

	rig_pass(r, (slu_time)roll(h, 200) * SLU_MS);
	for (int q = 0; q < QUEUES; q++) {
		r->cursor = 0;
		do {
			rig_list(r, queues[q], MSG_DEAD, 100);
			for (uint32_t i = 0; i < r->n; i++)
				h->list[r->rows[i].id - 1].dead = true;
		} while (r->cursor);
	}
}

/* I1, I8: every push is gone by an ack, or there exactly once. */
static void
check_all_there(struct history *h)
{
	struct rig *r = h->r;
	uint64_t n = 0;

	r->cursor = 0;
	do {
		rig_list(r, "", MSG_NONE, RIG_ROWS);
		for (uint32_t i = 0; i < r->n; i++, n++) {
			const struct known *k = &h->list[r->rows[i].id - 1];

			CHECK(!k->gone);
			CHECK_EQ(k->dead, r->rows[i].state == MSG_DEAD);
		}
	} while (r->cursor);
	CHECK_EQ(h->pushed, n + h->gone);
}

CASE(random_work_keeps_every_promise)
{
	static struct known list[STEPS];
	struct history h = { .r = r, .random = test_seed(), .list = list };
	const int steps = r->row->engine->shared ? STEPS / 10 : STEPS; /* each is a round trip */

	for (int i = 0; i < steps; i++) {
		const uint32_t what = roll(&h, 100);

		if (what < 30 && h.pushed < STEPS / 4)
			push(&h);
		else if (what < 60)
			claim(&h);
		else if (what < 95)
			settle(&h);
		else
			pass(&h);
		if (i % 2000 == 1999) {
			pass(&h);
			check_all_there(&h);
			rig_check(r);
			/* A lease that is found at open lasts a little longer. */
			if (r->e->ops->durable)
				rig_pass(r, SLU_SEC);
			rig_reopen(r);
		}
	}
	CHECK(h.gone > 100);
}

/* ---- Memory runs out ---- */

/* Every answer is SLU_ENOMEM or right; what was refused has not happened. */
static void
torture(enum rig_engine row)
{
	static struct rig r;
	struct op_put puts[3] = {
		{ .m = { .id = 1, .key = SLICE("k"), .idem = SLICE("i") } },
		{ .m = { .id = 2, .payload = SLICE("p"), .keep = SLU_MIN } },
		{ .m = { .id = 3, .key = SLICE("k"), .queue = SLICE("other") } },
	};
	struct op_item item = { .text = SLICE("because") };
	int rc;

	r = (struct rig){ .row = &rig_rows[row], .now = RIG_START, .may_fail = true };
	rig_open(&r);
	if (!r.e)
		return;
	rig_op_puts(&r.op, "q", puts, 3);
	rc = rig_do(&r, &r.op);
	CHECK(rc == 0 || rc == SLU_ENOMEM);
	CHECK_EQ(rc ? 0 : 2, rig_count(&r, "q", MSG_READY));
	CHECK_EQ(rc ? 0 : 1, rig_count(&r, "other", MSG_READY));
	if (rig_claim(&r, "q", 1)) {
		item.id = r.rows[0].id;
		rc = rig_item(&r, OP_NACK, &item);
		CHECK(rc == 0 || rc == SLU_ENOMEM);
		CHECK_EQ(rc ? 1 : 0, rig_count(&r, "q", MSG_LEASED));
	}
	if (rig_claim(&r, "q", 2)) {
		item.id = r.rows[r.n - 1].id;
		rc = rig_item(&r, OP_ACK, &item);
		CHECK(rc == 0 || rc == SLU_ENOMEM);
	}
	rig_pass(&r, SLU_HOUR);
	rig_check(&r);
	rig_close(&r);
}

TORTURE(memory_survives_every_failed_allocation)
{
	torture(RIG_MEMORY);
}
