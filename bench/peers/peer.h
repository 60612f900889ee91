/*
 * peer.h - the protocol of a peer: writes the operations of a queue as requests, and reads the
 * answers.
 *
 *      hello ──> put ... take ... ack ... ──> bye
 *
 * A protocol is a const table of functions, in a file of its own. Its functions append requests to
 * `out`, set `awaited` to the number of answers, and decrement it as answers come. They use no
 * sockets: load.c does, the same way for every peer.
 */
#ifndef PEERS_PEER_H
#define PEERS_PEER_H

#include "bench/sockets.h"

#include <sluice/err.h>

enum {
	PEER_LEASE_SECONDS = 600 /* longer than any run: no lease ends */
};

/* The work of all connections of a run. */
struct peer_work {
	const char *queue; /* letters, digits and _: every peer accepts such a name */
	unsigned batch;    /* messages of a put, and of a take at most */
	struct slice payload;
	bool durable; /* the queue survives the server; see the hello of each protocol */
};

struct peer_conn {
	struct socket socket; /* used by load.c */
	const struct peer_work *work;
	unsigned index;
	void *own; /* memory of the protocol, own_size bytes, zeroed */

	struct buf out;   /* requests that are not sent yet */
	unsigned awaited; /* answers that are still to come */
	unsigned taken;   /* messages of the current take */
	size_t need;      /* a hint: the answer is not complete before so many bytes */

	/* Handles of messages that are taken and not acked: a byte of length, then the handle. */
	struct buf held;
	size_t held_first;
	unsigned held_count;

	/* Used by load.c. */
	struct buf in;
	bool active;
	unsigned step;
	slu_time began;
};

/* Adds a handle of at most 255 bytes for a later ack. Counts a taken message. */
void held_add(struct peer_conn *c, struct slice handle);

/* Removes and returns the oldest handle; valid until the next held_add. */
struct slice held_pop(struct peer_conn *c);

/* A request that every connection, or only the first one, sends once. A zeroed row ends a list. */
struct step {
	void (*say)(struct peer_conn *c);
	bool first_only;
};

struct peer_protocol {
	const char *name;
	size_t own_size;
	bool acks_unanswered; /* the peer does not answer an ack: it is done when it is sent */

	/* Run in order; each step ends on all connections before the next begins. NULL = none. */
	const struct step *hello;   /* log in, create the queue, prepare statements */
	const struct step *consume; /* before cycles, for a peer that pushes deliveries */
	const struct step *bye;     /* remove the queue and its messages */

	void (*put)(struct peer_conn *c); /* work->batch messages */

	/* Leases up to work->batch messages. wait: if the queue is empty, wait for a message. */
	void (*take)(struct peer_conn *c, bool wait);
	void (*ack)(struct peer_conn *c, unsigned n); /* acks the n oldest held messages */

	/* Reads one answer, or an independent part of one, and removes it from `in`. Leaves `in` as it is if
	 * more bytes are needed. Returns SLU_EFAILED, with the peer's text, for a refusal. */
	int (*answer)(struct peer_conn *c, struct slice *in, struct slu_err *err);
};

extern const struct peer_protocol protocol_sluice, protocol_sluice_packed, protocol_sluice_beanstalk, protocol_beanstalkd,
	protocol_redis_list, protocol_redis_stream, protocol_nats, protocol_rabbitmq, protocol_postgresql;

/* Returns SLU_EFAILED with the text of `answer`. */
int peer_refused(const char *what, struct slice answer, struct slu_err *err);

/* Checks that a taken message has the size of the put one. */
int peer_check(const struct peer_conn *c, size_t payload_bytes, struct slu_err *err);

/* Removes the first line of `in`; *line is without CRLF. Returns false if it is not complete. */
bool peer_line(struct slice *in, struct slice *line);

/* The number that `s` begins with; 0 if `s` does not begin with a number. */
uint64_t peer_number(struct slice s);

void peer_put_number(struct buf *out, uint64_t n);

#endif
