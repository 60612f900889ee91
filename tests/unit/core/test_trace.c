#include "test.h"

#include "core/trace.h"

#define GOOD "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static const struct {
	const char *label;
	const char *text;
	bool good;
} parents[] = {
	{ "version 00", "00-" GOOD, true },
	{ "a later version", "cc-" GOOD, true },
	{ "a later version with more behind", "01-" GOOD "-what-ever", true },
	{ "flags nobody knows", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff", true },
	{ "nothing", "", false },
	{ "cut off", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0", false },
	{ "version ff", "ff-" GOOD, false },
	{ "version 00 with more behind", "00-" GOOD "-x", false },
	{ "a later version that goes on without a dash", "01-" GOOD "00", false },
	{ "capital letters", "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", false },
	{ "no trace id", "00-00000000000000000000000000000000-00f067aa0ba902b7-01", false },
	{ "no parent id", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", false },
	{ "a dash too early", "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01", false },
	{ "no hex", "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01", false },
	{ "a version that is no number", "0x-" GOOD, false },
};

/* */
TEST(a_traceparent_is_taken_as_the_standard_says)
{
	char out[TRACE_PARENT];

	for (size_t i = 0; i < COUNT(parents); i++) {
		CHECK_EQ(parents[i].good, trace_parent(slice_of(parents[i].text), out), parents[i].label);
		if (parents[i].good)
			CHECK(memcmp(out, "00-4bf92f3577b34da6", 19) == 0);
	}
}

static const struct {
	const char *label;
	const char *text;
	bool good;
} states[] = {
	{ "one", "vendor=opaque", true },
	{ "two with blanks", "a=1 , tenant@b-c/d*_=x y", true },
	{ "an empty member", "a=1,,b=2", true },
	{ "no value", "a=", false },
	{ "no key", "=1", false },
	{ "no equals", "a", false },
	{ "two equals", "a=1=2", false },
	{ "capital key", "A=1", false },
	{ "control character", "a=1\x01", false },
	{ "beyond ASCII", "a=\xc3\xa4", false },
	{ "empty", "", false },
};

TEST(a_tracestate_is_taken_whole_or_not_at_all)
{
	for (size_t i = 0; i < COUNT(states); i++)
		CHECK_EQ(states[i].good, trace_state(slice_of(states[i].text)), states[i].label);
}

TEST(a_tracestate_is_bounded_in_bytes_and_members)
{
	char text[TRACE_STATE_MAX + 1];
	char members[TRACE_MEMBERS_MAX * 4 + 4] = "";

	memset(text, 'x', sizeof text);
	text[1] = '=';
	CHECK(trace_state((struct slice){ text, TRACE_STATE_MAX }));
	CHECK(!trace_state((struct slice){ text, TRACE_STATE_MAX + 1 }));
	for (int i = 0; i < TRACE_MEMBERS_MAX; i++)
		strcat(members, i ? ",a=1" : "a=1");
	CHECK(trace_state(slice_of(members)));
	strcat(members, ",a=1");
	CHECK(!trace_state(slice_of(members)));
}
