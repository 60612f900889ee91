#include "api/warnings.h"

#include "api/fanout.h"
#include "base/json/json_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CLOCK_WARN (5 * SLU_SEC) /* shard time and the wall clock may differ so much without a warning */

#define GIB ((double)(1 << 30))

enum {
	EACH_MAX = 8 /* warnings of an engine */
};

struct out {
	struct json_out *w;
	const struct api *api;
	bool any; /* the member is begun */
};

bool
warnings_same_store(const struct broker *b, int64_t x, int64_t y)
{
	return x == y || (x >= 0 && y >= 0 && broker_lane_shared(b, (uint32_t)x) &&
			  broker_lane_shared(b, (uint32_t)y) &&
			  strcmp(broker_shard_name(b, (uint32_t)x), broker_shard_name(b, (uint32_t)y)) == 0);
}

/* shard: -1 = of no single shard */
static void
add(struct out *o, int64_t shard, const char *name, const char *text)
{
	if (!o->any)
		json_out_array(o->w, "warnings");
	o->any = true;
	json_out_object(o->w, NULL);
	json_out_str(o->w, "warning", slice_of(name));
	if (shard >= 0) {
		json_out_i64(o->w, "shard", shard);
		json_out_str(o->w, "name", slice_of(broker_shard_name(o->api->broker, (uint32_t)shard)));
	}
	json_out_str(o->w, "message", slice_of(text));
	json_out_close(o->w);
}

/* ---- Engines ---- */

/* Does an earlier lane of the same store have this warning? */
static bool
is_known(const struct api *api, uint32_t lane, const char *name)
{
	struct engine_warning found[EACH_MAX];

	for (uint32_t i = 0; i < lane; i++) {
		const unsigned n = warnings_same_store(api->broker, i, lane) ? broker_warnings(api->broker, i, found, EACH_MAX) : 0;

		for (unsigned k = 0; k < n; k++)
			if (strcmp(found[k].name, name) == 0)
				return true;
	}
	return false;
}

static void
add_engine(struct out *o, uint32_t lane)
{
	struct engine_warning found[EACH_MAX];
	const unsigned n = broker_warnings(o->api->broker, lane, found, EACH_MAX);

	for (unsigned i = 0; i < n; i++)
		if (!is_known(o->api, lane, found[i].name))
			add(o, lane, found[i].name, found[i].text);
}

/* ---- Clocks ---- */

static bool
is_off(const struct broker *b, uint32_t lane)
{
	const slu_time ahead = broker_ahead(b, lane);

	return ahead > CLOCK_WARN || ahead < -CLOCK_WARN;
}

/* One for the lanes of a store, and one for all logs of this machine. */
static bool
is_told(const struct broker *b, uint32_t lane)
{
	for (uint32_t i = 0; i < lane; i++)
		if (is_off(b, i) && (warnings_same_store(b, i, lane) || !broker_lane_shared(b, lane)))
			return true;
	return false;
}

static void
add_clock(struct out *o, uint32_t lane)
{
	const struct broker *const b = o->api->broker;
	const slu_time ahead = broker_ahead(b, lane);
	char text[240];

	if (!is_off(b, lane) || is_told(b, lane))
		return;
	(void)snprintf(text, sizeof text,
		       "its time is %" PRId64 " s %s the clock of this machine: moments that clients name come so much %s; "
		       "check the clocks, then restart the server",
		       (ahead > 0 ? ahead : -ahead) / SLU_SEC, ahead > 0 ? "ahead of" : "behind", ahead > 0 ? "early" : "late");
	add(o, lane, "clock", text);
}

/* ---- Disks ---- */

static void
add_disk(struct out *o, const struct fanout_part *p)
{
	const struct op_shard *const s = &p->op.on_shard;
	const uint32_t least = atomic_load(&o->api->disk_warn);
	char text[200];

	if (!fanout_has(p) || p->op.rc || s->disk_free < 0 || s->disk_size <= 0)
		return;
	const double part = (double)s->disk_free * 100 / (double)s->disk_size;

	if (part >= least)
		return;
	(void)snprintf(text, sizeof text, "%.0f %% of the disk are free, %.1f of %.1f GiB; on a full disk new work is refused", part,
		       (double)s->disk_free / GIB, (double)s->disk_size / GIB);
	add(o, p->lane, "disk_space", text);
}

/* ---- The server ---- */

/* The warning at 80 % of limits.index_memory. */
static void
add_index(struct out *o)
{
	const struct quota *const q = broker_quota(o->api->broker);
	char text[160];

	if (!q || !atomic_load(&q->index_warns))
		return;
	(void)snprintf(text, sizeof text, "the index has %" PRIu64 " of the %" PRIu64 " bytes of limits.index_memory; at all of them new work is refused",
		       quota_bytes(&q->index_held), quota_bytes(&q->index_limit));
	add(o, -1, "index_memory", text);
}

void
warnings_write(struct json_out *w, const struct api *api, const struct fanout *g)
{
	struct out o = { w, api, false };

	if (api->broker)
		add_index(&o);
	for (uint32_t i = 0; api->broker && i < broker_lanes(api->broker); i++) {
		add_engine(&o, i);
		add_clock(&o, i);
	}
	for (unsigned i = 0; g && i < g->n; i++)
		add_disk(&o, &g->parts[i]);
	if (atomic_load(&api->disagreements))
		add(&o, -1, "shard_map", "other nodes have another shard map");
	if (atomic_load(&api->twins))
		add(&o, -1, "node_id", "another server has the same node.id");
	if (o.any)
		json_out_close(w);
}
