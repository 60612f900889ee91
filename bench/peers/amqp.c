#include "peers/amqp.h"

enum {
	HEAD = 7,
	END = 0xCE
};

size_t
amqp_begin(struct buf *out, enum amqp_type type, unsigned channel)
{
	const size_t mark = out->n;

	amqp_int(out, 1, type);
	amqp_int(out, 2, channel);
	amqp_int(out, 4, 0); /* the size, known at the end */
	return mark;
}

size_t
amqp_method(struct buf *out, unsigned channel, enum amqp_method method)
{
	const size_t mark = amqp_begin(out, AMQP_METHOD, channel);

	amqp_int(out, 4, method);
	return mark;
}

static void
store(char *p, unsigned bytes, uint64_t n)
{
	for (unsigned i = 0; i < bytes; i++)
		p[i] = (char)(n >> (8 * (bytes - 1 - i)));
}

void
amqp_end(struct buf *out, size_t mark)
{
	if (!out->failed)
		store(out->p + mark + 3, 4, out->n - mark - HEAD);
	buf_putc(out, (char)END);
}

void
amqp_int(struct buf *out, unsigned bytes, uint64_t n)
{
	char *p = buf_add(out, bytes);

	if (p)
		store(p, bytes, n);
}

void
amqp_short_text(struct buf *out, const char *s)
{
	buf_putc(out, (char)strlen(s));
	buf_puts(out, s);
}

void
amqp_long_text(struct buf *out, struct slice s)
{
	amqp_int(out, 4, s.n);
	buf_put(out, s.p, s.n);
}

uint64_t
amqp_at(struct slice payload, size_t offset, unsigned bytes)
{
	uint64_t n = 0;

	if (offset + bytes > payload.n)
		return 0;
	for (unsigned i = 0; i < bytes; i++)
		n = n << 8 | (unsigned char)payload.p[offset + i];
	return n;
}

bool
amqp_next(struct slice *in, struct amqp_frame *f)
{
	size_t size;

	if (in->n < HEAD)
		return false;
	size = amqp_at(*in, 3, 4);
	if (in->n < HEAD + size + 1)
		return false;
	f->type = (enum amqp_type)in->p[0];
	f->payload = (struct slice){ in->p + HEAD, size };
	f->method = f->type == AMQP_METHOD ? (uint32_t)amqp_at(f->payload, 0, 4) : 0;
	slice_skip(in, HEAD + size + 1);
	return true;
}
