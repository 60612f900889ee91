#include "core/shardmap.h"

#include "base/mem.h"
#include "core/names.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
	DESCRIPTION_MAX = 64 << 20
};

struct shard_name {
	char text[SHARDMAP_NAME];
	uint32_t number;
};

struct shardmap {
	struct supplier *now, *before;
	uint64_t version;
	uint64_t hash;
	unsigned n;
	struct shard_name *sorted; /* sorted by name; in the same memory, after names */
	const char *names[];       /* by number; point into sorted */
};

/* ---- Names ---- */

static int
compare(const void *a, const void *b)
{
	return strcmp(a, ((const struct shard_name *)b)->text);
}

static int
compare_names(const void *a, const void *b)
{
	return compare(((const struct shard_name *)a)->text, b);
}

/* The number of a shard, or UINT32_MAX. */
static uint32_t
find(const struct shardmap *m, const char *shard)
{
	const struct shard_name *at =
		bsearch(shard, m->sorted, m->n, sizeof *m->sorted, compare);

	return at ? at->number : UINT32_MAX;
}

static int
take_name(struct shardmap *m, const char *name, struct slu_err *err)
{
	char folded[NAME_TEXT];
	struct shard_name *at = &m->sorted[m->n];
	const int rc = name_fold(slice_of(name), "shard", folded, err);

	if (rc)
		return rc;
	if (strlen(name) >= SHARDMAP_NAME)
		return slu_fail(err, SLU_EINVAL, "invalid shard name %.70s; expected at most %d bytes",
				name, SHARDMAP_NAME - 1);
	memcpy(at->text, name, strlen(name) + 1);
	at->number = m->n++;
	return 0;
}

static int
take_names(struct shardmap *m, const struct shardmap_conf *conf, struct slu_err *err)
{
	int rc = 0;

	while (!rc && m->n < conf->n_shards)
		rc = take_name(m, conf->shards[m->n], err);
	if (rc)
		return rc;
	qsort(m->sorted, m->n, sizeof *m->sorted, compare_names);
	for (unsigned i = 0; i < m->n; i++) {
		if (i > 0 && strcmp(m->sorted[i - 1].text, m->sorted[i].text) == 0)
			return slu_fail(err, SLU_EINVAL, "invalid shard %s; expected each name once",
					m->sorted[i].text);
		m->names[m->sorted[i].number] = m->sorted[i].text;
	}
	return 0;
}

/* ---- Making one ---- */

static uint64_t
fnv1a64(struct slice s)
{
	uint64_t h = 14695981039346656037ull;

	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (unsigned char)s.p[i]) * 1099511628211ull;
	return h;
}

static int
take_hash(struct shardmap *m, struct slu_err *err)
{
	struct buf text;
	bool failed;

	buf_init(&text, DESCRIPTION_MAX);
	buf_printf(&text, "%" PRIu64 "\n", m->version);
	for (unsigned i = 0; i < m->n; i++)
		buf_printf(&text, "%s\n", m->names[i]);
	m->now->ops->describe(m->now, &text);
	buf_puts(&text, "before\n");
	if (m->before)
		m->before->ops->describe(m->before, &text);
	m->hash = fnv1a64(buf_slice(&text));
	failed = text.failed;
	buf_release(&text);
	return failed ? slu_fail(err, SLU_ENOMEM, "no memory for the shard map") : 0;
}

static int
make(struct shardmap **out, const struct shardmap_conf *conf, struct slu_err *err)
{
	const unsigned n = conf->n_shards;
	struct shardmap *m;
	int rc;

	if (n == 0 || n > SHARDMAP_SHARDS)
		return slu_fail(err, SLU_EINVAL, "invalid number of shards: %u; expected 1 to %d", n, SHARDMAP_SHARDS);
	m = mem_zalloc(sizeof *m + n * (sizeof *m->sorted + sizeof m->names[0]));
	if (!m)
		return slu_fail(err, SLU_ENOMEM, "no memory for the shard map");
	m->sorted = (struct shard_name *)(void *)&m->names[n];
	m->now = conf->now;
	m->before = conf->before;
	m->version = conf->version;
	rc = take_names(m, conf, err);
	if (!rc)
		rc = take_hash(m, err);
	if (rc)
		mem_free(m);
	else
		*out = m;
	return rc;
}

int
shardmap_new(struct shardmap **out, const struct shardmap_conf *conf, struct slu_err *err)
{
	const int rc = make(out, conf, err);

	if (rc) {
		supplier_free(conf->now);
		supplier_free(conf->before);
	}
	return rc;
}

void
shardmap_free(struct shardmap *m)
{
	if (!m)
		return;
	supplier_free(m->now);
	supplier_free(m->before);
	mem_free(m);
}

/* ---- Asking ---- */

static int
resolve(const struct shardmap *m, const struct supplied *from, struct shard_choice *out,
	struct slu_err *err)
{
	const uint32_t shard = find(m, from->shard);

	if (shard == UINT32_MAX)
		return slu_fail(err, SLU_EDOWN, "unknown shard: %s", from->shard); /* SHARDMAP-3 */
	*out = (struct shard_choice){ shard, from->rule };
	return 0;
}

static int
refused(int rc, const struct slu_err *why, struct slu_err *err)
{
	return slu_fail(err, rc, "shard resolution: %s", why->text);
}

int
shardmap_current(const struct shardmap *m, struct slice space, struct slice queue,
		 struct shard_choice *out, struct slu_err *err)
{
	struct supplied one;
	struct slu_err why;
	const int rc = m->now->ops->current(m->now, space, queue, &one, &why);

	return rc ? refused(rc, &why, err) : resolve(m, &one, out, err);
}

static void
add(struct shard_choice *out, unsigned *n, const struct shard_choice *one)
{
	for (unsigned i = 0; i < *n; i++)
		if (out[i].shard == one->shard)
			return;
	if (*n < SUPPLIED_MAX)
		out[(*n)++] = *one;
}

/* Adds the shards of one supplier. rule: the rule to report; NULL = the supplier's own text. */
static int
add_all(const struct shardmap *m, const struct supplier *s, struct slice space,
	struct slice queue, const char *rule, struct shard_choice *out, unsigned *n,
	struct slu_err *err)
{
	struct supplied from[SUPPLIED_MAX];
	struct slu_err why;
	unsigned n_from = 0;
	int rc = s->ops->all(s, space, queue, from, &n_from, &why);

	if (rc)
		return refused(rc, &why, err);
	for (unsigned i = 0; !rc && i < n_from; i++) {
		struct shard_choice one;

		rc = resolve(m, &from[i], &one, err);
		one.rule = rule ? rule : from[i].rule;
		if (!rc)
			add(out, n, &one);
	}
	return rc;
}

int
shardmap_all(const struct shardmap *m, struct slice space, struct slice queue,
	     struct shard_choice out[SUPPLIED_MAX], unsigned *n, struct slu_err *err)
{
	int rc = shardmap_current(m, space, queue, out, err);

	*n = rc == 0;
	if (!rc)
		rc = add_all(m, m->now, space, queue, NULL, out, n, err);
	if (!rc && m->before)
		rc = add_all(m, m->before, space, queue, "previous", out, n, err);
	return rc;
}

unsigned
shardmap_count(const struct shardmap *m)
{
	return m->n;
}

const char *
shardmap_name(const struct shardmap *m, uint32_t shard)
{
	return m->names[shard];
}

uint64_t
shardmap_version(const struct shardmap *m)
{
	return m->version;
}

uint64_t
shardmap_hash(const struct shardmap *m)
{
	return m->hash;
}
