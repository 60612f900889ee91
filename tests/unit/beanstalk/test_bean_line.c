#include "test.h"

#include "beanstalk/line.h"

#include <stdio.h>

TEST(lines_that_are_read)
{
	static const struct {
		const char *line;
		enum bean_command command;
		uint64_t numbers[BEAN_ARGS];
		const char *tube;
	} cases[] = {
		{ "put 1 2 3 4", BEAN_PUT, { 1, 2, 3, 4 }, "" },
		{ "put 4294967295 0 0 0", BEAN_PUT, { UINT32_MAX }, "" },
		{ "use mail", BEAN_USE, { 0 }, "mail" },
		{ "watch  two-spaces", BEAN_WATCH, { 0 }, "two-spaces" },
		{ "reserve", BEAN_RESERVE, { 0 }, "" },
		{ "reserve-with-timeout 10", BEAN_RESERVE_FOR, { 10 }, "" },
		{ "delete 18446744073709551615", BEAN_DELETE, { UINT64_MAX }, "" },
		{ "release 1 2 3", BEAN_RELEASE, { 1, 2, 3 }, "" },
		{ "pause-tube mail 60", BEAN_PAUSE, { 60 }, "mail" },
		{ "quit", BEAN_QUIT, { 0 }, "" },
	};

	EACH(i, cases) {
		struct bean_line line;

		CHECK_EQ(BEAN_OK, bean_line_parse(slice_of(cases[i].line), &line), cases[i].line);
		CHECK_EQ(cases[i].command, line.command, cases[i].line);
		for (unsigned n = 0; n < BEAN_ARGS; n++)
			CHECK_EQ(cases[i].numbers[n], line.numbers[n], cases[i].line);
		CHECK(slice_eq(slice_of(cases[i].tube), line.tube));
	}
}

TEST(lines_that_are_refused)
{
	static const struct {
		struct slice line;
		enum bean_error error;
	} cases[] = {
		{ SLICE(""), BEAN_UNKNOWN },
		{ SLICE(" reserve"), BEAN_UNKNOWN },
		{ SLICE("puts 1 2 3 4"), BEAN_UNKNOWN },
		{ SLICE("RESERVE"), BEAN_UNKNOWN },
		{ SLICE("put 1 2 3"), BEAN_BAD_FORMAT },
		{ SLICE("put 1 2 3 4 5"), BEAN_BAD_FORMAT },
		{ SLICE("put 1 2 3 4 "), BEAN_BAD_FORMAT },
		{ SLICE("put 1 2 3 +4"), BEAN_BAD_FORMAT },
		{ SLICE("put 4294967296 2 3 4"), BEAN_BAD_FORMAT },
		{ SLICE("delete 18446744073709551616"), BEAN_BAD_FORMAT },
		{ SLICE("delete"), BEAN_BAD_FORMAT },
		{ SLICE("use"), BEAN_BAD_FORMAT },
		{ SLICE("use a\0b"), BEAN_BAD_FORMAT },
		{ SLICE("GET / HTTP/1.1"), BEAN_HTTP },
		{ SLICE("POST /x"), BEAN_HTTP },
	};

	EACH(i, cases) {
		struct bean_line line;

		CHECK_EQ(cases[i].error, bean_line_parse(cases[i].line, &line), cases[i].line.p);
	}
}

TEST(ids_of_node_0_fit_into_53_bits_and_come_back)
{
	static const uint64_t ids[] = { 1, 4095, 1ull << 22, 379999999999ull << 22 | 17, ((1ull << 41) - 1) << 22 | 4095 };

	EACH(i, ids) {
		CHECK(bean_id_out(ids[i]) < 1ull << 53);
		CHECK_EQ(ids[i], bean_id_in(bean_id_out(ids[i])));
	}
}

TEST(ids_of_other_nodes_are_sent_whole)
{
	const uint64_t id = 90000000000ull << 22 | 5 << 12 | 9;

	CHECK_EQ(id, bean_id_out(id));
	CHECK_EQ(id, bean_id_in(id));
	CHECK_EQ(0, bean_id_in(UINT64_MAX));
	CHECK_EQ(0, bean_id_in(0));
}
