/*
 * gather.h - a question to many lanes at once, of which some may not answer in time.
 *
 *      gather_new, gather_part for each                        lanes
 *      gather_run ───────────────────> op, op, op, ... ──> done, done, ...
 *          │                                                   │
 *          ├── all have answered  <───────────────────────────┘
 *          └── the time is over   ──> answer(g), on the loop: parts, and gather_missing
 *
 *  G1  answer runs once, on the loop of the call; g is its caller's no more when it returns.
 *  G2  An op that has no answer when the time is over is left to its lane. It, and all that
 *      it points to, is in the memory of the gather, which goes with the last of them.
 *  G3  A lane that owes an answer from before is not asked: it is missing at once. So
 *      a lane that hangs is waited for by those alone who asked in the first such time, and has no
 *      more of them to do when it comes back.
 *  G4  Whoever has one lane waits for it, however long: there is nothing else to tell.
 *  G5  K5 of api/ask.h: no op of a namespace that the caller may not see is posted.
 *
 * Only for ops that change nothing and pin nothing: STATS, TOPICS, SHARD.
 */
#ifndef API_GATHER_H
#define API_GATHER_H

#include "api/ask.h"

enum {
	GATHER_NAMES = 16 /* of shards that are missing; more are not named */
};

struct gather_part {
	struct op op;
	uint32_t lane;

	/* Inner. */
	_Atomic int state;
};

struct gather {
	struct ask *ask;
	void *arg; /* the maker's */
	unsigned n;
	struct gather_part *parts;

	/* Inner. */
	struct api *api;
	struct loop *loop;
	void (*answer)(struct gather *g);
	struct arena memory;
	struct loop_work work;
	uv_timer_t timer;
	bool timed;            /* it has one */
	_Atomic unsigned left; /* parts without an answer, and gather_run itself */
	_Atomic unsigned refs; /* parts that are at their lanes, and the loop */
};

/* Shards that have not told what they were asked: each once, by name. */
struct gather_missing {
	const char *names[GATHER_NAMES];
	unsigned n;
	bool more;          /* than have a place here */
	struct slu_err err; /* why the first of them has not */
};

/* n parts, to be begun by gather_op; NULL: there is no memory, and the call has been
 * refused. */
struct gather *gather_new(struct ask *a, unsigned n);

/* Begin a part: an op that goes to that lane. max_queues: room for as many in op.queues,
 * 0: none. False: no memory, and the call has been refused; so is g. */
bool gather_op(struct gather *g, unsigned i, enum op_verb verb, struct slice space,
	       struct slice queue, uint32_t lane, uint32_t max_queues);

/* Without what a refused one has: of a gather that is not run. */
void gather_drop(struct gather *g);

/* Ask. G1 to G5. */
void gather_run(struct gather *g, void (*answer)(struct gather *g));

/* Has this part an answer, which may be that there is no such thing? */
bool gather_has(const struct gather_part *p);

/* Why it has not. */
void gather_why(const struct gather *g, const struct gather_part *p, struct slu_err *err);

/* Add those of g that are missing. */
void gather_missing(const struct gather *g, struct gather_missing *m);

/* Is there any answer at all? */
bool gather_any(const struct gather *g);

/* "partial", "missing" and a message, if any are missing; and the log has a warning, one
 * in a while. */
void gather_write(struct json_out *w, const struct ask *a, const struct gather_missing *m);
void gather_warn(const struct ask *a, const struct gather_missing *m);

/* What the api keeps for all of them. SLU_ENOMEM. */
struct gathers;
int gathers_new(struct gathers **out);
void gathers_free(struct gathers *s); /* after the broker was closed; NULL is fine */
void gathers_metrics(const struct gathers *s, struct buf *out);

#endif
