/*
 * lockd.h - load for the API of streams and locks.
 *
 *      producer  ──enqueue──>  sluiced  ──delivery──>  stream of a consumer
 *                                 ^                          │
 *                                 └────────── ack ───────────┘  its other connection
 *
 * subscribe: as many producers as consumers; a message is one request; a consumer has a stream and a
 * connection for acks. It ends when all accepted messages are acked. With one producer and one
 * consumer, a message is sent after the previous one was acked.
 *
 * watch: one message at a time; measures the time until a watch reports it.
 *
 * lock: every connection acquires and releases its own key.
 */
#ifndef BENCH_LOCKD_H
#define BENCH_LOCKD_H

#include "bench/scenario.h"

int stream_run(const struct served *v, const struct scenario_conf *c, struct figures *f,
	       struct slu_err *err);
int watch_run(const struct served *v, const struct scenario_conf *c, struct figures *f,
	      struct slu_err *err);
int lock_run(const struct served *v, const struct scenario_conf *c, struct figures *f,
	     struct slu_err *err);

#endif
