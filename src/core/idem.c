#include "core/idem.h"

#include <assert.h>

enum {
	IDEM_LIVE = UINT16_MAX,
	SWEEP_STEP = 64 /* entries looked at for one step of a budget */
};

static struct idem_entry *
at(const struct idem *i, uint32_t handle)
{
	return slab_at(&i->entries, handle);
}

static uint64_t
joined(const uint32_t half[static 2])
{
	return (uint64_t)half[1] << 32 | half[0];
}

static void
split(uint64_t v, uint32_t half[static 2])
{
	half[0] = (uint32_t)v;
	half[1] = (uint32_t)(v >> 32);
}

static uint64_t
entry_hash(const void *entries, uint32_t handle)
{
	const struct idem_entry *e = slab_at(entries, handle);

	return joined(e->hash);
}

static bool
entry_is(const void *entries, uint32_t handle, const void *key)
{
	const struct idem_entry *e = slab_at(entries, handle);
	const struct idem_mark *mark = key;

	return joined(e->hash) == mark->hash && e->check == mark->check;
}

void
idem_init(struct idem *i)
{
	*i = (struct idem){ 0 };
	slab_init(&i->entries, sizeof(struct idem_entry));
	map_init(&i->map, &i->entries, entry_hash, entry_is);
}

void
idem_release(struct idem *i)
{
	map_release(&i->map);
	slab_release(&i->entries);
}

/* The hour that looks like IDEM_LIVE is rounded up to the next. */
static uint16_t
short_hour(int64_t hour)
{
	const uint16_t h = (uint16_t)hour;

	return h == IDEM_LIVE ? 0 : h;
}

static int64_t
hours_from(uint16_t hour, int64_t now_hour)
{
	return (int16_t)(uint16_t)(hour - (uint16_t)now_hour);
}

static bool
is_over(const struct idem_entry *e, int64_t now_hour)
{
	return e->hour != IDEM_LIVE && hours_from(e->hour, now_hour) <= 0;
}

uint32_t
idem_find(const struct idem *i, struct idem_mark mark, slu_time now)
{
	const uint32_t handle = map_find(&i->map, mark.hash, &mark);

	if (handle == MAP_NONE || is_over(at(i, handle), now / SLU_HOUR))
		return SLAB_NONE;
	return handle;
}

uint64_t
idem_id(const struct idem *i, uint32_t handle)
{
	return joined(at(i, handle)->id);
}

struct idem_mark
idem_mark(const struct idem *i, uint32_t handle)
{
	const struct idem_entry *e = at(i, handle);

	return (struct idem_mark){ .hash = joined(e->hash), .check = e->check };
}

slu_time
idem_until(const struct idem *i, uint32_t handle, slu_time now)
{
	const struct idem_entry *e = at(i, handle);
	const int64_t now_hour = now / SLU_HOUR;

	if (e->hour == IDEM_LIVE)
		return 0;
	return (now_hour + hours_from(e->hour, now_hour)) * SLU_HOUR;
}

int
idem_reserve(struct idem *i)
{
	const int rc = slab_reserve(&i->entries, 1);

	return rc ? rc : map_reserve(&i->map, 1);
}

/* One more, or (UINT32_MAX) one less. */
static void
count(struct idem *i, const struct idem_entry *e, uint32_t by)
{
	i->remembered += by;
	if (i->count)
		*i->count(i->arg, e->queue) += by;
}

uint32_t
idem_add(struct idem *i, struct idem_mark mark, uint32_t queue, uint64_t id, slu_time now)
{
	const uint32_t old = map_find(&i->map, mark.hash, &mark);
	uint32_t handle;
	int rc;

	if (old != MAP_NONE) {
		assert(is_over(at(i, old), now / SLU_HOUR));
		idem_drop(i, old);
	}
	handle = slab_new(&i->entries);
	assert(handle != SLAB_NONE); /* reserved, as is the next */
	*at(i, handle) = (struct idem_entry){ .check = mark.check, .hour = IDEM_LIVE, .queue = queue };
	split(mark.hash, at(i, handle)->hash);
	split(id, at(i, handle)->id);
	rc = map_insert(&i->map, mark.hash, handle);
	assert(rc == 0);
	(void)rc;
	return handle;
}

void
idem_end(struct idem *i, uint32_t handle, slu_time until)
{
	struct idem_entry *e = at(i, handle);
	const int64_t hour = until / SLU_HOUR + (until % SLU_HOUR > 0);

	assert(e->hour == IDEM_LIVE);
	e->hour = short_hour(hour);
	count(i, e, 1);
}

void
idem_drop(struct idem *i, uint32_t handle)
{
	struct idem_entry *e = at(i, handle);

	if (e->hour != IDEM_LIVE)
		count(i, e, UINT32_MAX);
	map_remove(&i->map, joined(e->hash), handle);
	e->id[0] = e->id[1] = 0;
	slab_free(&i->entries, handle);
}

static void
sweep_some(struct idem *i)
{
	for (int n = 0; n < SWEEP_STEP && i->cursor < i->entries.fresh; n++) {
		const uint32_t handle = i->cursor++;
		const struct idem_entry *e = at(i, handle);

		if (joined(e->id) != 0 && is_over(e, i->sweeping))
			idem_drop(i, handle);
	}
}

bool
idem_sweep(struct idem *i, slu_time now, uint32_t *budget)
{
	if (i->sweeping == 0) {
		if (i->remembered == 0 || now / SLU_HOUR <= i->swept)
			return false;
		i->sweeping = now / SLU_HOUR;
		i->cursor = 0;
	}
	while (*budget > 0 && i->cursor < i->entries.fresh) {
		--*budget;
		sweep_some(i);
	}
	if (i->cursor < i->entries.fresh)
		return true;
	i->swept = i->sweeping;
	i->sweeping = 0;
	return false;
}

slu_time
idem_next_due(const struct idem *i)
{
	if (i->sweeping)
		return 0;
	return i->remembered ? (i->swept + 1) * SLU_HOUR : SLU_NEVER;
}
