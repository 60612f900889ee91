#include "peers/peer.h"

void
held_add(struct peer_conn *c, struct slice handle)
{
	buf_putc(&c->held, (char)handle.n);
	buf_put(&c->held, handle.p, handle.n);
	c->held_count++;
	c->taken++;
}

struct slice
held_pop(struct peer_conn *c)
{
	const char *at = c->held.p + c->held_first;
	const struct slice handle = { at + 1, (unsigned char)*at };

	c->held_first += 1 + handle.n;
	if (--c->held_count == 0) {
		c->held_first = 0;
		buf_clear(&c->held); /* the bytes stay until the next one is added */
	}
	return handle;
}

int
peer_refused(const char *what, struct slice answer, struct slu_err *err)
{
	return slu_fail(err, SLU_EFAILED, "%s: %.*s", what,
			(int)(answer.n < 160 ? answer.n : 160), answer.p);
}

int
peer_check(const struct peer_conn *c, size_t payload_bytes, struct slu_err *err)
{
	if (payload_bytes == c->work->payload.n)
		return 0;
	return slu_fail(err, SLU_EFAILED, "took a message of %zu bytes, put %zu", payload_bytes,
			c->work->payload.n);
}

bool
peer_line(struct slice *in, struct slice *line)
{
	struct slice rest = *in;

	if (!slice_cut(&rest, '\n', line))
		return false;
	line->n -= line->n > 0 && line->p[line->n - 1] == '\r';
	*in = rest;
	return true;
}

uint64_t
peer_number(struct slice s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++)
		n = n * 10 + (uint64_t)(s.p[i] - '0');
	return n;
}

void
peer_put_number(struct buf *out, uint64_t n)
{
	char digits[20];
	size_t at = sizeof digits;

	do
		digits[--at] = (char)('0' + n % 10);
	while ((n /= 10) > 0);
	buf_put(out, digits + at, sizeof digits - at);
}
