#include "cli/lib/table.h"

#include "cli/lib/escape.h"

#include <sluice/err.h>

#include <assert.h>
#include <stdarg.h>

enum {
	CELL_MAX = 1024
};

void
table_init(struct text_table *t, const char *const *heads, unsigned n, uint32_t right)
{
	assert(n <= TABLE_COLUMNS_MAX);
	*t = (struct text_table){ .n = n, .right = right };
	buf_init(&t->text, SIZE_MAX);
	for (unsigned i = 0; i < n; i++)
		table_text(t, slice_of(heads[i]));
}

void
table_release(struct text_table *t)
{
	buf_release(&t->text);
}

/* Counts characters, not bytes: a continuation byte has no width. */
static unsigned
width_of(const char *s)
{
	unsigned n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

void
table_text(struct text_table *t, struct slice text)
{
	unsigned *width = &t->width[t->cells % t->n];
	char cell[CELL_MAX + ESCAPE_MAX];
	size_t n = 0;
	unsigned w;

	while (text.n > 0 && n < CELL_MAX - 1)
		n += escape_next(&text, false, cell + n);
	cell[n] = '\0';
	buf_put(&t->text, cell, n + 1);
	w = width_of(cell);
	*width = w > *width ? w : *width;
	t->cells++;
}

void
table_cell(struct text_table *t, const char *fmt, ...)
{
	char cell[CELL_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(cell, sizeof cell, fmt, ap); /* cut is fine */
	va_end(ap);
	table_text(t, slice_of(cell));
}

static bool
is_last(const struct text_table *t, unsigned column)
{
	while (++column < t->n)
		if (!(t->hidden >> column & 1))
			return false;
	return true;
}

/* Does not pad the last column unless it is aligned to the right. */
static void
print_cell(const struct text_table *t, unsigned column, const char *cell, FILE *out)
{
	const int pad = (int)(t->width[column] - width_of(cell));
	const bool right = t->right >> column & 1;

	if (t->hidden >> column & 1)
		return;
	if (column > 0)
		fputs("  ", out);
	if (right)
		fprintf(out, "%*s", pad, "");
	fputs(cell, out);
	if (!right && !is_last(t, column))
		fprintf(out, "%*s", pad, "");
}

int
table_print(const struct text_table *t, FILE *out, bool colours)
{
	const char *cell = t->text.p;

	if (t->text.failed)
		return SLU_ENOMEM;
	assert(t->cells % t->n == 0);
	for (unsigned i = 0; i < t->cells; i++) {
		if (i == 0 && colours)
			fputs("\033[1m", out);
		print_cell(t, i % t->n, cell, out);
		if (i + 1 == t->n && colours)
			fputs("\033[0m", out);
		if (i % t->n == t->n - 1)
			fputc('\n', out);
		cell += strlen(cell) + 1;
	}
	return 0;
}
