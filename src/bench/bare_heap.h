/*
 * bare_heap.h - a plain 4-ary heap: keys beside handles in one array, and no more.
 * Nothing knows where an item is, so nothing but the first can be taken out.
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
