/*
 * The checker of `sluice torture` finds what is wrong, and nothing else: for every rule a
 * history that breaks it and no other, and histories that come close and keep them all.
 */
#include "torture/check.h"

#include "test.h"

#include <stddef.h>
#include <stdio.h>

#define MIB (1ull << 20)

/* Messages by name: a and b of one key, c that is retried, d that waits, e that was tried
 * twice under one idempotency key and died, f that was refused. */
enum {
	A = 1,
	B,
	C,
	D,
	E,
	F
};

enum {
	PUSH_A,
	PUSH_B,
	PUSH_C,
	PUSH_D,
	PUSH_E,
	PUSH_E_AGAIN,
	PUSH_F,
	CLAIM_A,
	NACK_A,
	CLAIM_A_AGAIN,
	EXTEND_A,
	ACK_A,
	CLAIM_B,
	ACK_B,
	CLAIM_C,
	CLAIM_C_AGAIN,
	ACK_C,
	ROW_C,
	ROW_D,
	ROW_E,
	DEAD_E,
	ACQUIRE_X, /* one holder of a lock, and the next */
	READ_X,
	UPDATE_X,
	RELEASE_X,
	ACQUIRE_Y,
	READ_Y,
	UPDATE_Y,
	RELEASE_Y
};

/* clang-format off */
static const struct event good[] = {
	[PUSH_A] = { .kind = EVENT_PUSH, .start = 0, .end = 10, .id = 1, .name = A, .key = 1, .call = 1, .index = 0 },
	[PUSH_B] = { .kind = EVENT_PUSH, .start = 0, .end = 10, .id = 2, .name = B, .key = 1, .call = 1, .index = 1 },
	[PUSH_C] = { .kind = EVENT_PUSH, .start = 0, .end = 10, .id = 3, .name = C, .call = 2 },
	[PUSH_D] = { .kind = EVENT_PUSH, .start = 0, .end = 10, .id = 4, .name = D, .call = 3 },
	[PUSH_E] = { .kind = EVENT_PUSH, .start = 20, .end = 30, .name = E, .call = 4, .outcome = OUTCOME_UNKNOWN },
	[PUSH_E_AGAIN] = { .kind = EVENT_PUSH, .start = 40, .end = 50, .id = 5, .name = E, .call = 5 },
	[PUSH_F] = { .kind = EVENT_PUSH, .start = 40, .end = 50, .name = F, .call = 6, .outcome = OUTCOME_FAILED },
	[CLAIM_A] = { .kind = EVENT_CLAIM, .start = 60, .end = 70, .id = 1, .name = A, .key = 1, .token = 10,
		      .granted = 1060, .until = 1360, .due = 1000, .attempts = 1, .max_attempts = 4 },
	[NACK_A] = { .kind = EVENT_NACK, .start = 80, .end = 90, .id = 1, .name = A, .token = 10, .until = 1100 },
	[CLAIM_A_AGAIN] = { .kind = EVENT_CLAIM, .start = 100, .end = 110, .id = 1, .name = A, .key = 1, .token = 11,
			    .granted = 1100, .until = 1400, .due = 1000, .attempts = 2, .failures = 1, .max_attempts = 4 },
	[EXTEND_A] = { .kind = EVENT_EXTEND, .start = 111, .end = 112, .id = 1, .name = A, .token = 11, .until = 2000 },
	[ACK_A] = { .kind = EVENT_ACK, .start = 120, .end = 130, .id = 1, .name = A, .token = 11 },
	[CLAIM_B] = { .kind = EVENT_CLAIM, .start = 140, .end = 150, .id = 2, .name = B, .key = 1, .token = 12,
		      .granted = 1140, .until = 1440, .due = 1000, .attempts = 1, .max_attempts = 4 },
	[ACK_B] = { .kind = EVENT_ACK, .start = 150, .end = 160, .id = 2, .name = B, .token = 12, .outcome = OUTCOME_UNKNOWN },
	[CLAIM_C] = { .kind = EVENT_CLAIM, .start = 170, .end = 180, .id = 3, .name = C, .token = 13,
		      .granted = 1170, .until = 1200, .due = 1000, .attempts = 1, .max_attempts = 4 },
	[CLAIM_C_AGAIN] = { .kind = EVENT_CLAIM, .start = 200, .end = 210, .id = 3, .name = C, .token = 14,
			    .granted = 1210, .until = 1510, .due = 1000, .attempts = 2, .failures = 1, .max_attempts = 4 },
	[ACK_C] = { .kind = EVENT_ACK, .start = 220, .end = 230, .id = 3, .name = C, .token = 13, .outcome = OUTCOME_FAILED },
	[ROW_C] = { .kind = EVENT_ROW, .start = 300, .end = 310, .id = 3, .name = C, .state = STATE_LEASED },
	[ROW_D] = { .kind = EVENT_ROW, .start = 300, .end = 310, .id = 4, .name = D, .state = STATE_READY },
	[ROW_E] = { .kind = EVENT_ROW, .start = 300, .end = 310, .id = 5, .name = E, .state = STATE_DEAD },
	[ACQUIRE_X] = { .kind = EVENT_ACQUIRE, .start = 100, .end = 110, .key = 1, .token = 30, .until = 400 },
	[READ_X] = { .kind = EVENT_READ, .start = 111, .end = 112, .key = 1, .token = 30, .name = 6 },
	[UPDATE_X] = { .kind = EVENT_UPDATE, .start = 113, .end = 114, .key = 1, .token = 30, .name = 7 },
	[RELEASE_X] = { .kind = EVENT_RELEASE, .start = 120, .end = 130, .key = 1, .token = 30, .name = 7, .until = 400 },
	[ACQUIRE_Y] = { .kind = EVENT_ACQUIRE, .start = 140, .end = 150, .key = 1, .token = 31, .until = 440 },
	[READ_Y] = { .kind = EVENT_READ, .start = 151, .end = 152, .key = 1, .token = 31, .name = 7 },
	[UPDATE_Y] = { .kind = EVENT_UPDATE, .start = 153, .end = 154, .key = 1, .token = 31, .name = 8 },
	[RELEASE_Y] = { .kind = EVENT_RELEASE, .start = 160, .end = 170, .key = 1, .token = 31, .name = 8, .until = 440 },
	[DEAD_E] = { .kind = EVENT_DEAD, .start = 310, .end = 320, .id = 5, .name = E, .state = STATE_DEAD },
};
/* clang-format on */

static void
make_good(struct history *h)
{
	const struct look look = {
		.counts = { [STATE_LEASED] = 1, [STATE_READY] = 1, [STATE_DEAD] = 1, [STATE_TOTAL] = 3 },
	};

	CHECK_EQ(0, history_init(h, 100, NULL));
	EACH(i, good)
		history_add(h, &good[i]);
	history_look(h, &look, 300, 320);
}

/* --- changes to it -------------------------------------------------------------------- */

/* One field of an event gets another value. */
struct edit {
	int event;
	size_t offset, size; /* size 0 ends a list */
	uint64_t value;
};

/* clang-format off */
#define SET(which, field, value) \
	{ which, offsetof(struct event, field), sizeof(((struct event *)0)->field), value }
#define OUT(which) SET(which, kind, EVENT_FAULT) /* no rule looks at faults */
/* clang-format on */

struct change {
	const char *rule; /* the rule that it breaks */
	const char *label;
	struct edit edits[6];
	const struct event *copy; /* is added, with copied changed */
	struct edit copied[7];
	struct event add[4]; /* kind 0 ends it */
	struct {
		uint64_t id, name;
		enum event_state state;
	} row; /* of the last look; is counted */

	/* Of the history. */
	struct history_limits limits;
	bool must_be_empty, several;
	uint64_t token_floor, lock_token, lock_value;
	int ready, held, total; /* more in the counters */
};

static void
edit(struct event *events, const struct edit *e)
{
	for (; e->size; e++) /* little endian: the low bytes come first */
		memcpy((char *)&events[e->event] + e->offset, &e->value, e->size);
}

static void
add_row(struct history *h, uint64_t id, uint64_t name, enum event_state state)
{
	const struct event e = { .kind = EVENT_ROW, .start = 300, .end = 310, .id = id, .name = name, .state = (uint8_t)state };

	history_add(h, &e);
	h->looks[0].counts[state]++;
	h->looks[0].counts[STATE_TOTAL]++;
}

static void
apply(struct history *h, const struct change *c)
{
	edit(h->events, c->edits);
	if (c->copy) {
		struct event e = *c->copy;

		edit(&e, c->copied);
		history_add(h, &e);
	}
	for (const struct event *e = c->add; e->kind; e++)
		history_add(h, e);
	if (c->row.id)
		add_row(h, c->row.id, c->row.name, c->row.state);
	h->must_be_empty = c->must_be_empty;
	h->several = c->several;
	h->limits = c->limits;
	h->token_floor = c->token_floor;
	h->lock_tokens[1] = c->lock_token;
	h->lock_values[1] = c->lock_value;
	h->looks[0].counts[STATE_READY] += (uint64_t)(int64_t)c->ready;
	h->looks[0].counts[STATE_HELD] += (uint64_t)(int64_t)c->held;
	h->looks[0].counts[STATE_TOTAL] += (uint64_t)(int64_t)c->total;
}

/* clang-format off */
#define LOSE    "kept", "a message is gone that nobody acked", .edits = { OUT(ROW_D) }, .ready = -1, .total = -1
#define OVERLAP "lease", "two leases of a message", .edits = { SET(CLAIM_C_AGAIN, granted, 1199) }
/* Another lease, of message D. */
#define CLAIM_D .copy = &good[CLAIM_C], .copied = { SET(0, id, 4), SET(0, name, D), SET(0, token, 20) }
#define CLAIM_D_LAST .copy = &good[CLAIM_C], .copied = { SET(0, id, 4), SET(0, name, D), SET(0, token, 20), SET(0, start, 230), \
	SET(0, end, 240), SET(0, granted, 1230) }
#define ENQUEUED_BY_B .edits = { SET(PUSH_F, outcome, OUTCOME_UNKNOWN), SET(PUSH_F, parent, B), SET(PUSH_F, token, 12) }
#define CALLBACK(message) { .kind = EVENT_CALLBACK, .id = message, .name = 9 }
#define SCHEDULE { .kind = EVENT_SCHEDULE, .name = 9, .until = 10 }
#define PAUSE { .kind = EVENT_SCHEDULE, .name = 9, .waits = true }
#define TICK(message, tick) { .kind = EVENT_TICK, .id = message, .name = 9, .due = tick }
#define FIRINGS(fired, missed) { .kind = EVENT_FIRINGS, .name = 9, .id = fired, .token = missed }
#define GAUGE(files, bytes) { .kind = EVENT_GAUGE, .name = files, .id = bytes }

static const struct change breaks[] = {
	{ LOSE },
	{ "had", "all was taken, and something is still there", .must_be_empty = true },
	{ "bytes", "other bytes", .edits = { SET(CLAIM_C, damaged, true) } },
	{ "sent", "a push that was refused is there", .row = { 6, F, STATE_READY } },
	{ "once", "two messages of one idempotency key", .row = { 7, E, STATE_READY } },
	{ "final", "delivered after its ack", .copy = &good[CLAIM_A_AGAIN],
	  .copied = { SET(0, start, 250), SET(0, end, 260), SET(0, token, 20), SET(0, granted, 2500), SET(0, until, 2800), SET(0, attempts, 3) } },
	{ OVERLAP },
	{ "key", "two leases of a key", .edits = { SET(ACK_A, outcome, OUTCOME_FAILED) }, .row = { 1, A, STATE_LEASED } },
	{ "unique", "one token twice", .edits = { SET(CLAIM_C, token, 12) } },
	{ "unique", "one token twice for a key, by two shards", .edits = { SET(CLAIM_B, token, 11), SET(ACK_B, token, 11) }, .several = true },
	{ "unique", "a token of an earlier round", .token_floor = 10 },
	{ "rising", "a lower token after a higher one", .edits = { SET(CLAIM_C_AGAIN, start, 155), SET(CLAIM_C_AGAIN, end, 165) } },
	{ "key-rising", "a lower token of the key after a higher one", .edits = { SET(CLAIM_B, start, 52), SET(CLAIM_B, end, 58) } },
	{ "attempts", "two first deliveries", .edits = { SET(CLAIM_C_AGAIN, attempts, 1), SET(CLAIM_C_AGAIN, failures, 0) } },
	{ "stale", "an extend with a token that is not the current one",
	  .edits = { SET(ACK_C, kind, EVENT_EXTEND), SET(ACK_C, outcome, OUTCOME_OK), SET(ACK_C, until, 1200) } },
	{ "stale", "an extend after the nack that ended the lease", .copy = &good[EXTEND_A],
	  .copied = { SET(0, token, 10), SET(0, start, 92), SET(0, end, 95), SET(0, until, 1050) } },
	{ "order", "the second of a call comes first", .edits = { SET(PUSH_A, index, 1), SET(PUSH_B, index, 0) } },
	{ "order", "the message of a later call comes first", .edits = { SET(PUSH_A, call, 9), SET(PUSH_A, start, 20), SET(PUSH_A, end, 30) } },
	{ "order", "a later message comes before a member of a batch that was accepted at once",
	  .edits = { SET(PUSH_A, call, 9), SET(PUSH_A, start, 20), SET(PUSH_A, end, 30), SET(PUSH_B, joins, true) } },
	{ "order", "what is due later comes first", .edits = { SET(CLAIM_B, due, 999) } },
	{ "due", "handed out before it is due", .edits = { SET(CLAIM_C, due, 1171) } },
	{ "due", "handed out again before the retry is due", .edits = { SET(NACK_A, until, 1101) } },
	{ "place", "in two places", .row = { 3, C, STATE_READY } },
	{ "dead", "a dead letter that is not listed", .edits = { OUT(DEAD_E) } },
	{ "dead", "listed as dead, and alive", .copy = &good[DEAD_E], .copied = { SET(0, id, 4) } },
	{ "buried", "handed out though it was dead", .edits = { SET(NACK_A, state, STATE_DEAD), SET(NACK_A, until, 0) } },
	{ "limit", "handed out after its last failure", .edits = { SET(CLAIM_C_AGAIN, failures, 4), SET(CLAIM_C_AGAIN, attempts, 5) } },
	{ "limit", "a failure without a delivery", .edits = { SET(CLAIM_C, failures, 1) } },
	{ "counters", "a counter that is wrong", .held = 1 },
	{ "counters", "a total that is wrong", .total = 1 },
	{ "lock", "a lock is given while it is held", .edits = { SET(RELEASE_X, outcome, OUTCOME_FAILED) } },
	{ "lock-rising", "a token of a lock from an earlier round", .lock_token = 30 },
	{ "lock-stale", "an update after the release", .copy = &good[UPDATE_X], .copied = { SET(0, start, 132), SET(0, end, 135) } },
	{ "lock-stale", "an update after the next holder has it",
	  .edits = { SET(UPDATE_X, start, 155), SET(UPDATE_X, end, 156), SET(RELEASE_X, outcome, OUTCOME_UNKNOWN) } },
	{ "state", "what was committed is not read", .edits = { SET(READ_Y, name, 6) } },
	{ "state", "one value committed twice", .edits = { SET(UPDATE_Y, name, 7), SET(RELEASE_Y, name, 7) } },
	{ "state", "what an earlier round committed is not read", .lock_value = 7 },
	{ "concurrency", "two leases, where the queue may have one", CLAIM_D, .limits = { .concurrency = 1 } },
	{ "concurrency", "two leases of one host", CLAIM_D, .edits = { SET(PUSH_C, host, 2), SET(PUSH_D, host, 2) },
	  .limits = { .concurrency = 9, .attribute_concurrency = 1 } },
	{ "rate", "five deliveries at once, where four may come", .limits = { .rate = 1, .burst = 3 } },
	{ "share", "a message waits for five of a share with a third of its weight", CLAIM_D_LAST, .edits = { SET(PUSH_D, share, 1) },
	  .limits = { .weights = { 1, 3, 1, 1 } } },
	{ "atomic", "what the ack enqueued is not there", ENQUEUED_BY_B },
	{ "atomic", "what the ack enqueued is there, and the acked message, too", ENQUEUED_BY_B, .copy = &good[ROW_D],
	  .copied = { SET(0, id, 2), SET(0, name, B) }, .row = { 6, F, STATE_READY }, .ready = 1, .total = 1 },
	{ "batch", "a batch that did not call back", .add = { { .kind = EVENT_BATCH, .name = 9 } } },
	{ "batch", "a batch that called back twice", .add = { { .kind = EVENT_BATCH, .name = 9 }, CALLBACK(7), CALLBACK(8) } },
	{ "batch", "a batch that called back and was not closed",
	  .add = { { .kind = EVENT_BATCH, .name = 9, .outcome = OUTCOME_FAILED }, CALLBACK(7) } },
	{ "schedule", "a tick that fired twice", .add = { SCHEDULE, TICK(7, 20), TICK(8, 20), FIRINGS(2, 0) } },
	{ "schedule", "a message between two ticks", .add = { SCHEDULE, TICK(7, 20), TICK(8, 35), FIRINGS(1, 9) } },
	{ "schedule", "a tick that nobody calls missed", .add = { SCHEDULE, TICK(7, 20), TICK(8, 50), FIRINGS(2, 1) } },
	{ "schedule", "a firing whose message is not there", .add = { SCHEDULE, TICK(7, 20), FIRINGS(2, 0) } },
	{ "schedule", "a schedule that is gone",
	  .add = { SCHEDULE, { .kind = EVENT_FIRINGS, .name = 9, .outcome = OUTCOME_FAILED } } },
	{ "schedule", "a schedule that does not go on", .add = { SCHEDULE, { .kind = EVENT_FIRINGS, .name = 9, .damaged = true } } },
	{ "schedule", "a schedule that was refused, and fired",
	  .add = { { .kind = EVENT_SCHEDULE, .name = 9, .until = 10, .outcome = OUTCOME_FAILED }, TICK(7, 20) } },
	{ "exit", "the server ended by itself", .add = { { .kind = EVENT_EXIT, .start = 250, .end = 250, .id = 6 } } },
	{ "bounded", "files that stay open", .add = { GAUGE(20, 10 * MIB), GAUGE(200, 10 * MIB) } },
	{ "bounded", "memory that grows", .add = { GAUGE(20, 10 * MIB), GAUGE(20, 300 * MIB) } },
};

/* What comes close to a break and keeps the promises. */
static const struct change keeps[] = {
	{ "", "a lease begins when the other ends", .edits = { SET(CLAIM_C_AGAIN, granted, 1200) } },
	{ "", "a retry comes when it is due", .edits = { SET(NACK_A, until, 1100) } },
	{ "", "an unknown ack did nothing", .row = { 2, B, STATE_READY } },
	{ "", "an unknown push is there", .edits = { SET(PUSH_F, outcome, OUTCOME_UNKNOWN) }, .row = { 6, F, STATE_READY } },
	{ "", "an unknown nack ended the lease",
	  .edits = { SET(ACK_C, kind, EVENT_NACK), SET(ACK_C, outcome, OUTCOME_UNKNOWN), SET(CLAIM_C_AGAIN, granted, 1180) } },
	{ "", "an unknown extend made the lease shorter",
	  .edits = { SET(ACK_C, kind, EVENT_EXTEND), SET(ACK_C, outcome, OUTCOME_UNKNOWN), SET(CLAIM_C_AGAIN, granted, 1180) } },
	{ "", "a redriven message counts from one", .edits = { SET(CLAIM_C_AGAIN, attempts, 1), SET(CLAIM_C_AGAIN, failures, 0) },
	  .add = { { .kind = EVENT_REDRIVE, .start = 190, .end = 195 } } },
	{ "", "a redriven message comes again", .edits = { SET(NACK_A, state, STATE_DEAD), SET(NACK_A, until, 0) },
	  .add = { { .kind = EVENT_REDRIVE, .start = 91, .end = 95 } } },
	{ "", "calls that ran at once", .edits = { SET(PUSH_A, call, 9), SET(PUSH_A, start, 5), SET(PUSH_A, end, 30) } },
	{ "", "an idempotency key that was tried before", .edits = { SET(PUSH_A, call, 9), SET(PUSH_A, start, 20), SET(PUSH_A, end, 30) },
	  .copy = &good[PUSH_A], .copied = { SET(0, start, 1), SET(0, end, 2), SET(0, id, 0), SET(0, outcome, OUTCOME_UNKNOWN) } },
	{ "", "a member of a batch that was still on its way from another shard",
	  .edits = { SET(PUSH_A, call, 9), SET(PUSH_A, start, 20), SET(PUSH_A, end, 30), SET(PUSH_B, joins, true),
		     SET(PUSH_B, start, -(uint64_t)SLU_SEC) } },
	{ "", "claims that ran at once", .edits = { SET(CLAIM_C_AGAIN, start, 165), SET(CLAIM_C_AGAIN, end, 175) } },
	{ "", "a lock is given when its time is over", .edits = { SET(RELEASE_X, outcome, OUTCOME_FAILED), SET(ACQUIRE_X, until, 150) } },
	{ "", "a release that came too late commits nothing",
	  .edits = { SET(RELEASE_X, until, 125), SET(READ_Y, name, 6), SET(UPDATE_Y, name, 7), SET(RELEASE_Y, name, 7) } },
	{ "", "an unknown release committed", .edits = { SET(RELEASE_X, outcome, OUTCOME_UNKNOWN) } },
	{ "", "an unknown release did not", .edits = { SET(RELEASE_X, outcome, OUTCOME_UNKNOWN), SET(READ_Y, name, 6) } },
	{ "", "two leases, where the queue may have two", CLAIM_D, .limits = { .concurrency = 2 } },
	{ "", "one lease of each host", CLAIM_D, .edits = { SET(PUSH_C, host, 1), SET(PUSH_D, host, 2) },
	  .limits = { .concurrency = 2, .attribute_concurrency = 1 } },
	{ "", "as many deliveries at once as may come", .limits = { .rate = 1, .burst = 4 } },
	{ "", "a message waits for five of a share with five times its weight", CLAIM_D_LAST, .edits = { SET(PUSH_D, share, 1) },
	  .limits = { .weights = { 5, 1, 1, 1 } } },
	{ "", "a message of the same share came meanwhile", CLAIM_D_LAST, .edits = { SET(PUSH_D, share, 1), SET(PUSH_C, share, 1) },
	  .limits = { .weights = { 7, 3, 1, 1 } } },
	{ "", "a message of the same share came meanwhile, whose push was not answered", CLAIM_D_LAST,
	  .edits = { SET(PUSH_D, share, 1), SET(PUSH_C, share, 1), SET(PUSH_C, outcome, OUTCOME_UNKNOWN), SET(PUSH_C, id, 0) },
	  .limits = { .weights = { 7, 3, 1, 1 } } },
	{ "", "a message of a worse priority waits longer", CLAIM_D_LAST, .edits = { SET(PUSH_D, share, 1), SET(PUSH_D, priority, 1) },
	  .limits = { .weights = { 1, 3, 1, 1 } } },
	{ "", "turns begin anew at a fault", CLAIM_D_LAST, .edits = { SET(PUSH_D, share, 1) }, .limits = { .weights = { 1, 1, 1, 1 } },
	  .add = { { .kind = EVENT_FAULT, .start = 100, .end = 110 }, { .kind = EVENT_FAULT, .start = 120, .end = 130 } } },
	{ "", "an unknown ack enqueued", ENQUEUED_BY_B, .row = { 6, F, STATE_READY } },
	{ "", "an unknown ack did not enqueue", ENQUEUED_BY_B, .row = { 2, B, STATE_READY } },
	{ "", "a batch that called back", .add = { { .kind = EVENT_BATCH, .name = 9 }, CALLBACK(7) } },
	{ "", "an unknown close", .add = { { .kind = EVENT_BATCH, .name = 9, .outcome = OUTCOME_UNKNOWN } } },
	{ "", "ticks of two schedules", .add = { SCHEDULE, TICK(7, 20), { .kind = EVENT_TICK, .name = 10, .id = 8, .due = 25 }, FIRINGS(1, 0) } },
	{ "", "ticks that were missed", .add = { SCHEDULE, TICK(7, 20), TICK(8, 50), FIRINGS(2, 2) } },
	{ "", "a pause passed over ticks", .add = { SCHEDULE, PAUSE, TICK(7, 20), TICK(8, 50) } },
	{ "", "a message whose firing a pause overtook", .add = { SCHEDULE, PAUSE, TICK(7, 20), FIRINGS(0, 0) } },
	{ "", "a schedule that was refused, and set at the next try",
	  .add = { { .kind = EVENT_SCHEDULE, .name = 9, .until = 10, .outcome = OUTCOME_FAILED }, SCHEDULE, TICK(7, 20), FIRINGS(1, 0) } },
	{ "", "a schedule whose set was not answered, and is not there",
	  .add = { { .kind = EVENT_SCHEDULE, .name = 9, .until = 10, .outcome = OUTCOME_UNKNOWN },
		   { .kind = EVENT_FIRINGS, .name = 9, .outcome = OUTCOME_FAILED } } },
	{ "", "tokens of several shards", .edits = { SET(CLAIM_C, token, 12) }, .several = true, .token_floor = 10 },
	{ "", "a row whose payload was left out", .edits = { SET(ROW_D, name, 0) } },
};
/* clang-format on */

/* The rules that found something, with spaces between. */
static void
names_found(struct history *h, char *out, size_t n)
{
	struct check c;

	out[0] = '\0';
	check_init(&c, h);
	CHECK_EQ(0, check_run(&c, NULL));
	for (const struct check_rule *r = check_rules; r->id; r++)
		if (c.found[r - check_rules].n) {
			strncat(out, r->name, n - strlen(out) - 1);
			strncat(out, " ", n - strlen(out) - 1);
		}
	CHECK_EQ(out[0] != '\0', c.n_found > 0);
	check_release(&c);
}

/* Fails the test unless the changed history breaks exactly the rules of want. */
static void
check_change(const struct change *c, const char *want)
{
	char found[200];
	struct history h;

	make_good(&h);
	apply(&h, c);
	names_found(&h, found, sizeof found);
	if (strcmp(want, found) != 0)
		test_fail(__FILE__, __LINE__, "%s: want %s, found %s", c->label, want, found);
	history_release(&h);
}

TEST(a_good_history_breaks_nothing)
{
	check_change(&(struct change){ .label = "good" }, "");
}

TEST(each_rule_finds_what_breaks_it_and_no_other_does)
{
	EACH(i, breaks) {
		char want[40];

		(void)snprintf(want, sizeof want, "%s ", breaks[i].rule);
		check_change(&breaks[i], want);
	}
}

TEST(what_comes_close_and_keeps_the_promises_is_left_alone)
{
	EACH(i, keeps)
		check_change(&keeps[i], "");
}

TEST(every_rule_has_a_history_that_breaks_it)
{
	for (const struct check_rule *r = check_rules; r->id; r++) {
		bool has = false;

		EACH(i, breaks)
			has = has || strcmp(breaks[i].rule, r->name) == 0;
		if (!has)
			test_fail(__FILE__, __LINE__, "%s has none", r->name);
	}
}

TEST(what_was_acked_twice_or_stays_after_its_ack_is_found)
{
	const struct change twice = {
		"", "two acks at once: neither came after the other", .copy = &good[ACK_A], .copied = { SET(0, start, 125) }
	};

	check_change(&twice, "kept ");
	check_change(&(struct change){ "", "there after its ack", .row = { 1, A, STATE_READY } }, "kept final ");
}

TEST(a_lock_whose_tokens_fall_had_two_holders_too)
{
	const struct change falls = { "", "falls", .edits = { SET(ACQUIRE_Y, start, 80), SET(ACQUIRE_Y, end, 90) } };

	check_change(&falls, "lock lock-rising lock-stale ");
}

/* --- counter-examples ------------------------------------------------------------------ */

TEST(the_shortest_counter_example_is_shown_in_order_of_time)
{
	const struct check_rule *worst;
	const struct finding *f;
	struct history h;
	struct check c;

	make_good(&h);
	apply(&h, &(struct change){ LOSE });    /* the push alone */
	apply(&h, &(struct change){ OVERLAP }); /* two claims */
	check_init(&c, &h);
	CHECK_EQ(0, check_run(&c, NULL));
	CHECK_EQ(2, c.n_found);
	worst = check_worst(&c);
	CHECK_STR("kept", worst->name);
	f = &c.found[worst - check_rules];
	CHECK_EQ(1, f->n_events);
	CHECK_EQ(PUSH_D, f->events[0] - h.events);
	CHECK_CONTAINS("message 4 was accepted and is lost", f->text);
	for (const struct check_rule *r = check_rules; r->id; r++) {
		f = &c.found[r - check_rules];
		for (size_t i = 1; i < f->n_events; i++)
			CHECK(f->events[i - 1]->start <= f->events[i]->start);
	}
	check_release(&c);
	history_release(&h);
}

TEST(a_history_that_cannot_be_judged_is_refused)
{
	struct slu_err err;
	struct history h;
	struct check c;

	CHECK_EQ(0, history_init(&h, 4, &err));
	check_init(&c, &h);
	CHECK_EQ(SLU_EINVAL, check_run(&c, &err));
	CHECK_CONTAINS("does not end with a look", err.text);
	for (int i = 0; i < 6; i++)
		history_add(&h, &good[PUSH_A]);
	CHECK(atomic_load(&h.full));
	CHECK_EQ(5, h.n);
	CHECK_EQ(SLU_EINVAL, check_run(&c, &err));
	CHECK_CONTAINS("history is full", err.text);
	history_release(&h);
}

TEST(a_round_leaves_its_highest_token_to_the_next)
{
	struct history h;

	make_good(&h);
	history_clear(&h);
	CHECK_EQ(14, h.token_floor);
	CHECK_EQ(31, h.lock_tokens[1]);
	CHECK_EQ(8, h.lock_values[1]);
	CHECK_EQ(0, h.n);
	CHECK_EQ(0, h.n_looks);
	history_release(&h);
}

TORTURE(a_check_survives_lack_of_memory)
{
	struct history h;
	struct check c;
	int rc;

	if (history_init(&h, 100, NULL))
		return;
	EACH(i, good)
		history_add(&h, &good[i]);
	history_look(&h, &(struct look){ 0 }, 300, 320);
	check_init(&c, &h);
	rc = check_run(&c, NULL);
	CHECK(rc == 0 || rc == SLU_ENOMEM);
	check_release(&c);
	history_release(&h);
}
