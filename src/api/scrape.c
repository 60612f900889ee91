#include "api/scrape.h"

#include "api/flat/view.h"
#include "api/fanout.h"
#include "api/handler.h"
#include "api/limits.h"
#include "api/nodes.h"
#include "net/server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	FAMILY_MAX = 64 << 20, /* bytes of one metric of all queues */
	PAGE_LANES = 64,       /* lanes that are asked at once */
	LABELS_MAX = 2 * MESSAGE_NAME_MAX + SHARDMAP_NAME + 64
};

#define DONE UINT64_MAX /* the cursor of a lane without more queues */

static void
write_type(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* A gauge with one line. */
static void
write_gauge(struct buf *out, const char *name, const char *help, uint64_t value)
{
	write_type(out, name, "gauge", help);
	buf_printf(out, "%s %" PRIu64 "\n", name, value);
}

/* --- the process -------------------------------------------------------------- */

/* Resident pages, the second number of the file; 0: unknown. */
static uint64_t
resident_pages(void)
{
	FILE *const f = fopen("/proc/self/statm", "re");
	char line[128] = "";
	char *second;

	if (!f)
		return 0;
	if (!fgets(line, sizeof line, f))
		line[0] = 0;
	fclose(f);
	second = strchr(line, ' ');
	return second ? strtoul(second, NULL, 10) : 0;
}

static double
seconds_of(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void
write_process(const struct api *api, struct buf *out)
{
	struct rusage used = { 0 };
	struct rlimit files = { 0 };

	(void)getrusage(RUSAGE_SELF, &used); /* both fail only for wrong arguments */
	(void)getrlimit(RLIMIT_NOFILE, &files);
	write_type(out, "process_start_time_seconds", "gauge",
		   "when it began, in seconds since 1970");
	buf_printf(out, "process_start_time_seconds %.3f\n", (double)api->started / 1e9);
	write_type(out, "process_cpu_seconds_total", "counter", "processor time used");
	buf_printf(out, "process_cpu_seconds_total %.6f\n",
		   seconds_of(used.ru_utime) + seconds_of(used.ru_stime));
	write_gauge(out, "process_resident_memory_bytes", "memory in use",
		    resident_pages() * (uint64_t)sysconf(_SC_PAGESIZE));
	write_gauge(out, "process_max_fds", "files that may be open", files.rlim_cur);
}

/* --- shards ------------------------------------------------------------------- */

struct scrape_row {
	const char *name;
	const char *type;
	const char *help;
	size_t offset;
};

/* clang-format off */
#define ROW(name, type, help, in, member) { "sluice_" name, type, help, offsetof(struct in, member) }
#define TOTAL(name, type, member, help)   ROW(name, type, help, broker_totals, member)
#define GAUGE(name, member, help)         ROW(name, "gauge", help, op_shard, member)
#define STORE(name, type, member, help)   ROW("store_" name, type, help, op_shard, store.member)
#define FAMILY(name, member, help)        ROW("queue_" name, "counter", help, ledger_totals, member)

static const struct scrape_row totals[] = {
	TOTAL("shard_ops_total", "counter", ops, "operations run by the shard"),
	TOTAL("shard_batches_total", "counter", batches, "batches they were run in"),
	TOTAL("messages_accepted_total", "counter", accepted, "messages taken into queues"),
	TOTAL("messages_delivered_total", "counter", delivered, "messages handed out"),
	TOTAL("messages_returned_total", "counter", returned, "handed out, not received, back in place"),
	TOTAL("messages_acked_total", "counter", acked, "messages finished"),
	TOTAL("messages_nacked_total", "counter", nacked, "messages given back by their holder"),
	TOTAL("messages_deleted_total", "counter", deleted, "messages deleted by hand"),
	TOTAL("waiting", "gauge", waiting, "operations that wait for a message or a result"),
};
/* clang-format on */

/* Whether another node of the store owns the shard: this node serves the others. */
static bool
is_elsewhere(const struct api *api, uint32_t lane)
{
	struct slu_err err;

	return broker_health(api->broker, lane, &err) == SLU_EMOVED && err.owner;
}

/* One line per shard: 1 if all its lanes serve, or another node serves them. */
static void
write_available(struct api *api, struct buf *out)
{
	const uint32_t n = broker_lanes(api->broker);
	bool serves = true;

	write_type(out, "sluice_shard_available", "gauge",
		   "1: all lanes of the shard serve, here or at another node; 0: one has failed, or cannot reach its store");
	for (uint32_t lane = 0; lane < n; lane++) {
		const char *const name = broker_shard_name(api->broker, lane);

		serves &= is_elsewhere(api, lane) || broker_health(api->broker, lane, NULL) == 0;
		if (lane + 1 < n && broker_lane_number(api->broker, lane + 1) > 0)
			continue;
		buf_printf(out, "sluice_shard_available{shard=\"%s\"} %d\n", name, serves);
		serves = true;
	}
}

static void
write_map(const struct api *api, struct buf *out)
{
	const struct shardmap *const m = broker_map(broker_routes(api->broker));

	write_type(out, "sluice_shard_map_info", "gauge",
		   "1: the map from queues to shards that is in force, where there is one");
	if (m)
		buf_printf(out, "sluice_shard_map_info{hash=\"%016" PRIx64 "\",version=\"%" PRIu64 "\"} 1\n",
			   shardmap_hash(m), shardmap_version(m));
	write_gauge(out, "sluice_shard_map_disagreements",
		    "nodes that live, share a shard with this one, and have another map",
		    atomic_load(&api->disagreements));
	write_gauge(out, "sluice_node_id_conflict",
		    "1: another server that shares a shard has the same node.id", atomic_load(&api->twins));
}

static void
write_index(const struct api *api, struct buf *out)
{
	const struct quota *const q = broker_quota(api->broker);

	write_gauge(out, "sluice_index_memory_bytes",
		    "memory that the index of all shards has: messages, keys and documents",
		    quota_bytes(&q->index_held));
	write_gauge(out, "sluice_index_memory_limit_bytes",
		    "limits.index_memory: beyond, new work is refused", quota_bytes(&q->index_limit));
}

static void
write_totals(struct api *api, struct buf *out)
{
	for (size_t i = 0; i < COUNT(totals); i++) {
		write_type(out, totals[i].name, totals[i].type, totals[i].help);
		for (uint32_t shard = 0; shard < broker_lanes(api->broker); shard++) {
			struct broker_totals values;
			uint64_t value;

			broker_totals(api->broker, shard, &values);
			memcpy(&value, (const char *)&values + totals[i].offset, sizeof value);
			buf_printf(out, "%s{%s} %" PRIu64 "\n", totals[i].name,
				   broker_lane_labels(api->broker, shard), value);
		}
	}
	write_index(api, out);
	write_map(api, out);
	write_available(api, out);
	write_type(out, "sluice_shard_up", "gauge", "1: it serves; 0: it has failed; no line: another node serves it");
	for (uint32_t shard = 0; shard < broker_lanes(api->broker); shard++)
		if (!is_elsewhere(api, shard))
			buf_printf(out, "sluice_shard_up{%s} %d\n", broker_lane_labels(api->broker, shard),
				   broker_health(api->broker, shard, NULL) == 0);
}

/* clang-format off */
static const struct scrape_row gauges[] = {
	GAUGE("ordering_keys", keys, "ordering keys that messages have"),
	GAUGE("idempotency_keys", idempotency, "idempotency keys that are remembered"),
	GAUGE("results", results, "results that are kept"),
	GAUGE("lock_keys", locks, "lock keys that are known"),
	GAUGE("lock_leases", leases, "lock keys that are held"),
	GAUGE("message_states", states, "messages that have a state"),
	GAUGE("log_segments", segments, "files of the log that hold records"),
	GAUGE("log_spare_segments", spares, "files of the log made ahead"),
	GAUGE("log_bytes", bytes, "bytes of all files of the log"),
	GAUGE("log_live_bytes", live, "bytes of the log that are needed"),
	GAUGE("disk_free_bytes", disk_free, "bytes free where the log is"),
	GAUGE("disk_size_bytes", disk_size, "bytes of that disk"),
};
/* clang-format on */

/* A shard that is down and an unknown value have no line. */
static bool
gauge_of(const struct fanout_part *p, const struct scrape_row *row, int64_t *value)
{
	if (!fanout_has(p))
		return false;
	memcpy(value, (const char *)&p->op.on_shard + row->offset, sizeof *value);
	return *value >= 0;
}

static void
write_gauges(const struct fanout *g, struct buf *out)
{
	int64_t value;

	for (size_t i = 0; i < COUNT(gauges); i++) {
		write_type(out, gauges[i].name, gauges[i].type, gauges[i].help);
		for (unsigned k = 0; k < g->n; k++)
			if (gauge_of(&g->parts[k], &gauges[i], &value))
				buf_printf(out, "%s{%s} %" PRId64 "\n", gauges[i].name,
					   broker_lane_labels(g->api->broker, g->parts[k].lane),
					   value);
	}
}

/* Metrics of the store of a shard: one of its lanes reports them. */
/* clang-format off */
static const struct scrape_row stores[] = {
	STORE("memory_bytes", "gauge", memory, "memory that the Redis of a shard uses"),
	STORE("memory_max_bytes", "gauge", max_memory, "its maxmemory; 0: none"),
	STORE("disk_bytes", "gauge", disk, "its append-only file"),
	STORE("clients", "gauge", clients, "connections it has, from all nodes and all else"),
	STORE("clients_max", "gauge", max_clients, "its maxclients"),
	STORE("cpu_seconds_total", "counter", cpu, "processor time it has used"),
};
/* clang-format on */

static void
write_stores(const struct fanout *g, struct buf *out)
{
	for (size_t i = 0; i < COUNT(stores); i++) {
		const bool micro = stores[i].offset == offsetof(struct op_shard, store.cpu);

		write_type(out, stores[i].name, stores[i].type, stores[i].help);
		for (unsigned k = 0; k < g->n; k++) {
			const struct fanout_part *const p = &g->parts[k];
			int64_t value;

			if (!gauge_of(p, &stores[i], &value) || !p->op.on_shard.store.told)
				continue;
			buf_printf(out, "%s{shard=\"%s\"} %.*f\n", stores[i].name,
				   broker_shard_name(g->api->broker, p->lane), micro ? 6 : 0,
				   (double)value / (micro ? 1e6 : 1.));
		}
	}
}

/* --- queues ------------------------------------------------------------------- */

/* The metrics of a queue, each in a buffer of its own: the lines of a metric follow each other. */
enum family {
	QUEUE_MESSAGES,
	QUEUE_OLDEST,
	QUEUE_ACCEPTED,
	QUEUE_DELIVERED,
	QUEUE_DONE,
	QUEUE_FAILED,
	QUEUE_DIED,
	FAMILIES
};

static const struct scrape_row families[FAMILIES] = {
	[QUEUE_MESSAGES] = { "sluice_queue_messages", "gauge", "messages of a queue by state", 0 },
	[QUEUE_OLDEST] = { "sluice_queue_oldest_seconds", "gauge", "how long the oldest ready message of a queue has been due", 0 },
	[QUEUE_ACCEPTED] = FAMILY("accepted_total", accepted, "messages taken into a queue"),
	[QUEUE_DELIVERED] = FAMILY("delivered_total", delivered, "messages of a queue handed out"),
	[QUEUE_DONE] = FAMILY("done_total", done, "messages of a queue acked or deleted"),
	[QUEUE_FAILED] = FAMILY("failed_total", failed, "failing nacks and expired leases of a queue"),
	[QUEUE_DIED] = FAMILY("dead_letters_total", died, "messages of a queue that became dead letters"),
};

struct state {
	struct buf text[FAMILIES];
	uint64_t count[MSG_STATES]; /* of all queues */
	uint32_t shown;             /* queues with lines of their own */
	uint32_t queues;
	bool answered;         /* a lane has answered; otherwise its queues are unknown */
	uint32_t warnings;     /* queues that warn: flat_view_warns */
	struct op_queue other; /* the sum of the queues that are not shown; its counts are in others */
	uint64_t others[MSG_STATES];

	uint32_t lanes;
	uint64_t *cursors; /* the cursor of each lane, or DONE */
	bool named;        /* lines of queues have the shard */
	struct fanout_missing missing;
};

static uint64_t
total_of(const struct op_queue *q, enum family f)
{
	uint64_t value;

	memcpy(&value, (const char *)&q->totals + families[f].offset, sizeof value);
	return value;
}

/* Names need no escapes. A queue that moves between shards is on two
 * shards, and has lines for each. */
static void
write_queue(struct state *s, const struct op_queue *q, const uint64_t *count,
	    const char *shard)
{
	char labels[LABELS_MAX];

	(void)snprintf(labels, sizeof labels, "namespace=\"%s\",topic=\"%s\"%s%s%s", q->space,
		       q->name, shard ? ",shard=\"" : "", shard ? shard : "",
		       shard ? "\"" : ""); /* always fits */
	for (unsigned i = MSG_READY; i < MSG_STATES; i++)
		buf_printf(&s->text[QUEUE_MESSAGES],
			   "%s{%s,state=\"%s\"} %" PRIu64 "\n",
			   families[QUEUE_MESSAGES].name, labels, flat_view_states[i], count[i]);
	buf_printf(&s->text[QUEUE_OLDEST], "%s{%s} %.3f\n", families[QUEUE_OLDEST].name, labels,
		   q->oldest < 0 ? 0. : (double)q->oldest / 1e9);
	for (enum family f = QUEUE_ACCEPTED; f < FAMILIES; f++)
		buf_printf(&s->text[f], "%s{%s} %" PRIu64 "\n", families[f].name, labels,
			   total_of(q, f));
}

static void
add_totals(struct state *s, const struct ledger_totals *t)
{
	op_name_queue(&s->other, ".other", ".other", NULL, NULL);
	ledger_add_totals(&s->other.totals, t);
}

static void
add_other(struct state *s, const struct op_queue *q)
{
	struct op_queue *const o = &s->other;

	for (unsigned i = MSG_READY; i < MSG_STATES; i++)
		s->others[i] += q->count[i];
	o->oldest = q->oldest > o->oldest ? q->oldest : o->oldest;
	add_totals(s, &q->totals);
}

/* The totals of deleted queues, so that no counter decreases. A queue without messages has no
 * other counts. */
static void
add_forgotten(struct state *s, const struct fanout *g)
{
	for (unsigned i = 0; i < g->n; i++) {
		const struct fanout_part *const p = &g->parts[i];

		if (fanout_has(p) && p->op.on_shard.forgotten.accepted)
			add_totals(s, &p->op.on_shard.forgotten);
	}
}

static void
take_queue(const struct api *api, struct state *s, const struct op_queue *q, uint32_t lane)
{
	uint64_t count[MSG_STATES] = { 0 };

	s->queues++;
	s->warnings += flat_view_warns(q);
	for (unsigned i = MSG_READY; i < MSG_STATES; i++) {
		count[i] = q->count[i];
		s->count[i] += q->count[i];
	}
	if (s->shown >= atomic_load_explicit(&api->metric_queues, memory_order_relaxed)) {
		add_other(s, q);
		return;
	}
	s->shown++;
	write_queue(s, q, count, s->named ? broker_shard_name(api->broker, lane) : NULL);
}

/* No lines if no shard has answered: unknown is not 0. */
static void
write_sums(const struct state *s, struct buf *out)
{
	write_type(out, "sluice_messages", "gauge", "messages of all queues by state");
	for (unsigned i = MSG_READY; s->answered && i < MSG_STATES; i++)
		buf_printf(out, "sluice_messages{state=\"%s\"} %" PRIu64 "\n",
			   flat_view_states[i], s->count[i]);
	write_type(out, "sluice_queues", "gauge", "queues that exist");
	if (s->answered)
		buf_printf(out, "sluice_queues %" PRIu32 "\n", s->queues);
	write_type(out, "sluice_queues_warning", "gauge",
		   "queues with more messages than their warn_depth, or an older ready one than their warn_age");
	if (s->answered)
		buf_printf(out, "sluice_queues_warning %" PRIu32 "\n", s->warnings);
}

static void
write_queues(struct state *s, struct buf *out)
{
	if (s->other.name[0])
		write_queue(s, &s->other, s->others, NULL);
	for (enum family f = 0; f < FAMILIES; f++) {
		write_type(out, families[f].name, families[f].type, families[f].help);
		buf_put(out, s->text[f].p, s->text[f].n);
		out->failed |= s->text[f].failed;
	}
	write_sums(s, out);
}

/* --- the call ----------------------------------------------------------------- */

static void
write_head(struct apicall *a)
{
	struct api *const api = a->api;
	struct buf *const out = &a->x->out;

	write_type(out, "sluice_info", "gauge", "what is running");
	buf_printf(out, "sluice_info{version=\"%s\",engine=\"%s\",durability=\"%s\"} 1\n",
		   SLUICE_VERSION, api->engine, api->sync);
	write_process(api, out);
	if (api->server)
		server_metrics(api->server, out);
	api_metrics(api, out);
	broker_metrics(api->broker, out);
	write_totals(api, out);
	nodes_metrics(api, out);
	if (api->more_metrics)
		api->more_metrics(api->more_arg, out);
}

static void
release(struct state *s)
{
	for (enum family f = 0; f < FAMILIES; f++)
		buf_release(&s->text[f]);
}

/* --- all lanes ---------------------------------------------------------------- */

static void
finish(struct fanout *g)
{
	struct apicall *const a = g->apicall;
	struct buf *const out = &a->x->out;
	struct state *const s = g->arg;

	fanout_missing(g, &s->missing);
	fanout_warn(a, &s->missing);
	add_forgotten(s, g);
	write_queues(s, out);
	release(s);
	write_gauges(g, out);
	write_stores(g, out);
	call_answer(call_of(a->x), 200, "text/plain; version=0.0.4; charset=utf-8", out);
}

static void
apicall_shards(struct apicall *a)
{
	struct state *const s = a->state;
	struct fanout *const g = fanout_shards(a);

	if (!g) {
		release(s);
		return;
	}
	g->arg = s;
	fanout_run(g, finish);
}

static void take_pages(struct fanout *g);

/* Asks the lanes that have more queues, at most PAGE_LANES at once. */
static void
apicall_pages(struct apicall *a)
{
	struct state *const s = a->state;
	struct fanout *g;
	unsigned n = 0;

	for (uint32_t i = 0; i < s->lanes && n < PAGE_LANES; i++)
		n += s->cursors[i] != DONE;
	if (n == 0) {
		apicall_shards(a);
		return;
	}
	g = fanout_new(a, n);
	if (g)
		g->local = true; /* metrics are of this server */
	for (uint32_t i = 0, at = 0; g && at < n; i++) {
		if (s->cursors[i] == DONE)
			continue;
		if (!fanout_op(g, at, OP_QUEUES, (struct slice){ 0 }, (struct slice){ 0 }, i,
			       API_METRIC_PAGE))
			g = NULL; /* deleted */
		else
			g->parts[at++].op.cursor = s->cursors[i];
	}
	if (!g) {
		release(s);
		return;
	}
	g->arg = s;
	fanout_run(g, take_pages);
}

/* A lane that does not answer is left out. */
static void
take_pages(struct fanout *g)
{
	struct state *const s = g->arg;

	for (unsigned i = 0; i < g->n; i++) {
		const struct fanout_part *const p = &g->parts[i];
		const uint64_t next = fanout_has(p) ? p->op.cursor : 0;

		s->answered |= fanout_has(p);
		for (uint32_t k = 0; fanout_has(p) && k < p->op.n_queues; k++)
			take_queue(g->api, s, &p->op.queues[k], p->lane);
		s->cursors[p->lane] = next && next >> BROKER_CURSOR_BITS == p->lane ? next : DONE;
	}
	fanout_missing(g, &s->missing);
	apicall_pages(g->apicall);
}

void
scrape_metrics(struct call *c, void *api)
{
	struct apicall *const a = apicall_new(api, c);
	struct state *const s = a ? apicall_state(a, sizeof *s) : NULL;

	if (!s)
		return;
	s->lanes = broker_lanes(a->api->broker);
	s->named = broker_map(broker_routes(a->api->broker)) != NULL;
	s->cursors = arena_array(&a->memory, s->lanes, sizeof *s->cursors);
	if (!s->cursors) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	for (uint32_t i = 0; i < s->lanes; i++)
		s->cursors[i] = (uint64_t)i << BROKER_CURSOR_BITS;
	for (enum family f = 0; f < FAMILIES; f++)
		buf_init(&s->text[f], FAMILY_MAX);
	s->other.oldest = -1;
	write_head(a);
	apicall_pages(a);
}
