/*
 * task.h - a task: one act on many messages of a queue, which the server does in steps.
 *
 *      running ──> done         all messages were looked at
 *         │ ├────> canceled
 *         │ ├────> stopped      too many deliveries failed: stop_if_failing
 *         │ └────> failed       it cannot go on
 *         └ canceling           until the step that runs has ended
 *
 * A task is kept as a message in the queue TASK_QUEUE of its namespace. The payload is a JSON document:
 *
 *      {"version":1,"task":"318497266802130944","action":"redrive","phase":"running","queue":"orders",...}
 *
 * Times of the document are nanoseconds. A later version is refused; members that a reader does not know are ignored.
 *
 *  TASK-1  A task changes a message at most once, and only messages that were there when it began: accepted before, or dead
 *          before. TASK_RUN may change one again that has failed meanwhile and waits for its next try.
 *  TASK-2  An act that would change the order of a key, or make a message lose its unique key or its batch, is refused for
 *          that message, as are messages that are leased. The task counts them as `refused`, and keeps the first reason.
 *  TASK-3  After a restart or a takeover the task looks at all messages again: those that are done do not match any more.
 *          The document is written each second, so `done` may miss what the last second did.
 *  TASK-4  A task with a start changes nothing before that moment. If it is canceled before, it has changed nothing.
 */
#ifndef API_TASK_TASK_H
#define API_TASK_TASK_H

#include "api/admin/filter.h"
#include "base/json/json_out.h"
#include "core/reserved.h"

#include <stdio.h>

enum {
	TASK_DOC_VERSION = 2, /* 1: without the conditions share, kind, body, priority_*, attempts_* */
	TASK_ERROR = 320,     /* bytes of the reason, with the NUL */
	TASK_RATE_MAX = 1000000,
	TASK_ID_TEXT = 24,    /* an id as text, with the NUL */
	TASKS_MAX = 200,      /* of a namespace */
	TASKS_ENDED_MAX = 100 /* of these that have ended; older ones are forgotten */
};

#define TASK_KEPT (7 * 24 * SLU_HOUR) /* after its end */

enum task_action {
	TASK_REDRIVE, /* dead letters start anew, here or in the queue `to` */
	TASK_MOVE,    /* to the queue `to`, or back to the queue that each died in */
	TASK_DELETE,
	TASK_PRIORITY, /* messages that wait get the priority `prio` */
	TASK_RUN,      /* messages that are delayed are due now */
	TASK_DELAY,    /* messages that wait are due at the moment `until` */
	TASK_ACTIONS
};

enum task_phase {
	TASK_RUNNING,
	TASK_DONE,
	TASK_CANCELED,
	TASK_STOPPED,
	TASK_FAILED,
	TASK_PHASES
};

struct task {
	uint64_t id;

	/* What it does. Texts are borrowed. */
	enum task_action action;
	struct slice queue;
	enum msg_state state; /* MSG_NONE: those that wait, ready, delayed or held */
	struct admin_filter filter;
	struct slice to; /* n 0: the same queue */
	bool to_source;  /* MOVE: each to the queue that it died in */
	int32_t prio;
	slu_time until;           /* DELAY; wall clock */
	slu_time start;           /* it changes nothing before, and can be canceled; wall clock; 0: at once */
	uint32_t rate;            /* messages a second; 0: as quickly as steps go */
	uint32_t stop_if_failing; /* stops when so many deliveries of its target have failed since it began; 0: never */
	bool dry_run;             /* only counts */
	struct slice by;          /* who began it */
	slu_time created;         /* wall clock */

	/* What has happened. */
	enum task_phase phase;
	bool cancel;      /* to end soon */
	slu_time before;  /* TASK-1: messages since then are not of the task; 0: it has not begun */
	slu_time ended;   /* wall clock; 0: it runs */
	uint64_t total;   /* messages in `state` when it was created */
	uint64_t looked;  /* by this pass */
	uint64_t matched; /* what the filter let pass */
	uint64_t done;
	uint64_t refused;
	uint64_t failures;      /* failed deliveries of its target */
	char error[TASK_ERROR]; /* why it ended, waits, or the first refusal; or empty */
};

/* Checks what a caller asks for, and sets the state that follows from the action. SLU_EINVAL. */
int task_check(struct task *t, struct slu_err *err);

int task_action_parse(struct slice text, enum task_action *out, struct slu_err *err);

/* Sets t->error, cut; what is not printable ASCII becomes '?'. */
void task_set_error(struct task *t, const char *text);

/* The id of the message of a task, for OP_SCHEDULE. */
uint64_t task_message_id(struct slice space, uint64_t id);

/* The id as text; returns out. */
const char *task_id_text(uint64_t id, char out[static TASK_ID_TEXT]);

/* Appends the document; out->failed: no memory. */
void task_encode(const struct task *t, struct buf *out);

/* room: doc.n bytes for texts. Texts of *out point into both. SLU_ECORRUPT if the document is malformed. */
int task_decode(struct slice doc, char *room, struct task *out, struct slu_err *err);

/* Fills the put of the message of a task; texts are in the arena. SLU_ENOMEM. */
struct arena;
int task_put(const struct task *t, struct slice space, struct arena *memory, struct op_put *out);

/* Writes the members of a task for callers. */
void task_show(struct json_out *w, struct slice space, const struct task *t);

#endif
