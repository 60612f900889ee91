/*
 * tree.h - an ordered set of handles: a treap.
 *
 *            m:9                 by key:    a < f < m < t
 *           /   \                by weight: a parent is not lighter than its children
 *        f:7     t:4
 *        /
 *      a:2
 *
 * A binary search tree that stays flat by a second order: every item has a weight. With
 * weights that an outsider cannot predict (a keyed hash) its depth is the depth of a random
 * tree, in whatever order items come. The caller compares items and gives their weights:
 *
 *         static int job_cmp(const void *slab, uint32_t h, const void *key);
 *         static uint64_t job_weight(const void *slab, uint32_t h);
 *
 *         tree_init(&t, &slab, offsetof(struct job, node), job_cmp, job_weight);
 *         tree_insert(&t, h, &key);
 *         for (h = tree_after(&t, &key); h != SLAB_NONE; h = tree_next(&t, h))
 *
 * The links are in the items, 12 bytes each: no function allocates or fails. An item's
 * key and weight must not change while it is in the tree. One thread at a time.
 */
#ifndef BASE_TREE_H
#define BASE_TREE_H

#include "base/slab.h"

struct tree_node {
	uint32_t up, left, right; /* handles, or SLAB_NONE */
};

/* Returns below 0, 0 or above 0 if the item comes before the key, has it, or comes after it. */
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

/* key: of this item; no item of the tree has it. */
void tree_insert(struct tree *t, uint32_t handle, const void *key);
void tree_remove(struct tree *t, uint32_t handle);

/* Returns the first item after key, which need not be in the tree (NULL: the first item of all),
 * or the item after this one; SLAB_NONE if there is no more. */
uint32_t tree_after(const struct tree *t, const void *key);
uint32_t tree_next(const struct tree *t, uint32_t handle);

#endif
