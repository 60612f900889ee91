/*
 * memory.c - the memory of a ledger, the growth by one more message, and freeing unused memory.
 */
#include "core/ledger/ledger_private.h"

enum {
	NEW_QUEUE = 256,      /* bytes of the names and slots of a queue */
	NEW_SHARE = 512,      /* bytes of a share, with its name and first heap */
	NEW_VALUE = 512,      /* the same of a value */
	TRIM_SLOTS = 16 << 10 /* of a map, in one call */
};

static void
count_now(struct ledger *l, struct ledger_queue *q)
{
	const size_t bytes = queue_bytes(&q->heaps) + queue_bytes(&q->trash) + queue_bytes(&q->spare) +
			     (q->shares ? shares_bytes(q->shares) : 0) + (q->gates ? gates_bytes(q->gates) : 0) +
			     (q->values ? values_bytes(q->values) : 0) + (q->kinds ? values_bytes(q->kinds) : 0) +
			     (q->breakers ? breakers_bytes(q->breakers) : 0) +
			     (q->own_policy ? sizeof *q->own_policy : 0);

	l->heaps_bytes += bytes - q->bytes; /* modulo 2^64: it may be less */
	q->bytes = bytes;
}

void
ledger_count_heaps(struct ledger *l, struct ledger_queue *q)
{
	if (!l->counts_later) {
		count_now(l, q);
		return;
	}
	if (l->uncounted != SLAB_NONE && l->uncounted != q->handle)
		count_now(l, ledger_queue(l, l->uncounted));
	l->uncounted = q->handle;
}

void
ledger_count_uncounted(struct ledger *l)
{
	count_now(l, ledger_queue(l, l->uncounted));
	l->uncounted = SLAB_NONE;
}

void
ledger_footprint(const struct ledger *l, struct footprint *out)
{
	footprint_slab(out, &l->msgs);
	footprint_map(out, &l->ids);
	footprint_slab(out, &l->leases);
	footprint_slab(out, &l->more);
	footprint_slab(out, &l->terms);
	footprint_heap(out, &l->deadlines);
	footprint_heap(out, &l->ttls);
	footprint_slab(out, &l->spaces);
	footprint_map(out, &l->space_names);
	footprint_slab(out, &l->queues);
	footprint_map(out, &l->queue_names);
	footprint_bytes(out, (uint64_t)l->queues.used * NEW_QUEUE);
	footprint_heap(out, &l->agenda);
	out->held += l->heaps_bytes;
	out->used += (uint64_t)l->msgs.used * sizeof(struct heap_node);
	footprint_slab(out, &l->keys);
	footprint_map(out, &l->key_hashes);
	footprint_slab(out, &l->spots);
	footprint_slab(out, &l->idem.entries);
	footprint_map(out, &l->idem.map);
	footprint_slab(out, &l->idem.digests);
	footprint_map(out, &l->idem.digest_of);
	footprint_slab(out, &l->results.slab);
	footprint_map(out, &l->results.by_id);
	footprint_heap(out, &l->results.by_until);
	footprint_bytes(out, l->n_trends * trend_bytes(TREND_OF_QUEUE));
	footprint_bytes(out, l->sum ? trend_bytes(TREND_OF_SHARD) : 0);
}

static size_t
growth_of_queue(const struct ledger *l, uint32_t queue)
{
	if (queue == SLAB_NONE)
		return slab_growth(&l->queues) + map_growth(&l->queue_names) + NEW_QUEUE;
	return queue_has_room(&ledger_queue(l, queue)->heaps) ? 0 : queue_growth(&ledger_queue(l, queue)->heaps);
}

size_t
ledger_growth(const struct ledger *l, uint32_t queue, const struct ledger_offer *offer)
{
	const bool idem = offer->idem.n > 0;
	size_t n = slab_growth(&l->msgs) + map_growth(&l->ids) + growth_of_queue(l, queue);

	if (offer->key.n)
		n += slab_growth(&l->keys) + map_growth(&l->key_hashes);
	if (offer->share.n)
		n += slab_growth(&l->spots) + NEW_SHARE;
	if (offer->value.n)
		n += slab_growth(&l->spots) + NEW_VALUE;
	if (offer->ttl || offer->deadline)
		n += heap_growth(&l->ttls, l->with_ttl + 1);
	if (idem)
		n += slab_growth(&l->idem.entries) + map_growth(&l->idem.map);
	if (idem && offer->digest)
		n += slab_growth(&l->idem.digests) + map_growth(&l->idem.digest_of);
	if (idem || offer->keep_result || terms_any(&offer->terms))
		n += slab_growth(&l->more);
	if (terms_any(&offer->terms))
		n += slab_growth(&l->terms);
	return n;
}

uint64_t
ledger_mass(const struct ledger *l)
{
	return slab_used_bytes(&l->msgs) + slab_used_bytes(&l->leases) + slab_used_bytes(&l->keys) +
	       slab_used_bytes(&l->idem.entries) + slab_used_bytes(&l->results.slab) +
	       slab_used_bytes(&l->queues) + l->heaps_bytes;
}

bool
ledger_trim(struct ledger *l)
{
	struct slab *const slabs[] = { &l->msgs, &l->leases, &l->more, &l->terms, &l->keys, &l->spots, &l->queues,
				       &l->idem.entries, &l->idem.digests, &l->results.slab };
	struct map *const maps[] = { &l->ids, &l->key_hashes, &l->queue_names, &l->idem.map, &l->idem.digest_of,
				     &l->results.by_id };
	bool more = false;

	for (size_t i = 0; i < sizeof slabs / sizeof slabs[0]; i++)
		(void)slab_trim(slabs[i]);
	for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++)
		more |= map_trim(maps[i], TRIM_SLOTS);
	heap_trim(&l->deadlines, l->deadlines.n);
	heap_trim(&l->ttls, l->with_ttl);
	heap_trim(&l->agenda, l->queues.used);
	heap_trim(&l->results.by_until, l->results.by_until.n);
	return more;
}
