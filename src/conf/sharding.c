/*
 * sharding.c - entries of a file become shards and rules.
 */
#include "conf/sharding.h"

#include "base/mem.h"
#include "conf/load.h"
#include "conf/show.h"
#include "conf/slurp.h"
#include "conf/yaml.h"

#include <assert.h>
#include <stdio.h>

const char *const sharding_suppliers[] = { "static", "hash", "ring", "range", NULL };
const char *const sharding_range_by[] = { "command", "tenant", NULL };

static const char *const engines[] = {
	[SHARDING_REDIS] = "redis",
	[SHARDING_LOG] = "log",
	[SHARDING_MEMORY] = "memory",
	NULL,
};

#define AT(member) offsetof(struct sharding_shard, member)

/* clang-format off */
static const struct option rows[] = {
	{ .key = "engine", .kind = &word_kind, .offset = AT(engine), .standard = "redis", .words = engines,
	  .value = "redis|log|memory", .doc = "how its messages are kept" },
	{ .key = "address", .kind = &text_kind, .offset = AT(address), .standard = "",
	  .value = "ADDRESS", .doc = "host:port, or unix:PATH" },
	{ .key = "username", .kind = &text_kind, .offset = AT(username), .standard = "",
	  .value = "NAME", .doc = "who this server is there; empty: the default user" },
	{ .key = "password", .kind = &secret_kind, .offset = AT(password), .standard = "",
	  .value = "TEXT", .doc = "what that server asks for; or password_file" },
	{ .key = "db", .kind = &count_kind, .offset = AT(db), .standard = "0", .max = 1 << 20,
	  .value = "N", .doc = "which of its databases" },
	{ .key = "poolSize", .kind = &count_kind, .offset = AT(pool), .standard = "1", .min = 1, .max = SHARDING_POOL,
	  .value = "N", .doc = "connections, each with a thread; engine log: independent logs, not to be changed once there is data" },
	{ .key = "keyPrefix", .kind = &text_kind, .offset = AT(prefix), .standard = "sluice",
	  .value = "TEXT", .doc = "what its keys begin with" },
	{ .key = "timeout", .kind = &time_kind, .offset = AT(timeout), .standard = "5s", .min = SLU_MS, .max = 300 * SLU_SEC,
	  .value = "TIME", .doc = "how long it may take to connect, and to answer" },
	{ .key = "tlsEnabled", .kind = &bool_kind, .offset = AT(tls), .standard = "false",
	  .value = "", .doc = "speak TLS to it, and check its certificate" },
	{ .key = "tlsCAFile", .kind = &text_kind, .offset = AT(tls_ca), .standard = "",
	  .value = "FILE", .doc = "PEM file of the authorities that it is checked against; empty: those of the system" },
	{ .key = "tlsCertFile", .kind = &text_kind, .offset = AT(tls_cert), .standard = "",
	  .value = "FILE", .doc = "PEM file: the certificate to show, with its chain" },
	{ .key = "tlsKeyFile", .kind = &text_kind, .offset = AT(tls_key), .standard = "",
	  .value = "FILE", .doc = "PEM file: the key of that certificate" },
	{ .key = "tlsServerName", .kind = &text_kind, .offset = AT(tls_name), .standard = "",
	  .value = "NAME", .doc = "the name that its certificate must have; empty: the host of its address" },
	{ .key = "folder", .kind = &text_kind, .offset = AT(folder), .standard = "",
	  .value = "DIR", .doc = "engine log: where its files are; else a folder of its name in that of data" },
};
/* clang-format on */

enum {
	N_ROWS = sizeof rows / sizeof rows[0]
};

_Static_assert(N_ROWS <= sizeof((struct sharding_shard *)0)->origins / sizeof(char *),
	       "struct sharding_shard");

static const char of_shards[] = "redis.shards.";
static const char of_sharding[] = "sharding.";
static const char of_previous[] = "sharding.previousShards.";

/* What is behind the prefix, or NULL. */
static const char *
behind(const char *path, const char *prefix)
{
	const size_t n = strlen(prefix);

	return strncmp(path, prefix, n) == 0 ? path + n : NULL;
}

/* ---- Life ---- */

struct sharding *
sharding_new(void)
{
	struct sharding *const s = mem_zalloc(sizeof *s);

	if (s)
		s->refs = 1;
	return s;
}

struct sharding *
sharding_ref(struct sharding *s)
{
	s->refs++;
	return s;
}

static struct option_set
set_of(const struct sharding_shard *s)
{
	/* The set is only read by those who show it. */
	return (struct option_set){ rows, N_ROWS, (void *)s, (char **)s->origins };
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
	while (s->n_shards > 0) {
		struct sharding_shard *const one = s->shards[--s->n_shards];
		struct option_set set = set_of(one);

		option_set_release(&set);
		mem_free(one);
	}
	release_layout(&s->now);
	release_layout(&s->before);
	faults_release(&s->warnings);
	mem_free(s);
}

/* ---- Shards ---- */

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

/* Is that what a shard may be called? */
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
	struct sharding_shard *const one = mem_zalloc(sizeof *one);
	struct option_set set;
	int rc = one ? 0 : SLU_ENOMEM;

	for (unsigned i = 0; !rc && i < N_ROWS; i++) {
		set = set_of(one);
		rc = load_one(&set, i, rows[i].standard, NULL, NULL);
	}
	if (rc || s->n_shards == SHARDING_SHARDS) {
		faults_add(faults, "%s:%u: redis.shards: %s", s->file, line,
			   rc ? "out of memory" : "more than 256 of them");
		if (one)
			option_set_release(&(struct option_set){ rows, N_ROWS, one, one->origins });
		mem_free(one);
		return NULL;
	}
	memcpy(one->name, name.p, name.n);
	one->line = line;
	s->shards[s->n_shards++] = one;
	return one;
}

static unsigned
find_row(struct slice field, bool *in_file)
{
	const struct option_set set = { rows, N_ROWS, NULL, NULL };
	const struct slice tail = SLICE("_file");
	unsigned i = option_find(&set, field);

	*in_file = false;
	if (i < N_ROWS || field.n <= tail.n)
		return i;
	i = option_find(&set, (struct slice){ field.p, field.n - tail.n });
	*in_file = i < N_ROWS && rows[i].kind->secret &&
		   slice_eq((struct slice){ field.p + field.n - tail.n, tail.n }, tail);
	return *in_file ? i : N_ROWS;
}

/* The value itself, or that of the file it names. */
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
set_field(struct sharding *s, struct sharding_shard *shard, struct slice field,
	  const struct yaml_entry *e, struct conf_faults *faults)
{
	struct option_set set = set_of(shard);
	char origin[FAULT_TEXT];
	struct slu_err why;
	bool in_file;
	const unsigned row = find_row(field, &in_file);

	(void)snprintf(origin, sizeof origin, "%s:%u", s->file, e->line); /* cut when long */
	if (row == N_ROWS)
		faults_add(faults, "%s: %s: a shard has no setting %.*s; docs/sharding.md has all of them",
			   origin, e->path, (int)field.n, field.p);
	else if (e->kind != YAML_VALUE)
		faults_add(faults, "%s: %s: expected one value", origin, e->path);
	else if (set.origins[row])
		faults_add(faults, "%s: %s: is set twice", origin, e->path);
	else if (read_field(&set, row, e->value, in_file, origin, &why))
		faults_add(faults, "%s: %s: %s", origin, e->path, why.text);
}

/* "heavy.address": names may have dots, fields have none. */
static void
take_shard(struct sharding *s, const char *rest, const struct yaml_entry *e,
	   struct conf_faults *faults)
{
	const char *const dot = strrchr(rest, '.');
	const bool bare = e->kind == YAML_NOTHING && (!dot || find_row(slice_of(dot + 1), &(bool){ 0 }) == N_ROWS);
	const struct slice name = { rest, dot && !bare ? (size_t)(dot - rest) : strlen(rest) };
	struct sharding_shard *shard = find(s, name);

	if (!is_name(name)) {
		faults_add(faults, "%s:%u: %s: the name of a shard is 1 to %d of a-z 0-9 . _ -, and "
				   "does not begin with a dot",
			   s->file, e->line, e->path, SHARDMAP_NAME - 1);
		return;
	}
	if (!dot && !bare) {
		faults_add(faults, "%s:%u: %s: expected the settings of the shard below it, not a value",
			   s->file, e->line, e->path);
		return;
	}
	if (!shard)
		shard = add_shard(s, name, e->line, faults);
	if (shard && !bare)
		set_field(s, shard, slice_of(dot + 1), e, faults);
}

/* ---- Who lives where ---- */

static void
add_rule(struct sharding *s, struct sharding_layout *l, enum supplier_by by, const char *name,
	 const struct yaml_entry *e, struct conf_faults *faults)
{
	struct sharding_rule rule = { .by = by, .line = e->line };
	struct sharding_rule *more;

	if (e->kind == YAML_NOTHING && !*name)
		return; /* an empty section */
	if (e->kind != YAML_VALUE) {
		faults_add(faults, "%s:%u: %s: expected the name of a shard", s->file, e->line,
			   e->path);
		return;
	}
	rule.name = mem_strdup(name);
	rule.shard = mem_strdup(e->value);
	more = mem_realloc(l->rules, (l->n_rules + 1) * sizeof *more);
	if (more)
		l->rules = more;
	if (!more || !rule.name || !rule.shard) {
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
			   : known ? "expected a value"
				   : "there is none of that name");
	else
		*place = mem_strdup(e->value);
	if (e->kind == YAML_VALUE && known && !*place)
		faults_add(faults, "%s:%u: out of memory", s->file, e->line);
}

/* The entries that both mappings have. False: it is none of them. */
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

bool
sharding_is_part(const char *path)
{
	return behind(path, of_shards) || behind(path, of_sharding) ||
	       strcmp(path, "redis.shards") == 0;
}

void
sharding_take(struct sharding *s, const char *file, const struct yaml_entry *e,
	      struct conf_faults *faults)
{
	const char *const shard = behind(e->path, of_shards);
	const char *const previous = behind(e->path, of_previous);
	const char *const rest = behind(e->path, of_sharding);
	bool taken = true;

	s->file = file;
	if (shard)
		take_shard(s, shard, e, faults);
	else if (previous)
		taken = take_previous(s, previous, e, faults);
	else if (rest && strcmp(rest, "previousShards") != 0)
		taken = take_layout(s, &s->now, rest, e, faults);
	else
		taken = e->kind == YAML_NOTHING;
	if (!taken)
		faults_add(faults, "%s:%u: there is no key %s; docs/sharding.md has all of them", file,
			   e->line, e->path);
	s->file = NULL;
}

/* ---- Shown ---- */

static void
forget(struct buf *text)
{
	if (text->p)
		explicit_bzero(text->p, text->n); /* it may be a secret */
	buf_release(text);
}

const char *
sharding_differs(const struct sharding_shard *a, const struct sharding_shard *b)
{
	const struct option_set one = set_of(a), two = set_of(b);

	for (unsigned i = 0; i < N_ROWS; i++) {
		struct buf x, y;
		bool same;

		buf_init(&x, OPTION_SHOWN);
		buf_init(&y, OPTION_SHOWN);
		rows[i].kind->show(&rows[i], option_place(&one, i), &x);
		rows[i].kind->show(&rows[i], option_place(&two, i), &y);
		same = slice_eq(buf_slice(&x), buf_slice(&y));
		forget(&x);
		forget(&y);
		if (!same)
			return rows[i].key;
	}
	return NULL;
}

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
	for (unsigned i = 0; i < s->n_shards; i++) {
		const struct option_set set = set_of(s->shards[i]);

		for (unsigned k = 0; s->shards[i]->line && k < N_ROWS; k++) {
			struct buf text;

			buf_init(&text, OPTION_SHOWN);
			show_value(&set, k, &text);
			if (set.origins[k])
				fprintf(out, "%s%s.%s: %s # %s\n", of_shards, s->shards[i]->name,
					rows[k].key, buf_str(&text), set.origins[k]);
			buf_release(&text);
		}
	}
}

void
sharding_doc(FILE *out)
{
	for (unsigned i = 0; i < N_ROWS; i++)
		fprintf(out, "| `%s` | %s | %s%s%s | %s |\n", rows[i].key, rows[i].kind->name,
			*rows[i].standard ? "`" : "", rows[i].standard,
			*rows[i].standard ? "`" : "", rows[i].doc);
}
