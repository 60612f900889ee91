/*
 * contexts.c - `sluice context`: add, use, list, show, rename and remove contexts.
 */
#include "cli/lib/credentials.h"
#include "cli/lib/json_line.h"
#include "cli/lib/session.h"
#include "cli/lib/table.h"

#include "base/mem.h"

#include <assert.h>
#include <limits.h>
#include <unistd.h>

/* Reads the file, changes it and writes it. */
static int
change(struct session *s, int (*fn)(struct session *s, struct slu_err *err), struct slu_err *err)
{
	int rc = contexts_load(&s->contexts, err);

	if (!rc)
		rc = fn(s, err);
	return rc ? rc : contexts_save(&s->contexts, err);
}

/* --- add ------------------------------------------------------------------------ */

struct add {
	struct session s;
	const char *values[CONTEXT_FIELDS];
	const char *store_token;
	bool use, replace;
};

/* Stores an absolute path: the context works in every folder. */
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
add(struct session *s, struct slu_err *err)
{
	const struct add *const a = (const struct add *)s;
	struct contexts *const c = &s->contexts;
	const char *const name = s->words[0];
	struct context *item = NULL;
	struct slu_err unused;
	int rc = 0;

	if (!a->replace || contexts_find(c, name, &item, &unused))
		rc = contexts_add(c, name, &item, err);
	if (rc == SLU_EEXISTS)
		return slu_fail(err, rc, "context %s exists; --replace overwrites it", name);
	if (!rc)
		rc = fill(item, a, err);
	if (!rc && a->use)
		(void)snprintf(c->current, sizeof c->current, "%s", item->name);
	if (!rc && !c->current[0])
		session_note(s, "use it with: sluice context use %s", item->name);
	return rc;
}

static int
run_add(struct session *s, struct slu_err *err)
{
	struct add *const a = (void *)s;

	if (!a->values[CONTEXT_SERVER])
		return session_usage(&a->s, "missing --server ADDRESS");
	if (a->values[CONTEXT_TOKEN_FILE] && a->store_token)
		return session_usage(&a->s, "--token-file and --store-token exclude each other");
	return change(&a->s, add, err);
}

const struct command cli_context_add = {
	.name = "context add",
	.summary = "add a context: a server with namespace and credentials",
	.usage = "NAME --server ADDRESS [options]",
	.text = "Adds a context: a name for a server, a namespace and credentials. The token stays in\n"
		"its file; with --store-token it is stored in the file of the contexts, which only its\n"
		"owner may read.\n",
	.examples = "  sluice context add local --server 127.0.0.1:7171 --use\n"
		    "  sluice context add prod -s https://queue.example:7443 -n payments --token-file ~/token\n"
		    "  sluice token --secret-file secret 'payments:*' | sluice context add test -s 10.0.0.7:7171 --store-token -\n",
	.options = CLI_JSON,
	CLI_ARGS({ "-s, --server ADDRESS", ARG_TEXT, AT(add, values[CONTEXT_SERVER]), "host:port, https://host:port or unix:PATH" },
		 { "-n, --namespace NAMESPACE", ARG_TEXT, AT(add, values[CONTEXT_NAMESPACE]), "namespace (default)" },
		 { "--token-file FILE", ARG_TEXT, AT(add, values[CONTEXT_TOKEN_FILE]), "file with the token" },
		 { "--store-token FILE", ARG_TEXT, AT(add, store_token), "store the token of this file in the context; - is stdin" },
		 { "--ca-file FILE", ARG_TEXT, AT(add, values[CONTEXT_CA_FILE]), "https: CAs that the server's certificate is checked against" },
		 { "--cert FILE", ARG_TEXT, AT(add, values[CONTEXT_CERT]), "https: certificate of this client" },
		 { "--cert-key FILE", ARG_TEXT, AT(add, values[CONTEXT_CERT_KEY]), "https: key of the certificate" },
		 { "-u, --use", ARG_FLAG, AT(add, use), "make the context the current one" },
		 { "--replace", ARG_FLAG, AT(add, replace), "overwrite an existing context" }),
	.size = sizeof(struct add),
	.run = run_add,
};

/* --- use, rename, remove -------------------------------------------------------- */

struct use {
	struct session s;
	bool none;
};

static int
use(struct session *s, struct slu_err *err)
{
	struct contexts *const c = &s->contexts;
	struct context *item;
	int rc;

	c->current[0] = '\0';
	if (s->n_words == 0)
		return 0;
	rc = contexts_find(c, s->words[0], &item, err);
	if (!rc)
		(void)snprintf(c->current, sizeof c->current, "%s", item->name);
	return rc;
}

static int
run_use(struct session *s, struct slu_err *err)
{
	struct use *const u = (void *)s;

	if (u->none == (u->s.n_words > 0))
		return session_usage(&u->s, u->none ? "CONTEXT and --none exclude each other" : "missing CONTEXT");
	return change(&u->s, use, err);
}

const struct command cli_context_use = {
	.name = "context use",
	.summary = "make a context the current one",
	.usage = "CONTEXT [options]",
	.text = "Makes a context the current one. Commands use it unless they name another context or a\n"
		"server (--server, SLUICE_SERVER).\n",
	.examples = "  sluice context use prod\n  sluice context use --none\n",
	.words = { 0, 1 },
	.options = CLI_JSON,
	CLI_ARGS({ "--none", ARG_FLAG, AT(use, none), "use no context" }),
	.size = sizeof(struct use),
	.run = run_use,
};

static int
rename_one(struct session *s, struct slu_err *err)
{
	struct contexts *const c = &s->contexts;
	struct context *old, *new;
	int rc = contexts_find(c, s->words[0], &old, err);

	if (!rc)
		rc = contexts_add(c, s->words[1], &new, err);
	if (rc)
		return rc;
	rc = contexts_find(c, s->words[0], &old, err); /* contexts_add may have moved it */
	assert(!rc);
	memcpy(new->values, old->values, sizeof new->values);
	memset(old->values, 0, sizeof old->values);
	if (strcmp(c->current, old->name) == 0)
		(void)snprintf(c->current, sizeof c->current, "%s", new->name);
	contexts_remove(c, old);
	return 0;
}

static int
run_rename(struct session *s, struct slu_err *err)
{
	return change(s, rename_one, err);
}

const struct command cli_context_rename = {
	.name = "context rename",
	.summary = "rename a context",
	.usage = "CONTEXT NAME [options]",
	.text = "Renames a context.\n",
	.examples = "  sluice context rename prod production\n",
	.options = CLI_JSON,
	.run = run_rename,
};

static int
remove_one(struct session *s, struct slu_err *err)
{
	struct context *item;
	const int rc = contexts_find(&s->contexts, s->words[0], &item, err);

	if (!rc)
		contexts_remove(&s->contexts, item);
	return rc;
}

static int
run_remove(struct session *s, struct slu_err *err)
{
	return change(s, remove_one, err);
}

const struct command cli_context_remove = {
	.name = "context remove",
	.summary = "remove a context",
	.usage = "CONTEXT [options]",
	.text = "Removes a context, with the token that is stored in it.\n",
	.examples = "  sluice context remove test\n",
	.options = CLI_JSON,
	.run = run_remove,
};

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
	struct json_line l;
	struct json_out *const w = json_line_begin(&l);

	json_out_str(w, "name", slice_of(item->name));
	json_out_bool(w, "current", is_current(c, item));
	for (int f = 0; f < CONTEXT_FIELDS; f++)
		if (item->values[f])
			json_out_str(w, context_field_name(f), slice_of(shown(item, f)));
	json_line_end(&l, stdout);
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
	struct text_table t;

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
	(void)table_print(&t, stdout, session_colours(stdout)); /* without memory there is no table */
	table_release(&t);
}

static int
list(struct session *s, struct slu_err *err)
{
	const int rc = contexts_load(&s->contexts, err);

	if (rc)
		return rc;
	if (s->contexts.n == 0)
		return session_nothing(s, "no contexts yet; `sluice context add` makes one");
	if (!s->json)
		print_list(&s->contexts);
	for (unsigned i = 0; i < s->contexts.n && s->json; i++)
		print_json(&s->contexts, &s->contexts.items[i]);
	return 0;
}

const struct command cli_context_list = {
	.name = "context list",
	.summary = "list the contexts",
	.usage = "[options]",
	.text = "Lists the contexts and marks the current one.\n",
	.examples = "  sluice context list\n  sluice context list --json\n",
	.options = CLI_JSON,
	.run = list,
};

static int
show(struct session *s, struct slu_err *err)
{
	struct context *item;
	int rc = contexts_load(&s->contexts, err);

	if (!rc && s->n_words == 0 && !s->contexts.current[0])
		rc = slu_fail(err, SLU_ENOTFOUND, "no current context; see `sluice context list`");
	if (!rc)
		rc = contexts_find(&s->contexts, s->n_words ? s->words[0] : s->contexts.current, &item, err);
	if (!rc && s->json)
		print_json(&s->contexts, item);
	for (int f = 0; f < CONTEXT_FIELDS && !rc && !s->json; f++)
		if (item->values[f])
			printf("%-12s%s\n", context_field_name(f), shown(item, f));
	return rc;
}

const struct command cli_context_show = {
	.name = "context show",
	.summary = "show a context",
	.usage = "[CONTEXT] [options]",
	.text = "Shows a context, or the current one. A token is not shown.\n",
	.examples = "  sluice context show\n  sluice context show prod --json\n",
	.options = CLI_JSON,
	.run = show,
};
