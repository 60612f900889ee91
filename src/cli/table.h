/*
 * table.h - rows of text in columns that line up.
 *
 *         static const char *const heads[] = { "QUEUE", "READY" };
 *
 *         table_init(&t, heads, 2, 1 << 1);            the second is to the right
 *         table_cell(&t, "%s", name);
 *         table_cell(&t, "%u", ready);
 *         table_print(&t, stdout, session_colours(stdout));
 *         table_release(&t);
 *
 * Control characters are escaped (escape.h), so that no payload can play with a terminal.
 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "base/bytes.h"

#include <stdio.h>

enum {
	TABLE_COLUMNS_MAX = 16
};

struct table {
	unsigned n;      /* columns */
	uint32_t right;  /* bit a column, as in the next */
	uint32_t hidden; /* not printed: neither the first nor the last */
	unsigned cells;  /* so far; the heads are the first n */
	struct buf text; /* of all cells, each with its end */
	unsigned width[TABLE_COLUMNS_MAX];
};

void table_init(struct table *t, const char *const *heads, unsigned n, uint32_t right);
void table_release(struct table *t);

/* The next cell of the row, or the first of the next. */
void table_cell(struct table *t, const char *fmt, ...) SLU_PRINTF(2, 3);
void table_text(struct table *t, struct slice text);

/* Whole rows; with colours the heads are bold. SLU_ENOMEM: memory ran out before. */
int table_print(const struct table *t, FILE *out, bool colours);

#endif
