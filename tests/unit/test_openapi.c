#include "api/admin.h"
#include "api/flat.h"
#include "api/lockd.h"
#include "api/lockd_state.h"
#include "api/openapi.h"
#include "base/json.h"
#include "test.h"

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
	for (unsigned i = 0; i < flat_n_routes; i++)
		CHECK_EQ(true, is_described(&flat_routes[i]), flat_routes[i].path);
	for (unsigned i = 0; i < admin_n_routes; i++)
		CHECK_EQ(true, is_described(&admin_routes[i]), admin_routes[i].path);
	for (unsigned i = 0; i < lockd_n_routes; i++)
		CHECK_EQ(true, is_described(&lockd_routes[i]), lockd_routes[i].path);
	for (unsigned i = 0; i < lockd_state_n_routes; i++)
		CHECK_EQ(true, is_described(&lockd_state_routes[i]), lockd_state_routes[i].path);
	CHECK_EQ(flat_n_routes + lockd_n_routes + lockd_state_n_routes + admin_n_routes,
		 count_described());
}
