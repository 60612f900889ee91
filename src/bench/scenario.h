/*
 * scenario.h - what a load does to a server, and the figures that come of it.
 *
 *      enqueue   batches in, for some time
 *      dequeue   batches out of a queue that was filled before
 *      cycle     a batch in, a batch out, the batch acked: again and again
 *      latency   one message at a time, with a consumer that waits for it
 *      subscribe   messages in, delivered over streams that stay open, and acked
 *      watch     one message at a time, and a watch that tells of it
 *      lock      a lease acquired, and released
 *      healthz   the plainest answer there is, to compare with
 *
 * Messages go to the namespace `bench`, into a queue of this run.
 */
#ifndef BENCH_SCENARIO_H
#define BENCH_SCENARIO_H

#include "base/bytes.h"
#include "bench/hist.h"
#include "bench/served.h"

struct load;
struct load_conn;

enum {
	SCENARIO_QUEUE = 47 /* bytes of a queue's name */
};

struct scenario_conf {
	unsigned connections;
	unsigned batch;    /* messages a request */
	unsigned size;     /* bytes of a payload */
	slu_time duration; /* enqueue, cycle, healthz */
	uint64_t messages; /* dequeue, backlog: how many; latency: how many at most */
	const char *token; /* to show, or NULL */
	const char *queue; /* enqueue, cycle: which; NULL: one of this run */
	bool fresh;        /* a new connection for every request */
};

struct figures {
	uint64_t messages;
	slu_time elapsed;
	slu_time cpu;      /* of the server; -1: unknown */
	struct hist took;  /* a request; cycle: any of its three */
	struct hist after; /* latency, subscribe: delivered so long after the enqueue was durable */
	struct hist seen;  /* watch: told so long after that */
};

struct scenario {
	const char *name;
	const char *summary;
	int (*run)(const struct served *s, const struct scenario_conf *c, struct figures *f,
		   struct slu_err *err);
};

/* All of them; a name of NULL ends. */
extern const struct scenario scenarios[];
const struct scenario *scenario_find(const char *name); /* or NULL */

/* n messages, or a few more, into a queue of that name; and about n out of it. */
int scenario_fill(const struct served *s, const struct scenario_conf *c, const char *queue,
		  uint64_t n, struct slu_err *err);
int scenario_take(const struct served *s, const struct scenario_conf *c, const char *queue,
		  uint64_t n, struct figures *f, struct slu_err *err);

/* An enqueue of one message of that size as it is sent: what a bare server is sent too. */
void scenario_request(struct buf *out, unsigned size);

/* Run a load for the time of c: all figures but messages. */
int scenario_measure(const struct served *s, const struct scenario_conf *c, struct load *l,
		     struct figures *f, struct slu_err *err);

/* The header field, or nothing; and is the status of an answer one of success? */
void scenario_token(struct buf *out, const char *token);
int scenario_check(const struct load *l, struct load_conn *c, struct slu_err *err);

double figures_rate(const struct figures *f);     /* messages a second */
double figures_cpu_each(const struct figures *f); /* ns of the server a message, or -1 */

#endif
