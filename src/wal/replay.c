/*
 * replay.c - reads the log at open and finds its end.
 *
 *      sealed segments                         the last segment
 *      every record up to the next head's      as far as records follow each other;
 *      first seq is there, or it is damaged    the log ends with the last whole group
 *
 *                                              |<- whole groups ->|<- tail ->|  rest
 *                                                                 cut        stop
 *
 * A record follows if its sum is right, its seq is the next, it is of the same life or
 * begins a new one, and it has a time where a time belongs. Replay holds the records of a
 * group back until it has read the last one.
 *
 * From the cut to the end of the last segment replay checks every multiple of 8. A record
 * there whose `durable` is beyond the cut proves damage (WAL-2), and so does the file
 * `durable`. Without such a proof the tail is cut: segments that hold only parts of the
 * unfinished group become spares, last first. Records behind the cut stay on disk.
 * They, and mixtures of them and later writes, never follow again, because a new life
 * begins at the cut (WAL-2).
 */
#include "wal/wal_private.h"

#include <inttypes.h>

enum {
	REPORT_EVERY = 1 << 20 /* bytes */
};

struct replay {
	struct wal *w;
	wal_replay_fn *fn;
	void *arg;
	struct reader reader;
	struct buf held;      /* of the unfinished group: struct wal_record and body */
	uint64_t next_seq;    /* of the next record */
	uint64_t whole_seq;   /* of the last record of the last whole group */
	uint32_t life;        /* of the last record */
	bool any;             /* a record was read */
	slu_time time;        /* of the current group */
	slu_time whole_time;  /* of the last whole group */
	bool in_group;        /* the current group is not whole */
	uint32_t cut_segment; /* index in segments[] */
	uint32_t cut_at;      /* offset in that segment */
	uint64_t done;        /* bytes of the segments before this one */
	uint64_t report;      /* call conf.reading when so many bytes are done */
};

static int
damaged(const struct segment *s, uint32_t at, uint64_t seq, const char *why,
	struct slu_err *err)
{
	return slu_fail(err, SLU_ECORRUPT,
			"%s: damaged at %" PRIu32 ": record %" PRIu64 " is missing, but %s; "
			"run `sluice admin journal check`",
			s->name, at, seq, why);
}

static bool
fits_life(const struct replay *rp, const struct record *rec)
{
	if (rec->type == RECORD_OPENS)
		return !rp->in_group && (!rp->any || rec->life != rp->life);
	return !rp->any || rec->life == rp->life;
}

static bool
follows(const struct replay *rp, const struct record *rec)
{
	const bool time_due = !rp->in_group || rp->reader.at == SEGMENT_HEAD;

	return rec->seq == rp->next_seq && rec->durable <= rp->whole_seq &&
	       time_due == ((rec->flags & RECORD_HAS_TIME) != 0) && fits_life(rp, rec);
}

static int
hand_out(struct replay *rp, const struct wal_record *rec, struct slu_err *err)
{
	if (!rp->fn || rec->type == RECORD_OPENS)
		return 0;
	return rp->fn(rp->w, rec, rp->arg, err);
}

static int
hand_out_held(struct replay *rp, struct slu_err *err)
{
	int rc = 0;

	for (size_t at = 0; at < rp->held.n && !rc;) {
		struct wal_record rec;

		memcpy(&rec, rp->held.p + at, sizeof rec);
		at += sizeof rec;
		rec.body.p = rp->held.p + at;
		at += rec.body.n;
		rc = hand_out(rp, &rec, err);
	}
	buf_clear(&rp->held);
	return rc;
}

static int
hold(struct replay *rp, const struct wal_record *rec, struct slu_err *err)
{
	buf_put(&rp->held, rec, sizeof *rec);
	buf_put(&rp->held, rec->body.p, rec->body.n);
	if (rp->held.failed)
		return slu_fail(err, SLU_ENOMEM, "replay: out of memory");
	return 0;
}

/* Holds a record that follows back; at the end of its group hands the group out. */
static int
take(struct replay *rp, const struct record *r, struct slu_err *err)
{
	const bool ends = !(r->flags & RECORD_GOES_ON);
	struct wal_record rec = {
		.type = r->type,
		.seq = r->seq,
		.where = { rp->reader.segment->number, rp->reader.at, r->size },
		.body = r->body,
	};
	int rc;

	rp->time = r->flags & RECORD_HAS_TIME ? r->time : rp->time;
	rec.time = rp->time;
	rp->in_group = !ends;
	rp->life = r->life;
	rp->any = true;
	rp->next_seq++;
	reader_skip(&rp->reader, r->size);
	if (ends && rp->held.n == 0)
		return hand_out(rp, &rec, err);
	rc = hold(rp, &rec, err);
	return rc || !ends ? rc : hand_out_held(rp, err);
}

/* Reports the progress. Returns SLU_ECANCELED if the caller ends the open. */
static int
report(struct replay *rp, struct slu_err *err)
{
	const struct wal_conf *conf = &rp->w->conf;
	const uint64_t done = rp->done + rp->reader.at;

	if (!conf->reading || done < rp->report)
		return 0;
	rp->report = done + REPORT_EVERY;
	if (conf->reading(conf->arg, done, rp->w->used))
		return 0;
	return slu_fail(err, SLU_ECANCELED,
			"canceled after %" PRIu64 " of %" PRIu64 " bytes",
			done, rp->w->used);
}

/* Replays records with seq < until, or as far as records follow. */
static int
replay_segment(struct replay *rp, uint32_t i, uint64_t until, struct slu_err *err)
{
	struct segment *s = rp->w->segments[i];
	struct record rec;
	int rc = 0;

	reader_start(&rp->reader, s, SEGMENT_HEAD, s->size);
	rp->w->unsure = 0;
	while (!rc && rp->next_seq < until) {
		if (!rp->w->unsure && rp->next_seq > rp->w->durable.seq)
			rp->w->unsure = rp->reader.at;
		if (!rp->in_group) {
			rp->whole_seq = rp->next_seq - 1;
			rp->whole_time = rp->time;
			rp->cut_segment = i;
			rp->cut_at = rp->reader.at;
		}
		rc = report(rp, err);
		if (!rc)
			rc = reader_peek(&rp->reader, &rec, err);
		if (rc || rec.size == 0 || !follows(rp, &rec))
			break;
		wal_note_record(rp->w, rec.size);
		rc = take(rp, &rec, err);
	}
	s->end = rp->reader.at;
	return rc;
}

static int
replay_all(struct replay *rp, struct slu_err *err)
{
	struct wal *w = rp->w;
	int rc = 0;

	rp->next_seq = w->segments[0]->first_seq;
	for (uint32_t i = 0; i < w->n_segments && !rc; i++) {
		const bool is_last = i + 1 == w->n_segments;
		const uint64_t until = is_last ? UINT64_MAX
					       : w->segments[i + 1]->first_seq;

		rc = replay_segment(rp, i, until, err);
		rp->done += w->segments[i]->size;
		if (!rc && !is_last && rp->next_seq != until)
			rc = damaged(w->segments[i], rp->reader.at, rp->next_seq,
				     "a later segment exists", err);
	}
	return rc;
}

/* Finds the next record of the tail from the reader's place on: its seq is beyond the cut,
 * but not higher than the bytes since the cut allow. rec->size is 0 at the end of the
 * segment. */
static int
find_in_tail(struct replay *rp, uint32_t from, struct record *rec, struct slu_err *err)
{
	struct reader *r = &rp->reader;
	const uint64_t first = r->segment->first_seq;
	const uint64_t base = first > rp->whole_seq ? first : rp->whole_seq + 1;

	for (;; reader_skip(r, RECORD_ALIGN)) {
		const char *p;
		int rc;

		rec->size = 0;
		rc = reader_bytes(r, RECORD_HEAD, &p, err);
		if (rc || !p)
			return rc;
		if (record_seq(p) <= rp->whole_seq ||
		    record_seq(p) > base + (r->at - from) / RECORD_HEAD)
			continue;
		rc = reader_peek(r, rec, err);
		if (rc || rec->size)
			return rc;
	}
}

static uint32_t
tail_from(const struct replay *rp, uint32_t segment)
{
	return segment == rp->cut_segment ? rp->cut_at : SEGMENT_HEAD;
}

/* WAL-2: returns SLU_ECORRUPT if a record or `durable` proves that the tail was synced. */
static int
check_tail(struct replay *rp, struct slu_err *err)
{
	const uint32_t last = rp->w->n_segments - 1, from = tail_from(rp, last);
	struct segment *s = rp->w->segments[last];
	struct record rec;
	int rc;

	if (rp->w->durable.seq > rp->whole_seq)
		return damaged(s, s->end, rp->next_seq, "it was synced", err);
	reader_start(&rp->reader, s, from, s->size);
	for (;;) {
		rc = find_in_tail(rp, from, &rec, err);
		if (rc || rec.size == 0)
			return rc;
		if (rec.durable > rp->whole_seq)
			return damaged(s, s->end, rp->next_seq,
				       "a later record says that it was synced", err);
		reader_skip(&rp->reader, rec.size);
	}
}

/* Drops segments behind the cut, last first, so that the log never has a gap. */
static int
drop_segments(struct replay *rp, struct slu_err *err)
{
	struct wal *w = rp->w;

	while (w->n_segments - 1 > rp->cut_segment) {
		struct segment *s = wal_current(w);
		const uint32_t size = s->size;
		int rc;

		reader_release(&rp->reader); /* it may have pinned the segment */
		rc = spares_give(&w->spares, s, err);
		if (rc)
			return rc;
		w->n_segments--;
		w->used -= size;
		w->unsure = SEGMENT_HEAD;
	}
	return 0;
}

/* Whether the bytes at the cut are neither a record nor zeros: a torn write. At the start of
 * a page they may be left from an earlier use of the file. */
static bool
is_torn(struct replay *rp)
{
	static const char zeros[RECORD_ALIGN];
	const char *p;

	reader_start(&rp->reader, rp->w->segments[rp->cut_segment], rp->cut_at,
		     rp->w->segments[rp->cut_segment]->size);
	if (rp->cut_at % SEGMENT_PAGE == 0 ||
	    reader_bytes(&rp->reader, RECORD_ALIGN, &p, NULL) || !p)
		return false;
	return memcmp(p, zeros, sizeof zeros) != 0;
}

static int
cut_tail(struct replay *rp, struct slu_err *err)
{
	struct wal *w = rp->w;
	const uint64_t records = rp->next_seq - 1 - rp->whole_seq;
	const bool torn = records || is_torn(rp);
	int rc;

	if (w->conf.read_only)
		return 0;
	rc = drop_segments(rp, err);
	if (rc)
		return rc;
	wal_current(w)->end = rp->cut_at;
	if (torn)
		log_warn(w->conf.log, "log tail cut",
			 F_STR("file", wal_current(w)->name), F_U64("offset", rp->cut_at),
			 F_U64("after", rp->whole_seq), F_U64("records", records));
	return 0;
}

int
wal_replay(struct wal *w, wal_replay_fn *fn, void *arg, struct slu_err *err)
{
	struct replay rp = { .w = w, .fn = fn, .arg = arg };
	int rc;

	if (w->n_segments == 0 && w->durable.seq)
		return slu_fail(err, SLU_ECORRUPT,
				"00000001.log: missing at 0; `durable` says that %" PRIu64
				" records were synced",
				w->durable.seq);
	if (w->n_segments == 0)
		return 0;
	buf_init(&rp.held, SIZE_MAX);
	rc = replay_all(&rp, err);
	if (!rc)
		rc = check_tail(&rp, err);
	if (!rc)
		rc = cut_tail(&rp, err);
	w->seq = rp.whole_seq;
	w->life = rp.life;
	w->time = rp.whole_time > w->time ? rp.whole_time : w->time;
	buf_release(&rp.held);
	reader_release(&rp.reader);
	return rc;
}
