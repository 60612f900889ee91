#include "peer/wire.h"

enum {
	NUMBER_MAX = 10 /* bytes */
};

void
wire_put(struct buf *out, uint64_t value)
{
	char bytes[NUMBER_MAX];
	size_t n = 0;

	for (; value > 0x7f; value >>= 7)
		bytes[n++] = (char)(value | 0x80);
	bytes[n++] = (char)value;
	buf_put(out, bytes, n);
}

void
wire_put_signed(struct buf *out, int64_t value)
{
	wire_put(out, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

void
wire_put_text(struct buf *out, struct slice text)
{
	wire_put(out, text.n);
	buf_put(out, text.p, text.n);
}

static uint64_t
fail(struct wire_reader *w)
{
	w->failed = true;
	w->rest.n = 0;
	return 0;
}

uint64_t
wire_get(struct wire_reader *w, uint64_t most)
{
	uint64_t value = 0;
	size_t n = 0;
	uint8_t byte = 0x80;

	while (byte & 0x80) {
		if (n == w->rest.n || n == NUMBER_MAX)
			return fail(w);
		byte = (uint8_t)w->rest.p[n];
		if (n == NUMBER_MAX - 1 && byte > 1) /* more than 64 bits */
			return fail(w);
		value |= (uint64_t)(byte & 0x7f) << 7 * n++;
	}
	if ((byte == 0 && n > 1) || value > most)
		return fail(w);
	slice_skip(&w->rest, n);
	return value;
}

int64_t
wire_get_signed(struct wire_reader *w)
{
	const uint64_t value = wire_get(w, UINT64_MAX);

	return (int64_t)(value >> 1 ^ (value & 1 ? UINT64_MAX : 0));
}

struct slice
wire_get_text(struct wire_reader *w, size_t most)
{
	const size_t n = wire_get(w, most);
	const struct slice text = { w->rest.p, n };

	if (n > w->rest.n) {
		(void)fail(w);
		return (struct slice){ 0 };
	}
	slice_skip(&w->rest, n);
	return n > 0 ? text : (struct slice){ 0 };
}
