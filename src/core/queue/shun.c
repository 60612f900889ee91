#include "core/queue/shun.h"

void
shun_add(struct shun *s, uint64_t id, uint32_t stream_no, slu_time now)
{
	s->entries[s->added++ % SHUN_MAX] = (struct shun_entry){
		.id = id,
		.until = now + SHUN_TIME,
		.stream_no = stream_no,
	};
}

/* The i-th newest failure, or NULL if it and all older ones have expired. */
static const struct shun_entry *
newest(const struct shun *s, uint32_t i, slu_time now)
{
	const struct shun_entry *e;

	if (i >= SHUN_MAX || i >= s->added)
		return NULL;
	e = &s->entries[(s->added - 1 - i) % SHUN_MAX];
	return e->until > now ? e : NULL;
}

slu_time
shun_until(const struct shun *s, uint64_t id, uint32_t stream_no, slu_time now)
{
	const struct shun_entry *e;

	for (uint32_t i = 0; (e = newest(s, i, now)) != NULL; i++)
		if (e->id == id && e->stream_no == stream_no)
			return e->until;
	return 0;
}

uint32_t
shun_count(const struct shun *s, uint32_t stream_no, slu_time now)
{
	const struct shun_entry *e;
	uint32_t n = 0;

	for (uint32_t i = 0; (e = newest(s, i, now)) != NULL; i++)
		n += e->stream_no == stream_no;
	return n;
}
