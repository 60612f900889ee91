/* fuzz_log_record.c - a record that is read says what it would be written as. */
#include "fuzz.h"

#include "engine/log/record.h"

static size_t
join(const struct logengine_bytes *b, char *out)
{
	size_t n = 0;

	for (unsigned i = 0; i < b->n; i++) {
		if (b->parts[i].n)
			memcpy(out + n, b->parts[i].p, b->parts[i].n);
		n += b->parts[i].n;
	}
	return n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct slice body = { (const char *)data + 1, size ? size - 1 : 0 };
	struct logengine_entry entry;
	struct logengine_bytes bytes;
	char *again;

	if (size == 0 || logengine_decode(data[0], body, &entry, NULL))
		return 0;
	again = malloc(body.n + 1);
	FUZZ_CHECK(again);
	if (entry.type == LOGENGINE_ACCEPT || entry.type == LOGENGINE_MESSAGE ||
	    entry.type == LOGENGINE_DOCUMENT) {
		FUZZ_CHECK(message_size(&entry.message) == body.n);
		message_encode(&entry.message, again);
	} else {
		logengine_encode(&entry, &bytes);
		FUZZ_CHECK(bytes.size == body.n);
		join(&bytes, again);
	}
	FUZZ_CHECK(memcmp(again, body.p, body.n) == 0);
	free(again);
	return 0;
}
