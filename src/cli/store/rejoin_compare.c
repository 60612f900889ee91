/*
 * rejoin_compare.c - where a folder and the line of its shard part.
 *
 * A group says at which places of the segments its bytes are (mirror/body.h). The first group whose bytes
 * are not in the folder is the first one of another owner.
 */
#include "cli/store/rejoin.h"

#include "mirror/body.h"
#include "wal/segment.h"

#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

enum {
	TRIES = 5 /* of a line that changes */
};

struct comparison {
	struct store_command *c;
	const char *folder, *shard;
	struct rejoin_split *out;
	uint64_t next; /* the next group */
	bool parted;
	struct buf bytes; /* of the folder */
	struct buf span;
};

/* ---- The folder ---- */

/* Reads the bytes of the folder at the place of a piece. Sets *n to 0 if the folder has no such segment. */
static int
read_place(struct comparison *k, const struct body_piece *piece, size_t *n, struct slu_err *err)
{
	char path[REJOIN_PATH], name[SEGMENT_NAME];
	ssize_t got = 0;
	char *p;
	int fd;

	segment_name(piece->segment, name);
	(void)snprintf(path, sizeof path, "%s/%s", k->folder, name);
	buf_clear(&k->bytes);
	p = buf_add(&k->bytes, piece->bytes.n);
	if (!p)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = pread(fd, p, piece->bytes.n, piece->offset);
		close(fd);
	}
	*n = got > 0 ? (size_t)got : 0;
	return 0;
}

static int
compare_piece(struct comparison *k, uint64_t group, const struct body_piece *piece, struct slu_err *err)
{
	struct rejoin_split *const out = k->out;
	size_t n;
	const int rc = read_place(k, piece, &n, err);

	if (rc || (n == 0 && !out->end.segment)) /* the folder begins later */
		return rc;
	if (n == piece->bytes.n && memcmp(k->bytes.p, piece->bytes.p, n) == 0) {
		out->end = (struct logengine_spot){ piece->segment, piece->offset + (uint32_t)n };
		return 0;
	}
	if (!out->end.segment)
		return 0; /* the folder has an older segment of this number, or none */
	k->parted = true;
	out->group = group;
	out->at = (struct logengine_spot){ piece->segment, piece->offset };
	return 0;
}

/* ---- The line ---- */

static int
compare_group(struct comparison *k, struct slice object, struct slu_err *err)
{
	struct body_reader reader = { 0 };
	struct body_piece piece;
	struct line_group g;
	int rc = line_group_decode(&g, object, err);

	if (rc)
		return rc;
	k->next = g.number + 1;
	k->out->pinned = g.pinned;
	memcpy(k->out->life, g.life, LINE_LIFE);
	if (g.body.n)
		rc = body_open(&reader, g.body, err);
	while (!rc && !k->parted && body_next(&reader, &piece))
		rc = compare_piece(k, g.number, &piece, err);
	return rc;
}

static int
compare_span(struct comparison *k, struct slu_err *err)
{
	struct line_span s;
	struct slice group;
	int rc;

	buf_clear(&k->span);
	buf_put(&k->span, k->c->object.p, k->c->object.n);
	if (k->span.failed)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	rc = line_span_decode(&s, buf_slice(&k->span), err);
	while (!rc && !k->parted && line_span_next(&s, &group))
		rc = compare_group(k, group, err);
	return rc;
}

static int
compare_objects(struct comparison *k, enum line_kind kind, int (*fn)(struct comparison *k, struct slu_err *err),
		struct slu_err *err)
{
	char prefix[LINE_NAME_MAX];
	struct store_cursor names = { .store = k->c->store, .prefix = prefix };
	const char *name = NULL;
	int rc = 0;

	line_prefix(prefix, k->shard, kind);
	while (!rc && !k->parted && !(rc = store_cursor_next(&names, &name, err)) && name) {
		if (line_number(name, k->shard, kind) < k->next)
			continue; /* a span has it */
		rc = store_read(k->c, name, err);
		if (!rc)
			rc = fn(k, err);
	}
	store_cursor_release(&names);
	return rc;
}

static int
compare_loose(struct comparison *k, struct slu_err *err)
{
	return compare_group(k, buf_slice(&k->c->object), err);
}

static int
compare_line(struct comparison *k, struct slu_err *err)
{
	int rc;

	*k->out = (struct rejoin_split){ 0 };
	k->next = 0;
	k->parted = false;
	rc = compare_objects(k, LINE_SPAN, compare_span, err);
	return rc ? rc : compare_objects(k, LINE_GROUP, compare_loose, err);
}

int
rejoin_compare(struct store_command *c, const char *folder, const char *shard, struct rejoin_split *out,
	       struct slu_err *err)
{
	struct comparison k = { .c = c, .folder = folder, .shard = shard, .out = out };
	int rc = SLU_ENOTFOUND;

	buf_init(&k.bytes, STORE_OBJECT_MAX);
	buf_init(&k.span, STORE_OBJECT_MAX);
	for (unsigned i = 0; rc == SLU_ENOTFOUND && i < TRIES; i++) /* a listed object is gone: list again */
		rc = compare_line(&k, err);
	if (rc == SLU_ENOTFOUND)
		rc = slu_fail(err, SLU_EBUSY, "shard %s changes all the time; try again", shard);
	if (!rc && !out->end.segment)
		rc = slu_fail(err, SLU_ECONFLICT,
			      "%.200s and shard %s have no place in common: the log in the store begins behind the "
			      "folder",
			      folder, shard);
	if (!rc && !k.parted)
		out->at = out->end;
	buf_release(&k.bytes);
	buf_release(&k.span);
	return rc;
}
