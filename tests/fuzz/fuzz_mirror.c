/*
 * fuzz_mirror.c - the body of a group that is read is the one that is written of its pieces.
 */
#include "fuzz.h"

#include "mirror/body.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct slice text = { (const char *)data, size };
	struct body_reader r;
	struct body_piece piece;
	struct body body;
	struct buf again;

	if (body_open(&r, text, NULL))
		return 0;
	body_init(&body);
	buf_init(&again, SIZE_MAX / 2);
	while (body_next(&r, &piece)) {
		FUZZ_CHECK(piece.bytes.p >= text.p && piece.bytes.n <= size);
		body_add(&body, &piece);
	}
	FUZZ_CHECK(body_encode(&body, &again) == 0);
	FUZZ_CHECK(slice_eq(text, buf_slice(&again)));
	buf_release(&again);
	body_release(&body);
	return 0;
}
