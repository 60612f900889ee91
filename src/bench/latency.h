/*
 * latency.h - one message at a time: the time until it is durable, and the time after that until a
 * waiting consumer has it.
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
