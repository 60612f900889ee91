/*
 * latency.h - one message at a time: how long until it is durable, and how long after
 * that a consumer who waits has it.
 *
 *      producer   ──enqueue──────────> answered         ...          next
 *                 |<---- took ------->|<- after ->|                   ^
 *      consumer   waits ................................ has it, acks ┘
 */
#ifndef BENCH_LATENCY_H
#define BENCH_LATENCY_H

#include "bench/scenario.h"

int latency_run(const struct served *s, const struct scenario_conf *c, struct figures *f,
		struct slu_err *err);

#endif
