/*
 * bench.c - `sluice bench`: which bench, how large, how printed.
 */
#include "bench/bench.h"
#include "cli/args.h"
#include "cli/bench_load.h"
#include "cli/cli.h"
#include "cli/report.h"
#include "cli/ticker.h"

#include <string.h>

struct bench_command {
	const char *name;
	int (*run)(struct bench *b);
	const char *summary;
};

/* clang-format off */
static const struct bench_command benches[] = {
	{ "exec",   bench_exec,   "the executor beside a bare ring" },
	{ "pqueue", bench_pqueue, "the priority queue and its worker beside a bare heap" },
};
/* clang-format on */

enum {
	N_BENCHES = sizeof benches / sizeof benches[0],
	BENCHES_MAX = 32
};

struct request {
	uint64_t rounds;
	uint64_t jobs;
	uint64_t items;
	bool json;
	bool strict;
	bool help;
};

static void
help(const struct arg *rows, size_t n)
{
	puts("usage: sluice bench BENCH [options]\n");
	for (int i = 0; i < N_BENCHES; i++)
		printf("  %-11s%s\n", benches[i].name, benches[i].summary);
	bench_load_list(stdout);
	puts("\nexec and pqueue measure the library, the others a server; those have options of their\n"
	     "own: see `sluice bench cycle --help`.\n\nOptions of exec and pqueue:");
	args_help(rows, n, stdout);
	puts("\nexamples:\n"
	     "  sluice bench exec\n"
	     "  sluice bench pqueue --items 1000000 --json\n"
	     "  sluice bench cycle --batch 100");
}

static const struct bench_command *
find(const char *name)
{
	for (int i = 0; i < N_BENCHES; i++)
		if (strcmp(benches[i].name, name) == 0)
			return &benches[i];
	return NULL;
}

static int
run(const struct bench_command *which, const struct request *r)
{
	struct bench b = {
		.rounds = (uint32_t)r->rounds,
		.jobs = r->jobs,
		.items = r->items,
	};
	struct ticker ticker;
	int rc;

	ticker_start(&ticker, which->name, 0);
	rc = which->run(&b);
	ticker_stop(&ticker);
	if (rc)
		return cli_report("bench", r->json, rc, CLI_FAILED, slu_err_row(rc)->text);
	if (r->json)
		bench_json(&b, stdout);
	else
		bench_table(&b, stdout);
	for (unsigned i = 0; i < b.n_rows; i++)
		if (r->strict && !b.rows[i].reached)
			return CLI_FAILED;
	return CLI_OK;
}

static size_t
list_names(const char *out[static BENCHES_MAX])
{
	size_t n = bench_load_names(out, BENCHES_MAX - N_BENCHES);

	for (int i = 0; i < N_BENCHES; i++)
		out[n++] = benches[i].name;
	return n;
}

/* The name of a bench, or an option of the one that is named. */
static int
complete(int argc, char **argv, const struct arg *rows, size_t n_rows)
{
	const char *names[BENCHES_MAX];
	const size_t n = argc == 2 ? list_names(names) : 0;
	struct slu_err err;

	for (size_t i = 0; i < n; i++)
		args_print_completion(names[i], argv[1], NULL);
	if (argc > 2 && bench_load_has(argv[1])) {
		char *const name = argv[1];

		argv[1] = argv[0];
		argv[0] = name;
		return cli_bench_load(argc, argv);
	}
	return args_parse(&argc, argv, rows, n_rows, &err);
}

static int
misuse(const struct request *r, const char *name)
{
	const char *names[BENCHES_MAX];
	const size_t n = list_names(names);
	const char *near;
	char text[160];

	near = name ? args_nearest(name, names, n) : NULL;
	if (name && !find(name))
		(void)snprintf(text, sizeof text, "no bench %.40s%s%s%s; see --help", name,
			       near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	else
		(void)snprintf(text, sizeof text, "name one bench first, as exec or cycle, and at most 15 "
						  "rounds; see --help");
	return cli_report("bench", r->json, SLU_EINVAL, CLI_USAGE, text);
}

int
cli_bench(int argc, char **argv)
{
	struct request r = { .rounds = 5, .jobs = 2000000, .items = 10000000 };
	const struct arg rows[] = {
		{ "--rounds", ARG_COUNT, &r.rounds, "times each side is measured, 1 to 15 (5)" },
		{ "--jobs", ARG_COUNT, &r.jobs, "jobs in a round (2000000)" },
		{ "--items", ARG_COUNT, &r.items, "pqueue: items queued meanwhile (10000000)" },
		{ "--json", ARG_FLAG, &r.json, "print JSON" },
		{ "--strict", ARG_FLAG, &r.strict, "exit 1 when an aim is not reached" },
		{ "-h, --help", ARG_FLAG, &r.help, "this text" },
	};
	const size_t n = sizeof rows / sizeof rows[0];
	struct slu_err err;
	bool json;

	argc--;
	argv++;
	if (argc > 1 && strcmp(argv[0], ARGS_COMPLETE) == 0)
		return complete(argc, argv, rows, n);
	if (argc > 0 && bench_load_has(argv[0]))
		return cli_bench_load(argc, argv);
	json = args_have_json(argc, argv);
	if (args_parse(&argc, argv, rows, n, &err))
		return cli_report("bench", json, SLU_EINVAL, CLI_USAGE, err.text);
	if (r.help) {
		help(rows, n);
		return CLI_OK;
	}
	if (argc != 1 || !find(argv[0]) || r.rounds > BENCH_ROUNDS_MAX)
		return misuse(&r, argc > 0 ? argv[0] : NULL);
	return run(find(argv[0]), &r);
}
