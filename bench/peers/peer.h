/*
 * peer.h - a kind of server, as the load generator sees it: how the work of a queue is
 * asked for in its own protocol, and how its answers are read.
 *
 *      hello ──> put ... take ... ack ... ──> bye
 *
 * A protocol is a const table of functions, one file each. Its functions append requests to
 * `out`, say in `awaited` how many answers those will have, and count it down as answers
 * come. They never touch a socket: load.c does, the same way for every peer.
 */
#ifndef PEERS_PEER_H
#define PEERS_PEER_H

#include "base/bytes.h"

#include <sluice/err.h>

enum {
	PEER_LEASE_SECONDS = 600 /* longer than any run: no lease ends by itself */
};

/* What is to be done, the same for all connections of a run. */
struct work {
	const char *queue; /* letters, digits and _: a name that every peer takes */
	unsigned batch;    /* messages of a put, and at most of a take */
	struct slice payload;
	bool durable; /* the queue is to outlive the server: see each protocol's hello */
};

struct conn {
	const struct work *work;
	unsigned index;
	void *own; /* what the protocol keeps, own_size bytes, zeroed */

	struct buf out;   /* requests that are not sent yet */
	unsigned awaited; /* answers that are still to come */
	unsigned taken;   /* messages that the take under way has brought */
	size_t need;      /* a hint: the answer is not whole before so many bytes are there */

	/* Handles of what was taken and is not acked: a byte of length, then the handle. */
	struct buf held;
	size_t held_first;
	unsigned held_count;

	/* Of load.c. */
	struct buf in;
	size_t sent;
	int fd;
	bool blocked, active;
	unsigned step;
	slu_time began;
};

/* A handle, of at most 255 bytes, that an ack will need. Counts a message taken. */
void held_add(struct conn *c, struct slice handle);

/* The oldest one, which is let go; good until the next held_add. */
struct slice held_pop(struct conn *c);

/* What a connection, or only the first one, says once. A list ends with a zeroed row. */
struct step {
	void (*say)(struct conn *c);
	bool first_only;
};

struct protocol {
	const char *name;
	size_t own_size;
	bool acks_unanswered; /* an ack is done when it is sent: the peer has no answer */

	/* Run in order, each step on all connections before the next one begins. NULL: none. */
	const struct step *hello;   /* log in, make the queue, prepare */
	const struct step *consume; /* before cycles, for a peer that delivers by itself */
	const struct step *bye;     /* remove the queue and what is left in it */

	void (*put)(struct conn *c); /* work->batch messages */

	/* Lease up to work->batch messages. Nothing there: none are taken, unless `wait`. */
	void (*take)(struct conn *c, bool wait);
	void (*ack)(struct conn *c, unsigned n); /* the n oldest that are held */

	/* Read one answer, or a part of one that stands for itself, and move `in` beyond it;
	 * or leave `in` as it is: more bytes are needed. SLU_EFAILED: what the peer said. */
	int (*answer)(struct conn *c, struct slice *in, struct slu_err *err);
};

extern const struct protocol protocol_sluice, protocol_beanstalkd, protocol_redis_list,
	protocol_redis_stream, protocol_nats, protocol_rabbitmq, protocol_postgresql;

/* SLU_EFAILED with what stands in `answer`. */
int peer_refused(const char *what, struct slice answer, struct slu_err *err);

/* A taken message must be the one that was put. */
int peer_check(const struct conn *c, size_t payload_bytes, struct slu_err *err);

/* The line at the front of `in` without its CRLF, and `in` moved beyond; false: not whole. */
bool peer_line(struct slice *in, struct slice *line);

/* The number at the front of `s`; 0 when there is none. */
uint64_t peer_number(struct slice s);

void peer_put_number(struct buf *out, uint64_t n);

#endif
