#include "api/scrape.h"

#include "api/ask.h"
#include "api/flat_view.h"
#include "api/limits.h"
#include "http/server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	FAMILY_MAX = 64 << 20 /* bytes of one metric of all queues */
};

static void
write_type(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* --- the process -------------------------------------------------------------- */

/* Pages that are in memory, the second number there; 0 when the system does not say. */
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

	(void)getrusage(RUSAGE_SELF, &used); /* both fail for bad arguments alone */
	(void)getrlimit(RLIMIT_NOFILE, &files);
	write_type(out, "process_start_time_seconds", "gauge",
		   "when it began, in seconds since 1970");
	buf_printf(out, "process_start_time_seconds %.3f\n", (double)api->started / 1e9);
	write_type(out, "process_cpu_seconds_total", "counter", "processor time used");
	buf_printf(out, "process_cpu_seconds_total %.6f\n",
		   seconds_of(used.ru_utime) + seconds_of(used.ru_stime));
	write_type(out, "process_resident_memory_bytes", "gauge", "memory in use");
	buf_printf(out, "process_resident_memory_bytes %" PRIu64 "\n",
		   resident_pages() * (uint64_t)sysconf(_SC_PAGESIZE));
	write_type(out, "process_max_fds", "gauge", "files that may be open");
	buf_printf(out, "process_max_fds %" PRIu64 "\n", (uint64_t)files.rlim_cur);
}

/* --- shards ------------------------------------------------------------------- */

struct row {
	const char *name;
	const char *type;
	const char *help;
	size_t offset;
};

#define TOTAL(name, type, member, help)                                            \
	{                                                                          \
		"sluice_" name, type, help, offsetof(struct broker_totals, member) \
	}

/* clang-format off */
static const struct row totals[] = {
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

static void
write_map(const struct api *api, struct buf *out)
{
	const struct shardmap *const m = broker_map(broker_routes(api->broker));

	write_type(out, "sluice_shard_map_info", "gauge",
		   "1: the map from queues to shards that is in force, where there is one");
	if (m)
		buf_printf(out, "sluice_shard_map_info{hash=\"%016" PRIx64 "\",version=\"%" PRIu64 "\"} 1\n",
			   shardmap_hash(m), shardmap_version(m));
	write_type(out, "sluice_shard_map_disagreements", "gauge",
		   "nodes that live, share a shard with this one, and have another map");
	buf_printf(out, "sluice_shard_map_disagreements %" PRIu32 "\n",
		   atomic_load(&api->disagreements));
	write_type(out, "sluice_node_id_conflict", "gauge",
		   "1: another server that shares a shard has the same node.id");
	buf_printf(out, "sluice_node_id_conflict %" PRIu32 "\n", atomic_load(&api->twins));
}

static void
write_totals(struct api *api, struct buf *out)
{
	for (size_t i = 0; i < sizeof totals / sizeof totals[0]; i++) {
		write_type(out, totals[i].name, totals[i].type, totals[i].help);
		for (uint32_t shard = 0; shard < broker_shards(api->broker); shard++) {
			struct broker_totals values;
			uint64_t value;

			broker_totals(api->broker, shard, &values);
			memcpy(&value, (const char *)&values + totals[i].offset, sizeof value);
			buf_printf(out, "%s{%s} %" PRIu64 "\n", totals[i].name,
				   broker_shard_labels(api->broker, shard), value);
		}
	}
	write_map(api, out);
	write_type(out, "sluice_shard_up", "gauge", "1: it serves; 0: it has failed");
	for (uint32_t shard = 0; shard < broker_shards(api->broker); shard++)
		buf_printf(out, "sluice_shard_up{%s} %d\n", broker_shard_labels(api->broker, shard),
			   broker_health(api->broker, shard, NULL) == 0);
}

#define GAUGE(name, member, help)                                                \
	{                                                                        \
		"sluice_" name, "gauge", help, offsetof(struct op_shard, member) \
	}

/* clang-format off */
static const struct row gauges[] = {
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
};
/* clang-format on */

/* A shard that is down, and what is not known, have no line. */
static void
write_gauges(const struct ask *a, struct buf *out)
{
	for (size_t i = 0; i < sizeof gauges / sizeof gauges[0]; i++) {
		write_type(out, gauges[i].name, gauges[i].type, gauges[i].help);
		for (unsigned shard = 0; shard < a->n_ops; shard++) {
			int64_t value;

			memcpy(&value, (const char *)&a->ops[shard].on_shard + gauges[i].offset,
			       sizeof value);
			if (a->ops[shard].rc == 0 && value >= 0)
				buf_printf(out, "%s{%s} %" PRId64 "\n", gauges[i].name,
					   broker_shard_labels(a->api->broker, shard), value);
		}
	}
}

/* --- queues ------------------------------------------------------------------- */

/* Metrics of a queue; each is gathered by itself, for its lines stand together. */
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

static const struct row families[FAMILIES] = {
	[QUEUE_MESSAGES] = { "sluice_queue_messages", "gauge", "messages of a queue by state", 0 },
	[QUEUE_OLDEST] = { "sluice_queue_oldest_seconds", "gauge",
			   "how long the oldest ready message of a queue has been due", 0 },
	[QUEUE_ACCEPTED] = { "sluice_queue_accepted_total", "counter",
			     "messages taken into a queue",
			     offsetof(struct ledger_totals, accepted) },
	[QUEUE_DELIVERED] = { "sluice_queue_delivered_total", "counter",
			      "messages of a queue handed out",
			      offsetof(struct ledger_totals, delivered) },
	[QUEUE_DONE] = { "sluice_queue_done_total", "counter",
			 "messages of a queue acked or deleted",
			 offsetof(struct ledger_totals, done) },
	[QUEUE_FAILED] = { "sluice_queue_failed_total", "counter",
			   "failing nacks and expired leases of a queue",
			   offsetof(struct ledger_totals, failed) },
	[QUEUE_DIED] = { "sluice_queue_dead_letters_total", "counter",
			 "messages of a queue that became dead letters",
			 offsetof(struct ledger_totals, died) },
};

struct state {
	struct buf text[FAMILIES];
	uint64_t count[MSG_STATES]; /* of all queues */
	uint32_t shown;             /* queues with lines of their own */
	uint32_t queues;
	uint32_t warnings;     /* queues that have more than their warn_depth */
	struct op_queue other; /* all that are not shown; its counts are in others */
	uint64_t others[MSG_STATES];
};

static uint64_t
total_of(const struct op_queue *q, enum family f)
{
	uint64_t value;

	memcpy(&value, (const char *)&q->totals + families[f].offset, sizeof value);
	return value;
}

/* Names have no character that would have to be escaped. */
static void
write_queue(struct state *s, const struct op_queue *q, const uint64_t *count)
{
	for (unsigned i = MSG_READY; i < MSG_STATES; i++)
		buf_printf(&s->text[QUEUE_MESSAGES],
			   "%s{namespace=\"%s\",topic=\"%s\",state=\"%s\"} %" PRIu64 "\n",
			   families[QUEUE_MESSAGES].name, q->space, q->name, flat_view_states[i],
			   count[i]);
	buf_printf(&s->text[QUEUE_OLDEST], "%s{namespace=\"%s\",topic=\"%s\"} %.3f\n",
		   families[QUEUE_OLDEST].name, q->space, q->name,
		   q->oldest < 0 ? 0. : (double)q->oldest / 1e9);
	for (enum family f = QUEUE_ACCEPTED; f < FAMILIES; f++)
		buf_printf(&s->text[f], "%s{namespace=\"%s\",topic=\"%s\"} %" PRIu64 "\n",
			   families[f].name, q->space, q->name, total_of(q, f));
}

static void
add_other(struct state *s, const struct op_queue *q)
{
	struct op_queue *const o = &s->other;

	for (unsigned i = MSG_READY; i < MSG_STATES; i++)
		s->others[i] += q->count[i];
	o->space = o->name = ".other";
	o->oldest = q->oldest > o->oldest ? q->oldest : o->oldest;
	o->totals.accepted += q->totals.accepted;
	o->totals.delivered += q->totals.delivered;
	o->totals.done += q->totals.done;
	o->totals.failed += q->totals.failed;
	o->totals.died += q->totals.died;
}

static void
take_queue(const struct api *api, struct state *s, const struct op_queue *q)
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
	write_queue(s, q, count);
}

static void
write_queues(struct state *s, struct buf *out)
{
	if (s->other.name)
		write_queue(s, &s->other, s->others);
	for (enum family f = 0; f < FAMILIES; f++) {
		write_type(out, families[f].name, families[f].type, families[f].help);
		buf_put(out, s->text[f].p, s->text[f].n);
		out->failed |= s->text[f].failed;
	}
	write_type(out, "sluice_messages", "gauge", "messages of all queues by state");
	for (unsigned i = MSG_READY; i < MSG_STATES; i++)
		buf_printf(out, "sluice_messages{state=\"%s\"} %" PRIu64 "\n",
			   flat_view_states[i], s->count[i]);
	write_type(out, "sluice_queues", "gauge", "queues that exist");
	buf_printf(out, "sluice_queues %" PRIu32 "\n", s->queues);
	write_type(out, "sluice_queues_warning", "gauge",
		   "queues with more messages than their warn_depth");
	buf_printf(out, "sluice_queues_warning %" PRIu32 "\n", s->warnings);
}

/* --- the call ----------------------------------------------------------------- */

static void
write_head(struct ask *a)
{
	struct api *const api = a->api;
	struct buf *const out = &a->call->out;

	write_type(out, "sluice_info", "gauge", "what is running");
	buf_printf(out, "sluice_info{version=\"%s\",engine=\"%s\",durability=\"%s\"} 1\n",
		   SLUICE_VERSION, api->engine, api->sync);
	write_process(api, out);
	if (api->server)
		server_metrics(api->server, out);
	api_metrics(api, out);
	broker_metrics(api->broker, out);
	write_totals(api, out);
}

static void
release(struct state *s)
{
	for (enum family f = 0; f < FAMILIES; f++)
		buf_release(&s->text[f]);
}

static void
finish(struct ask *a)
{
	struct buf *const out = &a->call->out;

	write_gauges(a, out);
	call_answer(a->call, 200, "text/plain; version=0.0.4; charset=utf-8", out);
}

static void
ask_shards(struct ask *a)
{
	const uint32_t n = broker_shards(a->api->broker);
	struct op *const ops = arena_array(&a->memory, n, sizeof *ops);

	if (!ops) {
		ask_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		ask_op(a, &ops[i], OP_SHARD, (struct slice){ 0 }, (struct slice){ 0 });
		ops[i].cursor = (uint64_t)i << BROKER_CURSOR_BITS;
	}
	a->ops = ops;
	a->n_ops = n;
	ask_run(a, finish);
}

static void take_page(struct ask *a);

static void
ask_page(struct ask *a, struct op_queue *queues, uint64_t cursor)
{
	ask_op(a, &a->op, OP_TOPICS, (struct slice){ 0 }, (struct slice){ 0 });
	a->op.queues = queues;
	a->op.max_queues = API_METRIC_PAGE;
	a->op.cursor = cursor;
	ask_run(a, take_page);
}

/* A shard that is down is left out. */
static uint64_t
next_page(const struct ask *a)
{
	const uint64_t next = (uint64_t)a->op.shard + 1;

	if (!a->op.rc)
		return a->op.cursor;
	return next < broker_shards(a->api->broker) ? next << BROKER_CURSOR_BITS : 0;
}

static void
take_page(struct ask *a)
{
	struct state *const s = a->state;

	for (uint32_t i = 0; i < a->op.n_queues && !a->op.rc; i++)
		take_queue(a->api, s, &a->op.queues[i]);
	if (next_page(a)) {
		ask_page(a, a->op.queues, next_page(a));
		return;
	}
	write_queues(s, &a->call->out);
	release(s);
	ask_shards(a);
}

void
scrape_metrics(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;
	struct op_queue *const queues =
		s ? arena_array(&a->memory, API_METRIC_PAGE, sizeof *queues) : NULL;

	if (!s)
		return;
	if (!queues) {
		ask_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	for (enum family f = 0; f < FAMILIES; f++)
		buf_init(&s->text[f], FAMILY_MAX);
	s->other.oldest = -1;
	write_head(a);
	ask_page(a, queues, 0);
}
