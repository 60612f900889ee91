#include "engine/spaces.h"

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/slab.h"

#include <pthread.h>

struct spaces {
	pthread_mutex_t mtx;
	/* shared, under mtx; the numbers of a row are not */
	struct slab rows; /* of struct space_use */
	struct map names;
	struct hash_key secret;
	struct space_quotas quotas;
};

static uint64_t
row_hash(const void *rows, uint32_t h)
{
	return ((const struct space_use *)slab_at(rows, h))->hash;
}

static bool
row_is(const void *rows, uint32_t h, const void *key)
{
	const struct space_use *u = slab_at(rows, h);

	return slice_eq(slice_of(u->name), *(const struct slice *)key);
}

int
spaces_new(struct spaces **out, struct slu_err *err)
{
	struct spaces *s = mem_zalloc(sizeof *s);
	int rc;

	if (!s)
		return slu_fail(err, SLU_ENOMEM, "no memory for namespaces");
	rc = hash_key_init(&s->secret, err);
	if (rc) {
		mem_free(s);
		return rc;
	}
	pthread_mutex_init(&s->mtx, NULL); /* cannot fail with these attributes */
	slab_init_chunked(&s->rows, sizeof(struct space_use), 4);
	map_init(&s->names, &s->rows, row_hash, row_is);
	*out = s;
	return 0;
}

void
spaces_free(struct spaces *s)
{
	if (!s)
		return;
	map_release(&s->names);
	slab_release(&s->rows);
	pthread_mutex_destroy(&s->mtx);
	mem_free(s->quotas.rows);
	mem_free(s);
}

static void
set_limits(const struct spaces *s, struct space_use *u)
{
	uint64_t messages = s->quotas.messages, bytes = s->quotas.bytes;

	for (unsigned i = 0; i < s->quotas.n; i++) {
		const struct space_quota *q = &s->quotas.rows[i];

		if (strcmp(q->name, u->name) != 0)
			continue;
		messages = q->has_messages ? q->messages : messages;
		bytes = q->has_bytes ? q->bytes : bytes;
	}
	atomic_store_explicit(&u->max_messages, messages, memory_order_relaxed);
	atomic_store_explicit(&u->max_bytes, bytes, memory_order_relaxed);
}

static struct space_use *
add(struct spaces *s, uint64_t hash, struct slice name)
{
	struct space_use *u;
	uint32_t h;

	if (name.n >= sizeof u->name || slab_reserve(&s->rows, 1) || map_reserve(&s->names, 1))
		return NULL;
	h = slab_new(&s->rows);
	u = slab_at(&s->rows, h);
	u->hash = hash;
	memcpy(u->name, name.p, name.n);
	set_limits(s, u);
	(void)map_insert(&s->names, hash, h); /* reserved */
	return u;
}

struct space_use *
spaces_get(struct spaces *s, struct slice name)
{
	const uint64_t hash = hash_keyed(&s->secret, name.p, name.n);
	struct space_use *u;
	uint32_t h;

	pthread_mutex_lock(&s->mtx);
	h = map_find(&s->names, hash, &name);
	u = h == MAP_NONE ? add(s, hash, name) : slab_at(&s->rows, h);
	pthread_mutex_unlock(&s->mtx);
	return u;
}

void
spaces_limit(struct spaces *s, const struct space_quotas *q)
{
	pthread_mutex_lock(&s->mtx);
	mem_free(s->quotas.rows);
	s->quotas = *q;
	for (uint32_t h = 0; h < s->rows.fresh; h++)
		set_limits(s, slab_at(&s->rows, h));
	pthread_mutex_unlock(&s->mtx);
}
