/*
 * bytes.h - slices of bytes, and buffers that know their limit.
 *
 * A slice points into memory that another object owns. A buffer owns its memory. It
 * grows by doubling up to `max` and then fails, so that no input can make it grow
 * without bound. A buffer that reached `max` or ran out of memory stays `failed` and
 * ignores all further puts: write a whole answer, then check once.
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

#include <sluice/err.h>

#include <string.h>

struct slice {
	const char *p; /* not terminated; NULL only when n is 0 */
	size_t n;
};

/* The number of elements of an array. */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

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

/* Whether two slices are the same bytes in memory. Slices that are not may still be equal. */
static inline bool
slice_is(struct slice a, struct slice b)
{
	return a.p == b.p && a.n == b.n;
}

/* Takes n bytes off the beginning. */
static inline void
slice_skip(struct slice *s, size_t n)
{
	*s = (struct slice){ n > 0 ? s->p + n : s->p, s->n - n }; /* p may be NULL */
}

/* Takes the bytes before the first c, and c, off the beginning: *part. Returns false if there is no c;
 * *part is everything then. */
static inline bool
slice_cut(struct slice *rest, char c, struct slice *part)
{
	const char *at = rest->n > 0 ? memchr(rest->p, c, rest->n) : NULL;

	*part = (struct slice){ rest->p, at ? (size_t)(at - rest->p) : rest->n };
	slice_skip(rest, part->n + (at != NULL));
	return at;
}

/* Takes everything up to and including `mark` off the beginning. Returns false if the slice lacks it. */
static inline bool
slice_skip_past(struct slice *s, const char *mark)
{
	const char *at = s->n > 0 ? memmem(s->p, s->n, mark, strlen(mark)) : NULL;

	if (at)
		slice_skip(s, (size_t)(at - s->p) + strlen(mark));
	return at;
}

/* The slice without the characters of `blanks` at both ends. */
static inline struct slice
slice_trim(struct slice s, const char *blanks)
{
	while (s.n > 0 && s.p[0] && strchr(blanks, s.p[0]))
		slice_skip(&s, 1);
	while (s.n > 0 && s.p[s.n - 1] && strchr(blanks, s.p[s.n - 1]))
		s.n--;
	return s;
}

/* A letter of ASCII in lower case; <ctype.h> depends on the locale. */
static inline char
ascii_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* The value of a hex digit, or -1. */
static inline int
ascii_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = ascii_lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Compares with a word of ASCII letters, given in lower case, without regard to case. */
static inline bool
slice_is_word(struct slice s, const char *word)
{
	for (size_t i = 0; i < s.n; i++)
		if (!word[i] || (s.p[i] | 0x20) != word[i])
			return false;
	return word[s.n] == '\0';
}

/* Zeroes a struct of hundreds of bytes. The C library has wider stores than the loop that a compiler writes for a size
 * that it knows. */
static inline void
zero_large(void *p, size_t n)
{
	__asm__(""
		: "+r"(n));
	memset(p, 0, n);
}

/* Begins an error that is no failure, for code that runs for every request: as zeroed, except for the bytes behind the end of
 * the text. */
static inline void
no_err(struct slu_err *err)
{
	err->code = SLU_OK;
	err->shard = err->length = err->capacity = 0;
	err->limit = NULL;
	err->retry_after = 0;
	err->text[0] = '\0';
	err->owner = NULL;
	err->reserved[0] = 0;
}

struct buf {
	char *p;     /* NULL before the first put */
	size_t n;    /* bytes put */
	size_t size; /* bytes allocated; always more than n, for the terminator */
	size_t max;  /* upper limit of n */
	bool failed; /* a put did not fit */
};

void buf_init(struct buf *b, size_t max);
void buf_release(struct buf *b);
void buf_clear(struct buf *b); /* empty and not failed; keeps its memory */

/* Allocates for n bytes in all. Returns false and changes nothing if memory is out. */
bool buf_reserve(struct buf *b, size_t n);

/* Makes room for n more bytes and a terminator. Returns false and sets failed if it cannot. */
bool buf_grow(struct buf *b, size_t n);

static inline bool
buf_room(struct buf *b, size_t n)
{
	return (!b->failed && n < b->size - b->n) || buf_grow(b, n);
}

/* Returns n new bytes at the end, for the caller to write; NULL if the buffer failed. */
static inline char *
buf_add(struct buf *b, size_t n)
{
	if (!buf_room(b, n))
		return NULL;
	b->n += n;
	return b->p + b->n - n;
}

/* A put writes all of its bytes or none. What was put before a failure stays. */
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

/* The content with a NUL at its end, valid until the next put; "" if nothing was put. */
const char *buf_str(struct buf *b);

static inline struct slice
buf_slice(const struct buf *b)
{
	return (struct slice){ b->p, b->n };
}

#endif
