/*
 * lockd.h - the API of streams and locks under load.
 *
 *      producer  ──enqueue──>  sluiced  ──delivery──>  stream of a consumer
 *                                 ^                          │
 *                                 └────────── ack ───────────┘  its other connection
 *
 * subscribe: as many producers as consumers, each request a call of its own; a consumer
 * has a stream and a connection for acks. It ends when all that was accepted is acked. With
 * one of each, a message is sent when the one before was acked.
 *
 * watch: one message at a time; how long until a watch tells of it.
 *
 * lock: every connection acquires a key of its own and releases it.
 */
#ifndef BENCH_LOCKD_H
#define BENCH_LOCKD_H

#include "bench/scenario.h"

int stream_run(const struct served *s, const struct scenario_conf *c, struct figures *f,
	       struct slu_err *err);
int watch_run(const struct served *s, const struct scenario_conf *c, struct figures *f,
	      struct slu_err *err);
int lock_run(const struct served *s, const struct scenario_conf *c, struct figures *f,
	     struct slu_err *err);

#endif
