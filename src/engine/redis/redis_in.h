/*
 * redis_in.h - the inside of the Redis engine: queues that it knows, and calls.
 *
 *      run: op ──> calls ──> encode, encode, ... ──> send ──> answer, answer, ...
 *                    ^                                             │
 *                    └── once more: the script, or a priority, was not known ──┘
 */
#ifndef ENGINE_REDIS_REDIS_IN_H
#define ENGINE_REDIS_REDIS_IN_H

#include "base/map.h"
#include "engine/redis/nodes.h"
#include "engine/redis/redis.h"
#include "engine/redis/store.h"
#include "engine/redis/watch.h"

enum {
	REDIS_WEAK = 4 /* servers that are named in warnings */
};

/* A queue as this node knows it. */
struct rqueue {
	const char *space, *name; /* in one piece of memory, with base */
	const char *base;         /* its keys up to the last colon */
	char *space_shown, *shown;
	uint64_t hash;
	unsigned slot; /* in a cluster */
	uint64_t seen; /* D9: the highest number, of a counter of its own */
	uint64_t call; /* that was the last to be planned for it, of several queues */
	uint32_t at;   /* which of the queues of the call it is that is being said, from 1 on */
	int32_t *prios;
	uint32_t n_prios;
	bool listed; /* in <prefix>:queues */
	bool there;  /* the same, while they are read */
	bool gone;   /* it was deleted, and nobody has made it anew */
	bool anew;   /* a call has; the list may not have it */
	slu_time next_due;
	struct ledger_totals totals;
};

enum {
	REDIS_LINE = 24 /* bytes of an ordering key as text */
};

struct redis;
struct rcall;

/* How a verb is said and heard. */
struct rverb {
	const char *name;
	size_t (*count)(const struct rcall *c); /* arguments behind the common ones */
	void (*encode)(struct redis *r, const struct rcall *c);
	/* False: the answer fits its shape, and not the call. */
	bool (*decode)(struct redis *r, struct rcall *c, const redisReply *answer);
	const char *shape; /* of the answer: reply.h */
};

/* One EVALSHA. */
struct rcall {
	const struct rverb *verb;
	struct op *op;
	uint32_t from, to; /* of its items, rows or puts */
	uint32_t queue;    /* or the first of n_queues in op_queues */
	uint32_t *queues;  /* of an enqueue into several; else NULL */
	uint32_t n_queues;
	slu_time came; /* how long ago; see sluice.lua */
	struct op_queue *stats;
	uint64_t id; /* by which a claim is known */
	bool done;
	bool goes_on;           /* it has done a part, and is to be made again from there on */
	uint64_t cursor, limit; /* of a purge */
	bool again;             /* it was sent before, and may have happened */
	uint64_t said;          /* by which it is known then; rises from call to call */
	struct rnode *node;     /* to which it was said last */
	struct rnode *ask;      /* to which it is to be said, this once; or NULL */
};

struct redis {
	struct engine engine;
	struct redis_conf conf;
	struct engine_conf outer;
	struct rnodes nodes;
	struct rwire *wire; /* of the node to which a call is being said */
	struct watch watch;
	struct store store; /* of the first lane */
	struct buf heard;   /* from it */
	uint64_t self;      /* a number that no other engine has */
	uint64_t said;      /* of the last call */
	char sha[41];
	char segment[MOVE_SHARD + 4];    /* of keys: ":s:<shard>", or "" */
	char counter[REDIS_PREFIX + 16]; /* keys of the shard */
	char listing[REDIS_PREFIX + MOVE_SHARD + 16], spelled[REDIS_PREFIX + 16];
	char channel[REDIS_PREFIX + MOVE_SHARD + 16]; /* of notices */
	char ids[REDIS_PREFIX + 16];
	bool unmet;           /* D12: it has not been reached yet */
	uint64_t ids_ceiling; /* no id above it has been noted there */
	uint64_t ids_given;   /* the same, of what came from other shards */
	struct slab queues;   /* of struct rqueue, in the order in which they were used first */
	struct map names;
	struct rcall *calls;
	uint32_t n_calls, room_calls;
	slu_time now;   /* of the run */
	slu_time skew;  /* our time less the server's */
	uint64_t op_id; /* of the last call */
	uint64_t seen;  /* D9: the highest number, of the shard's counter */
	uint32_t budget;
	uint64_t random;
	struct op_queue ignored;        /* of queues of which only the sums are wanted */
	struct ledger_totals forgotten; /* of queues that are gone */
	uint32_t anew;                  /* queues that are so */
	struct slu_err why;             /* of the last failure */
	slu_time judge_at;              /* when the servers are asked what answers are worth; SLU_NEVER */

	/* For whoever asks, on any thread: under mtx. */
	pthread_mutex_t mtx;
	bool down;
	struct slu_err down_why;
	struct engine_warning lost; /* no name: nothing is */
	struct engine_warning weak[REDIS_WEAK];
	unsigned n_weak;
};

/* ---- queues.c ---- */

void rqueues_init(struct redis *r);
void rqueues_release(struct redis *r);
struct rqueue *rqueue_at(const struct redis *r, uint32_t h);

/* SLAB_NONE when there is none; rqueue_open makes it known here (SLU_ENOMEM). */
uint32_t rqueue_find(const struct redis *r, struct slice space, struct slice queue);
int rqueue_open(struct redis *r, struct slice space, struct slice queue, uint32_t *out);
int rqueue_add_prio(struct rqueue *q, int32_t prio); /* SLU_ENOMEM */

void rqueue_forget(struct redis *r, uint32_t h); /* it is gone; its totals stay in the sum */

/* ---- call.c ---- */

/* Add a call to the run; NULL: no memory. */
struct rcall *rcall_add(struct redis *r, const struct rverb *verb, struct op *op, uint32_t queue);

/* Shapes of what several verbs are answered: a message, a document. */
#define ROW_SHAPE "[iupnuuuuunnnuunnttuut]"
#define DOC_SHAPE "[tuunntt]"

/* Onto r->wire; and what was answered. An answer may leave it undone: then it is to be said
 * again. SLU_EUNKNOWN: the reply is malformed. SLU_ENOMEM. */
void rcall_say(struct redis *r, const struct rcall *c);
int rcall_hear(struct redis *r, struct rcall *c, const redisReply *reply, struct slu_err *err);

/* ---- round.c ---- */

/* Make all calls that were added, in order, and forget them. When a server is lost
 * meanwhile, once more; ops without an answer then fail, and the rest is as it should be.
 * The code says whether that was so. */
int rcalls_run(struct redis *r, struct slu_err *err);

/* One plain command, of words: the second is a key, and says where. It may be repeated,
 * so it must be one that can. Its answer, which is no error, and has the shape: errors are
 * SLU_EDOWN, malformed replies SLU_EUNKNOWN. */
int redis_ask(struct redis *r, const struct slice *words, size_t n, const char *shape,
	      redisReply **out, struct slu_err *err);

/* A reply of that server, to this command or call, is malformed: into the log, and close the
 * connection. SLU_EUNKNOWN. */
int redis_distrust(const struct redis *r, struct rnode *n, const char *what, struct slu_err *err);

/* The op, or its items from .. to, cannot be answered. */
void rcall_fail(struct rcall *c, int rc, const struct slu_err *err);

/* In a moment a server may answer otherwise. How often it was waited for. */
bool redis_wait(unsigned *waited);

/* ---- redis.c ---- */

/* "namespace/queue": from now on it is known here. And all that there are. */
int redis_know(struct redis *r, const char *name, struct slu_err *err);
int redis_know_all(struct redis *r, struct slu_err *err);

/* ---- ids.c ---- */

/* The highest id that any node may have given. */
int redis_ids_open(struct redis *r, uint64_t *highest, struct slu_err *err);

/* Before a message with that id is sent. */
int redis_ids_note(struct redis *r, uint64_t id, struct slu_err *err);
int redis_ids_note_given(struct redis *r, uint64_t id, struct slu_err *err);

/* ---- health.c ---- */

/* D9: the highest number that this node has met, of the counter of q. */
uint64_t *redis_seen(struct redis *r, struct rqueue *q);

/* The last number that a call took, or 0; and what the counter said, if it was too low. */
void redis_note_number(struct redis *r, struct rqueue *q, uint64_t number, uint64_t found);

/* At the end of each run. */
void redis_tell_health(struct redis *r);

/* engine_ops.health, engine_ops.warnings */
int redis_health(struct engine *e, struct slu_err *err);
unsigned redis_warnings(struct engine *e, struct engine_warning *out, unsigned max);

/* ---- meet.c ---- */

int redis_meet(struct redis *r, struct op_meet *m, struct slu_err *err);

/* When it is opened: are there more connections than the servers take, with all nodes? */
void redis_tell_clients(struct redis *r);

/* ---- verbs.c ---- */

extern const struct rverb redis_verbs[OP_VERBS];
extern const struct rverb redis_tick_verb;

/* As an argument: the record of a message. And as text: its ordering key, "" without. */
void redis_put_record(struct redis *r, const struct message *m);
const char *redis_line(const struct message *m, char out[static REDIS_LINE]);

/* What a strict queue compares under an idempotency key; "" without one. */
const char *redis_digest(const struct message *m, char out[static REDIS_LINE]);

/* The op failed by itself. */
void redis_refuse(struct redis *r, struct op *op, int rc, const char *text);

/* ---- row.c ---- */

/* Of what has ROW_SHAPE: can it be a message? */
bool redis_is_row(const redisReply *reply);

/* The next of the op's rows; false: its record is none, or there is no memory. */
bool redis_take_row(struct op *op, const redisReply *reply);

/* ---- locks.c ---- */

extern const struct rverb redis_lock_verbs[OP_VERBS];

/* Is it the state of a message of that queue? */
static inline bool
redis_lock_of_message(const struct op *op)
{
	return !slice_eq(op->queue, SLICE(LOCK_QUEUE));
}

/* As two arguments: a document, of which m may be NULL: none. And one that was answered, its
 * record; false: it is none, or there is no memory. */
void redis_put_document(struct redis *r, const struct message *m);
bool redis_take_document(const redisReply *reply, struct op_ref *out);

/* Of what has DOC_SHAPE: can it be a document? */
bool redis_is_document(const redisReply *reply);

void redis_lock_refuse(struct redis *r, struct op *op, enum lock_why why);

/* ---- lock_plan.c ---- */

int redis_plan_lock(struct redis *r, struct op *op, struct slu_err *err);

/* E5: keys that a call has freed; and one that another node has, "namespace/.locks key".
 * False: it is no such notice. */
void redis_tell_freed(struct redis *r, const struct rqueue *q, const redisReply *keys);
bool redis_hear_freed(struct redis *r, const char *notice);

/* ---- verbs.c ---- */

/* What another node did to leases of our streams: " id token left" of each, left: us until it
 * ends, 0: it has ended. */
void redis_hear_leases(struct redis *r, const char *text);

/* ---- move.c ---- */

/* What a step is answered; the rows, of which each begins with its kind, are checked apart. */
#define MOVE_SHAPE "[utuuuuuiuun[([n(.)])]t]"

int redis_plan_move(struct redis *r, struct op *op, struct slu_err *err);
size_t redis_move_count(const struct rcall *c);
void redis_move_encode(struct redis *r, const struct rcall *c);
bool redis_move_decode(struct redis *r, struct rcall *c, const redisReply *answer);

/* What a call says of where its queues live: the epoch and the shard, "" without. */
void redis_route(const struct rcall *c, char *out, size_t size);

/* V2, V4, V5: of an op that has found nothing, and whose queue lives on that shard. */
void redis_point_elsewhere(const struct rcall *c, const redisReply *lives, uint64_t counter);

/* ---- plan.c ---- */

/* SLAB_NONE: there is none, also at other nodes; of a queue of which the op says that it
 * lives elsewhere there is one then (V1). Or (op's) it is made. */
int redis_find_queue(struct redis *r, const struct op *op, struct slice space,
		     struct slice queue, uint32_t *out, struct slu_err *err);
int redis_make_queue(struct redis *r, const struct op *op, uint32_t *out, struct slu_err *err);

/* Have those queues listed that a call has made anew. */
void redis_list_anew(struct redis *r);

/* SLU_EDOWN, SLU_EUNKNOWN, SLU_ENOMEM. */
int redis_plan(struct redis *r, struct op *op, struct slu_err *err);
int redis_spell(struct redis *r, uint32_t queue, const struct spelling *as, struct slu_err *err);
int redis_tick(struct redis *r, uint32_t queue, slu_time due, struct slu_err *err);
void redis_policy_text(const struct policy *p, char *out, size_t size);
int redis_policy_read(const char *text, struct policy *out);
int64_t redis_us(slu_time t);                  /* to microseconds, upwards */
slu_time redis_ns(int64_t us);                 /* and back; REPLY_NUMBER_MAX is SLU_NEVER */
slu_time redis_later(slu_time t, slu_time by); /* within the range of slu_time */
extern const char redis_script[];

#endif
