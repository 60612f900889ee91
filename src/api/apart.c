#include "api/apart.h"

#include "base/hash.h"

/* Queues that have been met: the first put of each, plus 1. */
struct met {
	uint32_t *first;
	uint32_t mask;
	struct hash_key secret;
};

bool
apart_any(const struct broker *b)
{
	for (uint32_t i = 0; i < broker_shards(b); i++)
		if (broker_apart(b, i))
			return true;
	return false;
}

static uint32_t *
place_of(const struct met *met, const struct op_put *puts, uint32_t i)
{
	const struct message *m = &puts[i].m;
	uint64_t at = hash_keyed(&met->secret, m->space.p, m->space.n) ^
		      3 * hash_keyed(&met->secret, m->queue.p, m->queue.n);

	for (;; at++) {
		uint32_t *const first = &met->first[at & met->mask];

		if (*first == 0 || (slice_eq(puts[*first - 1].m.queue, m->queue) &&
				    slice_eq(puts[*first - 1].m.space, m->space)))
			return first;
	}
}

static int
met_init(struct met *met, struct arena *a, uint32_t n)
{
	uint32_t size = 16;

	while (size < 2 * n)
		size *= 2;
	met->mask = size - 1;
	met->first = arena_array(a, size, sizeof *met->first);
	if (!met->first)
		return SLU_ENOMEM;
	memset(met->first, 0, size * sizeof *met->first);
	return hash_key_init(&met->secret, NULL);
}

int
apart_groups(const struct broker *b, const struct routes *r, struct arena *a,
	     const struct op_put *puts, uint32_t n, uint32_t *group, uint32_t *n_groups)
{
	struct met met;
	const int rc = met_init(&met, a, n);

	*n_groups = broker_shards(b);
	for (uint32_t i = 0; i < n && !rc; i++) {
		uint32_t *first;

		group[i] = broker_shard_of(b, r, puts[i].m.space, puts[i].m.queue);
		if (!broker_apart(b, group[i]))
			continue;
		first = place_of(&met, puts, i);
		group[i] = *first ? group[*first - 1] : (*n_groups)++;
		*first = *first ? *first : i + 1;
	}
	return rc;
}
