#include "engine/outbox.h"

static const char digits[] = "0123456789abcdef";

void
outbox_source_text(const uint8_t source[static INTAKE_SOURCE], char out[static OUTBOX_SOURCE_TEXT])
{
	for (unsigned i = 0; i < INTAKE_SOURCE; i++) {
		out[2 * i] = digits[source[i] >> 4];
		out[2 * i + 1] = digits[source[i] & 15];
	}
}

static int
digit(char c)
{
	const char *const p = c ? strchr(digits, c) : NULL;

	return p ? (int)(p - digits) : -1;
}

int
outbox_source_read(struct slice text, uint8_t out[static INTAKE_SOURCE])
{
	if (text.n != OUTBOX_SOURCE_TEXT)
		return SLU_ECORRUPT;
	for (unsigned i = 0; i < INTAKE_SOURCE; i++) {
		const int high = digit(text.p[2 * i]), low = digit(text.p[2 * i + 1]);

		if (high < 0 || low < 0)
			return SLU_ECORRUPT;
		out[i] = (uint8_t)(high << 4 | low);
	}
	return 0;
}
