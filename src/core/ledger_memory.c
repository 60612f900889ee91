/*
 * ledger_memory.c - how much memory a ledger has, what one message more takes, and giving back
 * what is not needed any more.
 */
#include "core/ledger_in.h"

enum {
	NEW_QUEUE = 256,      /* bytes of the names and slots of a queue */
	TRIM_SLOTS = 16 << 10 /* of a map, in one call */
};

void
ledger_count_topic(struct ledger *l, struct topic *t)
{
	const size_t bytes = queue_bytes(&t->queue) + queue_bytes(&t->trash) + queue_bytes(&t->spare);

	l->topic_bytes += bytes - t->bytes; /* modulo 2^64: it may be less */
	t->bytes = bytes;
}

void
ledger_footprint(const struct ledger *l, struct footprint *out)
{
	footprint_slab(out, &l->msgs);
	footprint_map(out, &l->ids);
	footprint_slab(out, &l->leases);
	footprint_slab(out, &l->more);
	footprint_heap(out, &l->deadlines);
	footprint_heap(out, &l->ttls);
	footprint_slab(out, &l->spaces);
	footprint_map(out, &l->space_names);
	footprint_slab(out, &l->topics);
	footprint_map(out, &l->topic_names);
	footprint_bytes(out, (uint64_t)l->topics.used * NEW_QUEUE);
	footprint_heap(out, &l->agenda);
	out->held += l->topic_bytes;
	out->used += (uint64_t)l->msgs.used * sizeof(struct heap_node);
	footprint_slab(out, &l->keys);
	footprint_map(out, &l->key_hashes);
	footprint_slab(out, &l->idem.entries);
	footprint_map(out, &l->idem.map);
	footprint_slab(out, &l->idem.digests);
	footprint_map(out, &l->idem.digest_of);
	footprint_slab(out, &l->results.slab);
	footprint_map(out, &l->results.by_id);
	footprint_heap(out, &l->results.by_until);
}

static size_t
queue_growth(const struct ledger *l, uint32_t queue)
{
	const struct queue *q;

	if (queue == SLAB_NONE)
		return slab_growth(&l->topics) + map_growth(&l->topic_names) + NEW_QUEUE;
	q = &ledger_topic(l, queue)->queue;
	return heap_growth(&q->ready, q->held + 1) + heap_growth(&q->timed, q->held + 1);
}

size_t
ledger_growth(const struct ledger *l, uint32_t queue, const struct ledger_offer *offer)
{
	const bool idem = offer->idem.n > 0;
	size_t n = slab_growth(&l->msgs) + map_growth(&l->ids) + queue_growth(l, queue);

	if (offer->key.n)
		n += slab_growth(&l->keys) + map_growth(&l->key_hashes);
	if (offer->ttl)
		n += heap_growth(&l->ttls, l->with_ttl + 1);
	if (idem)
		n += slab_growth(&l->idem.entries) + map_growth(&l->idem.map);
	if (idem && offer->digest)
		n += slab_growth(&l->idem.digests) + map_growth(&l->idem.digest_of);
	if (idem || offer->keep_result)
		n += slab_growth(&l->more);
	return n;
}

uint64_t
ledger_mass(const struct ledger *l)
{
	return slab_used_bytes(&l->msgs) + slab_used_bytes(&l->leases) + slab_used_bytes(&l->keys) +
	       slab_used_bytes(&l->idem.entries) + slab_used_bytes(&l->results.slab) +
	       slab_used_bytes(&l->topics) + l->topic_bytes;
}

bool
ledger_trim(struct ledger *l)
{
	struct slab *const slabs[] = { &l->msgs, &l->leases, &l->more, &l->keys, &l->topics,
				       &l->idem.entries, &l->idem.digests, &l->results.slab };
	struct map *const maps[] = { &l->ids, &l->key_hashes, &l->topic_names, &l->idem.map, &l->idem.digest_of,
				     &l->results.by_id };
	bool more = false;

	for (size_t i = 0; i < sizeof slabs / sizeof slabs[0]; i++)
		(void)slab_trim(slabs[i]);
	for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++)
		more |= map_trim(maps[i], TRIM_SLOTS);
	heap_trim(&l->deadlines, l->deadlines.n);
	heap_trim(&l->ttls, l->with_ttl);
	heap_trim(&l->agenda, l->topics.used);
	heap_trim(&l->results.by_until, l->results.by_until.n);
	return more;
}
