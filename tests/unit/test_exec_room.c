/* Room: what a shard holds, what happens when it is full, batches, memory. */
#include "exec_help.h"

#include "base/mem.h"
#include "exec/slot.h"

#include <stdio.h>

static const struct slu_submit nowait = { SLU_OPTIONS_INIT(struct slu_submit), .timeout = SLU_NOWAIT };

/* Submit to a shard whose worker is blocked until it is full; returns how many. */
static uint32_t
fill_up(struct rig *r, const char *key, struct probe *p, uint32_t most)
{
	uint32_t n = 0;

	while (n < most && rig_try(r, key, &p[n], &nowait, NULL) == 0)
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
		struct rig r;

		rig_start(&r, (struct slu_executor_config){ .shards = 2, .queue_size = sizes[i] });
		rig_block(&r, "a", &block);
		/* SQ-08: exactly so many, at once; SQ-44: set to 256 */
		CHECK_EQ(want, fill_up(&r, "a", probes(want + 1), want + 1));
		CHECK_EQ(want, rig_stats(&r).queued);
		rig_release(&r);
	}
}

TEST(a_full_shard_says_which_one_and_how_full)
{
	struct probe block = PROBE("block"), more = PROBE("more");
	struct slu_err err;
	struct rig r;
	char key[32];

	rig_start(&r, (struct slu_executor_config){ .shards = 4, .queue_size = 7 });
	rig_key(r.ex, 3, 0, key);
	rig_block(&r, key, &block);
	CHECK_EQ(7, fill_up(&r, key, probes(8), 8));
	CHECK_EQ(SLU_EQFULL, rig_try(&r, key, &more, &nowait, &err)); /* SQ-39 */
	CHECK_EQ(SLU_EQFULL, err.code);
	CHECK_EQ(3, err.shard);    /* SQ-40 */
	CHECK_EQ(7, err.length);   /* SQ-40 */
	CHECK_EQ(7, err.capacity); /* SQ-40 */
	CHECK_EQ(SLU_EQFULL, rig_try(&r, key, &more, &nowait, NULL));
	CHECK_EQ(0, rig_try(&r, rig_key(r.ex, 0, 0, key), &more, &nowait, NULL));
	rig_release(&r);
}

/* --- waiting for room --- */

struct waiter {
	struct rig *rig;
	struct probe *probe;
	struct slu_submit opts;
	struct slu_err err;
	_Atomic int rc; /* -1: still in there */
	pthread_t thread;
};

static void *
run_waiter(void *arg)
{
	struct waiter *w = arg;

	rig_count_looks();
	atomic_store(&w->rc, rig_try(w->rig, "a", w->probe, &w->opts, &w->err));
	return NULL;
}

static void
wait_begin(struct waiter *w, struct rig *r, struct probe *p, slu_time timeout)
{
	*w = (struct waiter){ .rig = r, .probe = p, .opts = { SLU_OPTIONS_INIT(struct slu_submit), .timeout = timeout }, .rc = -1 };
	CHECK_EQ(0, pthread_create(&w->thread, NULL, run_waiter, w));
}

/* Until it has seen that there is no room at this time. */
static void
let_it_look(struct rig *r)
{
	const int looks = atomic_load(&r->looks);

	WAIT_UNTIL(atomic_load(&r->looks) >= looks + 2);
}

TEST(a_submit_waits_for_room_as_long_as_it_is_told)
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
		struct waiter w;
		struct rig r;

		rig_start(&r, (struct slu_executor_config){
				      .shards = 1, .queue_size = 1, .enqueue_timeout = cases[i].config });
		rig_block(&r, "a", &block);
		rig_submit(&r, "a", &wait);
		wait_begin(&w, &r, &p, cases[i].opts);
		let_it_look(&r);
		fakeclock_advance(&r.clock, cases[i].want - 1);
		let_it_look(&r);
		CHECK_EQ(-1, w.rc, "not before its time");
		fakeclock_advance(&r.clock, 1);
		pthread_join(w.thread, NULL);
		CHECK_EQ(SLU_EQFULL, w.rc, cases[i].label); /* SQ-45, SQ-39: after the timeout */
		CHECK_EQ(1, w.err.length);
		rig_release(&r);
		CHECK_EQ(0, p.runs);
	}
}

TEST(a_submit_that_waits_gets_the_room_that_comes)
{
	struct probe block = PROBE("block"), wait = PROBE("wait"), p = PROBE("p");
	struct waiter w;
	struct rig r;

	rig_start(&r, (struct slu_executor_config){ .shards = 1, .queue_size = 1 });
	rig_block(&r, "a", &block);
	rig_submit(&r, "a", &wait);
	wait_begin(&w, &r, &p, SLU_NEVER);
	rig_open_gate(&r);
	pthread_join(w.thread, NULL);
	CHECK_EQ(0, w.rc);
	rig_release(&r);
	CHECK_STR("block wait p", r.trace);
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

TEST(full_closed_and_other_are_told_apart_by_code)
{
	struct probe block = PROBE("block"), p = PROBE("p"), q = PROBE("q");
	struct slu_cancel *token = slu_cancel_new();
	const struct slu_submit canceled = { SLU_OPTIONS_INIT(struct slu_submit), .cancel = token };
	struct rig r;

	slu_cancel_fire(token, NULL);
	rig_start(&r, (struct slu_executor_config){ .shards = 1, .queue_size = 1 });
	rig_block(&r, "a", &block);
	/* SQ-42: no text is looked at */
	CHECK_STR("go on", what_to_do(rig_try(&r, "a", &p, &nowait, NULL)));
	CHECK_STR("slow down", what_to_do(rig_try(&r, "a", &q, &nowait, NULL)));
	CHECK_STR("give up", what_to_do(rig_try(&r, "a", &q, &canceled, NULL)));
	rig_open_gate(&r);
	CHECK_EQ(0, slu_executor_stop(r.ex, 0));
	CHECK_STR("end", what_to_do(rig_try(&r, "a", &q, NULL, NULL)));
	rig_release(&r);
	slu_cancel_free(token);
}

struct nested {
	struct slu_executor *ex;
	_Atomic int rc;
	_Atomic int queued;
};

static int
do_nothing(struct slu_run *run, void *arg)
{
	(void)run;
	(void)arg;
	return 0;
}

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

TEST(a_task_that_fills_its_own_shard_is_told_and_goes_on)
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

/* --- a key that waits for a retry (E4) --- */

TEST(a_parked_key_may_not_take_the_shard_for_itself)
{
	struct probe bad = PROBE("bad", .fails = -1), *p = probes(16);
	struct rig r;

	rig_start(&r, (struct slu_executor_config){ .shards = 1, .queue_size = 16 });
	rig_submit(&r, "bad", &bad);
	rig_settle(&r);
	CHECK_EQ(7, fill_up(&r, "bad", p, 16)); /* E4: 8 places, 8 are free */
	rig_settle(&r);
	CHECK_EQ(8, rig_stats(&r).waiting);
	CHECK_EQ(0, fill_up(&r, "bad", p + 7, 1));
	CHECK_EQ(0, rig_stats(&r).queued);
	rig_release(&r);
}

TEST(a_parked_key_may_not_take_the_shard_while_its_worker_is_busy)
{
	struct probe bad = PROBE("bad", .fails = -1), block = PROBE("block");
	struct probe *p = probes(16);
	uint32_t own, others;
	struct rig r;

	rig_start(&r, (struct slu_executor_config){ .shards = 1, .queue_size = 16 });
	rig_submit(&r, "bad", &bad);
	rig_settle(&r);
	rig_block(&r, "other", &block);
	own = fill_up(&r, "bad", p, 16);
	CHECK_EQ(7, own); /* E4: the leader and these are half of it */
	others = fill_up(&r, "other", p + own, 16 - own);
	CHECK_EQ(8, others);
	rig_release(&r);
}

TEST(other_keys_may_fill_what_a_parked_key_leaves)
{
	struct probe bad = PROBE("bad", .fails = -1), block = PROBE("block");
	struct rig r;

	rig_start(&r, (struct slu_executor_config){ .shards = 1, .queue_size = 4 });
	rig_submit(&r, "bad", &bad);
	rig_settle(&r);
	rig_block(&r, "other", &block);
	CHECK_EQ(3, fill_up(&r, "other", probes(4), 4)); /* E4: retries included */
	CHECK_EQ(4, rig_stats(&r).queued + rig_stats(&r).waiting);
	rig_release(&r);
}

TEST(a_task_that_fails_in_a_full_shard_waits_on_top)
{
	struct probe bad = PROBE("bad", .fails = 1), more = PROBE("more");
	struct slu_err err;
	struct rig r;

	rig_start(&r, (struct slu_executor_config){ .shards = 1, .queue_size = 4 });
	rig_block(&r, "bad", &bad);
	CHECK_EQ(4, fill_up(&r, "bad", probes(5), 5));
	rig_open_gate(&r);
	rig_settle(&r);
	CHECK_EQ(5, rig_stats(&r).waiting); /* E4: one more */
	CHECK_EQ(SLU_EQFULL, rig_try(&r, "other", &more, &nowait, &err));
	CHECK_EQ(5, err.length);
	CHECK_EQ(4, err.capacity);
	rig_next_retry(&r);
	CHECK_EQ(0, rig_stats(&r).waiting);
	CHECK_EQ(0, rig_try(&r, "other", &more, &nowait, &err));
	rig_release(&r);
}

/* --- batches --- */

TEST(a_batch_is_queued_in_one_piece)
{
	enum {
		N = 8
	};
	static const char *const names[N] = { "0", "1", "2", "3", "4", "5", "6", "7" };
	struct probe block = PROBE("block"), p[N], before = PROBE("x"), after = PROBE("y");
	struct slu_task tasks[N];
	uint64_t first = 0, id;
	struct rig r;

	rig_start(&r, (struct slu_executor_config){ .shards = 1 });
	rig_block(&r, "k", &block);
	id = rig_submit(&r, "k", &before);
	for (int i = 0; i < N; i++) {
		p[i] = (struct probe)PROBE(names[i]);
		tasks[i] = rig_task(&r, &p[i]);
	}
	CHECK_EQ(0, slu_executor_submit_batch(r.ex, "k", tasks, N, NULL, &first, NULL));
	CHECK_EQ(id + 1, first);
	CHECK_EQ(first + N, rig_submit(&r, "k", &after));
	rig_open_gate(&r);
	rig_settle(&r);
	CHECK_STR("block x 0 1 2 3 4 5 6 7 y", rig_trace(&r)); /* SQ-F8: contiguous */
	for (int i = 0; i < N; i++)
		CHECK_EQ(first + (uint64_t)i, p[i].id);
	rig_release(&r);
}

static int
try_batch(struct rig *r, const struct slu_task *tasks, uint32_t n, struct slu_err *err)
{
	return slu_executor_submit_batch(r->ex, "k", tasks, n, &nowait, NULL, err);
}

TEST(a_batch_that_does_not_fit_is_refused_whole)
{
	struct probe block = PROBE("block"), *p = probes(8);
	struct slu_task tasks[8];
	struct slu_err err;
	struct rig r;

	rig_start(&r, (struct slu_executor_config){ .shards = 1, .queue_size = 6 });
	for (int i = 0; i < 8; i++)
		tasks[i] = rig_task(&r, &p[i]);
	rig_block(&r, "k", &block);
	CHECK_EQ(0, try_batch(&r, tasks, 3, NULL));
	/* SQ-F8: none of the four, though three would fit */
	CHECK_EQ(SLU_EQFULL, try_batch(&r, tasks + 3, 4, &err));
	CHECK_EQ(3, err.length);
	CHECK_EQ(3, rig_stats(&r).queued);
	CHECK_EQ(0, try_batch(&r, tasks + 3, 3, NULL));
	CHECK_EQ(SLU_EINVAL, try_batch(&r, tasks, 0, &err));
	CHECK_EQ(SLU_EINVAL, try_batch(&r, tasks, 7, &err));
	tasks[7].run = NULL;
	CHECK_EQ(SLU_EINVAL, try_batch(&r, tasks + 6, 2, &err));
	rig_open_gate(&r);
	CHECK_EQ(0, slu_executor_stop(r.ex, 0));
	CHECK_EQ(SLU_ECLOSED, try_batch(&r, tasks + 6, 1, &err));
	rig_release(&r);
	CHECK_EQ(7, r.runs);
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
	for (int i = 0; i < 1000; i++) /* E5: keys of 47 bytes need nothing more */
		submit_fn(ex, key, do_nothing, NULL);
	CHECK_EQ(0, mem_failed());
	mem_fail_at(0);
	key[47] = 'k';
	key[SLU_KEY_MAX] = 0;
	for (int i = 0; i < 9; i++)
		submit_fn(ex, key, do_nothing, NULL);
	mem_fail_at(1);
	for (int i = 0; i < 1000; i++) /* E5: each place has seen a long key by now */
		submit_fn(ex, key, do_nothing, NULL);
	CHECK_EQ(0, mem_failed());
	mem_fail_at(0);
	CHECK_EQ(0, slu_executor_close(ex));
}

TEST(retries_and_cancels_allocate_nothing)
{
	struct slu_cancel *token = slu_cancel_new();
	const struct slu_submit opts = { SLU_OPTIONS_INIT(struct slu_submit), .cancel = token };
	struct probe a = PROBE("a", .fails = 2), b = PROBE("b", .fails = -1);
	struct rig r;

	rig_start(&r, (struct slu_executor_config){ .shards = 1 });
	mem_fail_at(1);
	rig_submit(&r, "a", &a);
	CHECK_EQ(0, rig_try(&r, "b", &b, &opts, NULL));
	rig_next_retry(&r);
	rig_next_retry(&r);
	slu_cancel_fire(token, NULL);
	WAIT_UNTIL(atomic_load(&b.reports) == 1);
	CHECK_EQ(0, mem_failed());
	mem_fail_at(0);
	rig_release(&r);
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
	struct probe block = PROBE("block"), *p = probes(128);
	struct slu_executor *ex;
	struct rig r;

	CHECK_EQ(0, slu_executor_start(&ex, NULL, NULL));
	printf("# default queue: %zu bytes a shard, %zu in all, %zu an entry\n", bytes_of(ex, 0),
	       bytes_of(ex, SLU_ALL_SHARDS), sizeof(struct slot));
	CHECK_EQ(8 * sizeof(struct slot) + RINGS + INDEX, bytes_of(ex, 0)); /* SQ-67 */
	CHECK(bytes_of(ex, SLU_ALL_SHARDS) <= 32 << 10);
	CHECK_EQ(0, slu_executor_close(ex));

	rig_start(&r, (struct slu_executor_config){ .shards = 1 });
	rig_block(&r, "k", &block);
	for (int i = 0; i < 128; i++)
		rig_submit(&r, "k", &p[i]);
	CHECK_EQ((PLACES + ROUNDED) * sizeof(struct slot) + RINGS + INDEX, bytes_of(r.ex, 0));
	rig_open_gate(&r);
	rig_settle(&r);
	CHECK_EQ(128, p[127].runs + 127);
	rig_release(&r);
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
