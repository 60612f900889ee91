#include "http/route.h"

#include "base/mem.h"

#include <sluice/err.h>

int
route_init(struct route_table *t, const struct route *rows, unsigned n)
{
	*t = (struct route_table){ .rows = rows, .n = n };
	t->paths = mem_array(n, sizeof *t->paths);
	if (!t->paths)
		return SLU_ENOMEM;
	for (unsigned i = 0; i < n; i++)
		t->paths[i] = slice_of(rows[i].path);
	return 0;
}

void
route_release(struct route_table *t)
{
	mem_free(t->paths);
	*t = (struct route_table){ 0 };
}

static bool
has_path(const struct route_table *t, unsigned i, struct slice path)
{
	const struct slice own = t->paths[i];

	if (own.n == path.n)
		return memcmp(own.p, path.p, own.n) == 0;
	return t->rows[i].below && own.n < path.n &&
	       memcmp(own.p, path.p, own.n) == 0;
}

/* The longest path that has this one: its rows alone decide about the method. */
static size_t
best_length(const struct route_table *t, struct slice path)
{
	size_t best = 0;

	for (unsigned i = 0; i < t->n && best < path.n; i++)
		if (t->paths[i].n > best && has_path(t, i, path))
			best = t->paths[i].n;
	return best;
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

const struct route *
route_find(const struct route_table *t, struct slice method, struct slice path,
	   unsigned *status)
{
	const size_t best = best_length(t, path);

	*status = best > 0 ? 405 : 404;
	for (unsigned i = 0; i < t->n && best > 0; i++)
		if (t->paths[i].n == best && has_path(t, i, path) &&
		    has_method(&t->rows[i], method))
			return &t->rows[i];
	return NULL;
}

void
route_allow(const struct route_table *t, struct slice path, struct buf *out)
{
	const size_t best = best_length(t, path);

	for (unsigned i = 0; i < t->n; i++) {
		const struct route *r = &t->rows[i];

		if (t->paths[i].n != best || !has_path(t, i, path))
			continue;
		buf_puts(out, out->n > 0 ? ", " : "");
		buf_puts(out, r->method ? r->method : "GET, POST, PUT, PATCH, DELETE");
		if (r->method && !r->no_head && strcmp(r->method, "GET") == 0)
			buf_puts(out, ", HEAD");
	}
}
