/*
 * bench_raw.h - compares the server with the minimal server (bare_server.h), in turns.
 */
#ifndef BENCH_BENCH_RAW_H
#define BENCH_BENCH_RAW_H

#include "bench/bare_file.h"
#include "bench/bench.h"
#include "bench/scenario.h"

/* Fills b->rows in b->rounds rounds. conf: connections, size, and duration of a part of a round. file: a
 * file on the disk of the server. */
int bench_raw(struct bench *b, const struct served *s, const struct scenario_conf *conf,
	      struct bare_file *file, struct slu_err *err);

#endif
