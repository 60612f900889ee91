/*
 * peernet_private.h - what the parts of peernet share; for peernet*.c alone.
 */
#ifndef PEER_PEERNET_PRIVATE_H
#define PEER_PEERNET_PRIVATE_H

#include "base/log.h"
#include "base/mem.h"
#include "net/tls.h"
#include "peer/helper.h"
#include "peer/link.h"
#include "peer/peernet.h"

#include <pthread.h>
#include <sys/socket.h>

enum {
	PEERNET_LINKS = 128,   /* callees, and guests */
	PEERNET_READERS = 2,   /* threads that read records */
	PEERNET_LOOKUPS = 2,   /* threads that look up hosts */
	PEERNET_PAGE = 4 << 20 /* bytes of records in the page of a list: peer/op_page.h */
};

/* A socket and its link. */
struct peersock {
	int fd; /* -1: closed */
	bool connecting;
	struct tls *tls;       /* NULL: bytes travel as they are */
	struct tls_room *room; /* of the peernet; NULL: no TLS */
	struct peer_link link;
	struct buf out; /* bytes of link_give */
	size_t written; /* how many of them TLS or the kernel has */
};

/* A node that owns shards. The peernet thread's. */
struct peer_callee {
	struct list node;
	struct peernet *net;
	struct peersock sock;
	uint8_t life[HELLO_LIFE];
	struct peer_lookup *lookup; /* of its host; NULL: none runs */
};

/* The host of a callee: PEERNET-7. */
struct peer_lookup {
	struct helper_job job;
	struct list node; /* in net->found */
	struct peernet *net;
	struct peer_callee *callee; /* the peernet thread's; NULL: the callee is gone */
	char host[TARGET_HOST];
	unsigned port;
	int rc; /* of getaddrinfo */
	struct sockaddr_storage address;
	socklen_t size; /* of address */
};

/* A node that sends ops here. The peernet thread's. */
struct peer_guest {
	struct list node;
	struct peernet *net;
	struct peersock sock;
	struct list running; /* struct peer_served: in the broker */
	struct list leaving; /* struct peer_served: their answers are being sent */
};

/* An op of this node that the owner of a shard gets. */
struct peer_call {
	struct link_op at;
	struct list node;   /* in net->asks */
	struct list cancel; /* in net->cancels */
	struct op *op;
	struct buf message;
	uint32_t lane;
};

/* An op of another node. */
struct peer_served {
	struct link_op at;
	struct list node;         /* in running or leaving */
	struct list done;         /* in net->done */
	struct peer_guest *guest; /* NULL: its link is gone */
	struct peernet *net;
	struct op op;
	struct peer_bytes *message; /* the question */
	bool routed;                /* op.route.lane is its lane */
	struct buf answer;
	struct helper_job read; /* PEERNET-7 */
	bool encoded;           /* a helper has made the answer */
};

struct peernet {
	/* Fixed. */
	struct slu_log *log;
	const uint8_t *secret;
	uint8_t life[HELLO_LIFE];
	struct broker *broker;
	struct broker_remote remote;
	pthread_t thread;
	bool started;
	int wake;     /* eventfd */
	int listener; /* -1: closed; the thread's while it runs */
	unsigned port;
	struct tls_slot *tls; /* NULL: no TLS */

	/* Shared, under mtx. */
	pthread_mutex_t mtx;
	struct list asks;
	struct list cancels;
	struct list done;
	struct list found; /* struct peer_lookup */
	bool waits_end;    /* all waits of calls end */
	bool stopping;     /* PEERNET-5 */
	uint32_t lanes;
	struct peer_target *targets; /* by lane */

	/* PEERNET-7 */
	struct helper reader;
	struct helper resolver;

	/* The thread's. */
	struct tls_room *tls_room; /* NULL: no TLS */
	struct list callees;
	struct list guests;
	unsigned n_guests;
	uint32_t serving; /* served ops in the broker, or with a helper */
};

slu_time peernet_now(void);
void peernet_wake(const struct peernet *p);

/* ---- peersock.c ---- */

/* Begins a link over fd. Returns SLU_EDOWN without random bytes or a certificate, SLU_ENOMEM. */
int peersock_open(struct peersock *s, struct peernet *p, int fd, enum hello_role role,
		  const struct link_events *events, const uint8_t *other);

/* The socket is connected, or cannot be. */
void peersock_connected(struct peersock *s);

/* Returns whether bytes wait for room in the kernel. */
bool peersock_has_bytes(const struct peersock *s);

/* Writes what the link has to send. The link may be broken after it. */
void peersock_write(struct peersock *s);

/* Reads what has come. The link may be broken after it. */
void peersock_read(struct peersock *s);

/* Closes a socket that has no link; -1 is fine. */
void peersock_shut(int fd);

/* Closes the socket, and frees the link, which has no ops. */
void peersock_close(struct peersock *s);

/* ---- peernet_dial.c ---- */

/* Connects; at once if the host is numeric. If that fails, the link is lost. */
void peernet_dial(struct peer_callee *c, const struct peer_target *t);

/* Connects the callees whose hosts were found. */
void peernet_connect_found(struct peernet *p);

/* ---- peernet_call.c: ops that leave ---- */

void peernet_call_init(struct peernet *p);

/* Takes new calls and cancels to the links. */
void peernet_calls_take(struct peernet *p);

/* The links that broke, and those that are not needed any more. */
void peernet_callees_tidy(struct peernet *p);

/* All calls come back. */
void peernet_calls_end(struct peernet *p);

/* ---- peernet_serve.c: ops that come ---- */

/* A connection was accepted: takes fd, and closes it if memory is out. */
void peernet_add_guest(struct peernet *p, int fd);

/* Between two polls: takes ops to links and answers to guests, and ends links. */
void peernet_step(struct peernet *p);

/* Answers the served ops that the broker has answered. */
void peernet_answer(struct peernet *p);

/* Ends the guests whose links broke; all: every guest. */
void peernet_guests_tidy(struct peernet *p, bool all);

#endif
