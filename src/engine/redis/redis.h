/*
 * redis.h - an engine whose messages live in a Redis server.
 *
 *      op, op, ... ──> one EVALSHA each, in one pipeline ──> Redis
 *      answers     <── in the same order
 *
 * Redis 6 or later, Valkey, Kvrocks. What happens to a message or a lock key is decided by one
 * script (sluice.lua, locks.lua), so every step is whole or has not been, whatever breaks; and any number of
 * nodes may work on the same queues. Nothing of a message is kept here.
 *
 * Keys of a queue, with the prefix `sluice` and on the shard that is called default:
 *
 *      sluice:q:<queue>:<namespace>:meta          hash: policy, time, mark, batches
 *                                 :msg            hash: <id> how it stands, <id>:r its record,
 *                                                 <id>:e its last error, <id>:s its state,
 *                                                 d:<etag> a document
 *                                 :pending:<p>    sorted set by due: ready, of priority p
 *                                 :delayed        sorted set by due
 *                                 :inprog         sorted set by the end of the lease
 *                                 :dlq            sorted set by when it died
 *                                 :held           behind the head of its key, in order
 *                                 :heads          hash: which message leads each key
 *                                 :ttl            sorted set by when it expires
 *                                 :idem           hash: idempotency key, id
 *                                 :results        hash
 *                                 :all            sorted set by number
 *                                 :prios          hash: priorities in use
 *                                 :ends           sorted set: when results and keys are forgotten
 *                                 :aside          set: damaged
 *                                 :ops            hash: what recent claims were granted
 *                                 :later          delayed ones that have a key, by that
 *                                 :taken          sorted set: what is set aside (move.lua)
 *
 * On another shard `:s:<shard>` follows the namespace. With hash tags what stands from
 * <queue> to there is in braces, so all keys of a queue are in one slot of a cluster. That
 * the server is one is seen when it is opened.
 *
 * The lock keys of a namespace are a queue, too, `.locks`, of which alone these are used:
 *
 *      sluice:q:.locks:<namespace>:msg            hash: l:<key> how it stands, d:<etag> a document
 *                                 :all            sorted set: their names, in order
 *                                 :ends           sorted set: when leases end, keys are forgotten
 *
 *      sluice:queues       sorted set: every queue, by when it was first used
 *      sluice:spelled      hash: how namespaces and queues were first spelled
 *      sluice:counter      of tokens and numbers
 *      sluice:nodes        hash: a node, its map and how often it has been here
 *      sluice:ids          hash: a node and lane, the ceiling of the ids it may have given
 *
 *  D1  Time is the server's. It never goes back in a queue.
 *  D2  Tokens and numbers come from one counter; with hash tags, from one a queue.
 *  D3  All keys of a call are declared. In a cluster they are of one queue, so of one slot: an
 *      enqueue for several is refused, and the keys of the shard are used one at a time.
 *      Which priorities a queue has, a node learns from its first call, which is refused
 *      without a trace and repeated.
 *  D4  What was sent and not answered is sent once more on a new connection, unless the
 *      server hangs: then the outcome is SLU_EUNKNOWN, after one timeout. An enqueue is
 *      known by its number, which each queue keeps of each engine (`did:<engine>` of its meta), a
 *      claim by that of its op: neither happens twice, whatever became of the messages. An enqueue of
 *      which nothing is left, and that was followed by others, may have been refused: SLU_EUNKNOWN. What settles is
 *      safe by its token; if that counts no more the outcome is SLU_EUNKNOWN. What changes
 *      a lock key leaves the id of its op there, so that it is found to have happened, if
 *      nobody has changed it since.
 *  D5  While a server cannot be reached all ops for it are answered SLU_EDOWN at once; it is
 *      tried again after 100 ms, and after twice as long each time, up to 5 s (nodes.h). A run
 *      never fails.
 *  D6  What a call makes claimable is published (sluice:ready), so that consumers who wait at
 *      other nodes are woken; and so are keys that can be had: `namespace/.locks key`. A node
 *      counts what its streams hold: a lease of theirs that another node ends or extends is
 *      published, too (`=node: id token left`), and counts no more after its time.
 *  D7  Times are kept in microseconds.
 *  D8  A queue moves from shard to shard by engine/move.h: each step is one call. What a map
 *      says of a queue goes with every call for it, and its mark is set by that call. Two
 *      shards may share a server: each has its queues and its notices (sluice:queues:s:<shard>),
 *      the rest is one for both.
 *  D9  A node sends the highest number that it has seen. A counter that is behind it has lost
 *      writes that were answered: it is lifted in the same step, before a token is granted,
 *      and that is said loudly (log, metric, warning).
 *  D10 A lease on a key ends in the first call of any node after its time; what was staged
 *      under it goes in the same step.
 *  D11 No call does unbounded work for one op, but for an enqueue, which is one step however
 *      large. A purge is as many calls as it takes, of ENGINE_SCAN_MAX messages each.
 *  D12 With `late` a server that cannot be reached at open is as one that is lost later (D5);
 *      what open would have found is told when it is there (engine_conf.given).
 */
#ifndef ENGINE_REDIS_REDIS_H
#define ENGINE_REDIS_REDIS_H

#include "engine/engine.h"
#include "engine/redis/wire.h"

enum {
	REDIS_PREFIX = 64 /* bytes of a prefix, with the end */
};

struct redis_conf {
	struct rwire_conf wire;
	const char *prefix; /* NULL: sluice */
	const char *shard;  /* NULL or "default": no segment in the keys */
	bool tags;          /* as in a cluster, which has them in any case */
	bool late;          /* D12 */
	bool given_time;    /* for tests: the time of whoever runs, not the server's */
};

extern const struct engine_ops engine_redis;

/* Would redis_open refuse these settings, whatever the server says? Connects to nothing.
 * SLU_EINVAL names the setting or the file. */
int redis_check(const struct redis_conf *conf, struct slu_err *err);

#endif
