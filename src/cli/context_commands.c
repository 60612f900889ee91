/*
 * context_commands.c - `sluice context`: add, use, list, show, rename and remove contexts.
 */
#include "cli/credentials.h"
#include "cli/session.h"
#include "cli/table.h"

#include "base/json_out.h"
#include "base/mem.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* What all of them do: read the file, change it, write it. */
typedef int change_fn(struct session *s, char **argv, void *arg, struct slu_err *err);

static int
change(struct session *s, char **argv, change_fn *fn, void *arg)
{
	struct slu_err err;
	int rc = contexts_load(&s->contexts, &err);

	if (!rc)
		rc = fn(s, argv, arg, &err);
	if (!rc)
		rc = contexts_save(&s->contexts, &err);
	if (rc)
		session_fail(s, &err);
	return session_end(s);
}

/* --- add ------------------------------------------------------------------------ */

struct add {
	const char *values[CONTEXT_FIELDS];
	const char *store_token;
	bool use, replace;
};

/* From wherever the context is used. */
static int
set_path(struct context *item, enum context_field f, const char *path, struct slu_err *err)
{
	char folder[PATH_MAX], whole[2 * PATH_MAX];

	if (!path || path[0] == '/')
		return context_set(item, f, path, err);
	if (access(path, F_OK) || !getcwd(folder, sizeof folder))
		return slu_fail(err, SLU_EFAILED, "%s: %m", path);
	(void)snprintf(whole, sizeof whole, "%s/%s", folder, path);
	return context_set(item, f, whole, err);
}

static int
set_token(struct context *item, const char *file, struct slu_err *err)
{
	char *token = NULL;
	int rc = credentials_file(file, &token, err);

	if (!rc)
		rc = context_set(item, CONTEXT_TOKEN, token, err);
	mem_free(token);
	return rc;
}

static int
fill(struct context *item, const struct add *a, struct slu_err *err)
{
	int rc = 0;

	for (int f = 0; f < CONTEXT_FIELDS && !rc; f++)
		rc = f == CONTEXT_SERVER || f == CONTEXT_NAMESPACE || f == CONTEXT_TOKEN
			     ? context_set(item, f, a->values[f], err)
			     : set_path(item, f, a->values[f], err);
	if (!rc && a->store_token)
		rc = set_token(item, a->store_token, err);
	return rc;
}

static int
add(struct session *s, char **argv, void *arg, struct slu_err *err)
{
	struct contexts *const c = &s->contexts;
	const struct add *const a = arg;
	struct context *item = NULL;
	struct slu_err unused;
	int rc = 0;

	if (!a->replace || contexts_find(c, argv[0], &item, &unused))
		rc = contexts_add(c, argv[0], &item, err);
	if (rc == SLU_EEXISTS)
		return slu_fail(err, rc, "context %s exists; --replace writes it anew", argv[0]);
	if (!rc)
		rc = fill(item, a, err);
	if (!rc && a->use)
		(void)snprintf(c->current, sizeof c->current, "%s", item->name);
	if (!rc && !c->current[0])
		session_note(s, "use it with: sluice context use %s", item->name);
	return rc;
}

int
cli_context_add(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "context add NAME --server ADDRESS [options]",
		.text = "Give a name to a server, with the namespace to work in and what to show to the\n"
			"server. The token stays in its file, or with --store-token is kept in the file of\n"
			"the contexts, which only its owner may read.\n",
		.examples = "  sluice context add local --server 127.0.0.1:7171 --use\n"
			    "  sluice context add prod -s https://queue.example:7443 -n payments --token-file ~/token\n"
			    "  sluice token --secret-file secret 'payments:*' | sluice context add test -s 10.0.0.7:7171 --store-token -\n",
		.min_words = 1,
		.max_words = 1,
	};
	struct session s = SESSION("context add");
	struct add a = { 0 };
	const struct arg rows[] = {
		{ "-s, --server ADDRESS", ARG_TEXT, &a.values[CONTEXT_SERVER], "host:port, https://host:port or unix:PATH" },
		{ "-n, --namespace NAMESPACE", ARG_TEXT, &a.values[CONTEXT_NAMESPACE], "whose queues (default)" },
		{ "--token-file FILE", ARG_TEXT, &a.values[CONTEXT_TOKEN_FILE], "where the token is" },
		{ "--store-token FILE", ARG_TEXT, &a.store_token, "keep the token that this file holds; - is stdin" },
		{ "--ca-file FILE", ARG_TEXT, &a.values[CONTEXT_CA_FILE], "https: who may have signed the server's certificate" },
		{ "--cert FILE", ARG_TEXT, &a.values[CONTEXT_CERT], "https: the certificate to show to the server" },
		{ "--cert-key FILE", ARG_TEXT, &a.values[CONTEXT_CERT_KEY], "https: its key" },
		{ "-u, --use", ARG_FLAG, &a.use, "make it the current one" },
		{ "--replace", ARG_FLAG, &a.replace, "write one anew that exists" },
		SESSION_OUTPUT_ROWS(&s),
	};

	s.local = true;
	if (!session_begin(&s, &help, &argc, &argv, rows, COUNT(rows)))
		return s.exit;
	if (!a.values[CONTEXT_SERVER])
		session_usage(&s, "missing --server ADDRESS");
	else if (a.values[CONTEXT_TOKEN_FILE] && a.store_token)
		session_usage(&s, "--token-file or --store-token, not both");
	else
		return change(&s, argv, add, &a);
	return session_end(&s);
}

/* --- use, rename, remove -------------------------------------------------------- */

static int
use(struct session *s, char **argv, void *arg, struct slu_err *err)
{
	struct contexts *const c = &s->contexts;
	struct context *item;
	int rc = 0;

	c->current[0] = '\0';
	if (!*(const bool *)arg)
		rc = contexts_find(c, argv[0], &item, err);
	if (!rc && !*(const bool *)arg)
		(void)snprintf(c->current, sizeof c->current, "%s", item->name);
	return rc;
}

int
cli_context_use(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "context use CONTEXT [options]",
		.text = "Make a context the current one: commands use it that name no other, and no server\n"
			"(--server, SLUICE_SERVER).\n",
		.examples = "  sluice context use prod\n  sluice context use --none\n",
		.max_words = 1,
	};
	struct session s = SESSION("context use");
	bool none = false;
	const struct arg rows[] = {
		{ "--none", ARG_FLAG, &none, "no context is the current one" },
		SESSION_OUTPUT_ROWS(&s),
	};

	s.local = true;
	if (!session_begin(&s, &help, &argc, &argv, rows, COUNT(rows)))
		return s.exit;
	if (none == (argc > 0)) {
		session_usage(&s, none ? "a context or --none, not both" : "missing CONTEXT");
		return session_end(&s);
	}
	return change(&s, argv, use, &none);
}

static int
rename_one(struct session *s, char **argv, void *arg, struct slu_err *err)
{
	struct contexts *const c = &s->contexts;
	struct context *old, *new;
	int rc = contexts_find(c, argv[0], &old, err);

	(void)arg;
	if (!rc)
		rc = contexts_add(c, argv[1], &new, err);
	if (rc)
		return rc;
	rc = contexts_find(c, argv[0], &old, err); /* it may have been moved */
	assert(!rc);
	memcpy(new->values, old->values, sizeof new->values);
	memset(old->values, 0, sizeof old->values);
	if (strcmp(c->current, old->name) == 0)
		(void)snprintf(c->current, sizeof c->current, "%s", new->name);
	contexts_remove(c, old);
	return 0;
}

int
cli_context_rename(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "context rename CONTEXT NAME [options]",
		.text = "Give a context another name.\n",
		.examples = "  sluice context rename prod production\n",
		.min_words = 2,
		.max_words = 2,
	};
	struct session s = SESSION("context rename");
	const struct arg rows[] = { SESSION_OUTPUT_ROWS(&s) };

	s.local = true;
	if (!session_begin(&s, &help, &argc, &argv, rows, COUNT(rows)))
		return s.exit;
	return change(&s, argv, rename_one, NULL);
}

static int
remove_one(struct session *s, char **argv, void *arg, struct slu_err *err)
{
	struct context *item;
	const int rc = contexts_find(&s->contexts, argv[0], &item, err);

	(void)arg;
	if (!rc)
		contexts_remove(&s->contexts, item);
	return rc;
}

int
cli_context_remove(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "context remove CONTEXT [options]",
		.text = "Forget a context, and the token that is kept in it.\n",
		.examples = "  sluice context remove test\n",
		.min_words = 1,
		.max_words = 1,
	};
	struct session s = SESSION("context remove");
	const struct arg rows[] = { SESSION_OUTPUT_ROWS(&s) };

	s.local = true;
	if (!session_begin(&s, &help, &argc, &argv, rows, COUNT(rows)))
		return s.exit;
	return change(&s, argv, remove_one, NULL);
}

/* --- list, show ----------------------------------------------------------------- */

static bool
is_current(const struct contexts *c, const struct context *item)
{
	return strcmp(c->current, item->name) == 0;
}

/* A token is never shown. */
static const char *
shown(const struct context *item, enum context_field f)
{
	return f == CONTEXT_TOKEN && item->values[f] ? "***" : item->values[f];
}

static void
print_json(const struct contexts *c, const struct context *item)
{
	struct json_out w;
	struct buf line;

	buf_init(&line, SIZE_MAX);
	json_out_init(&w, &line);
	json_out_object(&w, NULL);
	json_out_str(&w, "name", slice_of(item->name));
	json_out_bool(&w, "current", is_current(c, item));
	for (int f = 0; f < CONTEXT_FIELDS; f++)
		if (item->values[f])
			json_out_str(&w, context_field_name(f), slice_of(shown(item, f)));
	json_out_close(&w);
	json_out_end(&w);
	puts(buf_str(&line));
	buf_release(&line);
}

static const char *
credentials_of(const struct context *item)
{
	if (item->values[CONTEXT_TOKEN] || item->values[CONTEXT_TOKEN_FILE])
		return item->values[CONTEXT_CERT] ? "token, certificate" : "token";
	return item->values[CONTEXT_CERT] ? "certificate" : "-";
}

static void
print_list(const struct contexts *c)
{
	static const char *const heads[] = { "CURRENT", "NAME", "SERVER", "NAMESPACE", "CREDENTIALS" };
	struct table t;

	table_init(&t, heads, COUNT(heads), 0);
	for (unsigned i = 0; i < c->n; i++) {
		const struct context *const item = &c->items[i];
		const char *const space = item->values[CONTEXT_NAMESPACE];

		table_cell(&t, "%s", is_current(c, item) ? "*" : "");
		table_cell(&t, "%s", item->name);
		table_cell(&t, "%s", item->values[CONTEXT_SERVER] ? item->values[CONTEXT_SERVER] : "-");
		table_cell(&t, "%s", space ? space : "default");
		table_cell(&t, "%s", credentials_of(item));
	}
	(void)table_print(&t, stdout, session_colours(stdout)); /* no memory: no table */
	table_release(&t);
}

int
cli_context_list(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "context list [options]",
		.text = "The contexts, and which is the current one.\n",
		.examples = "  sluice context list\n  sluice context list --json\n",
	};
	struct session s = SESSION("context list");
	const struct arg rows[] = { SESSION_OUTPUT_ROWS(&s) };
	struct slu_err err;

	s.local = true;
	if (!session_begin(&s, &help, &argc, &argv, rows, COUNT(rows)))
		return s.exit;
	if (contexts_load(&s.contexts, &err))
		session_fail(&s, &err);
	else if (s.contexts.n == 0)
		session_nothing(&s, "no contexts yet; `sluice context add` makes one");
	else if (!s.json)
		print_list(&s.contexts);
	for (unsigned i = 0; i < s.contexts.n && s.json; i++)
		print_json(&s.contexts, &s.contexts.items[i]);
	return session_end(&s);
}

int
cli_context_show(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "context show [CONTEXT] [options]",
		.text = "One context, or the current one. A token is not shown.\n",
		.examples = "  sluice context show\n  sluice context show prod --json\n",
		.max_words = 1,
	};
	struct session s = SESSION("context show");
	const struct arg rows[] = { SESSION_OUTPUT_ROWS(&s) };
	struct context *item;
	struct slu_err err;
	int rc;

	s.local = true;
	if (!session_begin(&s, &help, &argc, &argv, rows, COUNT(rows)))
		return s.exit;
	rc = contexts_load(&s.contexts, &err);
	if (!rc && argc == 0 && !s.contexts.current[0])
		rc = slu_fail(&err, SLU_ENOTFOUND, "no context is the current one; see `sluice context list`");
	if (!rc)
		rc = contexts_find(&s.contexts, argc ? argv[0] : s.contexts.current, &item, &err);
	if (rc)
		session_fail(&s, &err);
	else if (s.json)
		print_json(&s.contexts, item);
	for (int f = 0; f < CONTEXT_FIELDS && !rc && !s.json; f++)
		if (item->values[f])
			printf("%-12s%s\n", context_field_name(f), shown(item, f));
	return session_end(&s);
}
