#include "test.h"

#include "core/selector.h"

#include <stdio.h>

static const slu_time noon = 1748779200 * SLU_SEC; /* 2025-06-01T12:00:00Z */

static const char document[] =
	"{\"status\":\"open\",\"n\":72,\"pi\":3.50,\"ok\":true,\"none\":null,\"tags\":[\"a\",\"B\"],"
	"\"at\":\"2025-06-01T12:00:00+02:00\",\"msg\":\"Time\\u006fut Of Night\","
	"\"items\":[{\"sku\":\"A-1\",\"price\":10},{\"sku\":\"B-2\",\"price\":30}]}";

static bool
matches(const char *json, const char *text)
{
	struct selector *s;
	struct slu_err err;
	bool fits;

	if (selector_new(&s, slice_of(json), noon, &err))
		test_fail(__FILE__, __LINE__, "%s: %s", json, err.text);
	CHECK_EQ(0, selector_match(s, slice_of(text), NULL, &fits, &err));
	selector_free(s);
	return fits;
}

TEST(a_selector_says_which_documents_are_meant)
{
	static const struct {
		const char *json;
		bool want;
	} cases[] = {
		{ "{}", true },
		{ "{\"and\":[],\"or\":[],\"not\":{}}", true },
		{ "{\"eq\":{\"field\":\"/status\",\"value\":\"open\"}}", true },
		{ "{\"eq\":{\"field\":\"status\",\"value\":\"open\"}}", true },
		{ "{\"eq\":{\"field\":\"/status\",\"value\":\"Open\"}}", false },
		{ "{\"eq\":{\"field\":\"/none\",\"value\":null}}", true },
		{ "{\"eq\":{\"field\":\"/n\",\"value\":72}}", true },
		{ "{\"eq\":{\"field\":\"/n\",\"value\":\"72\"}}", true },
		{ "{\"eq\":{\"field\":\"/n\",\"value\":72.0}}", true },
		{ "{\"eq\":{\"field\":\"/pi\",\"value\":3.5}}", true },
		{ "{\"eq\":{\"field\":\"/ok\",\"value\":true}}", true },
		{ "{\"eq\":{\"field\":\"/missing\",\"value\":\"\"}}", false },
		{ "{\"eq\":{\"field\":\"/msg\",\"value\":\"Timeout Of Night\"}}", true },
		{ "{\"eq\":{\"field\":\"/tags/1\",\"value\":\"B\"}}", true },
		{ "{\"eq\":{\"field\":\"/tags[]\",\"value\":\"B\"}}", true },
		{ "{\"eq\":{\"field\":\"/tags\",\"value\":\"B\"}}", true },
		{ "{\"eq\":{\"field\":\"/tags\",\"value\":\"C\"}}", false },
		{ "{\"in\":{\"field\":\"/status\",\"any\":[\"new\",\"open\"]}}", true },
		{ "{\"in\":{\"field\":\"/status\",\"any\":[\"new\"]}}", false },
		{ "{\"prefix\":{\"field\":\"/msg\",\"value\":\"Time\"}}", true },
		{ "{\"prefix\":{\"field\":\"/msg\",\"value\":\"time\"}}", false },
		{ "{\"prefix\":{\"field\":\"/msg\",\"value\":\"time\",\"ignoreCase\":true}}", true },
		{ "{\"iprefix\":{\"field\":\"/msg\",\"value\":\"tIME\"}}", true },
		{ "{\"contains\":{\"field\":\"/msg\",\"value\":\"Of\"}}", true },
		{ "{\"contains\":{\"field\":\"/msg\",\"value\":\"of\"}}", false },
		{ "{\"contains\":{\"field\":\"/msg\",\"any\":[\"x\",\"Night\"]}}", true },
		{ "{\"contains\":{\"field\":\"/none\"}}", true },
		{ "{\"contains\":{\"field\":\"/missing\"}}", false },
		{ "{\"icontains\":{\"field\":\"/msg\",\"value\":\"NIGHT\"}}", true },
		{ "{\"icontains\":{\"field\":\"/msg\",\"value\":\"nights\"}}", false },
		{ "{\"range\":{\"field\":\"/n\",\"gte\":72,\"lt\":73}}", true },
		{ "{\"range\":{\"field\":\"/n\",\"gt\":72}}", false },
		{ "{\"range\":{\"field\":\"/n\",\"lte\":71.9}}", false },
		{ "{\"range\":{\"field\":\"/status\",\"gte\":0}}", false },
		{ "{\"range\":{\"field\":\"/items[]/price\",\"gt\":20}}", true },
		{ "{\"range\":{\"field\":\"/at\",\"gte\":\"2025-06-01T10:00:00Z\"}}", true },
		{ "{\"range\":{\"field\":\"/at\",\"gt\":\"2025-06-01T10:00:00Z\"}}", false },
		{ "{\"exists\":\"/tags\"}", true },
		{ "{\"exists\":\"/none\"}", false },
		{ "{\"exists\":\"/items/.../sku\"}", true },
		{ "{\"not\":{\"exists\":\"/none\"}}", true },
		{ "{\"not\":{\"eq\":{\"field\":\"/ok\",\"value\":true}}}", false },
		{ "{\"or\":[{\"exists\":\"/x\"},{\"exists\":\"/ok\"}]}", true },
		{ "{\"or\":[{\"exists\":\"/x\"},{\"exists\":\"/y\"}]}", false },
		{ "{\"and\":[{\"exists\":\"/n\"},{\"exists\":\"/ok\"}]}", true },
		{ "{\"and\":[{\"exists\":\"/n\"},{\"exists\":\"/y\"}]}", false },
		{ "{\"exists\":\"/n\",\"eq\":{\"field\":\"/ok\",\"value\":false}}", false },
		{ "{\"not\":{\"or\":[{\"exists\":\"/x\"},{\"and\":[{\"exists\":\"/n\"},{\"exists\":\"/y\"}]}]}}", true },
	};

	EACH(i, cases)
		if (matches(cases[i].json, document) != cases[i].want)
			test_fail(__FILE__, __LINE__, "%s", cases[i].json);
}

TEST(a_field_goes_through_arrays)
{
	static const struct {
		const char *json;
		bool want;
	} cases[] = {
		{ "{\"in\":{\"field\":\"/tags\",\"any\":[\"x\",\"a\"]}}", true },
		{ "{\"in\":{\"field\":\"/tags\",\"any\":\"x | B\"}}", true },
		{ "{\"in\":{\"field\":\"/tags\",\"any\":\"x|y\"}}", false },
		{ "{\"contains\":{\"field\":\"/tags\",\"any\":\"x|B\"}}", true },
		{ "{\"icontains\":{\"field\":\"/tags\",\"value\":\"b\"}}", true },
		{ "{\"eq\":{\"field\":\"/items/sku\",\"value\":\"B-2\"}}", true },
		{ "{\"eq\":{\"field\":\"/items/sku\",\"value\":\"C-3\"}}", false },
		{ "{\"eq\":{\"field\":\"/items/1/sku\",\"value\":\"A-1\"}}", false },
		{ "{\"contains\":{\"field\":\"/items/sku\",\"value\":\"-2\"}}", true },
		{ "{\"prefix\":{\"field\":\"/items/sku\",\"value\":\"B\"}}", true },
		{ "{\"range\":{\"field\":\"/items/price\",\"gt\":20}}", true },
		{ "{\"range\":{\"field\":\"/items/price\",\"gt\":30}}", false },
		{ "{\"exists\":\"/items/price\"}", true },
		{ "{\"exists\":\"/items/cost\"}", false },
		{ "{\"exists\":\"/items\"}", true },
		{ "{\"eq\":{\"field\":\"/nested/x\",\"value\":2}}", true },
		{ "{\"eq\":{\"field\":\"/nested\",\"value\":3}}", true },
		{ "{\"eq\":{\"field\":\"/*/sku\",\"value\":\"A-1\"}}", true },
		{ "{\"not\":{\"eq\":{\"field\":\"/tags\",\"value\":\"a\"}}}", false },
	};
	static const char nested[] = "{\"tags\":[\"a\",\"B\"],\"nested\":[[{\"x\":1}],[{\"x\":2},[3]]],"
				     "\"items\":[{\"sku\":\"A-1\",\"price\":10},{\"sku\":\"B-2\",\"price\":30}]}";

	EACH(i, cases)
		if (matches(cases[i].json, nested) != cases[i].want)
			test_fail(__FILE__, __LINE__, "%s", cases[i].json);
}

TEST(dates_are_compared_as_moments)
{
	static const struct {
		const char *json;
		bool want;
	} cases[] = {
		{ "{\"eq\":{\"field\":\"/at\",\"value\":\"2025-06-01T10:00:00Z\"}}", true },
		{ "{\"eq\":{\"field\":\"/at\",\"value\":\"2025-06-01T10:00:00\"}}", true },
		{ "{\"eq\":{\"field\":\"/at\",\"value\":\"2025-06-01T10:00:00.000000001Z\"}}", false },
		{ "{\"eq\":{\"field\":\"/at\",\"value\":\"2025-06-01\"}}", true },
		{ "{\"eq\":{\"field\":\"/at\",\"value\":\"2025-06-02\"}}", false },
		{ "{\"eq\":{\"field\":\"/night\",\"value\":\"2025-05-31\"}}", true },
		{ "{\"eq\":{\"field\":\"/night\",\"value\":\"2025-06-01\"}}", false },
		{ "{\"eq\":{\"field\":\"/day\",\"value\":\"2025-06-01T23:59:59Z\"}}", true },
		{ "{\"in\":{\"field\":\"/at\",\"any\":[\"2024-01-01\",\"2025-06-01\"]}}", true },
		{ "{\"range\":{\"field\":\"/at\",\"gt\":\"2025-06-01\",\"lt\":\"2025-06-02\"}}", true },
		{ "{\"range\":{\"field\":\"/day\",\"gte\":\"2025-06-01T00:00:00Z\"}}", true },
		{ "{\"range\":{\"field\":\"/at\",\"gt\":\"2025-06-01T09:59:59.999999999Z\"}}", true },
		{ "{\"date\":{\"field\":\"/at\",\"value\":\"2025-06-01\"}}", true },
		{ "{\"date\":{\"field\":\"/at\",\"value\":\"2025-06-01T10:00:01Z\"}}", false },
		{ "{\"date\":{\"field\":\"/at\",\"since\":\"now\"}}", false },
		{ "{\"date\":{\"field\":\"/soon\",\"since\":\"NOW\"}}", true },
		{ "{\"date\":{\"field\":\"/at\",\"since\":\"today\"}}", true },
		{ "{\"date\":{\"field\":\"/night\",\"since\":\"today\"}}", false },
		{ "{\"date\":{\"field\":\"/night\",\"since\":\"yesterday\"}}", true },
		{ "{\"date\":{\"field\":\"/at\",\"since\":\"2025-06-01T10:00:00Z\"}}", true },
		{ "{\"date\":{\"field\":\"/at\",\"after\":\"2025-06-01T10:00:00Z\"}}", false },
		{ "{\"date\":{\"field\":\"/at\",\"after\":\"2025-05-31\",\"before\":\"2025-06-02\"}}", true },
		{ "{\"date\":{\"field\":\"/at\",\"before\":\"2025-06-01T10:00:00Z\"}}", false },
		{ "{\"date\":{\"field\":\"/at\",\"gte\":\"2025-06-01\",\"lte\":\"2025-06-01T10:00:00Z\"}}", true },
		{ "{\"date\":{\"field\":\"/at\",\"gt\":\"2025-06-01\",\"lt\":\"2025-06-01T10:00:00Z\"}}", false },
		{ "{\"date\":{\"field\":\"/text\",\"before\":\"2030-01-01\"}}", false },
		{ "{\"date\":{\"field\":\"/days\",\"value\":\"2025-06-03\"}}", true },
	};
	static const char dates[] = "{\"at\":\"2025-06-01T12:00:00+02:00\",\"day\":\"2025-06-01\","
				    "\"night\":\"2025-06-01T01:00:00+02:00\",\"soon\":\"2025-06-01T12:00:00Z\","
				    "\"text\":\"soon\",\"days\":[\"2025-06-01\",\"2025-06-03\"]}";

	EACH(i, cases)
		if (matches(cases[i].json, dates) != cases[i].want)
			test_fail(__FILE__, __LINE__, "%s", cases[i].json);
}

TEST(only_objects_match)
{
	CHECK(!matches("{}", "[]"));
	CHECK(!matches("{}", "1"));
	CHECK(matches("{}", " {} "));
}

TEST(a_bad_selector_is_refused)
{
	static const struct {
		const char *json;
		const char *want;
	} cases[] = {
		{ "[]", "expected an object" },
		{ "{\"like\":{}}", "expected and, or, not, eq" },
		{ "{\"eq\":{\"value\":\"x\"}}", "expected a member \"field\"" },
		{ "{\"eq\":{\"field\":\"\",\"value\":\"x\"}}", "expected a path" },
		{ "{\"eq\":{\"field\":\"/a~\",\"value\":\"x\"}}", "expected ~0 or ~1" },
		{ "{\"eq\":{\"field\":\"/a\"}}", "expected a value to compare with" },
		{ "{\"eq\":{\"field\":\"/a\",\"value\":[]}}", "expected a text, number" },
		{ "{\"eq\":{\"field\":\"/a\",\"valeu\":1}}", "expected field, value" },
		{ "{\"in\":{\"field\":\"/a\",\"any\":[]}}", "expected at least one value" },
		{ "{\"range\":{\"field\":\"/a\",\"gt\":\"x\"}}", "expected a number, a day as in 2025-06-01, or a moment" },
		{ "{\"range\":{\"field\":\"/a\",\"gt\":1,\"lt\":\"2025-06-01T10:00:00Z\"}}", "not both" },
		{ "{\"range\":{\"field\":\"/a\",\"lt\":\"2025-06-01T10:00:00Z\",\"gt\":1}}", "not both" },
		{ "{\"range\":{\"field\":\"/a\",\"above\":1}}", "expected field, gt" },
		{ "{\"date\":{\"field\":\"/a\"}}", "expected a date to compare with" },
		{ "{\"date\":{\"field\":\"/a\",\"gt\":1}}", "expected a string" },
		{ "{\"date\":{\"field\":\"/a\",\"gt\":\"today\"}}", "expected a day as in 2025-06-01" },
		{ "{\"date\":{\"field\":\"/a\",\"since\":\"tomorrow\"}}", "expected now, today, yesterday" },
		{ "{\"date\":{\"field\":\"/a\",\"until\":\"2025-06-01\"}}", "expected field, value, since" },
		{ "{\"range\":{\"field\":\"/a\",\"gt\":1,\"gt\":2}}", "expected each bound once" },
		{ "{\"range\":{\"field\":\"/a\",\"since\":\"today\"}}", "expected field, gt" },
		{ "{\"in\":{\"field\":\"/a\",\"any\":\" | \"}}", "expected at least one value" },
		{ "{\"exists\":{}}", "expected a string" },
		{ "{\"not\":{\"not\":{\"not\":{\"not\":{\"not\":{\"not\":{\"not\":{\"not\":{\"not\":"
		  "{\"not\":{\"not\":{\"not\":{\"not\":{\"not\":{\"not\":{\"not\":{}}}}}}}}}}}}}}}}}",
		  "expected less nesting" },
	};

	EACH(i, cases) {
		struct selector *s;
		struct slu_err err;

		CHECK_EQ(SLU_EINVAL, selector_new(&s, slice_of(cases[i].json), noon, &err), cases[i].json);
		CHECK(!s);
		CHECK_CONTAINS(cases[i].want, err.text);
	}
}

TEST(there_is_a_limit_of_conditions_and_of_values)
{
	char text[8192];
	struct selector *s;
	struct slu_err err;
	size_t n;

	n = (size_t)snprintf(text, sizeof text, "{\"and\":[{}");
	for (int i = 0; i < SELECTOR_NODES; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, ",{}");
	(void)snprintf(text + n, sizeof text - n, "]}");
	CHECK_EQ(SLU_EINVAL, selector_new(&s, slice_of(text), noon, &err));
	CHECK_CONTAINS("at most 64 conditions", err.text);
	n = (size_t)snprintf(text, sizeof text, "{\"in\":{\"field\":\"/a\",\"any\":[0");
	for (int i = 0; i < SELECTOR_VALUES; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, ",%d", i);
	(void)snprintf(text + n, sizeof text - n, "]}}");
	CHECK_EQ(SLU_EINVAL, selector_new(&s, slice_of(text), noon, &err));
	CHECK_CONTAINS("at most 256 values", err.text);
}

static bool
has_part(const char *text, const char *part)
{
	return strcasestr(text, part) != NULL;
}

TEST(a_search_finds_what_a_simple_one_finds)
{
	uint64_t state = test_seed();

	for (unsigned round = 0; round < 5000; round++) {
		char text[24] = "", part[8] = "", json[96], doc[64];
		const unsigned n = (unsigned)(test_random(&state) % 20), m = (unsigned)(test_random(&state) % 7);

		for (unsigned i = 0; i < n; i++)
			text[i] = "aAb"[test_random(&state) % 3];
		for (unsigned i = 0; i < m; i++)
			part[i] = "aAb"[test_random(&state) % 3];
		(void)snprintf(doc, sizeof doc, "{\"t\":\"%s\"}", text);
		(void)snprintf(json, sizeof json, "{\"icontains\":{\"field\":\"/t\",\"value\":\"%s\"}}", part);
		CHECK_EQ(has_part(text, part), matches(json, doc), json);
		(void)snprintf(json, sizeof json, "{\"contains\":{\"field\":\"/t\",\"value\":\"%s\"}}", part);
		CHECK_EQ(strstr(text, part) != NULL, matches(json, doc), json);
	}
}

/* {"t":"aaaa..."} in 4 MB, searched for "aaaa...b" in 60 KB: each place of the text fits
 * but for the last letter. Letter by letter this takes hours. */
TEST(the_time_of_a_search_does_not_depend_on_the_texts)
{
	enum {
		TEXT = 4 << 20,
		PART = 60 << 10
	};
	static char doc[TEXT + 16], json[PART + 128];
	struct selector *s;
	struct slu_err err;
	bool fits = true;
	size_t n;

	n = (size_t)snprintf(doc, sizeof doc, "{\"t\":\"");
	memset(doc + n, 'a', TEXT);
	memcpy(doc + n + TEXT, "\"}", 3);
	for (unsigned i = 0; i < 2; i++) {
		n = (size_t)snprintf(json, sizeof json, "{\"%s\":{\"field\":\"/t\",\"value\":\"",
				     i ? "icontains" : "contains");
		memset(json + n, i ? 'A' : 'a', PART);
		memcpy(json + n + PART, "b\"}}", 5);
		CHECK_EQ(0, selector_new(&s, slice_of(json), noon, &err), err.text);
		CHECK_EQ(2, selector_cost(s));
		for (unsigned k = 0; k < 8; k++)
			CHECK_EQ(0, selector_match(s, slice_of(doc), NULL, &fits, &err));
		CHECK(!fits);
		selector_free(s);
	}
}

TEST(a_match_can_be_ended)
{
	static struct stop stop = { .set = true };
	struct selector *s;
	struct slu_err err;
	bool fits;

	CHECK_EQ(0, selector_new(&s, SLICE("{\"exists\":\"/n\"}"), noon, &err));
	CHECK_EQ(SLU_ECANCELED, selector_match(s, slice_of(document), &stop, &fits, &err));
	CHECK(!fits);
	selector_free(s);
}

TEST(the_cost_of_a_selector_is_that_of_its_conditions)
{
	static const struct {
		const char *json;
		unsigned want;
	} cases[] = {
		{ "{}", 0 },
		{ "{\"exists\":\"/a/b\"}", 1 },
		{ "{\"exists\":\"/a/.../b\"}", 3 },
		{ "{\"in\":{\"field\":\"/a\",\"any\":[1,2,3]}}", 4 },
		{ "{\"or\":[{\"exists\":\"/a\"},{\"not\":{\"eq\":{\"field\":\"/b\",\"value\":1}}}]}", 3 },
	};

	EACH(i, cases) {
		struct selector *s;
		struct slu_err err;

		CHECK_EQ(0, selector_new(&s, slice_of(cases[i].json), noon, &err), err.text);
		CHECK_EQ(cases[i].want, selector_cost(s), cases[i].json);
		selector_free(s);
	}
}

TORTURE(selectors_survive_a_lack_of_memory)
{
	struct selector *s;
	struct slu_err err;
	bool fits;
	int rc;

	rc = selector_new(&s, SLICE("{\"prefix\":{\"field\":\"/msg\",\"value\":\"Timeo\"}}"), noon, &err);
	if (rc == 0) {
		rc = selector_match(s, slice_of(document), NULL, &fits, &err);
		CHECK(rc || fits);
	}
	CHECK(rc == 0 || rc == SLU_ENOMEM);
	selector_free(s);
}
