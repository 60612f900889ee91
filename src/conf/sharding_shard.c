/*
 * sharding_shard.c - the entries of `shards`: a shard each, with the settings of its engine.
 */
#include "conf/sharding_private.h"

#include "base/mem.h"
#include "conf/options.h"
#include "conf/show.h"
#include "conf/slurp.h"
#include "conf/yaml.h"

#include <stdio.h>

#define AT(member) offsetof(struct sharding_shard, member)

/* clang-format off */
static const struct option rows[] = {
	{ .key = "engine", .kind = &text_kind, .offset = AT(engine_name), .standard = "",
	  .value = "NAME", .doc = "engine of the shard; empty: the setting `engine`" },
	{ .key = "poolSize", .kind = &count_kind, .offset = AT(pool), .standard = "1", .min = 1, .max = SHARDING_POOL,
	  .value = "N", .doc = "threads, each with a connection or a log of its own; fixed once a log has data; not set, and with a store: as many as the store has" },
	{ .key = "folder", .kind = &text_kind, .offset = AT(folder), .standard = "",
	  .value = "DIR", .doc = "folder of an engine that keeps files; empty: the shard's name below `data`" },
};
/* clang-format on */

enum {
	N_ROWS = sizeof rows / sizeof rows[0]
};

static const char of_shards[] = "shards.";

/* The rows of every shard. Callers that show a set only read it. */
static struct option_set
set_of(const struct sharding_shard *s)
{
	return (struct option_set){ rows, N_ROWS, (void *)s, s->origins };
}

/* The rows of its engine. */
static struct option_set
own_set(const struct sharding_shard *s)
{
	const struct engine_options *const own = s->options ? s->engine->options : NULL;

	if (!own)
		return (struct option_set){ 0 };
	return (struct option_set){ own->rows, own->n, s->options, s->origins + N_ROWS };
}

static void
release_fields(struct sharding_shard *s)
{
	while (s->n_fields > 0) {
		struct sharding_field *const f = &s->fields[--s->n_fields];

		if (f->value)
			explicit_bzero(f->value, strlen(f->value)); /* it may be a secret */
		mem_free(f->key);
		mem_free(f->value);
		mem_free(f->path);
	}
	mem_free(s->fields);
	s->fields = NULL;
}

void
sharding_shard_free(struct sharding_shard *s)
{
	struct option_set set, own;

	if (!s)
		return;
	set = set_of(s);
	own = own_set(s);
	if (s->origins) {
		option_set_release(&set);
		option_set_release(&own);
	}
	release_fields(s);
	mem_free(s->options);
	mem_free(s->origins);
	mem_free(s);
}

/* ---- Entries ---- */

static struct sharding_shard *
find(const struct sharding *s, struct slice name)
{
	for (unsigned i = 0; i < s->n_shards; i++)
		if (slice_eq(slice_of(s->shards[i]->name), name))
			return s->shards[i];
	return NULL;
}

const struct sharding_shard *
sharding_find(const struct sharding *s, const char *name)
{
	return find(s, slice_of(name));
}

/* True if the name is valid for a shard. */
static bool
is_name(struct slice name)
{
	for (size_t i = 0; i < name.n; i++) {
		const char c = name.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && !strchr("._-", c))
			return false;
	}
	return name.n > 0 && name.n < SHARDMAP_NAME && *name.p != '.';
}

static struct sharding_shard *
add_shard(struct sharding *s, struct slice name, unsigned line, struct conf_faults *faults)
{
	struct sharding_shard *const one = s->n_shards < SHARDING_SHARDS ? mem_zalloc(sizeof *one) : NULL;

	if (!one) {
		faults_add(faults, "%s:%u: shards: %s", s->file, line,
			   s->n_shards < SHARDING_SHARDS ? "out of memory" : "expected at most 256 shards");
		return NULL;
	}
	memcpy(one->name, name.p, name.n);
	one->line = line;
	s->shards[s->n_shards++] = one;
	return one;
}

/* True if a shard of some engine has this setting. */
static bool
is_field(const struct sharding *s, struct slice field)
{
	const struct option_set all = { rows, N_ROWS, NULL, NULL };

	if (option_find(&all, field) < N_ROWS)
		return true;
	for (const struct engine_ops *const *e = s->engines; *e; e++) {
		const struct engine_options *const own = (*e)->options;
		const struct option_set set = { own ? own->rows : NULL, own ? own->n : 0, NULL, NULL };

		if (option_find(&set, field) < set.n)
			return true;
	}
	return false;
}

static void
add_field(struct sharding *s, struct sharding_shard *shard, const char *key,
	  const struct yaml_entry *e, struct conf_faults *faults)
{
	struct sharding_field f = { .line = e->line };

	if (e->kind != YAML_VALUE) {
		faults_add(faults, "%s:%u: %s: expected one value", s->file, e->line, e->path);
		return;
	}
	for (unsigned i = 0; i < shard->n_fields; i++)
		if (strcmp(shard->fields[i].key, key) == 0) {
			faults_add(faults, "%s:%u: %s: is set twice", s->file, e->line, e->path);
			return;
		}
	f.key = mem_strdup(key);
	f.value = mem_strdup(e->value);
	f.path = mem_strdup(e->path);
	if (mem_resize(&shard->fields, shard->n_fields + 1, sizeof f) && f.key && f.value && f.path) {
		shard->fields[shard->n_fields++] = f;
		return;
	}
	faults_add(faults, "%s:%u: out of memory", s->file, e->line);
	mem_free(f.key);
	mem_free(f.value);
	mem_free(f.path);
}

/* "heavy.address": names may have dots, fields have none. */
void
sharding_take_shard(struct sharding *s, const struct engine_ops *alias, const char *rest,
		    const struct yaml_entry *e, struct conf_faults *faults)
{
	const char *const dot = strrchr(rest, '.');
	const bool bare = e->kind == YAML_NOTHING && (!dot || !is_field(s, slice_of(dot + 1)));
	const struct slice name = { rest, dot && !bare ? (size_t)(dot - rest) : strlen(rest) };
	struct sharding_shard *shard = find(s, name);

	if (!is_name(name)) {
		faults_add(faults, "%s:%u: %s: invalid shard name; expected 1 to %d of a-z 0-9 . _ -, "
				   "not beginning with a dot",
			   s->file, e->line, e->path, SHARDMAP_NAME - 1);
		return;
	}
	if (!dot && !bare) {
		faults_add(faults, "%s:%u: %s: expected a section with settings of the shard, not a value",
			   s->file, e->line, e->path);
		return;
	}
	if (!shard)
		shard = add_shard(s, name, e->line, faults);
	if (shard && alias)
		shard->alias = alias;
	if (shard && !bare)
		add_field(s, shard, dot + 1, e, faults);
}

/* ---- Settings of a shard ---- */

/* Sets *set and *row to the row of a field. Returns false if there is no row. */
static bool
find_row(const struct sharding_shard *shard, struct slice field, struct option_set *set,
	 unsigned *row, bool *in_file)
{
	const struct slice tail = SLICE("_file");
	const struct slice head = { field.p, field.n > tail.n ? field.n - tail.n : 0 };

	*in_file = false;
	for (unsigned i = 0; i < 2; i++) {
		*set = i ? own_set(shard) : set_of(shard);
		*row = option_find(set, field);
		if (*row < set->n)
			return true;
	}
	*row = option_find(set, head);
	*in_file = *row < set->n && set->rows[*row].kind->secret &&
		   slice_eq((struct slice){ field.p + head.n, tail.n }, tail);
	return *in_file;
}

/* The value itself, or the content of the file that it names. */
static int
read_field(struct option_set *set, unsigned row, const char *value, bool in_file,
	   const char *origin, struct slu_err *err)
{
	struct buf text;
	int rc;

	if (!in_file)
		return load_one(set, row, value, origin, err);
	buf_init(&text, OPTION_VALUE);
	rc = slurp(value, &text, err);
	while (!rc && text.n > 0 && strchr("\r\n", text.p[text.n - 1]))
		text.n--;
	if (!rc)
		rc = load_one(set, row, buf_str(&text), origin, err);
	if (text.p)
		explicit_bzero(text.p, text.n);
	buf_release(&text);
	return rc;
}

static void
set_field(const struct conf *c, struct sharding_shard *shard, const struct sharding_field *f,
	  struct conf_faults *faults)
{
	char origin[FAULT_TEXT];
	struct slu_err why;
	struct option_set set;
	unsigned row;
	bool in_file;

	(void)snprintf(origin, sizeof origin, "%s:%u", c->config, f->line); /* cut when long */
	if (!find_row(shard, slice_of(f->key), &set, &row, &in_file))
		faults_add(faults, "%s: %s: a shard with engine %s has no setting %s; docs/config.md lists all",
			   origin, f->path, shard->engine->name, f->key);
	else if (set.origins[row])
		faults_add(faults, "%s: %s: is set twice", origin, f->path);
	else if (read_field(&set, row, f->value, in_file, origin, &why))
		faults_add(faults, "%s: %s: %s", origin, f->path, why.text);
}

/* SHARDING-6. Returns NULL if the table has no such engine. */
static const struct engine_ops *
engine_of(const struct conf *c, const struct sharding_shard *shard, struct conf_faults *faults)
{
	const char *word = shard->alias ? shard->alias->name : c->engine;
	const char *path = "engine";
	const struct engine_ops *found;
	char names[FAULT_TEXT];
	unsigned line = shard->line;

	for (unsigned i = 0; i < shard->n_fields; i++)
		if (strcmp(shard->fields[i].key, "engine") == 0) {
			word = shard->fields[i].value;
			path = shard->fields[i].path;
			line = shard->fields[i].line;
		}
	found = word ? engine_find(c->engines, word) : NULL;
	if (!found)
		faults_add(faults, "%s:%u: %s: invalid engine \"%s\"; expected %s", c->config, line, path,
			   word ? word : "", engine_names(c->engines, ", ", names, sizeof names));
	return found;
}

static int
load_standards(struct option_set *set)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < set->n; i++)
		rc = load_one(set, i, set->rows[i].standard, NULL, NULL);
	return rc;
}

/* Room for the values, with the defaults. */
static int
prepare_shard(struct sharding_shard *s)
{
	const struct engine_options *const own = s->engine->options;
	struct option_set set, more;
	int rc;

	s->origins = mem_zalloc((N_ROWS + (own ? own->n : 0)) * sizeof *s->origins);
	s->options = own ? mem_zalloc(own->size) : NULL;
	if (!s->origins || (own && !s->options))
		return SLU_ENOMEM;
	set = set_of(s);
	more = own_set(s);
	rc = load_standards(&set);
	return rc ? rc : load_standards(&more);
}

void
sharding_settle(struct conf *c, struct conf_faults *faults)
{
	for (unsigned i = 0; i < c->sharding->n_shards; i++) {
		struct sharding_shard *const s = c->sharding->shards[i];

		s->engine = engine_of(c, s, faults);
		if (s->engine && prepare_shard(s))
			faults_add(faults, "%s:%u: shards.%s: out of memory", c->config, s->line, s->name);
		for (unsigned f = 0; s->engine && s->origins && f < s->n_fields; f++)
			set_field(c, s, &s->fields[f], faults);
		release_fields(s);
	}
}

const char *
sharding_origin(const struct sharding_shard *s, const char *key)
{
	const struct option_set set = set_of(s);
	const unsigned row = option_find(&set, slice_of(key));

	return s->origins && row < N_ROWS ? s->origins[row] : NULL;
}

/* ---- Shown ---- */

static void
forget(struct buf *text)
{
	if (text->p)
		explicit_bzero(text->p, text->n); /* it may be a secret */
	buf_release(text);
}

static const char *
first_difference(const struct option_set *a, const struct option_set *b)
{
	for (unsigned i = 0; i < a->n; i++) {
		struct buf x, y;
		bool same;

		buf_init(&x, OPTION_SHOWN);
		buf_init(&y, OPTION_SHOWN);
		a->rows[i].kind->show(&a->rows[i], option_place(a, i), &x);
		b->rows[i].kind->show(&b->rows[i], option_place(b, i), &y);
		same = slice_eq(buf_slice(&x), buf_slice(&y));
		forget(&x);
		forget(&y);
		if (!same)
			return a->rows[i].key;
	}
	return NULL;
}

const char *
sharding_differs(const struct sharding_shard *a, const struct sharding_shard *b)
{
	const struct option_set one = set_of(a), two = set_of(b);
	const struct option_set own = own_set(a), other = own_set(b);
	const char *differs;

	if (a->engine != b->engine)
		return "engine";
	if (!a->engine)
		return NULL; /* both follow the settings of the server */
	differs = first_difference(&one, &two);
	return differs ? differs : first_difference(&own, &other);
}

static void
print_shard(const char *name, const struct option_set *set, FILE *out)
{
	for (unsigned i = 0; i < set->n; i++) {
		struct buf text;

		if (!set->origins[i])
			continue;
		buf_init(&text, OPTION_SHOWN);
		show_value(set, i, &text);
		fprintf(out, "%s%s.%s: %s # %s\n", of_shards, name, set->rows[i].key, buf_str(&text),
			set->origins[i]);
		buf_release(&text);
	}
}

void
sharding_print_shards(const struct sharding *s, FILE *out)
{
	for (unsigned i = 0; i < s->n_shards; i++) {
		const struct option_set set = set_of(s->shards[i]), own = own_set(s->shards[i]);

		if (!s->shards[i]->engine)
			continue;
		print_shard(s->shards[i]->name, &set, out);
		print_shard(s->shards[i]->name, &own, out);
	}
}

static void
print_rows(const struct option *r, unsigned n, FILE *out)
{
	fputs("\n| Key | Kind | Default | What it is |\n|---|---|---|---|\n", out);
	for (unsigned i = 0; i < n; i++)
		fprintf(out, "| `%s` | %s | %s%s%s | %s |\n", r[i].key, r[i].kind->name,
			*r[i].standard ? "`" : "", r[i].standard, *r[i].standard ? "`" : "", r[i].doc);
}

void
sharding_doc(const struct engine_ops *const *engines, FILE *out)
{
	fputs("\n## Settings of a shard\n\n"
	      "An entry `shards.NAME` in the file has these keys ([sharding.md](sharding.md)):\n",
	      out);
	print_rows(rows, N_ROWS, out);
	for (; *engines; engines++)
		if ((*engines)->options) {
			fprintf(out, "\nWith `engine: %s` also:\n", (*engines)->name);
			print_rows((*engines)->options->rows, (*engines)->options->n, out);
		}
}
