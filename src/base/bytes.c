#include "base/bytes.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>

enum {
	FIRST_SIZE = 256
};

void
buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){ .max = max };
}

void
buf_release(struct buf *b)
{
	mem_free(b->p);
	buf_init(b, b->max);
}

void
buf_clear(struct buf *b)
{
	b->n = 0;
	b->failed = false;
}

/* Room for n more bytes and a terminator, which does not count against max. */
static bool
make_room(struct buf *b, size_t n)
{
	size_t size = b->size ? b->size : FIRST_SIZE;
	char *p;

	if (b->failed || n > b->max - b->n) {
		b->failed = true;
		return false;
	}
	if (b->n + n < b->size)
		return true;
	while (size <= b->n + n)
		size *= 2;
	p = mem_realloc(b->p, size);
	if (!p) {
		b->failed = true;
		return false;
	}
	b->p = p;
	b->size = size;
	return true;
}

void
buf_put(struct buf *b, const void *p, size_t n)
{
	if (n == 0 || !make_room(b, n))
		return;
	memcpy(b->p + b->n, p, n);
	b->n += n;
}

void
buf_puts(struct buf *b, const char *s)
{
	buf_put(b, s, strlen(s));
}

void
buf_putc(struct buf *b, char c)
{
	buf_put(b, &c, 1);
}

void
buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !make_room(b, (size_t)n)) {
		b->failed = true;
		return;
	}
	va_start(ap, fmt);
	(void)vsnprintf(b->p + b->n, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->n += (size_t)n;
}

const char *
buf_str(struct buf *b)
{
	if (!b->p)
		return "";
	b->p[b->n] = 0; /* make_room kept a byte for it */
	return b->p;
}
