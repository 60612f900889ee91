/*
 * Moves between two logs: when the power goes, and when a log is cleaned meanwhile (CLEAN-8 of
 * engine/log/clean.c). What is true of moves in every engine is in test_engine_move*.c.
 */
#include "lock_fixture.h"
#include "move_rig.h"

#include "engine/log/logengine.h"
#include "fakeclock.h"
#include "simdisk.h"

#include <inttypes.h>
#include <stdio.h>

static struct simdisk disks[2];
static uint32_t segment;
static uint64_t crash_seed;
static unsigned cuts;

static void
prepare(struct engine_conf *conf, bool second)
{
	conf->folder = "log";
	conf->disk = &disks[second].disk;
}

static int
open_log(struct engine **out, const struct engine_conf *conf, struct engine_found *found,
	 struct slu_err *err)
{
	static struct fakeclock still;
	const struct logengine_conf more = { .clock = &still.clock, .segment_size = segment, .no_helper = true };

	if (!still.clock.ops)
		fakeclock_init(&still, SLU_SEC, SLU_SEC);
	return logengine_open(out, conf, &more, found, err);
}

static const struct rig_row row = { .engine = &engine_log, .prepare = prepare, .open = open_log };

static void
open_rig(struct rig *r, bool second)
{
	simdisk_init(&disks[second]);
	*r = (struct rig){ .row = &row, .now = RIG_START, .next_id = second ? 1000000 : 1, .second = second };
	rig_open(r);
}

static void
close_rig(struct rig *r)
{
	rig_check(r);
	rig_reopen(r);
	rig_check(r);
	rig_close(r);
	simdisk_release(&disks[r->second]);
}

/* The engine goes without a word to its disk. */
static void
kill_engine(struct rig *r)
{
	disks[r->second].dead = true;
	rig_close(r);
	simdisk_kill(&disks[r->second]);
	rig_open(r);
}

/* Segments fill up with what comes and goes. */
static void
churn(struct rig *r, unsigned n, size_t size)
{
	static char payload[64 << 10];

	CHECK(size < sizeof payload);
	memset(payload, 'x', size);
	payload[size] = 0;
	for (unsigned i = 0; i < n; i++) {
		const uint64_t id = r->next_id;

		(void)rig_put(r, "other", &(struct rig_msg){ .payload = payload }); /* or it was cut */
		(void)rig_settle_one(r, OP_DELETE, id, 0);
	}
}

/* ---- Power ---- */

enum {
	KEYS = 3,
	WORK = 48,
	RESULTS = 4,
	LOCKS = 5
};

/* What of the giver's messages is not acked; acked ones are 0. */
static uint64_t left[WORK];

static int
key_of(unsigned i)
{
	return (int)(i % (KEYS + 1)) - 1; /* -1: none */
}

static void
put_work(struct rig *a)
{
	static const char *const keys[] = { "k0", "k1", "k2" };
	char idem[16];

	for (unsigned i = 0; i < RESULTS; i++) {
		(void)snprintf(idem, sizeof idem, "gone-%u", i);
		CHECK_EQ(i + 1, rig_put(a, "q", &(struct rig_msg){ .idem = idem, .keep = SLU_HOUR }));
		rig_claim(a, "q", 1);
		CHECK_EQ(0, rig_item(a, OP_ACK, &(struct op_item){ .id = i + 1, .text = SLICE("done") }));
	}
	for (unsigned i = 0; i < WORK; i++) {
		const int key = key_of(i);

		(void)snprintf(idem, sizeof idem, "idem-%u", i);
		left[i] = rig_put(a, "q", &(struct rig_msg){ .key = key < 0 ? NULL : keys[key], .idem = i % 5 ? NULL : idem, .delay = i % 7 ? 0 : SLU_SEC, .ttl = i % 3 ? 0 : SLU_HOUR });
		CHECK(left[i]);
	}
	for (unsigned i = 0; i < LOCKS; i++) {
		(void)snprintf(idem, sizeof idem, "lock-%u", i);
		commit_state(a, idem, idem);
	}
	move_mark(a, "q", MOVE_EPOCH, "b");
}

static void
revive(struct rig *r)
{
	cuts++;
	disks[r->second].dead = true;
	rig_close(r);
	simdisk_crash(&disks[r->second], crash_seed);
	rig_open(r);
}

/* Nothing is handed out that was acked, and of a key the first goes first. Which it is. */
static unsigned
check_handed_out(uint64_t id)
{
	unsigned i = 0;

	while (i < WORK && left[i] != id)
		i++;
	if (i == WORK)
		test_fail(__FILE__, __LINE__, "%" PRIu64 " was acked, or was never put", id);
	for (unsigned j = 0; key_of(i) >= 0 && j < i; j++)
		if (left[j] && key_of(j) == key_of(i) && j % 7 && i % 7)
			test_fail(__FILE__, __LINE__, "%" PRIu64 " before %" PRIu64, id, left[j]);
	return i;
}

static void
claim_and_ack(struct rig *b, uint32_t n)
{
	while (n-- > 0 && rig_claim(b, "q", 1)) {
		const uint64_t id = b->rows[0].id;
		const unsigned i = check_handed_out(id), before = cuts;
		const int rc = rig_settle_one(b, OP_ACK, id, b->rows[0].token);

		CHECK(rc == 0 || cuts != before); /* or the claim was lost, or the ack was not */
		if (rc == 0 || rc == SLU_ENOTFOUND)
			left[i] = 0;
	}
}

/* The mover starts again with TAKE after a death. */
static void
move_work(struct rig *a, struct rig *b, const char *queue)
{
	uint64_t batch;

	while ((batch = move_take(a, queue, &(struct move_take){ .max = 8 }))) {
		const unsigned before = cuts;

		churn(a, 2, 3000);
		if (move_take(a, queue, NULL) != batch)
			test_fail(__FILE__, __LINE__, "another batch than %" PRIu64, batch);
		if (move_give(a, b, queue)) { /* refused: no file could be made */
			CHECK(disks[1].dead);
			revive(b);
			continue;
		}
		claim_and_ack(b, 2);
		churn(b, 1, 3000);
		if (cuts != before)
			continue;
		CHECK_EQ(0, move_step(a, queue, MOVE_DROP, batch));
	}
}

static void
check_arrived(struct rig *a, struct rig *b)
{
	unsigned n = 0;
	char text[16], idem[16];

	CHECK_EQ(0, move_step(a, "q", MOVE_LOOK, 0));
	CHECK_EQ(0, a->op.move.messages);
	CHECK_EQ(0, a->op.move.results);
	CHECK_EQ(0, a->op.move.remembered);
	rig_pass(b, SLU_SEC);
	claim_and_ack(b, WORK);
	for (unsigned i = 0; i < WORK; i++)
		n += left[i] != 0;
	CHECK_EQ(0, n, "messages that are lost");
	for (unsigned i = 0; i < RESULTS; i++) {
		CHECK_EQ(0, rig_result(b, i + 1, text, sizeof text));
		CHECK_STR("done", text);
		(void)snprintf(idem, sizeof idem, "gone-%u", i);
		CHECK_EQ(i + 1, rig_put(b, "q", &(struct rig_msg){ .idem = idem }));
	}
	for (unsigned i = 0; i < LOCKS; i++) {
		(void)snprintf(idem, sizeof idem, "lock-%u", i);
		CHECK_STR("", get_public(a, idem));
		CHECK_STR(idem, get_public(b, idem));
	}
}

/* Cut the power of one of both at the n-th change of its disk. False: it needs no more. */
static bool
cut_at(bool second, unsigned long n, uint64_t seed)
{
	static struct rig a, b;

	open_rig(&a, false);
	open_rig(&b, true);
	put_work(&a);
	a.revive = b.revive = revive;
	cuts = 0;
	crash_seed = seed;
	simdisk_power_off(&disks[second], n);
	move_work(&a, &b, "q");
	move_work(&a, &b, LOCK_QUEUE);
	disks[second].power_off = 0;
	if (disks[second].dead)
		revive(second ? &b : &a);
	check_arrived(&a, &b);
	close_rig(&a);
	close_rig(&b);
	return cuts > 0;
}

static void
cut_everywhere(bool second)
{
	unsigned long n = 1;

	while (cut_at(second, n, n))
		n++;
	CHECK(n > 30); /* it did write */
	for (unsigned long i = 1; i < n; i++)
		(void)cut_at(second, i, 4 * i); /* nothing stays that was not synced */
}

/* SH-71, SH-72: nothing is lost, doubled or out of order. */
TEST_LIMIT(the_power_of_the_giver_may_go_at_any_change_of_its_disk, 300)
{
	segment = 64 << 10;
	cut_everywhere(false);
}

TEST_LIMIT(the_power_of_the_taker_may_go_at_any_change_of_its_disk, 300)
{
	segment = 64 << 10;
	cut_everywhere(true);
}

/* ---- CLEAN-8 ---- */

enum {
	LARGE = 8000, /* so that a segment is cleaned in several slices */
	SET_ASIDE = 90
};

static bool
first_is_gone(void)
{
	size_t size;

	return !simdisk_content(&disks[0], "log/00000001.log", &size);
}

/* A batch is set aside, then n times something comes and goes. apart: the messages are in one
 * segment, and what sets them aside is in the next. */
static uint64_t
clean_after_take(struct rig *a, unsigned n, bool apart)
{
	static char payload[LARGE + 1];
	uint64_t batch;

	memset(payload, 'p', LARGE);
	open_rig(a, false);
	for (int i = 0; i < SET_ASIDE; i++)
		rig_put(a, "q", &(struct rig_msg){ .payload = payload, .key = i % 3 ? "k" : NULL });
	churn(a, apart ? 6 : 0, 60000);
	batch = move_take(a, "q", NULL);
	CHECK_EQ(SET_ASIDE, move_n);
	churn(a, n, 60000);
	return batch;
}

/* However far cleaning is: what is set aside is so in the log, too. */
static void
take_and_clean(bool apart)
{
	static struct rig a;
	bool gone = false;

	segment = 1 << 20;
	for (unsigned n = 0; !gone; n++) {
		const uint64_t batch = clean_after_take(&a, n, apart);

		gone = first_is_gone();
		kill_engine(&a);
		CHECK_EQ(batch, move_take(&a, "q", NULL));
		CHECK_EQ(SET_ASIDE, move_n);
		CHECK_EQ(0, rig_claim(&a, "q", 1));
		CHECK_EQ(0, move_step(&a, "q", MOVE_DROP, batch));
		CHECK_EQ(0, a.op.move.messages);
		close_rig(&a);
		CHECK(n < 200);
	}
}

TEST_LIMIT(a_batch_is_set_aside_after_any_slice_of_cleaning, 120)
{
	take_and_clean(false);
	take_and_clean(true);
}

/* Cleaning goes on after the batch is dropped, until what it was written to is gone. */
static void
drop_and_clean(bool apart)
{
	static struct rig a;
	bool gone = false;

	segment = 1 << 20;
	for (unsigned n = 0; !gone; n++) {
		const uint64_t batch = clean_after_take(&a, n, apart);

		gone = first_is_gone();
		CHECK_EQ(0, move_step(&a, "q", MOVE_DROP, batch));
		for (int i = 0; !first_is_gone() && i < 200; i++)
			churn(&a, 1, 60000);
		CHECK(first_is_gone());
		kill_engine(&a);
		CHECK_EQ(0, move_step(&a, "q", MOVE_LOOK, 0));
		CHECK_EQ(0, a.op.move.messages);
		CHECK_EQ(0, rig_claim(&a, "q", 1));
		close_rig(&a);
		CHECK(n < 200);
	}
}

TEST_LIMIT(a_batch_is_dropped_after_any_slice_of_cleaning, 120)
{
	drop_and_clean(false);
	drop_and_clean(true);
}
