#include "broker/credit.h"

#include "base/clock.h"

struct credit {
	uint64_t number;    /* of the stream */
	uint32_t unsettled; /* leases; never 0 */
};

struct credit_lease {
	uint64_t id;     /* of the message */
	uint64_t token;  /* of the lease */
	uint32_t credit; /* of its stream */
	uint32_t pos;    /* in ends, or HEAP_OUT */
};

static uint64_t
hash_of(const struct credits *f, uint64_t number)
{
	return hash_keyed(&f->secret, &number, sizeof number);
}

static struct credit *
credit_at(const struct credits *f, uint32_t h)
{
	return slab_at(&f->streams, h);
}

static struct credit_lease *
lease_at(const struct credits *f, uint32_t h)
{
	return slab_at(&f->leases, h);
}

static uint64_t
number_hash(const void *items, uint32_t h)
{
	const struct credits *const f = items;

	return hash_of(f, credit_at(f, h)->number);
}

static bool
number_is(const void *items, uint32_t h, const void *key)
{
	return credit_at(items, h)->number == *(const uint64_t *)key;
}

static uint64_t
id_hash(const void *items, uint32_t h)
{
	const struct credits *const f = items;

	return hash_of(f, lease_at(f, h)->id);
}

static bool
id_is(const void *items, uint32_t h, const void *key)
{
	return lease_at(items, h)->id == *(const uint64_t *)key;
}

void
credits_init(struct credits *f, const struct hash_key *secret)
{
	*f = (struct credits){ .secret = *secret };
	slab_init_chunked(&f->streams, sizeof(struct credit), 6);
	slab_init_chunked(&f->leases, sizeof(struct credit_lease), 8);
	map_init(&f->numbers, f, number_hash, number_is);
	map_init(&f->ids, f, id_hash, id_is);
	heap_init(&f->ends, &f->leases, offsetof(struct credit_lease, pos));
}

void
credits_release(struct credits *f)
{
	map_release(&f->numbers);
	map_release(&f->ids);
	heap_release(&f->ends);
	slab_release(&f->streams);
	slab_release(&f->leases);
}

void
flows_forget(struct credits *f)
{
	const struct hash_key secret = f->secret;
	const bool by_time = f->by_time;

	credits_release(f);
	credits_init(f, &secret);
	f->by_time = by_time;
}

uint32_t
credit_room(const struct credits *f, const struct op *op)
{
	uint32_t h, used;

	if (op->claim.stream == 0)
		return UINT32_MAX;
	h = map_find(&f->numbers, hash_of(f, op->claim.stream), &op->claim.stream);
	used = h == MAP_NONE ? 0 : credit_at(f, h)->unsettled;
	return op->claim.credit > used ? op->claim.credit - used : 0;
}

/* Finds or makes the credit of a stream. SLAB_NONE: no memory. */
static uint32_t
open_credit(struct credits *f, uint64_t number)
{
	uint32_t h = map_find(&f->numbers, hash_of(f, number), &number);

	if (h != MAP_NONE)
		return h;
	if (map_reserve(&f->numbers, 1))
		return SLAB_NONE;
	h = slab_new(&f->streams);
	if (h == SLAB_NONE)
		return h;
	credit_at(f, h)->number = number;
	(void)map_insert(&f->numbers, hash_of(f, number), h); /* reserved */
	return h;
}

static void
leave_credit(struct credits *f, uint32_t h)
{
	struct credit *const credit = credit_at(f, h);

	if (credit->unsettled > 0)
		return;
	map_remove(&f->numbers, hash_of(f, credit->number), h);
	slab_free(&f->streams, h);
}

static void
set_end(struct credits *f, uint32_t h, slu_time until)
{
	const struct credit_lease *const lease = lease_at(f, h);

	if (lease->pos != HEAP_OUT)
		heap_remove(&f->ends, lease->pos);
	if (until != SLU_NEVER)
		heap_push(&f->ends, (struct rank){ .b = rank_time(until), .c = h }, h);
}

/* Returns false if there is no memory. */
static bool
add_lease(struct credits *f, uint32_t credit, const struct op_row *row, slu_time until)
{
	uint32_t h;

	if (map_reserve(&f->ids, 1) || heap_reserve(&f->ends, f->ends.n + 1))
		return false;
	h = slab_new(&f->leases);
	if (h == SLAB_NONE)
		return false;
	*lease_at(f, h) = (struct credit_lease){ row->id, row->token, credit, HEAP_OUT };
	(void)map_insert(&f->ids, hash_of(f, row->id), h); /* reserved */
	set_end(f, h, until);
	return true;
}

/* When the lease ends by our clock, if its end is not reported. */
static slu_time
end_of(const struct credits *f, const struct op_row *row, slu_time now)
{
	if (!f->by_time)
		return SLU_NEVER;
	return time_add(time_add(now, row->until - row->claimed), CREDIT_LATE);
}

void
credit_grant(struct credits *f, const struct op *op, slu_time now)
{
	uint32_t h;

	if (op->claim.stream == 0 || op->n_rows == 0)
		return;
	h = open_credit(f, op->claim.stream);
	if (h == SLAB_NONE)
		return;
	for (uint32_t i = 0; i < op->n_rows; i++)
		credit_at(f, h)->unsettled += add_lease(f, h, &op->rows[i], end_of(f, &op->rows[i], now));
	leave_credit(f, h);
}

static uint32_t
find_lease(const struct credits *f, uint64_t id)
{
	return f->leases.used ? map_find(&f->ids, hash_of(f, id), &id) : MAP_NONE;
}

static uint64_t
end_lease(struct credits *f, uint32_t h)
{
	const struct credit_lease lease = *lease_at(f, h);
	const uint64_t number = credit_at(f, lease.credit)->number;

	set_end(f, h, SLU_NEVER);
	map_remove(&f->ids, hash_of(f, lease.id), h);
	slab_free(&f->leases, h);
	credit_at(f, lease.credit)->unsettled--;
	leave_credit(f, lease.credit);
	return number;
}

uint64_t
credit_settle(struct credits *f, uint64_t id, uint64_t token)
{
	const uint32_t h = find_lease(f, id);

	if (h == MAP_NONE || (token && lease_at(f, h)->token != token))
		return 0;
	return end_lease(f, h);
}

void
credit_extend(struct credits *f, uint64_t id, slu_time until)
{
	const uint32_t h = f->by_time ? find_lease(f, id) : MAP_NONE;

	if (h != MAP_NONE)
		set_end(f, h, time_add(until, CREDIT_LATE));
}

slu_time
credits_next(const struct credits *f)
{
	const struct heap_node *const first = heap_first(&f->ends);

	return first ? (slu_time)rank_time((int64_t)first->b) : SLU_NEVER;
}

uint64_t
credit_expire(struct credits *f, slu_time now)
{
	return credits_next(f) <= now ? end_lease(f, heap_first(&f->ends)->handle) : 0;
}
