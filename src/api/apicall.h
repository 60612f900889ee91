/*
 * apicall.h - one request on its way through the broker and back, in any protocol.
 *
 *      handler, on the loop        shards            the loop
 *
 *      apicall_open
 *      make ops from the request
 *      apicall_run ─────────────────> op, op, ... ──┐
 *                                                └─> answer(a): writes a->x->out
 *                                                    answers the exchange, or apicall_refuse
 *                                                    ... ended: freed
 *
 * The HTTP dialects use api/handler.h on top of it. tests/unit/api/test_ops_protocol.c is another
 * protocol, of one page.
 *
 *  APICALL-1  An apicall lives from apicall_open until its exchange has ended, and longer
 *             while its claimed messages are returned (flat/claim.c). Its memory, or the
 *             body of the request, holds everything that its ops point to.
 *  APICALL-2  `answer` runs on the loop, once per apicall_run, when all ops have their
 *             answers. It may call apicall_run again.
 *  APICALL-3  After the exchange is answered or refused the caller no longer owns the apicall.
 *  APICALL-4  A handler whose op waits sets x->gone to apicall_gone: the wait ends when the
 *             client is gone.
 *  APICALL-5  apicall_run refuses with SLU_EFORBIDDEN unless the identity of the caller
 *             (x->who) has the rights terms.needs in the namespace of every op, message and
 *             item. Every op passes this one place, so a handler needs no check of its own.
 *  APICALL-6  apicall_run applies the rate limits (api/ratelimit.h) to enqueued messages, in
 *             all protocols. If it refuses, it answers, and `answer` does not run.
 */
#ifndef API_APICALL_H
#define API_APICALL_H

#include "api/api.h"
#include "form/arena.h"
#include "api/split.h"
#include "form/values.h"
#include "broker/broker.h"
#include "net/exchange.h"

#include <stdalign.h>

enum {
	APICALL_ROOM = 3072 /* enough for a message or two */
};

/* The ids that a client gave to its request, or NULL. */
struct apicall_ids {
	const char *request;
	const char *correlation;
};

/* How a protocol refuses, and what it knows of a request. */
struct apicall_form {
	/* Answers with an error. index: the item of a list that failed, or -1. */
	void (*refuse)(struct exchange *x, const struct slu_err *err, int64_t index);

	/* Optional: `refuse` follows, because the caller lacks the scope, "acme:write". */
	void (*lacks)(struct exchange *x, const char *scope);

	/* Optional: for logs and the audit. */
	struct apicall_ids (*ids)(const struct exchange *x);

	/* For an apicall with a `worker`: notes its beat, when the rights are checked; tells it what it is asked,
	 * before the answer. */
	void (*beat)(struct apicall *a);
	void (*tell)(struct apicall *a);
};

/* What holds for a request before it has ops. */
struct apicall_terms {
	const struct apicall_form *form;
	const char *what; /* for logs: the path, or the name of the command */
	unsigned needs;   /* rights in the namespaces of its ops: auth/guard.h */
	bool vital;       /* an operator's request: no rate limit */
};

/* What was there before and after the change of the next op, for its line in the audit file: api/audit/change.h. n 0: not known. */
struct apicall_change {
	struct slice before, after;
};

struct apicall {
	struct api *api;
	struct exchange *x;
	struct apicall_terms terms;
	struct arena memory;
	void *state;       /* of the handler */
	int arg;           /* handler.arg */
	void *part;        /* of the module that works for it: api/stream.h, api/queue/letters.h */
	struct rows *rows; /* api/rows.h: the rows being read */
	bool gone;         /* APICALL-4 */
	bool lacked;       /* the lack of disk or memory was noted */
	bool starved;      /* no memory to read the request: it will be refused */

	struct apicall_change change;
	const struct worker_beat *worker; /* who calls: api/worker/workers.h; NULL: the caller did not say */

	struct op op;    /* for an apicall with one op */
	struct op *ops;  /* &op, unless set otherwise */
	unsigned n_ops;  /* 1, unless set otherwise */
	slu_time posted; /* on the clock of the api */

	/* The index in the request of the put that failed; NULL: op->failed. */
	int64_t (*item_of)(const struct apicall *a, const struct op *op);

	/* Private. */
	const struct routes *routes; /* apicall_routes */
	bool passed;                 /* apicall_pass */
	void (*answer)(struct apicall *a);
	void (*rows_answer)(struct apicall *a); /* apicall_run_rows */
	struct loop_work work;
	struct file_job job; /* apicall_job, apicall_long_job */
	int (*job_run)(struct apicall *a);
	int (*job_try)(struct apicall *a, bool may_block); /* apicall_try */
	void (*job_done)(struct apicall *a, int rc);
	_Atomic unsigned left; /* ops that have no answer yet, and apicall_run itself */
	struct apicall *next_spare;
	alignas(max_align_t) char room[APICALL_ROOM]; /* the first block of memory */
};

/* For a handler of any protocol. x->user and x->ended are the apicall's from now on. NULL: the exchange
 * has been refused, there is no memory, or the broker is not open yet. */
struct apicall *apicall_open(struct api *api, struct exchange *x, const struct apicall_terms *terms);

/* APICALL-1: for a handler that has replaced x->ended. apicall_end: on the loop, while the
 * call exists. apicall_free: on any thread. */
void apicall_end(struct apicall *a);
void apicall_free(struct apicall *a);

/* For x->ended: returns the claimed messages from row `from` on to their places, and frees the
 * apicall then. what: the event for the log. */
void apicall_return(struct apicall *a, uint32_t from, const char *what);

/* Frees the pool; no request runs. */
void apicall_release_spares(struct api *api);

/* The routes of all its ops from now on: for a handler that looks up the shard of a queue
 * before it makes ops. */
const struct routes *apicall_routes(struct apicall *a);

/* Sets state to size zeroed bytes of its memory. NULL: the apicall was refused. */
void *apicall_state(struct apicall *a, size_t size);

/* Begins an op of this apicall: op_init with what apicall_run needs. */
void apicall_op(struct apicall *a, struct op *op, enum op_verb verb, struct slice space,
		struct slice queue);

/* For a call with many queues, one op per shard or group: returns the n items, of size
 * bytes each, sorted by shard[i] in the order of split->parts. Sets ops and n_ops; the
 * caller begins the ops. NULL: no memory. */
void *apicall_split(struct apicall *a, struct split *split, const uint32_t *shard, uint32_t n_shards,
		    const void *items, uint32_t n, size_t size);

/* APICALL-5 and APICALL-6 now, for a handler with work before apicall_run, which then
 * checks no more. Returns false if it refused the call. */
bool apicall_pass(struct apicall *a);

/* Posts all ops. An op that the broker refuses has its rc set. APICALL-2, APICALL-5. */
void apicall_run(struct apicall *a, void (*answer)(struct apicall *a));

/* The same without APICALL-5 and APICALL-6: for ops of the server's own in a namespace that no client
 * can name, beside ops that have passed. */
void apicall_run_own(struct apicall *a, void (*answer)(struct apicall *a));

/* apicall_run for an op with rows: makes room for max_rows first, or refuses the call. An OP_LIST whose page is
 * empty and has a cursor runs again with that cursor, while the client is there. */
void apicall_run_rows(struct apicall *a, uint32_t max_rows, void (*answer)(struct apicall *a));

/* Calls run on a file thread, where it may block, and then `then` on the loop with the
 * result. Without memory `then` has SLU_ENOMEM and may run before this returns. */
void apicall_job(struct apicall *a, int (*run)(struct apicall *a), void (*then)(struct apicall *a, int rc));

/* The same for long computations: only a few run at once, so that other jobs find a free
 * file thread (net/filejobs.h). */
void apicall_long_job(struct apicall *a, int (*run)(struct apicall *a), void (*then)(struct apicall *a, int rc));

/* Calls run(a, false) now. If that would block (SLU_EBUSY), calls run(a, true) on a file thread.
 * Then calls `then` on the loop with the result. */
void apicall_try(struct apicall *a, int (*run)(struct apicall *a, bool may_block),
		 void (*then)(struct apicall *a, int rc));

/* For a log line about a request: the ids that its client gave. */
#define F_APICALL(a)                                 \
	F_STR("request_id", apicall_ids(a).request), \
		F_STR("correlation_id", apicall_ids(a).correlation)

struct apicall_ids apicall_ids(const struct apicall *a);

/* For x->gone: ends the waits of its ops. */
void apicall_gone(struct exchange *x);

/* Returns true if op failed: then the call was refused. */
bool apicall_failed(struct apicall *a);

/* The same for rc. text: as for apicall_refuse. */
bool apicall_refused(struct apicall *a, int rc, const char *text);

/* Answers with an error. text NULL: the text of SLU_ERRORS. */
void apicall_refuse(struct apicall *a, int rc, const char *text);

/* The same for an item of a list, or for an op that failed. */
void apicall_refuse_item(struct apicall *a, int rc, const char *text, int64_t index);
void apicall_refuse_op(struct apicall *a, const struct op *op);

/* The same for an op that looked for one message. SLU_EROUNDED replaces SLU_ENOTFOUND if
 * the id was rounded. */
void apicall_refuse_id(struct apicall *a, const struct op *op, struct given_id id);

/* The same with the limit and the retry time of err; counts the limit. */
void apicall_refuse_err(struct apicall *a, const struct slu_err *err, int64_t index);

/* The error of a failed op; its text is the text of its code if it has none. */
struct slu_err apicall_err_of(const struct op *op);

#endif
