#include "api/health.h"

#include "api/authorize_call.h"
#include "api/flat/error.h"
#include "api/fanout.h"
#include "api/handler.h"
#include "api/nodes.h"
#include "api/openapi.h"
#include "api/warnings.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	REASONS_MAX = 16 /* more shards than that may have failed: the first are named */
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

/* A store is named once, however many lanes it has. */
static void
add_lane(struct state *s, const struct broker *b, const struct slu_err *err, uint32_t lane)
{
	for (unsigned i = 0; i < s->n; i++)
		if (warnings_same_store(b, s->reasons[i].shard, lane))
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
write_owned(struct json_out *w, const struct api *api, const struct state *s)
{
	if (!api->broker || !broker_has_tenure(api->broker))
		return;
	json_out_object(w, "shards");
	json_out_u64(w, "here", s->here);
	json_out_u64(w, "elsewhere", s->elsewhere);
	json_out_close(w);
}

/* g: the answers of the shards, or NULL. With queues on several shards, one failed shard does not make the server not ready. */
static void
tell(struct call *c, const struct api *api, const struct state *s, const struct fanout *g)
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
	warnings_write(&w, api, g);
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
	tell(call_of(g->apicall->x), g->api, s, g);
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
	tell(c, api, &s, NULL);
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
