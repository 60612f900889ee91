#include "conf/load.h"

#include "base/mem.h"
#include "base/nearest.h"
#include "conf/sharding.h"
#include "conf/slurp.h"
#include "conf/yaml.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* From weak to strong. */
enum source {
	FROM_NOTHING,
	FROM_DEFAULT,
	FROM_FILE,
	FROM_VARIABLE,
	FROM_FLAG
};

struct loading {
	const struct option_load *l;
	struct option_set *set;
	struct conf_faults *faults;
	const char *file;
	enum source source[OPTIONS_MAX];
	unsigned line[OPTIONS_MAX]; /* in the file; 0: not there */
};

/* --- one value ---------------------------------------------------------------- */

/* LOAD-2. */
static int
set_value(struct option_set *set, unsigned i, bool fresh, const char *value,
	  const char *origin, struct slu_err *err)
{
	const struct option *const o = &set->rows[i];
	char *const from = origin ? mem_strdup(origin) : NULL;
	int rc;

	if (origin && !from)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	if (fresh && o->kind->shape == SHAPE_LIST)
		o->kind->clear(option_place(set, i));
	rc = o->kind->read(o, option_place(set, i), value, err);
	if (rc) {
		mem_free(from);
		return rc;
	}
	mem_free(set->origins[i]);
	set->origins[i] = from;
	return 0;
}

int
load_one(struct option_set *set, unsigned row, const char *value, const char *origin,
	 struct slu_err *err)
{
	return set_value(set, row, true, value, origin, err);
}

/* name: the flag, variable or key, for the fault. */
static void
put_value(struct loading *g, unsigned i, enum source source, const char *value,
	  const char *origin, const char *name)
{
	struct slu_err why;

	if (set_value(g->set, i, g->source[i] != source, value, origin, &why))
		faults_add(g->faults, "%s: %s", name, why.text);
	g->source[i] = source;
}

/* The value is the content of the file, without trailing newlines. */
static void
put_secret(struct loading *g, unsigned i, enum source source, const char *file,
	   const char *origin, const char *name)
{
	struct slu_err why;
	struct buf text;

	buf_init(&text, OPTION_VALUE);
	if (slurp(file, &text, &why)) {
		faults_add(g->faults, "%s: %s", name, why.text);
	} else if (memchr(buf_str(&text), '\0', text.n)) {
		faults_add(g->faults, "%s: %s: invalid secret; expected text without NUL bytes", name, file);
	} else {
		while (text.n > 0 && strchr("\r\n", text.p[text.n - 1]))
			text.n--;
		put_value(g, i, source, buf_str(&text), origin, name);
	}
	buf_release(&text);
}

/* --- the file ----------------------------------------------------------------- */

/* True if path is the first part of keys ("log" of "log.level"); keys: their names. */
static bool
is_section(const struct option_set *s, const char *path, char *keys, size_t room)
{
	const size_t n = strlen(path);
	bool found = false;

	*keys = '\0';
	for (unsigned i = 0; i < s->n; i++) {
		const char *const key = s->rows[i].key;
		const size_t used = strlen(keys);

		if (strncmp(key, path, n) != 0 || key[n] != '.')
			continue;
		(void)snprintf(keys + used, room - used, "%s%s", found ? ", " : "", key);
		found = true;
	}
	return found;
}

static void
unknown_key(struct loading *g, const struct yaml_entry *e)
{
	const char *const near = option_nearest(g->set, e->path);
	char keys[200];

	if (is_section(g->set, e->path, keys, sizeof keys)) {
		if (e->kind != YAML_NOTHING)
			faults_add(g->faults, "%s:%u: %s: expected a section with the keys %s, not a value",
				   g->file, e->line, e->path, keys);
	} else if (near) {
		faults_add(g->faults, "%s:%u: unknown key %s; did you mean %s?",
			   g->file, e->line, e->path, near);
	} else {
		faults_add(g->faults, "%s:%u: unknown key %s; docs/config.md lists all keys",
			   g->file, e->line, e->path);
	}
}

/* The row of a path: "listen" and "listen[2]" have the same. The key of a secret may end in
 * _file. */
static unsigned
find_row(const struct loading *g, const char *path, bool *item, bool *in_file)
{
	static const char suffix[] = "_file";
	struct slice key = { path, strcspn(path, "[") };
	unsigned i;

	*item = path[key.n] != '\0';
	*in_file = false;
	if (*item && (path[strlen(path) - 1] != ']' || strchr(path + key.n + 1, '[')))
		return g->set->n; /* a nested list, or a key with brackets */
	i = option_find(g->set, key);
	if (i < g->set->n || key.n < sizeof suffix)
		return i;
	key.n -= sizeof suffix - 1;
	i = option_find(g->set, key);
	*in_file = i < g->set->n && g->set->rows[i].kind->secret &&
		   strcmp(path + key.n, suffix) == 0;
	return *in_file ? i : g->set->n;
}

/* Why the row cannot take this entry, or NULL. */
static const char *
misplaced(const struct loading *g, unsigned i, const struct yaml_entry *e, bool item)
{
	const bool list = g->set->rows[i].kind->shape == SHAPE_LIST;

	if (g->set->rows[i].no_file)
		return "not allowed in the file; use the flag or the variable";
	if (!list && (item || e->kind == YAML_EMPTY_LIST))
		return "expected one value, not a list";
	if (e->kind == YAML_NOTHING)
		return "missing value; remove the key to use the default";
	if (g->line[i] && !item)
		return "is set twice";
	return NULL;
}

static void
take_entry(struct loading *g, const struct yaml_entry *e)
{
	char origin[FAULT_TEXT], name[2 * FAULT_TEXT];
	bool item, in_file;
	const unsigned i = find_row(g, e->path, &item, &in_file);
	const char *wrong;

	if (i == g->set->n && g->l->sharding && sharding_is_part(g->l->sharding, e->path)) {
		sharding_take(g->l->sharding, g->file, e, g->faults);
		return;
	}
	if (i == g->set->n) {
		unknown_key(g, e);
		return;
	}
	(void)snprintf(origin, sizeof origin, "%s:%u", g->file, e->line); /* cut when long */
	(void)snprintf(name, sizeof name, "%s: %s", origin, e->path);
	wrong = misplaced(g, i, e, item);
	g->line[i] = e->line;
	if (wrong)
		faults_add(g->faults, "%s: %s", name, wrong);
	else if (in_file)
		put_secret(g, i, FROM_FILE, e->value, origin, name);
	else
		put_value(g, i, FROM_FILE, e->kind == YAML_VALUE ? e->value : "", origin, name);
}

static void
load_file(struct loading *g)
{
	struct yaml_doc doc = { 0 };

	yaml_load(&doc, g->file, g->faults);
	for (unsigned i = 0; i < doc.n; i++)
		take_entry(g, &doc.entries[i]);
	yaml_release(&doc);
}

/* --- the environment ---------------------------------------------------------- */

static void
load_variable(struct loading *g, unsigned i)
{
	const struct option *const o = &g->set->rows[i];
	char name[OPTION_NAME], origin[OPTION_NAME + 16], file_name[OPTION_NAME + 8];
	const char *const value = getenv(option_variable(o, name));
	const char *file;

	(void)snprintf(file_name, sizeof file_name, "%s_FILE", name);
	file = o->kind->secret ? getenv(file_name) : NULL;
	(void)snprintf(origin, sizeof origin, "env %s", file ? file_name : name);
	if (file && value)
		faults_add(g->faults, "%s and %s are both set: keep one", name, file_name);
	else if (file)
		put_secret(g, i, FROM_VARIABLE, file, origin, file_name);
	else if (value)
		put_value(g, i, FROM_VARIABLE, value, origin, name);
}

/* --- the command line --------------------------------------------------------- */

/* A word of the command line, and the next word if that is its value. */
struct word {
	const char *text;  /* "--drain=5s" */
	const char *value; /* behind the =, or NULL */
	unsigned row;
	bool in_file; /* --secret-file */
};

/* True if the word is this flag with this suffix. */
static bool
names(const char *word, const char *flag, const char *suffix, const char **value)
{
	const size_t n = strlen(flag), m = strlen(suffix);

	if (strncmp(word, flag, n) != 0 || strncmp(word + n, suffix, m) != 0)
		return false;
	if (word[n + m] != '\0' && word[n + m] != '=')
		return false;
	*value = word[n + m] ? word + n + m + 1 : NULL;
	return true;
}

static void
find_flag(const struct option_set *s, struct word *w)
{
	char flag[OPTION_NAME];

	for (w->row = 0; w->row < s->n && strncmp(w->text, "--", 2) == 0; w->row++) {
		(void)option_flag(&s->rows[w->row], flag);
		if (names(w->text + 2, flag, "", &w->value))
			return;
		w->in_file = s->rows[w->row].kind->secret &&
			     names(w->text + 2, flag, "-file", &w->value);
		if (w->in_file)
			return;
	}
	w->row = s->n;
}

static void
unknown_flag(struct loading *g, const char *word)
{
	struct nearest best;
	char written[OPTION_NAME], flags[OPTIONS_MAX][OPTION_NAME];

	(void)snprintf(written, sizeof written, "%.*s", (int)strcspn(word, "="), word);
	best = nearest_to(strncmp(written, "--", 2) == 0 ? written + 2 : written);
	for (unsigned i = 0; i < g->set->n; i++)
		nearest_try(&best, option_flag(&g->set->rows[i], flags[i]));
	for (const struct option_action *a = g->l->actions; a->flag; a++)
		nearest_try(&best, a->flag + 2);
	if (best.name)
		faults_add(g->faults, "unknown option %s; did you mean --%s?", word, best.name);
	else
		faults_add(g->faults, "unknown option %s; see --help", word);
}

static bool
take_action(struct loading *g, const char *word)
{
	for (const struct option_action *a = g->l->actions; a->flag; a++) {
		if (strcmp(word, a->flag) == 0) {
			*(bool *)(void *)((char *)g->set->values + a->offset) = true;
			return true;
		}
	}
	return false;
}

/* Faults and origin show the flag without its value. */
static void
take_flag(struct loading *g, const struct word *w, const char *value)
{
	const struct option *const o = &g->set->rows[w->row];
	char name[OPTION_NAME + 8], origin[OPTION_NAME + 16];

	(void)snprintf(name, sizeof name, "%.*s", (int)strcspn(w->text, "="), w->text);
	(void)snprintf(origin, sizeof origin, "flag %s", name);
	if (!value)
		faults_add(g->faults, "%s: missing value; expected %s", name, o->value);
	else if (w->in_file)
		put_secret(g, w->row, FROM_FLAG, value, origin, name);
	else if (o->kind->secret) /* LOAD-3 */
		faults_add(g->faults, "%s: every user of this machine can read flags; "
				      "use %s-file or the variable",
			   name, name);
	else
		put_value(g, w->row, FROM_FLAG, value, origin, name);
}

/* only: takes the flags of the row `config`; otherwise all other flags, and reports unknown ones. */
static void
load_flags(struct loading *g, int argc, char **argv, unsigned config, bool only)
{
	for (int i = 1; i < argc; i++) {
		struct word w = { .text = argv[i] };

		find_flag(g->set, &w);
		if (w.row == g->set->n) {
			if (!only && !take_action(g, w.text)) {
				unknown_flag(g, w.text);
				if (i + 1 < argc && *argv[i + 1] != '-')
					i++; /* the value of the unknown flag */
			}
			continue;
		}
		if (!w.value && g->set->rows[w.row].kind->flag)
			w.value = "true";
		if (!w.value && i + 1 < argc)
			w.value = argv[++i];
		if ((w.row == config) == only)
			take_flag(g, &w, w.value);
	}
}

/* --- all ---------------------------------------------------------------------- */

static void
load_defaults(struct loading *g)
{
	for (unsigned i = 0; i < g->set->n; i++)
		put_value(g, i, FROM_DEFAULT, g->set->rows[i].standard, NULL,
			  g->set->rows[i].key);
}

void
load_options(const struct option_load *l, int argc, char **argv)
{
	struct loading g = { .l = l, .set = l->set, .faults = l->faults };
	const unsigned config = option_find(l->set, SLICE("config"));

	assert(l->set->n <= OPTIONS_MAX);
	load_defaults(&g);
	if (config < l->set->n) {
		load_variable(&g, config);
		load_flags(&g, argc, argv, config, true);
		g.file = *(char *const *)option_place(l->set, config);
		if (g.file)
			load_file(&g);
	}
	for (unsigned i = 0; i < l->set->n; i++)
		if (i != config)
			load_variable(&g, i);
	load_flags(&g, argc, argv, config, false);
}
