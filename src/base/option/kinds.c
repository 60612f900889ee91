/*
 * kinds.c - how values are read and shown.
 */
#include "base/option/option.h"

#include "base/mem.h"
#include "base/parse.h"

#include <inttypes.h>

int
option_check_empty(const struct option *o, struct slu_err *err)
{
	return *o->standard ? slu_fail(err, SLU_EINVAL, "missing value") : 0;
}

/* --- text and secrets --------------------------------------------------------- */

static void
clear_text(void *place)
{
	char **const text = place;

	mem_free(*text);
	*text = NULL;
}

static int
read_text(const struct option *o, void *place, const char *value, struct slu_err *err)
{
	char *copy = NULL;

	if (!*value) {
		const int rc = option_check_empty(o, err);

		if (rc)
			return rc;
	} else {
		copy = mem_strdup(value);
		if (!copy)
			return slu_fail(err, SLU_ENOMEM, "out of memory");
	}
	clear_text(place);
	*(char **)place = copy;
	return 0;
}

static void
show_text(const struct option *o, const void *place, struct buf *out)
{
	const char *const text = *(char *const *)place;

	(void)o; /* the same for every text */
	if (text)
		buf_puts(out, text);
}

/* --- numbers ------------------------------------------------------------------ */

static int
read_count(const struct option *o, void *place, const char *value, struct slu_err *err)
{
	uint64_t n;
	const int rc = parse_u64(slice_of(value), o->min, o->max, &n, err);

	if (!rc)
		*(uint32_t *)place = (uint32_t)n;
	return rc;
}

static void
show_count(const struct option *o, const void *place, struct buf *out)
{
	(void)o; /* the same for every count */
	buf_printf(out, "%" PRIu32, *(const uint32_t *)place);
}

static int
read_size(const struct option *o, void *place, const char *value, struct slu_err *err)
{
	char low[SIZE_TEXT], high[SIZE_TEXT];
	uint64_t n;
	const int rc = parse_size(slice_of(value), &n, err);

	if (rc)
		return rc;
	if (n < o->min || n > o->max)
		return slu_fail(err, SLU_EINVAL, "invalid size \"%s\"; expected %s to %s", value,
				format_size(o->min, low, sizeof low),
				format_size(o->max, high, sizeof high));
	*(uint64_t *)place = n;
	return 0;
}

static void
show_size(const struct option *o, const void *place, struct buf *out)
{
	char text[SIZE_TEXT];

	(void)o; /* the same for every size */
	buf_puts(out, format_size(*(const uint64_t *)place, text, sizeof text));
}

static int
read_time(const struct option *o, void *place, const char *value, struct slu_err *err)
{
	char low[DURATION_TEXT], high[DURATION_TEXT];
	slu_time t;
	const int rc = parse_duration(slice_of(value), &t, err);

	if (rc)
		return rc;
	if (o->max && ((uint64_t)t < o->min || (uint64_t)t > o->max))
		return slu_fail(err, SLU_EINVAL, "invalid duration \"%s\"; expected %s to %s", value,
				format_duration((slu_time)o->min, low, sizeof low),
				format_duration((slu_time)o->max, high, sizeof high));
	*(slu_time *)place = t;
	return 0;
}

static void
show_time(const struct option *o, const void *place, struct buf *out)
{
	char text[DURATION_TEXT];

	(void)o; /* the same for every time */
	buf_puts(out, format_duration(*(const slu_time *)place, text, sizeof text));
}

/* --- words -------------------------------------------------------------------- */

static int
read_word(const struct option *o, void *place, const char *value, struct slu_err *err)
{
	char shown[SHOWN_TEXT];

	for (unsigned i = 0; o->words[i]; i++) {
		if (strcmp(o->words[i], value) == 0) {
			*(unsigned *)place = i;
			return 0;
		}
	}
	return slu_fail(err, SLU_EINVAL, "invalid value %s; expected %s",
			parse_shown(slice_of(value), shown), o->value);
}

static void
show_word(const struct option *o, const void *place, struct buf *out)
{
	buf_puts(out, o->words[*(const unsigned *)place]);
}

static int
read_bool(const struct option *o, void *place, const char *value, struct slu_err *err)
{
	char shown[SHOWN_TEXT];

	(void)o; /* the same for every bool */
	if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
		return slu_fail(err, SLU_EINVAL, "invalid value %s; expected true or false",
				parse_shown(slice_of(value), shown));
	*(bool *)place = *value == 't';
	return 0;
}

static void
show_bool(const struct option *o, const void *place, struct buf *out)
{
	(void)o; /* the same for every bool */
	buf_puts(out, *(const bool *)place ? "true" : "false");
}

const struct option_kind text_kind = {
	.name = "text",
	.read = read_text,
	.show = show_text,
	.clear = clear_text,
	.size = sizeof(char *),
};

const struct option_kind secret_kind = {
	.name = "secret",
	.read = read_text,
	.show = show_text,
	.clear = clear_text,
	.size = sizeof(char *),
	.secret = true,
};

const struct option_kind bool_kind = {
	.name = "true or false",
	.read = read_bool,
	.show = show_bool,
	.size = sizeof(bool),
	.shape = SHAPE_BARE,
	.flag = true,
};

const struct option_kind count_kind = {
	.name = "number",
	.read = read_count,
	.show = show_count,
	.size = sizeof(uint32_t),
	.shape = SHAPE_BARE,
};

const struct option_kind size_kind = {
	.name = "size",
	.read = read_size,
	.show = show_size,
	.size = sizeof(uint64_t),
};

const struct option_kind time_kind = {
	.name = "time",
	.read = read_time,
	.show = show_time,
	.size = sizeof(slu_time),
};

const struct option_kind word_kind = {
	.name = "word",
	.read = read_word,
	.show = show_word,
	.size = sizeof(unsigned),
};
