#include "core/queue/idem.h"

#include <assert.h>

enum {
	SWEEP_STEP = 64, /* entries looked at for one step of a budget */
	BRIEF = 0x8000,  /* the rest of `until` counts seconds, not hours */
	COUNTED = 0x7fff
};

#define BRIEF_MAX (2 * SLU_HOUR + 3 * SLU_SEC) /* what two hours are, rounded up */
#define LATE      (7 * SLU_HOUR)               /* and BRIEF_MAX: less than 2^15 seconds, IDEM-3 */

_Static_assert((LATE + BRIEF_MAX) / SLU_SEC + 1 < COUNTED, "IDEM-3");

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

/* Handles are dense: one multiplication spreads them. */
static uint64_t
handle_hash(uint32_t handle)
{
	return (handle + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t
digest_hash(const void *digests, uint32_t at)
{
	const struct idem_digest *d = slab_at(digests, at);

	return handle_hash(d->key);
}

static bool
digest_is(const void *digests, uint32_t at, const void *key)
{
	const struct idem_digest *d = slab_at(digests, at);

	return d->key == *(const uint32_t *)key;
}

void
idem_init(struct idem *i)
{
	*i = (struct idem){ 0 };
	slab_init(&i->digests, sizeof(struct idem_digest));
	map_init(&i->digest_of, &i->digests, digest_hash, digest_is);
	slab_init(&i->entries, sizeof(struct idem_entry));
	map_init(&i->map, &i->entries, entry_hash, entry_is);
}

void
idem_release(struct idem *i)
{
	map_release(&i->map);
	slab_release(&i->entries);
	map_release(&i->digest_of);
	slab_release(&i->digests);
}

/* ---- `until`: IDEM-1 ---- */

static slu_time
unit_of(uint16_t until)
{
	return until & BRIEF ? SLU_SEC : SLU_HOUR;
}

/* Up to the next second; what would look like IDEM_LIVE, to the one after. */
static slu_time
whole_second(slu_time until)
{
	const int64_t n = until / SLU_SEC + (until % SLU_SEC > 0);

	return (n + ((n & COUNTED) == COUNTED)) * SLU_SEC;
}

slu_time
idem_round(slu_time until, slu_time now)
{
	const slu_time second = whole_second(until);
	const int64_t hours = until / SLU_HOUR + (until % SLU_HOUR > 0);

	if (until <= now)
		return until;
	return second - now / SLU_SEC * SLU_SEC <= BRIEF_MAX ? second : hours * SLU_HOUR;
}

/* until was rounded. */
static uint16_t
packed(slu_time until)
{
	if (until % SLU_HOUR)
		return (uint16_t)(BRIEF | ((uint64_t)(until / SLU_SEC) & COUNTED));
	return (uint16_t)((uint64_t)(until / SLU_HOUR) & COUNTED);
}

/* The first moment after `swept` with this `until`: IDEM-3. */
static slu_time
unpacked(const struct idem *i, uint16_t until)
{
	const slu_time unit = unit_of(until);
	const int64_t from = i->swept / unit;

	return (from + (int64_t)((until - (uint64_t)from) & COUNTED)) * unit;
}

static bool
is_over(const struct idem *i, const struct idem_entry *e, slu_time now)
{
	return e->until != IDEM_LIVE && unpacked(i, e->until) <= now;
}

/* ---- Looking ---- */

uint32_t
idem_find(const struct idem *i, struct idem_mark mark, slu_time now)
{
	const uint32_t handle = map_find(&i->map, mark.hash, &mark);

	if (handle == MAP_NONE || is_over(i, at(i, handle), now))
		return SLAB_NONE;
	return handle;
}

const struct idem_entry *
idem_entry(const struct idem *i, uint32_t handle)
{
	return slab_has(&i->entries, handle) && joined(at(i, handle)->id) ? at(i, handle) : NULL;
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
idem_until(const struct idem *i, uint32_t handle)
{
	const struct idem_entry *e = at(i, handle);

	return e->until == IDEM_LIVE ? 0 : unpacked(i, e->until);
}

/* ---- Changing ---- */

int
idem_reserve(struct idem *i)
{
	const int rc = slab_reserve(&i->entries, 1);

	return rc ? rc : map_reserve(&i->map, 1);
}

/* ---- Digests ---- */

int
idem_reserve_digest(struct idem *i)
{
	const int rc = slab_reserve(&i->digests, 1);

	return rc ? rc : map_reserve(&i->digest_of, 1);
}

static uint32_t
find_digest(const struct idem *i, uint32_t handle)
{
	return map_count(&i->digest_of) ? map_find(&i->digest_of, handle_hash(handle), &handle)
					: MAP_NONE;
}

uint64_t
idem_digest(const struct idem *i, uint32_t handle)
{
	const uint32_t found = find_digest(i, handle);
	const struct idem_digest *d = found == MAP_NONE ? NULL : slab_at(&i->digests, found);

	return d ? d->digest : 0;
}

void
idem_set_digest(struct idem *i, uint32_t handle, uint64_t digest)
{
	uint32_t place;
	int rc;

	if (digest == 0 || find_digest(i, handle) != MAP_NONE)
		return;
	place = slab_new(&i->digests);
	assert(place != SLAB_NONE); /* reserved, as is the next */
	*(struct idem_digest *)slab_at(&i->digests, place) =
		(struct idem_digest){ .digest = digest, .key = handle };
	rc = map_insert(&i->digest_of, handle_hash(handle), place);
	assert(rc == 0);
	(void)rc;
}

static void
drop_digest(struct idem *i, uint32_t handle)
{
	const uint32_t found = find_digest(i, handle);

	if (found == MAP_NONE)
		return;
	map_remove(&i->digest_of, handle_hash(handle), found);
	slab_free(&i->digests, found);
}

/* ---- Keys ---- */

/* One more, or (UINT32_MAX) one less. */
static void
count(struct idem *i, const struct idem_entry *e, uint32_t by)
{
	i->remembered += by;
	if (e->until & BRIEF)
		i->brief += by;
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
		assert(is_over(i, at(i, old), now));
		idem_drop(i, old);
	}
	handle = slab_new(&i->entries);
	assert(handle != SLAB_NONE); /* reserved, as is the next */
	*at(i, handle) = (struct idem_entry){ .check = mark.check, .until = IDEM_LIVE, .queue = queue };
	split(mark.hash, at(i, handle)->hash);
	split(id, at(i, handle)->id);
	rc = map_insert(&i->map, mark.hash, handle);
	assert(rc == 0);
	(void)rc;
	return handle;
}

void
idem_drop(struct idem *i, uint32_t handle)
{
	struct idem_entry *e = at(i, handle);

	if (e->until != IDEM_LIVE)
		count(i, e, UINT32_MAX);
	drop_digest(i, handle);
	map_remove(&i->map, joined(e->hash), handle);
	e->id[0] = e->id[1] = 0;
	slab_free(&i->entries, handle);
}

void
idem_drop_all(struct idem *i, uint32_t queue, const uint32_t *left)
{
	for (uint32_t handle = 0; *left > 0 && handle < i->entries.fresh; handle++) {
		const struct idem_entry *e = idem_entry(i, handle);

		if (e && e->queue == queue && e->until != IDEM_LIVE)
			idem_drop(i, handle);
	}
}

/* ---- Sweeping ---- */

static void
sweep_some(struct idem *i)
{
	for (int n = 0; n < SWEEP_STEP && i->cursor < i->entries.fresh; n++) {
		const uint32_t handle = i->cursor++;
		const struct idem_entry *e = idem_entry(i, handle);

		if (e && is_over(i, e, i->sweeping))
			idem_drop(i, handle);
	}
}

/* To the minute, so that the content does not depend on when a sweep ran. */
static void
begin_sweep(struct idem *i, slu_time now)
{
	i->sweeping = now - now % SLU_MIN;
	i->cursor = 0;
}

static void
end_sweep(struct idem *i)
{
	i->swept = i->sweeping;
	i->sweeping = 0;
}

slu_time
idem_next_due(const struct idem *i)
{
	const slu_time period = i->brief ? SLU_MIN : SLU_HOUR;

	if (i->sweeping)
		return 0;
	if (i->remembered == 0)
		return SLU_NEVER;
	return i->swept - i->swept % period + period;
}

bool
idem_sweep(struct idem *i, slu_time now, uint32_t *budget)
{
	if (i->sweeping == 0) {
		if (now < idem_next_due(i))
			return false;
		begin_sweep(i, now);
	}
	while (*budget > 0 && i->cursor < i->entries.fresh) {
		--*budget;
		sweep_some(i);
	}
	if (i->cursor < i->entries.fresh)
		return true;
	end_sweep(i);
	return false;
}

/* IDEM-3 for one more key, at the moment now. */
static void
catch_up(struct idem *i, slu_time now)
{
	if (i->remembered && now - i->swept <= LATE)
		return;
	begin_sweep(i, now);
	while (i->remembered && i->cursor < i->entries.fresh)
		sweep_some(i);
	end_sweep(i);
}

void
idem_end(struct idem *i, uint32_t handle, slu_time until, slu_time now)
{
	struct idem_entry *e = at(i, handle);
	const slu_time swept = i->sweeping ? i->sweeping : i->swept;

	assert(e->until == IDEM_LIVE);
	if (until <= now || until <= swept) { /* IDEM-3 */
		idem_drop(i, handle);
		return;
	}
	catch_up(i, now);
	e->until = packed(idem_round(until, now));
	count(i, e, 1);
}
