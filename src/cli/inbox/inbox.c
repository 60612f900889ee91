/*
 * inbox.c - `sluice inbox`: hands messages of a database, a folder or a bucket over to a server.
 */
#include "handover/handover.h"

#include "base/log.h"
#include "cli/lib/session.h"
#include "handover/postgres_schema.h"
#include "store/postgres/link.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

struct inbox_command {
	struct session s;
	struct handover_conf conf;
	bool no_watch;
	bool once;
	bool print_sql;
	int stop_fd;
};

/* --- the server ------------------------------------------------------------------- */

/* A batch may be sent twice: the server accepts it once. */
static int
call(void *arg, const char *path, struct slice body, struct slice *answer, struct slu_err *err)
{
	struct inbox_command *const c = arg;
	struct cli_query *const q = &c->s.query;
	const struct slu_request r = {
		SLU_OPTIONS_INIT(struct slu_request),
		.method = "POST",
		.path = path,
		.body = body.p,
		.size = body.n,
		.repeatable = true,
	};
	int rc;

	slu_free(q->answer.body);
	q->answer = (struct slu_answer){ 0 };
	rc = slu_client_call(c->s.client, &r, &q->answer, &(struct slu_call){ SLU_OPTIONS_INIT(struct slu_call) }, err);
	*answer = (struct slice){ q->answer.body, q->answer.size };
	return rc;
}

/* Fails before anything is marked if the server refuses this caller. */
static int
check_server(struct inbox_command *c, struct slu_err *err)
{
	struct slice answer;
	const int rc = call(c, "/v1/admin/intake/places", SLICE("{\"queues\":[]}"), &answer, err);

	return rc == SLU_EAUTH || rc == SLU_EFORBIDDEN || rc == SLU_EINVAL || rc == SLU_ENOTFOUND ? rc : 0;
}

/* --- init ------------------------------------------------------------------------- */

static int
init(struct inbox_command *c, struct slu_err *err)
{
	struct slu_err why = { 0 };
	struct links *links;
	int rc = 0;

	if (c->print_sql || !c->conf.url) {
		fputs(handover_postgres_schema, stdout);
		return 0;
	}
	links = links_new(c->conf.url, 0);
	if (!links)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	if (links_script(links, handover_postgres_schema, &why) != STORE_OK)
		rc = slu_fail(err, why.code, "%s", why.text);
	else
		printf("the database has an inbox: SELECT sluice.push('NAMESPACE', 'QUEUE', 'PAYLOAD')\n");
	links_free(links);
	return rc;
}

/* --- run -------------------------------------------------------------------------- */

static void
print_counts(const struct inbox_command *c, const struct handover *in)
{
	const struct handover_counts *const n = handover_counts(in);

	if (c->s.json)
		printf("{\"accepted\":%" PRIu64 ",\"batches\":%" PRIu64 ",\"refused\":%" PRIu64 "}\n", n->accepted, n->batches,
		       n->refused);
	else
		fprintf(stderr, "sluice inbox: accepted %" PRIu64 ", batches %" PRIu64 ", refused %" PRIu64 "\n", n->accepted,
			n->batches, n->refused);
}

static int
work(struct inbox_command *c, struct slu_err *err)
{
	const struct handover_server server = { .arg = c, .call = call };
	struct handover *in = NULL;
	int rc = check_server(c, err);

	if (!rc)
		rc = handover_open(&in, &c->conf, &server, err);
	if (!rc) {
		log_info(c->conf.log, "inbox started", F_STR("from", c->conf.url));
		rc = handover_run(in, c->stop_fd, c->once, err);
		print_counts(c, in);
	}
	handover_close(in);
	return rc;
}

static int
run(struct session *s, struct slu_err *err)
{
	struct inbox_command *const c = (void *)s;
	int rc;

	if (c->s.n_words == 1 && strcmp(c->s.words[0], "init") != 0)
		return session_usage(&c->s, "unknown word: %s; expected init", c->s.words[0]);
	if (c->s.n_words == 1)
		return init(c, err);
	if (!c->conf.url)
		return session_usage(&c->s, "--from is missing; expected postgres://HOST/DATABASE, file:///FOLDER, s3://BUCKET or azure://ACCOUNT/CONTAINER");
	c->conf.watch = !c->no_watch;
	c->conf.log = slu_log_new(SLU_LOG_INFO, SLU_LOG_LOGFMT, NULL, NULL);
	c->stop_fd = session_signals();
	if (!c->conf.log || c->stop_fd < 0)
		rc = slu_fail(err, SLU_ENOMEM, "out of memory");
	else
		rc = work(c, err);
	if (c->stop_fd >= 0)
		close(c->stop_fd);
	slu_log_free(c->conf.log);
	return rc;
}

const struct command cli_inbox = {
	.name = "inbox",
	.group = "Server",
	.summary = "hand messages of a database, a folder or a bucket over to the server, each once",
	.usage = "[init] [options]",
	.text = "Takes messages that other programs leave at a place, and enqueues each exactly once, whatever\n"
		"is killed meanwhile. Runs until Ctrl-C; a second inbox of the same place waits until the first\n"
		"has ended. The token needs *:admin.\n\n"
		"postgres://...  rows that sluice.push() has added, inside the transactions of an application.\n"
		"                `sluice inbox init` makes the tables and functions, or prints their SQL.\n"
		"file:///FOLDER  files in FOLDER/inbox/NAMESPACE/QUEUE/. Write a file elsewhere on the same file\n"
		"                system, then move it there. FILE.json beside FILE has key, priority, delay, ...\n"
		"s3://BUCKET[/PREFIX], azure://ACCOUNT/CONTAINER[/PREFIX]\n"
		"                objects PREFIX/inbox/NAMESPACE/QUEUE/NAME, with NAME.json as for files. Found by\n"
		"                polling. Keys and parameters of the URL are as for a store.\n",
	.examples = "  sluice inbox init --print-sql | psql postgres://db.example/shop\n"
		    "  sluice inbox --from postgres://db.example/shop\n"
		    "  sluice inbox --from file:///srv/drop --server https://queue.example:7171\n"
		    "  sluice inbox --from file:///srv/drop --once\n"
		    "  sluice inbox --from 's3://drop/shop?region=eu-central-1' --poll-interval 10s\n",
	.words = { 0, 1 },
	.options = CLI_CONNECTION | CLI_JSON | CLI_TIMEOUT,
	CLI_ARGS({ "--from URL", ARG_TEXT, AT(inbox_command, conf.url), "the place: postgres://HOST/DATABASE, file:///FOLDER, s3://BUCKET or azure://ACCOUNT/CONTAINER" },
		 { "--once", ARG_FLAG, AT(inbox_command, once), "end when the place is empty" },
		 { "--print-sql", ARG_FLAG, AT(inbox_command, print_sql), "init: print the SQL, change nothing" },
		 { "--settle", ARG_TIME, AT(inbox_command, conf.settle),
		   "file: take a file that was written in place if it is unchanged for this long (2s)" },
		 { "--poll-interval", ARG_TIME, AT(inbox_command, conf.poll_interval), "file: look at a folder without a watch; s3, azure: list the bucket (3s)" },
		 { "--poll-jitter", ARG_TIME, AT(inbox_command, conf.poll_jitter), "file, s3, azure: look up to this much later; 0s = off (500ms)" },
		 { "--poll-resilient", ARG_TIME, AT(inbox_command, conf.poll_resilient),
		   "file: look at a folder with a watch, too; 0s = off (5m)" },
		 { "--no-watch", ARG_FLAG, AT(inbox_command, no_watch), "file: do not watch folders, only look" }),
	CLI_STATE(struct inbox_command, .s.impatient = true,
		  .conf = { .settle = 2 * SLU_SEC, .poll_interval = 3 * SLU_SEC, .poll_jitter = 500 * SLU_MS, .poll_resilient = 5 * SLU_MIN }),
	.run = run,
};
