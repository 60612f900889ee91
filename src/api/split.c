#include "api/split.h"

#include <sluice/err.h>

#include <string.h>

void
split_none(struct split *s, uint32_t n)
{
	s->place = NULL;
	s->whole = (struct split_part){ 0, 0, n };
	s->parts = &s->whole;
	s->n_parts = 1;
}

int
split_init(struct split *s, struct arena *a, const uint32_t *shard, uint32_t n,
	   uint32_t n_shards)
{
	uint32_t *const next = arena_array(a, n_shards, sizeof *next);
	uint32_t begin = 0;

	s->place = arena_array(a, n, sizeof *s->place);
	s->parts = arena_array(a, n_shards, sizeof *s->parts);
	s->n_parts = 0;
	if (!next || !s->place || !s->parts)
		return SLU_ENOMEM;
	memset(next, 0, n_shards * sizeof *next);
	for (uint32_t i = 0; i < n; i++)
		next[shard[i]]++;
	for (uint32_t k = 0; k < n_shards; k++) {
		const uint32_t size = next[k];

		next[k] = begin;
		if (size > 0)
			s->parts[s->n_parts++] = (struct split_part){ k, begin, begin + size };
		begin += size;
	}
	for (uint32_t i = 0; i < n; i++)
		s->place[i] = next[shard[i]]++;
	return 0;
}
