/*
 * nearest.h - which of the right names somebody meant.
 *
 *         struct nearest best = nearest_to(written);
 *
 *         for (...)
 *                 nearest_try(&best, name[i]);
 *         if (best.name)
 *                 ... "did you mean %s?"
 *
 * Counted are letters that are missing, too many, wrong, or in each other's place. A
 * name is near when no more than half of it is wrong, and three letters at most; or
 * when its first letters, four or more, were written.
 */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

enum {
	NEAREST_MAX = 63 /* longer names are near to nothing */
};

struct nearest {
	const char *written; /* borrowed */
	const char *name;    /* NULL: none is near; else as it was tried */
	unsigned distance;
};

struct nearest nearest_to(const char *written);
void nearest_try(struct nearest *best, const char *name); /* the first of equals stays */

/* NEAREST_MAX + 1 when either is longer than that. */
unsigned edit_distance(const char *a, const char *b);

#endif
