/*
 * The reader against jansson: documents broken at random get the same verdict and
 * have the same values.
 */
#include "test.h"

#include "json_oracle.h"

#include "base/json/json.h"

#include <stdio.h>

enum {
	ROUNDS = 200000,
	MOST = 512
};

static const char *const seeds[] = {
	"[{\"namespace\":\"a\",\"topic\":\"b\",\"priority\":1,\"payload\":\"aGVsbG8=\"}]",
	"[{\"deliver_after\":\"2023-10-27T10:00:00Z\"},{\"x\":[[],{},null,true,false]}]",
	"[0,-0,1,-1,10,1.5,-0.0,1e3,1E-3,9223372036854775807,-9223372036854775808,1e308]",
	"[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\",\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\\u0000\"]",
	"{\"caf\xc3\xa9\":\"\xe2\x82\xac\xf0\x9f\x98\x80\",\"\\u0061\":{\"b\":{\"c\":[1,2,[3]]}}}",
	" [ 1 , { \"a\" : \"b\" , \"c\" : [ ] } , \"\" ] ",
	"\"just a string\"",
	"-12.5e+3",
};

/* Bytes that matter to the grammar, so that changes hit it. */
static const char spice[] = "{}[]:,\"\\/ \t\n\r0123456789-+.eEtrufalsn\x01\x1f\x7f\x80\xbf"
			    "\xc3\xa9\xed\xa0\xf0\x90\xf4\xff"
			    "dD8cC";

static size_t
mutate(char *text, size_t n, uint64_t *seed)
{
	const size_t at = n > 0 ? test_random(seed) % n : 0;
	const char c = spice[test_random(seed) % (sizeof spice - 1)];

	switch (test_random(seed) % 4) {
	case 0: /* change */
		if (n > 0)
			text[at] = c;
		return n;
	case 1: /* insert */
		if (n == MOST)
			return n;
		memmove(text + at + 1, text + at, n - at);
		text[at] = c;
		return n + 1;
	case 2: /* remove */
		if (n == 0)
			return 0;
		memmove(text + at, text + at + 1, n - at - 1);
		return n - 1;
	default: /* cut */
		return test_random(seed) % 8 ? n : at;
	}
}

static bool
is_whole(struct slice raw)
{
	return !memchr(raw.p, '.', raw.n) && !memchr(raw.p, 'e', raw.n) &&
	       !memchr(raw.p, 'E', raw.n);
}

/* Like jansson, this refuses a number that C has no type for. */
static void
tell_number(struct buf *lines, struct json *r, struct slice raw)
{
	struct json number;

	json_init(&number, raw, 0);
	if (is_whole(raw))
		buf_printf(lines, "int %" PRId64 "\n", json_i64(&number, INT64_MIN, INT64_MAX));
	else
		buf_printf(lines, "real %a\n", json_double(&number));
	if (json_end(&number, NULL))
		json_fail(r, SLU_EINVAL, raw.p, "expected a smaller number");
}

static void
tell_event(struct buf *lines, struct json *r, const struct json_event *e)
{
	char room[MOST];

	if (e->type == JSON_NUMBER)
		tell_number(lines, r, e->raw);
	else if (e->type == JSON_STRING)
		oracle_text(lines, "str", json_str_text(&e->str, room));
	else if (e->type == JSON_MEMBER)
		oracle_text(lines, "key", json_str_text(&e->str, room));
	else
		buf_printf(lines, "%.*s\n", (int)e->raw.n, e->raw.p);
}

/* The same lines from our reader; false when it refuses the document. */
static bool
read_lines(struct slice document, struct buf *lines)
{
	struct json_event e;
	struct json r;

	json_init(&r, document, JSON_DEPTH);
	while (json_next(&r, &e))
		tell_event(lines, &r, &e);
	return json_end(&r, NULL) == 0;
}

/* Returns whether both took it. */
static bool
check_one(const char *text, size_t n)
{
	const struct slice document = { text, n };
	struct buf ours, theirs;
	enum oracle oracle;
	bool taken;

	buf_init(&ours, 1 << 16);
	buf_init(&theirs, 1 << 16);
	taken = read_lines(document, &ours);
	oracle = json_oracle(document, &theirs);
	if (oracle != ORACLE_DIFFERS && taken != (oracle == ORACLE_TAKES))
		test_fail(__FILE__, __LINE__, "%s: %.*s", taken ? "took" : "refused",
			  (int)n, text);
	if (oracle == ORACLE_TAKES)
		CHECK_STR(buf_str(&theirs), buf_str(&ours));
	buf_release(&ours);
	buf_release(&theirs);
	return oracle == ORACLE_TAKES;
}

TEST_LIMIT(the_verdict_and_the_values_are_janssons, 240)
{
	uint64_t seed = test_seed();
	size_t taken = 0;

	EACH(i, seeds)
		CHECK(check_one(seeds[i], strlen(seeds[i])));
	for (size_t round = 0; round < ROUNDS; round++) {
		const char *from = seeds[test_random(&seed) % COUNT(seeds)];
		const size_t changes = 1 + test_random(&seed) % 4;
		size_t n = strlen(from);
		char text[MOST + 1];

		memcpy(text, from, n);
		for (size_t i = 0; i < changes; i++)
			n = mutate(text, n, &seed);
		taken += check_one(text, n);
	}
	printf("# %zu of %d were valid\n", taken, ROUNDS);
	CHECK(taken > ROUNDS / 100 && taken < ROUNDS / 2);
}
