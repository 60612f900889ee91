/*
 * peernet.h - the links of a node: ops of this node to the owners of shards, and ops of other nodes.
 *
 *      lane ── send ──> call ──> callee: a link to the owner ──> its node
 *      lane <── broker_came_back ──┘
 *
 *      other node ──> guest: its link ──> served op ── broker_post ──> lane
 *                                  └<── answer ─────── done ────────────┘
 *
 * One thread has all sockets. A callee is a node that owns a shard; its link is opened with the first
 * op, and closed when the node owns nothing any more.
 *
 * What a client may rely on when its op goes to another node:
 *
 *  PEER-1  An op is written to one link once. If the link breaks before the first byte, the op is routed
 *          again; after it, the outcome is unknown, unless the verb changes nothing (peer/fate.h).
 *  PEER-2  Only the node that the client talks to returns messages that it could not deliver. The owner never
 *          returns what it granted over a link that broke.
 *  PEER-3  The node of the client reads and writes large payloads in the store itself: no link carries them.
 *          An answer is never larger than what a slow reader may leave unread (peer/op_page.h).
 *  PEER-4  Both nodes of a link prove that they know the secret of the store; it is never sent (peer/hello.h).
 *  PEER-5  A list, a stream or a stop names what it lacks: a list the shards that do not answer, a stream
 *          goes on at the next owner, and a node that stops tells its links.
 *
 * How the links keep that:
 *
 *  PEERNET-1  A served op is marked `forwarded`: it is never sent to a third node. If this node does
 *             not own the shard, the answer is NOT_OWNER, with the epoch and the owner that it knows
 *             (peer/target.h).
 *  PEERNET-2  When a link breaks, the ops that it has brought are canceled. What they were granted stays
 *             granted until the leases run out: the entry node may have the answer (PEER-2).
 *  PEERNET-3  When a link breaks, peer/fate.h says what becomes of the ops that were sent.
 *  PEERNET-4  An owner that cannot be reached is left alone for RETRY; meanwhile ops are not sent.
 *  PEERNET-5  After `stop` all ops have come back, and all served ops are answered. Other nodes get
 *             LINK_STOP first, and then the answers to what they have sent, until they close their
 *             links, for at most STOP_TIME.
 *  PEERNET-6  With TLS every link of the node, to and from other nodes, is a TLS session, and the proofs of
 *             both nodes are bound to it: a third node between them is refused (HELLO-4).
 *  PEERNET-7  The thread never waits for a disk or for the lookup of a host name: helpers do
 *             (peer/helper.h). Numeric hosts, and records in memory, need none. `stop` waits for
 *             the helpers.
 *  PEERNET-8  A callee that owns nothing any more, and has not answered, had better be quick: LINK_HURRY. Its ops
 *             wait for a node whose shards other nodes have taken; it may be gone without a word.
 */
#ifndef PEER_PEERNET_H
#define PEER_PEERNET_H

#include "broker/broker.h"
#include "peer/hello.h"

struct peernet;
struct tls_slot;

struct peernet_conf {
	struct slu_log *log;
	const char *address;      /* to listen on: "peer://127.0.0.1:0" (net/listen.h) */
	const uint8_t *secret;    /* HELLO_SECRET bytes of the store; borrowed */
	uint8_t life[HELLO_LIFE]; /* of this node */
	uint32_t lanes;           /* shards of the store */
	struct tls_slot *tls;     /* a context of peers (net/tls_context.h); borrowed; NULL: no TLS */
};

/* The node that owns a shard. */
struct peernet_owner {
	uint64_t epoch; /* in which it took the shard; 0: no living node owns the shard */
	uint8_t life[HELLO_LIFE];
	const char *host; /* NULL: no node, or this node */
	unsigned port;    /* 0: the node has no links */
};

/* Listens. No thread yet. */
int peernet_open(struct peernet **out, const struct peernet_conf *conf, struct slu_err *err);

/* The port of its address. */
unsigned peernet_port(const struct peernet *p);

/* For broker_conf.remote; lives as long as p. */
const struct broker_remote *peernet_remote(const struct peernet *p);

/* Starts the thread. The broker must stay until broker_remote.stop has returned. */
int peernet_start(struct peernet *p, struct broker *b, struct slu_err *err);

/* Any thread. The owner of a shard has changed. */
void peernet_set_owner(struct peernet *p, uint32_t lane, const struct peernet_owner *owner);

/* After the broker is closed. NULL is fine. */
void peernet_close(struct peernet *p);

#endif
