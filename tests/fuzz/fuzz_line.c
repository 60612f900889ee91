/*
 * fuzz_line.c - a group or span that is read is the one that is written of what was read.
 */
#include "fuzz.h"

#include "base/crc32c.h"
#include "base/le.h"
#include "line/object.h"

/* Nothing would get past the sum otherwise. */
static void
mend_sum(char *p, size_t n)
{
	size_t end = n;

	if (n >= LINE_SPAN_HEAD && memcmp(p, "sluicesp", 8) == 0) {
		const uint64_t head = LINE_SPAN_HEAD + 8 * (uint64_t)le32_get(p + 12);

		end = head < n ? (size_t)head : n;
	}
	if (n >= LINE_SPAN_HEAD)
		le32_put(p + 8, crc32c(0, p + 12, end - 12));
}

static void
check_span(struct slice object)
{
	struct line_span s;
	struct slice group;
	size_t sum = 0;

	if (line_span_decode(&s, object, NULL))
		return;
	while (line_span_next(&s, &group)) {
		struct line_group g;

		FUZZ_CHECK(group.p >= object.p && group.n <= object.n);
		sum += group.n;
		(void)line_group_decode(&g, group, NULL);
	}
	FUZZ_CHECK(sum == object.n - LINE_SPAN_HEAD - 8 * (size_t)s.n);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct line_group g;
	struct buf in, out;

	buf_init(&in, size + 1);
	buf_put(&in, data, size);
	if (size >= LINE_SPAN_HEAD) {
		mend_sum(in.p, size);
		check_span(buf_slice(&in));
	}
	if (line_group_decode(&g, buf_slice(&in), NULL) == 0 && le32_get(in.p + 12) <= 1 && le32_get(in.p + 84) == 0) {
		buf_init(&out, size + 1);
		line_group_encode(&g, &out);
		FUZZ_CHECK(slice_eq(buf_slice(&in), buf_slice(&out)));
		buf_release(&out);
	}
	buf_release(&in);
	return 0;
}
