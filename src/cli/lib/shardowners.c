#include "cli/lib/shardowners.h"

#include "base/mem.h"
#include "cli/lib/escape.h"
#include "cli/lib/metric.h"

#include <inttypes.h>

/* ---- Reading ---- */

static void
take_owner(struct shardowner *o, struct slice line)
{
	(void)metric_label(line, "address", o->address, sizeof o->address);
}

static void
take_here(struct shardowner *o, struct slice line)
{
	o->here = metric_value(line) > 0;
}

static void
take_epoch(struct shardowner *o, struct slice line)
{
	o->epoch = (uint64_t)metric_value(line);
}

static void
take_groups(struct shardowner *o, struct slice line)
{
	o->groups = (int64_t)metric_value(line);
}

static void
take_bytes(struct shardowner *o, struct slice line)
{
	o->bytes = (int64_t)metric_value(line);
}

static void
take_seconds(struct shardowner *o, struct slice line)
{
	o->unconfirmed = metric_value(line);
}

static const struct {
	const char *metric;
	void (*take)(struct shardowner *o, struct slice line);
} metrics[] = {
	{ "sluice_shard_owner_info", take_owner },
	{ "sluice_shard_owned", take_here },
	{ "sluice_shard_epoch", take_epoch },
	{ "sluice_shard_unconfirmed_groups", take_groups },
	{ "sluice_shard_unconfirmed_bytes", take_bytes },
	{ "sluice_shard_unconfirmed_seconds", take_seconds },
};

static void
name_shard(struct slice line, char *out, size_t size)
{
	char shard[128] = "", lane[8] = "";

	(void)metric_label(line, "shard", shard, sizeof shard);
	if (metric_label(line, "lane", lane, sizeof lane))
		(void)snprintf(out, size, "%s/%s", shard, lane);
	else
		(void)snprintf(out, size, "%s", shard);
}

/* The row of the shard in this line, added if it is new. NULL if there is no memory. */
static struct shardowner *
find(struct shardowners *o, struct slice line)
{
	struct shardowner found = { .groups = -1 };
	struct shardowner *rows;

	name_shard(line, found.shard, sizeof found.shard);
	for (size_t i = 0; i < o->n; i++)
		if (strcmp(o->rows[i].shard, found.shard) == 0)
			return &o->rows[i];
	rows = mem_realloc(o->rows, (o->n + 1) * sizeof *rows);
	if (!rows)
		return NULL;
	o->rows = rows;
	rows[o->n] = found;
	return &rows[o->n++];
}

void
shardowners_take(struct shardowners *o, struct slice line)
{
	for (size_t i = 0; i < COUNT(metrics); i++) {
		struct shardowner *const row = metric_is(line, metrics[i].metric) ? find(o, line) : NULL;

		if (row)
			metrics[i].take(row, line);
	}
}

void
shardowners_read(struct shardowners *o, struct slice text)
{
	while (text.n > 0) {
		struct slice line;

		(void)slice_cut(&text, '\n', &line);
		shardowners_take(o, line);
	}
}

void
shardowners_release(struct shardowners *o)
{
	mem_free(o->rows);
	*o = (struct shardowners){ 0 };
}

/* ---- Writing ---- */

static void
put(const struct shardowner *o, struct json_out *w)
{
	json_out_object(w, NULL);
	json_out_str(w, "shard", slice_of(o->shard));
	if (*o->address)
		json_out_str(w, "owner", slice_of(o->address));
	else
		json_out_null(w, "owner");
	json_out_bool(w, "here", o->here);
	json_out_u64(w, "epoch", o->epoch);
	if (o->groups >= 0) {
		json_out_i64(w, "unconfirmed_groups", o->groups);
		json_out_i64(w, "unconfirmed_bytes", o->bytes);
		json_out_i64(w, "unconfirmed_ms", (int64_t)(o->unconfirmed * 1000));
	}
	json_out_close(w);
}

void
shardowners_put(const struct shardowners *o, struct json_out *w)
{
	if (o->n == 0) {
		json_out_null(w, "owners");
		return;
	}
	json_out_array(w, "owners");
	for (size_t i = 0; i < o->n; i++)
		put(&o->rows[i], w);
	json_out_close(w);
}

/* Whether an earlier row has the same owner. */
static bool
is_named(const struct shardowners *o, size_t row)
{
	for (size_t i = 0; i < row; i++)
		if (strcmp(o->rows[i].address, o->rows[row].address) == 0)
			return true;
	return false;
}

static void
put_shards(const struct shardowners *o, const char *address, struct buf *out)
{
	char text[200];

	for (size_t i = 0; i < o->n; i++) {
		if (strcmp(o->rows[i].address, address) != 0)
			continue;
		(void)snprintf(text, sizeof text, " %s@%" PRIu64, o->rows[i].shard, o->rows[i].epoch);
		escape_put(out, slice_of(text), false);
	}
}

void
shardowners_text(const struct shardowners *o, struct buf *out)
{
	for (size_t i = 0; i < o->n; i++) {
		const struct shardowner *const first = &o->rows[i];

		if (is_named(o, i))
			continue;
		buf_puts(out, "owner       ");
		escape_put(out, *first->address ? slice_of(first->address) : SLICE("none"), false);
		buf_puts(out, first->here ? " (this node):" : ":");
		put_shards(o, first->address, out);
		buf_putc(out, '\n');
	}
}
