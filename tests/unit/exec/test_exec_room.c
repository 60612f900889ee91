/* Room: what a shard holds, what happens when it is full, batches, memory. */
#include "exec_help.h"

#include "base/mem.h"
#include "exec/slot.h"

#include <stdio.h>

static const struct slu_submit nowait = { SLU_OPTIONS_INIT(struct slu_submit), .timeout = SLU_NOWAIT };

/* Submit to a shard whose worker is blocked until it is full; returns how many. */
static uint32_t
fill_up(const char *key, struct probe *p, uint32_t most)
{
	uint32_t n = 0;

	while (n < most && rig_try(key, &p[n], &nowait, NULL) == 0)
		n++;
	return n;
}

static struct probe *
probes(uint32_t n)
{
	static struct probe p[600];

	CHECK(n <= COUNT(p));
	for (uint32_t i = 0; i < n; i++)
		p[i] = (struct probe)PROBE("p");
	return p;
}

TEST(a_shard_takes_exactly_queue_size_while_its_worker_is_busy)
{
	static const uint32_t sizes[] = { 0, 1, 2, 3, 100, 256 };

	EACH(i, sizes) {
		const uint32_t want = sizes[i] ? sizes[i] : 128;
		struct probe block = PROBE("block");

		rig_start((struct slu_executor_config){ .shards = 2, .queue_size = sizes[i] });
		rig_block("a", &block);
		/* SQ-08: exactly so many, at once; SQ-44: set to 256 */
		CHECK_EQ(want, fill_up("a", probes(want + 1), want + 1));
		CHECK_EQ(want, rig_stats().queued);
		rig_release();
	}
}

TEST(a_full_shard_says_which_one_and_how_full)
{
	static struct probe block = PROBE("block"), more = PROBE("more");
	struct slu_err err;
	char key[32];

	rig_start((struct slu_executor_config){ .shards = 4, .queue_size = 7 });
	rig_key(rig.ex, 3, 0, key);
	rig_block(key, &block);
	CHECK_EQ(7, fill_up(key, probes(8), 8));
	CHECK_EQ(SLU_EQFULL, rig_try(key, &more, &nowait, &err)); /* SQ-39 */
	CHECK_EQ(SLU_EQFULL, err.code);
	CHECK_EQ(3, err.shard);    /* SQ-40 */
	CHECK_EQ(7, err.length);   /* SQ-40 */
	CHECK_EQ(7, err.capacity); /* SQ-40 */
	CHECK_EQ(SLU_EQFULL, rig_try(key, &more, &nowait, NULL));
	CHECK_EQ(0, rig_try(rig_key(rig.ex, 0, 0, key), &more, &nowait, NULL));
}

/* --- waiting for room --- */

/* Until it has seen that there is no room at this time. */
static void
let_it_look(void)
{
	const int looks = atomic_load(&rig.looks);

	WAIT_UNTIL(atomic_load(&rig.looks) >= looks + 2);
}

TEST(a_submit_waits_for_room_until_its_timeout)
{
	static const struct {
		const char *label;
		slu_time config, opts, want;
	} cases[] = {
		{ "the default", 0, 0, 100 * SLU_MS },
		{ "set to 250 ms", 250 * SLU_MS, 0, 250 * SLU_MS }, /* SQ-45 */
		{ "its own timeout", 0, 3 * SLU_SEC, 3 * SLU_SEC },
	};

	EACH(i, cases) {
		struct probe block = PROBE("block"), wait = PROBE("wait"), p = PROBE("p");
		struct room_waiter w;

		rig_start((struct slu_executor_config){
			.shards = 1, .queue_size = 1, .enqueue_timeout = cases[i].config });
		rig_block("a", &block);
		rig_submit("a", &wait);
		rig_wait_for_room(&w, &p, (struct slu_submit){ .timeout = cases[i].opts });
		let_it_look();
		fakeclock_advance(&rig.clock, cases[i].want - 1);
		let_it_look();
		CHECK_EQ(-1, w.rc, "not before its time");
		fakeclock_advance(&rig.clock, 1);
		pthread_join(w.thread, NULL);
		CHECK_EQ(SLU_EQFULL, w.rc, cases[i].label); /* SQ-45, SQ-39: after the timeout */
		CHECK_EQ(1, w.err.length);
		rig_release();
		CHECK_EQ(0, p.runs);
	}
}

TEST(a_submit_that_waits_gets_the_room_that_comes)
{
	static struct probe block = PROBE("block"), wait = PROBE("wait"), p = PROBE("p");
	struct room_waiter w;

	rig_start((struct slu_executor_config){ .shards = 1, .queue_size = 1 });
	rig_block("a", &block);
	rig_submit("a", &wait);
	rig_wait_for_room(&w, &p, (struct slu_submit){ .timeout = SLU_NEVER });
	rig_open_gate();
	pthread_join(w.thread, NULL);
	CHECK_EQ(0, w.rc);
	rig_release();
	CHECK_STR("block wait p", rig.trace);
}

static const char *
what_to_do(int rc)
{
	switch (rc) {
	case SLU_OK:
		return "go on";
	case SLU_EQFULL:
		return "slow down";
	case SLU_ECLOSED:
		return "end";
	default:
		return "give up";
	}
}

TEST(full_closed_and_other_failures_have_different_codes)
{
	static struct probe block = PROBE("block"), p = PROBE("p"), q = PROBE("q");
	struct slu_cancel *token = slu_cancel_new();
	const struct slu_submit canceled = { SLU_OPTIONS_INIT(struct slu_submit), .cancel = token };

	slu_cancel_fire(token, NULL);
	rig_start((struct slu_executor_config){ .shards = 1, .queue_size = 1 });
	rig_block("a", &block);
	/* SQ-42: no text is looked at */
	CHECK_STR("go on", what_to_do(rig_try("a", &p, &nowait, NULL)));
	CHECK_STR("slow down", what_to_do(rig_try("a", &q, &nowait, NULL)));
	CHECK_STR("give up", what_to_do(rig_try("a", &q, &canceled, NULL)));
	rig_open_gate();
	CHECK_EQ(0, slu_executor_stop(rig.ex, 0));
	CHECK_STR("end", what_to_do(rig_try("a", &q, NULL, NULL)));
	rig_release();
	slu_cancel_free(token);
}

struct nested {
	struct slu_executor *ex;
	_Atomic int rc;
	_Atomic int queued;
};

static int
fill_own_shard(struct slu_run *run, void *arg)
{
	struct nested *n = arg;
	const struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), .run = do_nothing };
	const struct slu_submit soon = { SLU_OPTIONS_INIT(struct slu_submit), .timeout = SLU_MS };
	int rc;

	do {
		rc = slu_executor_submit(n->ex, run->key, &task, &soon, NULL, NULL);
		n->queued += rc == 0;
	} while (rc == 0);
	n->rc = rc;
	return 0;
}

TEST(a_task_that_fills_its_own_shard_is_refused_and_goes_on)
{
	const struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config), .shards = 1, .queue_size = 10 };
	struct nested n = { .rc = -1 };

	CHECK_EQ(0, slu_executor_start(&n.ex, &config, NULL));
	submit_fn(n.ex, "a", fill_own_shard, &n);
	WAIT_UNTIL(atomic_load(&n.rc) >= 0);
	CHECK_EQ(0, slu_executor_close(n.ex));
	CHECK_EQ(SLU_EQFULL, n.rc);
	CHECK_EQ(10, n.queued);
}

/* --- a key that waits for a retry (EXECUTOR-4) --- */

TEST(a_parked_key_may_not_take_the_shard_for_itself)
{
	static struct probe bad = PROBE("bad", .fails = -1);
	struct probe *p = probes(16);

	rig_start((struct slu_executor_config){ .shards = 1, .queue_size = 16 });
	rig_submit("bad", &bad);
	rig_settle();
	CHECK_EQ(7, fill_up("bad", p, 16)); /* EXECUTOR-4: 8 places, 8 are free */
	rig_settle();
	CHECK_EQ(8, rig_stats().waiting);
	CHECK_EQ(0, fill_up("bad", p + 7, 1));
	CHECK_EQ(0, rig_stats().queued);
}

TEST(a_parked_key_may_not_take_the_shard_while_its_worker_is_busy)
{
	static struct probe bad = PROBE("bad", .fails = -1), block = PROBE("block");
	struct probe *p = probes(16);
	uint32_t own, others;

	rig_start((struct slu_executor_config){ .shards = 1, .queue_size = 16 });
	rig_submit("bad", &bad);
	rig_settle();
	rig_block("other", &block);
	own = fill_up("bad", p, 16);
	CHECK_EQ(7, own); /* EXECUTOR-4: the leader and these are half of it */
	others = fill_up("other", p + own, 16 - own);
	CHECK_EQ(8, others);
}

TEST(other_keys_may_fill_what_a_parked_key_leaves)
{
	static struct probe bad = PROBE("bad", .fails = -1), block = PROBE("block");

	rig_start((struct slu_executor_config){ .shards = 1, .queue_size = 4 });
	rig_submit("bad", &bad);
	rig_settle();
	rig_block("other", &block);
	CHECK_EQ(3, fill_up("other", probes(4), 4)); /* EXECUTOR-4: retries included */
	CHECK_EQ(4, rig_stats().queued + rig_stats().waiting);
}

TEST(a_task_that_fails_in_a_full_shard_waits_on_top)
{
	static struct probe bad = PROBE("bad", .fails = 1), more = PROBE("more");
	struct slu_err err;

	rig_start((struct slu_executor_config){ .shards = 1, .queue_size = 4 });
	rig_block("bad", &bad);
	CHECK_EQ(4, fill_up("bad", probes(5), 5));
	rig_open_gate();
	rig_settle();
	CHECK_EQ(5, rig_stats().waiting); /* EXECUTOR-4: one more */
	CHECK_EQ(SLU_EQFULL, rig_try("other", &more, &nowait, &err));
	CHECK_EQ(5, err.length);
	CHECK_EQ(4, err.capacity);
	rig_next_retry();
	CHECK_EQ(0, rig_stats().waiting);
	CHECK_EQ(0, rig_try("other", &more, &nowait, &err));
}

/* --- batches --- */

TEST(a_batch_is_queued_in_one_piece)
{
	enum {
		N = 8
	};
	static const char *const names[N] = { "0", "1", "2", "3", "4", "5", "6", "7" };
	static struct probe block = PROBE("block"), p[N], before = PROBE("x"), after = PROBE("y");
	struct slu_task tasks[N];
	uint64_t first = 0, id;

	rig_start((struct slu_executor_config){ .shards = 1 });
	rig_block("k", &block);
	id = rig_submit("k", &before);
	for (int i = 0; i < N; i++) {
		p[i] = (struct probe)PROBE(names[i]);
		tasks[i] = rig_task(&p[i]);
	}
	CHECK_EQ(0, slu_executor_submit_batch(rig.ex, "k", tasks, N, NULL, &first, NULL));
	CHECK_EQ(id + 1, first);
	CHECK_EQ(first + N, rig_submit("k", &after));
	rig_open_gate();
	rig_settle();
	CHECK_STR("block x 0 1 2 3 4 5 6 7 y", rig_trace()); /* SQ-F8: contiguous */
	for (int i = 0; i < N; i++)
		CHECK_EQ(first + (uint64_t)i, p[i].id);
}

static int
try_batch(const struct slu_task *tasks, uint32_t n, struct slu_err *err)
{
	return slu_executor_submit_batch(rig.ex, "k", tasks, n, &nowait, NULL, err);
}

TEST(a_batch_that_does_not_fit_is_refused_whole)
{
	static struct probe block = PROBE("block");
	struct probe *p = probes(8);
	struct slu_task tasks[8];
	struct slu_err err;

	rig_start((struct slu_executor_config){ .shards = 1, .queue_size = 6 });
	for (int i = 0; i < 8; i++)
		tasks[i] = rig_task(&p[i]);
	rig_block("k", &block);
	CHECK_EQ(0, try_batch(tasks, 3, NULL));
	/* SQ-F8: none of the four, though three would fit */
	CHECK_EQ(SLU_EQFULL, try_batch(tasks + 3, 4, &err));
	CHECK_EQ(3, err.length);
	CHECK_EQ(3, rig_stats().queued);
	CHECK_EQ(0, try_batch(tasks + 3, 3, NULL));
	CHECK_EQ(SLU_EINVAL, try_batch(tasks, 0, &err));
	CHECK_EQ(SLU_EINVAL, try_batch(tasks, 7, &err));
	tasks[7].run = NULL;
	CHECK_EQ(SLU_EINVAL, try_batch(tasks + 6, 2, &err));
	rig_open_gate();
	CHECK_EQ(0, slu_executor_stop(rig.ex, 0));
	CHECK_EQ(SLU_ECLOSED, try_batch(tasks + 6, 1, &err));
	rig_release();
	CHECK_EQ(7, rig.runs);
}

/* --- memory --- */

TEST(a_submit_allocates_nothing_once_the_shard_is_warm)
{
	const struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config), .shards = 1, .queue_size = 8 };
	const struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), .run = do_nothing };
	const struct slu_task all[8] = { task, task, task, task, task, task, task, task };
	char key[SLU_KEY_MAX + 1];
	struct slu_executor *ex;

	memset(key, 'k', sizeof key);
	key[47] = 0;
	CHECK_EQ(0, slu_executor_start(&ex, &config, NULL));
	CHECK_EQ(0, slu_executor_submit_batch(ex, "k", all, 8, NULL, NULL, NULL));
	CHECK_EQ(0, slu_executor_await(ex, "k", 0, NULL));
	mem_fail_at(1);
	for (int i = 0; i < 1000; i++) /* EXECUTOR-5: keys of 47 bytes need nothing more */
		submit_fn(ex, key, do_nothing, NULL);
	CHECK_EQ(0, mem_failed());
	mem_fail_at(0);
	key[47] = 'k';
	key[SLU_KEY_MAX] = 0;
	for (int i = 0; i < 9; i++)
		submit_fn(ex, key, do_nothing, NULL);
	mem_fail_at(1);
	for (int i = 0; i < 1000; i++) /* EXECUTOR-5: each place has seen a long key by now */
		submit_fn(ex, key, do_nothing, NULL);
	CHECK_EQ(0, mem_failed());
	mem_fail_at(0);
	CHECK_EQ(0, slu_executor_close(ex));
}

TEST(retries_and_cancels_allocate_nothing)
{
	struct slu_cancel *token = slu_cancel_new();
	const struct slu_submit opts = { SLU_OPTIONS_INIT(struct slu_submit), .cancel = token };
	static struct probe a = PROBE("a", .fails = 2), b = PROBE("b", .fails = -1);

	mem_fail_at(1);
	rig_submit("a", &a);
	CHECK_EQ(0, rig_try("b", &b, &opts, NULL));
	rig_next_retry();
	rig_next_retry();
	slu_cancel_fire(token, NULL);
	WAIT_UNTIL(atomic_load(&b.reports) == 1);
	CHECK_EQ(0, mem_failed());
	mem_fail_at(0);
	rig_release();
	slu_cancel_free(token);
}

static size_t
bytes_of(struct slu_executor *ex, uint32_t shard)
{
	struct slu_executor_stats stats;

	CHECK_EQ(0, slu_executor_snapshot(ex, shard, &stats));
	return stats.buffer_bytes;
}

TEST(the_footprint_of_a_shard_is_its_entries_and_little_more)
{
	enum {
		PLACES = 128 + 1, /* one is for the task that runs */
		ROUNDED = 7,      /* slots come by eight */
		RINGS = 2 * 256 * 4,
		INDEX = PLACES * 24 + 256 * 4 /* of keys that wait: by due, by key */
	};
	static struct probe block = PROBE("block");
	struct probe *p = probes(128);
	struct slu_executor *ex;

	CHECK_EQ(0, slu_executor_start(&ex, NULL, NULL));
	printf("# default queue: %zu bytes a shard, %zu in all, %zu an entry\n", bytes_of(ex, 0),
	       bytes_of(ex, SLU_ALL_SHARDS), sizeof(struct task_slot));
	CHECK_EQ(8 * sizeof(struct task_slot) + RINGS + INDEX, bytes_of(ex, 0)); /* SQ-67 */
	CHECK(bytes_of(ex, SLU_ALL_SHARDS) <= 32 << 10);
	CHECK_EQ(0, slu_executor_close(ex));

	rig_start((struct slu_executor_config){ .shards = 1 });
	rig_block("k", &block);
	for (int i = 0; i < 128; i++)
		rig_submit("k", &p[i]);
	CHECK_EQ((PLACES + ROUNDED) * sizeof(struct task_slot) + RINGS + INDEX, bytes_of(rig.ex, 0));
	rig_open_gate();
	rig_settle();
	CHECK_EQ(128, p[127].runs + 127);
}

TEST(a_thousand_shards_run)
{
	enum {
		SHARDS = 1000
	};
	const struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config), .shards = SHARDS, .queue_size = 4 };
	struct slu_executor_stats stats;
	struct slu_executor *ex;
	char key[32];

	CHECK_EQ(0, slu_executor_start(&ex, &config, NULL));
	for (int i = 0; i < 20 * SHARDS; i++) {
		(void)snprintf(key, sizeof key, "key-%d", i);
		submit_fn(ex, key, do_nothing, NULL);
	}
	CHECK_EQ(0, slu_executor_stop(ex, 0));
	for (uint32_t i = 0; i < SHARDS; i++) {
		CHECK_EQ(0, slu_executor_snapshot(ex, i, &stats));
		CHECK(stats.finished > 0); /* SQ-68: every one of them works */
	}
	CHECK_EQ(0, slu_executor_close(ex));
}
