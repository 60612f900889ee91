/*
 * before.h - the group before a group, for a store that checks it inside a put: LINE-5 of line/line.h.
 *
 *      3/group/00000000000000000007     its object names the mark of group 6
 *      3/group/00000000000000000006     has that mark, or is the last group of a span
 *
 * line/object.h has the bytes; a mark is `put` and `sum` of a group. Pure: no memory of its own, no I/O.
 */
#ifndef STORE_POSTGRES_BEFORE_H
#define STORE_POSTGRES_BEFORE_H

#include "store/store.h"

enum {
	BEFORE_MARK = 12 /* bytes: put, then sum */
};

/* The group before. */
struct group_before {
	uint64_t number; /* 1 or more */
	char name[STORE_NAME_MAX];
	char mark[BEFORE_MARK];
	char spans[STORE_NAME_MAX];     /* the names of spans of the shard are behind this text */
	char last_span[STORE_NAME_MAX]; /* the name of a span that begins with the group before */
};

/* Returns whether the object is a group that continues another one. The first group of a shard does not. */
bool group_before_find(const char *name, struct slice object, struct group_before *out);

#endif
