/*
 * bench_load.h - one run of `sluice bench`: measures the library, or a server under load, and prints
 * the figures with the machine. bench.c has the command.
 */
#ifndef CLI_SERVER_BENCH_LOAD_H
#define CLI_SERVER_BENCH_LOAD_H

#include "bench/bare_file.h"
#include "bench/scenario.h"
#include "cli/lib/session.h"

enum {
	BENCHES_MAX = 32
};

struct bench_run {
	struct session s;
	const char *name; /* the name of the bench */
	struct scenario_conf load;
	struct served_conf served;
	uint64_t connections, batch, size, rounds;
	uint64_t shares, keys, hosts; /* names of messages */
	uint64_t jobs, items;         /* sizes of exec and pqueue */
	const char *token_file;
	bool strict; /* a missed aim is a failure */

	char *token;
	struct served server;
	char hardware[256];
	struct bare_file file; /* the file that measures the server's disk */
	slu_time fsync;        /* median time of fdatasync; -1 = not measured */
	struct figures figures;
};

/* Runs the bench and prints its figures. */
int bench_run(struct bench_run *r, struct slu_err *err);

/* Prints a line for each bench, for the help. */
void bench_list(FILE *out);

/* The names of all benches; returns how many there are. */
size_t bench_names(const char *out[static BENCHES_MAX]);

/* Does the bench compare rows with aims? The others are scenarios. */
bool bench_is_aimed(const char *name);

#endif
