/*
 * Schedules of the whole broker on a disk, a clock and clients that follow from a seed:
 * sim.h says how, sim_model.h what must hold.
 */
#include "sim.h"
#include "test.h"

#include <stdio.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FEWER 10
#else
#define FEWER 1
#endif

static struct sim_result
run(uint64_t seed, unsigned steps)
{
	const struct sim_conf conf = { .seed = seed, .steps = steps };
	struct sim_result result;

	sim_run(&conf, &result);
	return result;
}

TEST_LIMIT(a_thousand_schedules_keep_every_promise, 120)
{
	struct sim_result r;
	unsigned long cuts = 0, claims = 0, locked = 0, committed = 0, rolled_back = 0;

	for (uint64_t seed = 1; seed <= 1000 / FEWER; seed++) {
		r = run(seed, 0);
		cuts += r.cuts;
		claims += r.claims;
		locked += r.locked;
		committed += r.committed;
		rolled_back += r.rolled_back;
	}
	CHECK(cuts > 0 && claims > 0); /* it does something */
	CHECK(locked > 0 && (FEWER > 1 || (committed > 0 && rolled_back > 0)));
	printf("# %d schedules, %lu power cuts, %lu messages handed out, %lu keys locked, %lu "
	       "commits, %lu rollbacks\n",
	       1000 / FEWER, cuts, claims, locked, committed, rolled_back);
}

TEST_LIMIT(failed_shards_reopen_and_every_promise_is_kept, 120)
{
	unsigned long reopens = 0;

	for (uint64_t seed = 1; seed <= 1000 / FEWER; seed++) {
		const struct sim_conf conf = { .seed = seed, .reopens = true };
		struct sim_result r;

		sim_run(&conf, &r);
		reopens += r.reopens;
	}
	CHECK(reopens > 0);
	printf("# %d schedules, %lu shards reopened\n", 1000 / FEWER, reopens);
}

TEST(a_seed_replays_bit_for_bit)
{
	for (uint64_t seed = 1; seed <= 30; seed++) {
		const struct sim_result a = run(seed, 0), b = run(seed, 0);

		CHECK(a.hash == b.hash);
		CHECK_EQ(a.ops, b.ops);
		CHECK_EQ(a.opens, b.opens);
	}
}

/* Seeds that once failed, and why: they stay. */
TEST(what_once_failed_does_not_fail_again)
{
	static const struct {
		uint64_t seed;
		const char *why;
	} kept[] = {
		{ 10018, "bytes that a failed sync had lost were taken for kept at the next open" },
		{ 20041, "the same, and a power cut long after" },
		{ 6000455, "a failure after an answer was not reported; ops that waited went on waiting" },
		{ 1391, "a planted break: settling needed room for new work" },
		{ 6387, "the model: a document's number was read beyond its end" },
		{ 187763, "the model: a disk that dies may seem to be full" },
		{ 271436, "the model: the dead letter beyond dlq.max was known only after an open" },
		{ 392044, "the same, after a call without an answer" },
		{ 469400, "the same, after a kill" },
		{ 518038, "the model: a policy of the same run made an expired message live on" },
		{ 609329, "the model: an expired result came back when a clock went back" },
		{ 818012, "the model: which of two policies of one run removed a dead letter" },
		{ 346277, "the model: a claim found an expired message, and the disk had no room for its end" },
		{ 991243, "the model: a run without an answer removed the message of a key, and its window" },
	};

	EACH(i, kept)
		(void)run(kept[i].seed, 0);
}

/* ---- Queues move ---- */

static struct sim_result
move(uint64_t seed, unsigned steps, unsigned long at)
{
	const struct sim_conf conf = { .seed = seed, .steps = steps, .moves = true, .cut = at };
	struct sim_result result;

	sim_run(&conf, &result);
	return result;
}

enum {
	MOVES = 500 / FEWER
};

TEST_LIMIT(queues_move_and_every_promise_is_kept, 120)
{
	unsigned long cuts = 0, claims = 0, movers = 0, moved = 0, mended = 0;

	for (uint64_t seed = 1; seed <= MOVES; seed++) {
		const struct sim_result r = move(seed, 0, 0);

		cuts += r.cuts;
		claims += r.claims;
		movers += r.movers;
		moved += r.moved;
		mended += r.mended;
	}
	CHECK(cuts > 0 && claims > 0 && moved > 0 && mended > 0);
	printf("# %d schedules, %lu power cuts, %lu messages handed out, %lu movers, %lu messages "
	       "moved, %lu batches mended\n",
	       MOVES, cuts, claims, movers, moved, mended);
}

/* LANE-12, and in every second schedule LANE-14 */
TEST_LIMIT(batches_stay_open_for_a_while_and_every_promise_is_kept, 120)
{
	unsigned long lates = 0, unknown = 0, moved = 0;

	for (uint64_t seed = 1; seed <= MOVES; seed++) {
		const struct sim_conf conf = { .seed = seed, .moves = true, .lates = true };
		struct sim_result r;

		sim_run(&conf, &r);
		lates += r.lates;
		unknown += r.unknown;
		moved += r.moved;
	}
	CHECK(lates > 0 && unknown > 0 && moved > 0);
	printf("# %d schedules, %lu batches that stayed open, %lu unknown answers, %lu messages moved\n", MOVES,
	       lates, unknown, moved);
}

/* LEDGERQUEUE-1 to LEDGERQUEUE-4 of core/ledger/queue.c */
TEST_LIMIT(queues_are_forgotten_and_every_promise_is_kept, 120)
{
	unsigned long forgotten = 0, moved = 0;

	for (uint64_t seed = 1; seed <= 600 / FEWER; seed++) {
		const struct sim_conf conf = { .seed = seed, .forgets = true, .moves = seed % 3 == 0 };
		struct sim_result r;

		sim_run(&conf, &r);
		forgotten += r.forgotten;
		moved += r.moved;
	}
	CHECK(forgotten > 0 && moved > 0);
	printf("# %d schedules, %lu queues deleted\n", 600 / FEWER, forgotten);
}

TEST(a_seed_with_moves_replays_bit_for_bit)
{
	for (uint64_t seed = 1; seed <= 30; seed++) {
		const struct sim_result a = move(seed, 0, 0), b = move(seed, 0, 0);

		CHECK(a.hash == b.hash);
		CHECK_EQ(a.ops, b.ops);
		CHECK_EQ(a.moved, b.moved);
	}
}

TEST(what_once_failed_in_a_move_does_not_fail_again)
{
	static const struct {
		uint64_t seed;
		const char *why;
	} kept[] = {
		{ 17821, "a pause brought along the policy of a shard where the queue had lived" },
		{ 18054, "the model: a result was asked for before it was given" },
		{ 93017, "the model: what a claim beside a purge had got was taken for purged" },
		{ 1071647, "the model: the disk was full when it was posted, not when it was answered" },
		{ 1062137, "the model: which of two extends came last" },
		{ 2006317, "the model: of a queue that was empty, and had moved, nobody knew" },
		{ 3006086, "the model: the answer to a claim came after a move by force and the next" },
		{ 3011063, "the model: a claim waits for what a full disk does not hand out" },
		{ 4013781, "the model: a get found what was set aside, and dropped in that round" },
		{ 9271, "the model: a disk that failed was answered for when it was well again" },
		{ 69110, "the model: what was set aside was taken for what had been given, and died" },
		{ 35052, "the model: a policy that is set behind one mover may be overtaken by another" },
		{ 39547, "the model: two extends were on their way at once" },
		{ 112134, "a batch was begun before its queue was sent back, and nobody finished it" },
		{ 120296, "a pause while a queue was sent elsewhere hid what else of its policy had changed" },
		{ 188499, "a policy that somebody who died had copied came back with the next move" },
		{ 2023391, "a policy that was set in the moment in which a mover set one was lost" },
		{ 1090425, "a shard failed to write down a lease's end, and the key was had elsewhere" },
		{ 75080, "the model: a claim was answered after a move by force, and a delete" },
		{ 98847, "who had a lock key was refused by a shard that had it set aside" },
		{ 161164, "on a full disk what lived was written anew for ever" },
		{ 485, "a planted break: the shard of a line did not know its idempotency keys" },
		{ 2010, "the same: who has a message could not write its state where it had come" },
		{ 684, "the same: a shard had failed over an ack, and the next one said no" },
		{ 2071, "the same: a policy that was set before the mark stood was left behind" },
		{ 2025, "the same: who waited on a former shard waited as long again on the next" },
		{ 10749, "the same: after a power cut the last lease of a lock key was back, too" },
		{ 974, "the same, later: the shard of a line did not know its idempotency keys" },
		{ 6903, "the same, later: who has a message could not write its state where it had come" },
		{ 13374, "the same, later: after a power cut the last lease of a lock key was back, too" },
		{ 14539, "the same, later: a pause brought along the policy of a shard where the queue had lived" },
	};

	EACH(i, kept)
		(void)move(kept[i].seed, 0, 0);
}

/* ---- The power goes at a given write ---- */

static const uint64_t short_runs[] = { 3, 5, 8, 13, 21, 34 };

static struct sim_result
cut(uint64_t seed, unsigned long at, enum sim_tear tear, unsigned long bytes)
{
	const struct sim_conf conf = {
		.seed = seed,
		.steps = 40,
		.cut = at,
		.tear = tear,
		.bytes = bytes,
	};
	struct sim_result result;

	sim_run(&conf, &result);
	return result;
}

TEST_LIMIT(the_power_may_go_after_every_single_write, 120)
{
	for (size_t i = 0; i < COUNT(short_runs) / (FEWER > 1 ? 3 : 1); i++) {
		const struct sim_result whole = cut(short_runs[i], 1ul << 40, SIM_TEAR_DICE, 0);

		CHECK(whole.changes > 10);
		for (unsigned long at = 1; at <= whole.changes; at++)
			(void)cut(short_runs[i], at, SIM_TEAR_DICE, 0);
	}
}

TEST_LIMIT(the_power_may_go_after_every_single_write_of_a_move, 120)
{
	static const uint64_t seeds[] = { 3, 34 };

	for (size_t i = 0; i < COUNT(seeds) / (FEWER > 1 ? 2 : 1); i++) {
		const struct sim_result whole = move(seeds[i], 60, 1ul << 40);

		CHECK(whole.moved > 0);
		for (unsigned long at = 1; at <= whole.changes; at++)
			(void)move(seeds[i], 60, at);
	}
}

TEST_LIMIT(a_write_may_be_torn_at_every_byte, 120)
{
	unsigned long torn = 0;

	for (unsigned long at = 1; at <= 60 / FEWER + 20; at++) {
		const struct sim_result whole = cut(8, at, SIM_TEAR_BYTE, 1ul << 30);

		for (unsigned long n = 0; n < whole.last && n < 600; n++, torn++)
			(void)cut(8, at, SIM_TEAR_BYTE, n);
	}
	CHECK(torn > 100);
}
