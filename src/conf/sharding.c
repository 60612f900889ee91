/*
 * sharding.c - entries of a file become rules; entries of shards go to sharding_shard.c.
 */
#include "conf/sharding_private.h"

#include "base/mem.h"
#include "conf/load.h"
#include "conf/yaml.h"

#include <stdio.h>

const char *const sharding_suppliers[] = { "static", "hash", "ring", "range", NULL };
const char *const sharding_range_by[] = { "command", "tenant", NULL };

static const char of_sharding[] = "sharding.";
static const char of_previous[] = "sharding.previousShards.";

/* The part of path behind prefix, or NULL. */
static const char *
behind(const char *path, const char *prefix)
{
	const size_t n = strlen(prefix);

	return strncmp(path, prefix, n) == 0 ? path + n : NULL;
}

/* ---- Life ---- */

struct sharding *
sharding_new(const struct engine_ops *const *engines)
{
	struct sharding *const s = mem_zalloc(sizeof *s);

	if (!s)
		return NULL;
	s->refs = 1;
	s->engines = engines;
	return s;
}

struct sharding *
sharding_ref(struct sharding *s)
{
	s->refs++;
	return s;
}

static void
release_layout(struct sharding_layout *l)
{
	for (unsigned i = 0; i < l->n_rules; i++) {
		mem_free(l->rules[i].name);
		mem_free(l->rules[i].shard);
	}
	mem_free(l->rules);
	while (l->n_shards > 0)
		mem_free(l->shards[--l->n_shards]);
	mem_free(l->supplier);
	mem_free(l->standard);
	mem_free(l->range_by);
}

void
sharding_unref(struct sharding *s)
{
	if (!s || --s->refs > 0)
		return;
	while (s->n_shards > 0)
		sharding_shard_free(s->shards[--s->n_shards]);
	release_layout(&s->now);
	release_layout(&s->before);
	faults_release(&s->warnings);
	mem_free(s);
}

/* ---- Who lives where ---- */

static void
add_rule(struct sharding *s, struct sharding_layout *l, enum supplier_by by, const char *name,
	 const struct yaml_entry *e, struct conf_faults *faults)
{
	struct sharding_rule rule = { .by = by, .line = e->line };

	if (e->kind == YAML_NOTHING && !*name)
		return; /* an empty section */
	if (e->kind != YAML_VALUE) {
		faults_add(faults, "%s:%u: %s: expected the name of a shard", s->file, e->line,
			   e->path);
		return;
	}
	rule.name = mem_strdup(name);
	rule.shard = mem_strdup(e->value);
	if (!mem_resize(&l->rules, l->n_rules + 1, sizeof *l->rules) || !rule.name || !rule.shard) {
		mem_free(rule.name);
		mem_free(rule.shard);
		faults_add(faults, "%s:%u: out of memory", s->file, e->line);
		return;
	}
	l->rules[l->n_rules++] = rule;
}

static void
add_choice(struct sharding *s, struct sharding_layout *l, const struct yaml_entry *e,
	   struct conf_faults *faults)
{
	char *copy;

	if (e->kind != YAML_VALUE || l->n_shards == SHARDING_SHARDS) {
		faults_add(faults, "%s:%u: %s: expected 1 to %d names of shards", s->file, e->line,
			   e->path, SHARDING_SHARDS);
		return;
	}
	copy = mem_strdup(e->value);
	if (copy)
		l->shards[l->n_shards++] = copy;
	else
		faults_add(faults, "%s:%u: out of memory", s->file, e->line);
}

static void
set_text(struct sharding *s, char **place, const struct yaml_entry *e, const char *const *words,
	 struct conf_faults *faults)
{
	bool known = !words;

	for (; words && *words && e->kind == YAML_VALUE; words++)
		known = known || strcmp(*words, e->value) == 0;
	if (e->kind != YAML_VALUE || *place || !known)
		faults_add(faults, "%s:%u: %s: %s", s->file, e->line, e->path,
			   *place  ? "is set twice"
			   : known ? "missing value"
				   : "invalid value");
	else
		*place = mem_strdup(e->value);
	if (e->kind == YAML_VALUE && known && !*place)
		faults_add(faults, "%s:%u: out of memory", s->file, e->line);
}

/* Takes an entry that both mappings may have. Returns false for any other entry. */
static bool
take_layout(struct sharding *s, struct sharding_layout *l, const char *rest,
	    const struct yaml_entry *e, struct conf_faults *faults)
{
	static const struct {
		const char *word;
		enum supplier_by by;
	} tables[] = {
		{ "commandMappings", SUPPLIER_COMMAND },
		{ "tenantOverrides", SUPPLIER_TENANT },
		{ "ranges", SUPPLIER_FROM },
	};

	l->said = true;
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
		const char *const name = behind(rest, tables[i].word);

		if (name && (*name == '.' || (!*name && e->kind == YAML_NOTHING))) {
			add_rule(s, l, tables[i].by, *name ? name + 1 : "", e, faults);
			return true;
		}
	}
	if (strncmp(rest, "shards[", 7) != 0)
		return false;
	add_choice(s, l, e, faults);
	return true;
}

static bool
take_previous(struct sharding *s, const char *rest, const struct yaml_entry *e,
	      struct conf_faults *faults)
{
	struct sharding_layout *const l = &s->before;

	if (strcmp(rest, "defaultShard") == 0)
		set_text(s, &l->standard, e, NULL, faults);
	else if (strcmp(rest, "supplier") == 0)
		set_text(s, &l->supplier, e, sharding_suppliers, faults);
	else if (strcmp(rest, "rangeBy") == 0)
		set_text(s, &l->range_by, e, sharding_range_by, faults);
	else
		return take_layout(s, l, rest, e, faults);
	l->said = true;
	return true;
}

/* "shards.x" or, SHARDING-6, "redis.shards.x": what follows `shards`, or NULL. */
static const char *
behind_shards(const struct sharding *s, const char *path, const struct engine_ops **alias)
{
	static const char bare[] = "shards";

	*alias = NULL;
	for (const struct engine_ops *const *e = s->engines; *e; e++) {
		const char *const rest = behind(path, (*e)->name);

		if (rest && *rest == '.' && behind(rest + 1, bare)) {
			path = rest + 1;
			*alias = *e;
			break;
		}
	}
	path = behind(path, bare);
	return path && (*path == '.' || (!*path && *alias)) ? path : NULL;
}

bool
sharding_is_part(const struct sharding *s, const char *path)
{
	const struct engine_ops *alias;

	return behind_shards(s, path, &alias) || behind(path, of_sharding);
}

void
sharding_take(struct sharding *s, const char *file, const struct yaml_entry *e,
	      struct conf_faults *faults)
{
	const struct engine_ops *alias;
	const char *const shard = behind_shards(s, e->path, &alias);
	const char *const previous = behind(e->path, of_previous);
	const char *const rest = behind(e->path, of_sharding);
	bool taken = true;

	s->file = file;
	if (shard && *shard)
		sharding_take_shard(s, alias, shard + 1, e, faults);
	else if (previous)
		taken = take_previous(s, previous, e, faults);
	else if (rest && strcmp(rest, "previousShards") != 0)
		taken = take_layout(s, &s->now, rest, e, faults);
	else
		taken = e->kind == YAML_NOTHING;
	if (!taken)
		faults_add(faults, "%s:%u: unknown key %s; docs/sharding.md lists all keys", file,
			   e->line, e->path);
	s->file = NULL;
}

/* ---- Shown ---- */

static void
print_layout(const struct sharding_layout *l, const char *prefix, FILE *out)
{
	static const char *const tables[] = {
		[SUPPLIER_TENANT] = "tenantOverrides",
		[SUPPLIER_COMMAND] = "commandMappings",
		[SUPPLIER_FROM] = "ranges",
	};

	if (l->supplier)
		fprintf(out, "%ssupplier: %s\n", prefix, l->supplier);
	if (l->standard)
		fprintf(out, "%sdefaultShard: %s\n", prefix, l->standard);
	if (l->range_by)
		fprintf(out, "%srangeBy: %s\n", prefix, l->range_by);
	for (unsigned i = 0; i < l->n_rules; i++)
		fprintf(out, "%s%s.%s: %s\n", prefix, tables[l->rules[i].by], l->rules[i].name,
			l->rules[i].shard);
	for (unsigned i = 0; i < l->n_shards; i++)
		fprintf(out, "%s%s%s", i ? ", " : prefix, i ? "" : "shards: [", l->shards[i]);
	if (l->n_shards)
		fputs("]\n", out);
}

void
sharding_print(const struct sharding *s, FILE *out)
{
	print_layout(&s->now, of_sharding, out);
	print_layout(&s->before, of_previous, out);
	sharding_print_shards(s, out);
}
