/*
 * supplier.c - the suppliers of Sluice.
 *
 * Each is a sorted table of rows, in one block of memory. They differ in how a name finds its
 * row: a row of `static` is a tenant or a command, of `range` the first name of a range, of
 * `ring` a point of the circle; `hash` takes the row with the number hash modulo rows.
 */
#include "core/supplier.h"

#include "base/hash.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

enum {
	RING_POINTS = 160 /* points of a shard on the circle: shares differ by less than a fifth */
};

struct supplier_row {
	const char *name; /* of the rule */
	const char *shard;
	const char *rule;
	uint32_t point; /* ring */
	uint8_t by;     /* enum supplier_by */
};

struct table {
	struct supplier supplier;
	const char *standard; /* or NULL */
	bool by_tenant;
	unsigned n;
	struct supplier_row rows[];
};

static const struct table *
table_of(const struct supplier *s)
{
	return (const struct table *)s;
}

/* ---- Finding a row ---- */

static int
compare_names(struct slice a, const char *b)
{
	const size_t n = strlen(b);
	const size_t least = a.n < n ? a.n : n;
	const int c = least ? memcmp(a.p, b, least) : 0;

	return c ? c : (a.n > n) - (a.n < n);
}

/* The last row that is not after (by, name), or NULL. */
static const struct supplier_row *
last_up_to(const struct table *t, enum supplier_by by, struct slice name)
{
	unsigned low = 0, high = t->n;

	while (low < high) {
		const unsigned mid = (low + high) / 2;
		const struct supplier_row *r = &t->rows[mid];
		const int c = by != r->by ? (int)by - r->by : compare_names(name, r->name);

		if (c < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return low > 0 && t->rows[low - 1].by == by ? &t->rows[low - 1] : NULL;
}

static const struct supplier_row *
exactly(const struct table *t, enum supplier_by by, struct slice name)
{
	const struct supplier_row *r = last_up_to(t, by, name);

	return r && compare_names(name, r->name) == 0 ? r : NULL;
}

uint32_t
supplier_hash(struct slice space, struct slice queue)
{
	uint32_t h = fnv1a32_more(FNV1A32_START, space.p, space.n);

	h = fnv1a32_more(h, "/", 1);
	return fnv1a32_more(h, queue.p, queue.n);
}

/* FNV-1a changes its upper bits little for names that differ at their end, and the ring uses the
 * upper bits. */
static uint32_t
spread(uint32_t h)
{
	h ^= h >> 16;
	h *= 0x85ebca6bu;
	h ^= h >> 13;
	h *= 0xc2b2ae35u;
	return h ^ h >> 16;
}

static const struct supplier_row *
first_behind(const struct table *t, uint32_t point)
{
	unsigned low = 0, high = t->n;

	while (low < high) {
		const unsigned mid = (low + high) / 2;

		if (t->rows[mid].point < point)
			low = mid + 1;
		else
			high = mid;
	}
	return &t->rows[low < t->n ? low : 0];
}

static const struct supplier_row *
by_nothing(const struct table *t, struct slice space, struct slice queue)
{
	(void)t, (void)space, (void)queue;
	return NULL;
}

static const struct supplier_row *
by_rule(const struct table *t, struct slice space, struct slice queue)
{
	const struct supplier_row *r = exactly(t, SUPPLIER_TENANT, space);

	return r ? r : exactly(t, SUPPLIER_COMMAND, queue);
}

static const struct supplier_row *
by_hash(const struct table *t, struct slice space, struct slice queue)
{
	return &t->rows[supplier_hash(space, queue) % t->n];
}

static const struct supplier_row *
by_ring(const struct table *t, struct slice space, struct slice queue)
{
	return first_behind(t, spread(supplier_hash(space, queue)));
}

static const struct supplier_row *
by_range(const struct table *t, struct slice space, struct slice queue)
{
	return last_up_to(t, SUPPLIER_FROM, t->by_tenant ? space : queue);
}

/* ---- The kinds ---- */

static struct supplied
answer(const struct table *t, const struct supplier_row *r)
{
	return r ? (struct supplied){ r->shard, r->rule } : (struct supplied){ t->standard, "default" };
}

static int
table_all(const struct supplier *s, struct slice space, struct slice queue,
	  struct supplied out[SUPPLIED_MAX], unsigned *n, struct slu_err *err)
{
	const int rc = s->ops->current(s, space, queue, out, err);

	*n = rc == 0;
	return rc;
}

static void
table_describe(const struct supplier *s, struct buf *out)
{
	const struct table *t = table_of(s);

	buf_printf(out, "%s\n%s\n%d\n", s->ops->name, t->standard ? t->standard : "",
		   t->by_tenant);
	for (unsigned i = 0; i < t->n; i++)
		buf_printf(out, "%u %s=%s\n", t->rows[i].by, t->rows[i].name,
			   t->rows[i].shard);
}

static void
table_free(struct supplier *s)
{
	mem_free(s);
}

/* A supplier of a name, by a function from names to rows. */
#define KIND(word, find)                                                                 \
	static int find##_current(const struct supplier *s, struct slice space,          \
				  struct slice queue, struct supplied *out,              \
				  struct slu_err *err)                                   \
	{                                                                                \
		const struct table *t = table_of(s);                                     \
                                                                                         \
		(void)err;                                                               \
		*out = answer(t, find(t, space, queue));                                 \
		return 0;                                                                \
	}                                                                                \
	static const struct supplier_ops find##_ops = { word, find##_current, table_all, \
							table_describe, table_free }

KIND("default", by_nothing);
KIND("static", by_rule);
KIND("hash", by_hash);
KIND("ring", by_ring);
KIND("range", by_range);

static const struct kind {
	const struct supplier_ops *ops;
	bool rules;      /* it has some */
	unsigned points; /* rows of each shard, if the supplier chooses by hash */
} kinds[] = {
	{ &by_nothing_ops, false, 0 },
	{ &by_rule_ops, true, 0 },
	{ &by_hash_ops, false, 1 },
	{ &by_ring_ops, false, RING_POINTS },
	{ &by_range_ops, true, 0 },
};

static const struct kind *
find_kind(const char *word)
{
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (strcmp(word, kinds[i].ops->name) == 0)
			return &kinds[i];
	return NULL;
}

/* ---- Making one ---- */

static const char *
copy(char **to, const char *text)
{
	const size_t n = strlen(text) + 1;
	char *at = *to;

	memcpy(at, text, n);
	*to += n;
	return at;
}

static size_t
text_size(const struct supplier_conf *conf, const struct kind *k)
{
	size_t n = conf->standard ? strlen(conf->standard) + 1 : 0;

	for (unsigned i = 0; k->rules && i < conf->n_rules; i++)
		n += strlen(conf->rules[i].name) + strlen(conf->rules[i].shard) + 2;
	for (unsigned i = 0; k->points && i < conf->n_shards; i++)
		n += strlen(conf->shards[i]) + 1;
	return n;
}

static void
fill_rules(struct table *t, const struct supplier_conf *conf, char *text)
{
	static const char *const words[] = { "tenant", "command", "range" };

	for (; t->n < conf->n_rules; t->n++) {
		const struct supplier_rule *rule = &conf->rules[t->n];

		t->rows[t->n] = (struct supplier_row){ .name = copy(&text, rule->name),
						       .shard = copy(&text, rule->shard),
						       .rule = words[rule->by],
						       .by = (uint8_t)rule->by };
	}
}

static void
fill_points(struct table *t, const struct supplier_conf *conf, const struct kind *k,
	    char *text)
{
	for (unsigned i = 0; i < conf->n_shards; i++) {
		const char *shard = copy(&text, conf->shards[i]);
		const uint32_t h = fnv1a32(shard, strlen(shard));

		for (unsigned j = 0; j < k->points; j++)
			t->rows[t->n++] = (struct supplier_row){
				.name = shard,
				.shard = shard,
				.rule = k->ops->name,
				.point = spread(fnv1a32_more(h, &(unsigned char){ (unsigned char)j }, 1)),
			};
	}
}

static int
compare_rows(const void *a, const void *b)
{
	const struct supplier_row *x = a, *y = b;
	int c = (x->point > y->point) - (x->point < y->point);

	c = c ? c : x->by - y->by;
	return c ? c : strcmp(x->name, y->name);
}

/* hash keeps the order of its shards, because the order decides. */
static int
sort_rows(struct table *t, struct slu_err *err)
{
	if (t->n == 0 || t->supplier.ops == &by_hash_ops)
		return 0;
	qsort(t->rows, t->n, sizeof *t->rows, compare_rows);
	for (unsigned i = 1; t->supplier.ops != &by_ring_ops && i < t->n; i++)
		if (compare_rows(&t->rows[i - 1], &t->rows[i]) == 0)
			return slu_fail(err, SLU_EINVAL, "invalid %s %s; expected one shard, not %s and %s",
					t->rows[i].rule, t->rows[i].name,
					t->rows[i - 1].shard, t->rows[i].shard);
	return 0;
}

static int
check(const struct supplier_conf *conf, const struct kind *k, struct slu_err *err)
{
	if (!k)
		return slu_fail(err, SLU_EINVAL,
				"invalid supplier %s; expected default, static, hash, ring or range",
				conf->kind);
	if (k->points ? conf->n_shards == 0 : !conf->standard)
		return slu_fail(err, SLU_EINVAL, "invalid supplier %s without a shard; expected at least one",
				k->ops->name);
	return 0;
}

int
supplier_new(struct supplier **out, const struct supplier_conf *conf, struct slu_err *err)
{
	const struct kind *k = find_kind(conf->kind ? conf->kind : "default");
	struct table *t;
	size_t rows;
	char *text;
	int rc = check(conf, k, err);

	if (rc)
		return rc;
	rows = k->rules ? conf->n_rules : (size_t)conf->n_shards * k->points;
	t = mem_zalloc(sizeof *t + rows * sizeof *t->rows + text_size(conf, k));
	if (!t)
		return slu_fail(err, SLU_ENOMEM, "no memory for %zu rules", rows);
	text = (char *)&t->rows[rows];
	t->supplier.ops = k->ops;
	t->by_tenant = conf->by_tenant;
	t->standard = conf->standard ? copy(&text, conf->standard) : NULL;
	if (k->rules)
		fill_rules(t, conf, text);
	else if (k->points)
		fill_points(t, conf, k, text);
	assert(t->n == rows);
	rc = sort_rows(t, err);
	if (rc)
		mem_free(t);
	else
		*out = &t->supplier;
	return rc;
}

void
supplier_free(struct supplier *s)
{
	if (s)
		s->ops->free(s);
}
