#include "bench/bare_heap.h"

#include "base/mem.h"

#include <sluice/err.h>

#include <stdbool.h>

static bool
before(const struct bare_item *a, const struct bare_item *b)
{
	if (a->prio != b->prio)
		return a->prio < b->prio;
	if (a->due != b->due)
		return a->due < b->due;
	return a->seq < b->seq;
}

int
bare_heap_init(struct bare_heap *h, uint32_t max)
{
	*h = (struct bare_heap){ .items = mem_array(max, sizeof *h->items) };
	return h->items ? 0 : SLU_ENOMEM;
}

void
bare_heap_release(struct bare_heap *h)
{
	mem_free(h->items);
}

void
bare_heap_push(struct bare_heap *h, struct bare_item item)
{
	uint32_t i = h->n++;

	while (i > 0 && before(&item, &h->items[(i - 1) / 4])) {
		h->items[i] = h->items[(i - 1) / 4];
		i = (i - 1) / 4;
	}
	h->items[i] = item;
}

static uint32_t
least_child(const struct bare_heap *h, uint32_t i)
{
	uint32_t least = 4 * i + 1;
	const uint32_t end = least + 4 < h->n ? least + 4 : h->n;

	for (uint32_t c = least + 1; c < end; c++)
		if (before(&h->items[c], &h->items[least]))
			least = c;
	return least;
}

struct bare_item
bare_heap_pop(struct bare_heap *h)
{
	const struct bare_item first = h->items[0];
	const struct bare_item last = h->items[--h->n];
	uint32_t i = 0;

	while (4 * i + 1 < h->n) {
		const uint32_t c = least_child(h, i);

		if (!before(&h->items[c], &last))
			break;
		h->items[i] = h->items[c];
		i = c;
	}
	h->items[i] = last;
	return first;
}
