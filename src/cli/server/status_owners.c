#include "cli/server/status_owners.h"

#include "base/mem.h"
#include "cli/lib/escape.h"
#include "cli/lib/metric.h"

#include <inttypes.h>

/* ---- Reading ---- */

static void
take_owner(struct status_owner *o, struct slice line)
{
	(void)metric_label(line, "address", o->address, sizeof o->address);
}

static void
take_here(struct status_owner *o, struct slice line)
{
	o->here = metric_value(line) > 0;
}

static void
take_epoch(struct status_owner *o, struct slice line)
{
	o->epoch = (uint64_t)metric_value(line);
}

static void
take_groups(struct status_owner *o, struct slice line)
{
	o->groups = (int64_t)metric_value(line);
}

static void
take_bytes(struct status_owner *o, struct slice line)
{
	o->bytes = (int64_t)metric_value(line);
}

static void
take_seconds(struct status_owner *o, struct slice line)
{
	o->unconfirmed = metric_value(line);
}

static const struct {
	const char *metric;
	void (*take)(struct status_owner *o, struct slice line);
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
static struct status_owner *
find(struct status_owners *o, struct slice line)
{
	struct status_owner found = { .groups = -1 };
	struct status_owner *rows;

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
status_owners_take(struct status_owners *o, struct slice line)
{
	for (size_t i = 0; i < COUNT(metrics); i++) {
		struct status_owner *const row = metric_is(line, metrics[i].metric) ? find(o, line) : NULL;

		if (row)
			metrics[i].take(row, line);
	}
}

void
status_owners_release(struct status_owners *o)
{
	mem_free(o->rows);
	*o = (struct status_owners){ 0 };
}

/* ---- Writing ---- */

static void
put(const struct status_owner *o, struct json_out *w)
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
status_owners_put(const struct status_owners *o, struct json_out *w)
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
is_printed(const struct status_owners *o, size_t row)
{
	for (size_t i = 0; i < row; i++)
		if (strcmp(o->rows[i].address, o->rows[row].address) == 0)
			return true;
	return false;
}

void
status_owners_print(const struct status_owners *o)
{
	for (size_t i = 0; i < o->n; i++) {
		const struct status_owner *const first = &o->rows[i];

		if (is_printed(o, i))
			continue;
		printf("%-12s", "owner");
		escape_print(stdout, *first->address ? slice_of(first->address) : SLICE("none"));
		printf("%s:", first->here ? " (this node)" : "");
		for (size_t k = i; k < o->n; k++)
			if (strcmp(o->rows[k].address, first->address) == 0)
				printf(" %s@%" PRIu64, o->rows[k].shard, o->rows[k].epoch);
		putchar('\n');
	}
}
