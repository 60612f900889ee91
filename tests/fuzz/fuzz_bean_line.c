/* fuzz_bean_line.c - what a line says lies inside of the line, and ids come back as they went. */
#include "fuzz.h"

#include "beanstalk/line.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct slice text = { (const char *)data, size };
	struct bean_line line;

	if (bean_line_parse(text, &line) != BEAN_OK)
		return 0;
	FUZZ_CHECK(line.command < BEAN_KINDS);
	FUZZ_CHECK(line.tube.n <= size);
	if (line.tube.n)
		FUZZ_CHECK(line.tube.p >= text.p && line.tube.p + line.tube.n <= text.p + text.n);
	for (unsigned i = 0; i < BEAN_ARGS; i++) {
		const uint64_t id = bean_id_in(line.numbers[i]);

		FUZZ_CHECK(bean_id_in(bean_id_out(id)) == id);
	}
	return 0;
}
