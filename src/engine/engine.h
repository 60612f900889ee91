/*
 * engine.h - what a storage engine must do.
 *
 * A shard owns its engine. The shard's calls never overlap, so an engine needs no locks. It
 * should block in `commit` only (ENGINE-6). Only read, read_near, read_file, unpin, health,
 * warnings and the functions of `files` come from any thread, at any time between open and
 * close. The cases in
 * tests/unit/test_engine*.c run against every engine and define "correct".
 *
 *  ENGINE-1  run does the ops in order. When run returns 0, every op has its answer, and all that
 *      the answers say is durable (claims and extends: written). When run returns ENGINE_LATER,
 *      every op has its answer, and `commit` makes the batch durable. The shard gives no answer
 *      of the batch before commit has returned 0, and starts no other run before.
 *  ENGINE-2  When run or commit returns a code, the engine has failed, and the whole batch with it.
 *      The shard answers every op of the batch with that code and unpins their records.
 *      SLU_EUNKNOWN: the batch may take effect when the engine is reopened. From then on run returns
 *      SLU_EDOWN, until `reopen` returns 0; the shard calls `reopen` with back-off. So an
 *      engine has no retry logic of its own. An engine whose data path reconnects by itself
 *      (Redis) does not fail: its ops do, each with SLU_EDOWN or SLU_EUNKNOWN, and `health`
 *      returns the reason.
 *  ENGINE-3  Before an op, run does what fell due until op->route.before; after the last op, what fell due
 *      until `due`. A run does at most ENGINE_DUE_MAX steps: the rest waits for the next run,
 *      and next_due says so.
 *  ENGINE-4  op->route.arrived is the moment that counts for ack, nack, extend and return, and for the ops
 *      of a key's holder. `now` counts for all other ops: a lease starts when it is granted.
 *      now never goes back.
 *  ENGINE-5  When messages of a queue become claimable, run calls conf->ready. A claim that found
 *      nothing may then find something; without that call it finds nothing. conf->freed does
 *      the same for keys that can be acquired.
 *  ENGINE-6  commit may block. Meanwhile another thread answers ops of the shard that wait, takes
 *      new ops and may unpin records; so commit calls none of the functions in conf except
 *      `poke`, and touches no op. If commit returns ENGINE_LATER, the outcome is still open: the
 *      engine calls conf->poke when it has changed, and the shard calls commit again, at any
 *      time, also without a poke. err->text then names what the engine waits for.
 *
 * engine/ledger/ledgerengine.h gives engines on the ledger all of this but the durability of ENGINE-1.
 *
 * To add an engine: its folder, a row in engines.c, a row in tests/lib/engine_rig.c.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "engine/meter.h"
#include "engine/op.h"
#include "engine/outbox.h"

struct disk;
struct option;
struct quota;
struct slu_log;
struct store_ops;

enum {
	ENGINE_DUE_MAX = 4000,  /* promotions and expiries a run */
	ENGINE_SCAN_MAX = 1000, /* entries a page of OP_LIST looks at */
	ENGINE_PIECE = 65532,   /* bytes of a payload; a multiple of 3, for base64 */
	ENGINE_LATER = -1       /* run, commit: the batch is not durable yet; no SLU_ code */
};

/* How soon an answer is on disk. */
enum engine_sync {
	ENGINE_SYNC,          /* before the shard gives it */
	ENGINE_SYNC_INTERVAL, /* within sync_interval */
	ENGINE_SYNC_NONE      /* when the kernel writes it */
};

/* Follows the changes of lanes, for a copy of their messages outside. The lane's thread calls these
 * functions; they must not block. */
struct engine_observer {
	void *arg;

	/* The lane serves from now on. Changes before this call may have been missed. epoch: in which this
	 * node owns the shard; 0: no tenure. */
	void (*opened)(void *arg, uint32_t lane, uint64_t epoch);

	/* The lane serves no longer: its node has given the shard up. */
	void (*closed)(void *arg, uint32_t lane);

	/* A change was applied. It is durable when a later op of this lane has its answer. */
	void (*changed)(void *arg, uint32_t lane, const struct change *c);
};

struct engine_conf {
	const char *shard;                     /* name of the shard; NULL: default */
	const char *folder;                    /* for engines with the flag `folder`; NULL: none */
	const void *options;                   /* values of the engine's own rows (engine_ops.options); NULL: none */
	struct disk *disk;                     /* NULL: disk_posix */
	const struct store_ops *const *stores; /* drivers, NULL at the end (store/store.h); NULL: none */
	struct slu_log *log;
	slu_time wall; /* the wall clock now; at a reopen: shard time now */
	enum engine_sync sync;
	slu_time sync_interval;
	uint32_t max_idem;   /* remembered idempotency keys; 0: no limit */
	uint32_t max_queues; /* 0: no limit */
	struct quota *quota; /* NULL: no limits */
	struct meter_lane meter;

	/* For the shard: how long a batch may stay open before its ops are answered SLU_EUNKNOWN
	 * (LANE-14 of broker/lane.h); 0: as long as it takes. */
	slu_time patience;

	/* For engines with the flag `shared`: if the store cannot be reached, open returns 0, and
	 * the engine has failed (ENGINE-2). */
	bool late;

	/* Called during open: `done` of `all` bytes have been read back. False cancels: open
	 * returns SLU_ECANCELED. NULL: not called. */
	bool (*reading)(void *arg, uint64_t done, uint64_t all);
	void *reading_arg;

	/* ENGINE-5. n: how many messages can be claimed now, UINT32_MAX: unknown. queue.n 0: of any
	 * queue. Called during run, by its thread. NULL: not called. */
	void (*ready)(void *arg, struct slice space, struct slice queue, uint32_t n);
	void (*freed)(void *arg, struct slice space, struct slice key);

	/* Returns true if an op waits for messages of the queue; the engine then does not forget
	 * the queue. Called during run, by its thread. NULL: no op waits. */
	bool (*waited_for)(void *arg, struct slice space, struct slice queue);
	void *ready_arg; /* of ready, freed and waited_for */

	/* run has applied a change of any kind but ACCEPT. Called during run, by its thread. NULL:
	 * not called. */
	void (*changed)(void *arg, const struct change *c);
	void *changed_arg;

	/* run has applied a change of any kind. Before the DROP or UNTAKE of a batch of messages it is also
	 * called for each of them, with `kind` and `id` alone. Called during run, by its thread, if the
	 * engine has the flag `observed`. NULL: not called. */
	void (*observe)(void *arg, const struct change *c);
	void *observe_arg;

	/* For the shard: follows all changes. NULL: not observed. */
	const struct engine_observer *observer;

	/* Where a message goes that an OP_FINISH or a dead letter brings. Returns SLU_ETOGETHER if the other shard
	 * cannot take it. Called during run, by its thread. NULL: here. */
	int (*home)(void *arg, struct slice space, struct slice queue, struct engine_home *out, struct slu_err *err);
	void *home_arg;

	/* Wakes the thread that calls run: another node has changed the store (flag `shared`), or
	 * commit has something new to return (ENGINE-6). Any thread. NULL: not called. */
	void (*poke)(void *arg);
	void *poke_arg;

	/* For the shard: a reopened engine knows this id. Called by the shard's thread. NULL: not
	 * called. */
	void (*given)(void *arg, uint64_t id);
	void *given_arg;

	/* Called during open: a batch of that queue is set aside (engine/move.h), and the process
	 * that began it is gone. The names are borrowed for the call. NULL: not called. */
	void (*left)(void *arg, struct slice space, struct slice queue);
	void *left_arg;

	/* For engines with the flag `shared`: the number of this engine among the engines of this
	 * process that share the store. A queue belongs to lane supplier_hash() % lanes. lanes 0 or
	 * 1: one engine. */
	uint32_t lane, lanes;

	/* Which node owns the shard: several nodes share the store (engine/tenure.h). Open then takes
	 * nothing: the engine has failed until it is reopened. NULL: open takes the shard. */
	const struct engine_tenure *tenure;
};

/* What an engine found when it was opened or reopened. */
struct engine_found {
	slu_time now;        /* shard time when open returns: the larger of conf->wall plus the time
			      * that open took, and the last time in the store */
	uint64_t highest_id; /* of all messages that the store ever accepted and knows; or 0 */
	slu_time patience;   /* engine_conf.patience of the shard from now on; 0: as it was */
	uint64_t epoch;      /* in which this node owns the shard; 0: no tenure, or not taken */
	bool own_time;       /* `now` follows the clock of a store: the wall clock of this machine does
			      * not count */
	bool one_queue;      /* an enqueue may name one queue only: run refuses others with
			      * SLU_EINVAL, because they could not be accepted as a whole */
};

struct engine {
	const struct engine_ops *ops; /* first member of every engine's struct */
};

/* A condition that an operator should know of while the engine serves. */
struct engine_warning {
	const char *name; /* "weak_persistence" */
	char text[240];
};

struct engine_file; /* private to the engine: a file that a thread writes */

/*
 * A payload that is too large for a record goes to a file before its message is enqueued.
 * Callers use engine/payload.h, which also handles engines without files. Any thread that may
 * wait.
 */
struct engine_files {
	/* A payload of more bytes should have a file. */
	uint64_t (*most)(const struct engine *e);

	/* SLU_EDOWN while the engine has failed. */
	int (*open)(struct engine *e, struct engine_file **out, struct slu_err *err);

	/* Append. After SLU_EFULL or SLU_EDOWN the file can only be closed. */
	int (*write)(struct engine_file *f, const void *p, size_t n, struct slu_err *err);

	/* Sync the file and name it in m (file, mark and payload_size). */
	int (*seal)(struct engine_file *f, struct message *m, struct slu_err *err);

	/* After the op that names the file was answered, or without an op. The engine removes a
	 * file whose message was not accepted. */
	void (*close)(struct engine_file *f);
};

/* A payload file of a shard in a store, for other nodes. */
struct engine_stored {
	uint64_t number;
	uint32_t mark; /* message.mark */
	uint32_t size; /* bytes of the payload */
};

/*
 * Payload files of a shard that another node owns: this node puts and gets their objects in the store
 * itself, and only their names travel (PEER-3). While another node owns the shard, engine_files writes
 * files for that node.
 */
struct engine_away {
	/* Another node owns the shard in this epoch; 0: no other node does. Any thread. */
	void (*set_owner)(struct engine *e, uint64_t epoch);

	/* Returns whether that owner can accept m, which names a file. Any thread. */
	bool (*travels)(struct engine *e, const struct message *m);

	/* The owner: m, which names a file of another node, is not accepted, and its file is removed. Any
	 * thread. */
	void (*refuse)(struct engine *e, const struct message *m);

	/* The owner: sets *out to the file that ref has pinned. Returns false if it is not in a store. */
	bool (*name)(const struct op_ref *ref, struct engine_stored *out);

	/* Pins a file of the owner. `read` fetches it, and returns SLU_ECORRUPT if it is damaged, or if
	 * its message is gone meanwhile. Any thread. Returns SLU_EDOWN, SLU_ENOMEM. */
	int (*pin)(struct engine *e, const struct engine_stored *file, struct op_ref *out, struct slu_err *err);
};

/* Settings that only one engine has: rows, and the struct of their values, which becomes
 * engine_conf.options. A shard's entry in the file sets them as shards.<name>.<key>. */
struct engine_options {
	const struct option *rows;
	unsigned n;
	size_t size; /* of the struct of values */

	/* Optional: report each fault of the values of a shard's entry that no row can see. */
	void (*check)(const void *values, void (*fault)(void *arg, const char *why), void *arg);

	/* Optional: SLU_EINVAL if open would refuse conf whatever the store answers. Opens and
	 * connects to nothing. */
	int (*try)(const struct engine_conf *conf, struct slu_err *err);

	/* The place that these values name, for people: an address. NULL: the folder. */
	const char *(*place)(const void *values);
};

enum {
	ENGINE_NEAR = 64 /* records that read_near reads at most */
};

/* For read_near. */
struct engine_near {
	struct slice texts[ENGINE_NEAR];
	char room[32 << 10];
};

/* Groups on their way to the store of a shard. */
struct engine_lag {
	uint64_t groups; /* how many */
	uint64_t bytes;  /* of all of them */
	slu_time since;  /* boot time when the oldest was sent; 0 = all are confirmed */
};

struct engine_ops {
	const char *name; /* the word in `engine: log` */
	const char *doc;  /* how the engine keeps messages, for --help */
	bool durable;     /* messages survive close and open */
	bool shared;      /* other nodes may use the same store at the same time */
	bool folder;      /* it keeps its files in engine_conf.folder */
	bool quotas;      /* it counts what each namespace holds (engine/spaces.h) */
	bool observed;    /* it calls engine_conf.observe, and no other process changes its messages */

	const struct engine_options *options; /* NULL: it has none of its own */

	int (*open)(struct engine **out, const struct engine_conf *conf,
		    struct engine_found *found, struct slu_err *err);

	/* Optional: open a failed engine again, in place: op_ref.pin, op->engine and message.keeper
	 * keep their meaning. Called by the thread that calls run.
	 *   SLU_EBUSY  a record is pinned or a file is being written; the caller tries again
	 *   others     as open; the engine stays failed
	 * NULL: the engine stays failed until the process ends. */
	int (*reopen)(struct engine *e, const struct engine_conf *conf,
		      struct engine_found *found, struct slu_err *err);

	/* For engines that know tenure: gives the shard up. The engine has failed until it is
	 * reopened; what is pinned stays readable. Returns the epoch of the newest group that it put or
	 * tried to put. Called by the thread that calls run, when no batch is open. */
	uint64_t (*release)(struct engine *e);

	/* Nothing is pinned any more. The engine is closed in any case. A batch that commit has left
	 * open may or may not be there at the next open. Returns SLU_EDOWN if a part of the messages
	 * may not be on disk; the engine has logged the reason. */
	int (*close)(struct engine *e);

	/* ENGINE-1 to ENGINE-5. batch NULL: only time passes. due <= now. */
	int (*run)(struct engine *e, struct op *batch, slu_time due, slu_time now,
		   struct slu_err *err);

	/* ENGINE-6. Called by the thread that calls run, after run has returned ENGINE_LATER, until
	 * commit returns something else. NULL: run never returns ENGINE_LATER. */
	int (*commit)(struct engine *e, struct slu_err *err);

	/* The moment of the next run without ops: a delay or lease ends, or the engine syncs or
	 * cleans; or SLU_NEVER. */
	slu_time (*next_due)(struct engine *e);

	/*
	 * Copy n bytes of a pinned record, error or result, from `at` on, to out;
	 * message_decode parses a record. Any thread.
	 *   SLU_EBUSY     may_block is false and read would have to wait for the disk
	 *   SLU_ECORRUPT  the bytes differ from those that were written
	 *   SLU_EDOWN     the bytes cannot be read
	 * The engine checks a record as a whole: one call for all of it is cheapest. It checks the
	 * payload of a row (op_row.payload) piece by piece: pieces of ENGINE_PIECE that begin at
	 * multiples of ENGINE_PIECE are cheapest.
	 */
	int (*read)(struct engine *e, const struct op_ref *ref, uint64_t at, size_t n,
		    char *out, bool may_block, struct slu_err *err);

	/* Optional: read the whole records of the first rows that lie side by side, with one system
	 * call, and set near->texts. Returns the number of records; if it is 0, the caller uses
	 * `read`, which reports errors. Any thread. */
	uint32_t (*read_near)(const struct op_row *rows, uint32_t n, struct engine_near *near,
			      bool may_block);

	/* Release a record; ref->pin is NULL afterwards. Any thread. */
	void (*unpin)(struct engine *e, struct op_ref *ref);

	/* Optional: n bytes, from `at` on, of a file that a BACKUP_READ has pinned. Any thread; may
	 * wait for the disk. Returns SLU_EINVAL, SLU_ECORRUPT, SLU_EDOWN. */
	int (*read_file)(struct engine *e, const struct op_ref *ref, uint64_t at, size_t n,
			 char *out, struct slu_err *err);

	/* Optional: 0, or the reason why ops fail now, though run does not (ENGINE-2). Any thread. */
	int (*health)(struct engine *e, struct slu_err *err);

	/* Optional: write at most max warnings; returns their number. Any thread. */
	unsigned (*warnings)(struct engine *e, struct engine_warning *out, unsigned max);

	/* Optional: set *out to what the store has not confirmed yet. Returns false if the engine has
	 * no store. Any thread, also while a batch is open. */
	bool (*lag)(struct engine *e, struct engine_lag *out);

	/* Optional: how long the shard should gather ops before the next batch, because commits cost
	 * requests to a store that have a budget; 0 = not at all. The thread that calls run, when no
	 * batch is open. */
	slu_time (*rest)(struct engine *e);

	/* Optional: what a front folder has and the store lacks goes to the store now, without waiting for
	 * the next tick. Returns false if the engine has no front folder. The caller wakes the thread that
	 * calls run. Any thread. */
	bool (*flush)(struct engine *e);

	/* Optional: fill in the members of the answer to OP_SHARD that only the engine knows. The
	 * thread that calls run. */
	void (*measure)(struct engine *e, struct op_shard *out);

	const struct engine_files *files; /* NULL: payloads are in their records */
	const struct engine_away *away;   /* NULL: no other node owns a shard of this engine */
};

/* engines.c: all engines of the server, NULL at the end. libsluice does not link it. */
extern const struct engine_ops *const engine_rows[];

/* The row with that name, or NULL. */
const struct engine_ops *engine_find(const struct engine_ops *const *rows, const char *name);

/* The names of all rows, "log|memory|redis"; cut when it is longer than out. */
const char *engine_names(const struct engine_ops *const *rows, const char *between, char *out,
			 size_t size);

/* Runs a batch and commits it, for a caller that may block until it is durable. */
int engine_run(struct engine *e, struct op *batch, slu_time due, slu_time now,
	       struct slu_err *err);

static inline int
engine_read(struct engine *e, const struct op_ref *ref, uint64_t at, size_t n, char *out,
	    bool may_block, struct slu_err *err)
{
	return e->ops->read(e, ref, at, n, out, may_block, err);
}

static inline uint32_t
engine_read_near(struct engine *e, const struct op_row *rows, uint32_t n,
		 struct engine_near *near, bool may_block)
{
	return e->ops->read_near ? e->ops->read_near(rows, n, near, may_block) : 0;
}

static inline void
engine_unpin(struct engine *e, struct op_ref *ref)
{
	if (ref->pin)
		e->ops->unpin(e, ref);
}

#endif
