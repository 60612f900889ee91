/*
 * bare_heap.h - a plain 4-ary heap: keys and handles in one array. It has no positions of items, so only
 * the first item can be removed.
 */
#ifndef BENCH_BARE_HEAP_H
#define BENCH_BARE_HEAP_H

#include <stdint.h>

struct bare_item {
	int64_t due;
	uint64_t seq;
	int32_t prio;
	uint32_t handle;
};

struct bare_heap {
	struct bare_item *items;
	uint32_t n;
};

int bare_heap_init(struct bare_heap *h, uint32_t max);
void bare_heap_release(struct bare_heap *h);
void bare_heap_push(struct bare_heap *h, struct bare_item item);
struct bare_item bare_heap_pop(struct bare_heap *h);

#endif
