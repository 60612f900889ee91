/*
 * clerk.h - runs ops on a ledger, and has every change kept by its engine.
 *
 * What the engines that stand on the ledger (memory, log) have in common: an op is
 * decided by the ledger, the change is kept by the engine, then the ledger applies
 * it. An engine has a clerk and says how it keeps:
 *
 *         struct memory {
 *                 struct engine engine;
 *                 struct clerk clerk;
 *                 ...
 *         };
 *
 *         static int
 *         memory_run(struct engine *e, struct op *batch, slu_time due, ...)
 *         {
 *                 return clerk_run(&m->clerk, batch, due, now, err);
 *         }
 *
 * Times: see E3 and E4 of engine.h.
 */
#ifndef ENGINE_CLERK_H
#define ENGINE_CLERK_H

#include "base/footprint.h"
#include "engine/engine.h"

struct clerk;
struct clerk_space;

/* Whom keys are told to. */
struct clerk_recall {
	/* False: no more, now. */
	bool (*tell)(struct clerk_recall *to, uint64_t id, struct slice key);
	uint32_t wanted; /* how many it has taken */
};

struct clerk_ops {
	/*
	 * Keep the record of a message that is being accepted; set c->where. m is
	 * whole: number, due and expires are those of the change. Nothing is kept
	 * when it returns a code: SLU_EFULL, SLU_ENOMEM.
	 */
	int (*keep_message)(struct clerk *k, const struct message *m, struct change *c,
			    struct slu_err *err);

	/* The same for one that comes from another shard, as it stood there: c is a RESTORE.
	 * error, unless empty, is what c->error is to name. */
	int (*keep_given)(struct clerk *k, const struct message *m, struct change *c,
			  struct slice error, struct slu_err *err);

	/* Optional: the change was undone, and was the last one kept: forget its
	 * record. The ledger has dropped it. */
	void (*undo_message)(struct clerk *k, const struct change *c);

	/*
	 * Keep any other change. text, unless empty, is what c->where is to name: the
	 * error of a RETRY or DIE, the result of a DONE that keeps one, what a TAKE sets
	 * aside, whom a GIVEN came from; of a REMEMBER it is the key itself. The names of c->queue (PURGE, POLICY, moves) are the
	 * ledger's to tell. A code means that it is
	 * not kept and does not happen.
	 */
	int (*keep)(struct clerk *k, struct change *c, struct slice text,
		    struct slu_err *err);

	/*
	 * Keep a document of a key, whose record is m; set *where. Then the key as it will
	 * be: set c->where. Nothing is kept when one returns a code; if that is the second,
	 * the clerk tells the engine to drop the document.
	 */
	int (*keep_document)(struct clerk *k, const struct message *m, uint64_t *where,
			     struct slu_err *err);
	int (*keep_lock)(struct clerk *k, struct lock_change *c, struct slu_err *err);

	/*
	 * Tell of idempotency keys of a queue, whose messages are gone: some, each perhaps more
	 * than once, and also such as are not remembered any more. Goes on with the next call,
	 * behind the last one unless tell has returned false: it had enough. *end: all have
	 * been told since the first, and none was wanted (tell returned true, and changed
	 * nothing). SLU_ENOMEM, SLU_ECORRUPT.
	 */
	int (*recall)(struct clerk *k, uint32_t queue, struct clerk_recall *to, bool *end,
		      struct slu_err *err);

	/* Optional: what needed no sync so far does with this run. */
	void (*sync)(struct clerk *k);

	/* A place that was given and that nothing names. */
	void (*drop)(struct clerk *k, uint64_t where);

	/* Pin what where names; of a message whose payload has a file that, too, unless
	 * payload is NULL. SLU_ECORRUPT and the like fail the op, not the shard: a claim
	 * then leaves that message alone. */
	int (*pin)(struct clerk *k, uint64_t where, struct op_ref *out,
		   struct op_ref *payload, struct slu_err *err);

	/* Optional: OP_BACKUP; without it there are no files to copy. */
	void (*backup)(struct clerk *k, struct op *op);

	/* Memory beside that of ledger and locks: what a message more, or a document, takes; how
	 * much there is; giving back what is not needed, true when there is more to do. */
	size_t (*growth)(struct clerk *k, const struct message *m);
	void (*footprint)(const struct clerk *k, struct footprint *out);
	bool (*trim)(struct clerk *k);

	/* Optional: the change, of whatever kind, has been applied. */
	void (*applied)(struct clerk *k, const struct change *c);
};

struct clerk {
	const struct clerk_ops *ops;
	struct engine *engine;
	struct ledger *ledger;
	struct locks *locks;
	void (*ready)(void *arg, struct slice space, struct slice queue, uint32_t n);
	void (*freed)(void *arg, struct slice space, struct slice key);
	void *ready_arg;
	void (*changed)(void *arg, const struct change *c);
	void *changed_arg;
	bool (*waited_for)(void *arg, struct slice space, struct slice queue); /* ready_arg */
	uint64_t random;                                                       /* dice of the jitter */
	struct quota *quota;                                                   /* NULL: no limits */
	struct slu_log *log;
	struct meter_shard meter;

	slu_time now;       /* of the run */
	uint32_t budget;    /* E3: steps left in it */
	uint32_t taker;     /* of the claim under way: its owner, or OWNER_NONE */
	uint32_t cut_short; /* a queue in which a claim stopped early, or SLAB_NONE */
	uint64_t limit;     /* of the index, as the run found it */
	uint64_t left;      /* bytes that may be allocated before the sums are looked at again */
	bool full;          /* what is there takes as much as limits.index_memory: no new work */

	/* What the sums of quota have of this shard: clerk_limit.c. */
	struct footprint told;
	uint32_t told_queues;
	struct clerk_space *spaces; /* by handle */
	uint32_t n_spaces;
	uint64_t mass;       /* what has stirred since is measured by it */
	uint64_t seen_limit; /* at that time */
	uint64_t highest;    /* bytes held since memory went back to the system last */
	bool trims;          /* there is more memory to be given back */

	bool late; /* what fell due could not be kept: there was no room, or memory */
};

/* Takes ledger and locks. conf: for ready. random: any number. */
void clerk_init(struct clerk *k, const struct clerk_ops *ops, struct engine *engine,
		struct ledger *ledger, struct locks *locks, const struct engine_conf *conf,
		uint64_t random);
void clerk_release(struct clerk *k); /* frees both */

/* A ledger and its locks, with secrets and drops as conf says. SLU_ENOMEM. */
int clerk_books(const struct ledger_conf *conf, struct ledger **ledger,
		struct locks **locks, struct slu_err *err);

/* K7 of core/locks.h: what the change of a message means for its state. For who replays. */
void clerk_follow(struct locks *l, const struct change *c);

/* Add what this shard holds to the sums of conf->quota, and give back memory that is not needed:
 * at the end of a run, and once when all was read back. */
void clerk_limit_end(struct clerk *k);

/* When something falls due in either, or is to be tried again. */
slu_time clerk_next_due(struct clerk *k);

/* Every op gets its answer. Other than 0 when what fell due could not be kept for another
 * reason than lack of room or memory: the engine must fail then. */
int clerk_run(struct clerk *k, struct op *batch, slu_time due, slu_time now,
	      struct slu_err *err);

#endif
