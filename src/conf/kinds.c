/*
 * kinds.c - kinds of values that only the server has: lists and sync.
 */
#include "conf/options.h"

#include "base/mem.h"
#include "base/parse.h"
#include "conf/quotas.h"

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
	char *item;

	if (n == 0)
		return slu_fail(err, SLU_EINVAL, "missing value");
	if (l->n == max)
		return slu_fail(err, SLU_EINVAL, "too many values; expected at most %u", max);
	item = mem_resize(&l->items, l->n + 1, sizeof *l->items) ? mem_zalloc(n + 1) : NULL;
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
		return option_check_empty(o, err);
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

	(void)o; /* the same for every list */
	for (unsigned i = 0; i < l->n; i++)
		buf_printf(out, "%s%s", i ? "," : "", l->items[i]);
}

/* On an error the list keeps its old items. */
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

/* --- sync --------------------------------------------------------------------- */

static int
read_sync(const struct option *o, void *place, const char *value, struct slu_err *err)
{
	static const char interval[] = "interval=";
	struct conf_sync *const sync = place;
	char shown[SHOWN_TEXT];
	int rc;

	(void)o; /* only one row has this kind */
	if (strcmp(value, "sync") == 0) {
		sync->mode = CONF_SYNC_ALWAYS;
		return 0;
	}
	if (strcmp(value, "none") == 0) {
		sync->mode = CONF_SYNC_NONE;
		return 0;
	}
	if (strncmp(value, interval, sizeof interval - 1) != 0)
		return slu_fail(err, SLU_EINVAL, "invalid value %s; expected sync, interval=TIME or none",
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

	(void)o; /* only one row has this kind */
	if (sync->mode == CONF_SYNC_INTERVAL)
		buf_printf(out, "interval=%s",
			   format_duration(sync->interval, time, sizeof time));
	else
		buf_puts(out, sync->mode == CONF_SYNC_NONE ? "none" : "sync");
}

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

const struct option_kind sync_kind = {
	.name = "word",
	.read = read_sync,
	.show = show_sync,
	.size = sizeof(struct conf_sync),
};
