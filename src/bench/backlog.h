/*
 * backlog.h - a server with very many messages beside one with few, in turns: what a
 * message costs in memory, whether a long queue is slower, how long a start takes.
 */
#ifndef BENCH_BACKLOG_H
#define BENCH_BACKLOG_H

#include "bench/bench.h"
#include "bench/scenario.h"

enum {
	BACKLOG_FEW = 10000 /* what the other server holds */
};

/* Fills b->rows; b->rounds is how often each side is measured. conf->messages is how
 * many the long queue has, more than rounds of BACKLOG_FEW. full is one of our own and
 * is killed and started again; few stands beside it. */
int bench_backlog(struct bench *b, struct served *full, const struct served *few,
		  const struct scenario_conf *conf, struct slu_err *err);

#endif
