/*
 * sharding_check.c - checks shards and rules, and makes the map.
 */
#include "conf/sharding_private.h"

#include "base/mem.h"
#include "conf/options.h"
#include "core/names.h"
#include "core/reserved.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	LIST = 256,      /* bytes of the list of all shards in a fault */
	LANES_MOST = 900 /* lanes of all shards; later reloads may add some */
};

static const char *const tables[] = {
	[SUPPLIER_TENANT] = "tenantOverrides: tenant",
	[SUPPLIER_COMMAND] = "commandMappings: command",
	[SUPPLIER_FROM] = "ranges: from",
};

struct map_check {
	const struct conf *conf;
	struct sharding *s;
	struct conf_faults *faults;
	char all[LIST];
	bool used[SHARDING_SHARDS];
	bool standard; /* something names `default`, which has no entry */
};

/* ---- Layouts ---- */

static const char *
supplier_of(const struct conf *c, const struct sharding_layout *l)
{
	if (l == &c->sharding->now)
		return c->sharding_enabled ? sharding_suppliers[c->sharding_supplier] : "default";
	return l->supplier ? l->supplier : "static";
}

static const char *
standard_of(const struct conf *c, const struct sharding_layout *l)
{
	return l == &c->sharding->now || !l->standard ? c->sharding_default : l->standard;
}

static bool
by_tenant(const struct conf *c, const struct sharding_layout *l)
{
	if (l == &c->sharding->now)
		return c->sharding_range_by == 1;
	return l->range_by && strcmp(l->range_by, "tenant") == 0;
}

/* SHARDING-3 */
static bool
is_whole(const struct sharding_layout *l)
{
	return l->standard || (l->supplier && strcmp(l->supplier, "static") != 0);
}

static bool
chooses_by_hash(const char *supplier)
{
	return strcmp(supplier, "hash") == 0 || strcmp(supplier, "ring") == 0;
}

/* ---- Checks ---- */

static void
list_shards(struct map_check *k)
{
	size_t n = 0;

	(void)snprintf(k->all, sizeof k->all, "default");
	n = strlen(k->all);
	for (unsigned i = 0; i < k->s->n_shards && n < sizeof k->all; i++)
		if (strcmp(k->s->shards[i]->name, "default") != 0)
			n += (size_t)snprintf(k->all + n, sizeof k->all - n, ", %s",
					      k->s->shards[i]->name);
}

/* Marks the shard as used. Returns false if it does not exist. */
static bool
uses(struct map_check *k, const char *shard)
{
	for (unsigned i = 0; i < k->s->n_shards; i++)
		if (strcmp(k->s->shards[i]->name, shard) == 0) {
			k->used[i] = true;
			return true;
		}
	if (strcmp(shard, "default") != 0)
		return false;
	k->standard = true;
	return true;
}

static void
lower(char *text)
{
	for (; *text; text++)
		*text = ascii_lower(*text);
}

/* Folds the name in place: it does not get longer. */
static void
check_name(struct map_check *k, struct sharding_rule *r, const char *where)
{
	char folded[NAME_TEXT];
	struct slu_err why;

	if (r->by == SUPPLIER_FROM || reserved_moves(slice_of(r->name)))
		lower(r->name);
	else if (name_fold(slice_of(r->name), r->by == SUPPLIER_TENANT ? "tenant" : "command",
			   folded, &why))
		faults_add(k->faults, "%s:%u: sharding.%s%s: %s", k->conf->config, r->line, where,
			   tables[r->by], why.text);
	else
		memcpy(r->name, folded, strlen(folded) + 1);
}

static void
check_rule(struct map_check *k, struct sharding_rule *r, const char *where)
{
	check_name(k, r, where);
	lower(r->shard);
	if (!uses(k, r->shard))
		faults_add(k->faults, "%s:%u: sharding.%s%s %s: unknown shard %s; expected %s",
			   k->conf->config, r->line, where, tables[r->by], r->name, r->shard, k->all);
}

static int
compare_rules(const void *a, const void *b)
{
	const struct sharding_rule *const x = a, *const y = b;
	const int c = (int)x->by - (int)y->by;

	return c ? c : strcmp(x->name, y->name);
}

static void
check_twice(struct map_check *k, const struct sharding_layout *l, const char *where)
{
	if (l->n_rules > 1)
		qsort(l->rules, l->n_rules, sizeof *l->rules, compare_rules);
	for (unsigned i = 1; i < l->n_rules; i++) {
		const struct sharding_rule *const a = &l->rules[i - 1], *const b = &l->rules[i];

		if (compare_rules(a, b) == 0)
			faults_add(k->faults, "%s:%u: sharding.%s%s %s is mapped twice, regardless of case: "
					      "to %s and (line %u) to %s",
				   k->conf->config, b->line, where, tables[a->by], a->name, b->shard,
				   a->line, a->shard);
	}
}

static void
check_choices(struct map_check *k, const struct sharding_layout *l, const char *where)
{
	for (unsigned i = 0; i < l->n_shards; i++) {
		bool twice = false;

		lower(l->shards[i]);
		for (unsigned j = 0; j < i; j++)
			twice = twice || strcmp(l->shards[i], l->shards[j]) == 0;
		if (twice)
			faults_add(k->faults, "sharding.%sshards: %s appears twice", where,
				   l->shards[i]);
		else if (!uses(k, l->shards[i]))
			faults_add(k->faults, "sharding.%sshards: unknown shard %s; expected %s",
				   where, l->shards[i], k->all);
	}
}

/* Warns of rules that the supplier does not use. */
static void
check_fit(struct map_check *k, const struct sharding_layout *l, const char *where)
{
	const char *const supplier = supplier_of(k->conf, l);
	const bool ranges = strcmp(supplier, "range") == 0;
	unsigned odd = 0;

	for (unsigned i = 0; i < l->n_rules; i++)
		odd += chooses_by_hash(supplier) || (l->rules[i].by == SUPPLIER_FROM) != ranges;
	if (odd && strcmp(supplier, "default") != 0)
		faults_add(&k->s->warnings, "sharding.%s: the supplier %s does not use %u mappings",
			   where, supplier, odd);
	if (chooses_by_hash(supplier) && l->n_shards == 0)
		for (unsigned i = 0; i < k->s->n_shards; i++)
			k->used[i] = true;
	if (chooses_by_hash(supplier) && l->n_shards == 0 && k->s->n_shards == 0)
		k->standard = true;
}

static void
check_layout(struct map_check *k, const struct sharding_layout *l, const char *where)
{
	const char *const standard = standard_of(k->conf, l);

	for (unsigned i = 0; i < l->n_rules; i++)
		check_rule(k, &l->rules[i], where);
	check_twice(k, l, where);
	check_choices(k, l, where);
	check_fit(k, l, where);
	if ((l == &k->s->now || l->standard) && !chooses_by_hash(supplier_of(k->conf, l)) && !uses(k, standard))
		faults_add(k->faults, "sharding.%sdefaultShard: unknown shard %s; expected %s",
			   where, standard, k->all);
}

/* Where the faults of a shard's entry go. */
struct shard_faults {
	struct map_check *check;
	const struct sharding_shard *shard;
};

static void
add_fault(void *arg, const char *why)
{
	const struct shard_faults *const e = arg;

	faults_add(e->check->faults, "%s:%u: shards.%s: %s", e->check->conf->config, e->shard->line,
		   e->shard->name, why);
}

/* A name of digits is a folder below `data` that the shard `default` uses itself. */
static void
check_shard(struct map_check *k, const struct sharding_shard *a)
{
	const struct engine_options *const own = a->options ? a->engine->options : NULL;
	struct shard_faults e = { k, a };

	if (!a->engine)
		return; /* its engine is a fault */
	if (own && own->check)
		own->check(a->options, add_fault, &e);
	if (a->folder && !a->engine->folder)
		add_fault(&e, "this engine keeps no files: leave folder out");
	if (a->engine->folder && !a->folder && strspn(a->name, "0123456789") == strlen(a->name))
		add_fault(&e, "a shard whose name is a number needs a folder");
}

/* Two engines in one folder. */
static void
check_folders(struct map_check *k, const struct sharding_shard *a, const struct sharding_shard *b)
{
	if (a->folder && b->folder && strcmp(a->folder, b->folder) == 0)
		faults_add(k->faults, "shards: %s and %s have the same folder", a->name, b->name);
}

static void
check_shards(struct map_check *k)
{
	uint64_t lanes = k->conf->shards;

	for (unsigned i = 0; i < k->s->n_shards; i++) {
		const struct sharding_shard *const a = k->s->shards[i];

		check_shard(k, a);
		for (unsigned j = 0; j < i; j++)
			check_folders(k, k->s->shards[j], a);
		lanes += a->pool;
	}
	if (k->s->n_shards && lanes > LANES_MOST)
		faults_add(k->faults, "shards: the sum of poolSize is %llu; expected at most %d",
			   (unsigned long long)lanes, LANES_MOST);
}

static void
warn_unused(struct map_check *k)
{
	for (unsigned i = 0; i < k->s->n_shards; i++)
		if (!k->used[i])
			faults_add(&k->s->warnings, "%s:%u: shards.%s: no queue lives on this shard",
				   k->conf->config, k->s->shards[i]->line, k->s->shards[i]->name);
}

static int
compare_shards(const void *a, const void *b)
{
	const struct sharding_shard *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/* SHARDING-1 */
static void
add_standard(struct map_check *k)
{
	struct sharding *const s = k->s;
	struct sharding_shard *one = NULL;

	if (k->standard && s->n_shards < SHARDING_SHARDS)
		one = mem_zalloc(sizeof *one);
	if (k->standard && !one)
		faults_add(k->faults, "shard default: out of memory, or too many shards");
	if (one) {
		memcpy(one->name, "default", sizeof "default");
		s->shards[s->n_shards++] = one;
	}
	qsort(s->shards, s->n_shards, sizeof(struct sharding_shard *), compare_shards);
}

bool
sharding_is_used(const struct conf *c)
{
	return c->sharding_enabled || c->sharding->before.said || c->sharding->n_shards > 1 ||
	       (c->sharding->n_shards == 1 && c->sharding->shards[0]->line) ||
	       strcmp(c->sharding_default, "default") != 0;
}

void
sharding_check(struct conf *c, struct conf_faults *faults)
{
	struct map_check k = { .conf = c, .s = c->sharding, .faults = faults };

	sharding_settle(c, faults);
	if (!c->sharding_default)
		return; /* a fault reports that */
	lower(c->sharding_default);
	if (c->sharding->before.standard)
		lower(c->sharding->before.standard);
	list_shards(&k);
	check_shards(&k);
	check_layout(&k, &c->sharding->now, "");
	if (c->sharding->before.said)
		check_layout(&k, &c->sharding->before, "previousShards.");
	warn_unused(&k);
	add_standard(&k);
}

/* ---- The map ---- */

static bool
is_replaced(const struct sharding_layout *by, const struct sharding_rule *r)
{
	for (unsigned i = 0; i < by->n_rules; i++)
		if (compare_rules(&by->rules[i], r) == 0)
			return true;
	return false;
}

/* Adds the rules that the supplier uses. */
static void
add_rules(const struct sharding_layout *l, bool ranges, const struct sharding_layout *but,
	  struct supplier_rule *out, unsigned *n)
{
	for (unsigned i = 0; i < l->n_rules; i++) {
		const struct sharding_rule *const r = &l->rules[i];

		if ((r->by == SUPPLIER_FROM) == ranges && !(but && is_replaced(but, r)))
			out[(*n)++] = (struct supplier_rule){ r->by, r->name, r->shard };
	}
}

/* SHARDING-3. `below`: the layout in force, if `l` is not whole; with sharding off only its
 * default shard counts. */
static int
make_supplier(const struct conf *c, const struct sharding_layout *l,
	      const struct sharding_layout *below, struct supplier **out, struct slu_err *err)
{
	const struct sharding *const s = c->sharding;
	const struct sharding_layout *const base = below ? below : l;
	const bool off = below && !c->sharding_enabled;
	const char *const kind = off ? "static" : supplier_of(c, base);
	const bool ranges = strcmp(kind, "range") == 0;
	const unsigned most = l->n_rules + (below ? below->n_rules : 0) + 1;
	struct supplier_rule *const rules = mem_array(most, sizeof *rules);
	const char *names[SHARDING_SHARDS];
	struct supplier_conf conf = {
		.kind = kind,
		.standard = standard_of(c, base),
		.rules = rules,
		.shards = base->n_shards ? (const char *const *)base->shards : names,
		.n_shards = base->n_shards ? base->n_shards : s->n_shards,
		.by_tenant = by_tenant(c, base),
	};
	int rc;

	if (!rules)
		return slu_fail(err, SLU_ENOMEM, "no memory for the shard map");
	for (unsigned i = 0; i < s->n_shards; i++)
		names[i] = s->shards[i]->name;
	add_rules(l, ranges, NULL, rules, &conf.n_rules);
	if (below && !off)
		add_rules(below, ranges, l, rules, &conf.n_rules);
	rc = supplier_new(out, &conf, err);
	mem_free(rules);
	return rc;
}

int
sharding_map(const struct conf *c, uint64_t version, struct shardmap **out, struct slu_err *err)
{
	const struct sharding *const s = c->sharding;
	const char *names[SHARDING_SHARDS];
	struct shardmap_conf conf = { .shards = names, .n_shards = s->n_shards, .version = version };
	int rc = make_supplier(c, &s->now, NULL, &conf.now, err);

	for (unsigned i = 0; i < s->n_shards; i++)
		names[i] = s->shards[i]->name;
	if (!rc && s->before.said)
		rc = make_supplier(c, &s->before, is_whole(&s->before) ? NULL : &s->now,
				   &conf.before, err);
	if (rc) {
		supplier_free(conf.now);
		return rc;
	}
	return shardmap_new(out, &conf, err);
}
