#include "test.h"

#include "http/route.h"

#include <sluice/err.h>

static void
handle(struct call *c, void *arg)
{
	(void)c;
	(void)arg;
}

static const struct route rows[] = {
	{ "GET", "/a", handle, .max_body = 0 },
	{ "POST", "/a", handle, .max_body = 1 },
	{ "GET", "/a/b", handle, .no_head = true },
	{ "GET", "/files/", handle, .below = true },
	{ "PUT", "/files/deep/", handle, .below = true },
	{ "GET", "/files/deep/one", handle, .max_body = 0 },
	{ NULL, "/any", handle, .no_head = true },
};

TEST(a_request_takes_the_row_of_its_longest_path)
{
	static const struct {
		const char *method, *path;
		int row; /* or minus the status */
	} cases[] = {
		{ "GET", "/a", 0 },
		{ "HEAD", "/a", 0 },
		{ "POST", "/a", 1 },
		{ "get", "/a", -405 },
		{ "GE", "/a", -405 },
		{ "GET", "/a/b", 2 },
		{ "HEAD", "/a/b", -405 },
		{ "GET", "/a/", -404 },
		{ "GET", "/", -404 },
		{ "GET", "*", -404 },
		{ "GET", "/A", -404 },
		{ "GET", "/%61", -404 },
		{ "GET", "/files/", 3 },
		{ "GET", "/files/x", 3 },
		{ "GET", "/files", -404 },
		{ "PUT", "/files/x", -405 },
		{ "PUT", "/files/deep/x", 4 },
		{ "GET", "/files/deep/x", -405 },
		{ "GET", "/files/deep/one", 5 },
		{ "HEAD", "/files/deep/one", 5 },
		{ "PUT", "/files/deep/one", -405 },
		{ "PUT", "/any", 6 },
		{ "my!Method", "/any", 6 },
		{ "HEAD", "/any", -405 },
	};
	struct route_table t;

	CHECK_EQ(0, route_init(&t, rows, COUNT(rows)));
	EACH(i, cases) {
		unsigned status = 0;
		const struct route *r = route_find(&t, slice_of(cases[i].method),
						   slice_of(cases[i].path), &status);

		CHECK_EQ(cases[i].row, r ? (int)(r - rows) : -(int)status,
			 cases[i].path);
	}
	route_release(&t);
}

TEST(a_row_for_segments_takes_the_paths_that_no_row_names)
{
	static const struct route own[] = {
		{ "GET", "/a", handle, .max_body = 0 },
		{ "GET", "/b/c", handle, .max_body = 0 },
		{ "POST", "/", handle, .segments = 2 },
	};
	static const struct {
		const char *method, *path;
		int row; /* or minus the status */
	} cases[] = {
		{ "POST", "/", 2 },
		{ "POST", "/x/y", 2 },
		{ "POST", "/a/y", 2 },
		{ "POST", "/a", -405 },
		{ "GET", "/b/c", 1 },
		{ "POST", "/b/c", -405 },
		{ "POST", "/b/d", -404 }, /* the first segment belongs to a row */
		{ "GET", "/x/y", -404 },
		{ "GET", "/", -405 },
		{ "POST", "/x", -404 },
		{ "POST", "/x/y/z", -404 },
		{ "POST", "/x/", -404 },
		{ "POST", "//x", -404 },
		{ "POST", "/x//", -404 },
		{ "POST", "x/y", -404 },
	};
	struct route_table t;

	CHECK_EQ(0, route_init(&t, own, COUNT(own)));
	EACH(i, cases) {
		unsigned status = 0;
		const struct route *const r =
			route_find(&t, slice_of(cases[i].method), slice_of(cases[i].path), &status);

		CHECK_EQ(cases[i].row, r ? (int)(r - own) : -(int)status, cases[i].path);
	}
	route_release(&t);
}

TEST(allow_names_the_methods_of_a_path)
{
	static const struct {
		const char *path, *want;
	} cases[] = {
		{ "/a", "GET, HEAD, POST" },
		{ "/a/b", "GET" },
		{ "/files/deep/x", "PUT" },
		{ "/any", "GET, POST, PUT, PATCH, DELETE" },
		{ "/nowhere", "" },
	};
	struct route_table t;

	CHECK_EQ(0, route_init(&t, rows, COUNT(rows)));
	EACH(i, cases) {
		struct buf b;

		buf_init(&b, 256);
		route_allow(&t, slice_of(cases[i].path), &b);
		CHECK_STR(cases[i].want, buf_str(&b));
		buf_release(&b);
	}
	route_release(&t);
}

TORTURE(a_table_of_routes_needs_memory)
{
	struct route_table t;
	const int rc = route_init(&t, rows, COUNT(rows));

	CHECK(rc == 0 || rc == SLU_ENOMEM);
	route_release(&t);
}
