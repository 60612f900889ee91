#include "test.h"

#include "base/json/json_table.h"

struct item {
	struct slice topic;
	struct slice payload;
	struct slice note;
	struct slice attributes;
	slu_time deliver_after;
	int64_t priority;
	int64_t small;
	uint64_t id;
	double rate;
	bool keep;
};

static const struct json_field fields[] = {
	JSON_FIELD(text, struct item, topic, .required = true, .min = 1, .max = 8),
	JSON_FIELD(base64, struct item, payload),
	JSON_FIELD(raw, struct item, note),
	JSON_FIELD(raw, struct item, attributes),
	JSON_FIELD(time, struct item, deliver_after),
	JSON_FIELD(i64, struct item, priority, .min = -1, .max = 10),
	JSON_FIELD(i64, struct item, small, .min = INT32_MIN, .max = INT32_MAX),
	JSON_FIELD(u64, struct item, id),
	JSON_FIELD(double, struct item, rate),
	JSON_FIELD(bool, struct item, keep),
};

enum {
	TOPIC,
	PAYLOAD,
	NOTE,
	ATTRIBUTES,
	DELIVER_AFTER,
	PRIORITY,
	SMALL,
	ID,
	RATE,
	KEEP
};

static char room[4096];

static int
decode(const char *text, enum json_unknown unknown, struct item *item, uint64_t *given,
       struct slu_err *err)
{
	struct json r;

	json_init(&r, slice_of(text), JSON_DEPTH);
	json_room(&r, room, sizeof room);
	*given = json_fields(&r, fields, COUNT(fields), unknown, item);
	return json_end(&r, err);
}

TEST(a_table_fills_a_struct)
{
	struct item item = { 0 };
	struct slu_err err;
	uint64_t given;

	if (decode("{\"topic\":\"a\\/b\",\"payload\":\"aGk\\u003d\",\"note\":\"x\\n\","
		   "\"attributes\":{ \"a\" : 1 },\"deliver_after\":\"1970-01-01T00:00:01Z\","
		   "\"priority\":-1,\"small\":-2147483648,\"id\":18446744073709551615,"
		   "\"rate\":0.25,\"keep\":true}",
		   JSON_STRICT, &item, &given, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
	CHECK_EQ((1 << COUNT(fields)) - 1, given);
	CHECK(slice_eq(SLICE("a/b"), item.topic));
	CHECK(slice_eq(SLICE("hi"), item.payload));
	CHECK(slice_eq(item.note, SLICE("\"x\\n\"")));
	CHECK(slice_eq(SLICE("{ \"a\" : 1 }"), item.attributes));
	CHECK_EQ(SLU_SEC, item.deliver_after);
	CHECK_EQ(-1, item.priority);
	CHECK_EQ(INT32_MIN, item.small);
	CHECK(item.id == UINT64_MAX);
	CHECK(item.rate == 0.25);
	CHECK(item.keep);
}

TEST(what_is_left_out_or_null_keeps_its_default)
{
	struct item item = { .priority = 5, .id = 7 };
	uint64_t given;

	CHECK_EQ(0, decode("{\"id\":null,\"topic\":\"t\"}", JSON_STRICT, &item, &given, NULL));
	CHECK_EQ(1 << TOPIC, given);
	CHECK_EQ(5, item.priority);
	CHECK_EQ(7, item.id);
}

TEST(unknown_members_are_skipped_or_refused)
{
	static const char text[] = "{\"x\":{\"topic\":[1]},\"topic\":\"t\",\"y\":0}";
	struct item item = { 0 };
	struct slu_err err;
	uint64_t given;

	CHECK_EQ(0, decode(text, JSON_LENIENT, &item, &given, &err));
	CHECK(slice_eq(SLICE("t"), item.topic));
	CHECK_EQ(SLU_EINVAL, decode(text, JSON_STRICT, &item, &given, &err));
	CHECK_STR("line 1, column 2 (byte 1): expected no member \"x\"", err.text);
	CHECK_EQ(0, given);
	CHECK_EQ(SLU_EINVAL, decode("{\"x\":nope,\"topic\":\"t\"}", JSON_LENIENT, &item,
				    &given, NULL));
}

TEST(a_refusal_names_the_member)
{
	static const struct {
		const char *text;
		const char *want;
	} cases[] = {
		{ "{}", "(byte 0): expected a member \"topic\"" },
		{ "{\"topic\":null}", "(byte 9): topic: expected a string, not null" },
		{ "{\"topic\":\"\"}", "(byte 9): topic: expected at least 1 bytes" },
		{ "{\"topic\":\"123456789\"}", "(byte 9): topic: expected at most 8 bytes" },
		{ "{\"topic\":\"a\\u0000\"}", "topic: expected a string without \\u0000" },
		{ "{\"topic\":\"a\",\"topic\":\"a\"}",
		  "(byte 13): topic: expected each member once" },
		{ "{\"id\":null,\"\\u0069d\":1}", "(byte 11): id: expected each member once" },
		{ "{\"id\":1,\"id\":1}", "(byte 8): id: expected each member once" }, /* too small for a slice */
		{ "{\"priority\":11}",
		  "(byte 12): priority: expected a whole number from -1 to 10" },
		{ "{\"priority\":1.0}", "priority: expected a whole number from -1 to 10" },
		{ "{\"priority\":\"1\"}", "priority: expected a number, not a string" },
		{ "{\"small\":2147483648}",
		  "small: expected a whole number from -2147483648 to 2147483647" },
		{ "{\"id\":-1}", "id: expected a whole number from 0 to 18446744073709551615" },
		{ "{\"rate\":1e999}", "rate: expected a number that a double can hold" },
		{ "{\"keep\":1}", "keep: expected true or false, not a number" },
		{ "{\"payload\":\"aGk\"}", "payload: expected base64 in groups of four" },
		{ "{\"payload\":5}", "payload: expected a string, not a number" },
		{ "{\"deliver_after\":\"tomorrow\"}",
		  "deliver_after: \"tomorrow\": expected a time as" },
		{ "{\"deliver_after\":[]}", "deliver_after: expected a string, not an array" },
		{ "{\"deliver_after\":\"2023-10-27T10:00:00."
		  "0000000000000000000000000000000000000000000Z \"}",
		  "deliver_after: expected a time, not 65 bytes" },
		{ "{\"note\":}", "(byte 8): note: expected a value" },
		{ "[]", "(byte 0): expected an object, not an array" },
	};

	EACH(i, cases) {
		struct item item = { 0 };
		struct slu_err err;
		uint64_t given;

		CHECK_EQ(SLU_EINVAL,
			 decode(cases[i].text, JSON_STRICT, &item, &given, &err),
			 cases[i].text);
		CHECK_CONTAINS(cases[i].want, err.text);
		CHECK_EQ(0, given);
	}
}

TEST(payloads_need_room)
{
	struct item item = { 0 };
	struct slu_err err;
	struct json r;

	json_init(&r, SLICE("{\"topic\":\"t\",\"payload\":\"AAAA\"}"), JSON_DEPTH);
	json_room(&r, room, 3);
	(void)json_fields(&r, fields, COUNT(fields), JSON_STRICT, &item);
	CHECK_EQ(SLU_ETOOBIG, json_end(&r, &err));
}

/* What an enqueue of many items is: one pass, no memory. */
TEST(ten_thousand_items_are_read_in_one_pass)
{
	enum {
		ITEMS = 10000
	};
	struct buf b;
	struct json r;
	int64_t sum = 0;

	buf_init(&b, 1 << 20);
	for (int i = 0; i < ITEMS; i++)
		buf_printf(&b, "%s{\"topic\":\"t\",\"priority\":%d,\"payload\":\"AQID\"}",
			   i ? "," : "[", i % 10);
	buf_puts(&b, "]");

	json_init(&r, buf_slice(&b), JSON_DEPTH);
	json_array(&r);
	while (json_element(&r)) {
		struct item item = { 0 };

		json_room(&r, room, sizeof room);
		CHECK_EQ(1 << TOPIC | 1 << PRIORITY | 1 << PAYLOAD,
			 json_fields(&r, fields, COUNT(fields), JSON_STRICT, &item));
		sum += item.priority;
	}
	CHECK_EQ(0, json_end(&r, NULL));
	CHECK_EQ(45 * ITEMS / 10, sum);
	buf_release(&b);
}

/* --- Members that repeat ---------------------------------------------------------- */

struct place {
	struct slice space;
	struct slice queue;
	struct slice note;
	uint64_t id;
};

static const struct json_field place_fields[] = {
	JSON_FIELD(u64, struct place, id),
	JSON_FIELD(text, struct place, space, .required = true, .repeats = true),
	JSON_FIELD(text, struct place, queue, .repeats = true, .also = { "topic", 5 }),
	JSON_FIELD(text, struct place, note),
};

/* Reads an array with and without `again`: the same values, or the same error. */
static void
check_same(const char *label, const char *text)
{
	static char other_room[4096];
	struct json_habit habit = { 0 };
	struct json_again again = { .habit = &habit };
	struct slu_err err = { 0 }, other_err = { 0 };
	struct json r, s;
	int rc;

	json_init(&r, slice_of(text), JSON_DEPTH);
	json_room(&r, room, sizeof room);
	json_init(&s, slice_of(text), JSON_DEPTH);
	json_room(&s, other_room, sizeof other_room);
	json_array(&r);
	json_array(&s);
	while (json_element(&r)) {
		struct place a = { 0 }, b = { 0 };

		CHECK(json_element(&s));
		CHECK_EQ(json_fields(&r, place_fields, COUNT(place_fields), JSON_STRICT, &a),
			 json_fields_again(&s, place_fields, COUNT(place_fields), JSON_STRICT, &again, &b),
			 label);
		CHECK(slice_eq(a.space, b.space) && slice_eq(a.queue, b.queue));
		CHECK(slice_eq(a.note, b.note) && a.id == b.id);
		CHECK(r.value == s.value && r.p == s.p);
	}
	CHECK(!json_element(&s));
	rc = json_end(&r, &err);
	CHECK_EQ(rc, json_end(&s, &other_err), label);
	CHECK_STR(err.text, other_err.text);
}

TEST(members_that_repeat_are_read_like_others)
{
	static const struct {
		const char *label, *text;
	} cases[] = {
		{ "the same members first", "[{\"space\":\"a\",\"queue\":\"b\",\"id\":1},"
					    "{\"space\":\"a\",\"queue\":\"b\",\"id\":2}]" },
		{ "the same beginning", "[{\"space\":\"a\",\"queue\":\"b\",\"note\":\"x\",\"id\":1},"
					"{\"space\":\"a\",\"queue\":\"b\",\"note\":\"y\",\"id\":2},"
					"{\"space\":\"a\",\"queue\":\"b\",\"note\":null},"
					"{\"space\":\"a\",\"queue\":\"b\",\"note\":\"z\" ,\"id\": 4 },"
					"{\"space\":\"a\",\"queue\":\"c\",\"note\":\"z\",\"id\":5},"
					"{\"space\":\"a\",\"queue\":\"c\",\"id\":6},"
					"{\"space\":\"a\",\"queue\":\"c\",\"id\":7,\"note\":\"w\"}]" },
		{ "the same beginning, then an error", "[{\"space\":\"a\",\"id\":1},{\"space\":\"a\",\"id\":2},"
						       "{\"space\":\"a\",\"id\":-3}]" },
		{ "the same beginning, then the end", "[{\"space\":\"a\",\"id\":1},{\"space\":\"a\",\"id\":2},"
						      "{\"space\":\"a\",\"id\":" },
		{ "the same beginning, and a member again", "[{\"space\":\"a\",\"id\":1},{\"space\":\"a\",\"id\":2},"
							    "{\"space\":\"a\",\"id\":3,\"space\":\"a\"}]" },
		{ "the same members later", "[{\"id\":1,\"space\":\"a\",\"queue\":\"b\"},"
					    "{\"id\":2,\"space\":\"a\",\"queue\":\"b\"}]" },
		{ "another queue", "[{\"space\":\"a\",\"queue\":\"b\"},{\"space\":\"a\",\"queue\":\"c\"},"
				   "{\"space\":\"a\",\"queue\":\"c\"},{\"space\":\"a\",\"queue\":\"b\"}]" },
		{ "a longer value", "[{\"space\":\"a\"},{\"space\":\"ab\"},{\"space\":\"a\"}]" },
		{ "a member is missing", "[{\"space\":\"a\",\"queue\":\"b\"},{\"queue\":\"b\"}]" },
		{ "no queue any more", "[{\"space\":\"a\",\"queue\":\"b\"},{\"space\":\"a\",\"id\":2}]" },
		{ "null", "[{\"space\":\"a\",\"queue\":null},{\"space\":\"a\",\"queue\":null,\"id\":2}]" },
		{ "the second name", "[{\"space\":\"a\",\"topic\":\"b\"},{\"space\":\"a\",\"topic\":\"b\",\"id\":1}]" },
		{ "both names", "[{\"topic\":\"b\",\"queue\":\"b\",\"space\":\"a\"},"
				"{\"topic\":\"b\",\"queue\":\"b\",\"space\":\"a\"}]" },
		{ "both names differ", "[{\"space\":\"a\",\"queue\":\"b\"},"
				       "{\"topic\":\"c\",\"space\":\"a\",\"queue\":\"b\"}]" },
		{ "twice in one object", "[{\"space\":\"a\"},{\"space\":\"a\",\"space\":\"a\"}]" },
		{ "twice, with a member between", "[{\"space\":\"a\"},{\"space\":\"a\",\"id\":1,\"space\":\"a\"}]" },
		{ "apart, then twice", "[{\"space\":\"a\",\"id\":1},{\"id\":1,\"space\":\"a\",\"id\":1}]" },
		{ "members between", "[{\"space\":\"a\",\"id\":1,\"queue\":\"b\"},{\"space\":\"a\",\"id\":2,\"queue\":\"c\"}]" },
		{ "escapes", "[{\"space\":\"\\u0061\",\"queue\":\"b\"},{\"space\":\"\\u0061\",\"queue\":\"b\"}]" },
		{ "white space", "[{ \"space\" : \"a\" , \"queue\":\"b\" },{ \"space\" : \"a\" , \"queue\":\"b\" },"
				 "{\"space\" : \"a\" , \"queue\":\"b\"}]" },
		{ "an error behind them", "[{\"space\":\"a\"},{\"space\":\"a\",\"id\":true}]" },
		{ "an error in them", "[{\"space\":1},{\"space\":1}]" },
		{ "the end of the text", "[{\"space\":\"a\"},{\"space\":\"a\"" },
		{ "no comma", "[{\"space\":\"a\"},{\"space\":\"a\"\"id\":1}]" },
		{ "a comma too many", "[{\"id\":1,\"space\":\"a\"},{,\"space\":\"a\"}]" },
	};

	EACH(i, cases)
		check_same(cases[i].label, cases[i].text);
}
