/*
 * ask.h - one request on its way through the broker and back.
 *
 *      handler, on the loop        shards            the loop
 *
 *      ask_new
 *      ops, out of the request
 *      ask_run ─────────────────> op, op, ... ──┐
 *                                                └─> answer(a): writes call->out
 *                                                    ask_reply, or ask_refuse
 *                                                    ... ended: freed
 *
 *  K1  An ask lives from ask_new until its call has ended, and longer if its rows go
 *      back (claim.c). All that its ops point to is in its memory, or in the call's
 *      body.
 *  K2  answer runs on the loop, once for every ask_run: when all of its ops have their
 *      answers. It may run others: ask_run again.
 *  K3  After ask_reply or ask_refuse the ask is no longer the caller's: it may be gone.
 *  K4  The client's going is told to `call->gone`, which the maker of a waiting op sets
 *      to ask_gone.
 *  K5  ask_run is refused, 403, unless the call's identity may do what its route needs in
 *      the namespace of every op, message and item. So there is one place that every
 *      lookup passes, and a handler has nothing to remember.
 *  K6  Messages pass the gate (api/gate.h) in ask_run, in whatever dialect they come: what
 *      it refuses is answered there, and answer is not called.
 */
#ifndef API_ASK_H
#define API_ASK_H

#include "api/api.h"
#include "api/arena.h"
#include "api/params.h"
#include "api/split.h"
#include "api/values.h"
#include "broker/broker.h"
#include "http/call.h"

#include <stdalign.h>

enum {
	ASK_ROOM = 2048 /* enough for a message or two */
};

struct ask {
	struct api *api;
	struct call *call;
	struct arena memory;
	void *state;  /* the maker's */
	void *part;   /* of who helps it: api/stream.h */
	bool gone;    /* K4 */
	bool lacked;  /* that an op had no room or memory was noted */
	bool starved; /* there was no memory to read what it asks for: it is refused */

	struct op op;    /* for an ask that has one */
	struct op *ops;  /* &op, unless set otherwise */
	unsigned n_ops;  /* 1, unless set otherwise */
	slu_time posted; /* on the clock of the api */

	/* Which item of the call an op's failed put is; NULL: as it stands. */
	int64_t (*item_of)(const struct ask *a, const struct op *op);

	/* Inner. */
	const struct routes *routes; /* ask_routes */
	bool passed;                 /* ask_pass */
	void (*answer)(struct ask *a);
	struct loop_work work;
	struct lane_job job; /* ask_job, ask_long_job */
	int (*job_run)(struct ask *a);
	void (*job_done)(struct ask *a, int rc);
	_Atomic unsigned left; /* ops that have no answer yet, and ask_run itself */
	struct ask *next_spare;
	alignas(max_align_t) char room[ASK_ROOM]; /* of memory, at first */
};

/* NULL: the call has been answered, there is no memory, or the broker is not open yet. */
struct ask *ask_new(struct api *api, struct call *c);

/* K1: by whoever takes `ended` over. On the loop, before the call is gone; elsewhere. */
void ask_end(struct ask *a);
void ask_free(struct ask *a);

/* When nobody asks any more. */
void ask_release_spares(struct api *api);

/* The map that all of its ops are routed by from now on: for whoever asks where a queue
 * lives before its ops are made. */
const struct routes *ask_routes(struct ask *a);

/* From its memory; size zeroed bytes. NULL: the ask has been refused. */
void *ask_state(struct ask *a, size_t size);

/* Read the query of the call by a table. False: it was refused. */
bool ask_params(struct ask *a, const struct param *rows, size_t n, void *out);

/* The same from the JSON object of its body. */
bool ask_body(struct ask *a, const struct param *rows, size_t n, void *out);

/* Begin an op of this ask: op_init with what ask_run needs. */
void ask_op(struct ask *a, struct op *op, enum op_verb verb, struct slice space,
	    struct slice queue);

/* For a call that names many queues, one op a shard: the n items, of size bytes and on
 * the shards (or in the groups) given, in the order of split->parts. ops and n_ops are set, the ops are not
 * begun. NULL: no memory. */
void *ask_split(struct ask *a, struct split *split, const uint32_t *shard, uint32_t n_shards,
		const void *items, uint32_t n, size_t size);

/* K5 and K6 now, for who has something to do before ask_run, which asks no more then.
 * False: it was refused. */
bool ask_pass(struct ask *a);

/* Post all its ops; an op that the broker refuses has its rc set. K2, K5. */
void ask_run(struct ask *a, void (*answer)(struct ask *a));

/* Call run on a file thread, where it may wait, and `then` on the loop with what it returned;
 * or with SLU_ENOMEM, and perhaps before this returns. */
void ask_job(struct ask *a, int (*run)(struct ask *a), void (*then)(struct ask *a, int rc));

/* The same for work that computes for long: only a few such jobs run at once, so that others
 * find a file thread (net/lane.h). */
void ask_long_job(struct ask *a, int (*run)(struct ask *a), void (*then)(struct ask *a, int rc));

/* For call->gone: ends the waits of its ops. */
void ask_gone(struct call *c);

/* Answer with the JSON in call->out, or that there was no memory for it. */
void ask_reply(struct ask *a, unsigned status);

/* Answer with an error; text NULL: what the table says. */
void ask_refuse(struct ask *a, int rc, const char *text);

/* The same for an item of a list, or for an op that failed. */
void ask_refuse_item(struct ask *a, int rc, const char *text, int64_t index);
void ask_refuse_op(struct ask *a, const struct op *op);

/* The same for an op that looked for one message: SLU_EROUNDED if there is none because
 * the id was rounded. */
void ask_refuse_id(struct ask *a, const struct op *op, struct given_id id);

/* The same with all that err says; a limit is counted. */
void ask_refuse_err(struct ask *a, const struct slu_err *err, int64_t index);

/* err of an op that failed, with the words of its code if it has none. */
struct slu_err ask_err_of(const struct op *op);

#endif
