#include "cli/server/bench_load.h"

#include "bench/backlog.h"
#include "bench/bench_raw.h"
#include "cli/lib/credentials.h"
#include "cli/lib/table.h"
#include "cli/lib/ticker.h"

#include "base/json/json_out.h"
#include "base/mem.h"

#include <inttypes.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#define FSYNC_TIME (300 * SLU_MS)

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
read_hardware(struct bench_run *r)
{
	struct sysinfo info = { 0 };
	struct utsname os;
	char model[128];

	read_model(model, sizeof model);
	(void)sysinfo(&info); /* on an error 0 is shown */
	if (uname(&os) != 0)
		memset(&os, 0, sizeof os);
	(void)snprintf(r->hardware, sizeof r->hardware, "%s, %ld cores, %.1f GiB, %.16s %.48s",
		       model, sysconf(_SC_NPROCESSORS_ONLN),
		       (double)info.totalram * info.mem_unit / (1 << 30), os.sysname, os.release);
}

/* Measures the disk of a server that was started here. */
static int
measure_fsync(struct bench_run *r, struct slu_err *err)
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
print_head(const struct bench_run *r)
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
print_times(struct text_table *t, const char *name, const struct hist *h)
{
	static const double parts[] = { 0.5, 0.99, 0.999 };

	table_cell(t, "%s", name);
	for (size_t i = 0; i < 3; i++)
		table_cell(t, "%.1f", us(hist_percentile(h, parts[i])));
}

static int
print_table(const struct bench_run *r)
{
	static const char *const heads[] = { "", "P50 us", "P99 us", "P999 us" };
	const struct figures *f = &r->figures;
	const double cpu = figures_cpu_each(f);
	struct text_table t;
	int rc;

	print_head(r);
	printf("%.0f messages/s (%" PRIu64 " in %.2f s)", figures_rate(f), f->messages,
	       (double)f->elapsed / 1e9);
	if (cpu >= 0)
		printf(", server CPU %.2f us per message", cpu / 1e3);
	puts("\n");
	table_init(&t, heads, 4, 0xe);
	print_times(&t, "a request", &f->took);
	if (f->after.n > 0)
		print_times(&t, "delivered after the enqueue", &f->after);
	if (f->seen.n > 0)
		print_times(&t, "seen by a watch after the enqueue", &f->seen);
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
out_head(struct json_out *w, const struct bench_run *r)
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
print_json(const struct bench_run *r)
{
	const struct figures *f = &r->figures;
	const double cpu = figures_cpu_each(f);
	struct json_out w;
	struct buf b;
	int rc;

	buf_init(&b, 8192);
	json_out_open(&w, &b);
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
	json_out_finish(&w);
	rc = b.failed ? SLU_ENOMEM : 0;
	puts(buf_str(&b));
	buf_release(&b);
	return rc;
}

/* --- run ------------------------------------------------------------------------ */

static int
run_scenario(struct bench_run *r, struct slu_err *err)
{
	const bool counts = strcmp(r->name, "dequeue") == 0 || strcmp(r->name, "latency") == 0;
	struct ticker ticker;
	int rc;

	ticker_start(&ticker, r->name, counts ? 0 : r->load.duration);
	rc = scenario_find(r->name)->run(&r->server, &r->load, &r->figures, err);
	ticker_stop(&ticker);
	if (rc)
		return rc;
	rc = r->s.json ? print_json(r) : print_table(r);
	return rc ? slu_fail(err, rc, "no memory") : 0;
}

/* Benches that compare rows with aims; the others are scenarios. */
static int
raw(struct bench_run *r, struct bench *b, struct slu_err *err)
{
	return bench_raw(b, &r->server, &r->load, &r->file, err);
}

static int
backlog(struct bench_run *r, struct bench *b, struct slu_err *err)
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
	int (*run)(struct bench_run *r, struct bench *b, struct slu_err *err);
	int (*local)(struct bench *b); /* instead of run: measures the library, without a server */
} aimed[] = {
	{ "exec",    "the executor, compared with a bare ring",                      NULL,    bench_exec },
	{ "pqueue",  "the priority queue and its worker, compared with a bare heap", NULL,    bench_pqueue },
	{ "raw",     "enqueue and /healthz, compared with a minimal server",         raw,     NULL },
	{ "backlog", "a long queue: memory, rate and restart",                       backlog, NULL },
};
/* clang-format on */

static const struct aimed *
aimed_find(const char *name)
{
	for (size_t i = 0; i < COUNT(aimed); i++)
		if (strcmp(aimed[i].name, name) == 0)
			return &aimed[i];
	return NULL;
}

static int
run_aimed(struct bench_run *r, const struct aimed *which, struct slu_err *err)
{
	struct bench b = { .rounds = (uint32_t)r->rounds, .jobs = r->jobs, .items = r->items };
	struct ticker ticker;
	int rc;

	ticker_start(&ticker, r->name, 0);
	rc = which->local ? which->local(&b) : which->run(r, &b, err);
	ticker_stop(&ticker);
	if (rc && which->local)
		return slu_fail(err, rc, "%s", slu_err_row(rc)->text);
	if (rc)
		return rc;
	if (r->s.json) {
		bench_json(&b, stdout);
	} else {
		if (!which->local)
			print_head(r);
		bench_table(&b, stdout);
	}
	for (unsigned i = 0; i < b.n_rows; i++)
		if (r->strict && !b.rows[i].reached)
			r->s.exit = CLI_FAILED;
	return 0;
}

static int
run_served(struct bench_run *r, struct slu_err *err)
{
	const struct aimed *const which = aimed_find(r->name);
	int rc;

	read_hardware(r);
	rc = credentials_token(r->token_file, &r->token, err);
	r->served.token = r->load.token = r->token;
	if (!rc)
		rc = served_open(&r->server, &r->served, err);
	if (!rc)
		rc = measure_fsync(r, err);
	if (!rc)
		rc = which ? run_aimed(r, which, err) : run_scenario(r, err);
	served_close(&r->server);
	bare_file_close(&r->file);
	mem_free(r->token);
	return rc;
}

int
bench_run(struct bench_run *r, struct slu_err *err)
{
	const struct aimed *const which = aimed_find(r->name);

	return which && which->local ? run_aimed(r, which, err) : run_served(r, err);
}

/* --- names ----------------------------------------------------------------------- */

void
bench_list(FILE *out)
{
	fputs("benches:\n", out);
	for (size_t i = 0; i < COUNT(aimed); i++)
		fprintf(out, "  %-11s%s\n", aimed[i].name, aimed[i].summary);
	for (const struct scenario *s = scenarios; s->name; s++)
		fprintf(out, "  %-11s%s\n", s->name, s->summary);
	fputs("\n", out);
}

size_t
bench_names(const char *out[static BENCHES_MAX])
{
	size_t n = 0;

	for (const struct scenario *s = scenarios; s->name && n < BENCHES_MAX; s++)
		out[n++] = s->name;
	for (size_t i = 0; i < COUNT(aimed) && n < BENCHES_MAX; i++)
		out[n++] = aimed[i].name;
	return n;
}

bool
bench_is_aimed(const char *name)
{
	return aimed_find(name);
}
