/*
 * What an engine must do: keys, dead letters, idempotency, results, policies, looking,
 * bounds. engine_rig.h has the rows.
 */
#include "engine_rig.h"

/* ---- Keys ---- */

static uint64_t
put_key(struct rig *r, const char *key)
{
	return rig_put(r, "q", &(struct rig_msg){ .key = key });
}

static uint64_t
ack_first(struct rig *r)
{
	const uint64_t id = r->rows[0].id;

	CHECK_EQ(0, rig_settle_one(r, OP_ACK, id, r->rows[0].token));
	return id;
}

CASE(of_a_key_one_at_a_time_in_order)
{
	const uint64_t a1 = put_key(r, "a"), a2 = put_key(r, "a"), b1 = put_key(r, "b");

	CHECK_EQ(2, rig_claim(r, "q", 10));
	CHECK_EQ(a1, r->rows[0].id);
	CHECK_EQ(b1, r->rows[1].id);
	CHECK_EQ(1, rig_count(r, "q", MSG_HELD));
	rig_woken(r);
	ack_first(r);
	CHECK_STR("q", rig_woken(r));
	CHECK_EQ(a2, rig_claim_one(r, "q"));
}

CASE(a_key_keeps_its_order_over_retry_expiry_and_restart)
{
	struct op_item item = { .time = SLU_SEC };
	const uint64_t a1 = put_key(r, "a"), a2 = put_key(r, "a");

	item.id = a1;
	CHECK_EQ(a1, rig_claim_one(r, "q"));
	CHECK_EQ(0, rig_item(r, OP_NACK, &item));
	CHECK_EQ(0, rig_claim(r, "q", 10), "a retry holds its key");
	rig_reopen(r);
	rig_pass(r, SLU_SEC);
	CHECK_EQ(1, rig_claim_for(r, "q", SLU_MIN));
	CHECK_EQ(a1, r->rows[0].id);
	rig_reopen(r);
	CHECK_EQ(0, rig_claim(r, "q", 10));
	rig_pass(r, SLU_MIN);
	CHECK_EQ(a1, rig_claim_one(r, "q"));
	ack_first(r);
	CHECK_EQ(a2, rig_claim_one(r, "q"));
}

CASE(other_keys_are_not_held_back)
{
	struct op_item item = { .time = SLU_HOUR };

	item.id = put_key(r, "bad");
	put_key(r, "bad");
	rig_claim(r, "q", 1);
	CHECK_EQ(0, rig_item(r, OP_NACK, &item));
	for (int i = 0; i < 10; i++) {
		put_key(r, "good");
		CHECK_EQ(1, rig_claim(r, "q", 1));
		ack_first(r);
	}
}

/* Fault 21: a worker that needs a second a message, and 100 messages of a key that fails
 * each time and is tried again each 30 s. */
CASE(a_key_that_fails_for_an_hour_leaves_the_others_their_turns)
{
	const int fairqueue = (int)rig_turns(r, 3600);
	const uint64_t bad = put_key(r, "bad");
	struct policy p = policy_default;
	int good = 0;

	p.max_attempts = 65535;
	p.retry = (struct slu_backoff){ .kind = SLU_BACKOFF_FIXED, .base = 30 * SLU_SEC };
	rig_policy(r, "q", &p);
	for (int i = 1; i < 100; i++)
		put_key(r, "bad");
	for (int i = 0; i < fairqueue; i++) {
		struct op_item item = { .time = LEDGER_BY_POLICY };

		put_key(r, "good");
		CHECK_EQ(1, rig_claim(r, "q", 1), "no turn is lost");
		item.id = r->rows[0].id;
		item.token = r->rows[0].token;
		good += item.id != bad;
		CHECK_EQ(0, rig_item(r, item.id == bad ? OP_NACK : OP_ACK, &item));
		rig_pass(r, SLU_SEC);
	}
	CHECK(good >= fairqueue * 95 / 100 - 10); /* retries have jitter, and few turns vary more */
}

CASE(a_dead_letter_lets_the_next_of_its_key_go)
{
	struct op_item item = { .dead = true };
	uint64_t next;

	item.id = put_key(r, "a");
	next = put_key(r, "a");
	rig_claim(r, "q", 1);
	CHECK_EQ(0, rig_item(r, OP_NACK, &item));
	CHECK_EQ(next, rig_claim_one(r, "q"));
}

CASE(a_key_is_ordered_by_due_whatever_the_priorities)
{
	const uint64_t late =
		rig_put(r, "q", &(struct rig_msg){ .key = "a", .delay = 2 * SLU_US, .prio = -9 });
	const uint64_t soon = rig_put(r, "q", &(struct rig_msg){ .key = "a", .delay = SLU_US });

	rig_pass(r, 5 * SLU_US);
	CHECK_EQ(soon, rig_claim_one(r, "q"));
	ack_first(r);
	CHECK_EQ(late, rig_claim_one(r, "q"));
}

CASE(a_redriven_message_joins_its_key_at_the_end)
{
	struct op_item item = { .dead = true };
	uint64_t second;

	item.id = put_key(r, "a");
	second = put_key(r, "a");
	rig_claim(r, "q", 1);
	CHECK_EQ(0, rig_item(r, OP_NACK, &item));
	CHECK_EQ(0, rig_settle_one(r, OP_REDRIVE, item.id, 0));
	CHECK_EQ(second, rig_claim_one(r, "q"));
	ack_first(r);
	CHECK_EQ(item.id, rig_claim_one(r, "q"));
}

/* ---- Dead letters ---- */

static uint64_t
put_dead(struct rig *r, const char *queue)
{
	struct op_item item = { .dead = true };

	item.id = rig_put(r, queue, NULL);
	CHECK_EQ(item.id, rig_claim_one(r, queue));
	CHECK_EQ(0, rig_item(r, OP_NACK, &item));
	rig_pass(r, 1);
	return item.id;
}

CASE(dead_letters_are_listed_oldest_first_page_by_page)
{
	uint64_t ids[5];

	EACH(i, ids)
		ids[i] = put_dead(r, "q");
	put_dead(r, "other");
	r->cursor = 0;
	CHECK_EQ(2, rig_list(r, "q", MSG_DEAD, 2));
	CHECK_EQ(ids[0], r->rows[0].id);
	CHECK_EQ(ids[1], r->rows[1].id);
	CHECK_EQ(2, rig_list(r, "q", MSG_DEAD, 2));
	CHECK_EQ(ids[2], r->rows[0].id);
	CHECK_EQ(1, rig_list(r, "q", MSG_DEAD, 2));
	CHECK_EQ(ids[4], r->rows[0].id);
	CHECK_EQ(0, r->cursor);
}

CASE(a_page_that_was_redriven_leaves_out_nothing)
{
	uint64_t last;

	put_dead(r, "q");
	put_dead(r, "q");
	last = put_dead(r, "q");
	r->cursor = 0;
	CHECK_EQ(2, rig_list(r, "q", MSG_DEAD, 2));
	CHECK_EQ(0, rig_settle_one(r, OP_REDRIVE, r->rows[0].id, 0));
	CHECK_EQ(0, rig_settle_one(r, OP_REDRIVE, r->rows[1].id, 0));
	CHECK_EQ(1, rig_list(r, "q", MSG_DEAD, 2));
	CHECK_EQ(last, r->rows[0].id);
}

CASE(a_redriven_message_starts_anew)
{
	const uint64_t id = put_dead(r, "q");

	rig_woken(r);
	CHECK_EQ(0, rig_settle_one(r, OP_REDRIVE, id, 0));
	CHECK_STR("q", rig_woken(r));
	CHECK_EQ(SLU_ENOTFOUND, rig_settle_one(r, OP_REDRIVE, id, 0), "it is not dead");
	CHECK_EQ(id, rig_claim_one(r, "q"));
	CHECK_EQ(0, r->rows[0].failures);
	CHECK_EQ(0, rig_count(r, "q", MSG_DEAD));
}

CASE(a_dead_letter_can_be_deleted)
{
	const uint64_t id = put_dead(r, "q");

	CHECK_EQ(0, rig_settle_one(r, OP_DELETE, id, 0));
	CHECK_EQ(SLU_ENOTFOUND, rig_settle_one(r, OP_DELETE, id, 0));
	CHECK_EQ(0, rig_count(r, "q", MSG_DEAD));
}

CASE(what_is_leased_cannot_be_deleted)
{
	const uint64_t id = rig_put(r, "q", NULL);

	rig_claim(r, "q", 1);
	CHECK_EQ(SLU_ELEASE, rig_settle_one(r, OP_DELETE, id, 0));
}

CASE(dead_letters_are_deleted_after_their_retention)
{
	struct policy policy = policy_default;

	policy.dlq_retention = SLU_HOUR;
	rig_policy(r, "q", &policy);
	put_dead(r, "q");
	rig_pass(r, SLU_HOUR - 2);
	CHECK_EQ(1, rig_count(r, "q", MSG_DEAD));
	rig_pass(r, 2);
	CHECK_EQ(0, rig_count(r, "q", MSG_DEAD));
}

CASE(so_many_dead_letters_are_kept_and_no_more)
{
	struct policy policy = policy_default;
	struct op op;

	policy.dlq_max = 2;
	rig_policy(r, "q", &policy);
	rig_op(&op, OP_POLICY_GET, RIG_SPACE, "q");
	CHECK_EQ(0, rig_do(r, &op));
	CHECK(policy_is_same(&policy, &op.policy));
	for (int i = 0; i < 4; i++)
		put_dead(r, "q");
	CHECK_EQ(2, rig_count(r, "q", MSG_DEAD));
}

/* ---- Idempotency: MQ-41 ---- */

static uint64_t
put_once(struct rig *r, const char *queue, const char *idem)
{
	return rig_put(r, queue, &(struct rig_msg){ .idem = idem });
}

CASE(a_known_idempotency_key_gives_the_first_message)
{
	const uint64_t id = put_once(r, "q", "x");

	CHECK_EQ(id, put_once(r, "q", "x"));
	rig_reopen(r);
	CHECK_EQ(id, put_once(r, "q", "x"));
	CHECK_EQ(1, rig_count(r, "q", MSG_READY));
	CHECK(id != put_once(r, "q", "y"));
	CHECK(id != put_once(r, "other", "x"));
	CHECK(id != rig_put(r, "q", &(struct rig_msg){ .idem = "x", .space = "elsewhere" }));
}

CASE(a_key_is_remembered_for_a_day_after_the_end)
{
	const uint64_t id = put_once(r, "q", "x");

	rig_pass(r, 30 * 24 * SLU_HOUR);
	rig_claim(r, "q", 1);
	ack_first(r);
	rig_pass(r, 24 * SLU_HOUR - 1);
	CHECK_EQ(id, put_once(r, "q", "x"));
	rig_pass(r, SLU_HOUR + 1);
	CHECK(id != put_once(r, "q", "x"));
}

CASE(a_window_of_seconds_ends_in_seconds)
{
	struct policy policy = policy_default;
	uint64_t id;

	policy.window = 3 * SLU_SEC;
	rig_policy(r, "q", &policy);
	id = put_once(r, "q", "x");
	rig_claim(r, "q", 1);
	ack_first(r);
	rig_pass(r, 3 * SLU_SEC - 1);
	CHECK_EQ(id, put_once(r, "q", "x"));
	rig_pass(r, SLU_SEC + 1);
	CHECK(id != put_once(r, "q", "x"));
}

CASE(a_call_may_have_the_same_key_twice)
{
	struct op_put puts[2] = {
		{ .m = { .id = 5, .idem = SLICE("x") } },
		{ .m = { .id = 6, .idem = SLICE("x") } },
	};

	CHECK_EQ(0, rig_puts(r, "q", puts, 2));
	CHECK(!puts[0].existed);
	CHECK(puts[1].existed);
	CHECK_EQ(5, puts[1].m.id);
	CHECK_EQ(1, rig_count(r, "q", MSG_READY));
}

static uint64_t
put_as(struct rig *r, const char *queue, const char *idem, const char *payload)
{
	return rig_put(r, queue, &(struct rig_msg){ .idem = idem, .payload = payload });
}

CASE(a_strict_queue_refuses_another_payload_under_a_known_key)
{
	struct policy policy = policy_default;
	uint64_t id;

	policy.strict = true;
	rig_policy(r, "q", &policy);
	id = put_as(r, "q", "x", "one");
	for (int life = 0; life < 2; life++) {
		CHECK_EQ(id, put_as(r, "q", "x", "one"));
		CHECK_EQ(0, put_as(r, "q", "x", "two"));
		CHECK_EQ(SLU_EIDEM, r->op.rc);
		rig_reopen(r);
	}
	rig_claim(r, "q", 1);
	ack_first(r);
	for (int life = 0; life < 2; life++) {
		CHECK_EQ(id, put_as(r, "q", "x", "one"));
		CHECK_EQ(0, put_as(r, "q", "x", "two"));
		CHECK_EQ(SLU_EIDEM, r->op.rc);
		rig_reopen(r);
	}
	rig_pass(r, 25 * SLU_HOUR);
	CHECK(put_as(r, "q", "x", "two") > id);
}

CASE(other_queues_compare_no_payloads)
{
	struct policy policy = policy_default;
	const uint64_t id = put_as(r, "q", "x", "one");

	CHECK_EQ(id, put_as(r, "q", "x", "two"));
	policy.strict = true;
	rig_policy(r, "q", &policy);
	CHECK_EQ(id, put_as(r, "q", "x", "two")); /* it came before the queue was strict */
	CHECK(put_as(r, "q", "y", "one") > id);
	policy.strict = false;
	rig_policy(r, "q", &policy);
	CHECK(put_as(r, "q", "y", "two") > id);
}

CASE(a_call_with_another_payload_is_refused_whole)
{
	struct policy policy = policy_default;
	struct op_put puts[3] = {
		{ .m = { .id = 5, .payload = SLICE("new") } },
		{ .m = { .id = 6, .idem = SLICE("x"), .payload = SLICE("one") } },
		{ .m = { .id = 7, .idem = SLICE("x"), .payload = SLICE("two") } },
	};

	policy.strict = true;
	rig_policy(r, "q", &policy);
	for (int i = 0; i < 3; i++)
		puts[i].m.payload_size = puts[i].m.payload.n;
	CHECK_EQ(SLU_EIDEM, rig_puts(r, "q", puts, 3));
	CHECK_EQ(2, r->op.failed);
	CHECK_EQ(0, rig_count(r, "q", MSG_READY));
	CHECK(put_as(r, "q", "x", "two") != 0);
}

/* ---- All or nothing ---- */

CASE(a_call_that_does_not_fit_leaves_nothing_behind)
{
	struct op_put puts[4] = {
		{ .m = { .id = 11 } },
		{ .m = { .id = 12, .key = SLICE("k"), .idem = SLICE("x") } },
		{ .m = { .id = 13, .queue = SLICE("small") } },
		{ .m = { .id = 14, .queue = SLICE("small") } },
	};
	struct policy policy = policy_default;

	policy.max_depth = 1;
	rig_policy(r, "small", &policy);
	rig_op_puts(&r->op, "q", puts, 4);
	if (r->one_queue) {
		CHECK_EQ(SLU_EINVAL, rig_do(r, &r->op));
	} else {
		CHECK_EQ(SLU_EQFULL, rig_do(r, &r->op));
		CHECK_EQ(3, r->op.failed);
	}
	CHECK_EQ(0, rig_count(r, "q", MSG_READY));
	CHECK_EQ(0, rig_count(r, "small", MSG_READY));
	CHECK_EQ(0, rig_claim(r, "q", 10));
	CHECK(put_once(r, "q", "x") != 12);
	rig_reopen(r);
	CHECK_EQ(1, rig_count(r, "q", MSG_READY));
}

CASE(what_no_record_can_hold_is_refused)
{
	static char text[MESSAGE_KEY_MAX + 2];

	memset(text, 'k', sizeof text - 1);
	CHECK_EQ(0, rig_put(r, "q", &(struct rig_msg){ .key = text }));
	CHECK_EQ(SLU_ETOOBIG, r->op.rc);
	CHECK_CONTAINS("key", r->op.err.text);
}

CASE(ten_thousand_messages_are_one_call)
{
	static struct op_put puts[10000];

	EACH(i, puts)
		puts[i] = (struct op_put){ .m = { .id = i + 1 } };
	CHECK_EQ(0, rig_puts(r, "q", puts, COUNT(puts)));
	CHECK_EQ(COUNT(puts), rig_count(r, "q", MSG_READY));
}

/* ---- Results ---- */

CASE(a_result_is_kept_as_long_as_was_asked)
{
	struct op_item item = { .text = SLICE("42") };
	char text[100];

	item.id = rig_put(r, "q", &(struct rig_msg){ .keep = SLU_MIN });
	CHECK_EQ(SLU_ETIMEOUT, rig_result(r, item.id, text, sizeof text));
	rig_claim(r, "q", 1);
	CHECK_EQ(SLU_ETIMEOUT, rig_result(r, item.id, text, sizeof text));
	CHECK_EQ(0, rig_item(r, OP_ACK, &item));
	rig_reopen(r);
	CHECK_EQ(0, rig_result(r, item.id, text, sizeof text));
	CHECK_STR("42", text);
	rig_pass(r, SLU_MIN + SLU_SEC);
	CHECK_EQ(SLU_ENOTFOUND, rig_result(r, item.id, text, sizeof text));
}

CASE(a_result_is_kept_only_if_the_message_asks_for_it)
{
	struct op_item item = { .text = SLICE("42") };
	char text[100];

	item.id = rig_put(r, "q", NULL);
	rig_claim(r, "q", 1);
	CHECK_EQ(0, rig_item(r, OP_ACK, &item));
	CHECK_EQ(SLU_ENOTFOUND, rig_result(r, item.id, text, sizeof text));
}

CASE(an_ack_may_bring_no_result)
{
	char text[100];
	const uint64_t id = rig_put(r, "q", &(struct rig_msg){ .keep = SLU_MIN });

	rig_claim(r, "q", 1);
	ack_first(r);
	CHECK_EQ(0, rig_result(r, id, text, sizeof text));
	CHECK_STR("", text);
}

/* ---- Policies ---- */

CASE(a_queue_has_the_default_policy_until_it_is_given_one)
{
	struct policy policy = policy_default;
	struct op op;

	rig_op(&op, OP_POLICY_GET, RIG_SPACE, "q");
	CHECK_EQ(0, rig_do(r, &op));
	CHECK_EQ(30 * SLU_SEC, op.policy.lease);
	CHECK_EQ(5, op.policy.max_attempts);
	policy.lease = SLU_SEC;
	policy.warn_depth = 7;
	rig_policy(r, "q", &policy);
	rig_reopen(r);
	rig_op(&op, OP_POLICY_GET, RIG_SPACE, "q");
	CHECK_EQ(0, rig_do(r, &op));
	CHECK_EQ(SLU_SEC, op.policy.lease);
	CHECK_EQ(7, op.policy.warn_depth);
}

CASE(a_policy_out_of_range_is_refused)
{
	struct op op;

	rig_op(&op, OP_POLICY_SET, RIG_SPACE, "q");
	op.policy = policy_default;
	op.policy.max_attempts = 0;
	CHECK_EQ(SLU_EINVAL, rig_do(r, &op));
	CHECK_CONTAINS("attempts", op.err.text);
}

CASE(a_paused_queue_hands_out_nothing_and_takes_everything)
{
	struct policy policy = policy_default;

	policy.paused = true;
	rig_policy(r, "q", &policy);
	rig_put(r, "q", NULL);
	CHECK_STR("", rig_woken(r));
	CHECK_EQ(0, rig_claim(r, "q", 1));
	policy.paused = false;
	rig_policy(r, "q", &policy);
	CHECK_STR("q", rig_woken(r));
	CHECK_EQ(1, rig_claim(r, "q", 1));
}

/* ---- Purge ---- */

CASE(a_purge_takes_all_but_what_is_leased_or_dead)
{
	uint64_t leased, token;
	struct op op;

	put_dead(r, "q");
	rig_put(r, "q", NULL);
	leased = rig_claim_one(r, "q");
	token = r->rows[0].token;
	rig_put(r, "q", NULL);
	rig_put(r, "q", &(struct rig_msg){ .delay = SLU_HOUR });
	put_key(r, "k");
	put_key(r, "k");
	rig_put(r, "other", NULL);
	rig_op(&op, OP_PURGE, RIG_SPACE, "q");
	CHECK_EQ(0, rig_do(r, &op));
	CHECK_EQ(0, rig_claim(r, "q", 10));
	CHECK_EQ(0, rig_count(r, "q", MSG_DELAYED));
	CHECK_EQ(1, rig_count(r, "q", MSG_DEAD));
	CHECK_EQ(1, rig_count(r, "q", MSG_LEASED));
	CHECK_EQ(1, rig_count(r, "other", MSG_READY));
	rig_pass(r, SLU_SEC);
	rig_reopen(r);
	CHECK_EQ(0, rig_settle_one(r, OP_ACK, leased, token));
	rig_put(r, "q", NULL);
	CHECK_EQ(1, rig_claim(r, "q", 10), "what comes later is not purged");
}

/* ---- Looking ---- */

/* MQ-36, by id. */
CASE(another_namespace_sees_nothing_even_by_id)
{
	static const enum op_verb verbs[] = { OP_ACK, OP_NACK, OP_EXTEND, OP_DELETE, OP_REDRIVE };
	struct op_row row;
	struct op_item item = { .space = SLICE("b") };
	struct op op;

	rig_put(r, "q", &(struct rig_msg){ .space = "b" });
	item.id = rig_put(r, "q", NULL);
	rig_claim(r, "q", 1);
	item.token = r->rows[0].token;
	EACH(i, verbs)
		CHECK_EQ(SLU_ENOTFOUND, rig_item(r, verbs[i], &item), op_verb_name(verbs[i]));
	rig_op(&op, OP_GET, "b", "");
	op.id = item.id;
	op.rows = &row;
	op.max_rows = 1;
	CHECK_EQ(SLU_ENOTFOUND, rig_do(r, &op));
	rig_op(&op, OP_RESULT, "b", "");
	op.id = item.id;
	CHECK_EQ(SLU_ENOTFOUND, rig_do(r, &op));
}

CASE(a_message_of_another_queue_is_not_found)
{
	struct op_item item = { .queue = SLICE("other") };

	rig_put(r, "other", NULL);
	item.id = rig_put(r, "q", NULL);
	rig_claim(r, "q", 1);
	CHECK_EQ(SLU_ENOTFOUND, rig_item(r, OP_ACK, &item));
	item.queue = SLICE("never used");
	CHECK_EQ(SLU_ENOTFOUND, rig_item(r, OP_ACK, &item));
}

CASE(peeking_shows_the_order_and_takes_nothing)
{
	const uint64_t low = rig_put(r, "q", &(struct rig_msg){ .prio = 9 });
	const uint64_t high = rig_put(r, "q", &(struct rig_msg){ .prio = 1 });

	CHECK_EQ(2, rig_peek(r, "q", 10));
	CHECK_EQ(high, r->rows[0].id);
	CHECK_EQ(low, r->rows[1].id);
	CHECK_EQ(1, rig_peek(r, "q", 1));
	CHECK_EQ(high, rig_claim_one(r, "q"));
	CHECK_EQ(1, r->rows[0].attempts);
	CHECK_EQ(0, rig_peek(r, "never used", 1));
}

CASE(a_list_shows_each_message_once)
{
	bool seen[3000] = { false };
	uint32_t n = 0;

	for (uint32_t i = 0; i < 2500; i++)
		rig_put(r, i % 2 ? "q" : "other", NULL);
	r->cursor = 0;
	do {
		rig_list(r, "q", MSG_READY, 300);
		for (uint32_t i = 0; i < r->n; i++, n++) {
			CHECK(!seen[r->rows[i].id]);
			seen[r->rows[i].id] = true;
		}
	} while (r->cursor);
	CHECK_EQ(1250, n);
}

CASE(a_list_can_be_of_one_state)
{
	rig_put(r, "q", NULL);
	rig_put(r, "q", NULL);
	rig_put(r, "q", &(struct rig_msg){ .delay = SLU_HOUR });
	rig_claim(r, "q", 1);
	for (enum msg_state state = MSG_READY; state <= MSG_LEASED; state++) {
		r->cursor = 0;
		CHECK_EQ(1, rig_list(r, "q", state, 10));
		CHECK_EQ(state, r->rows[0].state);
	}
	r->cursor = 0;
	CHECK_EQ(3, rig_list(r, "q", MSG_NONE, 10));
	r->cursor = 0;
	CHECK_EQ(3, rig_list(r, "", MSG_NONE, 10), "of all queues");
}

/* MQ-17: these queues were not declared before. */
CASE(topics_are_all_queues_of_a_namespace)
{
	struct op op;

	rig_put(r, "a", NULL);
	rig_put(r, "b", NULL);
	rig_put(r, "b", NULL);
	rig_put(r, "c", &(struct rig_msg){ .space = "elsewhere" });
	rig_op(&op, OP_QUEUES, RIG_SPACE, "");
	op.queues = r->queues;
	op.max_queues = 1;
	CHECK_EQ(0, rig_do(r, &op));
	CHECK_EQ(1, op.n_queues);
	CHECK_STR("a", r->queues[0].name);
	CHECK_EQ(0, rig_do(r, &op));
	CHECK_EQ(1, op.n_queues);
	CHECK_STR("b", r->queues[0].name);
	CHECK_EQ(2, r->queues[0].count[MSG_READY]);
	CHECK_EQ(0, rig_do(r, &op));
	CHECK_EQ(0, op.n_queues);
	CHECK_EQ(0, op.cursor);
}

CASE(an_unknown_queue_is_empty)
{
	struct op op;

	CHECK_EQ(0, rig_claim(r, "q", 1));
	CHECK_EQ(SLU_ENOTFOUND, rig_settle_one(r, OP_ACK, 1, 0));
	rig_op(&op, OP_STATS, RIG_SPACE, "q");
	op.queues = r->queues;
	CHECK_EQ(SLU_ENOTFOUND, rig_do(r, &op));
	rig_op(&op, OP_PURGE, RIG_SPACE, "q");
	CHECK_EQ(0, rig_do(r, &op));
}

/* ---- Bounds ---- */

CASE(a_claim_ends_when_it_has_bytes_enough)
{
	static const char half[] = "0123456789012345678901234567890123456789";

	for (int i = 0; i < 4; i++)
		rig_put(r, "q", &(struct rig_msg){ .payload = half });
	rig_unpin(r);
	rig_op(&r->op, OP_CLAIM, RIG_SPACE, "q");
	r->op.rows = r->rows;
	r->op.max_rows = 10;
	r->op.claim.max_bytes = 1;
	CHECK_EQ(0, rig_do(r, &r->op));
	CHECK_EQ(1, r->op.n_rows, "at least one");
	CHECK_EQ(3, rig_count(r, "q", MSG_READY), "the others were not touched");
	r->n = r->op.n_rows;
	r->op.claim.max_bytes = 2ull * r->rows[0].record.size;
	rig_unpin(r);
	CHECK_EQ(0, rig_do(r, &r->op));
	CHECK_EQ(2, r->op.n_rows);
	r->n = r->op.n_rows;
}

CASE(a_run_does_so_much_and_no_more)
{
	struct slu_err err;

	rig_fill(r, "q", &(struct rig_msg){ .delay = SLU_SEC }, 10000);
	r->now += SLU_SEC;
	CHECK_EQ(0, engine_run(r->e, NULL, r->now, r->now, &err));
	CHECK(r->e->ops->next_due(r->e) <= r->now);
	CHECK_STR("q", rig_woken(r));
	rig_pass(r, 0);
	CHECK_EQ(10000, rig_count(r, "q", MSG_READY));
}

/* ---- Waking ---- */

CASE(it_says_when_something_can_be_claimed)
{
	rig_put(r, "a", NULL);
	CHECK_STR("a", rig_woken(r));
	rig_put(r, "b", &(struct rig_msg){ .delay = SLU_SEC });
	CHECK_STR("", rig_woken(r));
	rig_pass(r, SLU_SEC);
	CHECK_STR("b", rig_woken(r));
	rig_claim_for(r, "b", SLU_SEC);
	CHECK_STR("", rig_woken(r));
	rig_pass(r, SLU_SEC);
	CHECK_STR("b", rig_woken(r));
}

/* PW-F17, on every engine that has kinds; the others refuse them. */
CASE(claims_take_kinds_after_a_restart_a_retry_and_a_redrive)
{
	struct op_item nack = { .time = 0 };
	const uint64_t a = rig_put(r, "q", &(struct rig_msg){ .share = "\1a", .max_attempts = 2 });
	const uint64_t b = a ? rig_put(r, "q", &(struct rig_msg){ .share = "\1b" }) : 0;
	uint64_t token;

	if (!a) {
		CHECK_EQ(SLU_EINVAL, r->op.rc);
		CHECK_EQ(0, rig_claim_kinds(r, "q", "\1a", 1));
		CHECK_EQ(SLU_EINVAL, r->op.rc);
		return;
	}
	rig_reopen(r);
	CHECK_EQ(b, rig_claim_kinds(r, "q", "\1b", 10));
	CHECK(slice_eq(rig_read(r, 0)->share, SLICE("\1b")));
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(a, rig_claim_kinds(r, "q", "\1a", 10));
		token = r->rows[0].token;
		nack.id = a;
		nack.token = token;
		CHECK_EQ(0, rig_item(r, OP_NACK, &nack));
	}
	CHECK_EQ(1, rig_count(r, "q", MSG_DEAD));
	rig_reopen(r);
	CHECK_EQ(0, rig_claim_kinds(r, "q", "\1a", 10));
	CHECK_EQ(0, rig_settle_one(r, OP_REDRIVE, a, 0));
	rig_reopen(r);
	CHECK_EQ(0, rig_claim_kinds(r, "q", "\1b", 10), "it is leased");
	CHECK_EQ(a, rig_claim_kinds(r, "q", "\1a", 10));
}
