#include "core/queue/results.h"

#include "base/hash.h"

#include <assert.h>

static struct result *
at(const struct results *r, uint32_t handle)
{
	return slab_at(&r->slab, handle);
}

static uint64_t
result_hash(const void *slab, uint32_t handle)
{
	const struct result *r = slab_at(slab, handle);

	return hash_number(r->id);
}

static bool
result_is(const void *slab, uint32_t handle, const void *key)
{
	const struct result *r = slab_at(slab, handle);

	return r->id == *(const uint64_t *)key;
}

void
results_init(struct results *r)
{
	slab_init(&r->slab, sizeof(struct result));
	map_init(&r->by_id, &r->slab, result_hash, result_is);
	heap_init(&r->by_until, &r->slab, offsetof(struct result, pos));
}

void
results_release(struct results *r)
{
	heap_release(&r->by_until);
	map_release(&r->by_id);
	slab_release(&r->slab);
}

int
results_reserve(struct results *r)
{
	int rc = slab_reserve(&r->slab, 1);

	if (!rc)
		rc = map_reserve(&r->by_id, 1);
	return rc ? rc : heap_reserve(&r->by_until, results_count(r) + 1);
}

static uint32_t
find(const struct results *r, uint64_t id)
{
	return map_find(&r->by_id, hash_number(id), &id);
}

/* One more, or (UINT32_MAX) one less. */
static void
count(struct results *r, uint32_t queue, uint32_t by)
{
	if (r->count)
		*r->count(r->arg, queue) += by;
}

uint64_t
results_add(struct results *r, uint64_t id, const struct ledger_result *result)
{
	uint32_t handle;
	int rc;

	if (find(r, id) != MAP_NONE)
		return results_relocate(r, id, result->where);
	handle = slab_new(&r->slab);
	assert(handle != SLAB_NONE); /* reserved, as is the next */
	*at(r, handle) = (struct result){
		.id = id,
		.where = result->where,
		.queue = result->queue,
	};
	rc = map_insert(&r->by_id, hash_number(id), handle);
	assert(rc == 0);
	(void)rc;
	heap_push(&r->by_until, (struct rank){ .b = rank_time(result->until), .c = id },
		  handle);
	count(r, result->queue, 1);
	return 0;
}

bool
results_find(const struct results *r, uint64_t id, struct ledger_result *out)
{
	const uint32_t handle = find(r, id);

	if (handle == MAP_NONE)
		return false;

	const struct result *it = at(r, handle);

	*out = (struct ledger_result){
		.queue = it->queue,
		.where = it->where,
		.until = (slu_time)rank_time((int64_t)heap_at(&r->by_until, it->pos)->b),
	};
	return true;
}

uint64_t
results_relocate(struct results *r, uint64_t id, uint64_t where)
{
	const uint32_t handle = find(r, id);
	uint64_t old;

	if (handle == MAP_NONE)
		return where;
	old = at(r, handle)->where;
	at(r, handle)->where = where;
	return old == where ? 0 : old;
}

static uint64_t
forget(struct results *r, uint32_t handle)
{
	const uint64_t where = at(r, handle)->where;

	count(r, at(r, handle)->queue, UINT32_MAX);
	map_remove(&r->by_id, hash_number(at(r, handle)->id), handle);
	slab_free(&r->slab, handle);
	return where;
}

uint64_t
results_remove(struct results *r, uint64_t id)
{
	const uint32_t handle = find(r, id);

	if (handle == MAP_NONE)
		return 0;
	heap_remove(&r->by_until, at(r, handle)->pos);
	return forget(r, handle);
}

uint64_t
results_remove_of(struct results *r, uint32_t queue, uint32_t *from)
{
	uint32_t handle;

	do {
		*from = *from < r->by_until.n ? *from : 0;
		handle = r->by_until.nodes[(*from)++].handle;
	} while (at(r, handle)->queue != queue);
	--*from; /* another result takes its place */
	heap_remove(&r->by_until, at(r, handle)->pos);
	return forget(r, handle);
}

slu_time
results_next_due(const struct results *r)
{
	const struct heap_node *first = heap_first(&r->by_until);

	return first ? (slu_time)rank_time((int64_t)first->b) : SLU_NEVER;
}

uint64_t
results_expire(struct results *r, slu_time now)
{
	if (r->by_until.n == 0 || results_next_due(r) > now)
		return 0;
	return forget(r, heap_pop(&r->by_until));
}
