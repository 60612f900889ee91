/* A disk that is full, and clients that go on: WAL-4. */
#include "logkit.h"

enum {
	SEGMENT = 64 << 10,
	SEGMENTS = 8,
	ROWS = 64
};

static const struct slice space = { "ns", 2 }, queue = { "q", 1 };

static struct logkit *
full_kit(void)
{
	struct logkit *k = logkit_new(SEGMENT, 1, false);

	k->disk->capacity = SEGMENTS * SEGMENT + 4096;
	CHECK_EQ(0, logkit_open(k));
	return k;
}

/* Whatever an op is answered, the shard lives. */
static int
run(struct logkit *k, struct op *op)
{
	if (logkit_run(k, op))
		test_fail(__FILE__, __LINE__, "the shard has failed: %s", k->err.text);
	return op ? op->rc : 0;
}

static int
put(struct logkit *k, uint64_t id)
{
	static const char payload[300];
	struct op_put p = { .m = { .id = id, .payload = { payload, sizeof payload } } };
	struct op op;

	logkit_enqueue(&op, space, queue, &p, 1);
	return run(k, &op);
}

static uint64_t
fill(struct logkit *k)
{
	uint64_t id = 1;

	while (put(k, id) == 0)
		id++;
	return id - 1;
}

/* Returns how many it got, or none. */
static uint32_t
claim(struct logkit *k, struct op_row rows[ROWS], slu_time lease)
{
	struct op op;
	int rc;

	op_init(&op, OP_CLAIM, space, queue, NULL, NULL);
	op.rows = rows;
	op.max_rows = ROWS;
	op.claim.lease = lease;
	rc = run(k, &op);
	CHECK(rc == 0 || rc == SLU_EFULL);
	op_unpin(&op);
	return rc ? 0 : op.n_rows;
}

static uint32_t
ack(struct logkit *k, const struct op_row *rows, uint32_t n)
{
	struct op_item items[ROWS];
	uint32_t done = 0;
	struct op op;

	op_init(&op, OP_ACK, space, queue, NULL, NULL);
	op.items = items;
	op.n_items = n;
	for (uint32_t i = 0; i < n; i++)
		items[i] = (struct op_item){ .id = rows[i].id, .token = rows[i].token };
	(void)run(k, &op); /* each says for itself */
	for (uint32_t i = 0; i < n; i++)
		done += items[i].rc == 0;
	return done;
}

static void
set_policy(struct logkit *k)
{
	struct op op;

	op_init(&op, OP_POLICY_SET, space, queue, NULL, NULL);
	op.policy = policy_default;
	op.policy.max_attempts = UINT16_MAX;
	op.policy.retry.kind = SLU_BACKOFF_NONE;
	CHECK_EQ(0, run(k, &op));
}

static void
pass(struct logkit *k, slu_time by)
{
	k->now += by;
	fakeclock_advance(&k->clock, by);
}

/* Each delivery is written down, and so is each lease that runs out. */
static void
claim_in_vain(struct logkit *k)
{
	struct op_row rows[ROWS];

	for (int i = 0; i < 1000; i++) {
		(void)claim(k, rows, SLU_SEC);
		pass(k, 2 * SLU_SEC);
	}
	CHECK_EQ(0, claim(k, rows, SLU_SEC)); /* 503, and no more */
}

static uint64_t
finish_all(struct logkit *k)
{
	struct op_row rows[ROWS];
	uint64_t done = 0;

	for (int i = 0; i < 3000; i++) {
		done += ack(k, rows, claim(k, rows, 10 * SLU_HOUR));
		pass(k, SLU_SEC);
	}
	return done;
}

/* WAL-4: no more is handed out, but what is held can be ended, and when there is room again
 * all goes on by itself. */
TEST_LIMIT(a_full_disk_and_leases_that_run_out_are_no_failure, 120)
{
	struct logkit *k = full_kit();
	struct op_row held[ROWS];
	uint64_t all;
	uint32_t n;

	set_policy(k);
	all = fill(k);
	n = claim(k, held, 10 * SLU_HOUR);
	CHECK_EQ(ROWS, n);
	claim_in_vain(k);
	CHECK_EQ(n, ack(k, held, n));
	k->disk->capacity = 0;
	pass(k, SLU_SEC);
	CHECK_EQ(all - n, finish_all(k));
	CHECK_EQ(0, put(k, all + 1));
	logkit_free(k);
}

/* CLEAN-7: the oldest segment is dead, and what lives is far more than half of all. */
TEST_LIMIT(acks_of_the_oldest_make_room_on_a_full_disk, 120)
{
	struct op_row held[3][ROWS], more[ROWS];
	struct logkit *k = full_kit();

	set_policy(k);
	(void)fill(k);
	EACH(i, held)
		CHECK_EQ(ROWS, claim(k, held[i], 10 * SLU_HOUR));
	claim_in_vain(k);
	EACH(i, held)
		CHECK_EQ(ROWS, ack(k, held[i], ROWS));
	for (int i = 0; i < 10; i++) {
		pass(k, SLU_SEC);
		CHECK_EQ(0, run(k, NULL));
	}
	CHECK_EQ(ROWS, claim(k, more, 10 * SLU_HOUR));
	logkit_free(k);
}

static void
reopen(struct logkit *k)
{
	const struct engine_conf conf = {
		.folder = k->folder, .disk = &k->disk->disk, .log = k->log, .wall = k->now
	};

	logkit_kill(k);
	if (logengine_open(&k->e, &conf, &k->more, &k->found, &k->err))
		test_fail(__FILE__, __LINE__, "it does not open: %s", k->err.text);
	k->now = k->found.now;
}

/* It opens again, and what fell due meanwhile is no failure. */
TEST_LIMIT(a_disk_that_is_full_to_the_last_opens_and_can_be_purged, 120)
{
	struct logkit *k = full_kit();
	struct op purge;
	uint64_t all;

	set_policy(k);
	all = fill(k);
	claim_in_vain(k);
	for (int i = 0; i < 5; i++) {
		reopen(k);
		pass(k, SLU_MIN);
		CHECK_EQ(0, run(k, NULL));
	}
	op_init(&purge, OP_PURGE, space, queue, NULL, NULL);
	CHECK_EQ(0, run(k, &purge));
	for (int i = 0; i < 100; i++) {
		pass(k, SLU_SEC);
		CHECK_EQ(0, run(k, NULL));
	}
	CHECK_EQ(0, put(k, all + 1));
	logkit_free(k);
}
