/*
 * test_engine_lock_random.c - random work on keys and states of messages, done by two
 * engines at once: both give the same answers.
 */
#include "lock_fixture.h"

#include "base/id.h"

enum {
	STEPS = 3000,
	KEYS = 3,
	HOLDERS = 3,
	MESSAGES = 3,
	NAMES = 3
};

/* An engine, and what its answers gave: tokens and etags are its own. */
struct side {
	struct rig r;
	struct op_lock held[KEYS + MESSAGES][HOLDERS]; /* of messages: one */
	uint64_t etags[KEYS + MESSAGES];
	struct held h;
};

/* What is asked of both. */
struct wish {
	enum op_verb verb;
	uint32_t key, holder, name;
	uint64_t id; /* of a message */
	slu_time time;
	int64_t if_version;
	bool if_etag, if_absent, rollback, all, hidden, wrong_fence, other_txn;
	char text[16];
};

/* What both have to answer. */
struct told {
	int rc;
	enum lock_why why;
	uint64_t version, count;
	slu_time until, updated;
	bool has_etag, has_token, hidden;
	uint32_t n_keys;
	char text[512];
};

static struct side sides[2];
static uint64_t seed;

static uint32_t
roll(uint32_t n)
{
	return (uint32_t)(test_random(&seed) % n);
}

static const char *const names[NAMES] = { "", "one", "two" };

static const char *
key_of(const struct wish *w)
{
	static char key[64];
	char uuid[ID_UUID_TEXT];

	if (w->id)
		snprintf(key, sizeof key, "q/q/state/%s", id_to_uuid(w->id, uuid));
	else
		snprintf(key, sizeof key, "key/%u", w->key);
	return key;
}

static void
fill(struct side *s, const struct wish *w, struct op *op)
{
	const struct op_lock *held = &s->held[w->key][w->holder];
	struct op_lock *q = &op->lock;

	rig_op(op, w->verb, RIG_SPACE, w->id ? "q" : LOCK_QUEUE);
	q->key = slice_of(key_of(w));
	q->name = slice_of(names[w->name]);
	q->token = w->verb == OP_ACQUIRE ? 0 : held->token;
	memcpy(q->txn, held->txn, LOCK_TXN);
	if (w->verb == OP_ACQUIRE)
		memset(q->txn, 0, LOCK_TXN);
	q->txn[0] ^= w->other_txn;
	q->fence = w->wrong_fence ? held->token + 1 : 0;
	q->ttl = w->time;
	q->if_version = w->if_version;
	q->if_etag = w->if_etag ? s->etags[w->key] : 0;
	q->if_absent = w->if_absent;
	q->rollback = w->rollback;
	q->all = w->all;
	q->hidden = w->hidden;
	q->held_by = s->h.holder;
	s->h.put = (struct op_put){ .m.payload = slice_of(w->text), .m.payload_size = strlen(w->text) };
	op->puts = &s->h.put;
	op->n_puts = w->verb == OP_STATE_PUT;
}

/* Whether a list of leased keys has the token of the last lease that one of the holders got. */
static bool
is_token(const struct side *s, const struct op *op, uint64_t token)
{
	bool found = false;

	for (uint32_t i = 0; op->verb == OP_KEYS && op->lock.all && i < KEYS * HOLDERS; i++)
		found |= s->held[i / HOLDERS][i % HOLDERS].token == token;
	return found;
}

/* Names and documents, one after the other; of leased keys, also whether the token is that of a holder. */
static void
tell_keys(struct side *s, const struct op *op, struct told *out)
{
	for (uint32_t i = 0; i < op->n_keys; i++) {
		const size_t n = strlen(out->text);

		read_document(&s->r, &op->keys[i].record, &s->h);
		snprintf(out->text + n, sizeof out->text - n, "%.60s=%.15s v%d%s ", op->keys[i].name,
			 s->h.text, (int)op->keys[i].version, is_token(s, op, op->keys[i].etag) ? " held" : "");
	}
}

static struct told
do_lock(struct side *s, const struct wish *w)
{
	static struct op_key rows[LOCK_DOCS_MAX];
	struct op *op = &s->h.op;
	struct told out = { 0 };

	fill(s, w, op);
	op->keys = rows;
	op->max_keys = w->verb == OP_KEYS ? 2 : LOCK_DOCS_MAX;
	if (w->verb == OP_KEYS)
		op->lock.key = w->key ? slice_of(key_of(w)) : (struct slice){ 0 };
	out.rc = rig_do(&s->r, op);
	out.why = op->lock.why;
	out.version = op->lock.version;
	out.count = op->count;
	out.until = w->verb == OP_STATE_PUT ? 0 : op->lock.until;
	out.updated = op->lock.updated;
	out.has_etag = op->lock.etag != 0;
	out.has_token = w->verb == OP_DESCRIBE && op->lock.token != 0;
	out.hidden = w->verb == OP_DESCRIBE && op->lock.hidden;
	out.n_keys = op->n_keys;
	if (w->verb == OP_STATE_GET && !out.rc) {
		read_document(&s->r, &op->lock.record, &s->h);
		memcpy(out.text, s->h.text, strlen(s->h.text));
	}
	tell_keys(s, op, &out);
	op_unpin(op);
	if (w->verb == OP_ACQUIRE && !out.rc)
		s->held[w->key][w->holder] = op->lock;
	if (op->lock.etag && (w->verb == OP_STATE_PUT || w->verb == OP_STATE_GET))
		s->etags[w->key] = op->lock.etag;
	return out;
}

/* Claims a message, or settles a claimed one. Its token is also the token of its state. */
static struct told
do_message(struct side *s, const struct wish *w)
{
	struct op_lock *held = &s->held[w->key][0];
	struct op_item item = { .id = w->id, .token = held->token, .time = w->time };
	struct told out = { 0 };

	if (w->verb == OP_CLAIM) {
		out.count = rig_claim_for(&s->r, "q", w->time);
		if (!out.count)
			return out;
		held = &s->held[KEYS + (s->r.rows[0].id - 1) % MESSAGES][0];
		held->token = s->r.rows[0].token;
		lock_txn(held->token, held->txn);
		out.version = s->r.rows[0].id;
	} else {
		out.rc = rig_item(&s->r, w->verb, &item);
	}
	return out;
}

static const enum op_verb verbs[] = {
	OP_ACQUIRE,
	OP_ACQUIRE,
	OP_KEEPALIVE,
	OP_RELEASE,
	OP_RELEASE,
	OP_STATE_GET,
	OP_STATE_PUT,
	OP_STATE_PUT,
	OP_STATE_REMOVE,
	OP_STATE_META,
	OP_DESCRIBE,
	OP_ATTACHMENTS,
	OP_KEYS,
	OP_CLAIM,
	OP_CLAIM,
	OP_NACK,
	OP_EXTEND,
	OP_ACK,
};

static bool
is_of_queue(enum op_verb verb)
{
	return verb == OP_CLAIM || verb == OP_NACK || verb == OP_EXTEND || verb == OP_ACK;
}

static struct wish
make_wish(uint64_t last_id)
{
	struct wish w = {
		.verb = verbs[roll(COUNT(verbs))],
		.holder = roll(HOLDERS),
		.name = roll(3) ? 0 : roll(NAMES),
		.time = (1 + roll(4000)) * SLU_MS,
		.if_version = roll(6) ? -1 : (int64_t)roll(4),
		.if_etag = roll(6) == 0,
		.if_absent = roll(5) == 0,
		.rollback = roll(3) == 0,
		.all = roll(4) == 0,
		.hidden = roll(4) == 0,
		.wrong_fence = roll(20) == 0,
		.other_txn = roll(20) == 0,
	};

	w.key = roll(KEYS);
	if (is_of_queue(w.verb) || (w.verb != OP_KEYS && roll(2))) {
		w.id = last_id - roll(MESSAGES);
		w.key = KEYS + (uint32_t)((w.id - 1) % MESSAGES);
		w.holder = 0;
	}
	snprintf(w.text, sizeof w.text, "%u", roll(1000));
	return w;
}

static void
check_same(const struct wish *w, const struct told *a, const struct told *b)
{
	const char *what = op_verb_name(w->verb);

	CHECK_EQ(a->rc, b->rc, what);
	CHECK_EQ(a->why, b->why, what);
	if ((w->verb == OP_RELEASE && a->why) || a->why == LOCK_OF_MESSAGE)
		return; /* LOCK-6: its other fields are undefined */
	CHECK_EQ(a->version, b->version, what);
	CHECK_EQ(a->count, b->count, what);
	CHECK_EQ(a->until, b->until, what);
	CHECK_EQ(a->updated, b->updated, what);
	CHECK_EQ(a->has_etag, b->has_etag, what);
	CHECK_EQ(a->has_token, b->has_token, what);
	CHECK_EQ(a->hidden, b->hidden, what);
	CHECK_EQ(a->n_keys, b->n_keys, what);
	CHECK_STR(a->text, b->text);
}

static void
check_sizes(void)
{
	struct op ops[2];

	for (int i = 0; i < 2; i++) {
		rig_op(&ops[i], OP_SHARD, "", "");
		CHECK_EQ(0, rig_do(&sides[i].r, &ops[i]));
	}
	CHECK_EQ(ops[0].on_shard.locks, ops[1].on_shard.locks);
	CHECK_EQ(ops[0].on_shard.leases, ops[1].on_shard.leases);
	CHECK_EQ(ops[0].on_shard.states, ops[1].on_shard.states);
}

TEST(redis_answers_what_memory_does)
{
	static const struct rig_msg patient = { .max_attempts = 1000 };
	struct told told[2];
	uint64_t last_id = 0;

	seed = test_seed();
	for (int i = 0; i < 2; i++) {
		sides[i].r = (struct rig){ .row = &rig_rows[i ? RIG_REDIS : RIG_MEMORY], .now = RIG_START, .next_id = 1 };
		rig_open(&sides[i].r);
	}
	for (int step = 0; step < STEPS; step++) {
		if (last_id < MESSAGES || roll(100) == 0) {
			last_id = rig_put(&sides[0].r, "q", &patient);
			CHECK_EQ(last_id, rig_put(&sides[1].r, "q", &patient));
			continue;
		}
		if (roll(8) == 0) {
			const slu_time by = roll(50) ? roll(1500) * SLU_MS : LOCK_KNOWN;

			rig_pass(&sides[0].r, by);
			rig_pass(&sides[1].r, by);
			check_sizes();
			continue;
		}

		const struct wish w = make_wish(last_id);

		for (int i = 0; i < 2; i++)
			told[i] = is_of_queue(w.verb) ? do_message(&sides[i], &w) : do_lock(&sides[i], &w);
		check_same(&w, &told[0], &told[1]);
	}
	rig_close(&sides[0].r);
	rig_close(&sides[1].r);
}
