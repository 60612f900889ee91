/*
 * object.c - the objects of a line as bytes.
 */
#include "line/object.h"

#include "base/crc32c.h"
#include "base/le.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	SUMMED = 12, /* the sum covers the object from here on */
	OPENING = 1,
	PINNED = 2
};

static const char group_magic[8] = { 's', 'l', 'u', 'i', 'c', 'e', 'g', 'r' };
static const char span_magic[8] = { 's', 'l', 'u', 'i', 'c', 'e', 's', 'p' };
static const char *const kinds[LINE_KINDS] = { "group", "span" };

void
line_prefix(char out[LINE_NAME_MAX], const char *shard, enum line_kind kind)
{
	assert(strlen(shard) <= LINE_SHARD_MAX);
	snprintf(out, LINE_NAME_MAX, "%s/%s/", shard, kinds[kind]);
}

void
line_name(char out[LINE_NAME_MAX], const char *shard, enum line_kind kind, uint64_t number)
{
	assert(strlen(shard) <= LINE_SHARD_MAX);
	snprintf(out, LINE_NAME_MAX, "%s/%s/%0*" PRIu64, shard, kinds[kind], LINE_DIGITS, number);
}

uint64_t
line_number(const char *name, const char *shard, enum line_kind kind)
{
	char prefix[LINE_NAME_MAX];
	size_t n;

	line_prefix(prefix, shard, kind);
	n = strlen(prefix);
	if (strncmp(name, prefix, n) != 0 || strlen(name + n) != LINE_DIGITS ||
	    strspn(name + n, "0123456789") != LINE_DIGITS)
		return 0;
	return strtoull(name + n, NULL, 10);
}

void
line_group_encode(struct line_group *g, struct buf *out)
{
	char *const p = buf_add(out, LINE_GROUP_HEAD + g->body.n);

	if (!p)
		return;
	memcpy(p, group_magic, sizeof group_magic);
	le32_put(p + 12, (g->opening ? OPENING : 0u) | (g->pinned ? PINNED : 0u));
	le64_put(p + 16, g->number);
	le64_put(p + 24, g->epoch);
	memcpy(p + 32, g->life, LINE_LIFE);
	le64_put(p + 48, g->mark.put);
	le64_put(p + 56, g->begin);
	le64_put(p + 64, (uint64_t)g->time);
	le64_put(p + 72, g->before.put);
	le32_put(p + 80, g->before.sum);
	le32_put(p + 84, 0);
	if (g->body.n)
		memcpy(p + LINE_GROUP_HEAD, g->body.p, g->body.n);
	g->mark.sum = crc32c(0, p + SUMMED, LINE_GROUP_HEAD + g->body.n - SUMMED);
	le32_put(p + 8, g->mark.sum);
}

int
line_group_peek(struct line_group *g, struct slice object, struct slu_err *err)
{
	const char *const p = object.p;

	if (object.n < LINE_GROUP_HEAD || memcmp(p, group_magic, sizeof group_magic) != 0)
		return slu_fail(err, SLU_ECORRUPT, "not a group");
	*g = (struct line_group){
		.opening = le32_get(p + 12) & OPENING,
		.pinned = le32_get(p + 12) & PINNED,
		.number = le64_get(p + 16),
		.epoch = le64_get(p + 24),
		.mark = { le64_get(p + 48), le32_get(p + 8) },
		.before = { le64_get(p + 72), le32_get(p + 80) },
		.begin = le64_get(p + 56),
		.time = (int64_t)le64_get(p + 64),
	};
	memcpy(g->life, p + 32, LINE_LIFE);
	return 0;
}

int
line_group_decode(struct line_group *g, struct slice object, struct slu_err *err)
{
	const char *const p = object.p;
	const int rc = line_group_peek(g, object, err);

	if (rc)
		return rc;
	if (crc32c(0, p + SUMMED, object.n - SUMMED) != le32_get(p + 8))
		return slu_fail(err, SLU_ECORRUPT, "bad checksum");
	g->body = (struct slice){ p + LINE_GROUP_HEAD, object.n - LINE_GROUP_HEAD };
	if (le32_get(p + 12) & ~(uint32_t)(OPENING | PINNED))
		return slu_fail(err, SLU_ECORRUPT, "unknown flags: of a newer version, or damaged");
	if (g->number == 0 || g->epoch == 0 || g->begin == 0 || g->begin > g->number ||
	    (g->opening && g->body.n > 0))
		return slu_fail(err, SLU_ECORRUPT, "invalid head");
	return 0;
}

void
line_span_encode(struct buf *out, uint64_t first, const uint64_t *lengths, uint32_t n,
		 struct slice groups)
{
	const size_t head = LINE_SPAN_HEAD + 8 * (size_t)n;
	char *const p = buf_add(out, head + groups.n);

	if (!p)
		return;
	memcpy(p, span_magic, sizeof span_magic);
	le32_put(p + 12, n);
	le64_put(p + 16, first);
	for (uint32_t i = 0; i < n; i++)
		le64_put(p + LINE_SPAN_HEAD + 8 * (size_t)i, lengths[i]);
	le32_put(p + 8, crc32c(0, p + SUMMED, head - SUMMED));
	memcpy(p + head, groups.p, groups.n);
}

int
line_span_peek(struct line_span *s, struct slice object, struct slu_err *err)
{
	const char *const p = object.p;
	size_t head;

	if (object.n < LINE_SPAN_HEAD || memcmp(p, span_magic, sizeof span_magic) != 0)
		return slu_fail(err, SLU_ECORRUPT, "not a span");
	*s = (struct line_span){ .first = le64_get(p + 16), .n = le32_get(p + 12) };
	head = LINE_SPAN_HEAD + 8 * (size_t)s->n;
	if (s->first == 0 || s->n == 0 || head > object.n)
		return slu_fail(err, SLU_ECORRUPT, "invalid head");
	if (crc32c(0, p + SUMMED, head - SUMMED) != le32_get(p + 8))
		return slu_fail(err, SLU_ECORRUPT, "bad checksum");
	s->lengths = (struct slice){ p + LINE_SPAN_HEAD, head - LINE_SPAN_HEAD };
	s->groups = (struct slice){ p + head, object.n - head };
	return 0;
}

int
line_span_decode(struct line_span *s, struct slice object, struct slu_err *err)
{
	const int rc = line_span_peek(s, object, err);
	uint64_t sum = 0;

	if (rc)
		return rc;
	for (uint32_t i = 0; i < s->n; i++) {
		const uint64_t n = le64_get(s->lengths.p + 8 * (size_t)i);

		if (n > s->groups.n - sum)
			return slu_fail(err, SLU_ECORRUPT, "invalid length of group %u", i);
		sum += n;
	}
	if (sum != s->groups.n)
		return slu_fail(err, SLU_ECORRUPT, "%zu bytes, expected %" PRIu64, s->groups.n, sum);
	return 0;
}

void
line_span_place(const struct line_span *s, uint64_t number, uint64_t *at)
{
	*at = LINE_SPAN_HEAD + 8 * (uint64_t)s->n;
	for (uint64_t i = 0; i < number - s->first; i++)
		*at += le64_get(s->lengths.p + 8 * (size_t)i);
}

bool
line_span_next(struct line_span *s, struct slice *object)
{
	if (s->taken == s->n)
		return false;
	object->p = s->groups.p;
	object->n = le64_get(s->lengths.p + 8 * (size_t)s->taken++);
	s->groups.p += object->n;
	s->groups.n -= object->n;
	return true;
}
