/*
 * moving.c - the table of queues that move.
 */
#include "broker/relay_in.h"

#include "base/mem.h"

#include <assert.h>

struct row_key {
	struct slice space, queue;
};

static uint64_t
row_hash(const void *items, uint32_t h)
{
	const struct moving *const m = slab_at(items, h);

	return m->hash;
}

static bool
row_is(const void *items, uint32_t h, const void *key)
{
	const struct moving *const m = slab_at(items, h);
	const struct row_key *const k = key;

	return slice_eq(m->space, k->space) && slice_eq(m->queue, k->queue);
}

static uint64_t
name_hash(const struct relays *rs, struct slice space, struct slice queue)
{
	char text[2 * MESSAGE_NAME_MAX + 1];

	assert(space.n <= MESSAGE_NAME_MAX && queue.n <= MESSAGE_NAME_MAX);
	memcpy(text, space.p, space.n);
	text[space.n] = '/';
	memcpy(text + space.n + 1, queue.p, queue.n);
	return hash_keyed(&rs->secret, text, space.n + 1 + queue.n);
}

int
relays_new(struct relays **out, const struct relay_env *env, struct slu_err *err)
{
	struct relays *rs = mem_zalloc(sizeof *rs);
	int rc;

	if (!rs)
		return slu_fail(err, SLU_ENOMEM, "no memory for the relay");
	rc = hash_key_init(&rs->secret, err);
	if (rc) {
		mem_free(rs);
		return rc;
	}
	rs->env = *env;
	pthread_mutex_init(&rs->mtx, NULL); /* cannot fail with these attributes */
	slab_init_chunked(&rs->rows, sizeof(struct moving), 6);
	list_init(&rs->all);
	map_init(&rs->names, &rs->rows, row_hash, row_is);
	*out = rs;
	return 0;
}

bool
relays_any(const struct relays *rs)
{
	return atomic_load_explicit(&rs->n, memory_order_relaxed) > 0;
}

struct moving *
moving_find(struct relays *rs, struct slice space, struct slice queue)
{
	const struct row_key key = { space, queue };
	uint32_t h;

	if (!relays_any(rs))
		return NULL;
	h = map_find(&rs->names, name_hash(rs, space, queue), &key);
	return h == MAP_NONE ? NULL : slab_at(&rs->rows, h);
}

static void
forget(struct relays *rs, struct moving *m)
{
	map_remove(&rs->names, m->hash, m->handle);
	list_remove(&m->any);
	mem_free((char *)m->space.p); /* with the queue behind it */
	slab_free(&rs->rows, m->handle);
	atomic_fetch_sub(&rs->n, 1);
}

/* What was forgotten is asked for again when an op comes. */
static void
forget_unused(struct relays *rs)
{
	LIST_EACH_SAFE(n, &rs->all) {
		struct moving *const m = CONTAINER(n, struct moving, any);

		if (m->uses == 0)
			forget(rs, m);
	}
}

struct moving *
moving_add(struct relays *rs, struct slice space, struct slice queue,
	   const struct relay_path *path)
{
	char *const text = mem_alloc(space.n + queue.n + 1);
	struct moving *m;
	uint32_t h;
	int rc;

	if (text && rs->rows.used >= MOVING_MAX)
		forget_unused(rs);
	h = text && map_reserve(&rs->names, 1) == 0 ? slab_new(&rs->rows) : SLAB_NONE;
	if (h == SLAB_NONE) {
		mem_free(text);
		return NULL;
	}
	memcpy(text, space.p, space.n);
	memcpy(text + space.n, queue.p, queue.n);
	m = slab_at(&rs->rows, h);
	*m = (struct moving){
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
relays_free(struct relays *rs)
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
path_find(const struct relay_path *path, uint32_t lane)
{
	for (unsigned i = 0; i < path->n; i++)
		if (path->lanes[i] == lane)
			return i;
	return UINT_MAX;
}

void
moving_follow(struct moving *m, const struct relay_path *by_map)
{
	struct relay_path path = *by_map;

	for (unsigned i = 0; i < m->path.n && path.n < SUPPLIED_MAX; i++)
		if (path_find(&path, m->path.lanes[i]) == UINT_MAX)
			path.lanes[path.n++] = m->path.lanes[i];
	m->by_map = by_map->epoch;
	m->path = path;
	m->state = MOVING_NEW;
	m->empty = false;
}

bool
relay_path_of(struct relays *rs, struct slice space, struct slice queue, struct relay_path *out)
{
	const struct moving *m;

	if (!relays_any(rs))
		return false;
	pthread_mutex_lock(&rs->mtx);
	m = moving_find(rs, space, queue);
	if (m)
		*out = m->path;
	pthread_mutex_unlock(&rs->mtx);
	return m != NULL;
}

uint32_t
relay_home(struct relays *rs, struct slice space, struct slice queue,
	   const struct relay_path *by_map)
{
	const struct moving *m;
	uint32_t lane = by_map->lanes[0];

	pthread_mutex_lock(&rs->mtx);
	m = moving_find(rs, space, queue);
	if (m && m->path.epoch >= by_map->epoch)
		lane = m->path.lanes[0];
	pthread_mutex_unlock(&rs->mtx);
	return lane;
}
