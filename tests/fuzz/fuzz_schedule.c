/* fuzz_schedule.c - a stored schedule that is read is written again the same way, and its ticks do not go back. */
#include "fuzz.h"

#include "core/schedule/schedule_doc.h"

#include <stdlib.h>

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *const room = malloc(2 * size + 1);
	struct schedule_plan p = { 0 };
	struct schedule_due due;
	struct schedule s, again;
	struct buf out;

	if (!room || schedule_decode((struct slice){ (const char *)data, size }, room, &s, NULL)) {
		free(room);
		return 0;
	}
	buf_init(&out, 1 << 20);
	schedule_encode(&s, &out);
	if (!out.failed && out.n <= size) {
		FUZZ_CHECK(schedule_decode(buf_slice(&out), room, &again, NULL) == 0);
		FUZZ_CHECK(again.last == s.last && again.n_events == s.n_events);
	}
	buf_release(&out);
	if (cron_parse(&p.cron, slice_of(s.when), NULL) == 0 && s.anchor <= s.last) {
		schedule_due(&s, &p, 1763424000 * SLU_SEC, &due);
		for (uint32_t i = 0; i < due.n; i++)
			FUZZ_CHECK(due.ticks[i] > (i ? due.ticks[i - 1] : s.last));
	}
	free(room);
	return 0;
}
