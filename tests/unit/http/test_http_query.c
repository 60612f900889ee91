#include "test.h"

#include "http/query.h"

#include <stdlib.h>

/* All parameters as "[name|value]", and the code that ended them. The memory for them has exactly
 * `room` bytes. */
static const char *
read_all(struct slice encoded, size_t room, struct buf *out)
{
	char *text = malloc(room ? room : 1);
	struct query_param p = { 0 };
	struct query q;

	CHECK(text);
	buf_clear(out);
	query_init(&q, encoded, text, room);
	while (query_next(&q, &p)) {
		buf_putc(out, '[');
		buf_put(out, p.name.p, p.name.n);
		buf_putc(out, '|');
		buf_put(out, p.value.p, p.value.n);
		buf_putc(out, ']');
	}
	buf_puts(out, slu_err_row(q.rc)->c_name);
	CHECK(!query_next(&q, &p));
	free(text);
	return buf_str(out);
}

TEST(a_query_is_a_list_of_decoded_parameters)
{
	static const struct {
		const char *in, *want;
	} cases[] = {
		{ "", "SLU_OK" },
		{ "a=1", "[a|1]SLU_OK" },
		{ "a=1&b=2&a=3", "[a|1][b|2][a|3]SLU_OK" },
		{ "a", "[a|]SLU_OK" },
		{ "a=", "[a|]SLU_OK" },
		{ "a=b=c", "[a|b=c]SLU_OK" },
		{ "&&a=1&&b&", "[a|1][b|]SLU_OK" },
		{ "a+b=c+d", "[a b|c d]SLU_OK" },
		{ "a%2Bb=%2b%20", "[a+b|+ ]SLU_OK" },
		{ "a%3D%26=%3d%26", "[a=&|=&]SLU_OK" },
		{ "%c3%BC=%F0%9f%98%80", "[\xc3\xbc|\xf0\x9f\x98\x80]SLU_OK" },
		{ "a=%0d%0A", "[a|\r\n]SLU_OK" },
		{ "a=/?:@", "[a|/?:@]SLU_OK" },
		{ "=", "SLU_EINVAL" },
		{ "a=1&=2&b=3", "[a|1]SLU_EINVAL" },
		{ "a=%", "SLU_EINVAL" },
		{ "a=%4", "SLU_EINVAL" },
		{ "a=%4&b=1", "SLU_EINVAL" },
		{ "a=%4g", "SLU_EINVAL" },
		{ "a=%g4", "SLU_EINVAL" },
		{ "a=%%41", "SLU_EINVAL" },
		{ "a=% 1", "SLU_EINVAL" },
		{ "a=%+1", "SLU_EINVAL" },
		{ "a%00=1", "SLU_EINVAL" },
		{ "a=%00", "SLU_EINVAL" },
		{ "%=1", "SLU_EINVAL" },
	};
	struct buf out;

	buf_init(&out, SIZE_MAX);
	EACH(i, cases)
		CHECK_STR(cases[i].want, read_all(slice_of(cases[i].in), strlen(cases[i].in), &out));
	CHECK_STR("SLU_EINVAL", read_all((struct slice){ "a=\0", 3 }, 3, &out));
	CHECK_STR("SLU_OK", read_all((struct slice){ NULL, 0 }, 0, &out));
	buf_release(&out);
}

TEST(memory_that_is_too_small_is_never_left)
{
	struct buf out;

	buf_init(&out, SIZE_MAX);
	CHECK_STR("[ab|cd][e|f]SLU_OK", read_all(SLICE("ab=c%64&e=f"), 6, &out));
	CHECK_STR("[ab|cd]SLU_ETOOBIG", read_all(SLICE("ab=c%64&e=f"), 5, &out));
	CHECK_STR("SLU_ETOOBIG", read_all(SLICE("ab=cd&e=f"), 1, &out));
	buf_release(&out);
}

TEST(what_was_decoded_stays)
{
	char text[16];
	struct query_param a, b;
	struct query q;

	query_init(&q, SLICE("a=%41&b=%42"), text, sizeof text);
	CHECK(query_next(&q, &a) && query_next(&q, &b) && !query_next(&q, &b));
	CHECK(slice_eq(SLICE("a"), a.name) && slice_eq(SLICE("A"), a.value));
	CHECK(slice_eq(SLICE("b"), b.name) && slice_eq(SLICE("B"), b.value));
	CHECK_EQ(0, q.rc);
}
