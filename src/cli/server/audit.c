/*
 * audit.c - `sluice admin audit`: prints the last lines of a server's audit file.
 */
#include "cli/lib/rows.h"

#include <inttypes.h>

struct audit_command {
	struct session s;
	const char *verb, *queue, *who;
	uint64_t limit;
};

static const struct column columns[] = {
	{ "time", "WHEN", COLUMN_TIME },
	{ "who", "WHO", COLUMN_TEXT },
	{ "verb", "VERB", COLUMN_TEXT },
	{ "namespace", "NAMESPACE", COLUMN_TEXT },
	{ "queue", "QUEUE", COLUMN_TEXT },
	{ "count", "COUNT", COLUMN_NUMBER },
	{ "outcome", "OUTCOME", COLUMN_TEXT },
	{ "before", "BEFORE", COLUMN_MAYBE },
	{ "after", "AFTER", COLUMN_MAYBE },
};

static const struct rows_list lines = { .member = "lines", ROWS_COLUMNS(columns) };

static int
run(struct session *s, struct slu_err *err)
{
	const struct audit_command *const c = (void *)s;
	const struct {
		const char *name, *value;
	} wanted[] = { { "verb", c->verb }, { "queue", c->queue }, { "who", c->who } };
	struct slice body;
	char limit[24];
	int rc;

	(void)snprintf(limit, sizeof limit, "%" PRIu64, c->limit ? c->limit : 100);
	query_path(&s->query, "/v1/admin/audit");
	http_param(&s->query.path, "limit", limit);
	for (size_t i = 0; i < COUNT(wanted); i++)
		http_param(&s->query.path, wanted[i].name, wanted[i].value);
	rc = query_get(&s->query, &body, err);
	return rc ? rc : rows_print(s, &lines, body, err);
}

const struct command cli_admin_audit = {
	.name = "admin audit",
	.summary = "print the last lines of the audit file",
	.usage = "[options]",
	.text = "Prints the last changes that the audit file of the server has, newest first. Needs the right\n"
		"*:admin.\n",
	.examples = "  sluice admin audit --verb purge\n"
		    "  sluice admin audit --limit 1000 --json\n",
	.options = CLI_SERVER,
	CLI_ARGS({ "-v, --verb VERB", ARG_TEXT, AT(audit_command, verb), "only changes of this kind, like purge" },
		 { "-q, --queue QUEUE", ARG_TEXT, AT(audit_command, queue), "only changes of this queue" },
		 { "-w, --who NAME", ARG_TEXT, AT(audit_command, who), "only changes by this caller" },
		 { "-l, --limit", ARG_COUNT, AT(audit_command, limit), "at most so many lines (100)" }),
	.size = sizeof(struct audit_command),
	.run = run,
};
