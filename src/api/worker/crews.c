#include "api/worker/crews.h"

#include "base/mem.h"
#include "core/names.h"

#include <assert.h>
#include <stdio.h>

struct crew_row {
	struct queue_crew crew;
	uint32_t handle;
	uint32_t space_n;
	char key[]; /* the namespace and the queue, each with a NUL */
};

struct crew_key {
	struct slice space, queue;
};

static struct slice
space_of(const struct crew_row *r)
{
	return (struct slice){ r->key, r->space_n };
}

static struct slice
queue_of(const struct crew_row *r)
{
	return slice_of(r->key + r->space_n + 1);
}

static uint64_t
hash(const struct crews *c, struct slice space, struct slice queue)
{
	char text[2 * NAME_TEXT];
	const int n = snprintf(text, sizeof text, "%.*s/%.*s", (int)space.n, space.p, (int)queue.n, queue.p);

	return hash_keyed(c->secret, text, (size_t)n);
}

static uint64_t
row_hash(const void *items, uint32_t handle)
{
	const struct crews *const c = items;

	return hash(c, space_of(c->at[handle]), queue_of(c->at[handle]));
}

static bool
row_is(const void *items, uint32_t handle, const void *key)
{
	const struct crews *const c = items;
	const struct crew_key *const k = key;

	return slice_eq(space_of(c->at[handle]), k->space) && slice_eq(queue_of(c->at[handle]), k->queue);
}

void
crews_init(struct crews *c, const struct hash_key *secret)
{
	*c = (struct crews){ .secret = secret };
	map_init(&c->by_queue, c, row_hash, row_is);
}

void
crews_release(struct crews *c)
{
	for (uint32_t i = 0; i < c->room; i++)
		mem_free(c->at[i]);
	mem_free(c->at);
	map_release(&c->by_queue);
}

static struct crew_row *
find(const struct crews *c, struct slice space, struct slice queue)
{
	const struct crew_key key = { space, queue };
	const uint32_t handle = map_find(&c->by_queue, hash(c, space, queue), &key);

	return handle == MAP_NONE ? NULL : c->at[handle];
}

/* Returns a free handle, or MAP_NONE. */
static uint32_t
take_handle(struct crews *c)
{
	const uint32_t before = c->room;

	if (c->n == CREWS_MAX || !mem_room(&c->at, &c->room, c->n + 1, sizeof *c->at))
		return MAP_NONE;
	memset(c->at + before, 0, (c->room - before) * sizeof *c->at);
	while (c->at[c->first_free])
		c->first_free++;
	return c->first_free;
}

static struct crew_row *
add(struct crews *c, struct slice space, struct slice queue)
{
	const uint32_t handle = take_handle(c);
	struct crew_row *const r = handle == MAP_NONE ? NULL : mem_zalloc(sizeof *r + space.n + queue.n + 2);

	if (!r)
		return NULL;
	r->handle = handle;
	r->space_n = (uint32_t)space.n;
	memcpy(r->key, space.p, space.n);
	memcpy(r->key + space.n + 1, queue.p, queue.n);
	c->at[handle] = r;
	if (map_insert(&c->by_queue, hash(c, space, queue), handle)) {
		c->at[handle] = NULL;
		mem_free(r);
		return NULL;
	}
	c->n++;
	return r;
}

bool
crews_join(struct crews *c, struct slice space, struct slice queue, struct queue_crew worker)
{
	struct crew_row *r = find(c, space, queue);

	if (!r)
		r = add(c, space, queue);
	if (!r)
		return false;
	r->crew.n += worker.n;
	r->crew.slots += worker.slots;
	r->crew.used += worker.used;
	return true;
}

void
crews_leave(struct crews *c, struct slice space, struct slice queue, struct queue_crew was)
{
	struct crew_row *const r = find(c, space, queue);

	assert(r && r->crew.n >= was.n);
	r->crew.n -= was.n;
	r->crew.slots -= was.slots;
	r->crew.used -= was.used;
	if (r->crew.n)
		return;
	map_remove(&c->by_queue, row_hash(c, r->handle), r->handle);
	c->at[r->handle] = NULL;
	c->first_free = r->handle < c->first_free ? r->handle : c->first_free;
	c->n--;
	mem_free(r);
}

struct queue_crew
crews_of(const struct crews *c, struct slice space, struct slice queue)
{
	const struct crew_row *const r = c->n ? find(c, space, queue) : NULL;

	return r ? r->crew : (struct queue_crew){ 0 };
}
