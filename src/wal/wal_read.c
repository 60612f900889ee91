#include "wal/wal_private.h"

#include <inttypes.h>

/* Reads the length of a record from its head. */
static int
find_length(const struct wal_pin *pin, bool now, uint32_t *length, struct slu_err *err)
{
	const struct segment *s = pin->segment;
	const uint32_t rest = s->size - pin->where.offset;
	char head[RECORD_HEAD];
	int rc;

	if (rest < RECORD_HEAD)
		return slu_fail(err, SLU_ECORRUPT, "%s: no record at %" PRIu32, s->name,
				pin->where.offset);
	rc = segment_read(s, head, sizeof head, pin->where.offset, now, err);
	if (rc)
		return rc;
	*length = record_claims(head, rest);
	if (*length == 0)
		return slu_fail(err, SLU_ECORRUPT, "%s: no record at %" PRIu32, s->name,
				pin->where.offset);
	return 0;
}

static int
check(const struct wal_pin *pin, const char *p, uint32_t length, struct wal_record *rec,
      struct slu_err *err)
{
	const struct segment *s = pin->segment;
	const uint32_t offset = pin->where.offset;
	struct record r;

	if (!record_get(p, length, segment_salt(s, offset), &r) || r.size != length)
		return slu_fail(err, SLU_ECORRUPT, "%s: bad record at %" PRIu32, s->name,
				offset);
	*rec = (struct wal_record){
		.type = r.type,
		.seq = r.seq,
		.time = r.time,
		.where = { s->number, offset, length },
		.body = r.body,
	};
	return 0;
}

static int
read_pinned(const struct wal_pin *pin, void *p, size_t size, bool now,
	    struct wal_record *rec, struct slu_err *err)
{
	uint32_t length = pin->where.length;
	int rc;

	rc = length ? 0 : find_length(pin, now, &length, err);
	if (rc)
		return rc;
	if (length > size)
		return slu_fail(err, SLU_ETOOBIG, "%s: record too large: %" PRIu32 " bytes at "
						  "%" PRIu32,
				pin->segment->name, pin->where.offset, length);
	rc = segment_read(pin->segment, p, length, pin->where.offset, now, err);
	return rc ? rc : check(pin, p, length, rec, err);
}

/* The end of the last record in s, in the open group too. */
static uint32_t
end_of(const struct wal *w, const struct segment *s)
{
	uint32_t end = s->end;

	for (uint32_t i = 0; i < w->group.n_pieces; i++)
		if (w->group.pieces[i].segment == s)
			end = w->group.pieces[i].end;
	return end;
}

bool
wal_is_written(const struct wal *w, struct wal_where where)
{
	const struct segment *const s = wal_segment(w, where.segment);

	return s && where.offset < s->end && where.length <= s->end - where.offset;
}

int
wal_pin(struct wal *w, struct wal_where where, struct wal_pin *pin)
{
	struct segment *s = wal_any_segment(w, where.segment);
	uint32_t end;

	*pin = (struct wal_pin){ .where = where };
	end = s ? end_of(w, s) : 0;
	if (where.offset >= end || where.length > end - where.offset)
		return SLU_ENOTFOUND;
	pin->segment = segment_ref(s);
	return 0;
}

void
wal_unpin(struct wal_pin *pin)
{
	segment_unref(pin->segment);
	pin->segment = NULL;
}

bool
wal_is_pinned(const struct wal *w)
{
	for (uint32_t i = 0; w && i < w->n_segments; i++)
		if (segment_is_pinned(w->segments[i]))
			return true;
	return false;
}

bool
wal_appended(const struct wal *w, const struct wal_pin *pin, struct wal_record *rec)
{
	const char *const p = group_find(&w->group, pin->segment, pin->where.offset);
	struct record r;

	if (!p)
		return false;
	record_look(p, &r);
	*rec = (struct wal_record){
		.type = r.type,
		.seq = r.seq,
		.time = r.time,
		.where = { pin->segment->number, pin->where.offset, r.size },
		.body = r.body,
	};
	return true;
}

int
wal_pinned_read(const struct wal_pin *pin, void *p, size_t size,
		struct wal_record *rec, struct slu_err *err)
{
	return read_pinned(pin, p, size, false, rec, err);
}

int
wal_pinned_read_now(const struct wal_pin *pin, void *p, size_t size,
		    struct wal_record *rec, struct slu_err *err)
{
	return read_pinned(pin, p, size, true, rec, err);
}

int
wal_pinned_span(const struct wal_pin *pin, void *p, size_t n, bool now)
{
	return segment_read(pin->segment, p, n, pin->where.offset, now, NULL);
}

int
wal_pinned_check(const struct wal_pin *pin, const void *p, struct wal_record *rec)
{
	return check(pin, p, pin->where.length, rec, NULL);
}

int
wal_read(struct wal *w, struct wal_where where, void *p, size_t size,
	 struct wal_record *rec, struct slu_err *err)
{
	struct wal_pin pin;
	int rc;

	rc = wal_check(w, err);
	if (rc)
		return rc;
	if (wal_pin(w, where, &pin))
		return slu_fail(err, SLU_ENOTFOUND,
				"%08" PRIu32 ".log: no record at %" PRIu32,
				where.segment, where.offset);
	rc = read_pinned(&pin, p, size, false, rec, err);
	wal_unpin(&pin);
	return rc;
}
