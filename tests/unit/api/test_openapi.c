#include "api/dialect.h"
#include "api/openapi.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "test.h"

#include <stdio.h>

static struct slice
document(void)
{
	return (struct slice){ openapi_text, openapi_size };
}

/* Enter the member of that name; false when there is none. The object is not left. */
static bool
enter(struct json *r, const char *name)
{
	struct json_str key;

	json_object(r);
	while (json_member(r, &key))
		if (json_str_is(&key, slice_of(name)))
			return true;
	return false;
}

/* A row for all that is below its path is described with names in braces. */
static const char *
described_as(const struct route *row)
{
	if (strcmp(row->path, "/v1/admin/queues/") == 0)
		return "/v1/admin/queues/{namespace}/{topic}";
	if (strcmp(row->path, "/console/") == 0)
		return "/console/{file}";
	if (strcmp(row->path, "/sqs/") == 0)
		return "/sqs/{account}/{queue}";
	if (row->tail) {
		static char text[128];

		(void)snprintf(text, sizeof text, "%s{id}%s", row->path, row->tail); /* fits */
		return text;
	}
	return row->path;
}

static bool
is_described(const struct route *row)
{
	struct json r;
	const char *const given = row->method ? row->method : "POST"; /* one stands for all */
	const size_t n = strlen(given);
	char method[16];

	for (size_t i = 0; i <= n; i++)
		method[i] = (char)(given[i] | 0x20);
	method[n] = '\0';
	json_init(&r, document(), JSON_DEPTH);
	return enter(&r, "paths") && enter(&r, described_as(row)) && enter(&r, method);
}

static unsigned
count_described(void)
{
	struct json r;
	struct json_str key;
	unsigned n = 0;

	json_init(&r, document(), JSON_DEPTH);
	CHECK(enter(&r, "paths"));
	json_object(&r);
	while (json_member(&r, &key)) {
		json_object(&r);
		while (json_member(&r, &key))
			n++;
	}
	return n;
}

TEST(it_is_json)
{
	struct slu_err err;
	struct json r;

	json_init(&r, document(), JSON_DEPTH);
	CHECK_EQ(0, json_end(&r, &err));
}

TEST(every_route_is_in_it_and_nothing_else)
{
	struct route *routes;
	unsigned n;

	CHECK_EQ(0, dialects_join(dialects, NULL, &routes, &n));
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(true, is_described(&routes[i]), routes[i].path);
	CHECK_EQ(n, count_described());
	mem_free(routes);
}
