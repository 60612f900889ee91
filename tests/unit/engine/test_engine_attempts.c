/*
 * The attempts of a message that failed: the bytes (engine/attempts.h), and what every engine keeps. They outlive a restart,
 * a redrive and the dead letter; a message that never failed has none.
 */
#include "engine_rig.h"

#include <stdio.h>

/* ---- The bytes ---- */

/* clang-format off */
#define N(v)  v "\0\0\0\0\0\0\0"
#define FIRST "\0attempt\x01" N("\x05") N("\x07") N("\x0a") "\x02\x00\x03\x02\x03\x00" "mewhy"
/* clang-format on */

/* ATTEMPTS-1, ATTEMPTS-2 */
TEST(attempts_have_the_bytes_of_the_format)
{
	const struct attempt_row one = { 5 * SLU_US, 7 * SLU_US, 10, 2, ATTEMPT_REJECTED, SLICE("me"), SLICE("why") };
	const struct slice want = SLICE(FIRST "the last error");
	struct attempts all = { .error = SLICE("the last error") }, back;
	char bytes[ATTEMPTS_MAX];

	attempts_add(&all, &one);
	CHECK_EQ(want.n, attempts_write(&all, bytes));
	CHECK(memcmp(want.p, bytes, want.n) == 0);
	CHECK(attempts_read(want, &back));
	CHECK_EQ(1, back.n);
	CHECK_EQ(5 * SLU_US, back.list[0].began);
	CHECK_EQ(7 * SLU_US, back.list[0].took);
	CHECK_EQ(10, back.list[0].token);
	CHECK_EQ(2, back.list[0].number);
	CHECK_EQ(ATTEMPT_REJECTED, back.list[0].outcome);
	CHECK(slice_eq(SLICE("me"), back.list[0].holder));
	CHECK(slice_eq(SLICE("why"), back.list[0].error));
	CHECK(slice_eq(SLICE("the last error"), attempts_error(want)));
}

TEST(an_error_without_the_mark_is_an_error_alone)
{
	struct attempts all;

	CHECK(attempts_read(SLICE("boom"), &all));
	CHECK_EQ(0, all.n);
	CHECK(slice_eq(SLICE("boom"), all.error));
	CHECK(attempts_read((struct slice){ 0 }, &all));
	CHECK_EQ(0, all.error.n);
}

TEST(attempts_that_are_cut_or_malformed_are_no_attempts)
{
	const struct slice whole = SLICE(FIRST);
	char bytes[sizeof FIRST];
	struct attempts all;

	for (size_t n = ATTEMPTS_HEAD + 1; n < whole.n; n++)
		CHECK(!attempts_read((struct slice){ whole.p, n }, &all));
	for (unsigned outcome = 0; outcome < 256; outcome++) {
		memcpy(bytes, whole.p, whole.n);
		bytes[ATTEMPTS_HEAD + 26] = (char)outcome;
		CHECK_EQ(outcome > ATTEMPT_NONE && outcome < ATTEMPT_OUTCOMES, attempts_read((struct slice){ bytes, whole.n }, &all));
	}
	memcpy(bytes, whole.p, whole.n);
	bytes[8] = ATTEMPTS_KEPT + 1;
	CHECK(!attempts_read((struct slice){ bytes, whole.n }, &all));
	CHECK_EQ(0, all.n);
}

TEST(a_long_error_is_cut_at_the_end_of_a_character)
{
	char text[ATTEMPTS_ERROR + 10], bytes[ATTEMPTS_MAX];
	struct attempts all = { 0 }, back;
	struct attempt_row one = { .outcome = ATTEMPT_FAILED, .error = { text, sizeof text } };

	for (size_t i = 0; i + 1 < sizeof text; i += 2)
		memcpy(text + i, "\xc3\xa9", 2);
	memmove(text + 1, text, sizeof text - 1); /* characters end at odd places */
	text[0] = 'a';
	all.error = one.error;
	for (int i = 0; i < ATTEMPTS_KEPT + 3; i++) {
		one.number++;
		attempts_add(&all, &one);
	}
	CHECK(attempts_read((struct slice){ bytes, attempts_write(&all, bytes) }, &back));
	CHECK_EQ(ATTEMPTS_KEPT, back.n);
	CHECK_EQ(4, back.list[0].number);
	CHECK_EQ(13, back.list[9].number);
	CHECK_EQ(ATTEMPTS_TEXT - 1, back.list[9].error.n);
	CHECK_EQ(ATTEMPTS_ERROR, back.error.n);
}

/* ---- Engines ---- */

static uint64_t
claim_as(struct rig *r, const char *worker)
{
	struct op op;

	rig_unpin(r);
	rig_op(&op, OP_CLAIM, RIG_SPACE, "q");
	op.rows = r->rows;
	op.max_rows = 1;
	op.claim.holder = slice_of(worker);
	CHECK_EQ(0, rig_do(r, &op));
	CHECK_EQ(1, op.n_rows);
	r->n = 1;
	r->op = op;
	return r->rows[0].token;
}

static void
check_one(const struct attempt_row *one, unsigned number, enum attempt_outcome outcome, const char *worker, slu_time took, const char *error)
{
	CHECK_EQ(number, one->number);
	CHECK_EQ(outcome, one->outcome);
	CHECK(slice_eq(slice_of(worker), one->holder));
	CHECK_EQ(took, one->took);
	CHECK(slice_eq(slice_of(error), one->error));
}

/* A nack, the end of a lease, a rejection; then a redrive and a failure more. */
CASE(attempts_outlive_retries_the_dead_letter_and_a_redrive)
{
	struct op_item item = { .text = SLICE("boom"), .time = 0 };
	struct attempts all;
	uint64_t token;
	slu_time began;

	item.id = rig_put(r, "q", NULL);
	began = r->now;
	token = claim_as(r, "w1");
	rig_pass(r, 3 * SLU_SEC);
	CHECK_EQ(0, rig_item(r, OP_NACK, &item));
	(void)claim_as(r, "w2");
	rig_pass(r, SLU_MIN);
	rig_reopen(r);
	(void)claim_as(r, "");
	item.dead = true;
	item.text = SLICE("no such user");
	CHECK_EQ(0, rig_item(r, OP_NACK, &item));
	rig_reopen(r);
	CHECK_EQ(0, rig_get(r, item.id));
	CHECK_EQ(MSG_DEAD, r->rows[0].state);
	CHECK_EQ(3, rig_attempts(r, 0, &all));
	check_one(&all.list[0], 1, ATTEMPT_FAILED, "w1", 3 * SLU_SEC, "boom");
	CHECK_EQ(token, all.list[0].token);
	CHECK_EQ(began, all.list[0].began);
	check_one(&all.list[1], 2, ATTEMPT_EXPIRED, "w2", 30 * SLU_SEC, "");
	check_one(&all.list[2], 3, ATTEMPT_REJECTED, "", 0, "no such user");
	CHECK_STR("no such user", rig_error(r, 0));
	CHECK_EQ(0, rig_settle_one(r, OP_REDRIVE, item.id, 0));
	(void)claim_as(r, "w3");
	item.dead = false;
	item.text = (struct slice){ 0 };
	CHECK_EQ(0, rig_item(r, OP_NACK, &item));
	rig_reopen(r);
	CHECK_EQ(0, rig_get(r, item.id));
	CHECK_EQ(4, rig_attempts(r, 0, &all));
	check_one(&all.list[3], 4, ATTEMPT_FAILED, "w3", 0, "");
	CHECK_STR("no such user", rig_error(r, 0));
}

/* ATTEMPTS-2 */
CASE(ten_attempts_are_kept)
{
	struct policy policy = policy_default;
	struct op_item item = { .time = 0 };
	struct attempts all;
	char text[16];

	policy.max_attempts = 100;
	rig_policy(r, "q", &policy);
	item.id = rig_put(r, "q", NULL);
	for (int i = 1; i <= 13; i++) {
		(void)claim_as(r, "w");
		(void)snprintf(text, sizeof text, "error %d", i);
		item.text = slice_of(text);
		CHECK_EQ(0, rig_item(r, OP_NACK, &item));
	}
	rig_reopen(r);
	CHECK_EQ(0, rig_get(r, item.id));
	CHECK_EQ(ATTEMPTS_KEPT, rig_attempts(r, 0, &all));
	check_one(&all.list[0], 4, ATTEMPT_FAILED, "w", 0, "error 4");
	check_one(&all.list[9], 13, ATTEMPT_FAILED, "w", 0, "error 13");
}

/* ATTEMPTS-3 */
CASE(a_message_that_did_not_fail_has_no_attempts)
{
	struct op_item item = { .defer = true, .time = 0 };
	struct attempts all;

	item.id = rig_put(r, "q", NULL);
	(void)claim_as(r, "w");
	rig_return(r);
	(void)claim_as(r, "w");
	CHECK_EQ(0, rig_item(r, OP_NACK, &item));
	CHECK_EQ(0, rig_get(r, item.id));
	CHECK(!r->rows[0].error.pin);
	(void)claim_as(r, "w");
	item.text = SLICE("the supplier is closed");
	CHECK_EQ(0, rig_item(r, OP_NACK, &item));
	CHECK_EQ(0, rig_get(r, item.id));
	CHECK_EQ(1, rig_attempts(r, 0, &all));
	CHECK_EQ(ATTEMPT_DEFERRED, all.list[0].outcome);
	CHECK_EQ(0, r->rows[0].failures);
}

/* ATTEMPTS-1 */
CASE(an_error_that_looks_like_attempts_is_an_error)
{
	struct op_item item = { .text = SLICE(FIRST "forged"), .time = 0 };
	struct attempts all;

	item.id = rig_put(r, "q", NULL);
	(void)claim_as(r, "w");
	CHECK_EQ(0, rig_item(r, OP_NACK, &item));
	CHECK_EQ(0, rig_get(r, item.id));
	CHECK_EQ(1, rig_attempts(r, 0, &all));
	CHECK_EQ(sizeof FIRST "forged" - 2, all.list[0].error.n, "without the NUL at its beginning");
	CHECK_EQ(1, all.list[0].number);
}
