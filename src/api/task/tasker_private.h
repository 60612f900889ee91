/*
 * tasker_private.h - the tasks that this node does, and the steps of the thread; for tasker*.c alone.
 */
#ifndef API_TASK_TASKER_PRIVATE_H
#define API_TASK_TASKER_PRIVATE_H

#include "form/arena.h"
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
	struct duty_row row;
	struct task t; /* its texts are in row.memory */

	/* Of the pass. */
	uint64_t cursor;
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
	struct duty duty;
	struct task_step *step;
};

enum {
	TASKER_ENDED = DUTY_METRICS,
	TASKER_MESSAGES,
	TASKER_REFUSED,
	TASKER_RUNNING,
	TASKER_METRICS
};

/* ---- tasker.c ---- */

/* Stores the progress. A cancel that came meanwhile is taken over. SLU_ENOTFOUND, SLU_EMOVED: not here any more. */
int tasker_store(struct tasker *s, struct tasked *one, struct slu_err *err);

/* Counts the tasks that run. */
void tasker_count(struct tasker *s);

/* ---- tasker_step.c ---- */

/* Does a step of a running task: kind->act. */
int tasker_step(struct duty *d, struct duty_row *one, struct slu_err *err);

/* ---- tasker_act.c ---- */

/* Adds the act for row i. m: its record, in step->memory. Returns false, with the reason in text, if the act is refused. */
bool tasker_act_add(struct task_step *p, uint32_t i, const struct message *m, char *text, size_t size);

/* Does the acts, and counts their outcomes. Returns a code if the task cannot go on at all. */
int tasker_act_run(struct tasker *s, struct task_step *p);

#endif
