/*
 * bytes.h - slices of bytes, and buffers that know their limit.
 *
 * A slice borrows: it points into memory that somebody else owns. A buffer owns,
 * grows by doubling up to `max` and then refuses, so that no input can make it
 * grow without bound. A buffer that refused or ran out of memory stays `failed`
 * and ignores all further puts: write a whole answer, then ask once.
 *
 *         struct buf b;
 *
 *         buf_init(&b, 64 * 1024);
 *         buf_puts(&b, "id=");
 *         buf_printf(&b, "%" PRIu64, id);
 *         if (b.failed)
 *                 return slu_fail(err, SLU_ETOOBIG, ...);
 */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <sluice/api.h>

#include <string.h>

struct slice {
	const char *p; /* not terminated; NULL only when n is 0 */
	size_t n;
};

#define SLICE(literal) ((struct slice){ (literal), sizeof(literal) - 1 })

static inline struct slice
slice_of(const char *s)
{
	return (struct slice){ s, strlen(s) };
}

static inline bool
slice_eq(struct slice a, struct slice b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Is it that word, which has small letters of ASCII, in small or large letters? */
static inline bool
slice_is_word(struct slice s, const char *word)
{
	for (size_t i = 0; i < s.n; i++)
		if (!word[i] || (s.p[i] | 0x20) != word[i])
			return false;
	return word[s.n] == '\0';
}

struct buf {
	char *p; /* NULL before the first put */
	size_t n;
	size_t size; /* allocated; always more than n, for the terminator */
	size_t max;  /* n never goes beyond this */
	bool failed;
};

void buf_init(struct buf *b, size_t max);
void buf_release(struct buf *b);
void buf_clear(struct buf *b); /* empty again, not failed, memory kept */

/* Memory for n bytes in all; false: there is none, and nothing has changed. */
bool buf_reserve(struct buf *b, size_t n);

/* Room for n more bytes and a terminator, or the buffer is failed from now on. */
bool buf_grow(struct buf *b, size_t n);

static inline bool
buf_room(struct buf *b, size_t n)
{
	return (!b->failed && n < b->size - b->n) || buf_grow(b, n);
}

/* n more bytes, for the caller to write; or NULL: the buffer is failed. */
static inline char *
buf_add(struct buf *b, size_t n)
{
	if (!buf_room(b, n))
		return NULL;
	b->n += n;
	return b->p + b->n - n;
}

/* A put is done whole or not at all: what was put before it failed stays. */
static inline void
buf_put(struct buf *b, const void *p, size_t n)
{
	if (n > 0 && buf_room(b, n)) {
		memcpy(b->p + b->n, p, n);
		b->n += n;
	}
}

static inline void
buf_putc(struct buf *b, char c)
{
	if (buf_room(b, 1))
		b->p[b->n++] = c;
}

void buf_puts(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *fmt, ...) SLU_PRINTF(2, 3);

/* The content as a string: terminated, "" when nothing was put or it failed at
 * the very first put. Good until the next put. */
const char *buf_str(struct buf *b);

static inline struct slice
buf_slice(const struct buf *b)
{
	return (struct slice){ b->p, b->n };
}

#endif
