#include "handover/parcel.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	FIELDS = 6
};

void
parcel_write(struct buf *out, const char *shard, const struct handover_items *items)
{
	buf_printf(out, "%s\n", shard);
	for (uint32_t i = 0; i < items->n; i++) {
		const struct handover_item *const item = &items->p[i];
		const size_t n = item->options ? strlen(item->options) : 0;

		buf_printf(out, "%s\t%s\t%s\t%s\t%zu\t%zu\n", item->space, item->queue, item->name, item->tag, n, item->size);
		buf_put(out, item->options, n);
		buf_put(out, item->payload, item->size);
	}
}

/* Cuts a text off the bytes. Returns NULL if memory is out. */
static char *
copy(struct slice text)
{
	char *const p = mem_alloc(text.n + 1);

	if (!p)
		return NULL;
	memcpy(p, text.p, text.n);
	p[text.n] = '\0';
	return p;
}

/* A number of bytes that the rest has. */
static bool
read_size(struct slice text, const struct slice *rest, size_t *out)
{
	char digits[24];

	if (text.n == 0 || text.n >= sizeof digits)
		return false;
	memcpy(digits, text.p, text.n);
	digits[text.n] = '\0';
	*out = strtoull(digits, NULL, 10);
	return strspn(digits, "0123456789") == text.n && *out <= rest->n;
}

static bool
read_line(struct slice *rest, struct slice fields[FIELDS])
{
	struct slice line;

	if (!memchr(rest->p, '\n', rest->n))
		return false;
	(void)slice_cut(rest, '\n', &line);
	for (unsigned i = 0; i < FIELDS; i++) {
		if (line.n == 0)
			return false;
		(void)slice_cut(&line, '\t', &fields[i]);
	}
	return line.n == 0;
}

static int
read_item(struct slice *rest, struct handover_item *item, struct slu_err *err)
{
	struct slice fields[FIELDS];
	size_t options;

	if (!read_line(rest, fields) || !read_size(fields[4], rest, &options))
		return slu_fail(err, SLU_ECORRUPT, "damaged batch");
	item->options = options ? copy((struct slice){ rest->p, options }) : NULL;
	slice_skip(rest, options);
	if (!read_size(fields[5], rest, &item->size))
		return slu_fail(err, SLU_ECORRUPT, "damaged batch");
	item->payload = copy((struct slice){ rest->p, item->size });
	slice_skip(rest, item->size);
	item->space = copy(fields[0]);
	item->queue = copy(fields[1]);
	item->name = copy(fields[2]);
	item->tag = copy(fields[3]);
	if (!item->payload || !item->space || !item->queue || !item->name || !item->tag || (options && !item->options))
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	return 0;
}

int
parcel_read(struct slice bytes, uint64_t number, struct handover_items *out, struct slu_err *err)
{
	struct slice shard;
	int rc = 0;

	(void)slice_cut(&bytes, '\n', &shard);
	while (!rc && bytes.n > 0) {
		struct handover_item *const item = handover_items_add(out);

		rc = item ? read_item(&bytes, item, err) : slu_fail(err, SLU_ENOMEM, "out of memory");
		if (rc)
			break;
		item->batch = number;
		item->shard = copy(shard);
		if (!item->shard)
			rc = slu_fail(err, SLU_ENOMEM, "out of memory");
	}
	return rc;
}
