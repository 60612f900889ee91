/* fuzz_base64.c - what is decoded encodes to the same text, also where it lies. */
#include "fuzz.h"

#include "base/base64.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct slice text = { (const char *)data, size };
	char *const bytes = malloc(size + 1);
	char *const again = malloc(size + 1);
	size_t n, m;

	FUZZ_CHECK(bytes && again);
	if (base64_decode(text, bytes, &n, NULL) == 0) {
		FUZZ_CHECK(n <= base64_room(size) && base64_text(n) == size);
		base64_encode((struct slice){ bytes, n }, again);
		FUZZ_CHECK(slice_eq(text, (struct slice){ again, size }));
		FUZZ_CHECK(base64_decode((struct slice){ again, size }, again, &m, NULL) == 0);
		FUZZ_CHECK(slice_eq((struct slice){ bytes, n }, (struct slice){ again, m }));
	}
	free(bytes);
	free(again);
	return 0;
}
