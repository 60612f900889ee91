/*
 * settings.c - `sluice admin log-level`, `reload` and `config`: what the server logs, and all that
 * it was told.
 */
#include "cli/config.h"
#include "cli/rows.h"

#include "base/json.h"
#include "base/json_out.h"
#include "base/json_table.h"
#include "base/mem.h"

/* --- log level ------------------------------------------------------------------ */

static int
set_level(struct session *s, const char *level, struct slice *out, struct slu_err *err)
{
	struct json_out w;
	struct buf body;
	int rc;

	buf_init(&body, 4096);
	json_out_init(&w, &body);
	json_out_object(&w, NULL);
	json_out_str(&w, "level", slice_of(level));
	json_out_close(&w);
	rc = query_put(&s->query, buf_slice(&body), out, err);
	buf_release(&body);
	return rc;
}

static int
print_level(const struct session *s, struct slice answer, struct slu_err *err)
{
	static const struct json_field fields[] = {
		{ .name = { "level", 5 }, .read = json_read_text, .size = sizeof(struct slice) },
	};
	struct slice level = { 0 };
	struct json r;

	json_init(&r, answer, JSON_DEPTH);
	json_fields(&r, fields, COUNT(fields), JSON_LENIENT, &level);
	if (json_end(&r, err))
		return SLU_EUNKNOWN;
	if (s->json)
		query_print(answer);
	else
		printf("%.*s\n", (int)level.n, level.p);
	return 0;
}

int
cli_admin_log_level(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "admin log-level [debug|info|warn|error|off] [options]",
		.text = "What the server logs; with a level, from now on until it is started again or\n"
			"reads its settings anew.\n",
		.examples = "  sluice admin log-level\n  sluice admin log-level debug\n",
		.max_words = 1,
	};
	struct session s = SESSION("admin log-level");
	const struct arg args[] = { SESSION_SERVER_ROWS(&s) };
	struct slice answer;
	struct slu_err err;
	int rc;

	if (!session_begin(&s, &help, &argc, &argv, args, COUNT(args)))
		return s.exit;
	query_path(&s.query, "/v1/admin/log-level");
	rc = argc ? set_level(&s, argv[0], &answer, &err) : query_get(&s.query, &answer, &err);
	if (!rc)
		rc = print_level(&s, answer, &err);
	if (rc)
		session_fail(&s, &err);
	return session_end(&s);
}

/* --- reload --------------------------------------------------------------------- */

int
cli_admin_reload(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "admin reload [options]",
		.text = "The server reads its settings again, as SIGHUP makes it do: all that can change\n"
			"while it runs does, or, if anything is wrong, nothing.\n",
		.examples = "  sluice admin reload\n",
	};
	struct session s = SESSION("admin reload");
	const struct arg args[] = { SESSION_SERVER_ROWS(&s) };
	struct slice answer;
	struct slu_err err;

	if (!session_begin(&s, &help, &argc, &argv, args, COUNT(args)))
		return s.exit;
	query_path(&s.query, "/v1/admin/reload");
	if (query_post(&s.query, SLICE("{}"), &answer, &err))
		session_fail(&s, &err);
	else if (s.json)
		query_print(answer);
	else
		puts("reloaded");
	return session_end(&s);
}

/* --- config --------------------------------------------------------------------- */

struct setting {
	struct slice value;
	struct slice from;
};

static void
add_setting(struct table *t, const struct json_str *name, struct json *in)
{
	static const struct json_field fields[] = {
		JSON_FIELD(raw, struct setting, value),
		JSON_FIELD(text, struct setting, from),
	};
	struct setting s = { 0 };

	json_fields(in, fields, COUNT(fields), JSON_LENIENT, &s);
	table_text(t, name->raw);
	table_text(t, s.value.n ? s.value : SLICE("-"));
	table_text(t, s.from);
}

static int
print_settings(struct slice answer, struct slu_err *err)
{
	static const char *const heads[] = { "SETTING", "VALUE", "FROM" };
	char *room = mem_alloc(answer.n + 1);
	struct json_str name;
	struct table t;
	struct json r;
	int rc;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "no memory for the answer");
	table_init(&t, heads, COUNT(heads), 0);
	json_init(&r, answer, JSON_DEPTH);
	json_room(&r, room, answer.n);
	json_object(&r);
	while (json_member(&r, &name))
		add_setting(&t, &name, &r);
	rc = json_end(&r, err);
	if (!rc)
		(void)table_print(&t, stdout, session_colours(stdout)); /* no memory: no table */
	table_release(&t);
	mem_free(room);
	return rc ? SLU_EUNKNOWN : 0;
}

/* What needs no server. */
static int
look_at_files(struct session *s, int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[0], "check") == 0)
		return config_check(argv[1], s->json);
	if (argc == 3 && strcmp(argv[0], "diff") == 0)
		return config_diff(argv[1], argv[2], s->json);
	return session_usage(s, "say nothing, check FILE, or diff OLD NEW; see `sluice admin config --help`");
}

int
cli_admin_config(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "admin config [check FILE | diff OLD NEW] [options]",
		.text = "Every setting of the running server as it is in force, and where it came from.\n"
			"Secrets are masked.\n\n"
			"check reads a file as sluiced would, with the variables of this environment,\n"
			"and says all that is wrong with it (exit code 1) or odd. diff tells which commands\n"
			"and tenants live on another shard by the second file; it exits with 1 when a file\n"
			"is wrong, or the mapping differs and sharding.version does not rise. Both ask no\n"
			"server. `sluiced --check-config` also looks at the files, folders and addresses\n"
			"that the settings name.\n",
		.examples = "  sluice admin config\n  sluice admin config --json | jq '.\"log.level\"'\n"
			    "  sluice admin config check /etc/sluice/sluice.yaml\n"
			    "  sluice admin config diff /etc/sluice/sluice.yaml new.yaml --json\n",
		.max_words = 3,
	};
	struct session s = SESSION("admin config");
	const struct arg args[] = { SESSION_SERVER_ROWS(&s) };
	struct slice answer;
	struct slu_err err;
	int rc;

	if (!session_begin(&s, &help, &argc, &argv, args, COUNT(args)))
		return s.exit;
	if (argc) {
		s.exit = look_at_files(&s, argc, argv);
		return session_end(&s);
	}
	query_path(&s.query, "/v1/admin/config");
	rc = query_get(&s.query, &answer, &err);
	if (!rc && s.json)
		query_print(answer);
	else if (!rc)
		rc = print_settings(answer, &err);
	if (rc)
		session_fail(&s, &err);
	return session_end(&s);
}
