/*
 * tasks.h - begins, lists, shows and cancels tasks for a request of any HTTP dialect. The server's thread does the work
 * (api/task/tasker.h).
 *
 *      struct state { struct task_call call; ... };
 *
 *      s->call = (struct task_call){ .space = s->space, .t = {
 *              .action = TASK_MOVE, .queue = SLICE("orders-dead"), .state = MSG_READY, .to_source = true, .rate = 100 } };
 *      tasks_begin(a, &s->call, begun);
 *
 *      begun(a, rc, err): rc 0: s->call.t is the task with its id; answer the request.
 *                         otherwise err says why; refuse the request.
 *
 * A task_call lives in the state of the apicall. The calls use a->op, a->part and a->rows. The rights of the route
 * (terms.needs) are checked in the namespace. `then` runs on the loop, once, and may answer.
 *
 *  TASKS-1  A namespace has at most TASKS_MAX tasks: then tasks_begin returns SLU_EBUSY with LIMIT_TASKS. Tasks that have
 *           ended are forgotten, the oldest first.
 *  TASKS-2  A task is on disk before tasks_begin returns 0. A Redis shard refuses it with SLU_EINVAL.
 */
#ifndef API_TASK_TASKS_H
#define API_TASK_TASKS_H

#include "api/rows.h"
#include "api/task/task.h"

typedef void tasks_then(struct apicall *a, int rc, const struct slu_err *err);

struct task_call {
	struct slice space;
	struct task t; /* begin: the definition, then the task. Others: t.id, then the task */

	/* Private. */
	tasks_then *then;
	struct op_queue queue;
	struct op_row row;
	struct op_item item;
	struct op_put put;
	struct rows rows;
	uint64_t number; /* of its message; 0: it does not exist */
	unsigned tries;
	bool cancels;
	int rc;
	struct slu_err err;
};

/* Begins a task: the definition is checked, `by` and `created` are set here. SLU_ENOTFOUND: no such queue. */
void tasks_begin(struct apicall *a, struct task_call *c, tasks_then *then);

/* Finds the task c->t.id. Texts of c->t are in the memory of the apicall. SLU_ENOTFOUND: no such task. */
void tasks_get(struct apicall *a, struct task_call *c, tasks_then *then);

/* The same, and the task ends soon. A task that has ended is left as it is: c->t.ended is set. */
void tasks_cancel(struct apicall *a, struct task_call *c, tasks_then *then);

/* All tasks of a namespace, the newest first. */
struct task_list {
	struct slice space;
	struct slice queue; /* only tasks of this queue; n 0: all */

	/* Answer, in the memory of the apicall. */
	struct task *tasks;
	uint32_t n;

	/* Private. */
	tasks_then *then;
	struct rows rows;
	uint32_t room;
	struct slu_err err;
};

void tasks_list(struct apicall *a, struct task_list *l, tasks_then *then);

#endif
