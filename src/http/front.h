/*
 * front.h - the part of a server that one loop owns: listeners, connections, pools.
 *
 * Everything here is touched by the loop's thread alone, but for `shared`. For the
 * files of the server only; others see http/server.h.
 *
 *  F1  A connection is named by slot and generation. The generation is 0 from the
 *      moment it closes, so whoever comes late with that name finds nobody.
 *  F2  No connection is written or closed because a handler or a callback answers:
 *      it is `dirty` and gets its turn when they have returned, at the latest before
 *      the loop sleeps. So in a turn no other connection goes.
 *  F3  Deadlines are fields, not timers: one timer a front looks through all
 *      connections, not more often than each `tick`, and not at all while none has
 *      a deadline.
 *  F4  Numbers gather in `counts` and are made public once a turn of the loop.
 */
#ifndef HTTP_FRONT_H
#define HTTP_FRONT_H

#include "base/metrics.h"
#include "base/slab.h"
#include "http/conn.h"
#include "http/server.h"
#include "net/listen.h"
#include "net/tls.h"

#include <stdatomic.h>

enum {
	FRONT_READ = 64 * 1024, /* bytes a read brings at most */
	STATUS_FIRST = 2,       /* 2xx: an answer is not 1xx */
	STATUS_CLASSES = 4      /* 2xx to 5xx */
};

/* What all fronts of a server share; fixed once open, but for the number. */
struct front_shared {
	struct server_conf conf; /* defaults filled in */
	struct route_table routes;
	struct metrics metrics; /* rows of enum server_metric */
	struct metrics answers; /* a series per route and class of status: the sum of all */
	struct buf busy;        /* the answer of S5, written before it is needed */
	unsigned files;         /* that the process may have, all connections among them */
	_Atomic unsigned connections;
	_Atomic unsigned cut; /* connections that a stop closed with calls unanswered */
	_Atomic unsigned max_connections;
	_Atomic bool held;         /* S10 */
	_Atomic size_t max_bodies; /* of one thread */
	struct tls_slot tls;       /* for new connections */
};

struct front_listener {
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} uv;
	struct front *front;
	struct list node;
	unsigned index; /* of the address */
	unsigned flags;
	bool tls;
	bool owed; /* a connection waits to be accepted: there was no memory for it */
};

struct front {
	struct front_shared *shared;
	struct loop *loop;
	unsigned number;      /* of the server's fronts, from 0 */
	uv_prepare_t prepare; /* F2, F4 */
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
	struct slab slab;         /* of struct conn */
	uint32_t last_generation; /* given out */
	struct call *spare;
	unsigned n_spare;
	size_t spare_bytes; /* in buffers of spare calls */
	unsigned n_calls;   /* not spare; also those whose connection is gone */
	bool draining;
	bool hands_over; /* takes no connections; every answer is the last of its connection */
	bool ended;
	bool owed; /* of some listener */
	slu_time tick;
	slu_time swept; /* when deadlines were last looked at */

	struct http_date date;
	slu_time date_read;
	uint64_t counts[SERVER_METRICS]; /* since they were made public; gauges too */
	struct metrics answers;          /* as the shared ones, by this thread alone */
	size_t bodies;                   /* S8: of bodies and answers */
	char read[FRONT_READ];           /* every read goes here first */
};

int front_open(struct front **out, struct front_shared *shared, unsigned number,
	       struct slu_err *err);
void front_free(struct front *f); /* after its loop has been closed; NULL is fine */

/* Take the listener's next socket and listen on it. Before the loop starts. */
int front_listen(struct front *f, int fd, const struct listener *from, unsigned index,
		 unsigned flags, struct slu_err *err);
void front_close_listeners(struct front *f);
void front_take_owed(struct front *f);

/* As server_release and server_hand_over say. Any thread; once. */
void front_release(struct front *f);
void front_hand_over(struct front *f);

/* End as server_stop says. Any thread; once. */
void front_drain(struct front *f, slu_time grace);

/* F1: or NULL. */
struct conn *front_conn(const struct front *f, uint32_t slot, uint32_t generation);

/* For conn.c: its last act, and that a deadline of c may be earlier than all. */
void front_forget(struct front *f, struct conn *c);
void front_watch(struct front *f, slu_time deadline);
void front_dirty(struct front *f, struct conn *c);

/* When nothing is left of a front that drains, it ends. */
void front_check_end(struct front *f);

const char *front_date(struct front *f);

/* server.c: rows and series of `answers`; and the series of a route (n_routes: none of
 * them) and status. */
int front_answers_init(const struct front_shared *s, struct metrics *m);

static inline unsigned
front_series(const struct front_shared *s, const struct route *route, unsigned status)
{
	const unsigned row = route ? (unsigned)(route - s->conf.routes) : s->conf.n_routes;

	return row * STATUS_CLASSES + (status / 100 - STATUS_FIRST) % STATUS_CLASSES;
}

static inline void
front_count(struct front *f, enum server_metric row, uint64_t n)
{
	f->counts[row] += n;
}

/* --- call.c ------------------------------------------------------------------ */

enum call_state {
	CALL_READING, /* its body */
	CALL_RUNNING, /* the handler's; also when its connection is gone */
	CALL_READY    /* answered */
};

/* From the pool, or NULL: no memory. Then back to it, after `ended`. */
struct call *call_new(struct front *f);
void call_end(struct call *c, bool sent);
void call_free_spare(struct front *f);

/* Write the head of the answer; c->out has the body. */
void call_format(struct call *c, const char *date);

/* Count the memory of an answer, or of the piece under way, until the call ends: S8. */
void call_charge(struct call *c);

/* C7: a piece of it; then the next one is wanted. */
void call_format_piece(struct call *c);
void call_want_more(struct call *c);

/* Bytes of the answer that the kernel has not. */
size_t call_unsent(const struct call *c);

#endif
