#include "broker/flow.h"

struct flow {
	uint64_t number;
	uint32_t unsettled; /* never 0 */
};

struct flow_lease {
	uint64_t id;
	uint32_t flow;
};

static uint64_t
hash_of(const struct flows *f, uint64_t number)
{
	return hash_keyed(&f->secret, &number, sizeof number);
}

static struct flow *
flow_at(const struct flows *f, uint32_t h)
{
	return slab_at(&f->flows, h);
}

static struct flow_lease *
lease_at(const struct flows *f, uint32_t h)
{
	return slab_at(&f->leases, h);
}

static uint64_t
number_hash(const void *items, uint32_t h)
{
	const struct flows *const f = items;

	return hash_of(f, flow_at(f, h)->number);
}

static bool
number_is(const void *items, uint32_t h, const void *key)
{
	return flow_at(items, h)->number == *(const uint64_t *)key;
}

static uint64_t
id_hash(const void *items, uint32_t h)
{
	const struct flows *const f = items;

	return hash_of(f, lease_at(f, h)->id);
}

static bool
id_is(const void *items, uint32_t h, const void *key)
{
	return lease_at(items, h)->id == *(const uint64_t *)key;
}

void
flows_init(struct flows *f, const struct hash_key *secret)
{
	*f = (struct flows){ .secret = *secret };
	slab_init_chunked(&f->flows, sizeof(struct flow), 6);
	slab_init_chunked(&f->leases, sizeof(struct flow_lease), 8);
	map_init(&f->numbers, f, number_hash, number_is);
	map_init(&f->ids, f, id_hash, id_is);
}

void
flows_release(struct flows *f)
{
	map_release(&f->numbers);
	map_release(&f->ids);
	slab_release(&f->flows);
	slab_release(&f->leases);
}

uint32_t
flow_room(const struct flows *f, const struct op *op)
{
	uint32_t h, used;

	if (op->flow == 0)
		return UINT32_MAX;
	h = map_find(&f->numbers, hash_of(f, op->flow), &op->flow);
	used = h == MAP_NONE ? 0 : flow_at(f, h)->unsettled;
	return op->flow_max > used ? op->flow_max - used : 0;
}

/* The flow of that number, made if there is none. SLAB_NONE: no memory. */
static uint32_t
open_flow(struct flows *f, uint64_t number)
{
	uint32_t h = map_find(&f->numbers, hash_of(f, number), &number);

	if (h != MAP_NONE)
		return h;
	if (map_reserve(&f->numbers, 1))
		return SLAB_NONE;
	h = slab_new(&f->flows);
	if (h == SLAB_NONE)
		return h;
	flow_at(f, h)->number = number;
	(void)map_insert(&f->numbers, hash_of(f, number), h); /* reserved */
	return h;
}

static void
leave_flow(struct flows *f, uint32_t h)
{
	struct flow *const flow = flow_at(f, h);

	if (flow->unsettled > 0)
		return;
	map_remove(&f->numbers, hash_of(f, flow->number), h);
	slab_free(&f->flows, h);
}

/* False: no memory. */
static bool
add_lease(struct flows *f, uint32_t flow, uint64_t id)
{
	uint32_t h;

	if (map_reserve(&f->ids, 1))
		return false;
	h = slab_new(&f->leases);
	if (h == SLAB_NONE)
		return false;
	*lease_at(f, h) = (struct flow_lease){ id, flow };
	(void)map_insert(&f->ids, hash_of(f, id), h); /* reserved */
	return true;
}

void
flow_grant(struct flows *f, const struct op *op)
{
	uint32_t h;

	if (op->flow == 0 || op->n_rows == 0)
		return;
	h = open_flow(f, op->flow);
	if (h == SLAB_NONE)
		return;
	for (uint32_t i = 0; i < op->n_rows; i++)
		flow_at(f, h)->unsettled += add_lease(f, h, op->rows[i].id);
	leave_flow(f, h);
}

uint64_t
flow_settle(struct flows *f, uint64_t id)
{
	uint32_t h, flow;
	uint64_t number;

	if (f->leases.used == 0)
		return 0;
	h = map_find(&f->ids, hash_of(f, id), &id);
	if (h == MAP_NONE)
		return 0;
	flow = lease_at(f, h)->flow;
	number = flow_at(f, flow)->number;
	map_remove(&f->ids, hash_of(f, id), h);
	slab_free(&f->leases, h);
	flow_at(f, flow)->unsettled--;
	leave_flow(f, flow);
	return number;
}
