/*
 * move.c - keys that move to another shard: LOCK-11.
 */
#include "core/locks/locks_private.h"

bool
locks_next_name(struct slice *names, struct slice *name)
{
	size_t n;

	if (names->n == 0)
		return false;
	n = (uint8_t)names->p[0];
	if (n == 0 || n > LOCK_KEY_MAX || n >= names->n)
		return false;
	*name = (struct slice){ names->p + 1, n };
	*names = (struct slice){ names->p + 1 + n, names->n - 1 - n };
	return true;
}

void
locks_set_aside(struct locks *l, struct slice space, struct slice names)
{
	struct slice name;

	while (locks_next_name(&names, &name)) {
		const uint32_t h = locks_handle(l, space, name, 0);

		if (h != SLAB_NONE && !lock_is_leased(locks_entry(l, h)->lock))
			locks_entry(l, h)->aside = true;
	}
}

void
locks_bring_back(struct locks *l, struct slice space)
{
	for (uint32_t h = 0; h < l->entries.fresh; h++) {
		const struct lock *lock = locks_scan_lock(l, h);

		if (lock && slice_eq(lock->space, space))
			locks_entry(l, h)->aside = false;
	}
}

void
locks_let_go(struct locks *l, struct slice space, struct slice names)
{
	struct slice name;

	while (locks_next_name(&names, &name)) {
		const uint32_t h = locks_handle(l, space, name, 0);

		if (h != SLAB_NONE && !lock_is_leased(locks_entry(l, h)->lock))
			locks_forget(l, h);
	}
}

bool
locks_is_aside(const struct locks *l, const struct lock *lock)
{
	const uint32_t h = locks_handle(l, lock->space, lock->key, lock->id);

	return h != SLAB_NONE && locks_entry(l, h)->aside;
}
