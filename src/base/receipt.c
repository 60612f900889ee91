#include "base/receipt.h"

#include "base/base64.h"
#include "base/crc32c.h"
#include "base/id.h"
#include "base/le.h"
#include "base/parse.h"

#include <assert.h>

enum {
	VERSION = 1,
	ID_AT = 2,
	TOKEN_AT = 10,
	NAMES_AT = 18,
	SUM = 4
};

_Static_assert(RECEIPT_TEXT <= 512, "docs/api.md promises it");

size_t
receipt_encode(const struct receipt *r, char out[static RECEIPT_BYTES])
{
	char *p = out + NAMES_AT;

	assert(r->space.n <= RECEIPT_NAME && r->queue.n <= RECEIPT_NAME);
	out[0] = VERSION;
	out[1] = (char)r->space.n;
	le64_put(out + ID_AT, r->id);
	le64_put(out + TOKEN_AT, r->token);
	memcpy(p, r->space.p, r->space.n);
	p += r->space.n;
	memcpy(p, r->queue.p, r->queue.n);
	p += r->queue.n;
	le32_put(p, crc32c(0, out, (size_t)(p - out)));
	return (size_t)(p - out) + SUM;
}

void
receipt_write(const struct receipt *r, struct buf *b)
{
	char bytes[RECEIPT_BYTES];
	const size_t n = receipt_encode(r, bytes);
	char *const text = buf_add(b, base64url_text(n));

	if (text)
		base64url_encode((struct slice){ bytes, n }, text);
}

/* Returns false if receipt_encode does not write such bytes. */
static bool
decode(struct slice bytes, struct receipt *out)
{
	const size_t names = bytes.n - NAMES_AT - SUM;
	size_t space;

	if (bytes.n < NAMES_AT + 2 + SUM || bytes.p[0] != VERSION)
		return false;
	space = (unsigned char)bytes.p[1];
	*out = (struct receipt){
		.id = le64_get(bytes.p + ID_AT),
		.token = le64_get(bytes.p + TOKEN_AT),
		.space = { bytes.p + NAMES_AT, space },
		.queue = { bytes.p + NAMES_AT + space, names - space },
	};
	return space >= 1 && space <= RECEIPT_NAME && space < names &&
	       names - space <= RECEIPT_NAME && out->id >= 1 && out->id <= ID_MAX &&
	       out->token >= 1 &&
	       le32_get(bytes.p + bytes.n - SUM) == crc32c(0, bytes.p, bytes.n - SUM);
}

int
receipt_parse(struct slice text, char room[static RECEIPT_TEXT], struct receipt *out,
	      struct slu_err *err)
{
	char shown[SHOWN_TEXT];
	struct slice bytes = { room, 0 };
	struct receipt r;

	if (text.n <= RECEIPT_TEXT && base64url_decode(text, room, &bytes.n, NULL) == 0 &&
	    decode(bytes, &r)) {
		*out = r;
		return 0;
	}
	return slu_fail(err, SLU_EINVAL,
			"invalid receipt: %s; expected the whole receipt of a delivered message",
			parse_shown(text, shown));
}
