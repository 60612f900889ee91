/*
 * What moves to another shard arrives as it was: engine/move.h. move_rig.h has the rows.
 */
#include "move_rig.h"

#include "base/id.h"
#include "engine/payload.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	MANY = 500
};

/* SH-09, SH-68: order over batches. */
MOVE_CASE(priorities_and_order_are_kept_over_batches)
{
	uint64_t want[60];

	for (int i = 0; i < 60; i++)
		rig_put(a, "q", &(struct rig_msg){ .prio = i % 3 });
	CHECK_EQ(60, rig_peek(a, "q", 60));
	for (int i = 0; i < 60; i++)
		want[i] = a->rows[i].id;
	CHECK_EQ(9, move_all(a, b, "q", 7));
	CHECK_EQ(0, rig_count(a, "q", MSG_READY));
	rig_reopen(b);
	CHECK_EQ(60, rig_claim(b, "q", 100));
	for (int i = 0; i < 60; i++)
		CHECK_EQ(want[i], b->rows[i].id);
}

/* Six messages of share a and one of b move; returns false if the engine has no shares. */
static bool
move_shares(struct rig *a, struct rig *b, const char *queue, uint64_t *first, uint64_t *other)
{
	*first = rig_put(a, queue, &(struct rig_msg){ .share = "a" });
	if (!*first) {
		CHECK_EQ(SLU_EINVAL, a->op.rc);
		return false;
	}
	for (int i = 0; i < 5; i++)
		rig_put(a, queue, &(struct rig_msg){ .share = "a", .key = i % 2 ? "k" : NULL });
	*other = rig_put(a, queue, &(struct rig_msg){ .share = "b" });
	CHECK(move_all(a, b, queue, 2) > 1);
	rig_put(b, queue, &(struct rig_msg){ .share = "b" }); /* behind the message of b that has moved */
	return true;
}

MOVE_CASE(shares_take_turns_where_they_go)
{
	uint64_t first, other;

	if (!move_shares(a, b, "q", &first, &other))
		return;
	CHECK_EQ(first, rig_claim_one(b, "q"));
	CHECK_EQ(other, rig_claim_one(b, "q"));
	move_shares(a, b, "reopened", &first, &other);
	rig_reopen(b);
	CHECK_EQ(first, rig_claim_one(b, "reopened"));
	CHECK_EQ(other, rig_claim_one(b, "reopened"));
}

/* PW-F17 */
MOVE_CASE(kinds_go_with_their_messages)
{
	const uint64_t crop = rig_put(a, "q", &(struct rig_msg){ .share = "\1crop", .prio = 9 });
	uint64_t ids[4];

	if (!crop) {
		CHECK_EQ(SLU_EINVAL, a->op.rc); /* an engine without kinds */
		return;
	}
	for (int i = 0; i < 4; i++)
		ids[i] = rig_put(a, "q", &(struct rig_msg){ .share = "\1resize", .key = i % 2 ? "k" : NULL });
	CHECK(move_all(a, b, "q", 2) > 1);
	rig_reopen(b);
	CHECK_EQ(crop, rig_claim_kinds(b, "q", "\1crop", 10));
	CHECK_EQ(0, rig_claim_kinds(b, "q", "\1crop", 10));
	CHECK_EQ(ids[0], rig_claim_kinds(b, "q", "\1resize", 1));
}

/* The limit goes by policy, the values with their messages, also those that wait behind a value at its limit. */
MOVE_CASE(values_of_a_limited_attribute_go_with_their_messages)
{
	struct policy p = policy_default;

	if (a->row->engine->shared)
		return; /* engine redis has no limits */
	strcpy(p.limit_attribute, "host");
	p.attribute_concurrency = 2;
	rig_policy(a, "q", &p);
	for (int i = 0; i < 20; i++) {
		struct op_put put = { .m = { .id = a->next_id++, .attributes = SLICE("{\"host\":\"crm\"}") } };

		CHECK_EQ(0, rig_puts(a, "q", &put, 1));
	}
	CHECK_EQ(2, rig_claim(a, "q", 10));
	CHECK_EQ(3, move_all(a, b, "q", 7));
	CHECK_EQ(0, rig_count(a, "q", MSG_READY));
	rig_policy(b, "q", &p);
	CHECK_EQ(18, rig_count(b, "q", MSG_READY));
	CHECK_EQ(2, rig_claim(b, "q", 10));
	rig_reopen(b);
	CHECK_EQ(0, rig_claim(b, "q", 10));
}

MOVE_CASE(a_message_arrives_with_all_that_it_had)
{
	struct op_put put = rig_whole_put();
	const slu_time at = a->now;

	CHECK_EQ(0, rig_puts(a, "q", &put, 1));
	CHECK_EQ(1, move_all(a, b, "q", 10));
	rig_reopen(b);
	rig_check_whole(b, at);
}

MOVE_CASE(a_delay_goes_on_where_the_message_goes)
{
	const uint64_t late = rig_put(a, "q", &(struct rig_msg){ .delay = SLU_HOUR });
	const uint64_t soon = rig_put(a, "q", &(struct rig_msg){ .delay = SLU_SEC });

	CHECK_EQ(1, move_all(a, b, "q", 10));
	CHECK_EQ(2, rig_count(b, "q", MSG_DELAYED));
	rig_reopen(b);
	CHECK_EQ(0, rig_claim(b, "q", 1));
	rig_pass(b, SLU_SEC);
	CHECK_EQ(soon, rig_claim_one(b, "q"));
	rig_pass(b, SLU_HOUR - SLU_SEC - 1);
	rig_settle_one(b, OP_ACK, soon, 0);
	rig_pass(b, 1);
	rig_peek(b, "q", 10);
	CHECK_EQ(late, b->rows[b->n - 1].id);
}

MOVE_CASE(attempts_and_failures_go_on_counting)
{
	struct policy policy = policy_default;
	struct op_item nack = { .text = SLICE("no luck"), .time = 0 };

	policy.max_attempts = 3;
	rig_policy(a, "q", &policy);
	rig_policy(b, "q", &policy);
	nack.id = rig_put(a, "q", NULL);
	for (int i = 0; i < 2; i++) {
		rig_claim(a, "q", 1);
		nack.token = a->rows[0].token;
		CHECK_EQ(0, rig_item(a, OP_NACK, &nack));
	}
	CHECK_EQ(1, move_all(a, b, "q", 10));
	rig_reopen(b);
	CHECK_EQ(0, rig_get(b, nack.id));
	CHECK_STR("no luck", rig_error(b, 0));
	CHECK_EQ(2, b->rows[0].failures);
	CHECK_EQ(1, rig_claim(b, "q", 1));
	CHECK_EQ(3, b->rows[0].attempts);
	nack.token = b->rows[0].token;
	CHECK_EQ(0, rig_item(b, OP_NACK, &nack));
	CHECK(nack.died);
}

MOVE_CASE(dead_letters_bring_their_reason_and_error)
{
	struct op_item nack = { .text = SLICE("broken"), .dead = true };
	slu_time died;

	nack.id = rig_put(a, "q", &(struct rig_msg){ .key = "k" });
	rig_claim(a, "q", 1);
	rig_item(a, OP_NACK, &nack);
	died = a->now;
	rig_put(a, "q", &(struct rig_msg){ .ttl = SLU_SEC });
	rig_pass(a, SLU_MIN);
	CHECK_EQ(2, rig_count(a, "q", MSG_DEAD));
	CHECK_EQ(1, move_all(a, b, "q", 10));
	CHECK_EQ(0, rig_count(a, "q", MSG_DEAD));
	rig_reopen(b);
	b->cursor = 0;
	CHECK_EQ(2, rig_list(b, "q", MSG_DEAD, 10));
	CHECK_EQ(nack.id, b->rows[0].id);
	CHECK_EQ(DEAD_REJECTED, b->rows[0].reason);
	CHECK_EQ(died, b->rows[0].due);
	CHECK_EQ(DEAD_EXPIRED, b->rows[1].reason);
	CHECK_STR("broken", rig_error(b, 0));
	CHECK_EQ(0, rig_settle_one(b, OP_REDRIVE, nack.id, 0));
	CHECK_EQ(nack.id, rig_claim_one(b, "q"));
}

MOVE_CASE(a_ttl_ends_where_the_message_is)
{
	rig_put(a, "q", &(struct rig_msg){ .ttl = SLU_MIN });
	CHECK_EQ(1, move_all(a, b, "q", 10));
	rig_reopen(b);
	rig_pass(b, SLU_MIN);
	CHECK_EQ(1, rig_count(b, "q", MSG_DEAD));
}

/* SH-09 */
MOVE_CASE(an_idempotency_key_goes_with_its_message)
{
	const struct rig_msg once = { .idem = "once" };
	const uint64_t id = rig_put(a, "q", &once);

	CHECK_EQ(1, move_all(a, b, "q", 10));
	rig_reopen(a);
	rig_reopen(b);
	CHECK_EQ(id, rig_put(b, "q", &once));
	CHECK(rig_put(a, "q", &once) != id); /* MOVE-10: it is forgotten here */
}

MOVE_CASE(a_strict_queue_knows_the_payloads_of_messages_that_came)
{
	struct policy policy = policy_default;
	uint64_t id;

	policy.strict = true;
	rig_policy(a, "q", &policy);
	rig_policy(b, "q", &policy);
	id = rig_put(a, "q", &(struct rig_msg){ .idem = "once", .payload = "one" });
	CHECK_EQ(1, move_all(a, b, "q", 10));
	rig_reopen(b);
	CHECK_EQ(id, rig_put(b, "q", &(struct rig_msg){ .idem = "once", .payload = "one" }));
	CHECK_EQ(0, rig_put(b, "q", &(struct rig_msg){ .idem = "once", .payload = "two" }));
	CHECK_EQ(SLU_EIDEM, b->op.rc);
}

/* SH-09 */
MOVE_CASE(results_move)
{
	struct op_item ack = { .text = SLICE("42") };
	char text[64];

	ack.id = rig_put(a, "q", &(struct rig_msg){ .keep = SLU_HOUR });
	rig_claim(a, "q", 1);
	CHECK_EQ(0, rig_item(a, OP_ACK, &ack));
	ack.id = rig_put(a, "q", &(struct rig_msg){ .keep = SLU_MIN });
	ack.text.n = 0;
	rig_claim(a, "q", 1);
	CHECK_EQ(0, rig_item(a, OP_ACK, &ack));
	CHECK_EQ(0, move_step(a, "q", MOVE_LOOK, 0));
	CHECK_EQ(2, a->op.move.results);
	CHECK(move_all(a, b, "q", 10) > 0);
	rig_reopen(a);
	rig_reopen(b);
	CHECK_EQ(0, rig_result(b, ack.id - 1, text, sizeof text));
	CHECK_STR("42", text);
	CHECK_EQ(0, rig_result(b, ack.id, text, sizeof text));
	CHECK_EQ(SLU_ENOTFOUND, rig_result(a, ack.id - 1, text, sizeof text));
	rig_pass(b, SLU_MIN + SLU_SEC);
	CHECK_EQ(SLU_ENOTFOUND, rig_result(b, ack.id, text, sizeof text));
}

/* ---- Keys ---- */

/* The messages of a key, in the order they are handed out, at b; each is acked. */
static void
check_sequence(struct rig *r, const char *queue, const uint64_t *want, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		CHECK_EQ(want[i], rig_claim_one(r, queue));
		CHECK_EQ(0, rig_settle_one(r, OP_ACK, want[i], r->rows[0].token));
	}
	CHECK_EQ(0, rig_claim(r, queue, 1));
}

/* MOVE-6: however small the batch. */
MOVE_CASE(the_messages_of_a_key_go_together_in_their_order)
{
	uint64_t id[8];

	for (int i = 0; i < 6; i++)
		id[i] = rig_put(a, "q", &(struct rig_msg){ .key = "k", .prio = -i });
	id[7] = rig_put(a, "q", &(struct rig_msg){ .key = "k", .delay = 2 * SLU_SEC });
	id[6] = rig_put(a, "q", &(struct rig_msg){ .key = "k", .delay = SLU_SEC });
	CHECK(move_take(a, "q", &(struct move_take){ .max = 2 }));
	CHECK_EQ(8, move_n);
	CHECK_EQ(0, move_give(a, b, "q"));
	CHECK_EQ(8, b->op.move.given);
	rig_reopen(b);
	rig_pass(b, SLU_MIN);
	check_sequence(b, "q", id, 8);
}

MOVE_CASE(a_key_waits_for_its_lease_but_no_other_does)
{
	uint64_t held[3], other;

	for (int i = 0; i < 3; i++)
		held[i] = rig_put(a, "q", &(struct rig_msg){ .key = "k", .delay = i == 2 ? SLU_SEC : 0 });
	CHECK_EQ(held[0], rig_claim_one(a, "q"));
	other = rig_put(a, "q", &(struct rig_msg){ .key = "j", .delay = SLU_MIN });
	CHECK_EQ(1, move_all(a, b, "q", 10));
	CHECK_EQ(0, rig_get(b, other));
	CHECK_EQ(0, move_step(a, "q", MOVE_LOOK, 0));
	CHECK_EQ(3, a->op.move.messages);
	CHECK_EQ(3, a->op.move.leased);
	CHECK_EQ(0, rig_settle_one(a, OP_ACK, held[0], 0));
	CHECK_EQ(1, move_all(a, b, "q", 10));
	rig_pass(b, SLU_SEC);
	CHECK_EQ(held[1], rig_claim_one(b, "q"));
}

/* LEDGER-3: a message that was handed out stays the head, also after the move. */
MOVE_CASE(a_head_that_waits_for_a_retry_stays_the_head)
{
	struct op_item nack = { .time = SLU_MIN };
	uint64_t second;

	nack.id = rig_put(a, "q", &(struct rig_msg){ .key = "k" });
	second = rig_put(a, "q", &(struct rig_msg){ .key = "k" });
	rig_claim(a, "q", 1);
	CHECK_EQ(0, rig_item(a, OP_NACK, &nack));
	CHECK_EQ(1, move_all(a, b, "q", 10));
	rig_reopen(b);
	CHECK_EQ(0, rig_claim(b, "q", 10));
	rig_pass(b, SLU_MIN);
	check_sequence(b, "q", (uint64_t[]){ nack.id, second }, 2);
}

/* SH-75, MOVE-9 */
MOVE_CASE(force_ends_leases_and_a_former_holder_is_refused)
{
	const uint64_t id = rig_put(a, "q", &(struct rig_msg){ .key = "k" });
	uint64_t token;

	for (int i = 0; i < 5; i++) { /* so that a's counter is ahead */
		rig_claim(a, "q", 1);
		rig_return(a);
	}
	rig_claim(a, "q", 1);
	token = a->rows[0].token;
	CHECK_EQ(0, move_take(a, "q", NULL));
	CHECK(move_take(a, "q", &(struct move_take){ .force = true }));
	CHECK_EQ(1, move_n);
	CHECK_EQ(SLU_ENOTFOUND, rig_settle_one(a, OP_ACK, id, token));
	CHECK_EQ(0, move_give(a, b, "q"));
	rig_reopen(b);
	CHECK_EQ(1, rig_claim(b, "q", 1));
	CHECK(b->rows[0].token > token);
	CHECK_EQ(SLU_ELEASE, rig_settle_one(b, OP_ACK, id, token));
}

/* MOVE-7, MOVE-3 */
MOVE_CASE(an_enqueue_of_a_key_that_is_set_aside_is_busy)
{
	uint64_t batch, id;

	rig_put(a, "q", &(struct rig_msg){ .key = "k" });
	move_mark(a, "q", MOVE_EPOCH, "b");
	batch = move_take(a, "q", NULL);
	CHECK(batch);
	rig_reopen(a);
	CHECK_EQ(0, rig_put(a, "q", &(struct rig_msg){ .key = "k" }));
	CHECK_EQ(SLU_EBUSY, a->op.rc);
	CHECK_STR("move", a->op.err.limit);
	CHECK_EQ(0, rig_put(a, "q", &(struct rig_msg){ .key = "j" }));
	CHECK_EQ(SLU_EMOVED, a->op.rc);
	CHECK_EQ(0, move_give(a, b, "q"));
	CHECK_EQ(0, move_step(a, "q", MOVE_DROP, batch));
	CHECK_EQ(0, rig_put(a, "q", &(struct rig_msg){ .key = "k" }));
	CHECK_EQ(SLU_EMOVED, a->op.rc);
	CHECK_STR("b", a->op.home.elsewhere);
	id = rig_put(b, "q", &(struct rig_msg){ .key = "k" });
	CHECK_EQ(2, rig_count(b, "q", MSG_READY) + rig_count(b, "q", MSG_HELD));
	CHECK(rig_claim_one(b, "q") != id);
}

/* ---- A thousand, at random ---- */

struct line {
	uint64_t id[MANY];
	unsigned n;
};

static void
claim_and_ack(struct rig *r, struct line *lines, unsigned *done)
{
	while (rig_claim(r, "q", 7) > 0)
		for (uint32_t i = 0; i < r->n; i++) {
			const struct message *m = rig_read(r, i);
			const unsigned key = m->key.n ? (unsigned)(m->key.p[0] - '0') : 9;

			if (key < 9) {
				CHECK_EQ(lines[key].id[0], m->id, "of a key the first goes first");
				memmove(lines[key].id, lines[key].id + 1, --lines[key].n * sizeof(uint64_t));
			}
			CHECK_EQ(0, rig_settle_one(r, OP_ACK, r->rows[i].id, r->rows[i].token));
			++*done;
		}
}

/* SH-78: nothing is lost, doubled or out of order, to and fro. */
MOVE_CASE(to_and_fro_nothing_is_lost_and_sequences_stay_in_order)
{
	static struct line lines[9];
	uint64_t random = test_seed();
	unsigned put = 0, done = 0;

	memset(lines, 0, sizeof lines);
	for (int round = 0; round < 6; round++) {
		struct rig *from = round % 2 ? b : a, *to = round % 2 ? a : b;

		for (int i = 0; i < 60; i++, put++) {
			const unsigned key = test_random(&random) % 12;
			const char text[] = { (char)('0' + key), 0 };
			const uint64_t id = rig_put(from, "q", &(struct rig_msg){
								       .key = key < 9 ? text : NULL,
								       .prio = (int32_t)(test_random(&random) % 3),
							       });

			CHECK(id);
			if (key < 9)
				lines[key].id[lines[key].n++] = id;
		}
		if (round == 3)
			claim_and_ack(from, lines, &done);
		from->now = to->now = from->now > to->now ? from->now : to->now;
		move_all(from, to, "q", 1 + test_random(&random) % 20);
		rig_check(from);
		rig_reopen(to);
	}
	claim_and_ack(a, lines, &done);
	CHECK_EQ(put, done);
}

/* ---- States ---- */

static int
lock_op(struct rig *r, enum op_verb verb, uint64_t id, uint64_t token, struct op_put *put)
{
	static char key[LOCK_KEY_MAX];
	char uuid[ID_UUID_TEXT];

	(void)snprintf(key, sizeof key, "q/q/state/%s", id_to_uuid(id, uuid));
	rig_op(&r->op, verb, RIG_SPACE, "q");
	r->op.lock.key = slice_of(key);
	r->op.lock.token = token;
	lock_txn(token, r->op.lock.txn);
	r->op.puts = put;
	r->op.n_puts = put != NULL;
	return rig_do(r, &r->op);
}

MOVE_CASE(the_state_of_a_message_goes_with_it)
{
	struct op_put put = { .m = { .payload = SLICE("half done"), .payload_size = 9, .type = SLICE("text/plain") } };
	const uint64_t id = rig_put(a, "q", NULL);
	uint64_t etag = 0;
	char text[256];

	for (int i = 0; i < 2; i++) {
		CHECK_EQ(1, rig_claim(a, "q", 1));
		CHECK_EQ(0, lock_op(a, OP_STATE_PUT, id, a->rows[0].token, &put));
		etag = a->op.lock.etag;
		rig_settle_one(a, OP_NACK, id, a->rows[0].token);
	}
	CHECK_EQ(1, move_all(a, b, "q", 70));
	CHECK_EQ(0, lock_op(a, OP_DESCRIBE, id, 0, NULL));
	CHECK_EQ(0, a->op.lock.version);
	rig_reopen(b);
	CHECK_EQ(0, lock_op(b, OP_STATE_GET, id, 0, NULL));
	CHECK_EQ(2, b->op.lock.version);
	CHECK_EQ(etag, b->op.lock.etag);
	CHECK_EQ(0, engine_read(b->e, &b->op.lock.record, 0, b->op.lock.record.size, text, true, NULL));
	CHECK_EQ(0, message_decode((struct slice){ text, b->op.lock.record.size }, &b->m, NULL));
	CHECK(slice_eq(put.m.payload, b->m.payload));
	CHECK(slice_eq(put.m.type, b->m.type));
	op_unpin(&b->op);
}

/* ---- Remembered keys ---- */

/* MOVE-6: a message that is sent again is asked for where its ordering key has messages. */
MOVE_CASE(idempotency_keys_stay_until_no_message_is_left)
{
	const struct rig_msg once = { .key = "k", .idem = "once" };
	const uint64_t id = rig_put(a, "q", &once);

	CHECK_EQ(1, rig_claim(a, "q", 1));
	rig_put(a, "q", &(struct rig_msg){ .key = "k" });
	CHECK_EQ(0, rig_settle_one(a, OP_ACK, id, a->rows[0].token));
	CHECK_EQ(1, rig_claim(a, "q", 1));
	move_mark(a, "q", MOVE_EPOCH, "b");
	CHECK_EQ(0, move_take(a, "q", NULL)); /* what is leased is waited for */
	CHECK_EQ(1, a->op.move.remembered);
	CHECK_EQ(id, rig_put(a, "q", &once));
	CHECK_EQ(0, rig_settle_one(a, OP_ACK, a->rows[0].id, a->rows[0].token));
	CHECK(move_all(a, b, "q", 10) > 0);
	CHECK_EQ(id, rig_put(b, "q", &once));
}

/* SH-09 */
MOVE_CASE(idempotency_keys_whose_messages_are_gone_move)
{
	char idem[32], big[3001];
	uint64_t id[100];

	memset(big, 'x', sizeof big);
	big[3000] = 0;
	for (int i = 0; i < 100; i++) { /* over several files */
		(void)snprintf(idem, sizeof idem, "key-%d", i);
		id[i] = rig_put(a, "q", &(struct rig_msg){ .idem = idem, .payload = big });
		rig_put(a, "other", &(struct rig_msg){ .idem = idem });
		if (i % 3)
			CHECK_EQ(0, rig_settle_one(a, OP_DELETE, id[i], 0));
	}
	rig_reopen(a);
	CHECK_EQ(0, move_step(a, "q", MOVE_LOOK, 0));
	CHECK_EQ(66, a->op.move.remembered);
	CHECK(move_all(a, b, "q", 100) > 0);
	CHECK_EQ(0, move_step(a, "q", MOVE_LOOK, 0));
	CHECK_EQ(0, a->op.move.remembered);
	rig_reopen(a);
	rig_reopen(b);
	CHECK_EQ(0, move_step(b, "q", MOVE_LOOK, 0));
	CHECK_EQ(66, b->op.move.remembered);
	for (int i = 0; i < 100; i++) {
		(void)snprintf(idem, sizeof idem, "key-%d", i);
		CHECK_EQ(id[i], rig_put(b, "q", &(struct rig_msg){ .idem = idem }));
		CHECK(rig_put(b, "other", &(struct rig_msg){ .idem = idem }) > id[99]);
	}
	CHECK(rig_put(a, "q", &(struct rig_msg){ .idem = "key-1" }) != id[1]);
}

static void
set_strict(struct rig *r, bool strict)
{
	struct policy policy = policy_default;

	policy.strict = strict;
	rig_policy(r, "q", &policy);
}

MOVE_CASE(a_strict_queue_knows_the_payloads_of_keys_that_came)
{
	const struct rig_msg one = { .idem = "once", .payload = "one" }, two = { .idem = "once", .payload = "two" };
	uint64_t id;

	set_strict(a, true);
	set_strict(b, true);
	id = rig_put(a, "q", &one);
	CHECK_EQ(0, rig_settle_one(a, OP_DELETE, id, 0));
	CHECK(move_all(a, b, "q", 10) > 0);
	rig_reopen(b);
	CHECK_EQ(id, rig_put(b, "q", &one));
	CHECK_EQ(0, rig_put(b, "q", &two));
	CHECK_EQ(SLU_EIDEM, b->op.rc);
	CHECK(move_all(b, a, "q", 10) > 0); /* a key that came goes on */
	rig_reopen(a);
	CHECK_EQ(0, rig_put(a, "q", &two));
	CHECK_EQ(SLU_EIDEM, a->op.rc);
}

MOVE_CASE(a_queue_that_is_not_strict_takes_no_payloads_of_keys)
{
	uint64_t id;

	set_strict(a, true);
	id = rig_put(a, "q", &(struct rig_msg){ .idem = "once", .payload = "one" });
	CHECK_EQ(0, rig_settle_one(a, OP_DELETE, id, 0));
	set_strict(b, false);
	CHECK(move_all(a, b, "q", 10) > 0);
	set_strict(b, true);
	CHECK_EQ(id, rig_put(b, "q", &(struct rig_msg){ .idem = "once", .payload = "two" }));
}

/* ---- Payloads in files ---- */

MOVE_CASE(a_large_payload_moves)
{
	enum {
		SIZE = 3 << 20
	};
	struct op_put put = { .m = { .id = 5, .payload_size = SIZE } };
	struct payload *file = NULL;
	char *text = malloc(SIZE);

	for (int i = 0; i < SIZE; i++)
		text[i] = (char)(i * 31 >> 3);
	put.m.payload = (struct slice){ text, SIZE };
	if (payload_is_large(a->e, SIZE))
		CHECK_EQ(0, payload_store(a->e, &put.m, &file, NULL));
	CHECK_EQ(0, rig_puts(a, "q", &put, 1), a->op.err.text);
	payload_close(file);
	CHECK_EQ(1, move_all(a, b, "q", 10));
	rig_reopen(a);
	rig_reopen(b);
	CHECK_EQ(5, rig_claim_one(b, "q"));
	if (b->rows[0].payload.pin) {
		char *got = malloc(SIZE);

		CHECK_EQ(SIZE, b->rows[0].payload.size);
		CHECK_EQ(0, engine_read(b->e, &b->rows[0].payload, 0, SIZE, got, true, NULL));
		CHECK(memcmp(text, got, SIZE) == 0);
		free(got);
	} else {
		CHECK(slice_eq((struct slice){ text, SIZE }, rig_read(b, 0)->payload));
	}
	free(text);
}

/* ---- Payloads in files ---- */

/* MOVE-2: it is asked for all the same, for it may not be wanted. */
MOVE_CASE(a_payload_that_another_engine_keeps_is_not_taken)
{
	static const struct {
		const char *label;
		struct slice key, idem;
		int want;
	} rows[] = {
		{ "its key is not here", SLICE("j"), { 0 }, SLU_EMOVED },
		{ "its key is here", SLICE("k"), { 0 }, SLU_EBUSY },
		{ "its idempotency key is known", { 0 }, SLICE("once"), 0 },
	};

	rig_put(a, "q", &(struct rig_msg){ .key = "k", .idem = "once" });
	move_mark(a, "q", MOVE_EPOCH, "b");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct op_put put = {
			.m = { .id = 100 + i, .key = rows[i].key, .idem = rows[i].idem },
		};

		put.m.file = 7;
		put.m.payload_size = 2 << 20;
		put.m.keeper = b->e;
		rig_op_puts(&a->op, "q", &put, 1);
		CHECK_EQ(rows[i].want, rig_do(a, &a->op), rows[i].label);
		CHECK_EQ(i == 2, put.existed);
		if (rows[i].want == SLU_EBUSY)
			CHECK_STR("move", a->op.err.limit);
		a->op.puts = NULL;
	}
	CHECK_EQ(1, rig_count(a, "q", MSG_READY) + rig_count(a, "q", MSG_HELD));
}
