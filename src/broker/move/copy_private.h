/*
 * copy_private.h - what the parts of copy share; for copy*.c alone.
 */
#ifndef BROKER_MOVE_COPY_PRIVATE_H
#define BROKER_MOVE_COPY_PRIVATE_H

#include "broker/move/copy.h"
#include "engine/payload.h"

#include <pthread.h>

/* A move of one queue between two shards. */
struct movecopy {
	struct broker *b;
	struct slice space, queue;
	const char *from;     /* broker_mark_name of from_lane */
	const char *to;       /* broker_mark_name of to_lane */
	uint32_t from_lane;   /* the lane of the queue on the shard that it leaves */
	uint32_t to_lane;     /* the lane of the queue on the shard that it goes to */
	struct op_move here;  /* the last look at `from` */
	struct op_move there; /* the last look at `to` */
	slu_time until;       /* no batch begins after that, by clock_boot */
};

/* ---- copy_step.c: an op that the calling thread waits for ---- */

struct movewait {
	struct op op;
	const struct broker *b;
	pthread_mutex_t mtx;
	pthread_cond_t ended;
	bool done;
};

void movewait_init(struct movewait *w, const struct movecopy *mv, enum op_verb verb);
void movewait_release(struct movewait *w);

/* Waits for the answer; posted: the result of broker_post. Returns the rc of the op. */
int movewait_for(struct movewait *w, int posted, struct slu_err *err);

/* Posts the op to the lane and waits for the answer. */
int movewait_at(struct movewait *w, struct broker *b, uint32_t lane, struct slu_err *err);

/* Runs one step of a move on a lane. out may be NULL. */
int movecopy_step(const struct movecopy *mv, uint32_t lane, enum move_step what, uint64_t batch,
		  struct op_move *out, struct slu_err *err);

/* Looks at both shards: sets mv->here and mv->there. */
int movecopy_look(struct movecopy *mv, struct slu_err *err);

/* Returns SLU_EMOVED: this node does not know the shard. */
int movecopy_no_such_shard(const struct movecopy *mv, const char *shard, struct slu_err *err);

/* ---- copy_marks.c ---- */

/* Returns true if the queue lives on `to` by the map. */
bool movecopy_is_mapped(const struct movecopy *mv);

/* Sends the queue to `to`: COPY-2. After a look. */
int movecopy_set_marks(struct movecopy *mv, struct slu_err *err);

/* Lifts the counter of `to` to at least `former`: MOVE-9. After a look. */
int movecopy_lift(const struct movecopy *mv, uint64_t former, struct slu_err *err);

/* ---- copy_holds.c ---- */

enum {
	MOVECOPY_HOLDS = 1 + OP_USES_SHARES + OP_USES_VALUES + OP_USES_CIRCUITS + OP_USES_HOLDS /* rows of a page */
};

/* COPY-6 */
int movecopy_holds(const struct movecopy *mv, struct slu_err *err);

/* ---- copy_batch.c ---- */

/* Copies one batch. *more: false if there was nothing to take. */
int movecopy_carry_batch(const struct movecopy *mv, const struct move_request *ask, struct move_report *out,
			 bool *more, struct slu_err *err);

/* Looks at both shards and finishes their batches: COPY-1. */
int movecopy_finish_both(struct movecopy *mv, struct move_report *out, struct slu_err *err);

/* ---- copy_cargo.c ---- */

/* A batch between two shards: the rows of a TAKE as the puts of a GIVE. */
struct cargo {
	struct op_put *puts;
	struct payload **stored;   /* of each put: its payload in a file of the new engine, or NULL */
	char **texts;              /* of each put: memory that it points into */
	char **errors;             /* of each put: text of the last failure, or NULL */
	uint32_t n;                /* puts */
	uint32_t max;              /* room */
	uint64_t batch;            /* its number */
	uint64_t counter;          /* of the giver */
	char receiver[MOVE_SHARD]; /* the shard for which it was set aside */
};

/* A second call does nothing. */
void cargo_release(struct cargo *c);

/* Reads the rows of a TAKE. */
int cargo_add(struct cargo *c, const struct op *taken, struct engine *to, struct slu_err *err);

#endif
