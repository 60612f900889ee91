#include "mirror/body.h"

#include "base/le.h"

#include <inttypes.h>

void
body_init(struct body *b)
{
	b->n = 0;
	buf_init(&b->places, SIZE_MAX / 2);
	buf_init(&b->bytes, SIZE_MAX / 2);
}

void
body_release(struct body *b)
{
	buf_release(&b->places);
	buf_release(&b->bytes);
}

void
body_clear(struct body *b)
{
	b->n = 0;
	buf_clear(&b->places);
	buf_clear(&b->bytes);
}

void
body_add(struct body *b, const struct body_piece *piece)
{
	char *const p = buf_add(&b->places, BODY_PLACE);

	if (!p)
		return;
	le32_put(p, piece->segment);
	le32_put(p + 4, piece->offset);
	le32_put(p + 8, (uint32_t)piece->bytes.n);
	buf_put(&b->bytes, piece->bytes.p, piece->bytes.n);
	b->n++;
}

int
body_encode(const struct body *b, struct buf *out)
{
	char *const p = buf_add(out, BODY_HEAD);

	if (!p || b->places.failed || b->bytes.failed)
		return SLU_ENOMEM;
	le32_put(p, BODY_FORMAT);
	le32_put(p + 4, b->n);
	buf_put(out, b->places.p, b->places.n);
	buf_put(out, b->bytes.p, b->bytes.n);
	return out->failed ? SLU_ENOMEM : 0;
}

/* The sum of the lengths; the places are inside the body. */
static uint64_t
content_size(struct slice places)
{
	uint64_t sum = 0;

	for (size_t at = 0; at < places.n; at += BODY_PLACE)
		sum += le32_get(places.p + at + 8);
	return sum;
}

int
body_open(struct body_reader *r, struct slice body, struct slu_err *err)
{
	uint64_t places;

	if (body.n < BODY_HEAD)
		return slu_fail(err, SLU_ECORRUPT, "invalid body: %zu bytes", body.n);
	if (le32_get(body.p) != BODY_FORMAT)
		return slu_fail(err, SLU_EINVAL, "format %" PRIu32 " is newer than this program's %d",
				le32_get(body.p), BODY_FORMAT);
	places = (uint64_t)le32_get(body.p + 4) * BODY_PLACE;
	if (places > body.n - BODY_HEAD)
		return slu_fail(err, SLU_ECORRUPT, "invalid number of pieces: %" PRIu32,
				le32_get(body.p + 4));
	*r = (struct body_reader){
		.n = le32_get(body.p + 4),
		.places = { body.p + BODY_HEAD, (size_t)places },
		.content = { body.p + BODY_HEAD + places, body.n - BODY_HEAD - (size_t)places },
	};
	if (content_size(r->places) != r->content.n)
		return slu_fail(err, SLU_ECORRUPT, "invalid lengths of pieces: %zu bytes, expected %" PRIu64,
				r->content.n, content_size(r->places));
	return 0;
}

bool
body_next(struct body_reader *r, struct body_piece *piece)
{
	const char *const p = r->places.p;

	if (r->n == 0)
		return false;
	r->n--;
	*piece = (struct body_piece){ le32_get(p), le32_get(p + 4), { r->content.p, le32_get(p + 8) } };
	r->places.p += BODY_PLACE;
	r->places.n -= BODY_PLACE;
	r->content.p += piece->bytes.n;
	r->content.n -= piece->bytes.n;
	return true;
}
