#include "wal/salvage.h"

#include "wal/folder.h"
#include "wal/reader.h"

#include <errno.h>

enum {
	LIVES = 256,  /* how many ended lives are stored */
	FAR = 1 << 24 /* a seq this far ahead is not valid */
};

struct salvage_search {
	salvage_fn *fn;
	void *arg;
	struct salvage *out;
	struct reader reader;
	struct buf held; /* of the current group: struct wal_record and body */
	uint64_t n_held;
	bool in_group; /* the first record of the group was found */
	uint64_t seq;  /* of the last record found; 0 = no record yet */
	slu_time time;
	uint32_t life;
	uint32_t ended[LIVES];
	uint32_t n_ended;
};

static void
drop_group(struct salvage_search *s)
{
	s->out->broken += s->n_held;
	s->n_held = 0;
	s->in_group = false;
	buf_clear(&s->held);
}

static int
hold(struct salvage_search *s, const struct record *r, struct slu_err *err)
{
	const struct wal_record rec = {
		.type = r->type,
		.seq = r->seq,
		.time = s->time,
		.where = { s->reader.segment->number, s->reader.at, r->size },
		.body = r->body,
	};

	buf_put(&s->held, &rec, sizeof rec);
	buf_put(&s->held, r->body.p, r->body.n);
	s->n_held++;
	return s->held.failed ? slu_fail(err, SLU_ENOMEM, "salvage: out of memory") : 0;
}

static int
hand_out(struct salvage_search *s, struct slu_err *err)
{
	int rc = 0;

	for (size_t at = 0; at < s->held.n && !rc;) {
		struct wal_record rec;

		memcpy(&rec, s->held.p + at, sizeof rec);
		at += sizeof rec;
		rec.body.p = s->held.p + at;
		at += rec.body.n;
		rc = s->fn(&rec, at == s->held.n, s->arg, err);
	}
	s->out->records += s->n_held;
	s->out->groups++;
	s->n_held = 0;
	s->in_group = false;
	buf_clear(&s->held);
	return rc;
}

/* WALSALVAGE-2 */
static bool
has_ended(const struct salvage_search *s, uint32_t life)
{
	const uint32_t n = s->n_ended < LIVES ? s->n_ended : LIVES;

	for (uint32_t i = 0; i < n; i++)
		if (s->ended[i] == life)
			return true;
	return false;
}

static void
begin_life(struct salvage_search *s, uint32_t life)
{
	if (s->seq && s->life != life)
		s->ended[s->n_ended++ % LIVES] = s->life;
	s->life = life;
}

/* Whether r begins a group. In the middle of a segment its time says so. At the start of a
 * segment every record has a time: r begins a group if it follows the end of one, or if it
 * is the first record found. */
static bool
begins(const struct salvage_search *s, const struct record *r, bool follows)
{
	if (!(r->flags & RECORD_HAS_TIME))
		return false;
	return s->reader.at != SEGMENT_HEAD || follows || s->seq == 0;
}

static int
take(struct salvage_search *s, const struct record *r, struct slu_err *err)
{
	const bool follows = s->seq && r->seq == s->seq + 1;
	int rc = 0;

	if (!follows) {
		s->out->missing += s->seq ? r->seq - s->seq - 1 : 0;
		drop_group(s);
	}
	s->time = r->flags & RECORD_HAS_TIME ? r->time : s->time;
	if (!s->in_group)
		s->in_group = begins(s, r, follows);
	begin_life(s, r->life);
	s->seq = r->seq;
	if (r->type == RECORD_OPENS) {
		drop_group(s);
		return 0;
	}
	if (s->in_group)
		rc = hold(s, r, err);
	else
		s->out->broken++;
	if (rc || (r->flags & RECORD_GOES_ON))
		return rc;
	return s->in_group ? hand_out(s, err) : 0;
}

/* Finds the next record that counts (WALSALVAGE-2) from the reader's place on; size is 0 at the end. */
static int
find(struct salvage_search *s, struct record *rec, struct slu_err *err)
{
	for (;; reader_skip(&s->reader, RECORD_ALIGN)) {
		const char *p;
		int rc;

		rec->size = 0;
		rc = reader_bytes(&s->reader, RECORD_HEAD, &p, err);
		if (rc || !p)
			return rc;
		if (record_seq(p) <= s->seq || (s->seq && record_seq(p) - s->seq > FAR))
			continue;
		rc = reader_peek(&s->reader, rec, err);
		if (rc || (rec->size && !has_ended(s, rec->life)))
			return rc;
	}
}

static int
search_segment(struct salvage_search *s, struct segment *segment, struct slu_err *err)
{
	struct record rec;
	int rc;

	reader_start(&s->reader, segment, SEGMENT_HEAD, segment->size);
	for (;;) {
		rc = find(s, &rec, err);
		if (rc || rec.size == 0)
			return rc;
		rc = take(s, &rec, err);
		if (rc)
			return rc;
		reader_skip(&s->reader, rec.size);
	}
}

static int
search_number(struct salvage_search *s, struct disk *disk, int folder, uint32_t number,
	      struct slu_err *err)
{
	struct segment *segment;
	int rc;

	rc = segment_open(&segment, disk, folder, number, err);
	if (rc == SLU_ECORRUPT) {
		s->out->headless++;
		return 0;
	}
	if (rc)
		return rc;
	s->out->segments++;
	rc = search_segment(s, segment, err);
	segment_unref(segment);
	return rc;
}

static int
search_all(struct salvage_search *s, struct disk *disk, int folder, struct slu_err *err)
{
	struct folder f = { 0 };
	int rc;

	rc = folder_read(&f, disk, folder, err);
	for (uint32_t i = 0; i < f.n && !rc; i++)
		if (f.at[i].kind == FOLDER_SEGMENT)
			rc = search_number(s, disk, folder, f.at[i].number, err);
	drop_group(s); /* an unfinished group at the end */
	folder_release(&f);
	return rc;
}

/* WAL-7: no other process may write meanwhile. A folder without a lock file is not in use. */
static int
lock_folder(struct disk *disk, int folder, int *lock, struct slu_err *err)
{
	int rc;

	*lock = disk->ops->open(disk, folder, "lock");
	if (*lock == -ENOENT)
		return 0;
	if (*lock < 0)
		return disk_fail(*lock, "open", "lock", err);
	rc = disk->ops->lock(disk, *lock);
	if (rc == -EWOULDBLOCK)
		return slu_fail(err, SLU_EBUSY, "the folder is in use by another process");
	return rc ? disk_fail(rc, "lock", "lock", err) : 0;
}

int
salvage_read(struct disk *disk, const char *folder, salvage_fn *fn, void *arg,
	     struct salvage *out, struct slu_err *err)
{
	struct salvage_search s = { .fn = fn, .arg = arg, .out = out };
	int fd, lock = -1, rc;

	disk = disk ? disk : &disk_posix;
	*out = (struct salvage){ 0 };
	fd = disk->ops->folder(disk, folder);
	if (fd < 0)
		return disk_fail(fd, "open", folder, err);
	buf_init(&s.held, SIZE_MAX);
	rc = lock_folder(disk, fd, &lock, err);
	if (!rc)
		rc = search_all(&s, disk, fd, err);
	buf_release(&s.held);
	reader_release(&s.reader);
	if (lock >= 0)
		disk->ops->close(disk, lock);
	disk->ops->close(disk, fd);
	return rc;
}
