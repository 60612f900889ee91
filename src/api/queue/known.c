#include "api/queue/known.h"

#include "base/mem.h"
#include "base/time.h"
#include "core/names.h"

#include <assert.h>
#include <stdatomic.h>

struct slot {
	slu_time until; /* 0: empty */
	uint64_t changes;
	uint8_t space_n, queue_n;
	char space[NAME_LONGEST], queue[NAME_LONGEST];
	char value[KNOWN_VALUE];
};

struct known {
	_Atomic uint64_t changes;
	unsigned threads;
	struct slot *of[]; /* by thread; NULL until its first put */
};

int
known_new(struct known **out, unsigned threads)
{
	*out = mem_zalloc(sizeof **out + threads * sizeof(struct slot *));
	if (!*out)
		return SLU_ENOMEM;
	(*out)->threads = threads;
	return 0;
}

void
known_free(struct known *k)
{
	if (!k)
		return;
	for (unsigned i = 0; i < k->threads; i++)
		mem_free(k->of[i]);
	mem_free(k);
}

uint64_t
known_changes(const struct known *k)
{
	return atomic_load(&k->changes);
}

void
known_changed(struct known *k)
{
	(void)atomic_fetch_add(&k->changes, 1); /* the number is not needed */
}

/* FNV-1a: a collision costs a question. */
static uint32_t
slot_of(struct slice space, struct slice queue)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < space.n; i++)
		h = (h ^ (unsigned char)space.p[i]) * 16777619u;
	for (size_t i = 0; i < queue.n; i++)
		h = (h ^ (unsigned char)queue.p[i]) * 16777619u;
	return (h ^ h >> 16) & (KNOWN_SLOTS - 1);
}

bool
known_find(const struct known *k, unsigned thread, struct slice space, struct slice queue, slu_time now, void *out,
	   size_t n)
{
	const struct slot *s;

	assert(thread < k->threads && n <= KNOWN_VALUE);
	if (!k->of[thread])
		return false;
	s = &k->of[thread][slot_of(space, queue)];
	if (s->until <= now || s->changes != known_changes(k) ||
	    !slice_eq(space, (struct slice){ s->space, s->space_n }) ||
	    !slice_eq(queue, (struct slice){ s->queue, s->queue_n }))
		return false;
	memcpy(out, s->value, n);
	return true;
}

void
known_put(struct known *k, unsigned thread, struct slice space, struct slice queue, slu_time now, uint64_t changes,
	  const void *value, size_t n)
{
	struct slot *s;

	assert(thread < k->threads && n <= KNOWN_VALUE && space.n <= NAME_LONGEST && queue.n <= NAME_LONGEST);
	if (!k->of[thread])
		k->of[thread] = mem_zalloc(KNOWN_SLOTS * sizeof *s);
	if (!k->of[thread])
		return;
	s = &k->of[thread][slot_of(space, queue)];
	s->until = time_add(now, KNOWN_AGE);
	s->changes = changes;
	s->space_n = (uint8_t)space.n;
	s->queue_n = (uint8_t)queue.n;
	memcpy(s->space, space.p, space.n);
	memcpy(s->queue, queue.p, queue.n);
	memcpy(s->value, value, n);
}
