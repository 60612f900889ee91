/*
 * test_redis_reply.c - which replies of a server fit which shape.
 */
#include "test.h"

#include "engine/redis/reply.h"

/* NULL: the reader has refused it. */
static redisReply *
read_reply(const char *wire)
{
	redisReader *const reader = reply_reader();
	void *reply = NULL;

	CHECK_EQ(REDIS_OK, redisReaderFeed(reader, wire, strlen(wire)));
	if (redisReaderGetReply(reader, &reply) != REDIS_OK)
		reply = NULL;
	redisReaderFree(reader);
	return reply;
}

TEST(a_reply_fits_its_shape_or_is_malformed)
{
	static const struct {
		const char *wire, *shape;
		bool fits;
	} cases[] = {
		{ ":5\r\n", "n", true },
		{ ":-5\r\n", "n", true },
		{ ":-5\r\n", "u", false },
		{ "$2\r\n17\r\n", "u", true },
		{ "+17\r\n", "u", true },
		{ "$0\r\n\r\n", "u", true },
		{ "$-1\r\n", "u", true },
		{ "$2\r\n1x\r\n", "u", false },
		{ "$1\r\n-\r\n", "n", false },
		{ "$2\r\n 1\r\n", "n", false },
		{ "$16\r\n9007199254740992\r\n", "u", true },
		{ "$16\r\n9007199254740993\r\n", "u", false },
		{ "$19\r\n9223372036854775807\r\n", "i", true },
		{ "$19\r\n9223372036854775808\r\n", "i", false },
		{ "$20\r\n-9223372036854775808\r\n", "n", true },
		{ "$20\r\n-9223372036854775809\r\n", "n", false },
		{ ":2147483647\r\n", "p", true },
		{ ":2147483648\r\n", "p", false },
		{ "$3\r\nabc\r\n", "t", true },
		{ "+OK\r\n", "t", true },
		{ "-ERR\r\n", "t", false },
		{ "-5\r\n", "n", false },
		{ ":5\r\n", "t", false },
		{ "$-1\r\n", "t", false },
		{ "$-1\r\n", "T", true },
		{ "*-1\r\n", "[]", false },
		{ "*0\r\n", "[]", true },
		{ "$0\r\n\r\n", "[]", false },
		{ "*2\r\n:1\r\n$1\r\na\r\n", "[nt]", true },
		{ "*1\r\n:1\r\n", "[nt]", false },
		{ "*3\r\n:1\r\n$1\r\na\r\n:2\r\n", "[nt]", false },
		{ "*1\r\n:1\r\n", "[n(nt)]", true },
		{ "*3\r\n:1\r\n:2\r\n$1\r\na\r\n", "[n(nt)]", true },
		{ "*4\r\n:1\r\n:2\r\n$1\r\na\r\n:3\r\n", "[n(nt)]", false },
		{ "*0\r\n", "[n(nt)]", false },
		{ "*2\r\n*0\r\n*1\r\n:7\r\n", "[[][(n)]]", true },
		{ "*2\r\n*0\r\n*1\r\n$1\r\nx\r\n", "[[][(n)]]", false },
		{ ":1\r\n", "{[n]|n}", true },
		{ "*1\r\n:1\r\n", "{[n]|n}", true },
		{ "*1\r\n*1\r\n:1\r\n", "{[n]|n|[[t]]}", false },
		{ "*2\r\n:1\r\n*0\r\n", "[n.]", true },
	};

	EACH(i, cases) {
		redisReply *const reply = read_reply(cases[i].wire);

		CHECK(reply);
		CHECK_EQ(cases[i].fits, reply_fits(reply, cases[i].shape), cases[i].wire);
		freeReplyObject(reply);
	}
}

TEST(numbers_are_what_they_say_in_either_spelling)
{
	static const struct {
		const char *wire;
		int64_t want;
	} cases[] = {
		{ ":42\r\n", 42 },
		{ "$2\r\n42\r\n", 42 },
		{ "$3\r\n-42\r\n", -42 },
		{ "$0\r\n\r\n", 0 },
		{ "$-1\r\n", 0 },
		{ "$20\r\n-9223372036854775808\r\n", INT64_MIN },
	};

	EACH(i, cases) {
		redisReply *const reply = read_reply(cases[i].wire);

		CHECK_EQ(cases[i].want, reply_int(reply), cases[i].wire);
		freeReplyObject(reply);
	}
}

TEST(an_array_that_says_it_has_too_many_elements_is_refused_at_once)
{
	CHECK(!read_reply("*2147483647\r\n"));
	CHECK(!read_reply("*16777217\r\n:1\r\n"));
	CHECK(!read_reply("*1\r\n*2000000000\r\n"));
}
