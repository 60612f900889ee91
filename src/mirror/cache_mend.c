/*
 * cache_mend.c - makes the folder what the line holds.
 */
#include "mirror/cache_private.h"

#include "base/le.h"
#include "base/mem.h"
#include "mirror/body.h"
#include "wal/folder.h"
#include "wal/segment.h"

#include <errno.h>
#include <inttypes.h>

enum {
	SIZE_IN_HEAD = 40, /* offset of the size of a segment in its head */
	CHUNK = 64 << 10
};

void
cache_close_segment(struct cache *c)
{
	if (c->open_file >= 0)
		c->conf.disk->ops->close(c->conf.disk, c->open_file);
	c->open_file = -1;
	c->open_segment = 0;
}

static int
remove_file(struct cache *c, const char *name, struct slu_err *err)
{
	const int rc = c->conf.disk->ops->remove(c->conf.disk, c->conf.folder, name);

	return rc && rc != -ENOENT ? disk_fail(rc, "remove", name, err) : 0;
}

/* Removes the segments behind the last one that stays; 0 = all. */
static int
remove_behind(struct cache *c, uint32_t last, struct slu_err *err)
{
	struct folder f = { 0 };
	int rc;

	cache_close_segment(c);
	rc = folder_read(&f, c->conf.disk, c->conf.folder, err);
	for (uint32_t i = f.n; i-- > 0 && !rc;) { /* the last one first: no gap stays */
		char name[SEGMENT_NAME];

		if (f.at[i].kind != FOLDER_SEGMENT || f.at[i].number <= last)
			continue;
		segment_name(f.at[i].number, name);
		rc = remove_file(c, name, err);
	}
	folder_release(&f);
	return rc;
}

int
cache_wipe(struct cache *c, struct slu_err *err)
{
	const int rc = cache_distrust(c, err);

	return rc ? rc : remove_behind(c, 0, err);
}

/* Makes the segment that the head describes. */
static int
create_segment(struct cache *c, const struct body_piece *piece, struct slu_err *err)
{
	const struct disk_ops *const ops = c->conf.disk->ops;
	char name[SEGMENT_NAME];
	int rc;

	if (piece->bytes.n < SEGMENT_HEAD)
		return slu_fail(err, SLU_ECORRUPT, "invalid head of segment %" PRIu32, piece->segment);
	cache_close_segment(c);
	segment_name(piece->segment, name);
	rc = remove_file(c, name, err);
	if (rc)
		return rc;
	c->open_file = ops->create(c->conf.disk, c->conf.folder, name);
	if (c->open_file < 0)
		return disk_fail(c->open_file, "create", name, err);
	c->open_segment = piece->segment;
	rc = ops->allocate(c->conf.disk, c->open_file, le64_get(piece->bytes.p + SIZE_IN_HEAD));
	return rc ? disk_fail(rc, "allocate", name, err) : 0;
}

/* Opens the segment; c->open_file is -ENOENT if the folder does not have it. */
static int
open_segment(struct cache *c, uint32_t number, struct slu_err *err)
{
	char name[SEGMENT_NAME];

	if (c->open_file >= 0 && c->open_segment == number)
		return 0;
	cache_close_segment(c);
	segment_name(number, name);
	c->open_file = c->conf.disk->ops->open(c->conf.disk, c->conf.folder, name);
	c->open_segment = number;
	if (c->open_file >= 0 || c->open_file == -ENOENT)
		return 0;
	return disk_fail(c->open_file, "open", name, err);
}

static int
write_piece(struct cache *c, const struct body_piece *piece, struct slu_err *err)
{
	const struct disk_ops *const ops = c->conf.disk->ops;
	const int64_t size = ops->size(c->conf.disk, c->open_file);
	int rc;

	if (size < 0 || piece->offset + piece->bytes.n > (uint64_t)size)
		return slu_fail(err, SLU_ECORRUPT, "a piece is beyond the end of segment %" PRIu32,
				piece->segment);
	rc = ops->write(c->conf.disk, c->open_file, piece->bytes.p, piece->bytes.n, piece->offset);
	return rc ? disk_fail(rc, "write", "a segment", err) : 0;
}

static int
take_piece(struct cache *c, uint64_t group, const struct body_piece *piece, bool first,
	   struct slu_err *err)
{
	int rc;

	rc = piece->offset ? open_segment(c, piece->segment, err) : create_segment(c, piece, err);
	if (rc)
		return rc;
	if (c->open_file < 0 && first && c->n == 0)
		return 0; /* of a segment that is gone */
	if (c->open_file < 0)
		return slu_fail(err, SLU_ECORRUPT, "the head of segment %" PRIu32 " is missing",
				piece->segment);
	rc = write_piece(c, piece, err);
	if (!rc && cache_wrote(c, group, piece->segment, piece->offset, piece->bytes.n))
		rc = slu_fail(err, SLU_ENOMEM, "out of memory");
	return rc;
}

int
cache_take(struct cache *c, const struct line_group *g, bool first, struct slu_err *err)
{
	struct body_reader reader = { 0 };
	struct body_piece piece;
	struct slu_err why = { 0 };
	int rc = 0;

	if (g->body.n)
		rc = body_open(&reader, g->body, &why);
	while (!rc && body_next(&reader, &piece))
		rc = take_piece(c, g->number, &piece, first, &why);
	if (rc)
		return slu_fail(err, why.code, "%s: group %" PRIu64 ": %.180s", c->conf.shard, g->number,
				why.text);
	return 0;
}

/* ---- A front folder ---- */

void
cache_forget(struct cache *c)
{
	c->known = (struct line_known){ 0 };
	c->n = c->end_segment = c->end_offset = 0;
}

/* The oldest segment of the folder; 0 = the folder has none. */
static int
oldest(const struct cache *c, uint32_t *number, struct slu_err *err)
{
	struct folder f = { 0 };
	const int rc = folder_read(&f, c->conf.disk, c->conf.folder, err);

	*number = 0;
	for (uint32_t i = 0; !rc && i < f.n && *number == 0; i++)
		if (f.at[i].kind == FOLDER_SEGMENT)
			*number = f.at[i].number;
	folder_release(&f);
	return rc;
}

static int
compare(struct cache *c, const struct body_piece *piece, struct slu_err *err)
{
	char *const p = mem_alloc(piece->bytes.n ? piece->bytes.n : 1);
	int64_t got;
	bool same;

	if (!p)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	got = c->conf.disk->ops->read(c->conf.disk, c->open_file, p, piece->bytes.n, piece->offset);
	same = got == (int64_t)piece->bytes.n && memcmp(p, piece->bytes.p, piece->bytes.n) == 0;
	mem_free(p);
	if (got < 0)
		return disk_fail(got, "read", "a segment", err);
	return same ? 0 : slu_fail(err, SLU_ECORRUPT, "the front folder differs from the store: segment %" PRIu32 " at %" PRIu32, piece->segment, piece->offset);
}

static int
match_piece(struct cache *c, uint64_t group, const struct body_piece *piece, uint32_t first, struct slu_err *err)
{
	int rc;

	if (piece->segment < first)
		return 0;
	rc = open_segment(c, piece->segment, err);
	if (!rc && c->open_file < 0)
		rc = slu_fail(err, SLU_ECORRUPT, "the front folder lacks segment %" PRIu32, piece->segment);
	if (!rc)
		rc = compare(c, piece, err);
	if (!rc && c->n == 0 && piece->offset && cache_begin_segment(c, piece->segment, group))
		rc = slu_fail(err, SLU_ENOMEM, "out of memory");
	if (!rc && cache_wrote(c, group, piece->segment, piece->offset, piece->bytes.n))
		rc = slu_fail(err, SLU_ENOMEM, "out of memory");
	return rc;
}

int
cache_match(struct cache *c, const struct line_group *g, struct slu_err *err)
{
	struct body_reader reader = { 0 };
	struct body_piece piece;
	uint32_t first;
	int rc = oldest(c, &first, err);

	if (!rc && g->body.n)
		rc = body_open(&reader, g->body, err);
	while (!rc && body_next(&reader, &piece))
		rc = match_piece(c, g->number, &piece, first, err);
	return rc;
}

static int
sync_segment(struct cache *c, uint32_t number, struct slu_err *err)
{
	int rc = open_segment(c, number, err);

	if (rc || c->open_file < 0)
		return rc;
	rc = c->conf.disk->ops->sync(c->conf.disk, c->open_file);
	return rc ? disk_fail(rc, "sync", "a segment", err) : 0;
}

int
cache_sync(struct cache *c, struct slu_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < c->n; i++)
		rc = sync_segment(c, c->segments[i].number, err);
	cache_close_segment(c);
	if (rc)
		return rc;
	rc = c->conf.disk->ops->sync_folder(c->conf.disk, c->conf.folder);
	return rc ? disk_fail(rc, "sync", c->conf.path, err) : 0;
}

/* ---- Cutting ---- */

static bool
is_zero(const char *p, size_t n)
{
	return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* Fills the rest of the last segment with zeros, where other bytes are. */
static int
clear_tail(struct cache *c, char chunk[static CHUNK], struct slu_err *err)
{
	const struct disk_ops *const ops = c->conf.disk->ops;
	const int64_t size = ops->size(c->conf.disk, c->open_file);
	int rc = 0;

	for (int64_t at = c->end_offset; at < size && !rc;) {
		const size_t n = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
		const int64_t got = ops->read(c->conf.disk, c->open_file, chunk, n, (uint64_t)at);

		if (got < 0)
			return disk_fail(got, "read", "a segment", err);
		if (!is_zero(chunk, (size_t)got)) {
			memset(chunk, 0, n);
			rc = ops->write(c->conf.disk, c->open_file, chunk, n, (uint64_t)at);
		}
		at += (int64_t)n;
	}
	return rc ? disk_fail(rc, "write", "a segment", err) : 0;
}

/* LINE-8 */
static int
cut(struct cache *c, struct slu_err *err)
{
	char *chunk;
	int rc;

	rc = remove_behind(c, c->end_segment, err);
	if (rc || c->end_segment == 0)
		return rc;
	chunk = mem_alloc(CHUNK);
	if (!chunk)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	rc = open_segment(c, c->end_segment, err);
	if (!rc && c->open_file < 0)
		rc = slu_fail(err, SLU_ECORRUPT, "segment %" PRIu32 " is missing", c->end_segment);
	if (!rc)
		rc = clear_tail(c, chunk, err);
	mem_free(chunk);
	cache_close_segment(c);
	return rc;
}

int
cache_finish(struct cache *c, const struct line_known *known, struct slu_err *err)
{
	const int rc = cut(c, err);

	return rc ? rc : cache_save(c, known, err);
}
