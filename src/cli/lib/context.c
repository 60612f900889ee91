#include "cli/lib/context.h"

#include "base/mem.h"
#include "base/nearest.h"
#include "conf/yaml.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEPARATOR "/" /* separates the parts of a path in the file: a name may have dots */

static const char *const fields[CONTEXT_FIELDS] = {
	[CONTEXT_SERVER] = "server",
	[CONTEXT_NAMESPACE] = "namespace",
	[CONTEXT_TOKEN_FILE] = "token_file",
	[CONTEXT_TOKEN] = "token",
	[CONTEXT_CA_FILE] = "ca_file",
	[CONTEXT_CERT] = "cert",
	[CONTEXT_CERT_KEY] = "cert_key",
};

const char *
context_field_name(enum context_field f)
{
	return fields[f];
}

/* --- the list ------------------------------------------------------------------- */

static void
release_values(struct context *item)
{
	for (int f = 0; f < CONTEXT_FIELDS; f++)
		mem_free(item->values[f]);
	*item = (struct context){ 0 };
}

void
contexts_release(struct contexts *c)
{
	for (unsigned i = 0; i < c->n; i++)
		release_values(&c->items[i]);
	mem_free(c->items);
	*c = (struct contexts){ 0 };
}

static struct context *
look_up(const struct contexts *c, const char *name)
{
	for (unsigned i = 0; i < c->n; i++)
		if (strcmp(c->items[i].name, name) == 0)
			return &c->items[i];
	return NULL;
}

int
contexts_find(struct contexts *c, const char *name, struct context **out, struct slu_err *err)
{
	struct nearest best = nearest_to(name);

	*out = look_up(c, name);
	if (*out)
		return 0;
	for (unsigned i = 0; i < c->n; i++)
		nearest_try(&best, c->items[i].name);
	if (best.name)
		return slu_fail(err, SLU_ENOTFOUND, "unknown context: %s; did you mean %s?", name, best.name);
	return slu_fail(err, SLU_ENOTFOUND, "unknown context: %s; see `sluice context list`", name);
}

int
contexts_add(struct contexts *c, const char *name, struct context **out, struct slu_err *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@";
	struct context *p;
	unsigned i = c->n;

	if (!*name || name[0] == '-' || name[strspn(name, allowed)] || strlen(name) >= CONTEXT_NAME)
		return slu_fail(err, SLU_EINVAL, "invalid context name: %.80s; expected at most %d letters, "
						 "digits, . _ - and @",
				name, CONTEXT_NAME - 1);
	if (look_up(c, name))
		return slu_fail(err, SLU_EEXISTS, "context %s exists", name);
	p = c->n < CONTEXTS_MAX ? mem_realloc(c->items, (c->n + 1) * sizeof *p) : NULL;
	if (!p)
		return slu_fail(err, SLU_ENOMEM, "too many contexts; expected at most %d", CONTEXTS_MAX);
	c->items = p;
	for (; i > 0 && strcmp(p[i - 1].name, name) > 0; i--)
		p[i] = p[i - 1];
	p[i] = (struct context){ 0 };
	(void)snprintf(p[i].name, CONTEXT_NAME, "%s", name); /* fits */
	c->n++;
	*out = &p[i];
	return 0;
}

void
contexts_remove(struct contexts *c, struct context *item)
{
	const unsigned at = (unsigned)(item - c->items);

	if (strcmp(c->current, item->name) == 0)
		c->current[0] = '\0';
	release_values(item);
	memmove(item, item + 1, (c->n - at - 1) * sizeof *item);
	c->n--;
}

int
context_set(struct context *item, enum context_field f, const char *value, struct slu_err *err)
{
	char *const copy = value ? mem_strdup(value) : NULL;

	if (value && !copy)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	mem_free(item->values[f]);
	item->values[f] = copy;
	return 0;
}

/* --- reading -------------------------------------------------------------------- */

static void
find_file(struct contexts *c)
{
	const char *const xdg = getenv("XDG_CONFIG_HOME");
	const char *const home = getenv("HOME");
	int n = 0;

	if (xdg && *xdg)
		n = snprintf(c->file, sizeof c->file, "%s/sluice/contexts.yaml", xdg);
	else if (home && *home)
		n = snprintf(c->file, sizeof c->file, "%s/.config/sluice/contexts.yaml", home);
	if (n >= (int)sizeof c->file)
		c->file[0] = '\0';
}

/* "contexts/prod/server" */
static int
take_entry(struct contexts *c, const struct yaml_entry *e, struct slu_err *err)
{
	char name[YAML_PATH];
	const char *slash;
	struct context *item;
	int rc = 0;

	if (strcmp(e->path, "current") == 0) {
		(void)snprintf(c->current, sizeof c->current, "%s", e->value ? e->value : "");
		return 0;
	}
	slash = strncmp(e->path, "contexts/", 9) == 0 ? strchr(e->path + 9, '/') : NULL;
	if (!slash)
		return e->kind == YAML_NOTHING ? 0 : slu_fail(err, SLU_EINVAL, "%s: not known", e->path);
	(void)snprintf(name, sizeof name, "%.*s", (int)(slash - e->path - 9), e->path + 9);
	item = look_up(c, name);
	if (!item)
		rc = contexts_add(c, name, &item, err);
	for (int f = 0; f < CONTEXT_FIELDS && !rc; f++)
		if (strcmp(fields[f], slash + 1) == 0)
			return context_set(item, f, e->value, err);
	return rc ? rc : slu_fail(err, SLU_EINVAL, "%s: not known", e->path);
}

/* Only the owner may read a file with a token. */
static int
check_mode(const struct contexts *c, struct slu_err *err)
{
	struct stat st;

	if (stat(c->file, &st) || !(st.st_mode & (S_IRWXG | S_IRWXO)))
		return 0;
	for (unsigned i = 0; i < c->n; i++)
		if (c->items[i].values[CONTEXT_TOKEN])
			return slu_fail(err, SLU_EINVAL, "%s: other users can read the token in this file; run "
							 "`chmod 600` on it",
					c->file);
	return 0;
}

int
contexts_load(struct contexts *c, struct slu_err *err)
{
	struct yaml_doc doc = { .separator = SEPARATOR };
	struct conf_faults faults = { 0 };
	struct slu_err why;
	int rc = 0;

	*c = (struct contexts){ 0 };
	find_file(c);
	if (!c->file[0] || access(c->file, F_OK))
		return 0;
	yaml_load(&doc, c->file, &faults);
	if (faults_any(&faults))
		rc = slu_fail(err, SLU_EINVAL, "%s", faults.n ? faults.items[0] : "out of memory");
	for (unsigned i = 0; i < doc.n && !rc; i++)
		if (take_entry(c, &doc.entries[i], &why))
			rc = slu_fail(err, SLU_EINVAL, "%s:%u: %s", c->file, doc.entries[i].line, why.text);
	if (!rc)
		rc = check_mode(c, err);
	yaml_release(&doc);
	faults_release(&faults);
	return rc;
}

/* --- writing -------------------------------------------------------------------- */

/* Writes a value in single quotes: ' is doubled, and ${ is not a variable. */
static void
put_value(FILE *f, const char *name, const char *value)
{
	fprintf(f, "%s: '", name);
	for (const char *p = value; *p; p++) {
		if (p[0] == '$' && p[1] == '{')
			fputc('$', f);
		if (*p == '\'')
			fputc('\'', f);
		fputc(*p, f);
	}
	fputs("'\n", f);
}

static void
put_contexts(FILE *f, const struct contexts *c)
{
	fputs("# Written by `sluice context`.\n", f);
	if (c->current[0])
		put_value(f, "current", c->current);
	fputs(c->n ? "contexts:\n" : "", f);
	for (unsigned i = 0; i < c->n; i++) {
		fprintf(f, "  '%s':\n", c->items[i].name);
		for (int k = 0; k < CONTEXT_FIELDS; k++) {
			if (!c->items[i].values[k])
				continue;
			fputs("    ", f);
			put_value(f, fields[k], c->items[i].values[k]);
		}
	}
}

/* Creates the missing folders of the path. */
static void
make_folders(const char *file)
{
	char path[4096];

	(void)snprintf(path, sizeof path, "%s", file);
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		(void)mkdir(path, 0700);
		*p = '/';
	}
}

/* CONTEXT-3 */
int
contexts_save(const struct contexts *c, struct slu_err *err)
{
	char temporary[sizeof c->file + 16];
	FILE *f = NULL;
	bool whole;
	int fd;

	if (!c->file[0])
		return slu_fail(err, SLU_EFAILED, "no folder for contexts: set XDG_CONFIG_HOME or HOME");
	make_folders(c->file);
	(void)snprintf(temporary, sizeof temporary, "%s.XXXXXX", c->file);
	fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
	if (fd >= 0)
		f = fdopen(fd, "w");
	if (!f) {
		slu_fail(err, SLU_EFAILED, "%s: %m", temporary);
		if (fd >= 0)
			close(fd);
		return SLU_EFAILED;
	}
	put_contexts(f, c);
	whole = fflush(f) == 0 && !ferror(f) && fsync(fd) == 0;
	whole = fclose(f) == 0 && whole;
	if (whole && rename(temporary, c->file) == 0)
		return 0;
	slu_fail(err, SLU_EFAILED, "%s: %m", c->file);
	(void)unlink(temporary);
	return SLU_EFAILED;
}
