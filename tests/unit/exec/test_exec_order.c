/* What is promised about order, parallelism and routing. */
#include "exec_help.h"

#include <sys/wait.h>
#include <unistd.h>
#include <stdio.h>
#include <stdlib.h>

/* --- one key --- */

/* Counts up, and notes when another thread was faster. */
struct sequence {
	_Atomic int next;
	_Atomic int wrong;
	_Atomic int inside;
	_Atomic int most;
	bool slow;
};

struct step {
	struct sequence *sequence;
	int number;
};

static int
run_step(struct slu_run *run, void *arg)
{
	const struct step *s = arg;
	struct sequence *q = s->sequence;
	const int inside = atomic_fetch_add(&q->inside, 1) + 1;

	(void)run;
	if (inside > atomic_load(&q->most))
		atomic_store(&q->most, inside);
	if (atomic_fetch_add(&q->next, 1) != s->number)
		atomic_fetch_add(&q->wrong, 1);
	if (q->slow)
		test_yield();
	atomic_fetch_sub(&q->inside, 1);
	return 0;
}

TEST(tasks_of_one_key_run_in_the_order_of_submit)
{
	enum {
		N = 10000
	};
	static struct step steps[N];
	struct sequence q = { 0 };
	struct slu_executor *ex;

	CHECK_EQ(0, slu_executor_start(&ex, NULL, NULL));
	for (int i = 0; i < N; i++) {
		steps[i] = (struct step){ &q, i };
		submit_fn(ex, "one", run_step, &steps[i]);
	}
	CHECK_EQ(0, slu_executor_close(ex));
	CHECK_EQ(N, q.next);  /* SQ-01: no gap ... */
	CHECK_EQ(0, q.wrong); /* SQ-01: ... and none out of turn */
}

/* Fails every third task once, so that retries are part of the order. */
static int
run_step_or_fail(struct slu_run *run, void *arg)
{
	const struct step *s = arg;

	if (s->number % 3 == 0 && run->attempt == 1)
		return SLU_EUNKNOWN;
	return run_step(run, arg);
}

static void
check_order(const char *label, const struct slu_executor_config *config)
{
	enum {
		N = 300
	};
	static struct step steps[N];
	const struct slu_submit patient = { SLU_OPTIONS_INIT(struct slu_submit), .timeout = SLU_NEVER };
	struct sequence q = { 0 };
	struct slu_executor *ex;

	CHECK_EQ(0, slu_executor_start(&ex, config, NULL), label);
	for (int i = 0; i < N; i++) {
		const struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), .run = run_step_or_fail, .arg = &steps[i] };

		steps[i] = (struct step){ &q, i };
		CHECK_EQ(0, slu_executor_submit(ex, "one", &task, &patient, NULL, NULL), label);
	}
	WAIT_UNTIL(atomic_load(&q.next) == N); /* with their retries, which a close would drop */
	CHECK_EQ(0, slu_executor_close(ex), label);
	CHECK_EQ(N, q.next, label);
	CHECK_EQ(0, q.wrong, label);
}

/* SQ-F3, SQ-F9: no option changes the order inside a key. */
TEST_BARE(tasks_of_one_key_run_in_order_in_every_configuration)
{
#define CONFIG .struct_size = sizeof(struct slu_executor_config), .base_backoff = 1, .max_interval = 2
	static const struct {
		const char *label;
		struct slu_executor_config config;
	} cases[] = {
		{ "one shard", { CONFIG, .shards = 1 } },
		{ "many shards", { CONFIG, .shards = 64 } },
		{ "room for one", { CONFIG, .queue_size = 1 } },
		{ "much room", { CONFIG, .queue_size = 4096 } },
		{ "a submit that waits", { CONFIG, .enqueue_timeout = SLU_MIN } },
		{ "many attempts", { CONFIG, .max_attempts = 1000 } },
		{ "two attempts", { CONFIG, .max_attempts = 2 } },
		{ "exponential", { CONFIG, .backoff = SLU_BACKOFF_EXPONENTIAL } },
		{ "linear", { CONFIG, .backoff = SLU_BACKOFF_LINEAR } },
		{ "fixed", { CONFIG, .backoff = SLU_BACKOFF_FIXED } },
		{ "no delay", { CONFIG, .backoff = SLU_BACKOFF_NONE } },
		{ "jitter", { CONFIG, .jitter = SLU_JITTER_FULL } },
	};
#undef CONFIG

	EACH(i, cases)
		check_order(cases[i].label, &cases[i].config);
}

TEST(tasks_of_one_key_never_overlap)
{
	enum {
		N = 200
	};
	static struct step steps[N];
	struct sequence q = { .slow = true };
	struct slu_executor *ex;

	CHECK_EQ(0, slu_executor_start(&ex, NULL, NULL));
	for (int i = 0; i < N; i++) {
		steps[i] = (struct step){ &q, i };
		submit_fn(ex, "same", run_step, &steps[i]);
	}
	CHECK_EQ(0, slu_executor_close(ex));
	CHECK_EQ(N, q.next);
	CHECK_EQ(1, q.most); /* SQ-02 */
}

TEST(a_plain_function_is_a_task_and_is_called_once)
{
	struct sequence q = { 0 };
	struct step s = { &q, 0 };
	struct slu_executor *ex;

	CHECK_EQ(0, slu_executor_start(&ex, NULL, NULL));
	/* SQ-06: nothing but the start was needed for it to run */
	submit_fn(ex, "k", run_step, &s);
	WAIT_UNTIL(atomic_load(&q.next) == 1);
	CHECK_EQ(0, slu_executor_close(ex));
	CHECK_EQ(1, q.next); /* SQ-10 */
}

TEST(submit_returns_before_the_task_has_ended)
{
	static struct probe a = PROBE("a"), b = PROBE("b");

	rig_block("k", &a);  /* SQ-11: it returned, and a has not ended */
	rig_submit("k", &b); /* SQ-11: it returned, and b cannot have begun */
	CHECK_EQ(0, a.reports);
	CHECK_EQ(0, b.runs);
	rig_release();
	CHECK_EQ(1, b.runs);
}

/* --- what the caller gives reaches the task --- */

struct seen {
	struct slu_run run;
	char key[SLU_KEY_MAX + 1];
	bool fired_before, fired_after;
	int given; /* what the caller put here */
	int result;
	_Atomic bool inside, go;
};

static int
look_around(struct slu_run *run, void *arg)
{
	struct seen *s = arg;

	s->run = *run;
	memcpy(s->key, run->key, strlen(run->key) + 1);
	s->result = s->given + 1;
	s->fired_before = slu_cancel_fired(run->cancel);
	atomic_store(&s->inside, true);
	WAIT_UNTIL(atomic_load(&s->go));
	s->fired_after = slu_cancel_fired(run->cancel);
	return 0;
}

TEST(a_task_sees_what_its_caller_gave_it)
{
	struct slu_cancel *token = slu_cancel_new();
	struct seen seen = { .given = 41 };
	const struct slu_task task = { SLU_OPTIONS_INIT(struct slu_task), .run = look_around, .arg = &seen };
	const struct slu_submit opts = { SLU_OPTIONS_INIT(struct slu_submit), .cancel = token };
	struct slu_executor *ex;
	uint64_t id;

	CHECK_EQ(0, slu_executor_start(&ex, NULL, NULL));
	CHECK_EQ(0, slu_executor_submit(ex, "the key", &task, &opts, &id, NULL));
	WAIT_UNTIL(atomic_load(&seen.inside));
	slu_cancel_fire(token, "while it runs");
	atomic_store(&seen.go, true);
	CHECK_EQ(0, slu_executor_stop(ex, 0));
	CHECK_EQ(42, seen.result);                     /* SQ-12: a value */
	CHECK(seen.run.cancel == token);               /* SQ-12: the token, and ... */
	CHECK(!seen.fired_before && seen.fired_after); /* SQ-12: ... its firing */
	CHECK_STR("the key", seen.key);
	CHECK_EQ(slu_executor_shard_of(ex, "the key"), seen.run.shard);
	CHECK_EQ(id, seen.run.id);
	CHECK_EQ(1, seen.run.attempt);
	slu_cancel_free(token);
	CHECK_EQ(0, slu_executor_close(ex));
}

TEST(keys_from_1_to_256_bytes_reach_the_task_whole)
{
	static const size_t fine[] = { 1, 46, 47, 48, 49, 255, 256 };
	char key[SLU_KEY_MAX + 1];
	struct slu_executor *ex;

	CHECK_EQ(0, slu_executor_start(&ex, NULL, NULL));
	EACH(i, fine) {
		struct seen seen = { .go = true };

		memset(key, 'k', sizeof key);
		key[fine[i]] = 0;
		submit_fn(ex, key, look_around, &seen);
		CHECK_EQ(0, slu_executor_await(ex, key, 0, NULL));
		CHECK_STR(key, seen.key);
	}
	CHECK_EQ(0, slu_executor_close(ex));
}

TEST(a_submit_that_makes_no_sense_is_refused)
{
	static const struct slu_task fine = { SLU_OPTIONS_INIT(struct slu_task), .run = run_step }, none = { SLU_OPTIONS_INIT(struct slu_task) };
	char too_long[SLU_KEY_MAX + 2];
	const struct {
		const char *label;
		const char *key;
		const struct slu_task *task;
		const char *says;
	} cases[] = {
		{ "key too long", too_long, &fine, "1 to 256 bytes" },
		{ "empty key", "", &fine, "1 to 256 bytes" },
		{ "no key", NULL, &fine, "1 to 256 bytes" },
		{ "no function", "k", &none, "no function" },
		{ "no task", "k", NULL, "task is NULL" },
	};
	struct slu_executor *ex;
	struct slu_err err;

	memset(too_long, 'k', sizeof too_long);
	too_long[SLU_KEY_MAX + 1] = 0;
	CHECK_EQ(0, slu_executor_start(&ex, NULL, NULL));
	EACH(i, cases) {
		CHECK_EQ(SLU_EINVAL,
			 slu_executor_submit(ex, cases[i].key, cases[i].task, NULL, NULL, &err),
			 cases[i].label);
		CHECK_CONTAINS(cases[i].says, err.text);
	}
	CHECK_EQ(SLU_EINVAL, slu_executor_await(ex, "", 0, &err));
	CHECK_EQ(SLU_EINVAL, slu_executor_await(ex, NULL, 0, &err));
	CHECK_EQ(0, slu_executor_close(ex));
}

/* --- many keys --- */

static struct slu_executor *
start_with(uint32_t shards)
{
	const struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config), .shards = shards };
	struct slu_executor *ex;

	CHECK_EQ(0, slu_executor_start(&ex, &config, NULL));
	return ex;
}

struct meeting {
	_Atomic int arrived;
	int wanted;
};

static int
meet(struct slu_run *run, void *arg)
{
	struct meeting *m = arg;

	(void)run;
	atomic_fetch_add(&m->arrived, 1);
	WAIT_UNTIL(atomic_load(&m->arrived) >= m->wanted);
	return 0;
}

TEST_LIMIT(keys_of_different_shards_run_at_the_same_time, 20)
{
	struct meeting m = { .wanted = 2 };
	struct slu_executor *ex = start_with(2);
	char key[32];

	for (uint32_t shard = 0; shard < 2; shard++)
		submit_fn(ex, rig_key(ex, shard, 0, key), meet, &m);
	CHECK_EQ(0, slu_executor_close(ex)); /* SQ-03: each waited for the other */
	CHECK_EQ(2, m.arrived);
}

TEST_LIMIT(as_many_tasks_run_at_once_as_there_are_shards, 20)
{
	enum {
		SHARDS = 8,
		EACH_SHARD = 4
	};
	static struct probe p[SHARDS * EACH_SHARD];
	char key[32];

	rig_start((struct slu_executor_config){ .shards = SHARDS });
	for (int i = 0; i < SHARDS * EACH_SHARD; i++) {
		p[i] = (struct probe)PROBE("p", .waits = true);
		rig_submit(rig_key(rig.ex, (uint32_t)i % SHARDS, i / SHARDS, key), &p[i]);
	}
	WAIT_UNTIL(atomic_load(&rig.inside) == SHARDS);
	rig_open_gate();
	rig_settle();
	CHECK_EQ(SHARDS, rig.most); /* SQ-04: all of them, and never more */
	CHECK_EQ(SHARDS * EACH_SHARD, rig.runs);
}

static void
submit_many(struct slu_executor *ex, int n)
{
	char key[64];

	for (int i = 0; i < n; i++) {
		const int width = i % 7 ? 1 : 60; /* some do not fit into a slot */

		(void)snprintf(key, sizeof key, "%0*d", width, i % 1000);
		submit_fn(ex, key, do_nothing, NULL);
	}
}

TEST(threads_and_memory_stay_the_same_under_endless_submits)
{
	const int before = count_threads();
	const int n = SANITIZED ? 20000 : 300000;
	struct slu_executor *ex = start_with(3);
	size_t warm;

	submit_many(ex, n);
	warm = resident_bytes();
	submit_many(ex, n);
	CHECK_EQ(before + 3, count_threads()); /* SQ-05: threads */
	if (!SANITIZED)                        /* SQ-05: memory, flat within a few pages */
		CHECK(resident_bytes() < warm + (256 << 10));
	CHECK_EQ(0, slu_executor_close(ex));
}

/* --- routing --- */

static uint32_t
independent_fnv1a(const char *key)
{
	uint32_t h = 2166136261u;

	for (; *key; key++) {
		h ^= (unsigned char)*key;
		h *= 16777619u;
	}
	return h;
}

TEST(the_shard_of_a_key_is_its_fnv1a_modulo_shards)
{
	static const uint32_t shards[] = { 1, 2, 3, 4, 7, 8, 100 };
	static const char *const keys[] = { "a", "foobar", "memory-123", "\xff\xfe", "0" };
	bool high = false;

	EACH(i, shards) {
		struct slu_executor *ex = start_with(shards[i]);

		EACH(k, keys) {
			const uint32_t hash = independent_fnv1a(keys[k]);
			const uint32_t shard = slu_executor_shard_of(ex, keys[k]);

			high |= hash > INT32_MAX;          /* where a signed modulo is negative */
			CHECK_EQ(hash % shards[i], shard); /* SQ-13 */
			CHECK(shard < shards[i]);
		}
		CHECK_EQ(0, slu_executor_close(ex));
	}
	CHECK(high);
}

/* The thread that a task runs on, noted by the task. */
static uint32_t
shard_it_runs_on(const char *key)
{
	struct seen seen = { .go = true };
	struct slu_executor *ex = start_with(5);

	submit_fn(ex, key, look_around, &seen);
	CHECK_EQ(0, slu_executor_close(ex));
	return seen.run.shard;
}

TEST_BARE(a_key_has_the_same_shard_after_a_restart_and_in_another_process)
{
	static const char *const keys[] = { "a", "b", "memory-123", "x/y/z" };

	EACH(i, keys) {
		const uint32_t shard = shard_it_runs_on(keys[i]);
		const pid_t other = fork();
		int status;

		if (other == 0)
			_exit((int)shard_it_runs_on(keys[i]));
		CHECK_EQ(shard, shard_it_runs_on(keys[i])); /* SQ-14: restarted */
		CHECK_EQ(other, waitpid(other, &status, 0));
		CHECK_EQ(shard, WEXITSTATUS(status)); /* SQ-14: another process */
		CHECK_EQ(independent_fnv1a(keys[i]) % 5, shard);
	}
}

/* --- many submitters --- */

enum {
	CROWD = 64,
	SHARES = SANITIZED ? 50 : 500
};

struct submitter {
	struct slu_executor *ex;
	char key[32];
	struct sequence *sequence;
	struct step steps[SHARES];
	pthread_t thread;
	struct crowd_trace *trace;
};

static void *
submit_share(void *arg)
{
	struct submitter *s = arg;

	for (int i = 0; i < SHARES; i++) {
		s->steps[i] = (struct step){ s->sequence, i };
		submit_fn(s->ex, s->key, run_step, &s->steps[i]);
	}
	return NULL;
}

TEST(many_threads_may_submit_different_keys)
{
	static struct submitter crowd[CROWD];
	static struct sequence sequences[CROWD];
	struct slu_executor *ex;

	CHECK_EQ(0, slu_executor_start(&ex, NULL, NULL));
	EACH(i, crowd) {
		crowd[i].ex = ex;
		crowd[i].sequence = &sequences[i];
		(void)snprintf(crowd[i].key, sizeof crowd[i].key, "key-%zu", i);
		CHECK_EQ(0, pthread_create(&crowd[i].thread, NULL, submit_share, &crowd[i]));
	}
	EACH(i, crowd)
		pthread_join(crowd[i].thread, NULL);
	CHECK_EQ(0, slu_executor_close(ex));
	EACH(i, crowd) {
		CHECK_EQ(SHARES, sequences[i].next); /* SQ-15: nothing lost */
		CHECK_EQ(0, sequences[i].wrong);
		CHECK_EQ(1, sequences[i].most);
	}
}

/* One key, many threads: each task notes the id it was accepted with. */
struct crowd_trace {
	uint64_t ids[CROWD * SHARES];
	int n; /* written by the key's tasks alone: they never overlap */
	_Atomic int inside;
	_Atomic int overlaps;
};

static int
note_id(struct slu_run *run, void *arg)
{
	struct crowd_trace *t = arg;

	if (atomic_fetch_add(&t->inside, 1) != 0)
		atomic_fetch_add(&t->overlaps, 1);
	t->ids[t->n++] = run->id;
	atomic_fetch_sub(&t->inside, 1);
	return 0;
}

static void *
submit_to_one_key(void *arg)
{
	struct submitter *s = arg;
	uint64_t last = 0;

	for (int i = 0; i < SHARES; i++) {
		const uint64_t id = submit_fn(s->ex, "shared", note_id, s->trace);

		CHECK(id > last); /* SQ-16: in the order in which submit returned */
		last = id;
	}
	return NULL;
}

TEST(many_threads_may_submit_one_key_and_the_id_tells_the_order)
{
	static struct submitter crowd[CROWD];
	static struct crowd_trace trace;
	struct slu_executor *ex;

	CHECK_EQ(0, slu_executor_start(&ex, NULL, NULL));
	EACH(i, crowd) {
		crowd[i].ex = ex;
		crowd[i].trace = &trace;
		CHECK_EQ(0, pthread_create(&crowd[i].thread, NULL, submit_to_one_key, &crowd[i]));
	}
	EACH(i, crowd)
		pthread_join(crowd[i].thread, NULL);
	CHECK_EQ(0, slu_executor_close(ex));
	CHECK_EQ(CROWD * SHARES, trace.n); /* SQ-16: no loss */
	CHECK_EQ(0, trace.overlaps);       /* SQ-16: no overlap */
	for (int i = 1; i < trace.n; i++)
		CHECK_EQ(trace.ids[i - 1] + 1, trace.ids[i]); /* SQ-16: as accepted */
}

/* --- the same again --- */

enum {
	KEYS = 12,
	TASKS = 400
};

struct keyed {
	struct traces *traces;
	int key;
	int number;
	int fails;
};

/* Per key, what ran: written by that key's tasks, which never overlap. */
struct traces {
	int n[KEYS];
	int what[KEYS][TASKS * 4];
	_Atomic int inside[KEYS];
	_Atomic int overlaps;
	struct keyed tasks[TASKS];
};

static int
note_keyed(struct slu_run *run, void *arg)
{
	const struct keyed *k = arg;
	struct traces *t = k->traces;

	if (atomic_fetch_add(&t->inside[k->key], 1) != 0)
		atomic_fetch_add(&t->overlaps, 1);
	t->what[k->key][t->n[k->key]++] = k->number * 10 + (int)run->attempt;
	atomic_fetch_sub(&t->inside[k->key], 1);
	return (int)run->attempt <= k->fails ? SLU_EFAILED : 0;
}

/* Seeded keys and failures over a few shards, with retries at once or after 1 us. */
static void
trace_run(struct traces *t, enum slu_backoff_kind backoff)
{
	const struct slu_executor_config config = {
		SLU_OPTIONS_INIT(struct slu_executor_config),
		.shards = 3, .queue_size = 32, .backoff = backoff, .base_backoff = SLU_US
	};
	uint64_t dice = test_seed();
	struct slu_executor *ex;
	char key[32];

	memset(t, 0, sizeof *t);
	CHECK_EQ(0, slu_executor_start(&ex, &config, NULL));
	for (int i = 0; i < TASKS; i++) {
		struct keyed *k = &t->tasks[i];

		*k = (struct keyed){ .traces = t, .number = i };
		k->key = (int)(test_random(&dice) % KEYS);
		k->fails = test_random(&dice) % 4 ? 0 : (int)(test_random(&dice) % 3);
		(void)snprintf(key, sizeof key, "key-%d", k->key);
		submit_fn(ex, key, note_keyed, k);
	}
	for (int i = 0; i < KEYS; i++) {
		(void)snprintf(key, sizeof key, "key-%d", i);
		CHECK_EQ(0, slu_executor_await(ex, key, 0, NULL));
	}
	CHECK_EQ(0, slu_executor_close(ex));
}

TEST(the_same_submits_give_the_same_trace_per_key)
{
	static struct traces first, second;

	trace_run(&first, SLU_BACKOFF_NONE);
	trace_run(&second, SLU_BACKOFF_FIXED);
	for (int k = 0; k < KEYS; k++) {
		CHECK_EQ(first.n[k], second.n[k]);
		/* SQ-75: the same runs in the same order */
		CHECK_EQ(0, memcmp(first.what[k], second.what[k], sizeof first.what[k]));
	}
}

TEST(stress_no_overlap_and_no_reordering_through_retries)
{
	static struct traces t;
	const int rounds = SANITIZED ? 20 : 100;

	for (int round = 0; round < rounds; round++) { /* SQ-74: overlap, seeded */
		trace_run(&t, round % 2 ? SLU_BACKOFF_FIXED : SLU_BACKOFF_NONE);
		CHECK_EQ(0, t.overlaps);
		for (int k = 0; k < KEYS; k++)
			for (int i = 1; i < t.n[k]; i++)
				CHECK(t.what[k][i] > t.what[k][i - 1]);
	}
}
