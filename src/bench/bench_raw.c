/*
 * bench_raw.c - the rows of `sluice bench raw`, medians of the rounds:
 *
 *      ours                                     bare
 *      enqueue, one message in a request        the same bytes made durable by a bare server
 *      enqueue                                  /healthz of the same server
 *      /healthz                                 the plain answer of a bare server
 *      CPU time of an enqueue                   of /healthz
 *      enqueue on one connection, p50           of the bare server, p50
 */
#include "bench/bench_raw.h"

#include "base/mem.h"
#include "bench/bare_server.h"
#include "bench/load.h"
#include "engine/message.h"
#include "wal/record.h"

#include <string.h>

#define HEAD                                                         \
	"HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n" \
	"Content-Type: application/json\r\n"

static const char plain_answer[] = HEAD "Content-Length: 16\r\n\r\n{\"status\":\"ok\"}\n";
static const char durable_answer[] = HEAD "Content-Length: 21\r\n\r\n[318497266802130945]\n";
static const char plain_request[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

/* The measured values of a round. */
enum part {
	PLAIN,       /* answers per second of the bare server */
	HEALTHZ,     /* of ours */
	HEALTHZ_CPU, /* CPU time per answer in ns */
	DURABLE,     /* records per second of the bare server */
	ENQUEUE,     /* of ours */
	ENQUEUE_CPU, /* CPU time per message in ns */
	DURABLE_ONE, /* us, p50, one at a time */
	ENQUEUE_ONE, /* us, p50, one connection */
	FSYNC,       /* us, p50 */
	PARTS
};

struct raw {
	struct bench *bench;
	const struct served *served;
	struct scenario_conf conf;
	struct bare_file *file;
	struct buf request; /* an enqueue */
	struct bare_server plain, durable;
	double values[PARTS][BENCH_ROUNDS_MAX];
	struct figures figures; /* figures of the current part */
};

/* The bytes of one message in the log. */
static unsigned
record_bytes(unsigned payload)
{
	const struct message m = {
		.space = SLICE("bench"),
		.queue = SLICE("bench-12345-1"),
		.type = SLICE("text/plain; charset=utf-8"),
		.payload = { "", payload }, /* measured, not read */
		.payload_size = payload,
	};

	return (unsigned)record_size(message_size(&m), false);
}

/* --- parts ---------------------------------------------------------------------- */

static bool
next_request(struct load *l, struct load_conn *c)
{
	c->request = *(const struct slice *)l->arg;
	return bench_now() < l->until;
}

static int
measure_bare(struct raw *r, const struct bare_server *b, struct slice request,
	     unsigned connections, double *rate, struct slu_err *err)
{
	struct load l = {
		.address = &b->address,
		.connections = connections,
		.until = bench_now() + r->conf.duration,
		.arg = &request,
		.next = next_request,
		.hist = &r->figures.took,
	};
	int rc;

	memset(&r->figures, 0, sizeof r->figures);
	rc = load_run(&l, err);
	*rate = (double)l.requests * 1e9 / (double)l.elapsed;
	return rc;
}

static int
measure_plain(struct raw *r, unsigned round, struct slu_err *err)
{
	return measure_bare(r, &r->plain, slice_of(plain_request), r->conf.connections,
			    &r->values[PLAIN][round], err);
}

static int
measure_durable(struct raw *r, unsigned round, struct slu_err *err)
{
	const struct slice request = buf_slice(&r->request);
	double ignored;
	int rc;

	rc = measure_bare(r, &r->durable, request, r->conf.connections,
			  &r->values[DURABLE][round], err);
	if (!rc)
		rc = measure_bare(r, &r->durable, request, 1, &ignored, err);
	r->values[DURABLE_ONE][round] = (double)hist_percentile(&r->figures.took, 0.5) / 1e3;
	return rc;
}

static int
measure_fsync(struct raw *r, unsigned round, struct slu_err *err)
{
	int rc;

	memset(&r->figures, 0, sizeof r->figures);
	rc = bare_file_measure(r->file, r->conf.duration / 4, &r->figures.took, err);
	r->values[FSYNC][round] = (double)hist_percentile(&r->figures.took, 0.5) / 1e3;
	return rc;
}

static int
measure_ours(struct raw *r, unsigned round, const char *name, unsigned connections,
	     struct slu_err *err)
{
	struct scenario_conf conf = r->conf;
	struct figures *f = &r->figures;
	int rc;

	memset(f, 0, sizeof *f);
	conf.connections = connections;
	conf.batch = 1;
	rc = scenario_find(name)->run(r->served, &conf, f, err);
	if (rc)
		return rc;
	if (strcmp(name, "healthz") == 0) {
		r->values[HEALTHZ][round] = figures_rate(f);
		r->values[HEALTHZ_CPU][round] = figures_cpu_each(f);
	} else if (connections > 1) {
		r->values[ENQUEUE][round] = figures_rate(f);
		r->values[ENQUEUE_CPU][round] = figures_cpu_each(f);
	} else {
		r->values[ENQUEUE_ONE][round] = (double)hist_percentile(&f->took, 0.5) / 1e3;
	}
	return 0;
}

static int
measure_round(struct raw *r, unsigned round, struct slu_err *err)
{
	const unsigned n = r->conf.connections;
	int rc;

	bench_progress(r->bench, "raw", round);
	rc = measure_plain(r, round, err);
	if (!rc)
		rc = measure_ours(r, round, "healthz", n, err);
	if (!rc)
		rc = measure_durable(r, round, err);
	if (!rc)
		rc = measure_ours(r, round, "enqueue", n, err);
	if (!rc)
		rc = measure_ours(r, round, "enqueue", 1, err);
	return rc ? rc : measure_fsync(r, round, err);
}

/* --- the bench ------------------------------------------------------------------ */

static void
add_rows(struct raw *r)
{
	double m[PARTS];

	for (int i = 0; i < PARTS; i++)
		m[i] = bench_median(r->values[i], r->bench->rounds);

	const struct bench_row rows[] = {
		{ "enqueue (bare: durable server)", "msg/s", m[ENQUEUE], m[DURABLE],
		  m[ENQUEUE] / m[DURABLE], "at least 0.8x", m[ENQUEUE] >= 0.8 * m[DURABLE] },
		{ "enqueue (bare: our /healthz)", "msg/s", m[ENQUEUE], m[HEALTHZ],
		  m[ENQUEUE] / m[HEALTHZ], "at least 0.5x", m[ENQUEUE] >= 0.5 * m[HEALTHZ] },
		{ "/healthz (bare: plain answer)", "req/s", m[HEALTHZ], m[PLAIN],
		  m[HEALTHZ] / m[PLAIN], "at least 0.85x", m[HEALTHZ] >= 0.85 * m[PLAIN] },
		{ "one connection, p50 (bare: durable server)", "us", m[ENQUEUE_ONE], m[DURABLE_ONE],
		  m[DURABLE_ONE] / m[ENQUEUE_ONE], "at most 1.3x of the time",
		  m[ENQUEUE_ONE] <= 1.3 * m[DURABLE_ONE] },
		{ "server CPU of an enqueue (bare: /healthz)", "us", m[ENQUEUE_CPU] / 1e3,
		  m[HEALTHZ_CPU] / 1e3, m[HEALTHZ_CPU] / m[ENQUEUE_CPU], "at most 2x of the time",
		  m[ENQUEUE_CPU] <= 2 * m[HEALTHZ_CPU] },
		{ "fdatasync, p50", "us", m[FSYNC], 0, 0, "the disk's", true },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (m[ENQUEUE_CPU] >= 0 || i != 4) /* without a pid there is no CPU row */
			bench_add(r->bench, &rows[i]);
}

static int
open_bare(struct raw *r, struct slu_err *err)
{
	const struct bare_server_conf plain = {
		.request = sizeof plain_request - 1,
		.answer = plain_answer,
	};
	const struct bare_server_conf durable = {
		.request = r->request.n,
		.answer = durable_answer,
		.file = r->file,
		.record = record_bytes(r->conf.size),
	};
	int rc;

	if (r->request.failed)
		return slu_fail(err, SLU_ENOMEM, "no memory");
	rc = bare_server_open(&r->plain, &plain, err);
	return rc ? rc : bare_server_open(&r->durable, &durable, err);
}

int
bench_raw(struct bench *b, const struct served *s, const struct scenario_conf *conf,
	  struct bare_file *file, struct slu_err *err)
{
	struct raw *r = mem_zalloc(sizeof *r);
	int rc;

	if (!r)
		return slu_fail(err, SLU_ENOMEM, "no memory");
	r->bench = b;
	r->served = s;
	r->conf = *conf;
	r->file = file;
	buf_init(&r->request, 4 << 20);
	scenario_request(&r->request, conf->size);
	rc = open_bare(r, err);
	for (unsigned i = 0; i < b->rounds && !rc; i++)
		rc = measure_round(r, i, err);
	if (!rc)
		add_rows(r);
	bare_server_close(&r->plain);
	bare_server_close(&r->durable);
	buf_release(&r->request);
	mem_free(r);
	return rc;
}
