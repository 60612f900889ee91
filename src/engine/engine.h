/*
 * engine.h - what a storage engine must do.
 *
 * A shard owns its engine: calls never overlap, so an engine has no locks and may
 * block; but read and unpin come from any thread, at any time between open and
 * close. tests/unit/test_engine.c runs the same cases against every engine and is
 * the definition of "correct".
 *
 *  E1  run does the ops in order. When it returns 0, every op has its answer and all
 *      that it says is durable (claims and extends: written).
 *  E2  When run returns a code, the whole batch failed: the shard answers every op of
 *      it with that code and lets go of what was pinned; from then on run answers
 *      SLU_EDOWN. SLU_EUNKNOWN: the batch may be there after the engine is reopened. An
 *      engine whose store may come back by itself does not fail: its ops do, each with
 *      SLU_EDOWN or SLU_EUNKNOWN, and `health` says so.
 *  E3  Before an op, what fell due until op->before happens; after the last, what
 *      fell due until `due`. At most ENGINE_DUE_MAX steps a run: the rest waits for
 *      the next, and next_due says so.
 *  E4  ack, nack, extend and return, and what the holder of a key asks for, are judged by
 *      op->arrived, all else by now: a lease starts when it is handed out. now never goes
 *      back.
 *  E5  Whenever messages of a queue have become claimable, run calls conf->ready. A
 *      claim that found nothing may then find something; otherwise it will not. The same
 *      for keys that can be acquired: conf->freed.
 *
 * Engines that stand on the ledger get all of this but E1's durability from
 * engine/clerk.h.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "engine/meter.h"
#include "engine/op.h"

struct disk;
struct quota;
struct redis_conf;
struct slu_log;

enum {
	ENGINE_DUE_MAX = 4000,  /* promotions and expiries a run */
	ENGINE_SCAN_MAX = 1000, /* entries a page of OP_LIST looks at */
	ENGINE_PIECE = 65532    /* bytes of a payload; a multiple of 3, for base64 */
};

/* How soon an answer is on disk. */
enum engine_sync {
	ENGINE_SYNC,          /* before it is given */
	ENGINE_SYNC_INTERVAL, /* within sync_interval */
	ENGINE_SYNC_NONE      /* when the kernel likes */
};

struct engine_conf {
	const char *folder; /* where it keeps its files; NULL: it has none */
	struct disk *disk;  /* NULL: disk_posix */
	struct slu_log *log;
	slu_time wall; /* the wall clock now */
	enum engine_sync sync;
	slu_time sync_interval;
	uint32_t max_idem;              /* remembered idempotency keys; 0: no limit */
	uint32_t max_queues;            /* 0: no limit */
	struct quota *quota;            /* NULL: none */
	const struct redis_conf *redis; /* engine/redis/redis.h; for that engine alone */
	struct meter_shard meter;

	/* So many bytes of so many have been read back, while it is being opened. False:
	 * it is not wanted any more, and open returns SLU_ECANCELED. NULL: nobody asks. */
	bool (*reading)(void *arg, uint64_t done, uint64_t all);
	void *reading_arg;

	/* E5. n: how many can be claimed now, or UINT32_MAX when it is not known.
	 * queue.n 0: of any queue. Called by the thread that calls run, during it;
	 * NULL: nobody waits. */
	void (*ready)(void *arg, struct slice space, struct slice queue, uint32_t n);
	void (*freed)(void *arg, struct slice space, struct slice key);

	/* Does anybody wait for messages of the queue? It is not forgotten then. The same
	 * thread; NULL: nobody does. */
	bool (*waited_for)(void *arg, struct slice space, struct slice queue);
	void *ready_arg; /* of these three */

	/* A change has been applied, of whatever kind but ACCEPT: during run, by its
	 * thread; NULL: nobody asks. */
	void (*changed)(void *arg, const struct change *c);
	void *changed_arg;

	/* Of a store that others change, too: wakes the thread that calls run, so that it
	 * does. From any thread; NULL: nobody sleeps. */
	void (*poke)(void *arg);
	void *poke_arg;

	/* Of a store that could not be reached at open: an id that was given before. From the
	 * thread that calls run; NULL: nobody gives ids. */
	void (*given)(void *arg, uint64_t id);
	void *given_arg;

	/* Optional, during open: a batch of that queue is set aside (engine/move.h), and whoever
	 * began it is gone with the process. The names are borrowed for the call. */
	void (*left)(void *arg, struct slice space, struct slice queue);
	void *left_arg;

	/* Of a store that several engines of this process share: which of them this is. A
	 * queue belongs to lane supplier_hash() % lanes; 0 or 1: there is one. */
	uint32_t lane, lanes;
};

/* What an engine found when it was opened. */
struct engine_found {
	slu_time now;        /* shard time when open returns: the larger of conf->wall,
			      * which has gone on meanwhile, and the last time it wrote
			      * down */
	uint64_t highest_id; /* of all messages it ever accepted and knows; or 0 */
};

struct engine {
	const struct engine_ops *ops; /* first member of every engine's struct */
};

/* What an operator should know though it serves. */
struct engine_warning {
	const char *name; /* "weak_persistence" */
	char text[240];
};

struct engine_file; /* the engine's own: a file that is being written */

/*
 * Payloads that are too large for a record go to files before their messages are
 * enqueued. Whoever has such a payload uses engine/payload.h, which knows of engines
 * that have no files, too. Any thread that may wait.
 */
struct engine_files {
	/* A payload of more bytes should have a file. */
	uint64_t (*most)(const struct engine *e);

	int (*open)(struct engine *e, struct engine_file **out, struct slu_err *err);

	/* Append. SLU_EFULL, SLU_EDOWN: the file is of no use any more. */
	int (*write)(struct engine_file *f, const void *p, size_t n, struct slu_err *err);

	/* All is written: synced when this returns 0, and m names it (file, mark and
	 * payload_size). */
	int (*seal)(struct engine_file *f, struct message *m, struct slu_err *err);

	/* After the op that names it was answered, or without one. A file whose message
	 * was not accepted is removed; nobody has to say so. */
	void (*close)(struct engine_file *f);
};

enum {
	ENGINE_NEAR = 64 /* records that are read at once, at most */
};

/* For read_near. */
struct engine_near {
	struct slice texts[ENGINE_NEAR];
	char room[32 << 10];
};

struct engine_ops {
	const char *name; /* the word users write: `engine: log` */
	bool durable;     /* what it holds is there after close and open */
	bool shared;      /* and others may use it at the same time: it is no folder */

	int (*open)(struct engine **out, const struct engine_conf *conf,
		    struct engine_found *found, struct slu_err *err);

	/* Nothing is pinned any more. SLU_EDOWN: what it holds may not all be on disk; it has
	 * logged why. Closed all the same. */
	int (*close)(struct engine *e);

	/* E1 to E5. batch may be NULL: then only time passes. due <= now. */
	int (*run)(struct engine *e, struct op *batch, slu_time due, slu_time now,
		   struct slu_err *err);

	/* When something falls due by itself (a delay, a lease), or the engine wants to be
	 * run for its own sake (to sync, to clean); or SLU_NEVER. */
	slu_time (*next_due)(struct engine *e);

	/*
	 * Copy the n bytes from `at` on of a pinned record (or error, or result) to
	 * out; message_decode takes it from there. Any thread.
	 *   SLU_EBUSY     may_block is false and it would have to wait for the disk
	 *   SLU_ECORRUPT  the bytes are not those that were written
	 *   SLU_EDOWN     they cannot be read
	 * A record is checked as a whole: reading it in one call is cheapest. The payload
	 * of a row (op_row.payload) is checked piece by piece, and is cheapest in pieces of
	 * ENGINE_PIECE from multiples of that on.
	 */
	int (*read)(struct engine *e, const struct op_ref *ref, uint64_t at, size_t n,
		    char *out, bool may_block, struct slu_err *err);

	/* Optional: the whole records of as many of the first rows as lie side by side, with
	 * one call of the system; near->texts says where they are. Returns how many; 0: one
	 * by one, then, and `read` tells what there is to tell. Any thread. */
	uint32_t (*read_near)(const struct op_row *rows, uint32_t n, struct engine_near *near,
			      bool may_block);

	/* Let go of a record; ref->pin is NULL afterwards. Any thread. */
	void (*unpin)(struct engine *e, struct op_ref *ref);

	/* Optional: n bytes from `at` on of a file that a BACKUP_READ has pinned. Any
	 * thread; may wait for the disk. SLU_EINVAL, SLU_ECORRUPT, SLU_EDOWN. */
	int (*read_file)(struct engine *e, const struct op_ref *ref, uint64_t at, size_t n,
			 char *out, struct slu_err *err);

	/* Optional: 0, or why it cannot serve now, though it may again by itself. Any thread. */
	int (*health)(struct engine *e, struct slu_err *err);

	/* Optional: at most max of them; returns how many. Any thread. */
	unsigned (*warnings)(struct engine *e, struct engine_warning *out, unsigned max);

	/* Optional: an enqueue for several queues is refused (SLU_EINVAL), since it could not
	 * be taken whole or not at all. The same from open to close; any thread. */
	bool (*apart)(const struct engine *e);

	/* Optional: fill in what it alone knows of OP_SHARD. By the thread that runs. */
	void (*measure)(struct engine *e, struct op_shard *out);

	const struct engine_files *files; /* NULL: payloads are in their records */
};

/* All engines, NULL at the end: adding one is a row in engine.c. */
extern const struct engine_ops *const engines[];

/* NULL when there is none of that name. */
const struct engine_ops *engine_by_name(const char *name);

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
