/*
 * front.h - the part of a server that one loop owns: listeners, connections, pools.
 *
 * Only the loop's thread uses a front, except for `shared`. For the files of net/ and for
 * protocols; others use net/server.h.
 *
 *  NETFRONT-1  Slot and generation name a connection. The generation is 0 from the moment
 *              the connection closes, so a late answer does not find it.
 *  NETFRONT-2  An answer by a handler or a callback neither writes nor closes a connection:
 *              the connection becomes `dirty` and has its turn after they have returned, at
 *              the latest before the loop sleeps. So in a turn no other connection closes.
 *  NETFRONT-3  Deadlines are fields, not timers: one timer per front looks at all
 *              connections, at most once per `tick`, and only if one has a deadline.
 *  NETFRONT-4  Counters gather in `counts` and are published once per turn of the loop.
 *  NETFRONT-5  Before the loop sleeps it may poll (net/poller.h): for the answer of the only exchange that is on its way, or,
 *              if none is, for a request. An exchange counts as on its way until the front has seen no exchange begin or
 *              end for FRONT_STALE: from then on it is one that waits, for a message or a slow disk.
 */
#ifndef NET_FRONT_H
#define NET_FRONT_H

#include "base/metrics.h"
#include "base/slab.h"
#include "net/conn.h"
#include "net/listen.h"
#include "net/poller.h"
#include "net/server.h"
#include "net/tls.h"

#include <stdatomic.h>

enum {
	FRONT_READ = 64 * 1024 /* most bytes of a read */
};

/* What all fronts of a server share; fixed once open, except the atomic members. */
struct front_shared {
	struct server_conf conf;        /* defaults filled in */
	void *states[SERVER_PROTOCOLS]; /* protocol.open */
	struct metrics metrics;         /* rows of enum server_metric */
	unsigned files;                 /* that the process may have, all connections among them */
	_Atomic unsigned connections;
	_Atomic unsigned cut; /* connections that a stop closed with exchanges unanswered */
	_Atomic unsigned max_connections;
	_Atomic bool held;         /* SERVER-10 */
	_Atomic size_t max_bodies; /* of one thread */
	struct tls_slot tls;       /* for new connections */
};

struct front_listener {
	union net_handle uv;
	struct front *front;
	struct list node;
	struct front_protocol *protocol;
	unsigned index; /* of the address */
	unsigned flags;
	bool tls;
	bool owed; /* a connection waits to be accepted: there was no memory for it */
};

/* A protocol on one thread. */
struct front_protocol {
	const struct protocol *ops;
	void *shared;           /* of all threads: protocol.open */
	void *state;            /* of this thread: protocol.thread_open */
	struct exchange *spare; /* exchanges for later */
	unsigned n_spare;
	size_t spare_bytes; /* in their buffers */
};

struct front {
	struct front_shared *shared;
	struct front_protocol protocols[SERVER_PROTOCOLS];
	struct loop *loop;
	unsigned number;      /* of the server's fronts, from 0 */
	uv_prepare_t prepare; /* NETFRONT-2, NETFRONT-4 */
	struct loop_timer deadlines;
	struct loop_timer drain_end;
	struct loop_work drain_work;
	slu_time drain_grace;
	struct loop_work release_work; /* server_release */
	struct loop_work hand_over_work;
	struct loop_work sign_work; /* server_alive */
	_Atomic bool sign_owed;

	struct tls_room *tls_room; /* NULL: no address speaks TLS */
	slu_time tls_told;         /* when a failed handshake was last logged */

	struct list listeners;
	struct list conns; /* not closed */
	struct list dirty;
	struct slab slab;         /* of a protocol's struct conn, the largest one */
	uint32_t last_generation; /* given out */
	unsigned n_exchanges;     /* not spare; also those whose connection is gone */
	bool draining;
	bool hands_over; /* takes no connections; every answer is the last of its connection */
	bool ended;
	bool owed; /* of some listener */
	slu_time tick;
	slu_time swept; /* when deadlines were last looked at */

	/* NETFRONT-5 */
	struct poller poller;
	uint32_t events; /* exchanges that began or ended */
	uint32_t events_seen;
	slu_time event_at; /* when events were last seen, on the clock of the loop */
	unsigned n_seen;   /* n_exchanges at that time */
	unsigned n_stale;  /* exchanges that count no longer */

	uint64_t counts[SERVER_METRICS]; /* since they were published; gauges too */
	uint64_t counted;                /* bit i: counts[i] may be other than 0 */
	size_t bodies;                   /* SERVER-8: bytes of requests and answers */
	char *read;                      /* FRONT_READ bytes and one more: every read goes here first */
};

int front_open(struct front **out, struct front_shared *shared, unsigned number,
	       struct slu_err *err);
/* Runs it on a thread of its own, "net 0" and so on. Returns what loop_start returns. */
int front_start(struct front *f, struct slu_err *err);
void front_free(struct front *f); /* after its loop has been closed; NULL is fine */

/* Take the listener's next socket and listen on it. Before the loop starts. */
int front_listen(struct front *f, int fd, const struct listener *from, unsigned protocol,
		 unsigned index, unsigned flags, struct slu_err *err);
void front_close_listeners(struct front *f);
void front_take_owed(struct front *f);

/* As server_release and server_hand_over say. Any thread; once. */
void front_release(struct front *f);
void front_hand_over(struct front *f);

/* End as server_stop says. Any thread; once. */
void front_drain(struct front *f, slu_time grace);

/* NETFRONT-1: or NULL. */
struct conn *front_conn(const struct front *f, uint32_t slot, uint32_t generation);

/* For conn.c: its last act, and that a deadline of c may be earlier than all. */
void front_forget(struct front *f, struct conn *c);
void front_watch(struct front *f, slu_time deadline);
void front_dirty(struct front *f, struct conn *c);

/* When nothing is left of a front that drains, it ends. */
void front_check_end(struct front *f);

static inline void
front_count(struct front *f, enum server_metric row, uint64_t n)
{
	f->counts[row] += n;
	f->counted |= (uint64_t)1 << row;
}

/* May a new request begin on this connection now? SERVER-1 */
static inline bool
conn_may_begin(const struct conn *c)
{
	return c->generation != 0 && !c->last && !c->lingering && c->n_held == 0 && !conn_is_held(c) &&
	       c->n_exchanges < c->front->shared->conf.max_pipeline && c->output <= CONN_OUTPUT_LOW;
}

/* --- exchange.c --------------------------------------------------------------- */

/* From the pool, for this connection; NULL: no memory. Then back to it, after `ended`. */
struct exchange *exchange_new(struct conn *c);
void exchange_end(struct exchange *x, bool sent);
void exchange_free_spares(struct front_protocol *p);

/* NETFRONT-1: the connection of an exchange, or NULL. */
static inline struct conn *
exchange_conn(const struct exchange *x)
{
	return front_conn(x->front, x->slot, x->generation);
}

/* Runs it now, or on the loop, if this is another thread. */
void exchange_on_loop(struct exchange *x, void (*run)(struct loop_work *w));

/* Count the memory of an answer, or of the piece under way, until the exchange ends:
 * SERVER-8. */
void exchange_charge(struct exchange *x);

/* EXCHANGE-8. Returns NULL without memory, or if the connection has ended. part_of is arg. */
struct exchange *exchange_part(const struct exchange *x, void (*answered)(struct exchange *part), void *arg);
void exchange_part_end(struct exchange *part, bool sent);

/* EXCHANGE-7: the next piece is wanted. */
void exchange_want_more(struct exchange *x);

/* Bytes of the answer that the kernel does not have. */
size_t exchange_unsent(const struct exchange *x);

#endif
