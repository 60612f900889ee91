/*
 * task.h - a task: a message in the words of codeQ.
 *
 *      codeq_find(t, a, id, then)     GET on each lane in turn, then RESULT ──> then(a): t->alive, t->done, or neither
 *
 * All functions run on the loop, except codeq_task_write, which may run on a file thread for its apicall.
 */
#ifndef API_CODEQ_TASK_H
#define API_CODEQ_TASK_H

#include "api/codeq/codeq.h"
#include "api/holder.h"

/* What the attributes of a message have of a task. */
struct codeq_extras {
	struct slice command; /* as its producer wrote it; n 0: the name of the queue */
	struct slice webhook;
};

/* Reads them; what has another form is not there. */
void codeq_extras_read(struct arena *memory, struct slice attributes, struct codeq_extras *out);

/* Writes the attributes of a new task. n 0: no memory, or there is nothing to write. */
struct slice codeq_extras_write(struct apicall *a, const struct codeq_extras *x);

/* How a task is shown. */
struct codeq_view {
	const struct op_row *row;
	const struct message *m;
	struct slice payload;
	struct slice owner;   /* of its lease; n 0: none */
	struct slice error;   /* its last one; n 0: none */
	const char *status;   /* in place of the row's, for a task that ends now; or NULL */
	slu_time updated;     /* with status */
	bool without_payload; /* it is too large for the document of a finished task */
};

/* Writes the task as an object. name: of the member, or NULL. */
void codeq_task_write(struct json_out *w, const char *name, struct arena *memory, const struct codeq_view *v);

/* A task that is looked for. */
struct codeq_task {
	uint64_t id;
	bool alive;        /* row, m, payload, error, owner */
	struct slice done; /* the document of a finished task; n 0: none */
	struct op_row row; /* without what it pinned */
	struct message m;
	struct slice payload, error, owner;
	int rc; /* not 0: it could not be looked for, or read */

	/* Private. */
	uint32_t lane;
	void (*then)(struct apicall *a);
};

/* Uses a->op, and a->part for t. An id that is malformed names no task. `then` runs in every case. */
void codeq_find(struct codeq_task *t, struct apicall *a, struct slice id, void (*then)(struct apicall *a));

/* The result of a task with a known queue, if it comes within the wait. t->done; rc SLU_ETIMEOUT: it did not. */
void codeq_await(struct codeq_task *t, struct apicall *a, slu_time wait, void (*then)(struct apicall *a));

/* CODEQ-2: 0 if the caller may settle the task; otherwise the status of the refusal, and *why. */
unsigned codeq_may_settle(struct apicall *a, const struct codeq_task *t, const char **why);

/* An id of a path or a body. 0: malformed. */
uint64_t codeq_id(struct slice text);

#endif
