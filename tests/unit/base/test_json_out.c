#include "test.h"

#include "base/json/json.h"
#include "base/json/json_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void
write_sample(struct buf *b)
{
	struct json_out w;

	json_out_init(&w, b);
	json_out_object(&w, NULL);
	json_out_u64(&w, "id", UINT64_MAX);
	json_out_i64(&w, "low", INT64_MIN);
	json_out_str(&w, "topic", SLICE("a\"b"));
	json_out_array(&w, "list");
	json_out_bool(&w, NULL, true);
	json_out_bool(&w, NULL, false);
	json_out_null(&w, NULL);
	json_out_object(&w, NULL);
	json_out_close(&w);
	json_out_array(&w, NULL);
	json_out_close(&w);
	json_out_i64(&w, NULL, 0);
	json_out_close(&w);
	json_out_name(&w, SLICE("any\nname"));
	json_out_raw(&w, NULL, SLICE("{ \"kept\" : 1.0 }"));
	json_out_time(&w, "due", 1698400800 * SLU_SEC);
	json_out_base64(&w, "payload", SLICE("hello"));
	json_out_close(&w);
	json_out_end(&w);
}

TEST(the_writer_puts_the_commas)
{
	struct buf b;

	buf_init(&b, 4096);
	write_sample(&b);
	CHECK(!b.failed);
	CHECK_STR("{\"id\":18446744073709551615,\"low\":-9223372036854775808,"
		  "\"topic\":\"a\\\"b\",\"list\":[true,false,null,{},[],0],"
		  "\"any\\nname\":{ \"kept\" : 1.0 },\"due\":\"2023-10-27T10:00:00Z\","
		  "\"payload\":\"aGVsbG8=\"}",
		  buf_str(&b));
	buf_release(&b);
}

TEST(a_stored_value_that_is_no_json_cannot_add_members)
{
	static const struct {
		const char *stored, *written;
	} cases[] = {
		{ "{ \"a\" : 1 }", "{\"v\":{ \"a\" : 1 }}" },
		{ "1", "{\"v\":1}" },
		{ "", "{\"v\":\"\"}" },
		{ "{},\"id\":1", "{\"v\":\"{},\\\"id\\\":1\"}" },
		{ "x", "{\"v\":\"x\"}" },
	};

	EACH(i, cases) {
		struct json_out w;
		struct buf b;

		buf_init(&b, 4096);
		json_out_init(&w, &b);
		json_out_object(&w, NULL);
		json_out_stored(&w, "v", slice_of(cases[i].stored));
		json_out_close(&w);
		json_out_end(&w);
		CHECK_STR(cases[i].written, buf_str(&b));
		buf_release(&b);
	}
}

/* The writer keeps the last two for when they come again. */
TEST(moments_are_written_each_as_it_is_whatever_came_before)
{
	static const unsigned order[] = { 0, 1, 1, 0, 2, 0, 1, 3, 3, 2 };
	static const struct {
		slu_time t;
		const char *text;
	} moments[] = {
		{ 0, "1970-01-01T00:00:00Z" },
		{ 1698400800 * SLU_SEC, "2023-10-27T10:00:00Z" },
		{ 1698400800 * SLU_SEC + 1, "2023-10-27T10:00:00.000000001Z" },
		{ -1, "1969-12-31T23:59:59.999999999Z" },
	};
	char want[40];
	struct json_out w;
	struct buf b;

	buf_init(&b, 1024);
	json_out_init(&w, &b);
	json_out_array(&w, NULL);
	EACH(i, order) {
		const size_t at = b.n + (i > 0);

		json_out_time(&w, NULL, moments[order[i]].t);
		(void)snprintf(want, sizeof want, "\"%s\"", moments[order[i]].text);
		CHECK_STR(want, buf_str(&b) + at);
	}
	json_out_close(&w);
	buf_release(&b);
}

TEST(one_value_is_a_document)
{
	struct json_out w;
	struct buf b;

	buf_init(&b, 16);
	json_out_init(&w, &b);
	json_out_u64(&w, NULL, 0);
	json_out_end(&w);
	CHECK_STR("0", buf_str(&b));
	buf_release(&b);
}

static void
check_number(uint64_t v)
{
	struct json_out w;
	struct buf b;
	char want[24];

	buf_init(&b, 100);
	json_out_init(&w, &b);
	json_out_u64(&w, NULL, v);
	snprintf(want, sizeof want, "%" PRIu64, v);
	CHECK_STR(want, buf_str(&b));
	buf_release(&b);
}

TEST(numbers_of_every_length_have_their_digits)
{
	uint64_t seed = test_seed();

	check_number(UINT64_MAX);
	for (uint64_t ten = 1, i = 0; i < 20; i++, ten *= 10) {
		check_number(ten - 1);
		check_number(ten);
		for (int k = 0; k < 1000; k++)
			check_number(test_random(&seed) % ten);
	}
}

TEST(strings_are_escaped_and_made_valid)
{
	static const struct {
		struct slice text;
		const char *want;
	} cases[] = {
		{ { NULL, 0 }, "\"\"" },
		{ SLICE("plain / <&> \x7f"), "\"plain / <&> \x7f\"" },
		{ SLICE("\"\\\b\f\n\r\t"), "\"\\\"\\\\\\b\\f\\n\\r\\t\"" },
		{ SLICE("a\0b\x01\x1f"), "\"a\\u0000b\\u0001\\u001f\"" },
		{ SLICE("caf\xc3\xa9 \xf0\x9f\x98\x80"), "\"caf\xc3\xa9 \xf0\x9f\x98\x80\"" },
		{ SLICE("\xff"), "\"\xef\xbf\xbd\"" },
		{ SLICE("a\xe2\x82"), "\"a\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ SLICE("\xed\xa0\x80z"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\"" },
		{ SLICE("12345678\n12345678"), "\"12345678\\n12345678\"" },
	};

	EACH(i, cases) {
		struct json_out w;
		struct buf b;

		buf_init(&b, 256);
		json_out_init(&w, &b);
		json_out_str(&w, NULL, cases[i].text);
		CHECK_STR(cases[i].want, buf_str(&b));
		buf_release(&b);
	}
}

/* Whatever bytes go in, a reader takes what comes out. */
TEST(random_bytes_become_valid_strings)
{
	uint64_t seed = test_seed();

	for (int round = 0; round < 20000; round++) {
		unsigned char bytes[40];
		const size_t n = test_random(&seed) % sizeof bytes;
		struct json_out w;
		struct json r;
		struct buf b;

		for (size_t i = 0; i < n; i++)
			bytes[i] = (unsigned char)test_random(&seed);
		buf_init(&b, 1024);
		json_out_init(&w, &b);
		json_out_str(&w, NULL, (struct slice){ (const char *)bytes, n });
		json_init(&r, buf_slice(&b), JSON_DEPTH);
		CHECK_EQ(0, json_end(&r, NULL));
		buf_release(&b);
	}
}

TEST(long_payloads_are_encoded_whole)
{
	enum {
		N = 5000
	};
	static char bytes[N];
	struct json_out w;
	struct buf b;

	buf_init(&b, 16384);
	json_out_init(&w, &b);
	json_out_base64(&w, NULL, (struct slice){ bytes, N });
	CHECK_EQ(2 + (N + 2) / 3 * 4, b.n);
	CHECK_EQ(b.n - 3, strspn(buf_str(&b) + 1, "A"), "padding at the end alone");
	buf_release(&b);
}

TEST(levels_may_be_as_many_as_the_reader_takes)
{
	struct json_out w;
	struct buf b;
	struct json r;

	buf_init(&b, 4096);
	json_out_init(&w, &b);
	for (unsigned i = 0; i < JSON_OUT_DEPTH; i++)
		json_out_array(&w, NULL);
	for (unsigned i = 0; i < JSON_OUT_DEPTH; i++)
		json_out_close(&w);
	json_out_end(&w);
	json_init(&r, buf_slice(&b), JSON_DEPTH);
	CHECK_EQ(0, json_end(&r, NULL));
	buf_release(&b);
}

TORTURE(a_buffer_that_runs_out_stays_failed)
{
	struct buf b;

	buf_init(&b, 4096);
	write_sample(&b);
	if (!b.failed)
		CHECK_CONTAINS("aGVsbG8=\"}", buf_str(&b));
	buf_release(&b);
}

TEST(a_limit_fails_the_buffer_and_nothing_else)
{
	struct buf b;

	buf_init(&b, 50);
	write_sample(&b);
	CHECK(b.failed);
	CHECK(b.n <= 50);
	buf_release(&b);
}
