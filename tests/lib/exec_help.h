/*
 * exec_help.h - an executor on a clock that stands still, tasks that do as they are
 * told, and a record of what happened. For test_exec_*.c.
 *
 *         struct rig r;
 *         struct probe a = PROBE("a1", .fails = 1);
 *
 *         rig_start(&r, (struct slu_executor_config){ SLU_OPTIONS_INIT(struct slu_executor_config), .shards = 1 });
 *         rig_submit(&r, "a", &a);
 *         rig_settle(&r);                        it has failed and waits
 *         fakeclock_advance(&r.clock, rig_wait(&r));
 *         rig_settle(&r);
 *         CHECK_STR("a1 a1", rig_trace(&r));     it ran twice ...
 *         CHECK_STR("a1:ok", rig_ends(&r));      ... and was reported once
 *         rig_release(&r);
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

/* What the error handler was told last. */
struct told {
	char key[SLU_KEY_MAX + 1];
	uint32_t shard;
	uint64_t id;
	unsigned attempt;
	int rc;
	struct slu_err err;
};

struct rig {
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
};

/* What a task does, and what became of it. */
struct probe {
	const char *name;  /* in the trace */
	int fails;         /* that many runs, then it succeeds; -1: all */
	int rc;            /* of a run that fails; 0: SLU_EFAILED */
	const char *text;  /* of its error */
	const char *panic; /* instead of failing */
	bool waits;        /* each run, for the gate */
	struct rig *rig;   /* set by rig_task */
	_Atomic int runs;
	_Atomic int reports;
	_Atomic int result;       /* rc of its report */
	_Atomic unsigned attempt; /* in its report */
	_Atomic uint64_t id;      /* as its run or report saw it */
};

/* clang-format off */
#define PROBE(...) { .name = __VA_ARGS__ }
/* clang-format on */

void rig_start(struct rig *r, struct slu_executor_config config);

/* Opens the gate, closes the executor, checks that nothing ran after its report and
 * that all that was accepted has been reported. */
void rig_release(struct rig *r);

struct slu_task rig_task(struct rig *r, struct probe *p);
int rig_try(struct rig *r, const char *key, struct probe *p,
	    const struct slu_submit *opts, struct slu_err *err);
uint64_t rig_submit(struct rig *r, const char *key, struct probe *p); /* its id */

/* Run this one and wait until it is inside: the shard is busy until the gate opens. */
void rig_block(struct rig *r, const char *key, struct probe *p);
void rig_open_gate(struct rig *r);

/* Wait until every worker sleeps: whatever could happen by now has happened. */
void rig_settle(struct rig *r);

/* From now on the calling thread's looks at the clock are counted: a submit that waits
 * for room looks when it begins to wait and then each millisecond. */
void rig_count_looks(void);

/* How long from now until the next retry. */
slu_time rig_wait(struct rig *r);

/* Move on to the next retry and let it happen. */
void rig_next_retry(struct rig *r);

/* "a1 b1 a1": names in order of their runs, or "a1:ok b1:failed" of their reports, or log
 * lines. Valid until the next such call. */
const char *rig_trace(struct rig *r);
const char *rig_ends(struct rig *r);
const char *rig_lines(struct rig *r);
int rig_count_lines(struct rig *r, const char *part);
struct told rig_told(struct rig *r);

struct slu_executor_stats rig_stats(struct rig *r);
struct slu_task_status rig_status(struct rig *r, uint64_t id);

/* The n-th key, from 0, that belongs to a shard; buf takes 32 bytes. */
const char *rig_key(const struct slu_executor *ex, uint32_t shard, int n, char *buf);

/* Queue a plain function, however long it takes to get room; returns its id. */
uint64_t submit_fn(struct slu_executor *ex, const char *key, slu_task_fn *run, void *arg);

int count_threads(void); /* of this process */
size_t resident_bytes(void);

#endif
