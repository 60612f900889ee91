#include "test.h"

#include "api/admin/body.h"

static bool
holds(const char *condition, const char *body)
{
	struct body_condition c;

	CHECK_EQ(0, body_condition_read(&c, slice_of(condition), NULL), condition);
	return body_condition_holds(&c, slice_of(body));
}

TEST(a_condition_compares_a_value_of_the_body)
{
	static const char body[] = "{\"user\":{\"id\":42,\"name\":\"Ann \\u00e9\",\"e.mail\":\"a=b\"},\"tags\":[\"x\",\"y\"],\"n\":null,"
				   "\"items\":[{\"sku\":\"A\"},{\"sku\":\"B\"}],\"on\":true,\"big\":12345678901234567890,\"a/b\":{\"~\":1}}";
	static const struct {
		const char *condition;
		bool holds;
	} cases[] = {
		{ "user.id=42", true },
		{ "user.id=42.0", true },
		{ "user.id=\"42\"", false },
		{ "user.id=4", false },
		{ "user.name=Ann \xc3\xa9", true },
		{ "user.name=Ann", false },
		{ "/user/e.mail=a=b", true },
		{ "user.e.mail=a=b", false },
		{ "tags=y", true },
		{ "tags.1=y", true },
		{ "tags.0=y", false },
		{ "items.sku=B", true },
		{ "items.1.sku=B", true },
		{ "on=true", true },
		{ "on=1", false },
		{ "n=null", true },
		{ "big=12345678901234567890", true },
		{ "big=12345678901234567891", false },
		{ "user={}", false },
		{ "none=null", false },
		{ "a/b.~=1", true },
		{ "/a~1b/~0=1", true },
		{ "*.id=42", true },
	};

	EACH(i, cases)
		CHECK_EQ(cases[i].holds, holds(cases[i].condition, body), cases[i].condition);
}

TEST(a_body_that_is_not_json_never_holds)
{
	static const char *const bodies[] = { "", "id=7", "{\"id\":7", "{\"id\":7}}", "{\"id\":7} x", "{id:7}" };

	EACH(i, bodies)
		CHECK_EQ(false, holds("id=7", bodies[i]), bodies[i]);
	CHECK(holds("id=7", " {\"id\":7} "));
}

TEST(a_malformed_condition_is_refused)
{
	char path[BODY_PATH_MAX + 4];
	static const char *const wrong[] = { "", "id", "=7", "/a~2=1" };
	struct body_condition c;
	struct slu_err err;

	EACH(i, wrong) {
		CHECK_EQ(SLU_EINVAL, body_condition_read(&c, slice_of(wrong[i]), &err), wrong[i]);
		CHECK(strstr(err.text, "invalid body"));
	}
	memset(path, '.', sizeof path);
	memcpy(path + BODY_PATH_MAX + 1, "=1", 3);
	CHECK_EQ(SLU_EINVAL, body_condition_read(&c, slice_of(path), &err));
	memset(path, '~', BODY_PATH_MAX - 1);
	memcpy(path + BODY_PATH_MAX - 1, "=1", 3);
	CHECK_EQ(0, body_condition_read(&c, slice_of(path), &err));
}
