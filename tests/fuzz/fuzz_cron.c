/* fuzz_cron.c - the ticks of an expression that is read rise, and lie behind the moment that was asked for. */
#include "fuzz.h"

#include "core/calendar/cron.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct slice text = { (const char *)data, size };
	const slu_time anchor = 1700000000 * SLU_SEC;
	struct cron c;
	slu_time after = anchor;

	if (cron_parse(&c, text, NULL))
		return 0;
	for (int i = 0; i < 5; i++) {
		const slu_time next = cron_next(&c, NULL, anchor, after);

		FUZZ_CHECK(next > after);
		if (next == SLU_NEVER)
			break;
		FUZZ_CHECK(cron_next(&c, NULL, anchor, next - 1) == next);
		after = next;
	}
	return 0;
}
