/*
 * verify.h - checks the chain of a line without owning the shard (LINE-5).
 *
 *         line_verify_init(&v, newest.begin, on_problem, arg);
 *         for each group, by rising numbers: line_verify_group(&v, number, object);
 *
 * The caller reads groups from spans or from objects of their own. A number that is left out is a
 * hole: a problem, unless the log begins behind it (LINE-7). After a problem the check goes on
 * behind it, so one call finds all of them.
 *
 * Pure: no memory of its own, no I/O.
 */
#ifndef LINE_VERIFY_H
#define LINE_VERIFY_H

#include "line/object.h"

typedef void line_problem_fn(void *arg, const char *text);

struct line_verify {
	uint64_t begin; /* where the log begins: the newest group carries it */
	line_problem_fn *problem;
	void *arg;

	/* What was found so far. */
	uint64_t first;    /* the first group; 0 = none */
	uint64_t last;     /* the last group; 0 = none */
	uint64_t groups;   /* how many */
	uint64_t epoch;    /* of the last readable group */
	int64_t time;      /* of the last readable group */
	uint32_t problems; /* calls of `problem` */

	/* Inner: of the last group, if it was readable. */
	struct line_mark mark;
	bool readable;
};

void line_verify_init(struct line_verify *v, uint64_t begin, line_problem_fn *problem, void *arg);

/* The next group. `number` comes from its place: the name of the object, or the place in
 * a span. Ignores a number that is not behind the last one. */
void line_verify_group(struct line_verify *v, uint64_t number, struct slice object);

/* Reports a problem that the caller found. */
void line_verify_problem(struct line_verify *v, const char *fmt, ...) SLU_PRINTF(2, 3);

#endif
