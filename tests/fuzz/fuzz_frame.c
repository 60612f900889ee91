/* fuzz_frame.c - the line of a frame lies inside of its text, and what is written is read back. */
#include "fuzz.h"

#include "http/frame.h"

#include <stdio.h>

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct slice text = { (const char *)data, size };
	struct frame_line frame, again;
	char line[FRAME_LINE + 64];
	int n;

	if (size > FRAME_LINE || frame_read(text, &frame))
		return 0;
	FUZZ_CHECK(frame.number >> 53 == 0 && frame.size <= FRAME_BODY);
	FUZZ_CHECK(frame.path.p >= text.p && frame.path.p + frame.path.n <= text.p + text.n && frame.path.p[0] == '/');
	n = snprintf(line, sizeof line, "%llu %.*s %u", (unsigned long long)frame.number, (int)frame.path.n, frame.path.p, frame.size);
	FUZZ_CHECK(n > 0 && (size_t)n == size && memcmp(line, data, size) == 0); /* there is one way to write it */
	FUZZ_CHECK(frame_read((struct slice){ line, (size_t)n }, &again) == 0 && again.number == frame.number);
	return 0;
}
