#include "base/bytes.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>

enum {
	FIRST_SIZE = 64
};

void
buf_init(struct buf *b, size_t max)
{
	if (max == SIZE_MAX)
		max--; /* the terminator needs a byte too */
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

/* At least twice the old size, at most max and a terminator. */
static size_t
next_size(const struct buf *b, size_t need)
{
	size_t size = b->size ? b->size : FIRST_SIZE;

	while (size < need && size <= b->max / 2)
		size *= 2;
	return size < need || size > b->max ? b->max + 1 : size;
}

bool
buf_grow(struct buf *b, size_t n)
{
	size_t size;
	char *p;

	if (b->failed || n > b->max - b->n) {
		b->failed = true;
		return false;
	}
	if (b->n + n < b->size)
		return true;
	size = next_size(b, b->n + n + 1);
	p = mem_realloc(b->p, size);
	if (!p) {
		b->failed = true;
		return false;
	}
	b->p = p;
	b->size = size;
	return true;
}

bool
buf_reserve(struct buf *b, size_t n)
{
	char *p;

	if (n < b->size)
		return true;
	p = n > b->max ? NULL : mem_realloc(b->p, n + 1);
	if (!p)
		return false;
	b->p = p;
	b->size = n + 1;
	return true;
}

void
buf_puts(struct buf *b, const char *s)
{
	buf_put(b, s, strlen(s));
}

/* Most texts fit into the allocated memory; the others are formatted twice. */
void
buf_printf(struct buf *b, const char *fmt, ...)
{
	const size_t room = b->size - b->n;
	va_list ap, again;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(b->p ? b->p + b->n : NULL, room, fmt, ap);
	if (n < 0) {
		b->failed = true;
	} else if (buf_room(b, (size_t)n)) {
		if ((size_t)n >= room)
			(void)vsnprintf(b->p + b->n, (size_t)n + 1, fmt, again); /* as before */
		b->n += (size_t)n;
	}
	va_end(again);
	va_end(ap);
}

const char *
buf_str(struct buf *b)
{
	if (!b->p)
		return "";
	b->p[b->n] = '\0';
	return b->p;
}
