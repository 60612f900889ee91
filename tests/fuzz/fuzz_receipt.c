/*
 * fuzz_receipt.c - whatever a receipt is read from, it is the one text that is written of
 * what was read.
 */
#include "fuzz.h"

#include "base/id.h"
#include "base/receipt.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct slice text = { (const char *)data, size };
	char room[RECEIPT_TEXT];
	struct receipt r;
	struct buf b;

	if (receipt_parse(text, room, &r, NULL))
		return 0;
	FUZZ_CHECK(r.id >= 1 && r.id <= ID_MAX && r.token >= 1);
	FUZZ_CHECK(r.space.n >= 1 && r.space.n <= RECEIPT_NAME);
	FUZZ_CHECK(r.queue.n >= 1 && r.queue.n <= RECEIPT_NAME);
	buf_init(&b, RECEIPT_TEXT + 1);
	receipt_write(&r, &b);
	FUZZ_CHECK(slice_eq(text, buf_slice(&b)));
	buf_release(&b);
	return 0;
}
