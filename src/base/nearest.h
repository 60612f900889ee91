/*
 * nearest.h - the known name that is nearest to a mistyped one.
 *
 *         struct nearest best = nearest_to(written);
 *
 *         for (...)
 *                 nearest_try(&best, name[i]);
 *         if (best.name)
 *                 ... "did you mean %s?"
 *
 * The distance counts missing, extra, wrong and swapped letters. A name is near if at most
 * half of its letters and at most three are wrong, or if the written text is its beginning,
 * four letters or more.
 */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

enum {
	NEAREST_MAX = 63 /* longer names are near to no name */
};

struct nearest {
	const char *written; /* borrowed */
	const char *name;    /* the nearest name so far, borrowed; NULL: none is near */
	unsigned distance;   /* of name */
};

struct nearest nearest_to(const char *written);
void nearest_try(struct nearest *best, const char *name); /* of equals, the first stays */

/* Returns NEAREST_MAX + 1 if a or b is longer than NEAREST_MAX. */
unsigned edit_distance(const char *a, const char *b);

#endif
