/* fuzz_base64.c - what is decoded encodes to the same text, also where it lies, and many groups at
 * once decode like one after the other. */
#include "fuzz.h"

#include "base/base64.h"

/* Returns false if a group is invalid, or padded before the end. */
static bool
decode_by_groups(struct slice text, char *out, size_t *n)
{
	size_t more = 3;

	*n = 0;
	if (text.n % 4)
		return false;
	for (size_t i = 0; i < text.n; i += 4, *n += more)
		if (more < 3 || base64_decode((struct slice){ text.p + i, 4 }, out + *n, &more, NULL))
			return false;
	return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct slice text = { (const char *)data, size };
	char *const bytes = malloc(size + 1);
	char *const again = malloc(size + 1);
	size_t n, m;
	bool good;

	FUZZ_CHECK(bytes && again);
	good = base64_decode(text, bytes, &n, NULL) == 0;
	FUZZ_CHECK(good == decode_by_groups(text, again, &m));
	if (good) {
		FUZZ_CHECK(slice_eq((struct slice){ bytes, n }, (struct slice){ again, m }));
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
