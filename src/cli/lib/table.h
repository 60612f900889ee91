/*
 * table.h - rows of text in columns that line up.
 *
 *         static const char *const heads[] = { "QUEUE", "READY" };
 *
 *         table_init(&t, heads, 2, 1 << 1);            aligns the second column to the right
 *         table_cell(&t, "%s", name);
 *         table_cell(&t, "%u", ready);
 *         table_print(&t, stdout, session_colours(stdout));
 *         table_release(&t);
 *
 * Control characters are escaped (escape.h), so that a payload cannot control the terminal.
 */
#ifndef CLI_LIB_TABLE_H
#define CLI_LIB_TABLE_H

#include "base/bytes.h"

#include <stdio.h>

enum {
	TABLE_COLUMNS_MAX = 16
};

struct text_table {
	unsigned n;      /* how many columns */
	uint32_t right;  /* columns aligned to the right, a bit each */
	uint32_t hidden; /* columns that are not printed, a bit each; never the first or the last */
	unsigned cells;  /* how many cells were added; the heads are the first n */
	struct buf text; /* the texts of all cells, each with a zero byte */
	unsigned width[TABLE_COLUMNS_MAX];
};

void table_init(struct text_table *t, const char *const *heads, unsigned n, uint32_t right);
void table_release(struct text_table *t);

/* Add the next cell of the row, or the first cell of the next row. */
void table_cell(struct text_table *t, const char *fmt, ...) SLU_PRINTF(2, 3);
void table_text(struct text_table *t, struct slice text);

/* Prints the complete rows; with colours the heads are bold. Returns SLU_ENOMEM if memory ran out. */
int table_print(const struct text_table *t, FILE *out, bool colours);

#endif
