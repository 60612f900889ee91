/*
 * bench_load.h - the benches that need a server: `sluice bench cycle` and its like.
 */
#ifndef CLI_BENCH_LOAD_H
#define CLI_BENCH_LOAD_H

#include "cli/cli.h"

#include <stdbool.h>
#include <stdio.h>

bool bench_load_has(const char *name);
void bench_load_list(FILE *out); /* a line each, for the help */
size_t bench_load_names(const char **out, size_t max);

/* argv[0] is the name of the bench. */
cli_fn cli_bench_load;

#endif
