#include "api/nodes.h"

#include "api/api.h"
#include "base/clock.h"
#include "base/mem.h"
#include "broker/broker.h"

#include <assert.h>
#include <inttypes.h>

/* ---- The view ---- */

int
nodes_view(const struct api *api, struct nodes_view *out)
{
	*out = (struct nodes_view){ 0 };
	return api->nodes ? api->nodes->view(api->nodes->arg, out) : SLU_ENOTFOUND;
}

void
nodes_view_release(struct nodes_view *v)
{
	mem_free(v->rows);
	mem_free(v->shards);
	*v = (struct nodes_view){ 0 };
}

uint32_t
nodes_living(const struct nodes_view *v)
{
	uint32_t living = 0;

	for (uint32_t i = 0; i < v->n; i++)
		living += v->rows[i].living;
	return living;
}

static double
seconds(slu_time t)
{
	return t > 0 ? (double)t / 1e9 : 0;
}

/* ---- Metrics ---- */

static void
write_type(struct buf *out, const char *name, const char *help)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

/* The text comes from another node: a quote in it must not end the label. */
static void
write_label(struct buf *out, const char *name, const char *text)
{
	assert(text);
	buf_printf(out, ",%s=\"", name);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			buf_putc(out, '\\');
		buf_putc(out, (unsigned char)*text < ' ' ? '?' : *text);
	}
	buf_putc(out, '"');
}

static void
write_node(const struct nodes_view *v, struct buf *out)
{
	const struct nodes_row *const self = v->n ? &v->rows[0] : NULL;

	write_type(out, "sluice_nodes_living", "nodes of the store whose beats this node sees, with itself");
	if (self)
		buf_printf(out, "sluice_nodes_living %" PRIu32 "\n", nodes_living(v));
	write_type(out, "sluice_node_draining", "1: this node takes no shards of the store and hands over its own");
	if (self)
		buf_printf(out, "sluice_node_draining %d\n", self->draining);
	write_type(out, "sluice_node_beat_age_seconds",
		   "since this node sent its newest beat that the store has; beyond store.lease other nodes take its shards");
	if (self && self->age >= 0)
		buf_printf(out, "sluice_node_beat_age_seconds %.3f\n", seconds(self->age));
}

static void
write_requests(const struct nodes_view *v, struct buf *out)
{
	static const char *const verbs[NODES_VERBS] = { "put", "get", "list", "remove", "clock" };

	buf_puts(out, "# HELP sluice_store_requests_total requests of this node to its stores, with beats\n"
		      "# TYPE sluice_store_requests_total counter\n");
	for (size_t i = 0; v->n && i < COUNT(verbs); i++)
		buf_printf(out, "sluice_store_requests_total{verb=\"%s\"} %" PRIu64 "\n", verbs[i], v->requests[i]);
	write_type(out, "sluice_store_rest_seconds", "how long groups wait now because of store.puts; 0: within the budget");
	if (v->n)
		buf_printf(out, "sluice_store_rest_seconds %.3f\n", seconds(v->rest));
}

static bool
is_here(const struct nodes_view *v, uint32_t shard)
{
	return v->shards[shard].owner != NODES_NONE && v->rows[v->shards[shard].owner].self;
}

static void
write_owners(const struct broker *b, const struct nodes_view *v, struct buf *out)
{
	write_type(out, "sluice_shard_owner_info", "1: the node that owns a shard of the store; no line: no living node owns it");
	for (uint32_t i = 0; i < v->n_shards; i++) {
		if (v->shards[i].owner >= v->n)
			continue;
		buf_printf(out, "sluice_shard_owner_info{%s", broker_lane_labels(b, i));
		write_label(out, "node", v->rows[v->shards[i].owner].name);
		write_label(out, "address", v->rows[v->shards[i].owner].address);
		buf_puts(out, "} 1\n");
	}
	write_type(out, "sluice_shard_owned", "1: this node owns the shard of the store");
	for (uint32_t i = 0; i < v->n_shards; i++)
		if (v->shards[i].stored)
			buf_printf(out, "sluice_shard_owned{%s} %d\n", broker_lane_labels(b, i), is_here(v, i));
	write_type(out, "sluice_shard_epoch",
		   "rises each time that a node takes the shard of the store; 0: no living node owns it");
	for (uint32_t i = 0; i < v->n_shards; i++)
		if (v->shards[i].stored)
			buf_printf(out, "sluice_shard_epoch{%s} %" PRIu64 "\n", broker_lane_labels(b, i), v->shards[i].epoch);
}

/* ---- Lag ---- */

/* Sets *out for a lane whose store this node writes. */
static bool
lag_of(const struct broker *b, uint32_t lane, struct engine_lag *out)
{
	return broker_lag(b, lane, out) && broker_health(b, lane, NULL) != SLU_EMOVED;
}

static double
lag_groups(const struct engine_lag *lag, slu_time now)
{
	(void)now;
	return (double)lag->groups;
}

static double
lag_bytes(const struct engine_lag *lag, slu_time now)
{
	(void)now;
	return (double)lag->bytes;
}

static double
lag_seconds(const struct engine_lag *lag, slu_time now)
{
	return lag->since ? seconds(now - lag->since) : 0;
}

static const struct lag_row {
	const char *name, *help;
	double (*value)(const struct engine_lag *lag, slu_time now);
} lag_rows[] = {
	{ "sluice_shard_unconfirmed_groups", "groups on their way to the store; their requests wait for an answer", lag_groups },
	{ "sluice_shard_unconfirmed_bytes", "bytes of these groups", lag_bytes },
	{ "sluice_shard_unconfirmed_seconds", "how long the oldest of these groups has been on its way", lag_seconds },
};

static void
write_lag(const struct broker *b, slu_time now, struct buf *out)
{
	struct engine_lag lag;

	for (size_t i = 0; i < COUNT(lag_rows); i++) {
		write_type(out, lag_rows[i].name, lag_rows[i].help);
		for (uint32_t lane = 0; lane < broker_lanes(b); lane++)
			if (lag_of(b, lane, &lag))
				buf_printf(out, "%s{%s} %.*f\n", lag_rows[i].name, broker_lane_labels(b, lane),
					   lag_rows[i].value == lag_seconds ? 3 : 0, lag_rows[i].value(&lag, now));
	}
}

void
nodes_metrics(const struct api *api, struct buf *out)
{
	struct nodes_view v;

	(void)nodes_view(api, &v); /* empty if no store is shared */
	write_node(&v, out);
	write_requests(&v, out);
	write_owners(api->broker, &v, out);
	write_lag(api->broker, clock_boot(api->clock), out);
	nodes_view_release(&v);
}

/* ---- Health ---- */

/* How long the oldest group of all shards has been on its way to the store. */
static slu_time
oldest_lag(const struct api *api)
{
	const slu_time now = clock_boot(api->clock);
	struct engine_lag lag;
	slu_time oldest = 0;

	for (uint32_t lane = 0; lane < broker_lanes(api->broker); lane++)
		if (lag_of(api->broker, lane, &lag) && lag.since && now - lag.since > oldest)
			oldest = now - lag.since;
	return oldest;
}

void
nodes_write_health(const struct api *api, struct json_out *w)
{
	struct nodes_view v;

	if (nodes_view(api, &v))
		return;
	json_out_object(w, "nodes");
	json_out_u64(w, "living", nodes_living(&v));
	json_out_bool(w, "draining", v.rows[0].draining);
	if (v.rows[0].age >= 0)
		json_out_i64(w, "beat_age_ms", v.rows[0].age / SLU_MS);
	json_out_i64(w, "unconfirmed_ms", oldest_lag(api) / SLU_MS);
	json_out_close(w);
	nodes_view_release(&v);
}
