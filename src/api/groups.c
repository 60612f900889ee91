#include "api/groups.h"

#include "base/hash.h"

/* The known queues: the first put of each, plus 1. */
struct met {
	uint32_t *first;
	uint32_t mask;
	struct hash_key secret;
};

bool
groups_any(const struct broker *b)
{
	for (uint32_t i = 0; i < broker_lanes(b); i++)
		if (broker_one_queue(b, i))
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
groups_make(const struct broker *b, const struct routes *r, struct arena *a,
	    const struct op_put *puts, uint32_t n, uint32_t *group, uint32_t *n_groups)
{
	struct met met = { 0 };
	int rc = 0;

	*n_groups = broker_lanes(b);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t *first;

		group[i] = broker_lane_of(b, r, puts[i].m.space, puts[i].m.queue);
		if (!broker_one_queue(b, group[i]))
			continue;
		if (!met.first)
			rc = met_init(&met, a, n);
		if (rc)
			break;
		first = place_of(&met, puts, i);
		group[i] = *first ? group[*first - 1] : (*n_groups)++;
		*first = *first ? *first : i + 1;
	}
	return rc;
}
