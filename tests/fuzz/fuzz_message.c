/* fuzz_message.c - what decodes has one spelling, and its head says the same. */
#include "fuzz.h"

#include "engine/message.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct slice record = { (const char *)data, size };
	char *const again = malloc(size + 1);
	struct message m, head;

	FUZZ_CHECK(again);
	if (message_decode(record, &m, NULL) == 0) {
		FUZZ_CHECK(message_check(&m, NULL) == 0);
		FUZZ_CHECK(message_size(&m) == size);
		message_encode(&m, again);
		FUZZ_CHECK(slice_eq(record, (struct slice){ again, size }));
		FUZZ_CHECK(message_decode_head((struct slice){ again, message_head(&m) }, &head,
					       NULL) == 0);
		FUZZ_CHECK(slice_eq(m.key, head.key) && m.payload_size == head.payload_size);
	}
	free(again);
	return 0;
}
