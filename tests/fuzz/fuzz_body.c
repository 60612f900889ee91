/* fuzz_body.c - a condition on a body, a line break, a body: no condition reads beyond either, and equal numbers are equal both
 * ways. */
#include "fuzz.h"

#include "api/admin/body.h"
#include "base/json/json_same.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice body = { (const char *)data, size }, text;
	struct body_condition c;

	(void)slice_cut(&body, '\n', &text);
	if (body_condition_read(&c, text, NULL) == 0)
		(void)body_condition_holds(&c, body);
	if (json_number_is(text) && json_number_is(body)) {
		FUZZ_CHECK(json_number_same(text, text) && json_number_same(body, body));
		FUZZ_CHECK(json_number_same(text, body) == json_number_same(body, text));
	}
	return 0;
}
