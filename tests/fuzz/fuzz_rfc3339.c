/* fuzz_rfc3339.c - a time that is read can be written and read again. */
#include "fuzz.h"

#include "base/rfc3339.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct slice text = { (const char *)data, size };
	char again[RFC3339_TEXT];
	slu_time t, back;

	if (rfc3339_parse(text, &t, NULL))
		return 0;
	FUZZ_CHECK(rfc3339_parse(slice_of(rfc3339_format(t, again)), &back, NULL) == 0);
	FUZZ_CHECK(t == back);
	return 0;
}
