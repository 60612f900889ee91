/*
 * object.h - the objects of a line as bytes: groups and spans.
 *
 * A store holds a line as named byte strings:
 *
 *      <shard>/group/00000000000000000007     one group
 *      <shard>/span/00000000000000000001      the groups first..last, byte for byte
 *
 * A group, little-endian:
 *      0   8  "sluicegr"
 *      8   4  sum: CRC-32C of the object from byte 12 to its end
 *      12  4  flags: 1 = an opening, it has no body; 2 = pinned; the other bits are zero
 *      16  8  number
 *      24  8  epoch: one more than before in each opening, else the same
 *      32 16  life of the node that put it; pinned: uuid of the front folder (LINE-17)
 *      48  8  put: a random number, drawn once for this group
 *      56  8  begin: number of the first group that the log still needs
 *      64  8  time: the latest time in the line
 *      72  8  put of the group before
 *      80  4  sum of the group before
 *      84  4  zero
 *      88  n  body
 *
 * A span, little-endian:
 *      0   8  "sluicesp"
 *      8   4  sum: CRC-32C from byte 12 to the end of the lengths
 *      12  4  number of groups, n
 *      16  8  number of the first group
 *      24 8n  the length of each group
 *      .. ..  the groups
 *
 * The sum and the put of a group are its mark. A group names the mark of the group
 * before, so the groups form a chain (LINE-5). Two groups with one mark are one group.
 *
 * Pure: no memory of its own, no I/O.
 */
#ifndef LINE_OBJECT_H
#define LINE_OBJECT_H

#include "base/bytes.h"

#include <sluice/err.h>

enum {
	LINE_LIFE = 16,
	LINE_DIGITS = 20,
	LINE_SHARD_MAX = 100,
	LINE_NAME_MAX = LINE_SHARD_MAX + 8 + LINE_DIGITS, /* with the NUL */
	LINE_GROUP_HEAD = 88,
	LINE_SPAN_HEAD = 24
};

struct line_mark {
	uint64_t put;
	uint32_t sum;
};

struct line_group {
	bool opening;
	bool pinned;     /* `life` is the uuid of a front folder: LINE-17 */
	uint64_t number; /* 1 or more */
	uint64_t epoch;  /* 1 or more */
	uint8_t life[LINE_LIFE];
	struct line_mark mark;
	struct line_mark before; /* zeros = this is group 1 */
	uint64_t begin;          /* 1 to number */
	int64_t time;
	struct slice body; /* borrowed */
};

/* What an object is named after. */
enum line_kind {
	LINE_GROUP,
	LINE_SPAN,
	LINE_KINDS
};

/* Writes the name of an object; `shard` has at most LINE_SHARD_MAX bytes. */
void line_name(char out[LINE_NAME_MAX], const char *shard, enum line_kind kind, uint64_t number);

/* Writes the prefix of all names of one kind. */
void line_prefix(char out[LINE_NAME_MAX], const char *shard, enum line_kind kind);

/* The number at the end of a name; 0 if the name is not of this shard and kind. */
uint64_t line_number(const char *name, const char *shard, enum line_kind kind);

static inline bool
line_mark_eq(struct line_mark a, struct line_mark b)
{
	return a.put == b.put && a.sum == b.sum;
}

/* Appends the object of a group to out, and sets g->mark.sum. Everything else in g is the
 * caller's. out->failed if there is no memory. */
void line_group_encode(struct line_group *g, struct buf *out);

/* Reads the object of a group; g->body points into it. Returns SLU_ECORRUPT. */
int line_group_decode(struct line_group *g, struct slice object, struct slu_err *err);

/* Reads the head of a group, from at least the first LINE_GROUP_HEAD bytes of its object. The body is
 * empty, and the sum is not checked. Returns SLU_ECORRUPT. */
int line_group_peek(struct line_group *g, struct slice object, struct slu_err *err);

/* The groups first .. first + n - 1 lie side by side in `groups`, with the lengths given.
 * Appends the object of their span to out. */
void line_span_encode(struct buf *out, uint64_t first, const uint64_t *lengths, uint32_t n,
		      struct slice groups);

struct line_span {
	uint64_t first;
	uint32_t n;
	struct slice lengths; /* inner */
	struct slice groups;  /* inner: those that were not taken yet */
	uint32_t taken;       /* inner */
};

/* Reads the head of a span, from at least LINE_SPAN_HEAD + 8n bytes of its object. No group can be
 * taken then. Returns SLU_ECORRUPT. */
int line_span_peek(struct line_span *s, struct slice object, struct slu_err *err);

/* Reads the head of a span from its whole object. Returns SLU_ECORRUPT. */
int line_span_decode(struct line_span *s, struct slice object, struct slu_err *err);

/* Sets *at to where the object of the group begins in the object of its span. The span holds the group. */
void line_span_place(const struct line_span *s, uint64_t number, uint64_t *at);

/* Takes the next group of the span: true with its object, or false behind the last. */
bool line_span_next(struct line_span *s, struct slice *object);

static inline uint64_t
line_span_last(const struct line_span *s)
{
	return s->first + s->n - 1;
}

#endif
