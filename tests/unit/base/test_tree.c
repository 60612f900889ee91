#include "test.h"

#include "base/tree.h"

#include <stdlib.h>

struct item {
	uint32_t key;
	uint64_t weight;
	struct tree_node node;
};

static int
item_cmp(const void *slab, uint32_t h, const void *key)
{
	const struct item *it = slab_at(slab, h);
	const uint32_t want = *(const uint32_t *)key;

	return (it->key > want) - (it->key < want);
}

static uint64_t
item_weight(const void *slab, uint32_t h)
{
	return ((const struct item *)slab_at(slab, h))->weight;
}

struct world {
	struct slab slab;
	struct tree tree;
	uint64_t random;
};

static void
begin(struct world *w, uint64_t seed)
{
	w->random = seed * 2 + 1;
	slab_init(&w->slab, sizeof(struct item));
	tree_init(&w->tree, &w->slab, offsetof(struct item, node), item_cmp, item_weight);
}

static uint64_t
dice(struct world *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random;
}

static uint32_t
add(struct world *w, uint32_t key)
{
	const uint32_t h = slab_new(&w->slab);
	struct item *it = slab_at(&w->slab, h);

	it->key = key;
	it->weight = dice(w);
	tree_insert(&w->tree, h, &key);
	return h;
}

static uint32_t
key_of(const struct world *w, uint32_t h)
{
	return ((const struct item *)slab_at(&w->slab, h))->key;
}

/* How far down the tree goes. */
static unsigned
depth(const struct world *w)
{
	unsigned deepest = 0;

	for (uint32_t h = tree_after(&w->tree, NULL); h != SLAB_NONE;
	     h = tree_next(&w->tree, h)) {
		unsigned n = 0;

		for (uint32_t up = h; up != SLAB_NONE;
		     up = ((struct item *)slab_at(&w->slab, up))->node.up)
			n++;
		deepest = n > deepest ? n : deepest;
	}
	return deepest;
}

TEST(an_empty_tree_has_nothing_after_anything)
{
	const uint32_t key = 7;
	struct world w;

	begin(&w, 1);
	CHECK_EQ(SLAB_NONE, tree_after(&w.tree, NULL));
	CHECK_EQ(SLAB_NONE, tree_after(&w.tree, &key));
}

enum {
	KEYS = 512
};

/* All that is in, in order, and what comes after every key. */
static void
compare(const struct world *w, const uint32_t *handles)
{
	uint32_t h = tree_after(&w->tree, NULL);
	uint32_t next = SLAB_NONE;

	for (uint32_t key = 0; key < KEYS; key++) {
		if (handles[key] == SLAB_NONE)
			continue;
		CHECK_EQ(handles[key], h);
		h = tree_next(&w->tree, h);
	}
	CHECK_EQ(SLAB_NONE, h);
	for (uint32_t key = KEYS; key-- > 0;) {
		CHECK_EQ(next, tree_after(&w->tree, &key));
		next = handles[key] == SLAB_NONE ? next : handles[key];
	}
}

TEST(a_tree_is_what_a_sorted_table_is)
{
	uint32_t handles[KEYS];
	struct world w;

	begin(&w, test_seed());
	for (uint32_t i = 0; i < KEYS; i++)
		handles[i] = SLAB_NONE;
	for (int step = 0; step < 20000; step++) {
		const uint32_t key = (uint32_t)(dice(&w) % KEYS);

		if (handles[key] == SLAB_NONE) {
			handles[key] = add(&w, key);
			CHECK_EQ(key, key_of(&w, handles[key]));
		} else {
			tree_remove(&w.tree, handles[key]);
			slab_free(&w.slab, handles[key]);
			handles[key] = SLAB_NONE;
		}
		if (step % 500 == 0)
			compare(&w, handles);
	}
	compare(&w, handles);
	slab_release(&w.slab);
}

TEST(keys_that_come_in_order_make_no_list_of_it)
{
	struct world w;

	begin(&w, 3);
	for (uint32_t i = 0; i < 100000; i++)
		add(&w, i);
	CHECK(depth(&w) < 64);
	slab_release(&w.slab);
}
