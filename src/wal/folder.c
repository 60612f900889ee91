#include "wal/folder.h"

#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *before;
	const char *after;
} kinds[FOLDER_KINDS] = {
	[FOLDER_SEGMENT] = { "", ".log" },
	[FOLDER_SPARE] = { "spare-", "" },
	[FOLDER_TMP] = { "spare-", ".tmp" },
};

/* Reads a number in the only valid form: eight digits, or more for large numbers. */
static bool
is_kind(const char *name, enum folder_kind kind, uint32_t *number)
{
	const size_t before = strlen(kinds[kind].before);
	const char *digits = name + before;
	uint64_t v = 0;
	size_t n;

	if (strncmp(name, kinds[kind].before, before) != 0)
		return false;
	for (n = 0; n < 10 && digits[n] >= '0' && digits[n] <= '9'; n++)
		v = v * 10 + (uint64_t)(digits[n] - '0');
	if (n < 8 || (n > 8 && digits[0] == '0') || v == 0 || v > UINT32_MAX)
		return false;
	*number = (uint32_t)v;
	return strcmp(digits + n, kinds[kind].after) == 0;
}

static int
add(struct folder *f, enum folder_kind kind, uint32_t number)
{
	if (!mem_room(&f->at, &f->max, f->n + 1, sizeof *f->at))
		return -ENOMEM;
	f->at[f->n++] = (struct folder_entry){ kind, number };
	return 0;
}

static int
see_name(void *arg, const char *name)
{
	for (int kind = 0; kind < FOLDER_KINDS; kind++) {
		uint32_t number;

		if (is_kind(name, kind, &number))
			return add(arg, kind, number);
	}
	return 0;
}

static int
compare(const void *a, const void *b)
{
	const struct folder_entry *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

int
folder_read(struct folder *f, struct disk *disk, int folder, struct slu_err *err)
{
	const int rc = disk->ops->list(disk, folder, see_name, f);

	if (rc) {
		folder_release(f);
		return disk_fail(rc, "list", "the log's folder", err);
	}
	if (f->n)
		qsort(f->at, f->n, sizeof *f->at, compare);
	return 0;
}

void
folder_release(struct folder *f)
{
	mem_free(f->at);
	memset(f, 0, sizeof *f);
}
