/*
 * kinds.c - how values are read and shown.
 */
#include "conf/option.h"

#include "base/mem.h"
#include "base/parse.h"
#include "conf/options.h"
#include "conf/quotas.h"

#include <inttypes.h>

/* An empty value unsets what need not be set. */
static int
check_empty(const struct option *o, struct slu_err *err)
{
	return *o->standard ? slu_fail(err, SLU_EINVAL, "expected a value") : 0;
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
		const int rc = check_empty(o, err);

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

	(void)o; /* every text is shown alike */
	if (text)
		buf_puts(out, text);
}

/* --- lists -------------------------------------------------------------------- */

static void
clear_list(void *place)
{
	struct conf_list *const l = place;

	while (l->n > 0)
		mem_free(l->items[--l->n]);
	mem_free(l->items);
	l->items = NULL;
}

static int
add_item(const struct option *o, struct conf_list *l, const char *value, size_t n,
	 struct slu_err *err)
{
	const unsigned max = o->max ? (unsigned)o->max : CONF_LIST_MAX;
	char **items;
	char *item;

	if (n == 0)
		return slu_fail(err, SLU_EINVAL, "expected a value");
	if (l->n == max)
		return slu_fail(err, SLU_EINVAL, "expected at most %u of them", max);
	items = mem_realloc(l->items, (l->n + 1) * sizeof *items);
	if (!items)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	l->items = items;
	item = mem_zalloc(n + 1);
	if (!item)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	memcpy(item, value, n);
	l->items[l->n++] = item;
	return 0;
}

static int
read_list(const struct option *o, void *place, const char *value, struct slu_err *err)
{
	struct conf_list *const l = place;

	if (!*value)
		return check_empty(o, err);
	for (;;) {
		const size_t n = strcspn(value, ",");
		const int rc = add_item(o, l, value, n, err);

		if (rc || value[n] == '\0')
			return rc;
		value += n + 1;
	}
}

static void
show_list(const struct option *o, const void *place, struct buf *out)
{
	const struct conf_list *const l = place;

	(void)o; /* every list is shown alike */
	for (unsigned i = 0; i < l->n; i++)
		buf_printf(out, "%s%s", i ? "," : "", l->items[i]);
}

/* Every item is well-formed, or none of this value is taken. */
static int
read_quotas(const struct option *o, void *place, const char *value, struct slu_err *err)
{
	struct conf_list *const l = place;
	const unsigned before = l->n;
	struct conf_quota quota;
	int rc;

	rc = read_list(o, place, value, err);
	for (unsigned i = before; i < l->n && !rc; i++)
		rc = conf_quota_parse(l->items[i], &quota, err);
	while (rc && l->n > before)
		mem_free(l->items[--l->n]);
	return rc;
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
	(void)o; /* every count is shown alike */
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
		return slu_fail(err, SLU_EINVAL, "expected a size from %s to %s, not \"%s\"",
				format_size(o->min, low, sizeof low),
				format_size(o->max, high, sizeof high), value);
	*(uint64_t *)place = n;
	return 0;
}

static void
show_size(const struct option *o, const void *place, struct buf *out)
{
	char text[SIZE_TEXT];

	(void)o; /* every size is shown alike */
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
		return slu_fail(err, SLU_EINVAL, "expected a time from %s to %s, not \"%s\"",
				format_duration((slu_time)o->min, low, sizeof low),
				format_duration((slu_time)o->max, high, sizeof high), value);
	*(slu_time *)place = t;
	return 0;
}

static void
show_time(const struct option *o, const void *place, struct buf *out)
{
	char text[DURATION_TEXT];

	(void)o; /* every time is shown alike */
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
	return slu_fail(err, SLU_EINVAL, "expected %s, not %s", o->value,
			parse_shown(slice_of(value), shown));
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

	(void)o; /* every bool is read alike */
	if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
		return slu_fail(err, SLU_EINVAL, "expected true or false, not %s",
				parse_shown(slice_of(value), shown));
	*(bool *)place = *value == 't';
	return 0;
}

static void
show_bool(const struct option *o, const void *place, struct buf *out)
{
	(void)o; /* every bool is shown alike */
	buf_puts(out, *(const bool *)place ? "true" : "false");
}

/* --- sync --------------------------------------------------------------------- */

static int
read_sync(const struct option *o, void *place, const char *value, struct slu_err *err)
{
	static const char interval[] = "interval=";
	struct conf_sync *const sync = place;
	char shown[SHOWN_TEXT];
	int rc;

	(void)o; /* there is one */
	if (strcmp(value, "sync") == 0) {
		sync->mode = CONF_SYNC_ALWAYS;
		return 0;
	}
	if (strcmp(value, "none") == 0) {
		sync->mode = CONF_SYNC_NONE;
		return 0;
	}
	if (strncmp(value, interval, sizeof interval - 1) != 0)
		return slu_fail(err, SLU_EINVAL, "expected sync, interval=TIME or none, not %s",
				parse_shown(slice_of(value), shown));
	rc = parse_duration(slice_of(value + sizeof interval - 1), &sync->interval, err);
	if (!rc)
		sync->mode = CONF_SYNC_INTERVAL;
	return rc;
}

static void
show_sync(const struct option *o, const void *place, struct buf *out)
{
	const struct conf_sync *const sync = place;
	char time[DURATION_TEXT];

	(void)o; /* there is one */
	if (sync->mode == CONF_SYNC_INTERVAL)
		buf_printf(out, "interval=%s",
			   format_duration(sync->interval, time, sizeof time));
	else
		buf_puts(out, sync->mode == CONF_SYNC_NONE ? "none" : "sync");
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

const struct option_kind list_kind = {
	.name = "list",
	.read = read_list,
	.show = show_list,
	.clear = clear_list,
	.size = sizeof(struct conf_list),
	.shape = SHAPE_LIST,
};

const struct option_kind quota_kind = {
	.name = "list",
	.read = read_quotas,
	.show = show_list,
	.clear = clear_list,
	.size = sizeof(struct conf_list),
	.shape = SHAPE_LIST,
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

const struct option_kind sync_kind = {
	.name = "word",
	.read = read_sync,
	.show = show_sync,
	.size = sizeof(struct conf_sync),
};
