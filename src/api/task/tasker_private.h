/*
 * tasker_private.h - the tasks that this node does, and the steps of the thread; for tasker*.c alone.
 */
#ifndef API_TASK_TASKER_PRIVATE_H
#define API_TASK_TASKER_PRIVATE_H

#include "api/arena.h"
#include "api/background/opwait.h"
#include "api/task/task.h"
#include "api/task/tasker.h"

enum {
	STEP_ROWS = 500,      /* messages that a step looks at */
	STEP_ACTS = 100,      /* messages that a step changes */
	STEP_BYTES = 8 << 20, /* of records that a step reads: it ends behind the message that reaches this */
	STEPS_A_SECOND = 4    /* of a task with a rate, at least */
};

#define TASKER_OP_MAX (10 * SLU_SEC) /* a shard that hangs holds the thread up for so long */

/* A task in memory. */
struct tasked {
	char space[NAME_TEXT];
	uint64_t number;   /* of its message */
	slu_time accepted; /* of its message */
	struct task t;     /* its texts are in doc */
	char *doc;
	bool seen; /* by the load that runs */

	/* Of the pass. */
	uint64_t cursor;
	slu_time resume;          /* not before, by the monotonic clock */
	slu_time stored;          /* when its progress was last stored */
	slu_time counted;         /* when failures were last looked at */
	uint64_t failed;          /* the counter of the target then */
	bool has_failed;          /* `failed` is known */
	bool waits;               /* the last step could not do its acts */
	char refusal[TASK_ERROR]; /* the first refusal */
};

/* A step: the messages of a page, and what is to happen to them. */
struct task_step {
	struct tasked *row;
	struct op list;
	struct op_row rows[STEP_ROWS];
	int32_t act_of[STEP_ROWS]; /* index of its act, or -1 */
	uint32_t at;               /* rows that were looked at */
	uint64_t bytes;            /* of records that were read */
	struct arena memory;

	uint32_t n_acts, max_acts;
	struct op_item items[STEP_ACTS];
	struct op_put puts[STEP_ACTS];
	struct op ops[STEP_ACTS];

	uint64_t looked, matched, done, refused;
	bool again;         /* an act must be tried again */
	struct slu_err err; /* why, or why the task has failed */
};

struct tasker {
	struct slu_log *log;
	struct broker *broker;
	struct opwait wait;
	struct task_step *step;

	/* Of the thread. */
	struct tasked *rows;
	uint32_t n, room;
	uint64_t expected; /* changes that it knows of */
	slu_time loaded;
	bool stale;
	bool failing;

	/* Shared. */
	pthread_mutex_t mtx;
	pthread_cond_t wake;
	uint64_t changes; /* under mtx */
	bool stops;       /* under mtx */
	pthread_t thread;
	bool runs;

	/* Metrics. */
	_Atomic uint64_t running, ended, messages, refused, failed;
};

slu_time tasker_mono(void);

/* ---- tasker_book.c ---- */

/* Reads the tasks of all shards of this node. Tasks that it knows keep their progress. Forgets old ones. */
int tasker_load(struct tasker *s, struct slu_err *err);
void tasker_unload(struct tasker *s);

/* Stores the progress. A cancel that came meanwhile is taken over. SLU_ENOTFOUND, SLU_EMOVED: not here any more. */
int tasker_store(struct tasker *s, struct tasked *row, struct slu_err *err);

/* ---- tasker_step.c ---- */

/* Does a step of a running task. Returns SLU_ENOTFOUND or SLU_EMOVED if the task is not here any more. */
int tasker_step(struct tasker *s, struct tasked *row, struct slu_err *err);

/* ---- tasker_act.c ---- */

/* Adds the act for row i. m: its record, in step->memory. Returns false, with the reason in text, if the act is refused. */
bool tasker_act_add(struct task_step *p, uint32_t i, const struct message *m, char *text, size_t size);

/* Does the acts, and counts their outcomes. Returns a code if the task cannot go on at all. */
int tasker_act_run(struct tasker *s, struct task_step *p);

#endif
