/*
 * tree.h - handles in order: what comes after this one?
 *
 * A binary search tree that keeps itself flat by a second order: every item has a
 * weight, and no item is heavier than the one above it. With weights that an outsider
 * cannot steer (a keyed hash) it is about as deep as a random one, whatever comes in
 * whichever order. Who owns the items says what their order and weight are:
 *
 *         static int job_cmp(const void *slab, uint32_t h, const void *key);
 *         static uint64_t job_weight(const void *slab, uint32_t h);
 *
 *         tree_init(&t, &slab, offsetof(struct job, node), job_cmp, job_weight);
 *         tree_insert(&t, h, &key);
 *         for (h = tree_after(&t, &key); h != SLAB_NONE; h = tree_next(&t, h))
 *
 * The links are in the items, 12 bytes each: nothing here needs memory or can fail. An
 * item's key and weight must not change while it is in. One thread at a time.
 */
#ifndef BASE_TREE_H
#define BASE_TREE_H

#include "base/slab.h"

struct tree_node {
	uint32_t up, left, right; /* SLAB_NONE: none */
};

/* Below 0, 0, above 0: the item comes before the key, is it, comes after it. */
typedef int tree_cmp_fn(const void *items, uint32_t handle, const void *key);
typedef uint64_t tree_weight_fn(const void *items, uint32_t handle);

struct tree {
	const struct slab *slab; /* borrowed */
	size_t offset;           /* of the struct tree_node in an item */
	tree_cmp_fn *cmp;
	tree_weight_fn *weight;
	uint32_t root;
};

void tree_init(struct tree *t, const struct slab *slab, size_t offset, tree_cmp_fn *cmp,
	       tree_weight_fn *weight);

/* key is the item's own, and not in the tree yet. */
void tree_insert(struct tree *t, uint32_t handle, const void *key);
void tree_remove(struct tree *t, uint32_t handle);

/* The first item behind key, which need not be there; key NULL: the first of all.
 * SLAB_NONE: there is none. */
uint32_t tree_after(const struct tree *t, const void *key);
uint32_t tree_next(const struct tree *t, uint32_t handle);

#endif
