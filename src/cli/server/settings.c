/*
 * settings.c - `sluice admin log-level` and `reload`: the settings of a running server.
 */
#include "cli/lib/session.h"

#include "base/json/json_table.h"

/* --- log level ------------------------------------------------------------------ */

static int
log_level(struct session *s, struct slu_err *err)
{
	static const struct json_field fields[] = {
		{ .name = { "level", 5 }, .read = json_read_text, .size = sizeof(struct slice) },
	};
	const char *const body[] = { "level", s->n_words ? s->words[0] : "", NULL };
	struct slice answer, level = { 0 };
	int rc;

	query_path(&s->query, "/v1/admin/log-level");
	rc = s->n_words ? query_put_texts(&s->query, body, &answer, err) : query_get(&s->query, &answer, err);
	if (!rc)
		rc = query_read(answer, fields, COUNT(fields), &level, err);
	if (!rc && s->json)
		query_print(answer);
	else if (!rc)
		printf("%.*s\n", (int)level.n, level.p);
	return rc;
}

const struct command cli_admin_log_level = {
	.name = "admin log-level",
	.summary = "show or change the log level",
	.usage = "[debug|info|warn|error|off] [options]",
	.text = "Prints the log level of the server, or sets it until the server restarts or reloads\n"
		"its settings.\n",
	.examples = "  sluice admin log-level\n  sluice admin log-level debug\n",
	.options = CLI_SERVER,
	.run = log_level,
};

/* --- reload --------------------------------------------------------------------- */

static int
reload(struct session *s, struct slu_err *err)
{
	struct slice answer;
	int rc;

	query_path(&s->query, "/v1/admin/reload");
	rc = query_post(&s->query, SLICE("{}"), &answer, err);
	if (!rc && s->json)
		query_print(answer);
	else if (!rc)
		puts("reloaded");
	return rc;
}

const struct command cli_admin_reload = {
	.name = "admin reload",
	.summary = "reload the settings of the server",
	.usage = "[options]",
	.text = "Has the server reload its settings, like SIGHUP: all settings that can change while it\n"
		"runs change, or none if anything is invalid.\n",
	.examples = "  sluice admin reload\n",
	.options = CLI_SERVER,
	.run = reload,
};
