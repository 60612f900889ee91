/*
 * What an engine must do: messages, leases, attempts, time. engine_rig.h has the rows: the same cases run in memory, on a
 * log, on a log in a store and on Redis (LQ-38).
 */
#include "engine_rig.h"

#include <stdlib.h>

enum {
	MANY = 1000
};

/* ---- Messages come back as they were ---- */

CASE(a_message_comes_back_with_all_it_had)
{
	struct op_put put = rig_whole_put();
	const slu_time at = r->now;

	CHECK_EQ(0, rig_puts(r, "q", &put, 1));
	rig_reopen(r);
	rig_check_whole(r, at);
}

/* An empty payload is allowed. */
CASE(a_message_needs_no_payload)
{
	rig_put(r, "q", NULL);
	CHECK_EQ(1, rig_claim(r, "q", 1));
	CHECK_EQ(0, rig_read(r, 0)->payload.n);
}

CASE(a_record_can_be_read_after_its_message_is_gone)
{
	struct op op;
	struct op_row row;

	rig_put(r, "q", &(struct rig_msg){ .payload = "still here" });
	rig_op(&op, OP_CLAIM, RIG_SPACE, "q");
	op.rows = &row;
	op.max_rows = 1;
	CHECK_EQ(0, rig_do(r, &op));
	CHECK_EQ(0, rig_settle_one(r, OP_ACK, row.id, row.token));
	r->rows[0] = row;
	r->n = 1;
	CHECK(slice_eq(SLICE("still here"), rig_read(r, 0)->payload));
}

/* ---- Order ---- */

static int
by_prio_then_id(const void *a, const void *b)
{
	const struct op_row *x = a, *y = b;

	if (x->prio != y->prio)
		return x->prio < y->prio ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* MQ-19, MQ-39 */
CASE(a_thousand_random_messages_come_out_sorted)
{
	static struct op_row want[MANY];
	uint64_t random = test_seed();

	for (uint32_t i = 0; i < MANY; i++) {
		want[i].prio = (int32_t)(test_random(&random) % 7) - 3;
		want[i].id = rig_put(r, "q", &(struct rig_msg){ .prio = want[i].prio });
	}
	qsort(want, MANY, sizeof want[0], by_prio_then_id);
	CHECK_EQ(MANY, rig_claim(r, "q", MANY));
	for (uint32_t i = 0; i < MANY; i++)
		CHECK_EQ(want[i].id, r->rows[i].id);
}

/* MQ-29 */
CASE(an_urgent_message_overtakes_all_that_are_not_handed_out)
{
	rig_put(r, "q", NULL);
	rig_put(r, "q", NULL);
	rig_claim(r, "q", 1);

	const uint64_t urgent = rig_put(r, "q", &(struct rig_msg){ .prio = -1 });

	CHECK_EQ(urgent, rig_claim_one(r, "q"));
}

CASE(of_one_priority_the_earlier_due_goes_first)
{
	const uint64_t late = rig_put(r, "q", &(struct rig_msg){ .delay = 2 * SLU_SEC });
	const uint64_t soon = rig_put(r, "q", &(struct rig_msg){ .delay = SLU_SEC });
	uint64_t now;

	rig_pass(r, 3 * SLU_SEC);
	now = rig_put(r, "q", NULL);
	CHECK_EQ(3, rig_claim(r, "q", 10));
	CHECK_EQ(soon, r->rows[0].id);
	CHECK_EQ(late, r->rows[1].id);
	CHECK_EQ(now, r->rows[2].id);
}

/* ---- Delay: MQ-18, LQ-32 ---- */

CASE(a_delayed_message_is_not_handed_out_before_its_time)
{
	const uint64_t id = rig_put(r, "q", &(struct rig_msg){ .delay = SLU_SEC });

	CHECK_EQ(r->now + SLU_SEC, r->e->ops->next_due(r->e));
	rig_pass(r, SLU_SEC - 1);
	CHECK_EQ(0, rig_claim(r, "q", 1));
	CHECK_EQ(1, rig_count(r, "q", MSG_DELAYED));
	rig_pass(r, 1);
	CHECK_EQ(id, rig_claim_one(r, "q"));
}

CASE(a_due_moment_is_kept_over_a_restart)
{
	const slu_time due = r->now + SLU_HOUR;

	rig_put(r, "q", &(struct rig_msg){ .due = due });
	rig_reopen(r);
	rig_pass(r, due - 1 - r->now);
	CHECK_EQ(0, rig_claim(r, "q", 1));
	rig_pass(r, 1);
	CHECK_EQ(1, rig_claim(r, "q", 1));
	CHECK_EQ(due, r->rows[0].due);
}

CASE(a_claim_sees_messages_that_fell_due_since_the_last_run)
{
	rig_put(r, "q", &(struct rig_msg){ .delay = SLU_SEC });
	r->now += SLU_SEC; /* no run */
	CHECK_EQ(1, rig_claim(r, "q", 1));
}

/* ---- Leases ---- */

/* LQ-18, LQ-19, MQ-22 */
CASE(a_leased_message_is_not_handed_out_until_its_lease_ends)
{
	rig_put(r, "q", NULL);
	CHECK_EQ(1, rig_claim_for(r, "q", 10 * SLU_SEC));
	CHECK_EQ(r->now + 10 * SLU_SEC, r->rows[0].until);
	CHECK_EQ(MSG_LEASED, r->rows[0].state);
	CHECK_EQ(1, r->rows[0].attempts);
	CHECK(r->rows[0].token > 0);
	CHECK_EQ(0, rig_claim(r, "q", 1));
	CHECK_EQ(1, rig_count(r, "q", MSG_LEASED));
}

/* LQ-01, MQ-33: the consumer died. */
CASE(a_lease_that_ran_out_gives_the_message_back)
{
	uint64_t token;

	rig_put(r, "q", NULL);
	rig_claim_for(r, "q", 10 * SLU_SEC);
	token = r->rows[0].token;
	CHECK(r->e->ops->next_due(r->e) <= r->now + 10 * SLU_SEC); /* it may sync before */
	rig_pass(r, 10 * SLU_SEC - 1);
	CHECK_EQ(0, rig_claim(r, "q", 1), "not before");
	rig_pass(r, 1);
	CHECK_EQ(1, rig_claim(r, "q", 1));
	CHECK_EQ(2, r->rows[0].attempts);
	CHECK_EQ(1, r->rows[0].failures);
	CHECK(r->rows[0].token > token);
}

CASE(a_lease_lasts_as_long_as_its_queue_says)
{
	struct policy policy = policy_default;

	policy.lease = 3 * SLU_SEC;
	rig_policy(r, "q", &policy);
	rig_put(r, "q", NULL);
	rig_put(r, "default", NULL);
	rig_claim(r, "q", 1);
	CHECK_EQ(r->now + 3 * SLU_SEC, r->rows[0].until);
	rig_claim(r, "default", 1);
	CHECK_EQ(r->now + 30 * SLU_SEC, r->rows[0].until);
}

CASE(a_lease_is_at_most_twelve_hours)
{
	rig_put(r, "q", NULL);
	CHECK_EQ(1, rig_claim_for(r, "q", 100 * SLU_HOUR));
	CHECK_EQ(r->now + 12 * SLU_HOUR, r->rows[0].until);
}

CASE(an_extension_counts_from_now)
{
	struct op_item item = { .time = 20 * SLU_SEC };

	rig_put(r, "q", NULL);
	rig_claim_for(r, "q", 10 * SLU_SEC);
	item.id = r->rows[0].id;
	item.token = r->rows[0].token;
	rig_pass(r, 5 * SLU_SEC);
	CHECK_EQ(0, rig_item(r, OP_EXTEND, &item));
	CHECK_EQ(r->now + 20 * SLU_SEC, item.until);
	rig_pass(r, 20 * SLU_SEC - 1);
	CHECK_EQ(0, rig_claim(r, "q", 1));
	CHECK_EQ(0, rig_get(r, item.id));
	CHECK(r->rows[0].flags & MSG_EXTENDED);
	rig_pass(r, 1);
	CHECK_EQ(1, rig_claim(r, "q", 1));
}

/* ---- Tokens ---- */

CASE(what_a_stale_token_sends_changes_nothing)
{
	static const enum op_verb verbs[] = { OP_ACK, OP_NACK, OP_EXTEND };
	uint64_t id, old, token;

	id = rig_put(r, "q", NULL);
	rig_claim_for(r, "q", SLU_SEC);
	old = r->rows[0].token;
	rig_pass(r, SLU_SEC);
	EACH(i, verbs)
		CHECK_EQ(SLU_ELEASE, rig_settle_one(r, verbs[i], id, old), "nobody holds it");
	rig_claim(r, "q", 1);
	token = r->rows[0].token;
	EACH(i, verbs)
		CHECK_EQ(SLU_ELEASE, rig_settle_one(r, verbs[i], id, old), "another does");
	CHECK_EQ(0, rig_settle_one(r, OP_ACK, id, token));
}

CASE(tokens_and_numbers_rise_also_over_a_restart)
{
	uint64_t last = 0;

	for (int i = 0; i < 20; i++) {
		rig_put(r, "q", NULL);
		CHECK_EQ(1, rig_claim(r, "q", 1));
		CHECK(r->rows[0].number > last);
		CHECK(r->rows[0].token > r->rows[0].number);
		last = r->rows[0].token;
		if (i % 5 == 0)
			rig_reopen(r);
	}
}

/* ---- Ack ---- */

CASE(what_is_acked_is_gone_for_good)
{
	rig_put(r, "q", NULL);
	rig_claim(r, "q", 1);
	CHECK_EQ(0, rig_settle_one(r, OP_ACK, r->rows[0].id, r->rows[0].token));
	CHECK_EQ(SLU_ENOTFOUND, rig_settle_one(r, OP_ACK, r->rows[0].id, r->rows[0].token));
	rig_reopen(r);
	rig_pass(r, SLU_HOUR);
	CHECK_EQ(0, rig_claim(r, "q", 1));
	CHECK_EQ(0, rig_list(r, "q", MSG_NONE, 10));
}

CASE(an_ack_by_id_alone_acts_for_the_current_holder)
{
	const uint64_t id = rig_put(r, "q", NULL);

	CHECK_EQ(SLU_ELEASE, rig_settle_one(r, OP_ACK, id, 0), "nobody does");
	rig_claim(r, "q", 1);
	CHECK_EQ(0, rig_settle_one(r, OP_ACK, id, 0));
}

CASE(a_queue_may_require_the_token)
{
	struct policy policy = policy_default;
	uint64_t id;

	policy.require_lease = true;
	rig_policy(r, "q", &policy);
	id = rig_put(r, "q", NULL);
	rig_claim(r, "q", 1);
	CHECK_EQ(SLU_ELEASE, rig_settle_one(r, OP_ACK, id, 0));
	CHECK_EQ(0, rig_settle_one(r, OP_ACK, id, r->rows[0].token));
}

/* ENGINE-4: the shard was late, the holder was not. */
CASE(an_ack_is_judged_by_when_it_arrived)
{
	struct op_item item = { 0 };
	struct slu_err err;
	struct op op;

	rig_put(r, "q", NULL);
	rig_claim_for(r, "q", SLU_SEC);
	item.id = r->rows[0].id;
	item.token = r->rows[0].token;
	rig_op(&op, OP_ACK, RIG_SPACE, "q");
	op.items = &item;
	op.n_items = 1;
	op.route.arrived = op.route.before = r->now + SLU_SEC - 1;
	r->now += SLU_MIN;
	CHECK_EQ(0, engine_run(r->e, &op, r->now, r->now, &err));
	CHECK_EQ(0, item.rc);
}

CASE(each_item_has_its_own_outcome)
{
	struct op_item items[3] = { 0 };
	struct op op;

	rig_put(r, "q", NULL);
	rig_put(r, "q", NULL);
	rig_claim(r, "q", 2);
	items[0].id = r->rows[0].id;
	items[0].token = r->rows[0].token;
	items[1].id = 999999;
	items[2].id = r->rows[1].id;
	items[2].token = r->rows[1].token + 1000;
	rig_op(&op, OP_ACK, RIG_SPACE, "q");
	op.items = items;
	op.n_items = 3;
	CHECK_EQ(0, rig_do(r, &op));
	CHECK_EQ(0, items[0].rc);
	CHECK_EQ(SLU_ENOTFOUND, items[1].rc);
	CHECK_EQ(SLU_ELEASE, items[2].rc);
}

/* ---- Nack: MQ-31, MQ-32 ---- */

CASE(a_nack_counts_a_failure_and_waits_as_the_policy_says)
{
	struct op_item item = { .time = LEDGER_BY_POLICY, .text = SLICE("boom") };
	struct policy policy = policy_default;

	policy.retry = (struct slu_backoff){
		.kind = SLU_BACKOFF_EXPONENTIAL,
		.base = SLU_SEC,
		.max = SLU_MIN,
	};
	rig_policy(r, "q", &policy);
	item.id = rig_put(r, "q", NULL);
	for (int i = 1; i <= 3; i++) {
		const slu_time delay = SLU_SEC << (i - 1);

		CHECK_EQ(item.id, rig_claim_one(r, "q"));
		CHECK_EQ(i, r->rows[0].attempts);
		CHECK_EQ(i - 1, r->rows[0].failures);
		CHECK_EQ(0, rig_item(r, OP_NACK, &item));
		CHECK(!item.died);
		CHECK_EQ(r->now + delay, item.until);
		rig_pass(r, delay - 1);
		CHECK_EQ(0, rig_claim(r, "q", 1));
		rig_pass(r, 1);
	}
	CHECK_EQ(0, rig_get(r, item.id));
	CHECK_STR("boom", rig_error(r, 0));
}

CASE(jitter_stays_below_the_delay)
{
	struct op_item item = { .time = LEDGER_BY_POLICY };

	for (int i = 0; i < 50; i++) {
		item.id = rig_put(r, "q", NULL);
		item.token = 0;
		CHECK_EQ(item.id, rig_claim_one(r, "q"));
		CHECK_EQ(0, rig_item(r, OP_NACK, &item));
		CHECK(item.until >= r->now && item.until <= r->now + SLU_SEC);
		rig_settle_one(r, OP_DELETE, item.id, 0);
	}
}

CASE(an_explicit_delay_wins)
{
	struct op_item item = { .time = 7 * SLU_SEC };

	item.id = rig_put(r, "q", NULL);
	rig_claim(r, "q", 1);
	CHECK_EQ(0, rig_item(r, OP_NACK, &item));
	CHECK_EQ(r->now + 7 * SLU_SEC, item.until);
}

CASE(a_nack_without_delay_makes_it_ready_at_once)
{
	struct op_item item = { .time = 0 };

	item.id = rig_put(r, "q", NULL);
	rig_claim(r, "q", 1);
	rig_woken(r);
	CHECK_EQ(0, rig_item(r, OP_NACK, &item));
	CHECK_STR("q", rig_woken(r));
	CHECK_EQ(item.id, rig_claim_one(r, "q"));
}

CASE(a_deferral_counts_as_no_failure)
{
	struct op_item item = { .time = SLU_SEC, .defer = true };

	item.id = rig_put(r, "q", NULL);
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(item.id, rig_claim_one(r, "q"));
		CHECK_EQ(0, rig_item(r, OP_NACK, &item));
		rig_pass(r, SLU_SEC);
	}
	CHECK_EQ(item.id, rig_claim_one(r, "q"));
	CHECK_EQ(0, r->rows[0].failures);
	CHECK_EQ(21, r->rows[0].attempts);
}

/* ---- Return: invariant 13 ---- */

CASE(what_was_not_received_is_as_if_it_had_not_been_handed_out)
{
	const uint64_t first = rig_put(r, "q", NULL);
	uint64_t token;

	rig_put(r, "q", NULL);
	rig_claim(r, "q", 1);
	token = r->rows[0].token;
	rig_woken(r);
	rig_return(r);
	CHECK_STR("q", rig_woken(r));
	CHECK_EQ(SLU_ELEASE, rig_settle_one(r, OP_ACK, first, token), "the token is spent");
	CHECK_EQ(first, rig_claim_one(r, "q"));
	CHECK_EQ(1, r->rows[0].attempts);
	CHECK_EQ(0, r->rows[0].failures);
	CHECK(r->rows[0].token > token);
}

CASE(a_return_after_the_lease_ended_changes_nothing)
{
	rig_put(r, "q", NULL);
	rig_claim_for(r, "q", SLU_SEC);
	rig_pass(r, SLU_SEC);
	rig_return(r);
	CHECK_EQ(1, rig_claim(r, "q", 1));
	CHECK_EQ(2, r->rows[0].attempts);
}

/* ---- The end: LQ-33, LQ-37 ---- */

/* Fail it once, by a nack or by letting its lease run out. */
static void
fail_once(struct rig *r, const char *queue, uint64_t id, bool by_nack)
{
	struct op_item item = { .id = id, .text = SLICE("bad") };

	CHECK_EQ(1, rig_claim_for(r, queue, SLU_SEC));
	CHECK_EQ(id, r->rows[0].id);
	if (by_nack)
		CHECK_EQ(0, rig_item(r, OP_NACK, &item));
	rig_pass(r, SLU_SEC);
}

CASE(it_dies_after_max_attempts_failures_whatever_the_mix)
{
	static const bool nacks[][3] = {
		{ true, true, true },
		{ false, false, false },
		{ true, false, true },
		{ false, true, false },
	};

	EACH(i, nacks) {
		const uint64_t id = rig_put(r, "q", &(struct rig_msg){ .max_attempts = 3 });

		for (int k = 0; k < 3; k++) {
			CHECK_EQ(1, rig_count(r, "q", MSG_READY));
			fail_once(r, "q", id, nacks[i][k]);
		}
		CHECK_EQ(0, rig_claim(r, "q", 1));
		CHECK_EQ(0, rig_get(r, id));
		CHECK_EQ(MSG_DEAD, r->rows[0].state);
		CHECK_EQ(DEAD_MAX_ATTEMPTS, r->rows[0].reason);
		CHECK_EQ(3, r->rows[0].failures);
		CHECK_EQ(i + 1, rig_count(r, "q", MSG_DEAD));
	}
}

CASE(a_rejected_message_is_dead_at_once)
{
	struct op_item item = { .dead = true, .text = SLICE("no such user") };

	item.id = rig_put(r, "q", NULL);
	rig_claim(r, "q", 1);
	CHECK_EQ(0, rig_item(r, OP_NACK, &item));
	CHECK(item.died);
	rig_reopen(r);
	CHECK_EQ(1, rig_list(r, "q", MSG_DEAD, 10));
	CHECK_EQ(DEAD_REJECTED, r->rows[0].reason);
	CHECK_STR("no such user", rig_error(r, 0));
}

/* ---- Time to live: LQ-34 ---- */

CASE(an_expired_message_is_a_dead_letter)
{
	const uint64_t id = rig_put(r, "q", &(struct rig_msg){ .ttl = SLU_MIN });

	CHECK_EQ(r->now + SLU_MIN, r->e->ops->next_due(r->e));
	rig_pass(r, SLU_MIN - 1);
	CHECK_EQ(1, rig_count(r, "q", MSG_READY));
	rig_pass(r, 1);
	CHECK_EQ(0, rig_claim(r, "q", 1));
	CHECK_EQ(0, rig_get(r, id));
	CHECK_EQ(MSG_DEAD, r->rows[0].state);
	CHECK_EQ(DEAD_EXPIRED, r->rows[0].reason);
}

CASE(a_ttl_never_ends_a_lease)
{
	uint64_t token;
	const uint64_t id = rig_put(r, "q", &(struct rig_msg){ .ttl = SLU_SEC });

	rig_claim_for(r, "q", SLU_MIN);
	token = r->rows[0].token;
	rig_pass(r, 30 * SLU_SEC);
	CHECK_EQ(0, rig_settle_one(r, OP_ACK, id, token));
}

CASE(a_queue_may_have_a_ttl)
{
	struct policy policy = policy_default;

	policy.ttl = SLU_SEC;
	rig_policy(r, "q", &policy);
	rig_put(r, "q", NULL);
	rig_pass(r, SLU_SEC);
	CHECK_EQ(1, rig_count(r, "q", MSG_DEAD));
}

/* ---- Damage ---- */

/* DESIGN section 3: visible, never handed out, never deleted. */
CASE(a_message_that_is_set_aside_is_counted_and_never_handed_out)
{
	const uint64_t id = rig_put(r, "q", &(struct rig_msg){ .key = "k", .ttl = SLU_HOUR });
	const uint64_t next = rig_put(r, "q", &(struct rig_msg){ .key = "k" });

	CHECK_EQ(id, rig_claim_one(r, "q"));
	CHECK_EQ(SLU_ELEASE, rig_settle_one(r, OP_QUARANTINE, id, r->rows[0].token + 1));
	CHECK_EQ(0, rig_settle_one(r, OP_QUARANTINE, id, r->rows[0].token));
	CHECK_EQ(1, rig_count(r, "q", MSG_DAMAGED));
	CHECK_EQ(next, rig_claim_one(r, "q"), "its key goes on without it");
	rig_pass(r, 24 * SLU_HOUR);
	rig_reopen(r);
	CHECK_EQ(1, rig_count(r, "q", MSG_DAMAGED));
	CHECK_EQ(1, rig_list(r, "q", MSG_DAMAGED, 10));
	CHECK_EQ(id, r->rows[0].id);
	CHECK_EQ(0, r->rows[0].attempts, "nobody had it");
	CHECK_EQ(next, rig_claim_one(r, "q"));
	CHECK_EQ(0, rig_claim(r, "q", 10));
}

CASE(only_delete_ends_what_is_set_aside)
{
	const uint64_t id = rig_put(r, "q", NULL);
	struct op op;

	CHECK_EQ(id, rig_claim_one(r, "q"));
	CHECK_EQ(0, rig_settle_one(r, OP_QUARANTINE, id, r->rows[0].token));
	rig_put(r, "q", NULL);
	rig_op(&op, OP_PURGE, RIG_SPACE, "q");
	CHECK_EQ(0, rig_do(r, &op));
	rig_pass(r, SLU_SEC);
	CHECK_EQ(0, rig_count(r, "q", MSG_READY));
	CHECK_EQ(1, rig_count(r, "q", MSG_DAMAGED));
	CHECK_EQ(SLU_ENOTFOUND, rig_settle_one(r, OP_REDRIVE, id, 0));
	CHECK_EQ(SLU_ELEASE, rig_settle_one(r, OP_ACK, id, 0));
	CHECK_EQ(0, rig_settle_one(r, OP_DELETE, id, 0));
	CHECK_EQ(0, rig_count(r, "q", MSG_DAMAGED));
	CHECK_EQ(SLU_ENOTFOUND, rig_get(r, id));
}

/* ---- Reopening (ENGINE-2) ---- */

static int
reopen(struct rig *r)
{
	struct engine_conf conf = { .wall = r->now };
	struct engine_found found = { 0 };
	struct slu_err err = { 0 };
	int rc;

	if (r->row->prepare)
		r->row->prepare(&conf, r->second);
	rc = r->e->ops->reopen(r->e, &conf, &found, &err);
	if (!rc) {
		CHECK(found.now >= r->now && found.highest_id == r->next_id - 1);
		r->now = found.now;
	}
	return rc;
}

CASE(an_engine_with_files_reopens_in_place_once_no_record_is_pinned)
{
	uint64_t id;

	if (!r->e->ops->folder)
		return;
	id = rig_put(r, "q", NULL);
	CHECK_EQ(1, rig_claim(r, "q", 1));
	CHECK_EQ(SLU_EBUSY, reopen(r));
	CHECK_EQ(id, rig_read(r, 0)->id);
	rig_unpin(r);
	CHECK_EQ(0, reopen(r));
	CHECK_EQ(0, rig_claim(r, "q", 1)); /* the lease is still there */
	CHECK(rig_put(r, "q", NULL) > id);
	CHECK_EQ(1, rig_claim(r, "q", 1));
}
