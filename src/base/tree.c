#include "base/tree.h"

static struct tree_node *
at(const struct tree *t, uint32_t h)
{
	return (struct tree_node *)((char *)slab_at(t->slab, h) + t->offset);
}

void
tree_init(struct tree *t, const struct slab *slab, size_t offset, tree_cmp_fn *cmp,
	  tree_weight_fn *weight)
{
	*t = (struct tree){
		.slab = slab,
		.offset = offset,
		.cmp = cmp,
		.weight = weight,
		.root = SLAB_NONE,
	};
}

/* The link that leads to h. */
static uint32_t *
link_to(struct tree *t, uint32_t h)
{
	const uint32_t up = at(t, h)->up;

	if (up == SLAB_NONE)
		return &t->root;
	return at(t, up)->left == h ? &at(t, up)->left : &at(t, up)->right;
}

/* Rotates h above its parent; the order of keys stays. */
static void
rotate_up(struct tree *t, uint32_t h)
{
	struct tree_node *n = at(t, h);
	const uint32_t up = n->up;
	struct tree_node *above = at(t, up);
	uint32_t *const top = link_to(t, up);
	uint32_t *const out = above->left == h ? &above->left : &above->right;
	uint32_t *const in = above->left == h ? &n->right : &n->left;

	*out = *in;
	if (*in != SLAB_NONE)
		at(t, *in)->up = up;
	*in = up;
	*top = h;
	n->up = above->up;
	above->up = h;
}

void
tree_insert(struct tree *t, uint32_t handle, const void *key)
{
	const uint64_t weight = t->weight(t->slab, handle);
	uint32_t *link = &t->root;
	uint32_t up = SLAB_NONE;

	while (*link != SLAB_NONE) {
		up = *link;
		link = t->cmp(t->slab, up, key) > 0 ? &at(t, up)->left : &at(t, up)->right;
	}
	*at(t, handle) = (struct tree_node){ up, SLAB_NONE, SLAB_NONE };
	*link = handle;
	while (at(t, handle)->up != SLAB_NONE &&
	       t->weight(t->slab, at(t, handle)->up) < weight)
		rotate_up(t, handle);
}

/* The heavier child of h, or SLAB_NONE. */
static uint32_t
heavier(const struct tree *t, uint32_t h)
{
	const struct tree_node *n = at(t, h);

	if (n->left == SLAB_NONE || n->right == SLAB_NONE)
		return n->left == SLAB_NONE ? n->right : n->left;
	return t->weight(t->slab, n->left) > t->weight(t->slab, n->right) ? n->left
									  : n->right;
}

void
tree_remove(struct tree *t, uint32_t handle)
{
	uint32_t below;

	while ((below = heavier(t, handle)) != SLAB_NONE)
		rotate_up(t, below);
	*link_to(t, handle) = SLAB_NONE;
}

uint32_t
tree_after(const struct tree *t, const void *key)
{
	uint32_t h = t->root, best = SLAB_NONE;

	while (h != SLAB_NONE) {
		const bool after = !key || t->cmp(t->slab, h, key) > 0;

		best = after ? h : best;
		h = after ? at(t, h)->left : at(t, h)->right;
	}
	return best;
}

uint32_t
tree_next(const struct tree *t, uint32_t handle)
{
	uint32_t h = at(t, handle)->right;

	if (h == SLAB_NONE) {
		uint32_t up = at(t, handle)->up;

		for (h = handle; up != SLAB_NONE && at(t, up)->right == h; up = at(t, up)->up)
			h = up;
		return up;
	}
	while (at(t, h)->left != SLAB_NONE)
		h = at(t, h)->left;
	return h;
}
