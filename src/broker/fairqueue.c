#include "broker/fairqueue.h"

#include <assert.h>

/* The ops of one namespace. Its first op has the name. */
struct backlog {
	struct list turn; /* in the ring */
	struct list ops;  /* by route.mail.node; not empty once the backlog is in the map */
	uint64_t hash;
	uint32_t handle;
};

static struct op *
first_op(const struct backlog *backlog)
{
	return CONTAINER(backlog->ops.next, struct op, route.mail.node);
}

static uint64_t
backlog_hash(const void *items, uint32_t h)
{
	const struct backlog *backlog = slab_at(items, h);

	return backlog->hash;
}

static bool
backlog_is(const void *items, uint32_t h, const void *key)
{
	return slice_eq(first_op(slab_at(items, h))->space, *(const struct slice *)key);
}

void
fairqueue_init(struct fairqueue *t, const struct hash_key *secret)
{
	*t = (struct fairqueue){ .secret = *secret };
	slab_init_chunked(&t->backlogs, sizeof(struct backlog), 6);
	map_init(&t->names, &t->backlogs, backlog_hash, backlog_is);
	list_init(&t->ring);
	list_init(&t->ages);
}

void
fairqueue_release(struct fairqueue *t)
{
	assert(list_is_empty(&t->ages));
	map_release(&t->names);
	slab_release(&t->backlogs);
}

static struct backlog *
find_backlog(const struct fairqueue *t, uint64_t hash, struct slice space)
{
	const uint32_t h = t->backlogs.used ? map_find(&t->names, hash, &space) : MAP_NONE;

	return h == MAP_NONE ? NULL : slab_at(&t->backlogs, h);
}

static struct backlog *
add_backlog(struct fairqueue *t, uint64_t hash)
{
	const uint32_t h = map_reserve(&t->names, 1) ? SLAB_NONE : slab_new(&t->backlogs);
	struct backlog *backlog;
	int rc;

	if (h == SLAB_NONE)
		return NULL;
	backlog = slab_at(&t->backlogs, h);
	*backlog = (struct backlog){ .hash = hash, .handle = h };
	list_init(&backlog->ops);
	list_append(&t->ring, &backlog->turn);
	rc = map_insert(&t->names, hash, h);
	assert(rc == 0); /* reserved */
	return backlog;
}

/* The backlog of the op before is a good guess. NULL: no memory. */
static struct backlog *
backlog_of(struct fairqueue *t, struct slice space)
{
	const struct op *const last = CONTAINER(t->ages.prev, struct op, route.age);
	struct backlog *backlog;
	uint64_t hash;

	if (!list_is_empty(&t->ages) && slice_eq(last->space, space))
		return slab_at(&t->backlogs, last->route.backlog);
	hash = hash_keyed(&t->secret, space.p, space.n);
	backlog = find_backlog(t, hash, space);
	return backlog ? backlog : add_backlog(t, hash);
}

int
fairqueue_add(struct fairqueue *t, struct op *op)
{
	struct backlog *const backlog = backlog_of(t, op->space);

	if (!backlog)
		return SLU_ENOMEM;
	op->route.backlog = backlog->handle;
	list_append(&backlog->ops, &op->route.mail.node);
	list_append(&t->ages, &op->route.age);
	return 0;
}

static void
remove_backlog(struct fairqueue *t, struct backlog *backlog)
{
	map_remove(&t->names, backlog->hash, backlog->handle);
	list_remove(&backlog->turn);
	slab_free(&t->backlogs, backlog->handle);
}

static struct backlog *
next_backlog(const struct fairqueue *t)
{
	return CONTAINER(t->ring.next, struct backlog, turn);
}

struct op *
fairqueue_first(const struct fairqueue *t)
{
	return list_is_empty(&t->ring) ? NULL : first_op(next_backlog(t));
}

struct op *
fairqueue_take(struct fairqueue *t)
{
	struct backlog *backlog = next_backlog(t);
	struct op *op = fairqueue_first(t);

	if (!op)
		return NULL;
	list_remove(&backlog->turn);
	list_append(&t->ring, &backlog->turn);
	fairqueue_remove(t, op);
	return op;
}

void
fairqueue_remove(struct fairqueue *t, struct op *op)
{
	struct backlog *backlog = slab_at(&t->backlogs, op->route.backlog);

	list_remove(&op->route.mail.node);
	list_remove(&op->route.age);
	if (list_is_empty(&backlog->ops))
		remove_backlog(t, backlog);
}

slu_time
fairqueue_oldest(const struct fairqueue *t)
{
	if (list_is_empty(&t->ages))
		return SLU_NEVER;
	return CONTAINER(t->ages.next, struct op, route.age)->route.arrived;
}
