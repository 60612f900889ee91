/*
 * backlog.h - compares a server with very many messages to one with few, in turns: memory per message,
 * speed of a long queue, and time of a start.
 */
#ifndef BENCH_BACKLOG_H
#define BENCH_BACKLOG_H

#include "bench/bench.h"
#include "bench/scenario.h"

enum {
	BACKLOG_FEW = 10000 /* messages of the other server */
};

/* Fills b->rows. b->rounds: how often each side is measured. conf->messages: messages of the long queue,
 * more than rounds * BACKLOG_FEW. full: a started server, which is killed and started again. few: the
 * server to compare with. */
int bench_backlog(struct bench *b, struct served *full, const struct served *few,
		  const struct scenario_conf *conf, struct slu_err *err);

#endif
