#include "wal/wal_private.h"

#include "base/hash.h"
#include "base/mem.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum {
	LEFT_OF_LAST = 4, /* WAL-4: 1/4 of the last segment stays free for WAL_FREE */
	MANY = 64,        /* WAL-9: with more segments than this, their size grows */
	FEW = 16,         /* WAL-9: with fewer segments than this, their size may shrink */
	ROOM_FOR = 16     /* WAL-9: the size grows only if the disk has room for so many segments */
};

#define QUICK SLU_MIN  /* WAL-9: after a segment that was full sooner, the size grows */
#define SLOW  SLU_HOUR /* WAL-9: after a segment that was full later, the size shrinks */

struct segment *
wal_segment(const struct wal *w, uint32_t number)
{
	const uint32_t i = w->n_segments ? number - w->segments[0]->number : 0;

	return i < w->n_segments ? w->segments[i] : NULL;
}

struct segment *
wal_any_segment(const struct wal *w, uint32_t number)
{
	struct segment *s = wal_segment(w, number);

	for (uint32_t i = 0; i < w->n_planned && !s; i++)
		if (w->planned[i]->number == number)
			s = w->planned[i];
	return s;
}

int
wal_make_room(struct wal *w, uint32_t n, struct slu_err *err)
{
	if (!mem_room(&w->segments, &w->max_segments, w->n_segments + n, sizeof(struct segment *)) ||
	    !mem_room(&w->planned, &w->max_planned, w->n_planned + n, sizeof(struct segment *)))
		return slu_fail(err, SLU_ENOMEM, "log: out of memory");
	return 0;
}

void
wal_push(struct wal *w, struct segment *s)
{
	assert(w->n_segments < w->max_segments);
	w->segments[w->n_segments++] = s;
	w->used += s->size;
}

int
wal_fail(struct wal *w, struct slu_err *err)
{
	w->failed = true;
	snprintf(w->why, sizeof w->why, "%s", err->text);
	log_error(w->conf.log, "log failed", F_STR("why", w->why));
	err->code = SLU_EDOWN;
	return SLU_EDOWN;
}

int
wal_check(const struct wal *w, struct slu_err *err)
{
	if (w->failed)
		return slu_fail(err, SLU_EDOWN, "the log has failed: %s", w->why);
	return 0;
}

void
wal_begin(struct wal *w, slu_time now)
{
	assert(w->group.records == 0);
	w->time = now > w->time ? now : w->time;
}

int
wal_plan(struct wal *w, uint32_t n, uint32_t size, enum wal_use use, struct slu_err *err)
{
	int rc;

	rc = spares_need(&w->spares, n, size, use, err);
	while (!rc && n--) {
		const uint32_t number = w->n_segments ? wal_current(w)->number : 0;
		struct segment *s;
		uint32_t seed;

		rc = hash_random(&seed, sizeof seed, err);
		if (rc)
			break;
		s = spares_take(&w->spares, size);
		assert(s); /* spares_need */
		w->planned[w->n_planned++] = s;
		w->reserve_there = false;
		segment_plan(s, number + w->n_planned, seed);
	}
	return rc;
}

/* WAL-9: the size of the smallest segment that can hold a record of `largest` bytes. */
static uint32_t
size_for(const struct wal *w, uint64_t largest)
{
	uint64_t size = w->smallest;

	while (size < w->conf.segment_size && size - SEGMENT_HEAD < largest)
		size *= 2;
	return size < w->conf.segment_size ? (uint32_t)size : w->conf.segment_size;
}

/* WAL-9: the size of segments for a group, so that it needs only a few. */
static uint32_t
size_for_group(struct wal *w, uint64_t bytes, uint64_t largest)
{
	const uint32_t least = size_for(w, largest);
	uint64_t size = spares_segment_size(&w->spares);

	size = size < least ? least : size;
	while (size < w->conf.segment_size && size < bytes / 2)
		size *= 2;
	return size < w->conf.segment_size ? (uint32_t)size : w->conf.segment_size;
}

/* How many more segments of that size records of `bytes` in all may need. `rest`: the bytes
 * left in the last segment. */
static uint64_t
segments_for(uint32_t size, uint64_t rest, uint64_t bytes, uint64_t largest)
{
	const uint64_t capacity = size - SEGMENT_HEAD;
	const uint64_t waste = largest - RECORD_ALIGN; /* at the end of each, at most */
	const uint64_t here = rest > waste ? rest - waste : 0;
	uint64_t tight, loose;

	if (bytes <= rest)
		return 0;
	if (bytes == largest)
		return 1;
	/* A record that did not fit is in the next segment: of two in a row one is half full. */
	loose = 2 * (bytes / capacity + 1);
	if (capacity - waste < capacity / 2)
		return loose;
	tight = (bytes - here + capacity - waste - 1) / (capacity - waste);
	return tight < loose ? tight : loose;
}

/* Gives planned segments without a record back if one of them is too small. */
static void
unplan_small(struct wal *w, uint64_t used, uint32_t size)
{
	bool fits = true;

	for (uint64_t i = used; i < w->n_planned; i++)
		fits &= w->planned[i]->size >= size;
	while (!fits && w->n_planned > used)
		spares_untake(&w->spares, w->planned[--w->n_planned]);
}

static int
reserve_segments(struct wal *w, enum wal_use use, uint64_t more, uint32_t size,
		 struct slu_err *err)
{
	const struct group *g = &w->group;
	const uint64_t used = g->n_pieces ? g->n_pieces - 1 : 0;
	const bool ask = use == WAL_NEW && !w->reserve_there;
	uint64_t have;
	int rc;

	if (more > 0)
		unplan_small(w, used, size);
	have = w->n_planned - used;

	if (more <= have && !ask)
		return 0;
	more = more > have ? more - have : 0;
	if (more > UINT32_MAX / 2)
		return slu_fail(err, SLU_ETOOBIG, "group too large: it needs too many segments");
	rc = wal_make_room(w, w->n_planned + (uint32_t)more, err);
	if (!rc)
		rc = wal_plan(w, (uint32_t)more, size, use, err);
	if (!rc && use == WAL_NEW)
		w->reserve_there = true;
	return rc;
}

/* WAL-4: how many bytes of the last segment this use leaves free. */
static uint64_t
left_by(uint32_t size, enum wal_use use)
{
	return use == WAL_SETTLE ? size / LEFT_OF_LAST : 0;
}

/* Whether the open segment is not the last one: a segment is planned behind it. */
static bool
is_followed(const struct wal *w)
{
	return w->n_planned + 1 > w->group.n_pieces;
}

/* Whether the open segment has room, and no segment must be planned: true for nearly every record.
 * It may miss a record of WAL_SETTLE that fits, because segments may be smaller than the largest. */
static bool
fits_here(const struct wal *w, enum wal_use use, uint64_t bytes, uint64_t rest)
{
	const uint64_t left = is_followed(w) ? 0 : left_by(w->conf.segment_size, use);

	return bytes + left <= rest && (use != WAL_NEW || w->reserve_there);
}

/* Whether everything that wal_reserve would do is done: true for nearly every record. */
static bool
has_room(const struct wal *w, enum wal_use use, uint64_t bytes, uint64_t largest)
{
	const struct group *const g = &w->group;
	const struct group_piece *piece;

	if (w->failed || g->n_pieces == 0 || largest + SEGMENT_HEAD > w->smallest)
		return false;
	piece = &g->pieces[g->n_pieces - 1];
	return fits_here(w, use, bytes, piece->segment->size - piece->end) && group_fits(g, bytes, 0);
}

/* On a full disk it also tries smaller segments. */
static int
reserve_some(struct wal *w, enum wal_use use, uint64_t bytes, uint64_t largest, uint64_t *more,
	     struct slu_err *err)
{
	const struct group_piece *piece = group_piece(&w->group);
	const uint64_t rest = piece->segment->size - piece->end;
	uint32_t least, size;
	int rc;

	*more = 0;
	if (fits_here(w, use, bytes, rest))
		return 0;
	least = size_for(w, largest);
	for (size = size_for_group(w, bytes, largest);; size /= 2) {
		*more = segments_for(size, rest, bytes + left_by(size, use), largest);
		rc = reserve_segments(w, use, *more, size, err);
		if (rc != SLU_EFULL || size / 2 < least)
			return rc;
	}
}

int
wal_reserve(struct wal *w, enum wal_use use, uint64_t bytes, uint64_t largest,
	    struct slu_err *err)
{
	const uint64_t capacity = w->conf.segment_size - SEGMENT_HEAD;
	struct group *g = &w->group;
	uint64_t more;
	int rc;

	assert(!w->conf.read_only && largest <= bytes && largest >= RECORD_HEAD);
	if (has_room(w, use, bytes, largest))
		return 0;
	rc = wal_check(w, err);
	if (rc)
		return rc;
	if (largest > capacity)
		return slu_fail(err, SLU_ETOOBIG,
				"record too large: %" PRIu64 " bytes; a segment holds %" PRIu64,
				largest, capacity);
	if (g->n_pieces == 0)
		group_add_piece(g, wal_current(w), wal_current(w)->end);
	wal_note_record(w, largest);
	rc = reserve_some(w, use, bytes, largest, &more, err);
	if (!rc && group_reserve(g, bytes, (uint32_t)more))
		rc = slu_fail(err, SLU_ENOMEM, "no memory for %" PRIu64 " bytes", bytes);
	return rc;
}

void
wal_note_record(struct wal *w, uint64_t size)
{
	const uint32_t least = size_for(w, size);

	if (least <= w->smallest)
		return;
	w->smallest = least;
	if (least > spares_segment_size(&w->spares))
		spares_set_size(&w->spares, least);
}

/* Finds or begins the piece for a body of n bytes. Returns the flags of the record. */
static uint8_t
place(struct wal *w, uint64_t n)
{
	struct group *g = &w->group;
	const struct group_piece *piece = group_piece(g);
	const bool has_time = g->records == 0 || piece->end == SEGMENT_HEAD;

	if (piece->segment->size - piece->end >= record_size(n, has_time))
		return RECORD_GOES_ON | (has_time ? RECORD_HAS_TIME : 0);
	assert(g->n_pieces <= w->n_planned);
	group_add_piece(g, w->planned[g->n_pieces - 1], SEGMENT_HEAD);
	return RECORD_GOES_ON | RECORD_HAS_TIME;
}

static struct wal_where
append(struct wal *w, uint8_t type, const struct slice *parts, unsigned n)
{
	struct record r = { .type = type, .time = w->time, .life = w->life };
	struct wal_where where;

	for (unsigned i = 0; i < n; i++)
		r.body.n += parts[i].n;
	r.flags = place(w, r.body.n);
	r.size = (uint32_t)record_size(r.body.n, r.flags & RECORD_HAS_TIME);
	r.seq = w->seq + w->group.records + 1;
	r.durable = w->durable.seq;
	where = (struct wal_where){
		.segment = group_piece(&w->group)->segment->number,
		.offset = group_piece(&w->group)->end,
		.length = r.size,
	};
	group_put(&w->group, &r, parts, n);
	return where;
}

struct wal_where
wal_append(struct wal *w, uint8_t type, const struct slice *parts, unsigned n)
{
	assert(type != 0 && type != RECORD_OPENS);
	return append(w, type, parts, n);
}

void
wal_drop(struct wal *w)
{
	group_clear(&w->group);
}

int
wal_sync(struct wal *w, struct slu_err *err)
{
	const slu_time began = w->conf.synced ? clock_mono(w->conf.clock) : 0;
	struct segment *s = wal_current(w);
	int rc;

	rc = s->disk->ops->sync(s->disk, s->file);
	if (w->conf.synced)
		w->conf.synced(w->conf.arg, clock_mono(w->conf.clock) - began);
	if (rc) {
		disk_fail(rc, "sync", s->name, err);
		return wal_fail(w, err);
	}
	w->syncs++;
	w->dirty = false;
	w->sync_by = SLU_NEVER;
	if (w->durable.seq == w->seq || w->is_cache)
		return 0;
	return durable_put(&w->durable, w->seq, w->time, err) ? wal_fail(w, err) : 0;
}

/* WAL-9: the size of the segments that follow `full`. */
static uint32_t
next_size(struct wal *w, const struct segment *full)
{
	const uint32_t size = spares_segment_size(&w->spares);
	const slu_time took = clock_wall(w->conf.clock) - full->time;
	const int64_t room = w->conf.disk->ops->room(w->conf.disk, w->folder);
	const uint64_t larger = 2 * (uint64_t)size;

	if (larger <= w->conf.segment_size && full->size >= size &&
	    (took < QUICK || w->used > (uint64_t)MANY * size) &&
	    (room < 0 || (uint64_t)room > ROOM_FOR * larger))
		return (uint32_t)larger;
	if (size / 2 >= w->smallest && took > SLOW && w->used < (uint64_t)FEW * size)
		return size / 2;
	return size;
}

void
wal_report_head(const struct wal *w, const struct segment *s)
{
	const struct wal_mirror *const m = w->conf.mirror;
	char head[SEGMENT_HEAD];

	if (!w->is_cache)
		return;
	segment_head(s, head);
	m->wrote(m->arg, s->number, 0, (struct slice){ head, sizeof head });
}

static void
report_piece(const struct wal *w, const struct group_piece *piece, const char *p)
{
	const struct wal_mirror *const m = w->conf.mirror;

	if (w->is_cache)
		m->wrote(m->arg, piece->segment->number, piece->at,
			 (struct slice){ p, piece->end - piece->at });
}

/* Begins the next segment. WAL-2: everything before it is synced first. `seq`: of its first
 * record. */
static int
rotate(struct wal *w, uint64_t seq, struct slu_err *err)
{
	const struct segment *const full = wal_current(w);
	struct segment *s = w->planned[0];
	int rc;

	if (w->dirty) {
		rc = wal_sync(w, err);
		if (rc)
			return rc;
	}
	if (segment_begin(s, w->folder, seq, clock_wall(w->conf.clock), err))
		return wal_fail(w, err);
	wal_report_head(w, s);
	spares_use(&w->spares);
	w->n_planned--;
	memmove(w->planned, w->planned + 1, w->n_planned * sizeof(void *));
	if (w->smallest < w->conf.segment_size)
		spares_set_size(&w->spares, next_size(w, full));
	wal_push(w, s);
	return 0;
}

/* A piece behind the first begins a segment, whose head has the seq of its first record. */
static int
write_piece(struct wal *w, uint32_t i, struct slu_err *err)
{
	const struct group_piece *piece = &w->group.pieces[i];
	const size_t size = group_piece_size(&w->group, i);
	const char *p = w->group.p + piece->from;
	struct segment *s = piece->segment;
	int rc;

	if (i > 0) {
		rc = rotate(w, record_seq(p), err);
		if (rc)
			return rc;
	}
	if (piece->end == piece->at)
		return 0;
	rc = s->disk->ops->write(s->disk, s->file, p, size, piece->at);
	if (rc) {
		disk_fail(rc, "write", s->name, err);
		return wal_fail(w, err);
	}
	report_piece(w, piece, p);
	w->writes++;
	w->dirty = true;
	s->end = piece->end;
	if (piece->at + size > s->clear)
		s->clear = piece->at + (uint32_t)size;
	return 0;
}

static int
write_group(struct wal *w, struct slu_err *err)
{
	group_finish(&w->group);
	for (uint32_t i = 0; i < w->group.n_pieces; i++) {
		const int rc = write_piece(w, i, err);

		if (rc)
			return rc;
	}
	w->seq += w->group.records;
	return 0;
}

static slu_time
sync_later(const struct wal *w)
{
	if (w->conf.mode == WAL_NONE)
		return SLU_NEVER;
	return time_add(clock_mono(w->conf.clock), w->conf.interval);
}

int
wal_commit(struct wal *w, bool sync, struct slu_err *err)
{
	struct slu_err local;
	int rc;

	no_err(&local);
	err = err ? err : &local;
	rc = wal_check(w, err);
	if (!rc && w->group.records)
		rc = write_group(w, err);
	group_clear(&w->group);
	if (rc)
		return rc;
	if (w->dirty && sync && w->conf.mode == WAL_SYNC)
		rc = wal_sync(w, err);
	else if (w->dirty && w->sync_by == SLU_NEVER)
		w->sync_by = sync_later(w);
	return rc;
}

int
wal_begin_life(struct wal *w, struct slu_err *err)
{
	const uint64_t size = wal_size(0);
	const uint32_t last = w->life;
	int rc;

	do {
		rc = hash_random(&w->life, sizeof w->life, err);
	} while (!rc && w->life == last);
	if (!rc)
		rc = wal_reserve(w, WAL_FREE, size, size, err);
	if (rc)
		return rc;
	append(w, RECORD_OPENS, NULL, 0);
	rc = wal_commit(w, true, err);
	return rc || !w->dirty ? rc : wal_sync(w, err);
}

int
wal_tick(struct wal *w, struct slu_err *err)
{
	struct slu_err local;
	int rc;

	no_err(&local);
	err = err ? err : &local;
	rc = wal_check(w, err);
	if (rc || !w->dirty || clock_mono(w->conf.clock) < w->sync_by)
		return rc;
	return wal_sync(w, err);
}

int
wal_flush(struct wal *w, struct slu_err *err)
{
	const int rc = wal_check(w, err);

	return rc || !w->dirty ? rc : wal_sync(w, err);
}

slu_time
wal_due(const struct wal *w)
{
	return w->failed ? SLU_NEVER : w->sync_by;
}
