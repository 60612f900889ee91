/*
 * torture.c - `sluice torture`: injects faults into a server and checks its promises.
 */
#include "cli/lib/credentials.h"
#include "cli/lib/report.h"
#include "cli/lib/session.h"
#include "net/tls_context.h"
#include "torture/report.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/parse.h"
#include "engine/engine.h"

#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

struct torture_command {
	struct session s;
	struct torture_conf conf;
	uint64_t minutes, seed, producers, consumers, lockers, nodes, stores;
	slu_time duration;
	const char *faults;
	const char *token_file;
	const char *ca_file, *cert, *cert_key;
	const char *history;
	const char *store; /* URL of the folder for the store; NULL = none */

	char *token;
	struct tls_context *tls; /* NULL = no TLS */
	bool draws;
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
	return slu_fail(err, SLU_EINVAL, "unknown fault: %s%s%s; see --help",
			parse_shown(word, shown), near ? "; did you mean " : "", near ? near : "");
}

/* Parses "all", "none", or names separated by commas. */
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

/* Draws the progress line. Returns true if the run is to stop. */
static bool
told(void *arg, struct torture *t)
{
	const struct torture_command *r = arg;
	const slu_time now = clock_mono(&clock_system);
	const double part = (double)(now - t->begun) / (double)r->conf.duration;

	if (r->draws)
		fprintf(stderr, "\rtorture  %3.0f %%  round %u  %zu events\033[K",
			part > 1 ? 100.0 : part * 100, t->rounds, history_count(&t->history));
	return interrupted;
}

static int
show(struct torture_command *r, struct torture *t)
{
	if (r->draws)
		fputs("\r\033[K", stderr);
	if (r->s.json)
		(void)report_json(t, r->again, stdout); /* the reader sees that cut JSON is malformed */
	else
		report_text(t, r->again, stdout);
	return t->failed ? CLI_FAILED : CLI_OK;
}

static int
torture(struct torture_command *r, struct torture *t, struct slu_err *err)
{
	int rc = torture_open(t, &r->conf, err);

	if (!rc)
		rc = torture_run(t, err);
	if (rc)
		return rc;
	r->s.exit = show(r, t);
	return r->history ? report_history(t, r->history, err) : 0;
}

static void
run_here(struct torture_command *r)
{
	struct torture *t = mem_zalloc(sizeof *t);
	struct slu_err err;
	int rc;

	r->s.exit = CLI_NOTHING;
	rc = t ? torture(r, t, &err) : slu_fail(&err, SLU_ENOMEM, "no memory");
	if (rc)
		(void)cli_report(r->s.command->name, r->s.json, rc, r->s.exit, err.text);
	if (t)
		torture_close(t);
	mem_free(t);
}

/* --- the command --------------------------------------------------------------------- */

/* The row of --engine; NULL = the server's default. */
static const struct engine_ops *
engine_of(const struct torture_command *r)
{
	return r->conf.target.engine ? engine_find(engine_rows, r->conf.target.engine) : NULL;
}

/* What the servers share: by --store, or by the row of the engine. NULL = nothing. */
static const struct stores_kind *
kind_of(const struct torture_command *r)
{
	if (r->store)
		return stores_kind_of_url(r->store);
	return r->conf.target.engine ? stores_kind_of_engine(r->conf.target.engine) : NULL;
}

static const char *
misuse_of_stores(const struct torture_command *r)
{
	const struct stores_kind *const kind = kind_of(r);

	if (r->conf.target.server && (r->conf.target.engine || r->store))
		return "--engine and --store do not go with --server: they are for a server that is started here";
	if (r->store && !kind)
		return "invalid --store; expected file:///FOLDER, or the URL of a store on a server: s3://, azure:// or postgres://";
	if (r->store && r->conf.target.engine && strcmp(r->conf.target.engine, "log") != 0)
		return "--store needs --engine log";
	if (!kind && engine_of(r) && engine_of(r)->shared)
		return "torture cannot start the stores of this --engine";
	if (r->nodes < 1 || r->nodes > TORTURE_NODES || r->stores < 1 || r->stores > STORES_MAX)
		return "invalid --nodes or --stores; expected 1 to 8";
	if (r->nodes > 1 && !kind)
		return "several nodes need --engine redis or --store";
	if (r->stores > (kind ? kind->max : 1))
		return "several stores need --engine redis";
	return NULL;
}

static const char *
misuse(const struct torture_command *r)
{
	if (r->minutes && r->duration)
		return "--minutes and --for exclude each other";
	if (r->minutes > 60 * 24 * 365)
		return "invalid --minutes; expected at most a year";
	if (r->producers > 1000 || r->consumers > 1000 || r->lockers > 1000)
		return "too many clients; expected at most 1000 producers, 1000 consumers and 1000 lockers";
	return misuse_of_stores(r);
}

static void
write_again(struct torture_command *r)
{
	const struct torture_conf *c = &r->conf;
	char time[DURATION_TEXT], several[256] = "";

	if (r->store)
		(void)snprintf(several, sizeof several, " --store %.200s --nodes %u", r->store, c->nodes);
	else if (r->nodes > 1 || r->stores > 1)
		(void)snprintf(several, sizeof several, " --nodes %u --stores %u", c->nodes, c->stores);
	(void)snprintf(r->again, sizeof r->again,
		       "sluice torture --seed %" PRIu64 " --for %s --faults %.160s%s%.20s%s", c->seed,
		       format_duration(c->duration, time, sizeof time), r->faults,
		       c->target.engine ? " --engine " : "", c->target.engine ? c->target.engine : "",
		       several);
}

/* Opens TLS for a server that was not started here. */
static int
open_tls(struct torture_command *r, struct slu_err *err)
{
	const struct tls_client_conf conf = {
		.ca_file = session_or_variable(r->ca_file, "SLUICE_CA_FILE"),
		.cert = session_or_variable(r->cert, "SLUICE_CERT"),
		.key = session_or_variable(r->cert_key, "SLUICE_CERT_KEY"),
	};

	if (!r->conf.target.server || strncmp(r->conf.target.server, "https://", 8) != 0)
		return 0;
	return tls_context_client(&r->tls, &conf, err);
}

static int
prepare(struct torture_command *r, struct slu_err *err)
{
	struct torture_conf *c = &r->conf;
	int rc = read_faults(r->faults, &c->faults, err);

	if (!rc)
		rc = credentials_token(r->token_file, &r->token, err);
	if (!rc)
		rc = open_tls(r, err);
	if (!rc && !r->seed) {
		rc = hash_random(&r->seed, sizeof r->seed, err);
		r->seed = r->seed >> 32 | 1; /* short enough to write down */
	}
	c->seed = r->seed;
	c->duration = r->minutes ? (slu_time)r->minutes * 60 * SLU_SEC : r->duration;
	if (!c->duration)
		c->duration = 60 * SLU_SEC;
	c->producers = (unsigned)r->producers;
	c->consumers = (unsigned)r->consumers;
	c->lockers = (unsigned)r->lockers;
	c->nodes = (unsigned)r->nodes;
	c->target.forgets = engine_of(r) && !engine_of(r)->durable;
	c->kind = kind_of(r);
	c->plain = c->target.server || (c->kind && !c->kind->takes_over);
	c->stores = c->kind ? (unsigned)r->stores : 0;
	c->store_dir = r->store ? strstr(r->store, "://") + 3 : c->target.dir;
	c->cuts_stores = c->faults & (fault_bit("partition") | fault_bit("link") | (c->kind && c->kind->has_gates ? fault_bit("clock") : 0));
	c->target.token = r->token;
	c->target.context = r->tls;
	c->target.small_disk = c->faults & fault_bit("disk");
	c->target.own_clock = c->faults & fault_bit("clock");
	c->told = told;
	c->arg = r;
	r->draws = isatty(STDERR_FILENO);
	write_again(r);
	return rc;
}

static int
run(struct session *s, struct slu_err *err)
{
	struct torture_command *const r = (void *)s;
	const char *wrong = misuse(r);

	if (!wrong && prepare(r, err))
		wrong = err->text;
	if (wrong) {
		session_usage(&r->s, "%s", wrong);
	} else {
		signal(SIGINT, interrupt);
		signal(SIGTERM, interrupt);
		run_here(r);
	}
	tls_context_unref(r->tls);
	mem_free(r->token);
	return 0;
}

static void
list_faults(FILE *out)
{
	fputs("faults:\n", out);
	for (const struct torture_fault *f = torture_faults; f->name; f++)
		fprintf(out, "  %-18s %s\n", f->name, f->text);
	fputs("\n", out);
}

const struct command cli_torture = {
	.name = "torture",
	.group = "Server",
	.summary = "inject faults into a server and check its promises",
	.usage = "[options]",
	.text = "Injects faults into a server while clients push, claim, settle, retry, die and take\n"
		"locks, records every call, and checks the record against the promises of the queue (I1\n"
		"to I10 in docs/reliability.md). It starts a server on a folder that it removes\n"
		"afterwards. With --server it uses a running server, which it cannot kill or pause, and\n"
		"a new queue in the namespace `torture`.\n\n"
		"A fault that is not possible here is listed as skipped, with the reason. The seed\n"
		"repeats the requests and the faults, not the interleaving of threads.\n",
	.examples = "  sluice torture --for 10s\n"
		    "  sluice torture --minutes 10 --faults all\n"
		    "  sluice torture --engine memory --faults pause,connections --seed 7\n"
		    "  sluice torture --engine redis --faults kill,store,store-pause\n"
		    "  sluice torture --engine redis --nodes 2 --stores 2 --faults kill,store,partition\n"
		    "  sluice torture --store file:///var/tmp --nodes 3 --minutes 10\n"
		    "  sluice torture --store postgres://sluice@127.0.0.1:5432/test --nodes 2\n"
		    "  sluice torture --server 127.0.0.1:7171 --minutes 1 --json\n"
		    "\nexit codes:\n"
		    "  0                  every promise was kept\n"
		    "  1                  a promise was broken: the shortest counter-example is printed\n"
		    "  2                  wrong options\n"
		    "  3                  the run failed\n",
	.list = list_faults,
	.options = CLI_JSON,
	CLI_ARGS({ "--minutes N", ARG_COUNT, AT(torture_command, minutes), "how long (1)" },
		 { "--for", ARG_TIME, AT(torture_command, duration), "how long, as a time: 10s" },
		 { "--faults NAMES", ARG_TEXT, AT(torture_command, faults), "all, none, or a list: kill,pause (all)" },
		 { "--seed", ARG_NUMBER, AT(torture_command, seed), "seed of the run to repeat (random)" },
		 { "--producers N", ARG_COUNT, AT(torture_command, producers), "clients that push (4)" },
		 { "--consumers N", ARG_COUNT, AT(torture_command, consumers), "clients that work (10)" },
		 { "--lockers N", ARG_COUNT, AT(torture_command, lockers), "clients that take locks and count in their state (6)" },
		 { "--engine ENGINE", ARG_TEXT, AT(torture_command, conf.target.engine), "engine of a started server (log)" },
		 { "--nodes N", ARG_COUNT, AT(torture_command, nodes), "number of started servers, which share a store or the shards of engine redis (1)" },
		 { "--store URL", ARG_TEXT, AT(torture_command, store), "the servers share a store in a new folder below file:///FOLDER, or in a prefix or schema of their own on a running server: s3://, azure://, postgres://" },
		 { "--store-dies", ARG_FLAG, AT(torture_command, conf.store_dies), "you stop the store meanwhile: a server that is stopped then may end with an exit code" },
		 { "--stores N", ARG_COUNT, AT(torture_command, stores), "engine redis: number of Redis servers, each a shard (1)" },
		 { "--dir DIR", ARG_TEXT, AT(torture_command, conf.target.dir), "folder for the data of a started server (/var/tmp)" },
		 { "-s, --server ADDRESS", ARG_TEXT, AT(torture_command, conf.target.server), "use this running server" },
		 { "--token-file FILE", ARG_TEXT, AT(torture_command, token_file), "file with the token (SLUICE_TOKEN)" },
		 { "--ca-file FILE", ARG_TEXT, AT(torture_command, ca_file), "https: CAs that the server's certificate is checked against (SLUICE_CA_FILE)" },
		 { "--cert FILE", ARG_TEXT, AT(torture_command, cert), "https: certificate of this client (SLUICE_CERT)" },
		 { "--cert-key FILE", ARG_TEXT, AT(torture_command, cert_key), "https: key of the certificate (SLUICE_CERT_KEY)" },
		 { "--history FILE", ARG_TEXT, AT(torture_command, history), "write the calls of the last round to this file, as JSON" }),
	CLI_STATE(struct torture_command, .faults = "all", .producers = 4, .consumers = 10, .lockers = 6, .nodes = 1, .stores = 1,
		  .conf.target.dir = "/var/tmp"),
	.run = run,
};
