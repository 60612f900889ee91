/*
 * bench_load.c - `sluice bench cycle|enqueue|dequeue|latency|subscribe|lock|healthz|raw|
 * backlog`: a server under load, with the machine it runs on.
 */
#include "bench/backlog.h"
#include "bench/bare_file.h"
#include "bench/bench_raw.h"
#include "cli/args.h"
#include "cli/bench_load.h"
#include "cli/cli.h"
#include "cli/credentials.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/ticker.h"

#include "base/json_out.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#define FSYNC_TIME (300 * SLU_MS)

struct request {
	const char *name;
	struct scenario_conf load;
	struct served_conf served;
	uint64_t connections, batch, size, rounds;
	const char *token_file;
	bool json, strict, help;

	char *token;

	struct served server;
	char hardware[256];
	struct bare_file file; /* where the server writes */
	slu_time fsync;        /* p50 of it; -1: not measured */
	struct figures figures;
};

/* --- the machine ---------------------------------------------------------------- */

static void
read_model(char *out, size_t n)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	(void)snprintf(out, n, "unknown processor");
	while (f && fgets(line, sizeof line, f)) {
		const char *colon = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;

		if (colon) {
			(void)snprintf(out, n, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
			break;
		}
	}
	if (f)
		(void)fclose(f);
}

static void
read_hardware(struct request *r)
{
	struct sysinfo info = { 0 };
	struct utsname os;
	char model[128];

	read_model(model, sizeof model);
	(void)sysinfo(&info); /* 0 is shown when it does not tell */
	if (uname(&os) != 0)
		memset(&os, 0, sizeof os);
	(void)snprintf(r->hardware, sizeof r->hardware, "%s, %ld cores, %.1f GiB, %.16s %.48s",
		       model, sysconf(_SC_NPROCESSORS_ONLN),
		       (double)info.totalram * info.mem_unit / (1 << 30), os.sysname, os.release);
}

/* Where our own server writes; of another's disk nothing is known. */
static int
measure_fsync(struct request *r, struct slu_err *err)
{
	struct hist *h;
	int rc;

	if (!r->server.ours && strcmp(r->name, "raw") != 0)
		return 0;
	h = mem_zalloc(sizeof *h);
	rc = h ? bare_file_open(&r->file, r->served.dir, err)
	       : slu_fail(err, SLU_ENOMEM, "no memory");
	if (!rc)
		rc = bare_file_measure(&r->file, FSYNC_TIME, h, err);
	if (!rc)
		r->fsync = hist_percentile(h, 0.5);
	mem_free(h);
	return rc;
}

/* --- print ---------------------------------------------------------------------- */

static double
us(slu_time t)
{
	return (double)t / 1e3;
}

static void
print_head(const struct request *r)
{
	printf("%s\n", r->hardware);
	printf("sluiced %s, engine %s, durability %s", r->server.version, r->server.engine,
	       r->server.durability);
	if (r->fsync >= 0)
		printf(", fdatasync p50 %.1f us in %s", us(r->fsync), r->served.dir);
	printf("\n%s: %" PRIu64 " connections, batch %" PRIu64 ", %" PRIu64 " bytes\n\n", r->name,
	       r->connections, r->batch, r->size);
}

static void
print_times(struct table *t, const char *name, const struct hist *h)
{
	static const double parts[] = { 0.5, 0.99, 0.999 };

	table_cell(t, "%s", name);
	for (size_t i = 0; i < 3; i++)
		table_cell(t, "%.1f", us(hist_percentile(h, parts[i])));
}

static int
print_table(const struct request *r)
{
	static const char *const heads[] = { "", "P50 us", "P99 us", "P999 us" };
	const struct figures *f = &r->figures;
	const double cpu = figures_cpu_each(f);
	struct table t;
	int rc;

	print_head(r);
	printf("%.0f messages/s (%" PRIu64 " in %.2f s)", figures_rate(f), f->messages,
	       (double)f->elapsed / 1e9);
	if (cpu >= 0)
		printf(", server CPU %.2f us a message", cpu / 1e3);
	puts("\n");
	table_init(&t, heads, 4, 0xe);
	print_times(&t, "a request", &f->took);
	if (f->after.n > 0)
		print_times(&t, "delivered after it was durable", &f->after);
	if (f->seen.n > 0)
		print_times(&t, "told to a watch after it was durable", &f->seen);
	rc = table_print(&t, stdout, false);
	table_release(&t);
	return rc;
}

static void
out_number(struct json_out *w, const char *name, double v)
{
	char text[32];

	(void)snprintf(text, sizeof text, "%.6g", v);
	json_out_raw(w, name, slice_of(text));
}

static void
out_times(struct json_out *w, const char *name, const struct hist *h)
{
	json_out_object(w, name);
	out_number(w, "p50", us(hist_percentile(h, 0.5)));
	out_number(w, "p99", us(hist_percentile(h, 0.99)));
	out_number(w, "p999", us(hist_percentile(h, 0.999)));
	json_out_close(w);
}

static void
out_head(struct json_out *w, const struct request *r)
{
	json_out_str(w, "bench", slice_of(r->name));
	json_out_str(w, "hardware", slice_of(r->hardware));
	json_out_str(w, "version", slice_of(r->server.version));
	json_out_str(w, "engine", slice_of(r->server.engine));
	json_out_str(w, "durability", slice_of(r->server.durability));
	if (r->fsync >= 0)
		out_number(w, "fsync_p50_us", us(r->fsync));
	json_out_u64(w, "connections", r->connections);
	json_out_u64(w, "batch", r->batch);
	json_out_u64(w, "size", r->size);
}

static int
print_json(const struct request *r)
{
	const struct figures *f = &r->figures;
	const double cpu = figures_cpu_each(f);
	struct json_out w;
	struct buf b;
	int rc;

	buf_init(&b, 8192);
	json_out_init(&w, &b);
	json_out_object(&w, NULL);
	out_head(&w, r);
	json_out_u64(&w, "messages", f->messages);
	out_number(&w, "seconds", (double)f->elapsed / 1e9);
	out_number(&w, "messages_per_second", figures_rate(f));
	out_times(&w, "request_us", &f->took);
	if (f->after.n > 0)
		out_times(&w, "delivered_after_us", &f->after);
	if (f->seen.n > 0)
		out_times(&w, "watched_after_us", &f->seen);
	if (cpu >= 0)
		out_number(&w, "cpu_us_per_message", cpu / 1e3);
	json_out_close(&w);
	json_out_end(&w);
	rc = b.failed ? SLU_ENOMEM : 0;
	puts(buf_str(&b));
	buf_release(&b);
	return rc;
}

/* --- run ------------------------------------------------------------------------ */

static int
run_scenario(struct request *r, struct slu_err *err)
{
	const bool counts = strcmp(r->name, "dequeue") == 0 || strcmp(r->name, "latency") == 0;
	struct ticker ticker;
	int rc;

	ticker_start(&ticker, r->name, counts ? 0 : r->load.duration);
	rc = scenario_find(r->name)->run(&r->server, &r->load, &r->figures, err);
	ticker_stop(&ticker);
	if (rc)
		return rc;
	rc = r->json ? print_json(r) : print_table(r);
	return rc ? slu_fail(err, rc, "no memory") : 0;
}

/* Benches that have rows with aims, beside the scenarios. */
static int
raw(struct request *r, struct bench *b, struct slu_err *err)
{
	return bench_raw(b, &r->server, &r->load, &r->file, err);
}

static int
backlog(struct request *r, struct bench *b, struct slu_err *err)
{
	struct served few = { 0 };
	int rc = served_open(&few, &r->served, err);

	if (!rc)
		rc = bench_backlog(b, &r->server, &few, &r->load, err);
	served_close(&few);
	return rc;
}

/* clang-format off */
static const struct aimed {
	const char *name, *summary;
	int (*run)(struct request *r, struct bench *b, struct slu_err *err);
} aimed[] = {
	{ "raw",     "enqueue and /healthz beside the least that could do the same", raw },
	{ "backlog", "a long queue: its memory, its rate, and a restart",            backlog },
};
/* clang-format on */

static const struct aimed *
aimed_find(const char *name)
{
	for (size_t i = 0; i < sizeof aimed / sizeof aimed[0]; i++)
		if (strcmp(aimed[i].name, name) == 0)
			return &aimed[i];
	return NULL;
}

static int
run_aimed(struct request *r, int *missed, struct slu_err *err)
{
	struct bench b = { .rounds = (uint32_t)r->rounds };
	struct ticker ticker;
	int rc;

	ticker_start(&ticker, r->name, 0);
	rc = aimed_find(r->name)->run(r, &b, err);
	ticker_stop(&ticker);
	if (rc)
		return rc;
	if (r->json) {
		bench_json(&b, stdout);
	} else {
		print_head(r);
		bench_table(&b, stdout);
	}
	for (unsigned i = 0; i < b.n_rows; i++)
		*missed += r->strict && !b.rows[i].reached;
	return 0;
}

static int
run(struct request *r)
{
	struct slu_err err;
	int missed = 0;
	int rc;

	read_hardware(r);
	rc = credentials_token(r->token_file, &r->token, &err);
	r->served.token = r->load.token = r->token;
	if (!rc)
		rc = served_open(&r->server, &r->served, &err);
	if (!rc)
		rc = measure_fsync(r, &err);
	if (!rc)
		rc = aimed_find(r->name) ? run_aimed(r, &missed, &err) : run_scenario(r, &err);
	served_close(&r->server);
	bare_file_close(&r->file);
	mem_free(r->token);
	if (rc)
		(void)cli_report("bench", r->json, rc, CLI_FAILED, err.text);
	return rc || missed ? CLI_FAILED : CLI_OK;
}

/* --- the command ---------------------------------------------------------------- */

void
bench_load_list(FILE *out)
{
	for (const struct scenario *s = scenarios; s->name; s++)
		fprintf(out, "  %-11s%s\n", s->name, s->summary);
	for (size_t i = 0; i < sizeof aimed / sizeof aimed[0]; i++)
		fprintf(out, "  %-11s%s\n", aimed[i].name, aimed[i].summary);
}

size_t
bench_load_names(const char **out, size_t max)
{
	size_t n = 0;

	for (const struct scenario *s = scenarios; s->name && n < max; s++)
		out[n++] = s->name;
	for (size_t i = 0; i < sizeof aimed / sizeof aimed[0] && n < max; i++)
		out[n++] = aimed[i].name;
	return n;
}

bool
bench_load_has(const char *name)
{
	return aimed_find(name) || scenario_find(name);
}

static void
help(const struct request *r, const struct arg *rows, size_t n)
{
	printf("usage: sluice bench %s [options]\n\n", r->name);
	puts("Measures a server of its own on a folder that is gone afterwards, or with --server\n"
	     "one that runs: its messages are then left in the namespace `bench`.\n");
	args_help(rows, n, stdout);
	puts("\nexamples:\n"
	     "  sluice bench cycle --batch 100\n"
	     "  sluice bench enqueue --connections 64 --batch 1 --size 300\n"
	     "  sluice bench latency --sync interval=10ms\n"
	     "  sluice bench subscribe --connections 100 --size 1024\n"
	     "  sluice bench lock --connections 64\n"
	     "  sluice bench enqueue --fresh\n"
	     "  sluice bench cycle --server 127.0.0.1:7171 --pid $(pidof sluiced) --json\n"
	     "  sluice bench raw --dir /data\n"
	     "  sluice bench backlog --messages 10000000 --batch 100 --dir /data");
}

static const char *
misuse(const struct request *r, int words)
{
	if (words > 0)
		return "this takes options only";
	if (r->connections > 20000 || r->batch > 1000 || r->size > 1 << 20)
		return "at most 20000 connections, batches of 1000, 1048576 bytes";
	if (r->load.queue && strlen(r->load.queue) > SCENARIO_QUEUE)
		return "--queue: at most 47 bytes";
	if (r->rounds > BENCH_ROUNDS_MAX)
		return "at most 15 rounds";
	if (strcmp(r->name, "backlog") == 0 && r->served.server)
		return "backlog kills the server it measures: it starts its own";
	if (strcmp(r->name, "backlog") == 0 && r->load.messages <= r->rounds * BACKLOG_FEW)
		return "backlog needs more messages than 10000 a round";
	if (r->load.fresh && (aimed_find(r->name) || strcmp(r->name, "latency") == 0 ||
			      strcmp(r->name, "subscribe") == 0 ||
			      strcmp(r->name, "watch") == 0))
		return "--fresh is for enqueue, dequeue, cycle, lock and healthz";
	if (r->served.pid && !r->served.server)
		return "--pid goes with --server";
	if (r->served.server && (r->served.sync || r->served.engine))
		return "--sync and --engine are for a server that is started here";
	return NULL;
}

int
cli_bench_load(int argc, char **argv)
{
	struct request r = {
		.name = argv[0],
		.connections = 64,
		.batch = 1,
		.size = 300,
		.rounds = 5,
		.file.fd = -1,
		.fsync = -1,
		.load = { .duration = 5 * SLU_SEC, .messages = 200000 },
		.served.dir = "/var/tmp",
	};
	const struct arg rows[] = {
		{ "--connections", ARG_COUNT, &r.connections, "how many, each with one request on its way (64); latency, watch: 1" },
		{ "--batch", ARG_COUNT, &r.batch, "messages of a request, at most 1000 (1)" },
		{ "--size BYTES", ARG_COUNT, &r.size, "of a payload, at most 1048576 (300)" },
		{ "--queue NAME", ARG_TEXT, &r.load.queue, "enqueue, cycle: into which queue (a new one)" },
		{ "--fresh", ARG_FLAG, &r.load.fresh, "enqueue, dequeue, cycle, lock, healthz: a new connection for every request" },
		{ "--for", ARG_TIME, &r.load.duration, "how long to measure (5s); raw: each part of a round; not of dequeue and backlog" },
		{ "--messages", ARG_COUNT, &r.load.messages, "dequeue, backlog: how many (200000); latency: at most" },
		{ "--rounds", ARG_COUNT, &r.rounds, "raw, backlog: how often, 1 to 15 (5)" },
		{ "-s, --server ADDRESS", ARG_TEXT, &r.served.server, "measure a server that runs" },
		{ "--token-file FILE", ARG_TEXT, &r.token_file, "the token to show ($SLUICE_TOKEN_FILE, $SLUICE_TOKEN)" },
		{ "--pid", ARG_COUNT, &r.served.pid, "of that server, for its processor time" },
		{ "--dir DIR", ARG_TEXT, &r.served.dir, "where a server of our own writes (/var/tmp)" },
		{ "--sync sync|interval=TIME|none", ARG_TEXT, &r.served.sync, "of a server of our own (sync)" },
		{ "--engine log|memory|redis", ARG_TEXT, &r.served.engine, "of a server of our own (log)" },
		{ "--json", ARG_FLAG, &r.json, "print JSON" },
		{ "--strict", ARG_FLAG, &r.strict, "raw, backlog: exit 1 when an aim is missed" },
		{ "-h, --help", ARG_FLAG, &r.help, "this text" },
	};
	const size_t n = sizeof rows / sizeof rows[0];
	struct slu_err err;
	const char *wrong;
	bool json;

	argc--;
	argv++;
	json = args_have_json(argc, argv);
	if (args_parse(&argc, argv, rows, n, &err))
		return cli_report("bench", json, SLU_EINVAL, CLI_USAGE, err.text);
	if (r.help) {
		help(&r, rows, n);
		return CLI_OK;
	}
	if (strcmp(r.name, "latency") == 0 || strcmp(r.name, "watch") == 0)
		r.connections = r.batch = 1;
	wrong = misuse(&r, argc);
	if (wrong)
		return cli_report("bench", r.json, SLU_EINVAL, CLI_USAGE, wrong);
	r.load.connections = (unsigned)r.connections;
	r.load.batch = (unsigned)r.batch;
	r.load.size = (unsigned)r.size;
	return run(&r);
}
