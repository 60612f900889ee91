/*
 * redis_private.h - the state of the Redis engine: queues it knows, and calls.
 *
 *      run: op ──> calls ──> encode, encode, ... ──> send ──> answer, answer, ...
 *                    ^                                             │
 *                    └── again, if the script or a priority was unknown ──┘
 */
#ifndef ENGINE_REDIS_REDIS_PRIVATE_H
#define ENGINE_REDIS_REDIS_PRIVATE_H

#include "base/map.h"
#include "engine/redis/nodes.h"
#include "engine/redis/redis.h"
#include "engine/redis/store.h"
#include "engine/redis/watch.h"

enum {
	REDIS_WEAK = 4 /* warnings name at most so many servers */
};

/* A queue as this node knows it. */
struct rqueue {
	const char *space, *name;  /* in one piece of memory with base */
	const char *base;          /* its keys up to the last colon */
	char *space_shown, *shown; /* its first spelling */
	uint64_t hash;
	unsigned slot; /* in a cluster */
	uint64_t seen; /* REDIS-9: the highest number of its own counter */
	uint64_t call; /* the last call for several queues that was planned for it */
	uint32_t at;   /* its index, from 1 on, in the call that is being encoded */
	int32_t *prios;
	uint32_t n_prios;
	bool listed;    /* in <prefix>:queues */
	bool there;     /* found in <prefix>:queues during a read of the list */
	bool gone;      /* deleted, and not created again */
	bool recreated; /* created again by a call; the list may lack it */
	slu_time next_due;
	struct ledger_totals totals;
};

enum {
	REDIS_HASH_TEXT = 24 /* bytes of a hash as text, with the NUL */
};

struct redis;
struct rcall;

/* How to encode a verb and decode its answer. */
struct rverb {
	const char *name;
	size_t args;                                            /* arguments after the common ones */
	size_t (*count)(const struct rcall *c);                 /* arguments of the items; NULL = none */
	void (*encode)(struct redis *r, const struct rcall *c); /* NULL = no arguments */
	/* The answer has the shape. Returns false if it does not fit the call. NULL = nothing to decode. */
	bool (*decode)(struct redis *r, struct rcall *c, const redisReply *answer);
	const char *shape; /* of the answer: reply.h */
};

/* One EVALSHA. */
struct rcall {
	const struct rverb *verb;
	struct op *op;
	uint32_t from, to; /* which of the op's items, rows or puts */
	uint32_t queue;    /* the queue, or the first of `queues` */
	uint32_t *queues;  /* an enqueue into several queues; otherwise NULL */
	uint32_t n_queues;
	slu_time came;          /* how long ago the op arrived; see sluice.lua */
	struct op_queue *stats; /* where the answer of `stats` goes */
	uint64_t id;            /* identifies a claim: REDIS-4 */
	bool done;
	bool goes_on;           /* a part is done; the call must be made again for the rest */
	uint64_t cursor, limit; /* of a purge */
	bool again;             /* it was sent before, and may have happened */
	uint64_t said;          /* the number of the call: REDIS-4 */
	struct rnode *node;     /* the server it was sent to last */
	struct rnode *ask;      /* the server to send it to once (ASK), or NULL */
};

struct redis {
	struct engine engine;
	struct redis_conf conf;
	struct engine_conf outer;
	struct rnodes nodes;
	struct rwire *wire; /* of the server that gets the call being encoded */
	struct watch watch;
	struct rstore store; /* of the first lane */
	struct buf notices;  /* notices taken from watch */
	uint64_t self;       /* a number that no other engine has */
	uint64_t said;       /* number of the last call */
	char sha[41];
	char segment[MOVE_SHARD + 4]; /* of keys: ":s:<shard>", or "" */

	/* Keys of the shard, and the channel of its notices. */
	char counter[REDIS_PREFIX + 16];
	char listing[REDIS_PREFIX + MOVE_SHARD + 16], spelled[REDIS_PREFIX + 16];
	char channel[REDIS_PREFIX + MOVE_SHARD + 16];
	char ids[REDIS_PREFIX + 16];

	struct slu_err unmet; /* REDIS-12: why open could not reach a server; code 0 = it did */
	uint64_t ids_ceiling; /* the ceiling of ids stored on the server: ids.c */
	uint64_t ids_given;   /* the same for ids from other shards */
	struct slab queues;   /* of struct rqueue, in the order of first use */
	struct map names;
	struct rcall *calls;
	uint32_t n_calls, room_calls;
	slu_time now;    /* of the run */
	slu_time skew;   /* our time minus the server's */
	uint64_t op_id;  /* of the last call */
	uint64_t seen;   /* REDIS-9: the highest number of the shard's counter */
	uint32_t budget; /* steps left in this run */
	uint64_t random;
	struct op_queue ignored;        /* counts of queues, if only the sums are wanted */
	struct ledger_totals forgotten; /* totals of queues that are gone */
	uint32_t recreated;             /* number of queues with `recreated` */
	struct slu_err why;             /* the last failure */
	slu_time judge_at;              /* when to check the servers' settings again, or SLU_NEVER */

	/* Shared, under mtx. */
	pthread_mutex_t mtx;
	bool down;
	struct slu_err down_why;
	struct engine_warning lost; /* name NULL = no warning */
	struct engine_warning weak[REDIS_WEAK];
	unsigned n_weak;
};

/* ---- queues.c ---- */

void rqueues_init(struct redis *r);
void rqueues_release(struct redis *r);
struct rqueue *rqueue_at(const struct redis *r, uint32_t h);

/* The queue, or SLAB_NONE if this node does not know it. */
uint32_t rqueue_find(const struct redis *r, struct slice space, struct slice queue);

/* The queue, added if this node does not know it. Returns SLU_ENOMEM. */
int rqueue_open(struct redis *r, struct slice space, struct slice queue, uint32_t *out);
int rqueue_add_prio(struct rqueue *q, int32_t prio); /* returns SLU_ENOMEM */

/* The queue is gone. Its totals stay in the sums. */
void rqueue_forget(struct redis *r, uint32_t h);

/* ---- call.c ---- */

/* Adds a call to the run. Returns NULL if there is no memory. */
struct rcall *rcall_add(struct redis *r, const struct rverb *verb, struct op *op, uint32_t queue);

/* Shapes that several verbs use: a message, a document. */
#define ROW_SHAPE "[iupnuuuuunnnuunnttuut[(" DOC_SHAPE ")]]"
#define DOC_SHAPE "[tuunntt]"

/* Writes the call to r->wire. */
void rcall_encode(struct redis *r, const struct rcall *c);

/* Reads the reply to a call. If c->done is false afterwards, the call must be made again.
 * Returns SLU_EUNKNOWN if the reply is malformed, SLU_ENOMEM. */
int rcall_decode(struct redis *r, struct rcall *c, const redisReply *reply, struct slu_err *err);

/* ---- pipeline.c ---- */

/* Makes all calls that were added, in order, and removes them. If a server is lost meanwhile,
 * makes its calls once more; ops that have no answer then fail. Returns the first failure. */
int rcalls_run(struct redis *r, struct slu_err *err);

/* Sends one plain command, which may be repeated; the second word is a key and chooses the
 * server. Sets *out to the answer, which has the shape, or to NULL after a failure. Returns
 * SLU_EDOWN if the answer is an error, SLU_EUNKNOWN if it is malformed. */
int redis_ask(struct redis *r, struct rwords words, const char *shape, redisReply **out,
	      struct slu_err *err);

/* The same for a command whose answer is a number; *out is 0 after a failure. */
int redis_ask_number(struct redis *r, struct rwords words, int64_t *out, struct slu_err *err);

/* The op, or its items from .. to, fails. */
void rcall_fail(struct rcall *c, int rc, const struct slu_err *err);

/* ---- options.c ---- */

extern const struct engine_options redis_options;

/* ---- redis.c ---- */

/* engine_options.try */
int redis_check(const struct engine_conf *conf, struct slu_err *err);

/* This node knows the queue "namespace/queue" from now on. */
int redis_know(struct redis *r, const char *name, struct slu_err *err);

/* This node knows all queues of the shard. */
int redis_know_all(struct redis *r, struct slu_err *err);

/* ---- ids.c ---- */

/* The highest id that any node may have given. */
int redis_ids_open(struct redis *r, uint64_t *highest, struct slu_err *err);

/* Called before a message with that id is sent: a new one, one from another shard. */
int redis_ids_note(struct redis *r, uint64_t id, struct slu_err *err);
int redis_ids_note_given(struct redis *r, uint64_t id, struct slu_err *err);

/* ---- health.c ---- */

/* REDIS-9: the highest number of q's counter that this node has seen. */
uint64_t *redis_seen(struct redis *r, struct rqueue *q);

/* After a call. `number`: the last number it took, or 0; `found`: the counter's value if that
 * was too low, or 0. */
void redis_note_number(struct redis *r, struct rqueue *q, uint64_t number, uint64_t found);

/* Logs and stores the state of the servers, at the end of each run. */
void redis_report_health(struct redis *r);

/* engine_ops.health, engine_ops.warnings */
int redis_health(struct engine *e, struct slu_err *err);
unsigned redis_warnings(struct engine *e, struct engine_warning *out, unsigned max);

/* ---- presence.c ---- */

/* OP_PRESENCE */
int redis_plan_presence(struct redis *r, struct op *op, struct slu_err *err);

/* At open: warns if all nodes together need more connections than the servers accept. */
void redis_check_clients(struct redis *r);

/* ---- verbs.c ---- */

extern const struct rverb redis_verbs[OP_VERBS];
extern const struct rverb redis_tick_verb;

/* Writes the record of a message as an argument. */
void redis_put_record(struct redis *r, const struct message *m);

/* The hash of a message's key as text; "" without a key. */
const char *redis_key_hash(const struct message *m, char out[static REDIS_HASH_TEXT]);

/* Returns SLU_EINVAL if the message has a share: the scripts know no shares. */
int redis_check_share(const struct message *m, struct slu_err *err);

/* A digest as a script has it: 16 hex digits, or "" for 0. */
const char *redis_digest_text(uint64_t digest, char out[static REDIS_HASH_TEXT]);

/* The digest of a payload, which a strict queue compares; "" without an idempotency key. */
const char *redis_digest(const struct message *m, char out[static REDIS_HASH_TEXT]);

/* Refuses the op. */
void redis_refuse(struct redis *r, struct op *op, int rc, const char *text);

/* ---- row.c ---- */

/* Whether a reply with ROW_SHAPE can be a message. */
bool redis_is_row(const redisReply *reply);

/* Appends the message to the op's rows. Returns false if its record is malformed or there is
 * no memory. */
bool redis_take_row(struct op *op, const redisReply *reply);

/* Appends all rows of an answer to the op: `is` checks the form of one, `take` appends it. Fails the op
 * if `take` returns false. Returns false if there are more rows than requested, or one is malformed. */
bool redis_take_rows(struct redis *r, struct op *op, const redisReply *rows,
		     bool (*is)(const redisReply *reply),
		     bool (*take)(struct op *op, const redisReply *reply));

/* ---- locks.c ---- */

extern const struct rverb redis_lock_verbs[OP_VERBS];

/* Whether the op is about the state of a message, not about a lock key. */
static inline bool
redis_lock_of_message(const struct op *op)
{
	return !slice_eq(op->queue, SLICE(LOCK_QUEUE));
}

/* Writes a document as two arguments. `m`: NULL = no document. */
void redis_put_document(struct redis *r, const struct message *m);

/* Sets *out to the record of a document. Returns false if it is malformed or there is no
 * memory. */
bool redis_take_document(const redisReply *reply, struct op_ref *out);

/* Whether a reply with DOC_SHAPE can be a document. */
bool redis_is_document(const redisReply *reply);

void redis_lock_refuse(struct redis *r, struct op *op, enum lock_why why);

/* ---- lock_plan.c ---- */

int redis_plan_lock(struct redis *r, struct op *op, struct slu_err *err);

/* ENGINE-5: reports lock keys that a call has freed. */
void redis_report_freed(struct redis *r, const struct rqueue *q, const redisReply *keys);

/* Reports a lock key that another node has freed: "namespace/.locks key". Returns false if
 * the notice is about something else. */
bool redis_notice_freed(struct redis *r, const char *notice);

/* ---- verbs.c ---- */

/* What another node did to leases of our streams: " id token left" for each. `left`: us until
 * it ends, 0 = settled, -1 = expired. */
void redis_notice_leases(struct redis *r, const char *text);

/* ---- move.c ---- */

/* The answer of a step. Each row begins with its kind and is checked on its own. */
#define MOVE_SHAPE "[utuuuuuiuun[([n(.)])]t]"

int redis_plan_move(struct redis *r, struct op *op, struct slu_err *err);
size_t redis_move_count(const struct rcall *c);
void redis_move_encode(struct redis *r, const struct rcall *c);
bool redis_move_decode(struct redis *r, struct rcall *c, const redisReply *answer);

/* The home of the call's queues by the map, as text: epoch and shard; "" without a map. */
void redis_route(const struct rcall *c, char *out, size_t size);

/* MOVE-2, MOVE-4, MOVE-5: the op found nothing, and its queue lives on shard `lives`. */
void redis_point_elsewhere(const struct rcall *c, const redisReply *lives, uint64_t counter);

/* ---- plan.c ---- */

/* Finds a queue. Sets *out to SLAB_NONE if no node knows the queue. Creates the queue if the
 * op says that it lives on another shard (MOVE-1). */
int redis_find_queue(struct redis *r, const struct op *op, struct slice space,
		     struct slice queue, uint32_t *out, struct slu_err *err);

/* Finds or creates the queue of the op. */
int redis_make_queue(struct redis *r, const struct op *op, uint32_t *out, struct slu_err *err);

/* Adds queues that a call has created again to the list. */
void redis_list_recreated(struct redis *r);

/* Adds the calls that an op needs. Returns SLU_EDOWN, SLU_EUNKNOWN, SLU_ENOMEM. */
int redis_plan(struct redis *r, struct op *op, struct slu_err *err);
int redis_spell(struct redis *r, uint32_t queue, const struct spelling *as, struct slu_err *err);
int redis_tick(struct redis *r, uint32_t queue, slu_time due, struct slu_err *err);
void redis_policy_text(const struct policy *p, char *out, size_t size);
int redis_policy_read(const char *text, struct policy *out);

/* Read the next of several numbers that spaces separate, and move *text behind it. Return false
 * if the text has no number there or the number is too large. */
bool redis_take_u64(const char **text, int base, uint64_t *out);
bool redis_take_i64(const char **text, int64_t *out);

int64_t redis_us(slu_time t);                  /* to microseconds, rounded up */
slu_time redis_ns(int64_t us);                 /* from microseconds; REPLY_NUMBER_MAX is SLU_NEVER */
slu_time redis_later(slu_time t, slu_time by); /* t + by, within the range of slu_time */
extern const char redis_script[];

#endif
