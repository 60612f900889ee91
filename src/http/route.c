#include "http/route.h"

#include "base/mem.h"

#include <sluice/err.h>

#include <assert.h>

int
route_init(struct route_table *t, const struct route *rows, unsigned n)
{
	*t = (struct route_table){ .rows = rows, .n = n };
	t->lengths = mem_array(n, sizeof *t->lengths);
	if (!t->lengths)
		return SLU_ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		assert(strlen(rows[i].path) <= UINT8_MAX);
		t->lengths[i] = (uint8_t)strlen(rows[i].path);
	}
	return 0;
}

void
route_release(struct route_table *t)
{
	mem_free(t->lengths);
	*t = (struct route_table){ 0 };
}

/* Returns whether rest is one segment and the tail. */
static bool
has_tail(struct slice rest, struct slice tail)
{
	const size_t n = rest.n - tail.n; /* of the segment */

	return rest.n > tail.n && !memchr(rest.p, '/', n) && memcmp(rest.p + n, tail.p, tail.n) == 0;
}

/* Returns whether a row whose path begins the given path, n bytes of it, matches the rest. */
static bool
has_rest(const struct route *r, struct slice path, size_t n)
{
	const struct slice rest = { path.p + n, path.n - n };

	return r->tail ? has_tail(rest, slice_of(r->tail)) : rest.n == 0 || r->below;
}

/* The first row from i on whose path is n bytes long and begins the given path; or t->n. */
static unsigned
next_row(const struct route_table *t, unsigned i, struct slice path, size_t n)
{
	for (; i < t->n; i++) {
		const uint8_t *const at = memchr(t->lengths + i, (int)n, t->n - i);

		if (!at)
			break;
		i = (unsigned)(at - t->lengths);
		if (memcmp(t->rows[i].path, path.p, n) == 0 && has_rest(&t->rows[i], path, n))
			return i;
	}
	return t->n;
}

/* The length of the longest path that matches: its rows alone decide about the method. 0: none. */
static size_t
best_length(const struct route_table *t, struct slice path)
{
	size_t n = path.n < UINT8_MAX ? path.n : UINT8_MAX;

	while (n > 0 && next_row(t, 0, path, n) == t->n)
		n--;
	return n;
}

static bool
has_method(const struct route *r, struct slice method)
{
	const bool is_head = slice_eq(method, SLICE("HEAD"));

	if (!r->method)
		return !is_head || !r->no_head;
	return slice_eq(slice_of(r->method), method) ||
	       (is_head && !r->no_head && strcmp(r->method, "GET") == 0);
}

/* Segments of a path that begins with a slash; 0 if one of them is empty. */
static unsigned
count_segments(struct slice path)
{
	unsigned n = 0;

	for (size_t i = 0; i < path.n; i++) {
		if (path.p[i] != '/')
			continue;
		if (i + 1 == path.n || path.p[i + 1] == '/')
			return 0;
		n++;
	}
	return path.n > 0 && path.p[0] == '/' ? n : 0;
}

/* Whether a row has a path of this first segment, and others behind it. */
static bool
is_first_segment(const struct route_table *t, struct slice path)
{
	const char *const end = memchr(path.p + 1, '/', path.n - 1);
	const size_t n = end ? (size_t)(end - path.p) + 1 : path.n;

	for (unsigned i = 0; i < t->n; i++)
		if (t->lengths[i] >= n && memcmp(t->rows[i].path, path.p, n) == 0)
			return true;
	return false;
}

/* A path that no row names. */
static const struct route *
find_segments(const struct route_table *t, struct slice method, struct slice path)
{
	const unsigned n = count_segments(path);

	if (n == 0 || is_first_segment(t, path))
		return NULL;
	for (unsigned i = 0; i < t->n; i++)
		if (t->rows[i].segments == n && has_method(&t->rows[i], method))
			return &t->rows[i];
	return NULL;
}

const struct route *
route_find(const struct route_table *t, struct slice method, struct slice path,
	   unsigned *status)
{
	const size_t best = best_length(t, path);

	*status = best > 0 ? 405 : 404;
	if (best == 0)
		return find_segments(t, method, path);
	for (unsigned i = next_row(t, 0, path, best); i < t->n; i = next_row(t, i + 1, path, best))
		if (has_method(&t->rows[i], method))
			return &t->rows[i];
	return NULL;
}

void
route_allow(const struct route_table *t, struct slice path, struct buf *out)
{
	const size_t best = best_length(t, path);

	if (best == 0)
		return;
	for (unsigned i = next_row(t, 0, path, best); i < t->n; i = next_row(t, i + 1, path, best)) {
		const struct route *r = &t->rows[i];

		buf_puts(out, out->n > 0 ? ", " : "");
		buf_puts(out, r->method ? r->method : "GET, POST, PUT, PATCH, DELETE");
		if (r->method && !r->no_head && strcmp(r->method, "GET") == 0)
			buf_puts(out, ", HEAD");
	}
}
