#include "broker/flow.h"

#include "base/clock.h"

struct flow {
	uint64_t number;
	uint32_t unsettled; /* never 0 */
};

struct flow_lease {
	uint64_t id;
	uint64_t token;
	uint32_t flow;
	uint32_t pos; /* in ends, or HEAP_OUT */
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
	heap_init(&f->ends, &f->leases, offsetof(struct flow_lease, pos));
}

void
flows_release(struct flows *f)
{
	map_release(&f->numbers);
	map_release(&f->ids);
	heap_release(&f->ends);
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

static void
set_end(struct flows *f, uint32_t h, slu_time until)
{
	const struct flow_lease *const lease = lease_at(f, h);

	if (lease->pos != HEAP_OUT)
		heap_remove(&f->ends, lease->pos);
	if (until != SLU_NEVER)
		heap_push(&f->ends, (struct rank){ .b = rank_time(until), .c = h }, h);
}

/* False: no memory. */
static bool
add_lease(struct flows *f, uint32_t flow, const struct op_row *row, slu_time until)
{
	uint32_t h;

	if (map_reserve(&f->ids, 1) || heap_reserve(&f->ends, f->ends.n + 1))
		return false;
	h = slab_new(&f->leases);
	if (h == SLAB_NONE)
		return false;
	*lease_at(f, h) = (struct flow_lease){ row->id, row->token, flow, HEAP_OUT };
	(void)map_insert(&f->ids, hash_of(f, row->id), h); /* reserved */
	set_end(f, h, until);
	return true;
}

/* When a lease ends by our clock, if nobody reports its end. */
static slu_time
end_of(const struct flows *f, const struct op_row *row, slu_time now)
{
	if (!f->by_time)
		return SLU_NEVER;
	return time_add(time_add(now, row->until - row->claimed), FLOW_LATE);
}

void
flow_grant(struct flows *f, const struct op *op, slu_time now)
{
	uint32_t h;

	if (op->flow == 0 || op->n_rows == 0)
		return;
	h = open_flow(f, op->flow);
	if (h == SLAB_NONE)
		return;
	for (uint32_t i = 0; i < op->n_rows; i++)
		flow_at(f, h)->unsettled += add_lease(f, h, &op->rows[i], end_of(f, &op->rows[i], now));
	leave_flow(f, h);
}

static uint32_t
find_lease(const struct flows *f, uint64_t id)
{
	return f->leases.used ? map_find(&f->ids, hash_of(f, id), &id) : MAP_NONE;
}

static uint64_t
end_lease(struct flows *f, uint32_t h)
{
	const struct flow_lease lease = *lease_at(f, h);
	const uint64_t number = flow_at(f, lease.flow)->number;

	set_end(f, h, SLU_NEVER);
	map_remove(&f->ids, hash_of(f, lease.id), h);
	slab_free(&f->leases, h);
	flow_at(f, lease.flow)->unsettled--;
	leave_flow(f, lease.flow);
	return number;
}

uint64_t
flow_settle(struct flows *f, uint64_t id, uint64_t token)
{
	const uint32_t h = find_lease(f, id);

	if (h == MAP_NONE || (token && lease_at(f, h)->token != token))
		return 0;
	return end_lease(f, h);
}

void
flow_extend(struct flows *f, uint64_t id, slu_time until)
{
	const uint32_t h = f->by_time ? find_lease(f, id) : MAP_NONE;

	if (h != MAP_NONE)
		set_end(f, h, time_add(until, FLOW_LATE));
}

slu_time
flows_next(const struct flows *f)
{
	const struct heap_node *const first = heap_first(&f->ends);

	return first ? (slu_time)rank_time((int64_t)first->b) : SLU_NEVER;
}

uint64_t
flow_expire(struct flows *f, slu_time now)
{
	return flows_next(f) <= now ? end_lease(f, heap_first(&f->ends)->handle) : 0;
}
