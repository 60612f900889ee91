/* fuzz_task.c - a stored task that is read is written again the same way. */
#include "fuzz.h"

#include "api/task/task.h"

#include <stdlib.h>

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *const room = malloc(2 * size + 1);
	struct task t, again;
	struct buf out;

	if (!room || task_decode((struct slice){ (const char *)data, size }, room, &t, NULL)) {
		free(room);
		return 0;
	}
	buf_init(&out, 1 << 20);
	task_encode(&t, &out);
	if (!out.failed && out.n <= size) {
		FUZZ_CHECK(task_decode(buf_slice(&out), room + size, &again, NULL) == 0);
		FUZZ_CHECK(again.id == t.id && again.action == t.action && again.phase == t.phase && again.done == t.done);
	}
	buf_release(&out);
	free(room);
	return 0;
}
