/*
 * nodes.c - the nodes of a store: list, drain, resume; front folders: flush.
 */
#include "api/admin/admin.h"

#include "api/audit/audit.h"
#include "api/handler.h"
#include "api/nodes.h"
#include "broker/broker.h"

/* ---- Answers ---- */

static void
write_text(struct json_out *w, const char *name, const char *text)
{
	if (*text)
		json_out_str(w, name, slice_of(text));
	else
		json_out_null(w, name);
}

static void
write_address(struct json_out *w, const char *name, const struct nodes_view *v, uint32_t row)
{
	write_text(w, name, row == NODES_NONE ? "" : v->rows[row].address);
}

static void
write_node(struct json_out *w, const struct nodes_row *n)
{
	json_out_object(w, NULL);
	write_text(w, "name", n->name);
	write_text(w, "address", n->address);
	json_out_str(w, "life", slice_of(n->life));
	write_text(w, "version", n->version);
	json_out_bool(w, "self", n->self);
	json_out_bool(w, "living", n->living);
	json_out_bool(w, "draining", n->draining);
	if (n->age >= 0)
		json_out_i64(w, "beat_age_ms", n->age / SLU_MS);
	else
		json_out_null(w, "beat_age_ms");
	json_out_u64(w, "shards", n->shards);
	json_out_close(w);
}

static void
write_shard(struct json_out *w, const struct broker *b, const struct nodes_view *v, uint32_t lane)
{
	const struct nodes_shard *const s = &v->shards[lane];

	json_out_object(w, NULL);
	json_out_str(w, "name", slice_of(broker_shard_name(b, lane)));
	json_out_u64(w, "shard", broker_lane_number(b, lane));
	write_address(w, "owner", v, s->owner);
	json_out_u64(w, "epoch", s->epoch);
	write_address(w, "next", v, s->next);
	json_out_close(w);
}

/* Refuses if no store is shared. */
static void
answer_nodes(struct apicall *a)
{
	struct nodes_view v;
	struct json_out w;
	const int rc = nodes_view(a->api, &v);

	if (rc == SLU_ENOTFOUND) {
		apicall_refuse(a, rc, "this server shares no store with other nodes");
		return;
	}
	if (apicall_refused(a, rc, NULL))
		return;
	apicall_object(a, &w);
	json_out_bool(&w, "draining", v.rows[0].draining);
	json_out_i64(&w, "lease_ms", v.lease / SLU_MS);
	json_out_array(&w, "nodes");
	for (uint32_t i = 0; i < v.n; i++)
		write_node(&w, &v.rows[i]);
	json_out_close(&w);
	json_out_array(&w, "shards");
	for (uint32_t i = 0; i < v.n_shards; i++)
		if (v.shards[i].stored)
			write_shard(&w, a->api->broker, &v, i);
	json_out_close(&w);
	nodes_view_release(&v);
	apicall_reply_object(a, &w, 200);
}

const struct handler admin_nodes = { .run = answer_nodes };

/* ---- Drain and resume ---- */

static void
drain(struct apicall *a)
{
	const bool drains = a->arg;
	struct slu_err err = { 0 };
	int rc = slu_fail(&err, SLU_ENOTFOUND, "this server shares no store with other nodes");

	if (a->api->nodes)
		rc = a->api->nodes->drain(a->api->nodes->arg, drains, &err);
	audit_action(a, drains ? "node_drain" : "node_resume", rc);
	if (rc)
		apicall_refuse(a, rc, err.text);
	else
		answer_nodes(a);
}

static const struct param none[1];

const struct handler admin_node_drain = { drain, .body = none, .n = 0, .arg = true };
const struct handler admin_node_resume = { drain, .body = none, .n = 0, .arg = false };

/* ---- Flush ---- */

static void
flush(struct apicall *a)
{
	const uint32_t n = broker_flush(a->api->broker);
	struct json_out w;

	audit_action(a, "front_flush", n ? 0 : SLU_ENOTFOUND);
	if (n == 0) {
		apicall_refuse(a, SLU_ENOTFOUND, "no shard of this server has a front folder");
		return;
	}
	apicall_object(a, &w);
	json_out_u64(&w, "shards", n);
	apicall_reply_object(a, &w, 200);
}

const struct handler admin_front_flush = { flush, .body = none, .n = 0 };
