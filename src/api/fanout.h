/*
 * fanout.h - asks many lanes at once and answers with those that reply in time.
 *
 *      fanout_new, fanout_part for each                        lanes
 *      fanout_run ───────────────────> op, op, op, ... ──> done, done, ...
 *          │                                                   │
 *          ├── all have answered  <───────────────────────────┘
 *          └── the time is over   ──> answer(g), on the loop: parts, and fanout_missing
 *
 *  FANOUT-1  `answer` runs once, on the loop of the call. When it returns, g is gone.
 *  FANOUT-2  An op without an answer at the end of the time stays with its lane. The memory of
 *            the fan-out holds the op and everything it points to, and is freed after the
 *            last op.
 *  FANOUT-3  A lane that still owes an answer is not asked again: it is missing at once. So
 *            only the first fan-out waits for a lane that hangs, and the lane has no backlog
 *            when it recovers.
 *  FANOUT-4  A fan-out has no limit of its own if there is one lane, in this node: no other lane could
 *            answer. A lane whose engine hangs fails the op after that time (OP-6).
 *  FANOUT-5  APICALL-5: no op of a namespace that the caller may not see is posted.
 *  FANOUT-6  A lane that another node owns is asked there (LANE-18). It is missing if that node does not
 *            answer. With `local` this node alone is asked, and the shards of other nodes are empty.
 *
 * Only for ops that change nothing: STATS, QUEUES, SHARD, GET, WHY. What they pinned is unpinned after `answer`.
 */
#ifndef API_FANOUT_H
#define API_FANOUT_H

#include "api/apicall.h"

enum {
	FANOUT_MISSING = 64 /* most missing shards that are named */
};

struct fanout_part {
	struct op op;
	uint32_t lane;

	/* Private. */
	_Atomic int state;
};

struct fanout {
	struct apicall *apicall;
	void *arg;  /* the caller's */
	bool local; /* FANOUT-6; set before fanout_op */
	unsigned n;
	struct fanout_part *parts;

	/* Private. */
	struct api *api;
	struct loop *loop;
	void (*answer)(struct fanout *g);
	struct arena memory;
	struct loop_work work;
	uv_timer_t timer;
	bool timed;            /* the timer runs */
	_Atomic unsigned left; /* parts without an answer, and fanout_run itself */
	_Atomic unsigned refs; /* parts at their lanes, and the loop */
};

/* The shards that did not answer, each once; the lanes of a store are a shard each. */
struct fanout_missing {
	struct fanout_absent {
		uint32_t lane;    /* the first of the shard that did not answer */
		const char *node; /* address of the node that owns it; NULL: this node, or no node */
	} shards[FANOUT_MISSING];
	unsigned n;
	unsigned more;      /* how many shards are missing beyond FANOUT_MISSING */
	struct slu_err err; /* why the first one did not answer */
};

/* n parts, which fanout_op begins. NULL: no memory, and the call was refused. */
struct fanout *fanout_new(struct apicall *a, unsigned n);

/* Begins part i: an op for a lane. max_queues: room in op.queues, 0: none. GET and WHY have room for their rows. Returns false if
 * there is no memory: then the call was refused and g is freed. */
bool fanout_op(struct fanout *g, unsigned i, enum op_verb verb, struct slice space,
	       struct slice queue, uint32_t lane, uint32_t max_queues);

/* Gives part i, an OP_TREND, room for n steps. Returns false as fanout_op. */
bool fanout_steps(struct fanout *g, unsigned i, uint32_t n);

/* A local fan-out with an OP_SHARD for every lane. NULL: as fanout_new. */
struct fanout *fanout_shards(struct apicall *a);

/* Posts the ops. FANOUT-1 to FANOUT-5. */
void fanout_run(struct fanout *g, void (*answer)(struct fanout *g));

/* Asks every shard about a message, with OP_GET or OP_WHY. */
void fanout_find(struct apicall *a, enum op_verb verb, struct slice space, uint64_t id,
		 void (*answer)(struct fanout *g));

/* Returns true if the part has an answer, also SLU_ENOTFOUND. */
bool fanout_has(const struct fanout_part *p);

/* The first part that succeeded, or NULL. */
struct fanout_part *fanout_first(const struct fanout *g);

/* Why a part has no answer. */
void fanout_why(const struct fanout *g, const struct fanout_part *p, struct slu_err *err);

/* Adds the missing shards of g to m. */
void fanout_missing(const struct fanout *g, struct fanout_missing *m);

/* Returns true if at least one part has an answer. */
bool fanout_any(const struct fanout *g);

/* Writes "partial", "missing" and a message if shards are missing, and logs a warning, not
 * more often than each few seconds. */
void fanout_write(struct json_out *w, const struct apicall *a, const struct fanout_missing *m);
void fanout_warn(const struct apicall *a, const struct fanout_missing *m);

/* The state of all fan-outs of an API. Returns SLU_ENOMEM. */
struct fanouts;
int fanouts_new(struct fanouts **out);
void fanouts_free(struct fanouts *s); /* after the broker was closed; NULL is fine */
void fanouts_metrics(const struct fanouts *s, struct buf *out);

#endif
