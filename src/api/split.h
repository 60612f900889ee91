/*
 * split.h - sorts the items of one request by shard.
 *
 *      items   a0 b0 a1 a2 b1         shard of each: 0 1 0 0 1
 *      place    0  3  1  2  4         where each goes; inside a shard as they came
 *      parts   [0,3) of shard 0, [3,5) of shard 1
 *
 * An op has one shard; a request may name many queues.
 */
#ifndef API_SPLIT_H
#define API_SPLIT_H

#include "form/arena.h"

#include <stdint.h>

struct split_part {
	uint32_t shard;
	uint32_t begin, end;
};

struct split {
	uint32_t *place; /* the new place of each item; NULL: unchanged */
	struct split_part *parts;
	uint32_t n_parts; /* parts that are not empty */
	struct split_part whole;
};

/* One part: all n items are on one shard. */
void split_none(struct split *s, uint32_t n);

/* shard[i] < n_shards. Takes memory from a. Returns SLU_ENOMEM. */
int split_init(struct split *s, struct arena *a, const uint32_t *shard, uint32_t n,
	       uint32_t n_shards);

#endif
