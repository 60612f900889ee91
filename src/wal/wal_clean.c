/*
 * wal_clean.c - live bytes, reading and recycling the oldest segment, room on disk.
 */
#include "wal/wal_private.h"

#include "base/mem.h"

#include <assert.h>
#include <inttypes.h>

void
wal_live(struct wal *w, struct wal_where where, int64_t bytes)
{
	struct segment *s = wal_any_segment(w, where.segment);

	assert(s);
	s->live += bytes;
	w->live += bytes;
	assert(s->live >= 0);
}

int64_t
wal_live_in(const struct wal *w, uint32_t segment)
{
	const struct segment *s = wal_any_segment(w, segment);

	return s ? s->live : 0;
}

void
wal_set_uncounted(struct wal *w, uint32_t segment)
{
	struct segment *s = wal_any_segment(w, segment);

	assert(s);
	s->uncounted = true;
}

bool
wal_is_needed(const struct wal *w, uint32_t segment)
{
	const struct segment *s = wal_any_segment(w, segment);

	return !s || s->live || s->uncounted;
}

uint64_t
wal_excess(const struct wal *w)
{
	const uint64_t sealed = w->n_segments ? w->used - wal_current(w)->size : 0;
	const uint64_t allowed = 2 * (uint64_t)w->live;

	return sealed > allowed ? sealed - allowed : 0;
}

bool
wal_is_short(struct wal *w)
{
	return spares_is_short(&w->spares);
}

uint32_t
wal_segment_size(const struct wal *w)
{
	return spares_segment_size(&w->spares);
}

uint32_t
wal_size_of(const struct wal *w, uint32_t segment)
{
	const struct segment *s = wal_segment(w, segment);

	return s ? s->size : 0;
}

uint32_t
wal_oldest(const struct wal *w)
{
	return w->n_segments > 1 ? w->segments[0]->number : 0;
}

int
wal_cursor_open(struct wal_cursor *c, struct wal *w, uint32_t segment,
		struct slu_err *err)
{
	struct segment *s = wal_segment(w, segment);

	*c = (struct wal_cursor){ 0 };
	if (!s)
		return slu_fail(err, SLU_ENOTFOUND, "%08" PRIu32 ".log: no such segment",
				segment);
	c->reader = mem_zalloc(sizeof *c->reader);
	if (!c->reader)
		return slu_fail(err, SLU_ENOMEM, "read %s: out of memory", s->name);
	reader_start(c->reader, s, SEGMENT_HEAD, s->end);
	return 0;
}

void
wal_cursor_close(struct wal_cursor *c)
{
	if (c->reader)
		reader_release(c->reader);
	mem_free(c->reader);
	*c = (struct wal_cursor){ 0 };
}

/* Finds the next record of the caller; found->size is 0 at the end. */
static int
find_next(struct reader *r, struct record *found, struct slu_err *err)
{
	int rc;

	for (;;) {
		found->size = 0;
		if (r->at >= r->limit)
			return 0;
		rc = reader_peek(r, found, err);
		if (rc)
			return rc;
		if (found->size == 0)
			return slu_fail(err, SLU_ECORRUPT, "%s: bad record at %" PRIu32,
					r->segment->name, r->at);
		if (found->type != RECORD_OPENS)
			return 0;
		reader_skip(r, found->size);
	}
}

int
wal_cursor_next(struct wal_cursor *c, struct wal_record *rec, struct slu_err *err)
{
	struct reader *r = c->reader;
	struct record found;
	int rc;

	*rec = (struct wal_record){ 0 };
	rc = find_next(r, &found, err);
	c->done = !rc && found.size == 0;
	if (rc || c->done)
		return rc;
	c->time = found.flags & RECORD_HAS_TIME ? found.time : c->time;
	*rec = (struct wal_record){
		.type = found.type,
		.seq = found.seq,
		.time = c->time,
		.where = { r->segment->number, r->at, found.size },
		.body = found.body,
	};
	reader_skip(r, found.size);
	return 0;
}

int
wal_recycle(struct wal *w, struct slu_err *err)
{
	struct slu_err local = { 0 };
	const struct wal_mirror *const m = w->conf.mirror;
	struct segment *s = w->segments[0];
	const uint32_t size = s->size, number = s->number;
	int rc;

	err = err ? err : &local;
	rc = wal_check(w, err);
	if (rc)
		return rc;
	assert(w->n_segments > 1 && s->live == 0 && w->group.records == 0);
	if (w->dirty) /* WAL-6: the copies are synced before the original goes */
		rc = wal_sync(w, err);
	if (rc)
		return rc;
	if (spares_give(&w->spares, s, err))
		return wal_fail(w, err); /* the name of the file is unknown */
	w->n_segments--;
	w->used -= size;
	memmove(w->segments, w->segments + 1, w->n_segments * sizeof(void *));
	if (m)
		m->recycled(m->arg, number);
	return 0;
}

bool
wal_wants_spare(struct wal *w)
{
	return !w->is_cache && spares_wants(&w->spares);
}

int
wal_prepare(struct wal *w, struct slu_err *err)
{
	return spares_prepare(&w->spares, err);
}

void
wal_set_reserve(struct wal *w, uint32_t segments)
{
	w->conf.reserve = segments;
	w->reserve_there = false;
	spares_set_reserve(&w->spares, segments);
}

uint64_t
wal_owed(struct wal *w)
{
	return spares_owed(&w->spares);
}

uint64_t
wal_room(struct wal *w)
{
	uint64_t here = wal_current(w)->size - wal_current(w)->end;
	const int64_t more = spares_room(&w->spares);

	if (w->failed || more < 0)
		return 0;
	for (uint32_t i = 0; i < w->n_planned; i++)
		here += w->planned[i]->size - SEGMENT_HEAD;
	return here + (uint64_t)more;
}

int64_t
wal_disk_free(struct wal *w)
{
	return w->conf.disk->ops->room(w->conf.disk, w->folder);
}

int64_t
wal_disk_size(struct wal *w)
{
	return w->conf.disk->ops->whole(w->conf.disk, w->folder);
}

void
wal_stats(struct wal *w, struct wal_stats *stats)
{
	*stats = (struct wal_stats){
		.seq = w->seq,
		.durable = w->durable.seq,
		.time = w->time,
		.segments = w->n_segments,
		.last = w->n_segments ? wal_current(w)->number : 0,
		.end = w->n_segments ? wal_current(w)->end : 0,
		.spares = w->n_planned,
		.live = (uint64_t)w->live,
		.writes = w->writes,
		.syncs = w->syncs,
		.failed = w->failed,
	};
	stats->spares += spares_count_kept(&w->spares, &stats->spare_bytes);
	for (uint32_t i = 0; i < w->n_planned; i++)
		stats->spare_bytes += w->planned[i]->size;
	stats->bytes = w->used + stats->spare_bytes;
}
