#include "line/verify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void
line_verify_init(struct line_verify *v, uint64_t begin, line_problem_fn *problem, void *arg)
{
	*v = (struct line_verify){ .begin = begin, .problem = problem, .arg = arg };
}

void
line_verify_problem(struct line_verify *v, const char *fmt, ...)
{
	char text[sizeof((struct slu_err *)0)->text];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	v->problems++;
	v->problem(v->arg, text);
}

/* Reports the numbers between the last group and this one that the log needs. */
static void
check_hole(struct line_verify *v, uint64_t number)
{
	const uint64_t first = v->last + 1 > v->begin ? v->last + 1 : v->begin;

	if (v->last + 1 < number)
		v->readable = false;
	if (first + 1 == number)
		line_verify_problem(v, "group %" PRIu64 " is missing", first);
	else if (first < number)
		line_verify_problem(v, "groups %" PRIu64 " to %" PRIu64 " are missing", first,
				    number - 1);
}

/* How the group continues the one before. */
static void
check_link(struct line_verify *v, const struct line_group *g)
{
	const uint64_t epoch = v->epoch + g->opening;

	if (!v->readable)
		return;
	if (!line_mark_eq(g->before, v->mark))
		line_verify_problem(v, "group %" PRIu64 " does not continue group %" PRIu64,
				    g->number, v->last);
	else if (g->epoch != epoch)
		line_verify_problem(v, "group %" PRIu64 " has epoch %" PRIu64 "; expected %" PRIu64,
				    g->number, g->epoch, epoch);
}

void
line_verify_group(struct line_verify *v, uint64_t number, struct slice object)
{
	struct line_group g;
	struct slu_err err = { 0 };

	if (number <= v->last)
		return;
	check_hole(v, number);
	if (line_group_decode(&g, object, &err)) {
		line_verify_problem(v, "group %" PRIu64 ": %s", number, err.text);
	} else if (g.number != number) {
		line_verify_problem(v, "group %" PRIu64 " has the number %" PRIu64, number,
				    g.number);
		err.code = SLU_ECORRUPT;
	} else {
		check_link(v, &g);
		v->mark = g.mark;
		v->epoch = g.epoch;
		v->time = g.time;
	}
	v->readable = !err.code;
	v->first = v->first ? v->first : number;
	v->last = number;
	v->groups++;
}
