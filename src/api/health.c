#include "api/health.h"

#include "api/authorize_call.h"
#include "api/flat/error.h"
#include "api/fanout.h"
#include "api/handler.h"
#include "api/nodes.h"
#include "api/openapi.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	WARNINGS_MAX = 8, /* per shard */
	REASONS_MAX = 16  /* more shards than that may have failed: the first are named */
};

void
health_healthz(struct call *c, void *arg)
{
	(void)arg;
	call_answer_text(c, 200, api_json, SLICE("{\"status\":\"ok\"}\n"));
}

void
health_openapi(struct call *c, void *arg)
{
	const struct slice host = authorize_own_host(c);
	struct buf *const out = &c->x.out;

	(void)arg;
	(void)call_add(c, "Vary", SLICE("Host")); /* the answer is fine without */
	if (host.n > 0) {
		buf_put(out, openapi_text, openapi_url);
		buf_printf(out, "http%s://%.*s", exchange_is_tls(&c->x) ? "s" : "", (int)host.n, host.p);
		buf_put(out, openapi_text + openapi_url + 1, openapi_size - openapi_url - 1);
	} else {
		buf_put(out, openapi_text, openapi_size);
	}
	call_answer(c, 200, api_json, out);
}

/* --- ready -------------------------------------------------------------------- */

struct reason {
	struct slu_err err;
	int64_t shard; /* -1: not of a single shard */
};

struct state {
	struct reason reasons[REASONS_MAX];
	unsigned n;
	unsigned here;      /* shards without a reason */
	unsigned elsewhere; /* shards that other nodes of the store own */
	bool partly;        /* one sound shard is enough: a shard map, or several nodes */
};

static void
add(struct state *s, const struct slu_err *err, int64_t shard)
{
	if (s->n < REASONS_MAX)
		s->reasons[s->n++] = (struct reason){ *err, shard };
}

/* The lanes of a shared shard have one store; the lanes of others have a log each. */
static bool
same_store(const struct broker *b, int64_t x, int64_t y)
{
	return x == y || (x >= 0 && y >= 0 && broker_lane_shared(b, (uint32_t)x) &&
			  broker_lane_shared(b, (uint32_t)y) &&
			  strcmp(broker_shard_name(b, (uint32_t)x), broker_shard_name(b, (uint32_t)y)) == 0);
}

/* A store is named once, however many lanes it has. */
static void
add_lane(struct state *s, const struct broker *b, const struct slu_err *err, uint32_t lane)
{
	for (unsigned i = 0; i < s->n; i++)
		if (same_store(b, s->reasons[i].shard, lane))
			return;
	add(s, err, lane);
}

static void
write_progress(struct json_out *w, const struct api *api)
{
	if (!api->progress)
		return;
	json_out_u64(w, "shard", atomic_load(&api->progress->shard));
	json_out_u64(w, "read_bytes", atomic_load(&api->progress->done));
	json_out_u64(w, "log_bytes", atomic_load(&api->progress->all));
}

static void
write_reason(struct json_out *w, const struct reason *r, const struct api *api)
{
	const struct slu_err_row *const row = slu_err_row((int)r->err.code);

	json_out_object(w, NULL);
	json_out_str(w, "reason", slice_of(row->flat_name));
	if (r->shard >= 0) {
		json_out_i64(w, "shard", r->shard);
		json_out_str(w, "name", slice_of(broker_shard_name(api->broker, (uint32_t)r->shard)));
	}
	if (r->err.code == SLU_ESTARTING)
		write_progress(w, api);
	json_out_str(w, "message", slice_of(r->err.text));
	json_out_close(w);
}

static void
write_map(struct json_out *w, const struct api *api)
{
	const struct shardmap *const m =
		api->broker ? broker_map(broker_routes(api->broker)) : NULL;
	char hash[17];

	if (!m)
		return;
	(void)snprintf(hash, sizeof hash, "%016" PRIx64, shardmap_hash(m));
	json_out_object(w, "shard_map");
	json_out_u64(w, "version", shardmap_version(m));
	json_out_str(w, "hash", slice_of(hash));
	json_out_close(w);
}

static void
write_warning(struct json_out *w, const struct api *api, int64_t shard, const char *name,
	      const char *text, bool *first)
{
	if (*first)
		json_out_array(w, "warnings");
	*first = false;
	json_out_object(w, NULL);
	json_out_str(w, "warning", slice_of(name));
	if (shard >= 0) {
		json_out_i64(w, "shard", shard);
		json_out_str(w, "name", slice_of(broker_shard_name(api->broker, (uint32_t)shard)));
	}
	json_out_str(w, "message", slice_of(text));
	json_out_close(w);
}

/* Does an earlier lane of the same store have this warning? */
static bool
is_known(const struct api *api, uint32_t lane, const char *name)
{
	struct engine_warning found[WARNINGS_MAX];

	for (uint32_t i = 0; i < lane; i++) {
		const unsigned n = same_store(api->broker, i, lane)
					   ? broker_warnings(api->broker, i, found, WARNINGS_MAX)
					   : 0;

		for (unsigned k = 0; k < n; k++)
			if (strcmp(found[k].name, name) == 0)
				return true;
	}
	return false;
}

static void
write_warnings(struct json_out *w, const struct api *api, uint32_t lane, bool *first)
{
	struct engine_warning found[WARNINGS_MAX];
	const unsigned n = broker_warnings(api->broker, lane, found, WARNINGS_MAX);

	for (unsigned i = 0; i < n; i++)
		if (!is_known(api, lane, found[i].name))
			write_warning(w, api, lane, found[i].name, found[i].text, first);
}

/* The warning at 80 % of limits.index_memory. */
static void
write_index_warning(struct json_out *w, const struct api *api, bool *first)
{
	const struct quota *const q = api->broker ? broker_quota(api->broker) : NULL;
	char text[160];

	if (!q || !atomic_load(&q->index_warns))
		return;
	(void)snprintf(text, sizeof text, "the index has %" PRIu64 " of the %" PRIu64 " bytes of limits.index_memory; at all of them new work is refused",
		       quota_bytes(&q->index_held), quota_bytes(&q->index_limit));
	write_warning(w, api, -1, "index_memory", text, first);
}

static void
write_all_warnings(struct json_out *w, const struct api *api)
{
	bool first = true;

	write_index_warning(w, api, &first);
	for (uint32_t i = 0; api->broker && i < broker_lanes(api->broker); i++)
		write_warnings(w, api, i, &first);
	if (atomic_load(&api->disagreements))
		write_warning(w, api, -1, "shard_map", "other nodes have another shard map", &first);
	if (atomic_load(&api->twins))
		write_warning(w, api, -1, "node_id", "another server has the same node.id", &first);
	if (!first)
		json_out_close(w);
}

static void
write_owned(struct json_out *w, const struct api *api, const struct state *s)
{
	if (!api->broker || !broker_has_tenure(api->broker))
		return;
	json_out_object(w, "shards");
	json_out_u64(w, "here", s->here);
	json_out_u64(w, "elsewhere", s->elsewhere);
	json_out_close(w);
}

/* With queues on several shards, one failed shard does not make the server not ready. */
static void
tell(struct call *c, const struct api *api, const struct state *s)
{
	const bool ready = s->n == 0 || (s->partly && s->here + s->elsewhere > 0);
	struct json_out w;

	json_out_open(&w, &c->x.out);
	if (!ready) {
		flat_add_retry(c, &s->reasons[0].err);
		flat_write_err(&w, &s->reasons[0].err);
	}
	json_out_str(&w, "status",
		     !ready     ? SLICE("not_ready")
		     : s->n > 0 ? SLICE("degraded")
				: SLICE("ready"));
	if (s->n > 0) {
		json_out_array(&w, "reasons");
		for (unsigned i = 0; i < s->n; i++)
			write_reason(&w, &s->reasons[i], api);
		json_out_close(&w);
	}
	write_owned(&w, api, s);
	nodes_write_health(api, &w);
	write_all_warnings(&w, api);
	write_map(&w, api);
	json_out_close(&w);
	api_end_line(&c->x.out);
	call_answer(c, ready ? 200 : 503, api_json, &c->x.out);
}

/* Every lane has answered, or is late. */
static void
answer(struct fanout *g)
{
	struct state *const s = g->arg;
	const struct broker *const b = g->api->broker;
	const bool stopping = s->n > 0;
	struct slu_err err;

	for (unsigned i = 0; i < g->n; i++) {
		const struct fanout_part *const p = &g->parts[i];
		const int rc = broker_health(b, p->lane, &err);

		if (rc == SLU_EMOVED && err.owner) {
			s->elsewhere += !stopping;
		} else if (rc) {
			add_lane(s, b, &err, i);
		} else if (!fanout_has(p)) {
			fanout_why(g, p, &err);
			add_lane(s, b, &err, i);
		} else if (p->op.on_shard.disk_full) {
			(void)slu_fail(&err, SLU_EFULL, "no room for new work on the disk");
			add_lane(s, b, &err, i);
		} else {
			s->here += !stopping;
		}
	}
	s->partly = broker_map(broker_routes(b)) || broker_has_tenure(b);
	tell(call_of(g->apicall->x), g->api, s);
}

static void
ask_shards(struct apicall *a)
{
	struct fanout *const g = fanout_shards(a);

	if (!g)
		return;
	g->arg = a->state;
	fanout_run(g, answer);
}

static void
tell_starting(struct call *c, const struct api *api)
{
	struct state s = { .n = 0 };
	struct slu_err err;

	(void)api_starting(api, &err);
	add(&s, &err, -1);
	tell(c, api, &s);
}

void
health_readyz(struct call *c, void *arg)
{
	struct api *const api = arg;
	struct slu_err err;
	struct apicall *a;
	struct state *s;

	if (!atomic_load_explicit(&api->open, memory_order_acquire)) {
		tell_starting(c, api);
		return;
	}
	a = apicall_new(api, c);
	s = a ? apicall_state(a, sizeof *s) : NULL;
	if (!s)
		return;
	if (atomic_load(&api->draining)) {
		(void)slu_fail(&err, SLU_ECLOSED, "stopping, accepts no new work");
		add(s, &err, -1);
	}
	ask_shards(a);
}
