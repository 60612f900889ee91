#include "test.h"

#include "api/mask/mask.h"
#include "base/json/json.h"
#include "engine/message.h"

#include <stdio.h>

static char words[][16] = { "password", "card.number", "*.token" };
static char *rules[] = { words[0], words[1], words[2] };

static struct mask *mask;
static struct buf out;

static void
before(void)
{
	CHECK_EQ(0, mask_new(rules, 3, &mask, NULL));
	buf_init(&out, 1 << 20);
}

static void
after(void)
{
	mask_unref(mask);
	buf_release(&out);
}

FIXTURE(before, after);

static const char *
masked(const char *body)
{
	buf_clear(&out);
	(void)mask_body(mask, slice_of(body), &out);
	return buf_str(&out);
}

TEST(a_value_is_hidden_by_the_end_of_its_path)
{
	static const char *const cases[][2] = {
		{ "{\"password\":\"x\"}", "{\"password\":\"***\"}" },
		{ "{\"a\":{\"password\":{\"old\":1}}}", "{\"a\":{\"password\":\"***\"}}" },
		{ "[[{\"password\":[1,2]}]]", "[[{\"password\":\"***\"}]]" },
		{ "{ \"password\" : null , \"n\" : 1.50 }", "{ \"password\" : \"***\" , \"n\" : 1.50 }" },
		{ "{\"password\":1,\"password\":2}", "{\"password\":\"***\",\"password\":\"***\"}" },
		{ "{\"pass\\u0077ord\":1}", "{\"pass\\u0077ord\":\"***\"}" },
		{ "{\"card\":{\"number\":42,\"type\":\"visa\"},\"number\":7}", "{\"card\":{\"number\":\"***\",\"type\":\"visa\"},\"number\":7}" },
		{ "{\"card\":[{\"number\":42}]}", "{\"card\":[{\"number\":\"***\"}]}" },
		{ "{\"card\":{\"x\":{\"number\":42}}}", "{\"card\":{\"x\":{\"number\":42}}}" },
		{ "{\"token\":1,\"api\":{\"token\":1}}", "{\"token\":1,\"api\":{\"token\":\"***\"}}" },
		{ "{\"Password\":1,\"passwords\":2}", "{\"Password\":1,\"passwords\":2}" },
		{ "\"x\"", "\"x\"" },
	};

	EACH(i, cases)
		CHECK_STR(cases[i][1], masked(cases[i][0]));
}

/* MASK-2 */
TEST(a_name_in_what_cannot_be_read_hides_all_of_it)
{
	static const char *const cases[][2] = {
		{ "password=x", "***" },
		{ "{\"password\":\"x\"", "***" },
		{ "{\"password\":\"x\"}{\"password\":\"y\"}", "***" },
		{ "{\"password\":NaN}", "***" },
		{ "hello", "hello" },
		{ "", "" },
		{ "{\"doc\":\"{\\\"password\\\":1}\",\"n\":1}", "{\"doc\":\"***\",\"n\":1}" },
		{ "{\"doc\":\"{\\\\\\\"password\\\\\\\":1}\"}", "{\"doc\":\"***\"}" },
		{ "{\"doc\":\"forgot my password\"}", "{\"doc\":\"forgot my password\"}" },
	};

	EACH(i, cases)
		CHECK_STR(cases[i][1], masked(cases[i][0]));
}

TEST(a_deep_document_is_masked_and_a_deeper_one_hidden)
{
	char text[4 * JSON_DEPTH_MAX];
	const size_t n = JSON_DEPTH_MAX - 1;

	for (unsigned more = 0; more < 2; more++) {
		memset(text, '[', n + more);
		(void)snprintf(text + n + more, sizeof text - n - more, "{\"password\":1}");
		memset(text + n + more + 14, ']', n + more);
		text[2 * (n + more) + 14] = '\0';
		if (more)
			CHECK_STR("***", masked(text));
		else
			CHECK(strstr(masked(text), "{\"password\":\"***\"}"));
	}
}

TEST(invalid_rules_are_refused)
{
	static char wrong[][20] = { "", ".", "a.", ".a", "a..b", "*", "*.*", "a.b.c.d.e.f.g.h.i" };
	char longest[MASK_RULE_MAX + 2];
	char *one[1];
	struct mask *m;
	struct slu_err err;

	EACH(i, wrong) {
		one[0] = wrong[i];
		CHECK_EQ(SLU_EINVAL, mask_new(one, 1, &m, &err), wrong[i]);
		CHECK(strstr(err.text, "invalid mask: ") && !m);
	}
	one[0] = longest;
	memset(longest, 'a', sizeof longest);
	longest[sizeof longest - 1] = '\0';
	CHECK_EQ(SLU_EINVAL, mask_new(one, 1, &m, &err));
	longest[MASK_RULE_MAX] = '\0';
	CHECK_EQ(0, mask_new(one, 1, &m, &err));
	mask_unref(m);
	CHECK_EQ(0, mask_new(one, 0, &m, &err));
	CHECK(!m);
}

TEST(payload_and_attributes_of_a_message_are_masked)
{
	struct message m = { .payload = SLICE("{\"password\":1}"), .attributes = SLICE("{\"card\":{\"number\":2}}") };
	bool hidden;

	CHECK_EQ(0, mask_message(mask, &m, &out, &hidden));
	CHECK(hidden);
	CHECK(slice_eq(SLICE("{\"password\":\"***\"}"), m.payload));
	CHECK(slice_eq(SLICE("{\"card\":{\"number\":\"***\"}}"), m.attributes));
	m = (struct message){ .payload = SLICE("{\"n\":1}") };
	buf_clear(&out);
	CHECK_EQ(0, mask_message(mask, &m, &out, &hidden));
	CHECK(!hidden && slice_eq(SLICE("{\"n\":1}"), m.payload));
}
