/*
 * ledgerengine.h - runs ops on a ledger: what the memory engine and the log engine share.
 *
 *      op ──> the ledger decides a change ──> the engine keeps it ──> the ledger applies it
 *
 * An engine embeds a struct ledgerengine and gives it the functions that keep changes:
 *
 *         struct memory {
 *                 struct engine engine;
 *                 struct ledgerengine ledgerengine;
 *                 ...
 *         };
 *
 *         static int
 *         memory_run(struct engine *e, struct op *batch, slu_time due, ...)
 *         {
 *                 return ledgerengine_run(&m->ledgerengine, batch, due, now, err);
 *         }
 *
 * The files of this folder are one module: ledgerengine.c has the run and the table of verbs, the
 * others the verbs. Times follow ENGINE-3 and ENGINE-4 of engine/engine.h.
 */
#ifndef ENGINE_LEDGER_LEDGERENGINE_H
#define ENGINE_LEDGER_LEDGERENGINE_H

#include "base/footprint.h"
#include "engine/engine.h"

struct ledgerengine;
struct ledgerengine_space;

/* Receives idempotency keys from the function `recall`. */
struct ledgerengine_recall {
	/* Takes a key. Returns false if it wants no more keys from this call. */
	bool (*tell)(struct ledgerengine_recall *to, uint64_t id, struct slice key);
	uint32_t wanted; /* keys that `tell` has kept */
};

struct ledgerengine_ops {
	/*
	 * Keeps the record of a message that is being accepted, and sets c->where. m is complete:
	 * number, due and expires are those of the change. If the function returns a code
	 * (SLU_EFULL, SLU_ENOMEM), it has kept nothing.
	 */
	int (*keep_message)(struct ledgerengine *k, const struct message *m, struct change *c,
			    struct slu_err *err);

	/* The same for a message that comes from another shard in the state it had there: c is a
	 * RESTORE. error, unless empty, is the text that c->error has to name. */
	int (*keep_given)(struct ledgerengine *k, const struct message *m, struct change *c,
			  struct slice error, struct slu_err *err);

	/* Optional. Forgets the record of the last change that was kept: the ledger has undone the
	 * change. */
	void (*undo_message)(struct ledgerengine *k, const struct change *c);

	/*
	 * Keeps any other change. text, unless empty, is what c->where has to name: the error of a
	 * RETRY or DIE, the result of a DONE that keeps one, the batch of a TAKE, the giver of a
	 * GIVEN, the key of a REMEMBER. The ledger has the names of c->queue (PURGE, POLICY, moves).
	 * If the function returns a code, the change is not kept and does not happen.
	 */
	int (*keep)(struct ledgerengine *k, struct change *c, struct slice text,
		    struct slu_err *err);

	/* Keeps a document of a key, whose record is m, and sets *where. If it returns a code, it has
	 * kept nothing. */
	int (*keep_document)(struct ledgerengine *k, const struct message *m, uint64_t *where,
			     struct slu_err *err);

	/* Keeps the key as the change leaves it, and sets c->where. If it returns a code, it has kept
	 * nothing, and the ledger engine drops the document that was kept for this change. */
	int (*keep_lock)(struct ledgerengine *k, struct lock_change *c, struct slu_err *err);

	/* Optional. Reserves what keep_lock of the change needs in this run, after other changes: it cannot fail then. */
	int (*reserve_lock)(struct ledgerengine *k, struct lock_change *c, struct slu_err *err);

	/*
	 * Passes idempotency keys of the queue whose messages are gone to `to`: some of them, each
	 * perhaps more than once, and perhaps keys that are no longer remembered. The next call
	 * continues behind the last key, or with it if `tell` returned false. Sets *end if all keys
	 * were passed since the first one and `tell` kept none. Returns SLU_ENOMEM, SLU_ECORRUPT.
	 */
	int (*recall)(struct ledgerengine *k, uint32_t queue, struct ledgerengine_recall *to, bool *end,
		      struct slu_err *err);

	/* Optional. This run syncs all that was kept so far, also what needs no sync. */
	void (*sync)(struct ledgerengine *k);

	/* Releases a place that one of the functions above has set and that nothing names now. */
	void (*drop)(struct ledgerengine *k, uint64_t where);

	/* Pins the record at `where`; unless payload is NULL, also the payload, if that has a file of
	 * its own. A code (SLU_ECORRUPT) fails the op, not the shard: a claim passes over the
	 * message. */
	int (*pin)(struct ledgerengine *k, uint64_t where, struct op_ref *out,
		   struct op_ref *payload, struct slu_err *err);

	/* Optional. Reads a whole pinned record on the thread of the shard, also one that this run has kept, which
	 * engine_read cannot read before the commit. NULL: engine_read can. */
	int (*read)(struct ledgerengine *k, const struct op_ref *ref, char *out, bool may_block, struct slu_err *err);

	/* Optional. Runs an OP_BACKUP. NULL: the engine has no files. */
	void (*backup)(struct ledgerengine *k, struct op *op);

	/* Bytes of memory that one more message or document takes, beside ledger and locks. */
	size_t (*growth)(struct ledgerengine *k, const struct message *m);

	/* Memory that the engine has, beside ledger and locks. */
	void (*footprint)(const struct ledgerengine *k, struct footprint *out);

	/* Gives back memory that is not needed. Returns true if there is more to give back. */
	bool (*trim)(struct ledgerengine *k);

	/* Optional. A claim has leased messages of the queue. */
	void (*claimed)(struct ledgerengine *k, uint32_t queue);

	/* Optional. A change of any kind has been applied. */
	void (*applied)(struct ledgerengine *k, const struct change *c);
};

struct ledgerengine_batches {
	bool opened;      /* the queues of batches were looked for since the engine was opened */
	bool wait;        /* something could not be done now: it is tried again later */
	uint32_t *queues; /* queues of batches with ready messages */
	uint32_t n_queues, queues_room;
};

struct ledgerengine {
	const struct ledgerengine_ops *ops;
	struct engine *engine;
	struct ledger *ledger;
	struct locks *locks;
	struct slu_log *log;
	struct meter_lane meter;
	struct quota *quota;           /* NULL: no limits */
	uint64_t random;               /* spreads retries */
	char value[MESSAGE_VALUE_MAX]; /* of the put that is being decided: the attribute that its queue limits */
	uint16_t era;                  /* of cursors that are handles; the owner of this struct sets it when the handles are others
					* than before: low bits of the epoch of the shard */

	/* From struct engine_conf. */
	void (*ready)(void *arg, struct slice space, struct slice queue, uint32_t n);
	void (*freed)(void *arg, struct slice space, struct slice key);
	bool (*waited_for)(void *arg, struct slice space, struct slice queue);
	void *ready_arg; /* of the three above */
	void (*changed)(void *arg, const struct change *c);
	void *changed_arg;
	void (*observe)(void *arg, const struct change *c);
	void *observe_arg;
	int (*home)(void *arg, struct slice space, struct slice queue, struct engine_home *out, struct slu_err *err);
	void *home_arg;
	uint8_t source[INTAKE_SOURCE]; /* OUTBOX-4 of engine/outbox.h */

	/* Tokens above the first and up to the second: their grants are not given back, since a copy of this process may
	 * have answered them (LOGENGINE-16 of engine/log/logengine.h). The owner of this struct sets them; 0, 0 = none. */
	uint64_t copied_above, copied_upto;

	/* The run. */
	slu_time now;
	uint32_t budget;    /* steps that are left for what falls due (ENGINE-3) */
	uint32_t holder;    /* for the leases of the claim under way, or HOLDER_NONE */
	uint32_t cut_short; /* the queue in which a claim stopped early, or SLAB_NONE */
	uint64_t limit;     /* limits.index_memory at the start of the run */
	uint64_t left;      /* bytes that may be allocated before the sums are checked again */
	bool full;          /* the index has reached limits.index_memory: no new work */
	bool late;          /* a change that fell due was not kept: no room, or no memory */
	bool letters_wait;  /* a dead letter could not leave its queue (OUTBOX-7): it is tried again later */

	struct ledgerengine_batches batches; /* msgbatch.c */
	struct trend *storage;               /* storage.c; NULL: none yet */

	/* What the sums of `quota` hold of this shard: limit.c. */
	struct footprint told;
	uint32_t told_queues;
	struct ledgerengine_space *spaces; /* by handle */
	uint32_t n_spaces;
	uint64_t mass;       /* bytes of engine, ledger and locks at the last measurement */
	uint64_t seen_limit; /* limits.index_memory at the last measurement */
	uint64_t highest;    /* most bytes held since memory last went back to the system */
	bool trims;          /* there is more memory to give back */
};

/* Takes ledger and locks. Copies the callbacks, log, meter and quota of conf. random: any number. */
void ledgerengine_init(struct ledgerengine *k, const struct ledgerengine_ops *ops, struct engine *engine,
		       struct ledger *ledger, struct locks *locks, const struct engine_conf *conf,
		       uint64_t random);

/* Frees ledger and locks. */
void ledgerengine_release(struct ledgerengine *k);

/* For OP_TREND: the log was synced, or a group was put into the store, and that took so long. By the thread of the runs. */
void ledgerengine_synced(struct ledgerengine *k, slu_time took);
void ledgerengine_stored(struct ledgerengine *k, slu_time took);

/* Makes a ledger and its locks, with the secret and the drop function of conf. Returns SLU_ENOMEM. */
int ledgerengine_books(const struct ledger_conf *conf, struct ledger **ledger,
		       struct locks **locks, struct slu_err *err);

/* Applies a change of a message to the state of the message: LOCK-7 of core/locks/locks.h. For
 * replay. */
void ledgerengine_update_state(struct locks *l, const struct change *c);

/* Adds what this shard holds to the sums of conf->quota, and gives back memory that is not needed.
 * The run does so at its end; an engine does so once after its replay. */
void ledgerengine_limit_end(struct ledgerengine *k);

/* When the next change falls due, or is tried again. */
slu_time ledgerengine_next_due(struct ledgerengine *k);

/* Answers every op of the batch. Returns a code if a change that fell due could not be kept for
 * another reason than lack of room or memory: the engine must fail then. */
int ledgerengine_run(struct ledgerengine *k, struct op *batch, slu_time due, slu_time now,
		     struct slu_err *err);

#endif
