/*
 * nodekit.h - a whole server in one thread: real HTTP, API, broker and engine, on a clock
 * that stands still and a simulated disk.
 *
 *         nodekit_init(&k, NODEKIT_LOG);
 *         nodekit_start(&k);
 *         caller_open(&w, &k);
 *         caller_send(&w, SLICE("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"));
 *         nodekit_settle(&k);                 all that can happen has happened
 *         use(buf_slice(&w.got));
 *         caller_close(&w);
 *         nodekit_stop(&k);
 *         nodekit_release(&k);
 *
 * Sockets are real; nothing else waits for the kernel. The same bytes at the same moments
 * get the same answers, bit for bit, but for the Date field.
 */
#ifndef TESTS_NODEKIT_H
#define TESTS_NODEKIT_H

#include "base/bytes.h"
#include "conf/reload.h"
#include "engine/engine.h"
#include "fakeclock.h"
#include "simdisk.h"

enum nodekit_engine {
	NODEKIT_MEMORY,
	NODEKIT_LOG /* on disk */
};

enum {
	NODEKIT_CALLERS = 16,
	NODEKIT_GOT = 64 << 20
};

/* What a client has sent and got on one connection. */
struct kit_caller {
	struct nodekit *kit;
	int fd;         /* -1: closed */
	bool ended;     /* the server has closed it */
	struct buf got; /* all of it */
};

struct nodekit {
	enum nodekit_engine kind;
	struct engine_ops engine;
	struct fakeclock clock;
	struct simdisk *disk;
	uint64_t random; /* what getrandom gives */
	struct conf conf;
	struct slu_log *log;
	struct reload *reload;
	struct node *node; /* NULL: not started */
	struct slu_err err;
	char folder[64]; /* of the socket */
	char path[96];
	struct kit_caller *callers[NODEKIT_CALLERS]; /* that are open */

	/* Set after init: dialects instead of those of the server; NULL: the server's. */
	const struct dialect *const *dialects;

	/* Set after init: the protocol of its address; NULL: HTTP. */
	const struct protocol *protocol;

	/* Receives every line of the log; may be NULL. Set after init. */
	void (*logged)(const char *line, size_t n);
};

/* At most one kit at a time. The process ends if the kit gets no memory. */
void nodekit_init(struct nodekit *k, enum nodekit_engine kind);
void nodekit_release(struct nodekit *k);

/* Open it on what is there: 0, or what node_open says; k->err has the sentence. */
int nodekit_start(struct nodekit *k);

/* A clean stop; its clients have gone before. 0, or a shard had failed or could not be
 * closed. */
int nodekit_stop(struct nodekit *k);

/* Nobody is connected and nothing runs: put another broker, with nothing in it, into its
 * place. For NODEKIT_MEMORY. 0, or as nodekit_stop. */
int nodekit_empty(struct nodekit *k);

/* Until nothing happens any more: network, shards, and the clients' reading. */
void nodekit_settle(struct nodekit *k);

/* Let time pass; settles. */
void nodekit_pass(struct nodekit *k, slu_time by);

struct engine *nodekit_engine(struct nodekit *k);
struct ledger *nodekit_ledger(struct nodekit *k);
struct locks *nodekit_locks(struct nodekit *k);

void caller_open(struct kit_caller *w, struct nodekit *k);
void caller_send(struct kit_caller *w, struct slice bytes); /* settles when the server is slow */
void caller_end(struct kit_caller *w);                      /* closes its sending side */
void caller_close(struct kit_caller *w);                    /* hangs up; got is kept */
void caller_release(struct kit_caller *w);

#endif
