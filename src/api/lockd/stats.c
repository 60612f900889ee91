/*
 * stats.c - /v1/queue/stats: waiting consumers of a queue, and its first message.
 */
#include "api/lockd/lockd.h"

#include "base/id.h"

struct state {
	struct slice namespace, queue;
	struct op ops[2]; /* the counts; the first message */
	struct op_queue numbers;
	struct op_row head;
};

static const struct json_field fields[] = {
	JSON_FIELDS(text, struct state, namespace, queue),
};

static void
write_head(struct json_out *w, const struct op_row *row, slu_time now)
{
	const slu_time since = id_time(row->id);
	char uuid[ID_UUID_TEXT];

	json_out_str(w, "head_message_id", slice_of(id_to_uuid(row->id, uuid)));
	json_out_i64(w, "head_enqueued_at_unix", since / SLU_SEC);
	json_out_i64(w, "head_not_visible_until_unix", row->due / SLU_SEC);
	json_out_i64(w, "head_age_seconds", now > since ? (now - since) / SLU_SEC : 0);
}

static void
write_stats(const struct apicall *a, struct json_out *w)
{
	const struct state *const s = a->state;
	const uint32_t ready = s->ops[0].rc ? 0 : s->numbers.count[MSG_READY];

	json_out_str(w, "namespace", s->namespace);
	json_out_str(w, "queue", s->queue);
	json_out_u64(w, "waiting_consumers", s->ops[0].count);
	json_out_u64(w, "pending_candidates", ready);
	json_out_u64(w, "total_consumers", atomic_load(&a->api->consumers));
	json_out_bool(w, "has_active_watcher", true); /* this server does not poll */
	json_out_bool(w, "available", s->ops[1].n_rows > 0);
	if (s->ops[1].n_rows > 0)
		write_head(w, &s->head, clock_wall(a->api->clock));
}

/* An unknown queue is empty. */
static void
answer(struct apicall *a)
{
	struct state *const s = a->state;
	struct slice correlation;
	struct json_out w;

	op_unpin(&s->ops[1]);
	for (unsigned i = 0; i < a->n_ops; i++) {
		if (a->ops[i].rc && a->ops[i].rc != SLU_ENOTFOUND) {
			apicall_refuse_op(a, &a->ops[i]);
			return;
		}
	}
	correlation = lockd_correlation(a->api, call_of(a->x));
	apicall_object(a, &w);
	write_stats(a, &w);
	json_out_str(&w, "correlation_id", correlation);
	apicall_reply_object(a, &w, 200);
}

static void
stats(struct apicall *a)
{
	struct state *const s = a->state;

	if (!lockd_space(a, &s->namespace) || !lockd_queue(a, &s->queue, LOCKD_MISSING_QUEUE))
		return;
	apicall_op(a, &s->ops[0], OP_STATS, s->namespace, s->queue);
	s->ops[0].queues = &s->numbers;
	s->ops[0].max_queues = 1;
	apicall_op(a, &s->ops[1], OP_PEEK, s->namespace, s->queue);
	s->ops[1].rows = &s->head;
	s->ops[1].max_rows = 1;
	a->ops = s->ops;
	a->n_ops = 2;
	apicall_run(a, answer);
}

const struct handler lockd_stats = { stats, sizeof(struct state), FIELD_ROWS(fields) };
