/*
 * The checker of `sluice torture` finds what is wrong, and nothing else: for every rule a
 * history that breaks it and no other, and histories that come close and keep them all.
 */
#include "torture/check.h"

#include "test.h"

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

/* --- ways to break it ----------------------------------------------------------------- */

/* What is taken out becomes nothing that a rule looks at. */
static void
take_out(struct history *h, int which)
{
	h->events[which].kind = EVENT_FAULT;
}

static void
count(struct history *h, enum event_state state, int more)
{
	h->looks[0].counts[state] += (uint64_t)(int64_t)more;
	h->looks[0].counts[STATE_TOTAL] += (uint64_t)(int64_t)more;
}

static void
add_row(struct history *h, uint64_t id, uint64_t name, enum event_state state)
{
	const struct event e = { .kind = EVENT_ROW, .start = 300, .end = 310, .id = id, .name = name, .state = (uint8_t)state };

	history_add(h, &e);
	count(h, state, 1);
}

static void
lose(struct history *h)
{
	take_out(h, ROW_D);
	count(h, STATE_READY, -1);
}

static void
ack_twice(struct history *h)
{
	struct event e = good[ACK_A];

	e.start = 125; /* at once: neither came after the other */
	history_add(h, &e);
}

static void
leave_stuck(struct history *h)
{
	h->must_be_empty = true;
}

static void
change_bytes(struct history *h)
{
	h->events[CLAIM_C].damaged = true;
}

static void
keep_refused(struct history *h)
{
	add_row(h, 6, F, STATE_READY);
}

static void
keep_twice(struct history *h)
{
	add_row(h, 7, E, STATE_READY);
}

static void
deliver_after_ack(struct history *h)
{
	struct event e = good[CLAIM_A_AGAIN];

	e.start = 250;
	e.end = 260;
	e.token = 20;
	e.granted = 2500;
	e.until = 2800;
	e.attempts = 3;
	history_add(h, &e);
}

static void
overlap(struct history *h)
{
	h->events[CLAIM_C_AGAIN].granted = 1199;
}

static void
overlap_of_key(struct history *h)
{
	h->events[ACK_A].outcome = OUTCOME_FAILED;
	add_row(h, 1, A, STATE_LEASED);
}

static void
repeat_token(struct history *h)
{
	h->events[CLAIM_C].token = 12;
}

static void
repeat_token_of_a_key(struct history *h)
{
	h->several = true;
	h->events[CLAIM_B].token = h->events[ACK_B].token = 11;
}

static void
token_of_the_past(struct history *h)
{
	h->token_floor = 10;
}

static void
tokens_fall(struct history *h)
{
	h->events[CLAIM_C_AGAIN].start = 155;
	h->events[CLAIM_C_AGAIN].end = 165;
}

static void
tokens_of_key_fall(struct history *h)
{
	h->events[CLAIM_B].start = 52;
	h->events[CLAIM_B].end = 58;
}

static void
miscount_deliveries(struct history *h)
{
	h->events[CLAIM_C_AGAIN].attempts = 1;
	h->events[CLAIM_C_AGAIN].failures = 0;
}

static void
take_stale_token(struct history *h)
{
	h->events[ACK_C].kind = EVENT_EXTEND;
	h->events[ACK_C].outcome = OUTCOME_OK;
	h->events[ACK_C].until = 1200;
}

static void
extend_after_nack(struct history *h)
{
	struct event e = good[EXTEND_A];

	e.token = 10;
	e.start = 92;
	e.end = 95;
	e.until = 1050;
	history_add(h, &e);
}

static void
later_index_first(struct history *h)
{
	h->events[PUSH_A].index = 1;
	h->events[PUSH_B].index = 0;
}

static void
later_call_first(struct history *h)
{
	h->events[PUSH_A].call = 9;
	h->events[PUSH_A].start = 20;
	h->events[PUSH_A].end = 30;
}

static void
later_due_first(struct history *h)
{
	h->events[CLAIM_B].due = 999;
}

static void
come_early(struct history *h)
{
	h->events[CLAIM_C].due = 1171;
}

static void
come_again_early(struct history *h)
{
	h->events[NACK_A].until = 1101;
}

static void
two_places(struct history *h)
{
	add_row(h, 3, C, STATE_READY);
}

static void
hide_dead(struct history *h)
{
	take_out(h, DEAD_E);
}

static void
list_the_living(struct history *h)
{
	struct event e = good[DEAD_E];

	e.id = 4;
	history_add(h, &e);
}

static void
come_from_the_dead(struct history *h)
{
	h->events[NACK_A].state = STATE_DEAD;
	h->events[NACK_A].until = 0;
}

static void
come_after_the_last_failure(struct history *h)
{
	h->events[CLAIM_C_AGAIN].failures = 4;
	h->events[CLAIM_C_AGAIN].attempts = 5;
}

static void
fail_undelivered(struct history *h)
{
	h->events[CLAIM_C].failures = 1;
}

static void
miscount(struct history *h)
{
	h->looks[0].counts[STATE_HELD]++;
}

static void
miscount_total(struct history *h)
{
	h->looks[0].counts[STATE_TOTAL]++;
}

static void
two_holders(struct history *h)
{
	h->events[RELEASE_X].outcome = OUTCOME_FAILED;
}

static void
lock_token_of_the_past(struct history *h)
{
	h->lock_tokens[1] = 30;
}

static void
update_after_release(struct history *h)
{
	struct event e = good[UPDATE_X];

	e.start = 132;
	e.end = 135;
	history_add(h, &e);
}

static void
update_after_the_next(struct history *h)
{
	h->events[UPDATE_X].start = 155;
	h->events[UPDATE_X].end = 156;
	h->events[RELEASE_X].outcome = OUTCOME_UNKNOWN;
}

static void
lose_a_commit(struct history *h)
{
	h->events[READ_Y].name = 6;
}

static void
commit_twice(struct history *h)
{
	h->events[UPDATE_Y].name = h->events[RELEASE_Y].name = 7;
}

static void
lose_an_old_commit(struct history *h)
{
	h->lock_values[1] = 7;
}

static void
crash(struct history *h)
{
	history_add(h, &(struct event){ .kind = EVENT_EXIT, .start = 250, .end = 250, .id = 6 });
}

static void
leak_files(struct history *h)
{
	history_add(h, &(struct event){ .kind = EVENT_GAUGE, .name = 20, .id = 10 * MIB });
	history_add(h, &(struct event){ .kind = EVENT_GAUGE, .name = 200, .id = 10 * MIB });
}

static void
leak_memory(struct history *h)
{
	history_add(h, &(struct event){ .kind = EVENT_GAUGE, .name = 20, .id = 10 * MIB });
	history_add(h, &(struct event){ .kind = EVENT_GAUGE, .name = 20, .id = 300 * MIB });
}

/* clang-format off */
static const struct {
	const char *rule;
	void (*breaks)(struct history *h);
	const char *label;
} breaks[] = {
	{ "kept", lose, "a message is gone that nobody acked" },
	{ "had", leave_stuck, "all was taken, and something is still there" },
	{ "bytes", change_bytes, "other bytes" },
	{ "sent", keep_refused, "a push that was refused is there" },
	{ "once", keep_twice, "two messages of one idempotency key" },
	{ "final", deliver_after_ack, "delivered after its ack" },
	{ "lease", overlap, "two leases of a message" },
	{ "key", overlap_of_key, "two leases of a key" },
	{ "unique", repeat_token, "one token twice" },
	{ "unique", repeat_token_of_a_key, "one token twice for a key, by two shards" },
	{ "unique", token_of_the_past, "a token of an earlier round" },
	{ "rising", tokens_fall, "a lower token after a higher one" },
	{ "key-rising", tokens_of_key_fall, "a lower token of the key after a higher one" },
	{ "attempts", miscount_deliveries, "two first deliveries" },
	{ "stale", take_stale_token, "an extend with a token that is not the current one" },
	{ "stale", extend_after_nack, "an extend after the nack that ended the lease" },
	{ "order", later_index_first, "the second of a call comes first" },
	{ "order", later_call_first, "the message of a later call comes first" },
	{ "order", later_due_first, "what is due later comes first" },
	{ "due", come_early, "handed out before it is due" },
	{ "due", come_again_early, "handed out again before the retry is due" },
	{ "place", two_places, "in two places" },
	{ "dead", hide_dead, "a dead letter that is not listed" },
	{ "dead", list_the_living, "listed as dead, and alive" },
	{ "buried", come_from_the_dead, "handed out though it was dead" },
	{ "limit", come_after_the_last_failure, "handed out after its last failure" },
	{ "limit", fail_undelivered, "a failure without a delivery" },
	{ "counters", miscount, "a counter that is wrong" },
	{ "counters", miscount_total, "a total that is wrong" },
	{ "lock", two_holders, "a lock is given while it is held" },
	{ "lock-rising", lock_token_of_the_past, "a token of a lock from an earlier round" },
	{ "lock-stale", update_after_release, "an update after the release" },
	{ "lock-stale", update_after_the_next, "an update after the next holder has it" },
	{ "state", lose_a_commit, "what was committed is not read" },
	{ "state", commit_twice, "one value committed twice" },
	{ "state", lose_an_old_commit, "what an earlier round committed is not read" },
	{ "exit", crash, "the server ended by itself" },
	{ "bounded", leak_files, "files that stay open" },
	{ "bounded", leak_memory, "memory that grows" },
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

TEST(a_good_history_breaks_nothing)
{
	struct history h;
	char found[200];

	make_good(&h);
	names_found(&h, found, sizeof found);
	CHECK_STR("", found);
	history_release(&h);
}

TEST(each_rule_finds_what_breaks_it_and_no_other_does)
{
	EACH(i, breaks) {
		char found[200], want[40];
		struct history h;

		make_good(&h);
		breaks[i].breaks(&h);
		names_found(&h, found, sizeof found);
		(void)snprintf(want, sizeof want, "%s ", breaks[i].rule);
		if (strcmp(want, found) != 0)
			test_fail(__FILE__, __LINE__, "%s: want %s, found %s", breaks[i].label, want, found);
		history_release(&h);
	}
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

/* What breaks several rules at once. */
TEST(what_was_acked_twice_or_stays_after_its_ack_is_found)
{
	char found[200];
	struct history h;

	make_good(&h);
	ack_twice(&h);
	names_found(&h, found, sizeof found);
	CHECK_STR("kept ", found);
	history_release(&h);
	make_good(&h);
	add_row(&h, 1, A, STATE_READY);
	names_found(&h, found, sizeof found);
	CHECK_STR("kept final ", found);
	history_release(&h);
}

TEST(a_lock_whose_tokens_fall_had_two_holders_too)
{
	char found[200];
	struct history h;

	make_good(&h);
	h.events[ACQUIRE_Y].start = 80;
	h.events[ACQUIRE_Y].end = 90;
	names_found(&h, found, sizeof found);
	CHECK_STR("lock lock-rising lock-stale ", found);
	history_release(&h);
}

/* --- close to it ---------------------------------------------------------------------- */

static void
lease_follows_lease(struct history *h)
{
	h->events[CLAIM_C_AGAIN].granted = 1200;
}

static void
retry_when_due(struct history *h)
{
	h->events[NACK_A].until = h->events[CLAIM_A_AGAIN].granted;
}

static void
unknown_ack_did_nothing(struct history *h)
{
	add_row(h, 2, B, STATE_READY);
}

static void
unknown_push_is_there(struct history *h)
{
	h->events[PUSH_F].outcome = OUTCOME_UNKNOWN;
	add_row(h, 6, F, STATE_READY);
}

static void
unknown_nack_ended_the_lease(struct history *h)
{
	h->events[ACK_C].kind = EVENT_NACK;
	h->events[ACK_C].outcome = OUTCOME_UNKNOWN;
	h->events[CLAIM_C_AGAIN].granted = 1180;
}

static void
unknown_extend_made_it_shorter(struct history *h)
{
	h->events[ACK_C].kind = EVENT_EXTEND;
	h->events[ACK_C].outcome = OUTCOME_UNKNOWN;
	h->events[CLAIM_C_AGAIN].granted = 1180;
}

static void
redriven_counts_anew(struct history *h)
{
	history_add(h, &(struct event){ .kind = EVENT_REDRIVE, .start = 190, .end = 195 });
	h->events[CLAIM_C_AGAIN].attempts = 1;
	h->events[CLAIM_C_AGAIN].failures = 0;
}

static void
redriven_from_the_dead(struct history *h)
{
	history_add(h, &(struct event){ .kind = EVENT_REDRIVE, .start = 91, .end = 95 });
	come_from_the_dead(h);
}

static void
calls_at_once_have_no_order(struct history *h)
{
	h->events[PUSH_A].call = 9;
	h->events[PUSH_A].start = 5;
	h->events[PUSH_A].end = 30;
}

static void
tried_twice_has_no_order(struct history *h)
{
	struct event e = good[PUSH_A];

	later_call_first(h);
	e.start = 1;
	e.end = 2;
	e.id = 0;
	e.outcome = OUTCOME_UNKNOWN;
	history_add(h, &e);
}

static void
claims_at_once_have_no_order(struct history *h)
{
	h->events[CLAIM_C_AGAIN].start = 165;
	h->events[CLAIM_C_AGAIN].end = 175;
}

static void
lock_after_its_time(struct history *h)
{
	h->events[RELEASE_X].outcome = OUTCOME_FAILED;
	h->events[ACQUIRE_X].until = 150;
}

static void
release_came_too_late(struct history *h)
{
	h->events[RELEASE_X].until = 125;
	h->events[READ_Y].name = 6;
	h->events[UPDATE_Y].name = h->events[RELEASE_Y].name = 7;
}

static void
unknown_release_committed(struct history *h)
{
	h->events[RELEASE_X].outcome = OUTCOME_UNKNOWN;
}

static void
unknown_release_did_not(struct history *h)
{
	unknown_release_committed(h);
	h->events[READ_Y].name = 6;
}

static void
shards_have_tokens_of_their_own(struct history *h)
{
	h->several = true;
	h->token_floor = 10;
	repeat_token(h);
}

static void
row_without_a_payload(struct history *h)
{
	h->events[ROW_D].name = 0;
}

TEST(what_comes_close_and_keeps_the_promises_is_left_alone)
{
	static const struct {
		const char *label;
		void (*change)(struct history *h);
	} cases[] = {
		{ "a lease begins when the other ends", lease_follows_lease },
		{ "a retry comes when it is due", retry_when_due },
		{ "an unknown ack did nothing", unknown_ack_did_nothing },
		{ "an unknown push is there", unknown_push_is_there },
		{ "an unknown nack ended the lease", unknown_nack_ended_the_lease },
		{ "an unknown extend made the lease shorter", unknown_extend_made_it_shorter },
		{ "a redriven message counts from one", redriven_counts_anew },
		{ "a redriven message comes again", redriven_from_the_dead },
		{ "calls that ran at once", calls_at_once_have_no_order },
		{ "an idempotency key that was tried before", tried_twice_has_no_order },
		{ "claims that ran at once", claims_at_once_have_no_order },
		{ "a lock is given when its time is over", lock_after_its_time },
		{ "a release that came too late commits nothing", release_came_too_late },
		{ "an unknown release committed", unknown_release_committed },
		{ "an unknown release did not", unknown_release_did_not },
		{ "tokens of several shards", shards_have_tokens_of_their_own },
		{ "a row whose payload was left out", row_without_a_payload },
	};

	EACH(i, cases) {
		char found[200];
		struct history h;

		make_good(&h);
		cases[i].change(&h);
		names_found(&h, found, sizeof found);
		if (found[0])
			test_fail(__FILE__, __LINE__, "%s: found %s", cases[i].label, found);
		history_release(&h);
	}
}

/* --- counter-examples ------------------------------------------------------------------ */

TEST(the_shortest_counter_example_is_shown_in_order_of_time)
{
	const struct check_rule *worst;
	const struct finding *f;
	struct history h;
	struct check c;

	make_good(&h);
	lose(&h);    /* the push alone */
	overlap(&h); /* two claims */
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
	CHECK_CONTAINS("no look", err.text);
	for (int i = 0; i < 6; i++)
		history_add(&h, &good[PUSH_A]);
	CHECK(atomic_load(&h.full));
	CHECK_EQ(5, h.n);
	CHECK_EQ(SLU_EINVAL, check_run(&c, &err));
	CHECK_CONTAINS("could hold", err.text);
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
