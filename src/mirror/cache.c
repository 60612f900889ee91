/*
 * cache.c - the file `mirror`: what is known about the folder.
 */
#include "mirror/cache_private.h"

#include "base/crc32c.h"
#include "base/le.h"
#include "base/mem.h"
#include "wal/folder.h"

#include <errno.h>
#include <stdio.h>

enum {
	HEAD = 152,
	AT_SUM = 8,
	AT_FORMAT = 12,
	AT_UUID = 16,
	AT_SHARD = 32,
	SHARD = 104,
	FORMAT = 1,

	STATE = 512, /* offset of what is known */
	FIXED = 80,
	ROW = 12,
	AT_ROWS = 4,
	AT_GROUP = 8,
	AT_PUT = 16,
	AT_MARK = 24,
	AT_END_SEGMENT = 28,
	AT_END_OFFSET = 32,
	AT_BOOT = 40
};

static const char name[] = "mirror";
static const char magic[8] = { 's', 'l', 'u', 'i', 'c', 'e', 'm', 'i' };

/* ---- Whose folder is it? ---- */

static void
encode_head(const struct cache *c, char p[static HEAD])
{
	memset(p, 0, HEAD);
	memcpy(p, magic, sizeof magic);
	le32_put(p + AT_FORMAT, FORMAT);
	memcpy(p + AT_UUID, c->conf.uuid, CACHE_UUID);
	memcpy(p + AT_SHARD, c->conf.shard, strlen(c->conf.shard));
	le32_put(p + AT_SUM, crc32c(0, p + AT_FORMAT, HEAD - AT_FORMAT));
}

static int
refuse_plain(const struct cache *c, struct slu_err *err)
{
	return slu_fail(err, SLU_EINVAL,
			"%s is a log of its own; expected an empty folder, or a folder that this store "
			"filled before",
			c->conf.path);
}

/* Makes the file. It is synced, so that the folder never looks like a log of its own. */
static int
write_new(struct cache *c, struct slu_err *err)
{
	const struct disk_ops *const ops = c->conf.disk->ops;
	char head[HEAD];
	int rc;

	c->file = ops->create(c->conf.disk, c->conf.folder, name);
	if (c->file < 0)
		return disk_fail(c->file, "create", name, err);
	encode_head(c, head);
	rc = ops->write(c->conf.disk, c->file, head, sizeof head, 0);
	if (!rc)
		rc = ops->sync(c->conf.disk, c->file);
	if (!rc)
		rc = ops->sync_folder(c->conf.disk, c->conf.folder);
	return rc ? disk_fail(rc, "create", name, err) : 0;
}

int
cache_claim(const struct cache_conf *conf, struct slu_err *err)
{
	struct cache c = { .conf = *conf, .file = -1, .open_file = -1 };
	const int rc = write_new(&c, err);

	cache_close(&c);
	return rc;
}

static int
create(struct cache *c, struct slu_err *err)
{
	struct folder f = { 0 };
	bool plain;
	int rc;

	rc = folder_read(&f, c->conf.disk, c->conf.folder, err);
	plain = f.n > 0;
	folder_release(&f);
	if (rc)
		return rc;
	return plain ? refuse_plain(c, err) : write_new(c, err);
}

static void
uuid_text(const char *uuid, char out[static 2 * CACHE_UUID + 1])
{
	for (unsigned i = 0; i < CACHE_UUID; i++)
		snprintf(out + 2 * (size_t)i, 3, "%02x", (unsigned char)uuid[i]);
}

static int
refuse_other(const struct cache *c, const char head[static HEAD], struct slu_err *err)
{
	char uuid[2 * CACHE_UUID + 1];

	uuid_text(head + AT_UUID, uuid);
	return slu_fail(err, SLU_EINVAL,
			"%s belongs to shard %.*s of store %s; expected the folder of this shard and "
			"store, or an empty folder",
			c->conf.path, LINE_SHARD_MAX, head + AT_SHARD, uuid);
}

static bool
is_head(const char head[static HEAD])
{
	return memcmp(head, magic, sizeof magic) == 0 &&
	       crc32c(0, head + AT_FORMAT, HEAD - AT_FORMAT) == le32_get(head + AT_SUM);
}

/* A head that is damaged names no store. The folder is a cache, so it may be filled again. */
static int
check_head(struct cache *c, struct slu_err *err)
{
	char head[HEAD] = { 0 }, ours[HEAD];
	const int64_t got = c->conf.disk->ops->read(c->conf.disk, c->file, head, sizeof head, 0);
	int rc;

	if (got < 0)
		return disk_fail(got, "read", name, err);
	encode_head(c, ours);
	if (memcmp(head, ours, HEAD) == 0)
		return 0;
	if (is_head(head))
		return refuse_other(c, head, err);
	log_warn(c->conf.log, "mirror file damaged", F_STR("folder", c->conf.path));
	rc = c->conf.disk->ops->write(c->conf.disk, c->file, ours, HEAD, 0);
	return rc ? disk_fail(rc, "write", name, err) : cache_distrust(c, err);
}

bool
cache_is_one(struct disk *disk, int folder)
{
	const int file = disk->ops->open(disk, folder, name);

	if (file >= 0)
		disk->ops->close(disk, file);
	return file >= 0;
}

/* ---- What is known? ---- */

static int
add_segment(struct cache *c, uint32_t number, uint64_t first)
{
	if (c->n == c->max) {
		const uint32_t max = c->max ? 2 * c->max : 16;
		struct cache_segment *const p = mem_realloc(c->segments, max * sizeof *p);

		if (!p)
			return SLU_ENOMEM;
		c->segments = p;
		c->max = max;
	}
	c->segments[c->n++] = (struct cache_segment){ number, first };
	return 0;
}

int
cache_begin_segment(struct cache *c, uint32_t number, uint64_t first)
{
	while (c->n && c->segments[c->n - 1].number >= number)
		c->n--;
	return add_segment(c, number, first);
}

static bool
is_sound(struct slice text)
{
	return text.n >= FIXED &&
	       text.n >= FIXED + (uint64_t)le32_get(text.p + AT_ROWS) * ROW &&
	       crc32c(0, text.p + 4, FIXED + (size_t)le32_get(text.p + AT_ROWS) * ROW - 4) ==
		       le32_get(text.p);
}

static bool
is_of_this_boot(const struct cache *c, struct slice text)
{
	char boot[CACHE_BOOT] = { 0 };

	snprintf(boot, sizeof boot, "%s", c->conf.boot);
	return memcmp(text.p + AT_BOOT, boot, CACHE_BOOT) == 0;
}

static int
decode(struct cache *c, struct slice text)
{
	const uint32_t n = le32_get(text.p + AT_ROWS);

	c->seen = (struct line_known){
		.number = le64_get(text.p + AT_GROUP),
		.mark = { le64_get(text.p + AT_PUT), le32_get(text.p + AT_MARK) },
	};
	if (!is_of_this_boot(c, text))
		return 0;
	c->known = c->seen;
	c->end_segment = le32_get(text.p + AT_END_SEGMENT);
	c->end_offset = le32_get(text.p + AT_END_OFFSET);
	for (uint32_t i = 0; i < n; i++) {
		const char *const row = text.p + FIXED + (size_t)i * ROW;

		if (add_segment(c, le32_get(row), le64_get(row + 4)))
			return SLU_ENOMEM;
	}
	return 0;
}

static int
load(struct cache *c, struct slu_err *err)
{
	const int64_t size = c->conf.disk->ops->size(c->conf.disk, c->file);
	char *p;
	int64_t got;
	int rc = 0;

	if (size < 0)
		return disk_fail(size, "size of", name, err);
	if (size < STATE + FIXED)
		return 0;
	p = mem_alloc((size_t)size - STATE);
	if (!p)
		return slu_fail(err, SLU_ENOMEM, "read %s: out of memory", name);
	got = c->conf.disk->ops->read(c->conf.disk, c->file, p, (size_t)size - STATE, STATE);
	if (got < 0)
		rc = disk_fail(got, "read", name, err);
	else if (is_sound((struct slice){ p, (size_t)got }) &&
		 decode(c, (struct slice){ p, (size_t)got }))
		rc = slu_fail(err, SLU_ENOMEM, "read %s: out of memory", name);
	mem_free(p);
	return rc;
}

/* Reads the file as on the machine that wrote it. */
static int
peek(struct cache *c, char head[static HEAD], struct slu_err *err)
{
	const struct disk_ops *const ops = c->conf.disk->ops;
	char boot[CACHE_BOOT] = "";
	int64_t got = ops->read(c->conf.disk, c->file, head, HEAD, 0);
	int rc;

	if (got >= 0)
		got = ops->read(c->conf.disk, c->file, boot, sizeof boot - 1, STATE + AT_BOOT);
	if (got < 0)
		return disk_fail(got, "read", name, err);
	if (!is_head(head))
		return slu_fail(err, SLU_ECORRUPT, "the file %s is damaged", name);
	c->conf.boot = boot;
	rc = load(c, err);
	c->conf.boot = NULL;
	return rc;
}

int
cache_peek(struct disk *disk, int folder, struct cache_facts *out, struct slu_err *err)
{
	struct cache c = { .conf = { .disk = disk, .folder = folder }, .open_file = -1 };
	char head[HEAD] = { 0 };
	int rc;

	c.file = disk->ops->open(disk, folder, name);
	if (c.file == -ENOENT)
		return slu_fail(err, SLU_ENOTFOUND, "no file %s", name);
	if (c.file < 0)
		return disk_fail(c.file, "open", name, err);
	rc = peek(&c, head, err);
	*out = (struct cache_facts){ .seen = c.seen, .end_segment = c.end_segment, .end_offset = c.end_offset };
	memcpy(out->uuid, head + AT_UUID, CACHE_UUID);
	memcpy(out->shard, head + AT_SHARD, LINE_SHARD_MAX);
	cache_close(&c);
	return rc;
}

static bool
has(const struct folder *f, uint32_t number)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (f->at[i].kind == FOLDER_SEGMENT && f->at[i].number == number)
			return true;
	return false;
}

/* If a file is missing, nothing is known. */
static int
check_files(struct cache *c, struct slu_err *err)
{
	struct folder f = { 0 };
	bool all = true;
	int rc;

	rc = folder_read(&f, c->conf.disk, c->conf.folder, err);
	for (uint32_t i = 0; i < c->n && !rc; i++)
		all = all && has(&f, c->segments[i].number);
	folder_release(&f);
	return rc || all ? rc : cache_distrust(c, err);
}

int
cache_open(struct cache *c, const struct cache_conf *conf, struct slu_err *err)
{
	int rc;

	*c = (struct cache){ .conf = *conf, .open_file = -1 };
	buf_init(&c->text, SIZE_MAX / 2);
	c->file = conf->disk->ops->open(conf->disk, conf->folder, name);
	if (c->file == -ENOENT)
		return create(c, err);
	if (c->file < 0)
		return disk_fail(c->file, "open", name, err);
	rc = check_head(c, err);
	if (!rc)
		rc = load(c, err);
	return rc ? rc : check_files(c, err);
}

void
cache_close(struct cache *c)
{
	if (!c->conf.disk)
		return;
	cache_close_segment(c);
	if (c->file >= 0)
		c->conf.disk->ops->close(c->conf.disk, c->file);
	mem_free(c->segments);
	buf_release(&c->text);
	*c = (struct cache){ 0 };
}

static bool
encode(struct cache *c)
{
	char *p;

	buf_clear(&c->text);
	p = buf_add(&c->text, FIXED + (size_t)c->n * ROW);
	if (!p)
		return false;
	memset(p, 0, FIXED);
	le32_put(p + AT_ROWS, c->n);
	le64_put(p + AT_GROUP, c->seen.number);
	le64_put(p + AT_PUT, c->seen.mark.put);
	le32_put(p + AT_MARK, c->seen.mark.sum);
	le32_put(p + AT_END_SEGMENT, c->end_segment);
	le32_put(p + AT_END_OFFSET, c->end_offset);
	if (c->known.number)
		snprintf(p + AT_BOOT, CACHE_BOOT, "%s", c->conf.boot);
	for (uint32_t i = 0; i < c->n; i++) {
		le32_put(p + FIXED + (size_t)i * ROW, c->segments[i].number);
		le64_put(p + FIXED + (size_t)i * ROW + 4, c->segments[i].first);
	}
	le32_put(p, crc32c(0, p + 4, c->text.n - 4));
	return true;
}

static int
write_state(struct cache *c, struct slu_err *err)
{
	int rc;

	if (!encode(c))
		return slu_fail(err, SLU_ENOMEM, "write %s: out of memory", name);
	rc = c->conf.disk->ops->write(c->conf.disk, c->file, c->text.p, c->text.n, STATE);
	return rc ? disk_fail(rc, "write", name, err) : 0;
}

int
cache_save(struct cache *c, const struct line_known *known, struct slu_err *err)
{
	c->known = c->seen = *known;
	return write_state(c, err);
}

int
cache_distrust(struct cache *c, struct slu_err *err)
{
	c->known = (struct line_known){ 0 };
	c->n = c->end_segment = c->end_offset = 0;
	return write_state(c, err);
}

/* ---- While the log runs ---- */

int
cache_wrote(struct cache *c, uint64_t group, uint32_t segment, uint32_t offset, size_t n)
{
	c->end_segment = segment;
	c->end_offset = offset + (uint32_t)n;
	return offset ? 0 : cache_begin_segment(c, segment, group);
}

void
cache_recycled(struct cache *c, uint32_t segment)
{
	uint32_t gone = 0;

	while (gone < c->n && c->segments[gone].number <= segment)
		gone++;
	c->n -= gone;
	memmove(c->segments, c->segments + gone, c->n * sizeof *c->segments);
}

uint64_t
cache_begin(const struct cache *c)
{
	return c->n ? c->segments[0].first : 0;
}
