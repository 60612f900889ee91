/*
 * exec_help.h - the fixture of test_exec_*.c: an executor on a clock that stands still, tasks
 * that follow a plan, and a record of what happened.
 *
 *         static struct probe a = PROBE("a1", .fails = 1);
 *
 *         rig_submit("a", &a);
 *         rig_settle();                        it has failed and waits
 *         fakeclock_advance(&rig.clock, rig_wait());
 *         rig_settle();
 *         CHECK_STR("a1 a1", rig_trace());     it ran twice ...
 *         CHECK_STR("a1:ok", rig_ends());      ... and was reported once
 *
 * A test begins with an executor of one shard; rig_start replaces it. After the test the
 * harness opens the gate, closes the executor and checks that every accepted task was
 * reported and that no task ran after its report. Tasks may run until then: the probes of a
 * test are static.
 */
#ifndef TESTS_EXEC_HELP_H
#define TESTS_EXEC_HELP_H

#include "fakeclock.h"
#include "test.h"

#include <sluice/executor.h>

#include <stdatomic.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* What the error handler received last. */
struct told {
	char key[SLU_KEY_MAX + 1];
	uint32_t shard;
	uint64_t id;
	unsigned attempt;
	int rc;
	struct slu_err err;
};

extern struct exec_rig {
	struct fakeclock clock;            /* first */
	const struct clock_ops *clock_ops; /* its own, below those that count */
	_Atomic int looks;                 /* at the clock, by threads that rig_count_looks */
	struct slu_log *log;               /* all levels, kept below */
	struct slu_executor *ex;
	uint32_t shards;

	_Atomic bool gate;  /* tasks that wait go on once it is open */
	_Atomic int inside; /* tasks running now */
	_Atomic int most;   /* that ran at once */
	_Atomic int runs;
	_Atomic int reports;
	_Atomic int errors; /* calls of the error handler */
	_Atomic int late;   /* runs of a task after its report: always 0 */

	pthread_mutex_t mtx;
	struct told told; /* shared, under mtx, as all below */
	char trace[16384];
	char ends[16384];
	char lines[32768];
	char shown[32768];
} rig;

/* What a task does, and what became of it. */
struct probe {
	const char *name;  /* in the trace */
	int fails;         /* that many runs, then it succeeds; -1: all */
	int rc;            /* of a run that fails; 0: SLU_EFAILED */
	const char *text;  /* of its error */
	const char *panic; /* instead of failing */
	bool waits;        /* each run, for the gate */
	_Atomic int runs;
	_Atomic int reports;
	_Atomic int result;       /* rc of its report */
	_Atomic unsigned attempt; /* in its report */
	_Atomic uint64_t id;      /* as its run or report saw it */
};

/* clang-format off */
#define PROBE(...) { .name = __VA_ARGS__ }
/* clang-format on */

/* Releases the executor that was started before, if any. */
void rig_start(struct slu_executor_config config);

void rig_begin(void); /* before a test: one shard */
void rig_release(void);
FIXTURE(rig_begin, rig_release);

struct slu_task rig_task(struct probe *p);
int rig_try(const char *key, struct probe *p,
	    const struct slu_submit *opts, struct slu_err *err);
uint64_t rig_submit(const char *key, struct probe *p); /* its id */

/* A submit of key "a" in a thread of its own, which waits for room. Join the thread. */
struct room_waiter {
	struct probe *probe;
	struct slu_submit opts;
	struct slu_err err;
	_Atomic int rc; /* -1: it waits */
	pthread_t thread;
};

void rig_wait_for_room(struct room_waiter *s, struct probe *p, struct slu_submit opts);

/* Run this one and wait until it is inside: the shard is busy until the gate opens. */
void rig_block(const char *key, struct probe *p);
void rig_open_gate(void);

/* Wait until every worker sleeps: whatever could happen by now has happened. */
void rig_settle(void);

/* From now on the calling thread's looks at the clock are counted: a submit that waits
 * for room looks when it begins to wait and then each millisecond. */
void rig_count_looks(void);

/* How long from now until the next retry. */
slu_time rig_wait(void);

/* Move on to the next retry and let it happen. */
void rig_next_retry(void);

/* "a1 b1 a1": names in order of their runs, or "a1:ok b1:failed" of their reports, or log
 * lines. Valid until the next call of these. */
const char *rig_trace(void);
const char *rig_ends(void);
const char *rig_lines(void);
int rig_count_lines(const char *part);
struct told rig_told(void);

struct slu_executor_stats rig_stats(void);
struct slu_task_status rig_status(uint64_t id);

/* The n-th key, from 0, that belongs to a shard; buf takes 32 bytes. */
const char *rig_key(const struct slu_executor *ex, uint32_t shard, int n, char *buf);

/* Queue a plain function, however long it takes to get room; returns its id. */
uint64_t submit_fn(struct slu_executor *ex, const char *key, slu_task_fn *run, void *arg);

int do_nothing(struct slu_run *run, void *arg); /* a task */

int count_threads(void); /* of this process */
size_t resident_bytes(void);

#endif
