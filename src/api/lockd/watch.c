/*
 * watch.c - /v1/queue/watch: the first message of a queue, as it changes.
 *
 *      id: 2
 *      event: queue_watch
 *      data: {"namespace":"shop","queue":"orders","available":true,"head_message_id":...}
 *
 * The first event has the current message, each later one a change. A comment each KEEPALIVE
 * keeps the connection alive. The handler asks for the next change when the kernel has the event
 * before: a slow reader gets fewer events, and never a wrong one. A watch outlives the owner of its shard (PEER-5).
 */
#include "api/lockd/lockd.h"

#include "api/pause.h"
#include "base/id.h"

#include <inttypes.h>

#define KEEPALIVE (20 * SLU_SEC)

static const char event_stream[] = "text/event-stream";

struct state {
	struct slice namespace, queue;
	uint64_t events; /* so far */
	uint64_t head;   /* head in the last event */
	bool begun;
	unsigned pauses; /* api/pause.h */
	char correlation[CORRELATION_LONGEST + 1];
};

static const struct json_field fields[] = {
	JSON_FIELDS(text, struct state, namespace, queue),
};

static void
write_event(const struct apicall *a, struct state *s)
{
	struct buf *const out = &a->x->out;
	char uuid[ID_UUID_TEXT];
	struct json_out w;

	s->head = a->op.id;
	buf_printf(out, "id: %" PRIu64 "\nevent: queue_watch\ndata: ", ++s->events);
	json_out_open(&w, out);
	json_out_str(&w, "namespace", s->namespace);
	json_out_str(&w, "queue", s->queue);
	json_out_bool(&w, "available", s->head != 0);
	if (s->head)
		json_out_str(&w, "head_message_id", slice_of(id_to_uuid(s->head, uuid)));
	json_out_i64(&w, "changed_at_unix", clock_wall(a->api->clock) / SLU_SEC);
	json_out_str(&w, "correlation_id", slice_of(s->correlation));
	json_out_close(&w);
	buf_puts(out, "\n\n");
}

static void
give(struct apicall *a, struct state *s)
{
	if (s->begun) {
		exchange_piece(a->x, false);
		return;
	}
	s->begun = true;
	call_begin(call_of(a->x), 200, event_stream);
}

/* The client is gone, it could not be asked, or the server stops. */
static void
end(struct apicall *a, const struct state *s)
{
	if (!s->begun && a->gone)
		call_answer(call_of(a->x), 200, event_stream, NULL); /* the client is gone */
	else if (!s->begun)
		apicall_refuse_op(a, &a->op);
	else if (a->op.rc == SLU_ECLOSED)
		exchange_piece(a->x, true);
	else
		exchange_break(a->x);
}

static void watch(struct apicall *a, uint64_t head);

static void
watch_again(struct apicall *a)
{
	const struct state *const s = a->state;

	if (pause_is_in_vain(a))
		end(a, s);
	else
		watch(a, s->head);
}

static void
answer(struct apicall *a)
{
	struct state *const s = a->state;

	if (s->begun && pause_stream(a, &s->pauses, watch_again))
		return;
	s->pauses = 0;
	if (a->op.rc == 0 && !a->gone) {
		write_event(a, s);
		give(a, s);
	} else if (a->op.rc == SLU_ETIMEOUT && !a->gone) {
		buf_puts(&a->x->out, ": keepalive\n\n");
		give(a, s);
	} else {
		end(a, s);
	}
}

static void
watch(struct apicall *a, uint64_t head)
{
	const struct state *const s = a->state;

	apicall_op(a, &a->op, OP_WATCH, s->namespace, s->queue);
	a->op.id = head;
	a->op.wait = KEEPALIVE;
	apicall_run(a, answer);
}

static void
more(struct exchange *x)
{
	struct apicall *const a = x->user;
	const struct state *const s = a->state;

	watch(a, s->head);
}

static void
start(struct apicall *a)
{
	struct state *const s = a->state;
	struct slice correlation;

	if (!lockd_space(a, &s->namespace) || !lockd_queue(a, &s->queue, LOCKD_MISSING_QUEUE))
		return;
	correlation = lockd_correlation(a->api, call_of(a->x));
	memcpy(s->correlation, correlation.p, correlation.n);
	(void)call_add(call_of(a->x), "Cache-Control", SLICE("no-cache")); /* better than nothing */
	a->x->more = more;
	a->x->gone = apicall_gone;
	watch(a, UINT64_MAX); /* no message has this id: the first answer comes at once */
}

const struct handler lockd_watch = { start, sizeof(struct state), FIELD_ROWS(fields) };
