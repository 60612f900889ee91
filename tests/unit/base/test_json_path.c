#include "test.h"

#include "base/json/json_path.h"

#include <stdio.h>

/* All values that the path leads to, with spaces between. */
static bool
fanout(void *arg, const struct json_event *value)
{
	struct buf *const out = arg;

	if (out->n > 0)
		buf_putc(out, ' ');
	if (value->type == JSON_STRING)
		buf_put(out, value->str.raw.p, value->str.raw.n);
	else if (value->raw.n > 0)
		buf_put(out, value->raw.p, value->raw.n);
	else
		buf_puts(out, json_type_name(value->type));
	return true;
}

TEST(a_path_leads_to_values)
{
	static const char document[] =
		"{\"a\":{\"b\":1,\"c/d\":\"x\",\"~\":true},\"list\":[{\"sku\":\"A\"},{\"sku\":\"B\"},[3]],"
		"\"0\":\"zero\",\"\":\"empty\",\"deep\":{\"x\":{\"sku\":\"C\"},\"sku\":null}}";
	static const struct {
		const char *path;
		const char *want;
	} cases[] = {
		{ "/a/b", "1" },
		{ "a/b", "1" },
		{ "/a/c~1d", "x" },
		{ "/a/~0", "true" },
		{ "/a/none", "" },
		{ "/a/b/c", "" },
		{ "/0", "zero" },
		{ "/", "empty" },
		{ "/list/1/sku", "B" },
		{ "/list/01/sku", "" },
		{ "/list/2/0", "3" },
		{ "/list/9", "" },
		{ "/a/*", "1 x true" },
		{ "/list/*", "" },
		{ "/list/[]/sku", "A B" },
		{ "/list[]/sku", "A B" },
		{ "/a/[]", "" },
		{ "/deep/**", "{\"sku\":\"C\"} null" },
		{ "/list/**/0", "3" },
		{ "/deep/.../sku", "C null" },
		{ "/.../sku", "A B C null" },
		{ "/a/b/...", "1" },
	};

	EACH(i, cases) {
		struct json_path path = { 0 };
		struct slu_err err;
		char room[64];
		struct buf out;

		buf_init(&out, 4096);
		CHECK_EQ(0, json_path_add(&path, slice_of(cases[i].path), room, &err));
		CHECK_EQ(0, json_walk(slice_of(document), &path, fanout, &out, &err), cases[i].path);
		CHECK_STR(cases[i].want, buf_str(&out));
		buf_release(&out);
	}
}

TEST(a_bad_path_is_refused)
{
	struct json_path path = { 0 };
	struct slu_err err;
	char room[256];

	CHECK_EQ(SLU_EINVAL, json_path_add(&path, SLICE("/a~2"), room, &err));
	CHECK_STR("expected ~0 or ~1 for ~ and /, not \"a~2\"", err.text);
	path.n = 0;
	CHECK_EQ(SLU_EINVAL, json_path_add(&path, SLICE("/~"), room, &err));
	path.n = 0;
	CHECK_EQ(SLU_EINVAL, json_path_add(&path,
					   SLICE("/1/2/3/4/5/6/7/8/9/0/1/2/3/4/5/6/7/8/9/0/1/2"
						 "/3/4/5/6/7/8/9/0/1/2/3"),
					   room, &err));
	CHECK_STR("expected a path of at most 32 steps", err.text);
}

TEST(a_walk_refuses_what_is_no_json_and_what_is_too_deep)
{
	struct json_path path = { .n = 1, .steps = { { .kind = JSON_STEP_DEEP } } };
	char deep[JSON_DEPTH_MAX + 2];
	struct slu_err err;
	struct buf out;

	memset(deep, '[', sizeof deep);
	buf_init(&out, 1 << 20);
	CHECK_EQ(SLU_EINVAL, json_walk(SLICE("{\"a\":}"), &path, fanout, &out, &err));
	CHECK_EQ(SLU_EINVAL, json_walk(SLICE("[1]]"), &path, fanout, &out, &err));
	CHECK_EQ(SLU_EINVAL, json_walk((struct slice){ deep, sizeof deep }, &path, fanout, &out, &err));
	buf_release(&out);
}

static bool
stop(void *arg, const struct json_event *value)
{
	(void)value;
	++*(int *)arg;
	return false;
}

TEST(a_walk_ends_when_enough_was_seen)
{
	struct json_path path = { .n = 1, .steps = { { .kind = JSON_STEP_ELEMENT } } };
	int seen = 0;

	CHECK_EQ(0, json_walk(SLICE("[1,2,3"), &path, stop, &seen, NULL));
	CHECK_EQ(1, seen);
}
