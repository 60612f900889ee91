/*
 * kind.h - the kind of a message, and the kinds that a claim takes.
 *
 *  KIND-1  A message has a share, a kind, or neither. Records and ops have one field for both, `share`: a kind begins with
 *          KIND_MARK, which no share has.
 *  KIND-2  A claim that names kinds gets messages of these kinds alone, in the order in which a claim without kinds would
 *          get them. A claim without kinds gets every message.
 */
#ifndef CORE_QUEUE_KIND_H
#define CORE_QUEUE_KIND_H

#include "base/bytes.h"

#include <string.h>

enum {
	KIND_MARK = 1,
	KIND_MAX = 100,       /* bytes of the name of a kind */
	KINDS_OF_QUEUE = 256, /* kinds that a queue has messages of */
	KINDS_OF_CLAIM = 64,
	KINDS_TEXT = KINDS_OF_CLAIM * (1 + KIND_MAX) /* bytes of the kinds of a claim, each with its mark */
};

/* line: the share or kind of a message. */
static inline bool
kind_is(struct slice line)
{
	return line.n && line.p[0] == KIND_MARK;
}

/* The name of the kind, or of the share, of a message; n 0: it has none. */
static inline struct slice
kind_of_line(struct slice line)
{
	const struct slice none = { 0 };

	return kind_is(line) ? (struct slice){ line.p + 1, line.n - 1 } : none;
}

static inline struct slice
share_of_line(struct slice line)
{
	const struct slice none = { 0 };

	return kind_is(line) ? none : line;
}

/* Takes the first of the kinds of a claim, with its mark; false: none is left. What does not begin with a mark is skipped. */
static inline bool
kinds_next(struct slice *kinds, struct slice *kind)
{
	const char *const first = kinds->n ? memchr(kinds->p, KIND_MARK, kinds->n) : NULL;
	const char *const end = kinds->p + kinds->n;
	const char *next;

	if (!first)
		return false;
	next = memchr(first + 1, KIND_MARK, (size_t)(end - first) - 1);
	*kind = (struct slice){ first, (size_t)((next ? next : end) - first) };
	*kinds = (struct slice){ kind->p + kind->n, (size_t)(end - kind->p) - kind->n };
	return true;
}

/* Whether a claim of these kinds takes a message of this share or kind. */
static inline bool
kinds_take(struct slice kinds, struct slice line)
{
	struct slice kind;

	if (!kinds.n)
		return true;
	while (kinds_next(&kinds, &kind))
		if (slice_eq(kind, line))
			return true;
	return false;
}

#endif
