/*
 * report.h - prints the outcome of a run, for people and as JSON.
 */
#ifndef TORTURE_REPORT_H
#define TORTURE_REPORT_H

#include "torture/torture.h"

#include <stdio.h>

/* again: the command that repeats the run. */
enum {
	REPORT_AGAIN = 640
};

void report_text(struct torture *t, const char *again, FILE *out);
int report_json(struct torture *t, const char *again, FILE *out); /* SLU_ENOMEM */

/* Writes the events of the last round, an object a line. */
int report_history(const struct torture *t, const char *path, struct slu_err *err);

#endif
