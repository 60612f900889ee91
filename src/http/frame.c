#include "http/frame.h"

#include "http/chars.h"

#include <sluice/err.h>

#include <inttypes.h>

/* Digits without leading zeros, at most `most` of them. */
static bool
read_number(struct slice text, size_t most, uint64_t *out)
{
	*out = 0;
	if (text.n == 0 || text.n > most || (text.n > 1 && text.p[0] == '0'))
		return false;
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return false;
		*out = *out * 10 + (uint64_t)(text.p[i] - '0');
	}
	return true;
}

int
frame_read(struct slice line, struct frame_line *out)
{
	struct slice number, path;
	uint64_t size;

	if (!slice_cut(&line, ' ', &number) || !slice_cut(&line, ' ', &path))
		return SLU_EINVAL;
	if (!read_number(number, FRAME_DIGITS, &out->number) || out->number >> 53)
		return SLU_EINVAL;
	if (path.n == 0 || path.p[0] != '/' || !http_all(path, CHAR_TARGET) || memchr(path.p, '?', path.n))
		return SLU_EINVAL;
	if (!read_number(line, 8, &size) || size > FRAME_BODY)
		return SLU_EINVAL;
	out->path = path;
	out->size = (uint32_t)size;
	return 0;
}

void
frame_write(struct buf *out, uint64_t number, unsigned status, size_t size, bool more)
{
	buf_printf(out, "%" PRIu64 " %u %zu%s\n", number, status, size, more ? " +" : "");
}
