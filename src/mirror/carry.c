#include "mirror/carry.h"

#include "base/mem.h"
#include "wal/folder.h"

#include <inttypes.h>

void
carrier_init(struct carrier *c, struct disk *disk, int folder)
{
	*c = (struct carrier){ .disk = disk, .folder = folder };
}

void
carrier_release(struct carrier *c)
{
	reader_release(&c->reader);
	segment_unref(c->segment);
	*c = (struct carrier){ 0 };
}

/* ---- Segments ---- */

/* The oldest segment of the folder. */
static int
find_first(const struct carrier *c, uint32_t *number, struct slu_err *err)
{
	struct folder f = { 0 };
	int rc = folder_read(&f, c->disk, c->folder, err);

	*number = 0;
	for (uint32_t i = 0; !rc && i < f.n && *number == 0; i++)
		if (f.at[i].kind == FOLDER_SEGMENT)
			*number = f.at[i].number;
	folder_release(&f);
	return rc || *number ? rc : slu_fail(err, SLU_ECORRUPT, "the folder has no segment");
}

static int
find_next_seq(struct carrier *c, uint32_t number, struct slu_err *err)
{
	struct segment *next;
	int rc;

	if (c->next_seq)
		return 0;
	rc = segment_open(&next, c->disk, c->folder, number + 1, err);
	if (rc)
		return rc;
	c->next_seq = next->first_seq;
	segment_unref(next);
	return 0;
}

/* Opens the segment. is_last: it may still grow. */
static int
enter(struct carrier *c, uint32_t number, bool is_last, struct slu_err *err)
{
	int rc = 0;

	if (!c->segment || c->segment->number != number) {
		reader_release(&c->reader); /* it pins the segment before */
		c->reader = (struct reader){ 0 };
		segment_unref(c->segment);
		c->segment = NULL;
		c->next_seq = 0;
		rc = segment_open(&c->segment, c->disk, c->folder, number, err);
	}
	return rc || is_last ? rc : find_next_seq(c, number, err);
}

/* ---- Records ---- */

static int
refuse_damage(const struct carrier *c, uint32_t offset, struct slu_err *err)
{
	return slu_fail(err, SLU_ECORRUPT, "%s: bad record at %" PRIu32, c->segment->name, offset);
}

/* The record at r->at, which follows c->seq. */
static int
next_record(struct carrier *c, struct record *rec, struct slu_err *err)
{
	const int rc = reader_peek(&c->reader, rec, err);

	if (rc)
		return rc;
	return rec->size && rec->seq == c->seq + 1 ? 0 : refuse_damage(c, c->reader.at, err);
}

/* Reads the segment up to the offset, which must be between two records, to know the seq there. */
static int
find_seq(struct carrier *c, uint32_t offset, struct slu_err *err)
{
	struct record rec;
	int rc = 0;

	c->seq = c->segment->first_seq - 1;
	reader_start(&c->reader, c->segment, SEGMENT_HEAD, offset);
	while (!rc && c->reader.at < offset) {
		rc = next_record(c, &rec, err);
		if (!rc)
			reader_skip(&c->reader, rec.size);
		c->seq += !rc;
	}
	return rc;
}

/* ---- Groups ---- */

struct carry_walk {
	struct carry_place at, to;
	uint64_t max, bytes;
	struct body *body;
	struct carried *done;
	slu_time time;   /* of the group at `at` */
	bool in_group;   /* the last record is not the last one of its group */
	bool has_enough; /* max bytes, and whole groups */
};

static void
take_record(struct carrier *c, struct carry_walk *w, const struct record *rec)
{
	c->seq = rec->seq;
	w->at.offset += rec->size;
	w->bytes += rec->size;
	w->time = rec->flags & RECORD_HAS_TIME ? rec->time : w->time;
	w->in_group = rec->flags & RECORD_GOES_ON;
	if (w->in_group)
		return;
	w->done->time = w->time;
	w->done->groups++;
	w->has_enough = w->bytes >= w->max;
}

/* Whether the place is behind the last record of its segment, or of the walk. */
static bool
is_at_end(const struct carrier *c, const struct carry_walk *w)
{
	if (w->at.segment == w->to.segment)
		return w->at.offset >= w->to.offset;
	return c->seq + 1 == c->next_seq;
}

static int
read_records(struct carrier *c, struct carry_walk *w, struct slu_err *err)
{
	struct record rec;
	int rc = 0;

	reader_start(&c->reader, c->segment, w->at.offset,
		     w->at.segment == w->to.segment ? w->to.offset : c->segment->size);
	while (!rc && !w->has_enough && !is_at_end(c, w)) {
		rc = next_record(c, &rec, err);
		if (rc)
			break;
		reader_skip(&c->reader, rec.size);
		take_record(c, w, &rec);
	}
	return rc;
}

static int
add_piece(const struct carrier *c, uint32_t from, uint32_t to, struct body *body, struct slu_err *err)
{
	const size_t n = to - from;
	struct body_piece piece = { .segment = c->segment->number, .offset = from };
	char *p;
	int rc;

	if (n == 0 || !body)
		return 0;
	p = mem_alloc(n);
	if (!p)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	rc = segment_read(c->segment, p, n, from, false, err);
	piece.bytes = (struct slice){ p, n };
	if (!rc)
		body_add(body, &piece);
	mem_free(p);
	return rc;
}

/* Reads the rest of one segment, or as much of it as is wanted. */
static int
walk_segment(struct carrier *c, struct carry_walk *w, struct slu_err *err)
{
	const uint32_t from = w->at.offset;
	int rc = enter(c, w->at.segment, w->at.segment == w->to.segment, err);

	if (rc)
		return rc;
	if (from == 0) {
		c->seq = c->segment->first_seq - 1;
		w->at.offset = SEGMENT_HEAD;
		w->bytes += SEGMENT_HEAD;
	} else if (c->seq == 0) {
		rc = find_seq(c, from, err);
	}
	if (!rc)
		rc = read_records(c, w, err);
	return rc ? rc : add_piece(c, from, w->at.offset, w->body, err);
}

int
carrier_next(struct carrier *c, struct carry_place from, struct carry_place to, uint64_t max,
	     struct body *body, struct carried *done, struct slu_err *err)
{
	struct carry_walk w = { .at = from, .to = to, .max = max, .body = body, .done = done };
	int rc = 0;

	*done = (struct carried){ .place = from };
	if (from.segment == 0)
		rc = find_first(c, &w.at.segment, err);
	while (!rc && !w.has_enough && carry_is_before(w.at, to)) {
		rc = walk_segment(c, &w, err);
		if (!rc && !w.has_enough && w.at.segment < to.segment)
			w.at = (struct carry_place){ w.at.segment + 1, 0 };
	}
	if (!rc && (w.in_group || carry_is_before(to, w.at)))
		rc = refuse_damage(c, w.at.offset, err);
	done->place = w.at;
	return rc;
}
