#include "broker/turns.h"

#include <assert.h>

/* A namespace that has ops here. Its name is that of its first op. */
struct tenant {
	struct list turn; /* in the ring */
	struct list ops;  /* by mail.node; not empty once it is in the map */
	uint64_t hash;
	uint32_t handle;
};

static struct op *
first_op(const struct tenant *tenant)
{
	return CONTAINER(tenant->ops.next, struct op, mail.node);
}

static uint64_t
tenant_hash(const void *items, uint32_t h)
{
	const struct tenant *tenant = slab_at(items, h);

	return tenant->hash;
}

static bool
tenant_is(const void *items, uint32_t h, const void *key)
{
	return slice_eq(first_op(slab_at(items, h))->space, *(const struct slice *)key);
}

void
turns_init(struct turns *t, const struct hash_key *secret)
{
	*t = (struct turns){ .secret = *secret };
	slab_init_chunked(&t->tenants, sizeof(struct tenant), 6);
	map_init(&t->names, &t->tenants, tenant_hash, tenant_is);
	list_init(&t->ring);
	list_init(&t->ages);
}

void
turns_release(struct turns *t)
{
	assert(list_is_empty(&t->ages));
	map_release(&t->names);
	slab_release(&t->tenants);
}

static struct tenant *
find_tenant(const struct turns *t, uint64_t hash, struct slice space)
{
	const uint32_t h = t->tenants.used ? map_find(&t->names, hash, &space) : MAP_NONE;

	return h == MAP_NONE ? NULL : slab_at(&t->tenants, h);
}

static struct tenant *
add_tenant(struct turns *t, uint64_t hash)
{
	const uint32_t h = map_reserve(&t->names, 1) ? SLAB_NONE : slab_new(&t->tenants);
	struct tenant *tenant;
	int rc;

	if (h == SLAB_NONE)
		return NULL;
	tenant = slab_at(&t->tenants, h);
	*tenant = (struct tenant){ .hash = hash, .handle = h };
	list_init(&tenant->ops);
	list_append(&t->ring, &tenant->turn);
	rc = map_insert(&t->names, hash, h);
	assert(rc == 0); /* reserved */
	return tenant;
}

/* That of the op before is a good guess. NULL: no memory. */
static struct tenant *
tenant_of(struct turns *t, struct slice space)
{
	const struct op *const last = CONTAINER(t->ages.prev, struct op, age);
	struct tenant *tenant;
	uint64_t hash;

	if (!list_is_empty(&t->ages) && slice_eq(last->space, space))
		return slab_at(&t->tenants, last->tenant);
	hash = hash_keyed(&t->secret, space.p, space.n);
	tenant = find_tenant(t, hash, space);
	return tenant ? tenant : add_tenant(t, hash);
}

int
turns_add(struct turns *t, struct op *op)
{
	struct tenant *const tenant = tenant_of(t, op->space);

	if (!tenant)
		return SLU_ENOMEM;
	op->tenant = tenant->handle;
	list_append(&tenant->ops, &op->mail.node);
	list_append(&t->ages, &op->age);
	return 0;
}

static void
remove_tenant(struct turns *t, struct tenant *tenant)
{
	map_remove(&t->names, tenant->hash, tenant->handle);
	list_remove(&tenant->turn);
	slab_free(&t->tenants, tenant->handle);
}

static struct tenant *
next_tenant(const struct turns *t)
{
	return CONTAINER(t->ring.next, struct tenant, turn);
}

struct op *
turns_first(const struct turns *t)
{
	return list_is_empty(&t->ring) ? NULL : first_op(next_tenant(t));
}

struct op *
turns_take(struct turns *t)
{
	struct tenant *tenant = next_tenant(t);
	struct op *op = turns_first(t);

	if (!op)
		return NULL;
	list_remove(&tenant->turn);
	list_append(&t->ring, &tenant->turn);
	turns_remove(t, op);
	return op;
}

void
turns_remove(struct turns *t, struct op *op)
{
	struct tenant *tenant = slab_at(&t->tenants, op->tenant);

	list_remove(&op->mail.node);
	list_remove(&op->age);
	if (list_is_empty(&tenant->ops))
		remove_tenant(t, tenant);
}

slu_time
turns_oldest(const struct turns *t)
{
	if (list_is_empty(&t->ages))
		return SLU_NEVER;
	return CONTAINER(t->ages.next, struct op, age)->arrived;
}
