#include "http/query.h"

void
query_init(struct query *q, struct slice encoded, char *out, size_t room)
{
	*q = (struct query){ .rest = encoded, .room = room };
	q->out = out;
}

/* The bytes before the first `at`, or all. */
static struct slice
upto(struct slice s, char at)
{
	const char *end = s.n > 0 ? memchr(s.p, at, s.n) : NULL;

	return (struct slice){ s.p, end ? (size_t)(end - s.p) : s.n };
}

/* The byte of %XX, or 0 if it is refused. */
static char
escaped(struct slice s)
{
	const int high = s.n >= 3 ? ascii_hex(s.p[1]) : -1;
	const int low = s.n >= 3 ? ascii_hex(s.p[2]) : -1;

	return high < 0 || low < 0 ? '\0' : (char)(high << 4 | low);
}

static int
decode(struct query *q, struct slice in, struct slice *out)
{
	*out = (struct slice){ q->out, 0 };
	while (in.n > 0) {
		const bool is_escape = in.p[0] == '%';
		const size_t used = is_escape ? 3 : 1;
		char c = is_escape ? escaped(in) : in.p[0];

		if (c == '\0')
			return SLU_EINVAL;
		if (q->room == 0)
			return SLU_ETOOBIG;
		if (c == '+' && !is_escape)
			c = ' ';
		*q->out++ = c;
		q->room--;
		out->n++;
		slice_skip(&in, used);
	}
	return 0;
}

bool
query_next(struct query *q, struct query_param *param)
{
	struct slice name, value;

	while (q->rest.n > 0 && q->rest.p[0] == '&')
		slice_skip(&q->rest, 1);
	if (q->rc || q->rest.n == 0)
		return false;
	value = upto(q->rest, '&');
	slice_skip(&q->rest, value.n);
	name = upto(value, '=');
	slice_skip(&value, name.n < value.n ? name.n + 1 : name.n);
	q->rc = name.n > 0 ? decode(q, name, &param->name) : SLU_EINVAL;
	if (q->rc == 0)
		q->rc = decode(q, value, &param->value);
	return q->rc == 0;
}
