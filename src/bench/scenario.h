/*
 * scenario.h - the kinds of load, and their figures.
 *
 *      enqueue   enqueues batches for some time
 *      dequeue   takes batches from a queue that was filled before
 *      cycle     enqueues, takes and acks a batch, again and again
 *      latency   one message at a time, with a waiting consumer
 *      subscribe   messages delivered over open streams, and acked
 *      watch     one message at a time, reported by a watch
 *      lock      acquires and releases a lease
 *      healthz   the simplest answer, to compare with
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
	SCENARIO_QUEUE = 47 /* bytes of a queue name, at most */
};

struct scenario_conf {
	unsigned connections;
	unsigned batch;    /* messages in a request */
	unsigned size;     /* bytes of a payload */
	slu_time duration; /* enqueue, cycle, healthz */
	uint64_t messages; /* dequeue, backlog: how many; latency: how many at most */
	const char *token; /* token; NULL = none */
	const char *queue; /* enqueue, cycle: the queue; NULL = a new one */
	bool fresh;        /* a new connection for every request */

	/* enqueue, dequeue, cycle: so many names, in turn; 0 = none */
	unsigned shares;
	unsigned keys;
	unsigned hosts; /* values of the attribute "host" */
};

struct figures {
	uint64_t messages;
	slu_time elapsed;
	slu_time cpu;      /* CPU time of the server; -1 = unknown */
	struct hist took;  /* duration of a request; cycle: of each of its three */
	struct hist after; /* latency, subscribe: from the answer of the enqueue to the delivery */
	struct hist seen;  /* watch: from the answer of the enqueue to the event */
};

struct scenario {
	const char *name;
	const char *summary;
	int (*run)(const struct served *s, const struct scenario_conf *c, struct figures *f,
		   struct slu_err *err);
};

/* All scenarios; a name of NULL ends the table. */
extern const struct scenario scenarios[];
const struct scenario *scenario_find(const char *name); /* or NULL */

/* Put n messages, or a few more, into a queue; take about n from it. */
int scenario_fill(const struct served *v, const struct scenario_conf *c, const char *queue,
		  uint64_t n, struct slu_err *err);
int scenario_take(const struct served *v, const struct scenario_conf *c, const char *queue,
		  uint64_t n, struct figures *f, struct slu_err *err);

/* Writes the request that enqueues one message of that size: a bare server gets it too. */
void scenario_request(struct buf *out, unsigned size);

/* Runs a load for c->duration. Sets all figures but messages. */
int scenario_measure(const struct served *v, const struct scenario_conf *c, struct load *l,
		     struct figures *f, struct slu_err *err);

/* Write the field of a token (NULL = nothing); check the status of an answer. */
void scenario_token(struct buf *out, const char *token);
int scenario_check(const struct load *l, struct load_conn *c, struct slu_err *err);

double figures_rate(const struct figures *f);     /* messages per second */
double figures_cpu_each(const struct figures *f); /* CPU time of the server per message in ns, or -1 */

#endif
