/*
 * redis.h - an engine whose messages live in a Redis server.
 *
 *      op, op, ... ──> one EVALSHA each, in one pipeline ──> Redis
 *      answers     <── in the same order
 *
 * Works with Redis 6 or later, Valkey and Kvrocks. One script (sluice.lua, locks.lua, move.lua)
 * decides every step of a message or a lock key, so a step happens whole or not at all, and
 * any number of nodes may work on the same queues. The engine stores no messages itself.
 *
 * Keys of a queue, with the prefix `sluice` and on the shard that is called default:
 *
 *      sluice:q:<queue>:<namespace>:meta          hash: policy, time, mark, batches
 *                                 :msg            hash: <id> its fields, <id>:r its record,
 *                                                 <id>:e its last error, <id>:s its state,
 *                                                 d:<etag> a document
 *                                 :pending:<p>    sorted set by due: ready, with priority p
 *                                 :delayed        sorted set by due
 *                                 :inprog         sorted set by the end of the lease
 *                                 :dlq            sorted set by the time of death
 *                                 :held           behind the head of its key, in order
 *                                 :heads          hash: the message that leads each key
 *                                 :ttl            sorted set by the time of expiry
 *                                 :idem           hash: idempotency key, id
 *                                 :results        hash
 *                                 :all            sorted set by number
 *                                 :prios          hash: priorities in use
 *                                 :ends           sorted set: when results and keys are forgotten
 *                                 :aside          set: damaged messages
 *                                 :ops            hash: what recent claims were granted
 *                                 :later          delayed messages with a key, by key
 *                                 :taken          sorted set: the batch set aside (move.lua)
 *
 * On another shard `:s:<shard>` follows the namespace. With hash tags the part from <queue>
 * to there is in braces, so all keys of a queue are in one slot of a cluster. Open detects
 * whether the server is a cluster.
 *
 * The lock keys of a namespace are the queue `.locks`, which uses only these keys:
 *
 *      sluice:q:.locks:<namespace>:msg            hash: l:<key> its fields, d:<etag> a document
 *                                 :all            sorted set: names of the keys, in order
 *                                 :ends           sorted set: when leases end, keys are forgotten
 *
 *      sluice:queues       sorted set: every queue, by its first use
 *      sluice:spelled      hash: the first spelling of namespaces and queues
 *      sluice:counter      the counter of tokens and numbers
 *      sluice:nodes        hash: each node, its map and the number of its visits
 *      sluice:ids          hash: for each node and lane, the ceiling of its ids
 *
 *  REDIS-1  The server's clock counts. In a queue, time never goes back.
 *  REDIS-2  Tokens and numbers come from one counter; with hash tags each queue has its own.
 *  REDIS-3  A call declares all its keys. In a cluster they belong to one queue, so to one
 *      slot: an enqueue into several queues is refused, and the keys of the shard are used
 *      one at a time. A node learns the priorities of a queue from its first call: the script
 *      refuses that call without any effect, and the node repeats it.
 *  REDIS-4  A call that was sent and not answered is sent again on a new connection, unless
 *      the server hangs: then the outcome is SLU_EUNKNOWN, after one timeout. Each queue
 *      stores the number of the last enqueue of each engine (`did:<engine>` in its meta), and
 *      what a claim with an op's number was granted. So neither happens twice, even if the
 *      messages are gone. If no message of a repeated enqueue is left and later enqueues
 *      followed it, the enqueue may have been refused: SLU_EUNKNOWN. A settling call is safe
 *      by its token; if the token is not valid any more, the outcome is SLU_EUNKNOWN. A
 *      change of a lock key stores the id of its op there, so a repeated call finds that it
 *      happened, if no other op has changed the key since.
 *  REDIS-5  While a server cannot be reached, all ops for it return SLU_EDOWN at once. The
 *      engine tries again after 100 ms, then after twice as long each time, up to 5 s
 *      (REDISNODES-2). A run never fails, REDIS-12 apart.
 *  REDIS-6  A call publishes queues that have new ready messages (sluice:ready), so that
 *      waiting claims of other nodes wake, and lock keys that are free: `namespace/.locks
 *      key`. A node counts the leases of its streams: if another node ends or extends such a
 *      lease, that is published, too (`=node: id token left`). A lease stops counting after
 *      its end.
 *  REDIS-7  Times are stored in microseconds.
 *  REDIS-8  A queue moves from shard to shard by engine/move.h: each step is one call. Every
 *      call has the home of its queue by the map, and sets the mark. Two shards may share a
 *      server: each has its own queues and notices (sluice:queues:s:<shard>); they share the
 *      other keys.
 *  REDIS-9  A node sends the highest number it has seen. A counter below that number has lost
 *      writes that were answered: the script raises the counter in the same step, before it
 *      grants a token, and the node reports the loss (log, metric, warning).
 *  REDIS-10  A lease on a lock key ends in the first call of any node after its deadline. The
 *      same step discards the staged documents.
 *  REDIS-11  No call does unbounded work for one op, except an enqueue, which is one step of
 *      any size. A purge takes several calls, each for at most ENGINE_SCAN_MAX messages.
 *  REDIS-12  With engine_conf.late, an engine whose server could not be reached at open has
 *      failed (ENGINE-2), and the shard reopens it with its back-off. Once the server was
 *      reached, the engine reconnects by itself (REDIS-5) and never fails.
 */
#ifndef ENGINE_REDIS_REDIS_H
#define ENGINE_REDIS_REDIS_H

#include "engine/engine.h"
#include "engine/redis/wire.h"

enum {
	REDIS_PREFIX = 64 /* bytes of a prefix, with its NUL */
};

/* engine_conf.options of this engine. */
struct redis_conf {
	struct rwire_conf wire;
	const char *prefix; /* NULL = sluice */
	bool tags;          /* use hash tags; a cluster always has them */
	bool given_time;    /* for tests: use the time of the run, not the server's */
};

extern const struct engine_ops engine_redis;

#endif
