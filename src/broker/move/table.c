/*
 * table.c - the table of queues that move.
 */
#include "broker/move/follow_private.h"

#include "base/mem.h"

#include <assert.h>

struct movetable_key {
	struct slice space, queue;
};

static uint64_t
row_hash(const void *items, uint32_t h)
{
	const struct movetable_row *const m = slab_at(items, h);

	return m->hash;
}

static bool
row_is(const void *items, uint32_t h, const void *key)
{
	const struct movetable_row *const m = slab_at(items, h);
	const struct movetable_key *const k = key;

	return slice_eq(m->space, k->space) && slice_eq(m->queue, k->queue);
}

static uint64_t
name_hash(const struct follows *rs, struct slice space, struct slice queue)
{
	char text[2 * MESSAGE_NAME_MAX + 1];

	assert(space.n <= MESSAGE_NAME_MAX && queue.n <= MESSAGE_NAME_MAX);
	memcpy(text, space.p, space.n);
	text[space.n] = '/';
	memcpy(text + space.n + 1, queue.p, queue.n);
	return hash_keyed(&rs->secret, text, space.n + 1 + queue.n);
}

int
follows_new(struct follows **out, struct broker *b, struct slu_err *err)
{
	struct follows *rs = mem_zalloc(sizeof *rs);
	int rc;

	if (!rs)
		return slu_fail(err, SLU_ENOMEM, "no memory for moves");
	rc = hash_key_init(&rs->secret, err);
	if (rc) {
		mem_free(rs);
		return rc;
	}
	rs->b = b;
	pthread_mutex_init(&rs->mtx, NULL); /* cannot fail with these attributes */
	slab_init_chunked(&rs->rows, sizeof(struct movetable_row), 6);
	list_init(&rs->all);
	map_init(&rs->names, &rs->rows, row_hash, row_is);
	*out = rs;
	return 0;
}

bool
follows_any(const struct follows *rs)
{
	return atomic_load_explicit(&rs->n, memory_order_relaxed) > 0;
}

struct movetable_row *
movetable_find(struct follows *rs, struct slice space, struct slice queue)
{
	const struct movetable_key key = { space, queue };
	uint32_t h;

	if (!follows_any(rs))
		return NULL;
	h = map_find(&rs->names, name_hash(rs, space, queue), &key);
	return h == MAP_NONE ? NULL : slab_at(&rs->rows, h);
}

static void
forget(struct follows *rs, struct movetable_row *m)
{
	map_remove(&rs->names, m->hash, m->handle);
	list_remove(&m->any);
	mem_free((char *)m->space.p); /* the name of the queue is behind it */
	slab_free(&rs->rows, m->handle);
	atomic_fetch_sub(&rs->n, 1);
}

/* A queue that was forgotten gets a new row when an op comes. */
static void
forget_unused(struct follows *rs)
{
	LIST_EACH_SAFE(n, &rs->all) {
		struct movetable_row *const m = CONTAINER(n, struct movetable_row, any);

		if (m->uses == 0)
			forget(rs, m);
	}
}

struct movetable_row *
movetable_add(struct follows *rs, struct slice space, struct slice queue,
	      const struct follow_path *path)
{
	char *const text = mem_alloc(space.n + queue.n + 1);
	struct movetable_row *m;
	uint32_t h;
	int rc;

	if (text && rs->rows.used >= MOVETABLE_MAX)
		forget_unused(rs);
	h = text && map_reserve(&rs->names, 1) == 0 ? slab_new(&rs->rows) : SLAB_NONE;
	if (h == SLAB_NONE) {
		mem_free(text);
		return NULL;
	}
	memcpy(text, space.p, space.n);
	memcpy(text + space.n, queue.p, queue.n);
	m = slab_at(&rs->rows, h);
	*m = (struct movetable_row){
		.hash = name_hash(rs, space, queue),
		.handle = h,
		.space = { text, space.n },
		.queue = { text + space.n, queue.n },
		.path = *path,
		.by_map = path->epoch,
	};
	list_append(&rs->all, &m->any);
	list_init(&m->held);
	list_init(&m->waiting);
	rc = map_insert(&rs->names, m->hash, h);
	assert(rc == 0); /* reserved */
	atomic_fetch_add(&rs->n, 1);
	return m;
}

void
follows_free(struct follows *rs)
{
	if (!rs)
		return;
	forget_unused(rs);
	assert(rs->rows.used == 0);
	map_release(&rs->names);
	slab_release(&rs->rows);
	pthread_mutex_destroy(&rs->mtx);
	mem_free(rs);
}

unsigned
follow_path_find(const struct follow_path *path, uint32_t lane)
{
	for (unsigned i = 0; i < path->n; i++)
		if (path->lanes[i] == lane)
			return i;
	return UINT_MAX;
}

void
movetable_follow(struct movetable_row *m, const struct follow_path *by_map)
{
	struct follow_path path = *by_map;

	for (unsigned i = 0; i < m->path.n && path.n < SUPPLIED_MAX; i++)
		if (follow_path_find(&path, m->path.lanes[i]) == UINT_MAX)
			path.lanes[path.n++] = m->path.lanes[i];
	m->by_map = by_map->epoch;
	m->path = path;
	m->state = MOVETABLE_NEW;
	m->empty = false;
}

bool
follow_path_of(struct follows *rs, struct slice space, struct slice queue, struct follow_path *out)
{
	const struct movetable_row *m;

	if (!follows_any(rs))
		return false;
	pthread_mutex_lock(&rs->mtx);
	m = movetable_find(rs, space, queue);
	if (m)
		*out = m->path;
	pthread_mutex_unlock(&rs->mtx);
	return m != NULL;
}

uint32_t
follow_home(struct follows *rs, struct slice space, struct slice queue,
	    const struct follow_path *by_map)
{
	const struct movetable_row *m;
	uint32_t lane = by_map->lanes[0];

	pthread_mutex_lock(&rs->mtx);
	m = movetable_find(rs, space, queue);
	if (m && m->path.epoch >= by_map->epoch)
		lane = m->path.lanes[0];
	pthread_mutex_unlock(&rs->mtx);
	return lane;
}
