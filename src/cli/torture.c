/*
 * torture.c - `sluice torture`: hurt a server and see whether it keeps its promises.
 */
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/report.h"
#include "cli/credentials.h"
#include "cli/session.h"
#include "net/tls_context.h"
#include "torture/report.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/parse.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

struct request {
	struct torture_conf conf;
	uint64_t minutes, seed, producers, consumers, lockers, nodes, stores;
	slu_time duration;
	const char *faults;
	const char *token_file;
	const char *ca_file, *cert, *cert_key;
	const char *history;
	bool json, help;

	char *token;
	struct tls_context *tls; /* NULL: plain */
	bool draws;
	int exit; /* enum cli_exit */
	char again[REPORT_AGAIN];
};

static volatile sig_atomic_t interrupted;

static void
interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

/* --- faults by name ------------------------------------------------------------------ */

static int
unknown_fault(struct slice word, struct slu_err *err)
{
	const char *names[TORTURE_FAULTS];
	char shown[SHOWN_TEXT];
	size_t n = 0;
	const char *near;
	char text[32];

	for (const struct torture_fault *f = torture_faults; f->name; f++)
		names[n++] = f->name;
	(void)snprintf(text, sizeof text, "%.*s", (int)(word.n < 31 ? word.n : 31), word.p);
	near = args_nearest(text, names, n);
	return slu_fail(err, SLU_EINVAL, "--faults: there is no fault %s%s%s; see --help",
			parse_shown(word, shown), near ? "; did you mean " : "", near ? near : "");
}

/* "all", "none", or names with commas between. */
static int
read_faults(const char *text, uint32_t *out, struct slu_err *err)
{
	*out = 0;
	if (strcmp(text, "none") == 0)
		return 0;
	for (const char *p = text; *p; p += *p == ',') {
		const struct slice word = { p, strcspn(p, ",") };
		uint32_t mask = slice_eq(word, SLICE("all")) ? UINT32_MAX : 0;

		for (unsigned i = 0; torture_faults[i].name; i++)
			if (slice_eq(word, slice_of(torture_faults[i].name)))
				mask = 1u << i;
		if (!mask)
			return unknown_fault(word, err);
		*out |= mask;
		p += word.n;
	}
	return 0;
}

static uint32_t
fault_bit(const char *name)
{
	for (unsigned i = 0; torture_faults[i].name; i++)
		if (strcmp(torture_faults[i].name, name) == 0)
			return 1u << i;
	return 0;
}

/* --- the run ------------------------------------------------------------------------- */

/* A line on a terminal; whether it is to stop. */
static bool
told(void *arg, struct torture *t)
{
	const struct request *r = arg;
	const slu_time now = clock_mono(&clock_system);
	const double part = (double)(now - t->begun) / (double)r->conf.duration;

	if (r->draws)
		fprintf(stderr, "\rtorture  %3.0f %%  round %u  %zu events\033[K",
			part > 1 ? 100.0 : part * 100, t->rounds, history_count(&t->history));
	return interrupted;
}

static int
show(struct request *r, struct torture *t)
{
	if (r->draws)
		fputs("\r\033[K", stderr);
	if (r->json)
		(void)report_json(t, r->again, stdout); /* cut JSON is no JSON: seen by its reader */
	else
		report_text(t, r->again, stdout);
	return t->failed ? CLI_FAILED : CLI_OK;
}

static int
torture(struct request *r, struct torture *t, struct slu_err *err)
{
	int rc = torture_open(t, &r->conf, err);

	if (!rc)
		rc = torture_run(t, err);
	if (rc)
		return rc;
	r->exit = show(r, t);
	return r->history ? report_history(t, r->history, err) : 0;
}

static int
run(struct request *r)
{
	struct torture *t = mem_zalloc(sizeof *t);
	struct slu_err err;
	int rc;

	r->exit = CLI_NOTHING;
	if (!t)
		return cli_report("torture", r->json, SLU_ENOMEM, r->exit, "no memory");
	rc = torture(r, t, &err);
	if (rc)
		(void)cli_report("torture", r->json, rc, r->exit, err.text);
	torture_close(t);
	mem_free(t);
	return r->exit;
}

/* --- the command --------------------------------------------------------------------- */

static void
help(const struct arg *rows, size_t n)
{
	puts("usage: sluice torture [options]\n\n"
	     "Hurts a server while clients push, claim, settle, retry, die and take locks, writes down\n"
	     "every call, and checks what happened against the promises of the queue (I1 to I10 in\n"
	     "docs/reliability.md). It starts a server of its own in a folder that is gone\n"
	     "afterwards; with --server it drives one that runs, which it cannot kill or pause, in\n"
	     "a queue of its own in the namespace `torture`.\n\n"
	     "faults:");
	for (const struct torture_fault *f = torture_faults; f->name; f++)
		printf("  %-18s %s\n", f->name, f->text);
	puts("\nA fault that cannot be had here is listed as skipped, with the reason. The seed\n"
	     "repeats what clients ask and which faults come, not how threads interleave.\n");
	args_help(rows, n, stdout);
	puts("\nexit codes:\n"
	     "  0                  every promise was kept\n"
	     "  1                  one was broken: the shortest counter-example is printed\n"
	     "  2                  the call was wrong\n"
	     "  3                  it could not run\n"
	     "\nexamples:\n"
	     "  sluice torture --for 10s\n"
	     "  sluice torture --minutes 10 --faults all\n"
	     "  sluice torture --engine memory --faults pause,connections --seed 7\n"
	     "  sluice torture --engine redis --faults kill,store,store-pause\n"
	     "  sluice torture --engine redis --nodes 2 --stores 2 --faults kill,store,partition\n"
	     "  sluice torture --server 127.0.0.1:7171 --minutes 1 --json");
}

static bool
is_redis(const struct request *r)
{
	return r->conf.victim.engine && strcmp(r->conf.victim.engine, "redis") == 0;
}

static const char *
misuse(const struct request *r, int words)
{
	if (words > 0)
		return "this takes options only";
	if (r->minutes && r->duration)
		return "--minutes or --for, not both";
	if (r->minutes > 60 * 24 * 365)
		return "at most a year";
	if (r->producers > 1000 || r->consumers > 1000 || r->lockers > 1000)
		return "at most 1000 producers, as many consumers and as many lockers";
	if (r->conf.victim.server && r->conf.victim.engine)
		return "--engine is for a server that is started here";
	if (r->nodes < 1 || r->nodes > TORTURE_NODES || r->stores < 1 || r->stores > STORES_MAX)
		return "--nodes and --stores are 1 to 8";
	if ((r->nodes > 1 || r->stores > 1) && !is_redis(r))
		return "several nodes or stores need --engine redis";
	return NULL;
}

static void
write_again(struct request *r)
{
	const struct torture_conf *c = &r->conf;
	char time[DURATION_TEXT], several[48] = "";

	if (r->nodes > 1 || r->stores > 1)
		(void)snprintf(several, sizeof several, " --nodes %u --stores %u", c->nodes, c->stores);
	(void)snprintf(r->again, sizeof r->again,
		       "sluice torture --seed %" PRIu64 " --for %s --faults %.160s%s%.20s%s", c->seed,
		       format_duration(c->duration, time, sizeof time), r->faults,
		       c->victim.engine ? " --engine " : "", c->victim.engine ? c->victim.engine : "",
		       several);
}

/* Of a server that is not ours. */
static int
open_tls(struct request *r, struct slu_err *err)
{
	const struct tls_client_conf conf = {
		.ca_file = session_or_variable(r->ca_file, "SLUICE_CA_FILE"),
		.cert = session_or_variable(r->cert, "SLUICE_CERT"),
		.key = session_or_variable(r->cert_key, "SLUICE_CERT_KEY"),
	};

	if (!r->conf.victim.server || strncmp(r->conf.victim.server, "https://", 8) != 0)
		return 0;
	return tls_context_client(&r->tls, &conf, err);
}

static int
prepare(struct request *r, struct slu_err *err)
{
	struct torture_conf *c = &r->conf;
	int rc = read_faults(r->faults, &c->faults, err);

	if (!rc)
		rc = credentials_token(r->token_file, &r->token, err);
	if (!rc)
		rc = open_tls(r, err);
	if (!rc && !r->seed) {
		rc = hash_random(&r->seed, sizeof r->seed, err);
		r->seed = r->seed >> 32 | 1; /* short enough to be written down */
	}
	c->seed = r->seed;
	c->duration = r->minutes ? (slu_time)r->minutes * 60 * SLU_SEC : r->duration;
	if (!c->duration)
		c->duration = 60 * SLU_SEC;
	c->producers = (unsigned)r->producers;
	c->consumers = (unsigned)r->consumers;
	c->lockers = (unsigned)r->lockers;
	c->nodes = (unsigned)r->nodes;
	c->stores = is_redis(r) ? (unsigned)r->stores : 0;
	c->cuts_stores = c->faults & fault_bit("partition");
	c->victim.token = r->token;
	c->victim.context = r->tls;
	c->victim.small_disk = c->faults & fault_bit("disk");
	c->victim.own_clock = c->faults & fault_bit("clock");
	c->told = told;
	c->arg = r;
	r->draws = isatty(STDERR_FILENO);
	write_again(r);
	return rc;
}

int
cli_torture(int argc, char **argv)
{
	struct request r = {
		.faults = "all",
		.producers = 4,
		.consumers = 10,
		.lockers = 6,
		.nodes = 1,
		.stores = 1,
		.conf.victim.dir = "/var/tmp",
	};
	const struct arg rows[] = {
		{ "--minutes N", ARG_COUNT, &r.minutes, "how long (1)" },
		{ "--for", ARG_TIME, &r.duration, "the same as a time: 10s" },
		{ "--faults NAMES", ARG_TEXT, &r.faults, "all, none, or some: kill,pause (all)" },
		{ "--seed", ARG_NUMBER, &r.seed, "the choices of another run (random)" },
		{ "--producers N", ARG_COUNT, &r.producers, "clients that push (4)" },
		{ "--consumers N", ARG_COUNT, &r.consumers, "clients that work (10)" },
		{ "--lockers N", ARG_COUNT, &r.lockers, "clients that take locks and count in their state (6)" },
		{ "--engine log|memory|redis", ARG_TEXT, &r.conf.victim.engine, "of our own server (log)" },
		{ "--nodes N", ARG_COUNT, &r.nodes, "engine redis: servers of our own that share work (1)" },
		{ "--stores N", ARG_COUNT, &r.stores, "engine redis: Redis servers, each a shard (1)" },
		{ "--dir DIR", ARG_TEXT, &r.conf.victim.dir, "where our own server has its folder (/var/tmp)" },
		{ "-s, --server ADDRESS", ARG_TEXT, &r.conf.victim.server, "torture one that runs" },
		{ "--token-file FILE", ARG_TEXT, &r.token_file, "the token to show it (SLUICE_TOKEN)" },
		{ "--ca-file FILE", ARG_TEXT, &r.ca_file, "https: who may have signed its certificate (SLUICE_CA_FILE)" },
		{ "--cert FILE", ARG_TEXT, &r.cert, "https: the certificate to show it (SLUICE_CERT)" },
		{ "--cert-key FILE", ARG_TEXT, &r.cert_key, "https: its key (SLUICE_CERT_KEY)" },
		{ "--history FILE", ARG_TEXT, &r.history, "write the calls of the last round there, as JSON" },
		{ "--json", ARG_FLAG, &r.json, "print JSON" },
		{ "-h, --help", ARG_FLAG, &r.help, "this text" },
	};
	const size_t n = sizeof rows / sizeof rows[0];
	struct slu_err err;
	const char *wrong;
	bool json;
	int exit;

	argc--;
	argv++;
	json = args_have_json(argc, argv);
	if (args_parse(&argc, argv, rows, n, &err))
		return cli_report("torture", json, SLU_EINVAL, CLI_USAGE, err.text);
	if (r.help) {
		help(rows, n);
		return CLI_OK;
	}
	wrong = misuse(&r, argc);
	if (!wrong && prepare(&r, &err))
		wrong = err.text;
	if (wrong) {
		exit = cli_report("torture", r.json, SLU_EINVAL, CLI_USAGE, wrong);
	} else {
		signal(SIGINT, interrupt);
		signal(SIGTERM, interrupt);
		exit = run(&r);
	}
	tls_context_unref(r.tls);
	mem_free(r.token);
	return exit;
}
