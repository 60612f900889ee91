/*
 * fuzz_multipart.c - any bytes, given to the reader of multipart bodies. The first line is
 * the Content-Type.
 *
 *  FUZZPARTS-1  However the bytes are cut, it says the same (MULTIPART-3 of http/multipart.h).
 *  FUZZPARTS-2  Data lies in what was given, or is the beginning of a delimiter.
 *  FUZZPARTS-3  No more comes out than went in.
 */
#include "fuzz.h"

#include "http/multipart.h"

#include <string.h>

static void
note(struct buf *said, struct multipart *m, enum multipart_event e, struct slice data)
{
	if (e == MULTIPART_DATA)
		buf_put(said, data.p, data.n);
	else if (e == MULTIPART_PART)
		buf_printf(said, "\n[%.*s|%.*s|%d]", (int)m->name.n, m->name.p ? m->name.p : "",
			   (int)m->type.n, m->type.p ? m->type.p : "", m->has_length);
	else
		buf_printf(said, "\n%d", (int)e);
}

static bool
lies_in(struct slice data, const char *p, size_t n)
{
	return data.p >= p && data.p + data.n <= p + n;
}

static void
run(struct slice type, struct slice in, size_t step, struct buf *said)
{
	struct multipart m;
	enum multipart_event e = MULTIPART_MORE;
	size_t out = 0;

	if (!multipart_init(&m, type))
		return;
	for (size_t at = 0; at < in.n && e != MULTIPART_END && e != MULTIPART_REFUSED;) {
		const size_t n = in.n - at < step ? in.n - at : step;
		struct slice piece = { in.p + at, n }, data = { NULL, 0 };

		while ((e = multipart_next(&m, &piece, &data)) != MULTIPART_MORE) {
			if (e == MULTIPART_DATA) {
				FUZZ_CHECK(data.n > 0);
				FUZZ_CHECK(lies_in(data, in.p + at, n) ||
					   lies_in(data, m.delimiter, m.n_delimiter));
				out += data.n;
			}
			note(said, &m, e, data);
			if (e == MULTIPART_END || e == MULTIPART_REFUSED)
				break;
		}
		at += n;
	}
	FUZZ_CHECK(out <= in.n);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *const p = (const char *)data;
	const char *const line = size ? memchr(p, '\n', size) : NULL;
	const struct slice type = { p, line ? (size_t)(line - p) : size };
	const struct slice in = { line ? line + 1 : p, line ? size - type.n - 1 : 0 };
	static const size_t steps[] = { 1, 2, 7, 64 };
	struct buf whole, cut;

	buf_init(&whole, SIZE_MAX);
	buf_init(&cut, SIZE_MAX);
	run(type, in, in.n ? in.n : 1, &whole);
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		buf_clear(&cut);
		run(type, in, steps[i], &cut);
		FUZZ_CHECK(slice_eq(buf_slice(&whole), buf_slice(&cut)));
	}
	buf_release(&whole);
	buf_release(&cut);
	return 0;
}
