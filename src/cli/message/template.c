#include "cli/message/template.h"

#include "base/clock.h"
#include "base/rfc3339.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum {
	VALUE = 48
};

static int
put_number(uint64_t n, char out[static VALUE])
{
	(void)snprintf(out, VALUE, "%" PRIu64, n);
	return 0;
}

/* Writes a random UUID (version 4). */
static int
put_uuid(uint64_t n, char out[static VALUE])
{
	uint64_t r[2];

	(void)n;
	if (getrandom(r, sizeof r, 0) != sizeof r)
		return SLU_EFAILED;
	(void)snprintf(out, VALUE, "%08" PRIx64 "-%04" PRIx64 "-4%03" PRIx64 "-%04" PRIx64 "-%012" PRIx64,
		       r[0] >> 32, r[0] >> 16 & 0xffff, r[0] & 0xfff,
		       (r[1] >> 48 & 0x3fff) | 0x8000, r[1] & 0xffffffffffff);
	return 0;
}

static int
put_time(uint64_t n, char out[static VALUE])
{
	char text[RFC3339_TEXT];

	(void)n;
	(void)snprintf(out, VALUE, "%s", rfc3339_format(clock_wall(&clock_system), text));
	return 0;
}

static const struct {
	const char *mark;
	int (*put)(uint64_t n, char out[static VALUE]);
} values[] = {
	{ "{n}", put_number },
	{ "{uuid}", put_uuid },
	{ "{time}", put_time },
};

/* Returns the length of the placeholder that the text begins with; 0 if it begins with other text. */
static size_t
fill_one(const char *text, uint64_t n, char value[static VALUE], int *rc)
{
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
		const size_t length = strlen(values[i].mark);

		if (strncmp(text, values[i].mark, length) != 0)
			continue;
		*rc = values[i].put(n, value);
		return length;
	}
	return 0;
}

int
template_fill(const char *text, uint64_t n, struct buf *out, struct slu_err *err)
{
	char value[VALUE];
	int rc = 0;

	buf_clear(out);
	while (*text && !rc) {
		const size_t length = *text == '{' ? fill_one(text, n, value, &rc) : 0;

		if (length > 0)
			buf_puts(out, value);
		else
			buf_putc(out, *text);
		text += length > 0 ? length : 1;
	}
	if (rc)
		return slu_fail(err, rc, "cannot get random numbers: %m");
	return out->failed ? slu_fail(err, SLU_ENOMEM, "no memory for a payload") : 0;
}
