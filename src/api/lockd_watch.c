/*
 * lockd_watch.c - /v1/queue/watch: what stands at the head of a queue, as it changes.
 *
 *      id: 2
 *      event: queue_watch
 *      data: {"namespace":"shop","queue":"orders","available":true,"head_message_id":...}
 *
 * The first event tells how it is, each other one a change. In between, a comment each
 * KEEPALIVE keeps the connection alive. The next change is asked for when the kernel has
 * the event before: who reads slowly is told less often, never wrongly.
 */
#include "api/lockd.h"

#include "base/id.h"

#include <inttypes.h>

#define KEEPALIVE (20 * SLU_SEC)

static const char event_stream[] = "text/event-stream";

struct state {
	struct slice namespace, queue;
	uint64_t events; /* so far */
	uint64_t head;   /* of the last one */
	bool begun;
	char correlation[CORRELATION_LONGEST + 1];
};

static const struct json_field fields[] = {
	JSON_FIELD(text, struct state, namespace),
	JSON_FIELD(text, struct state, queue),
};

static void
write_event(const struct ask *a, struct state *s)
{
	struct buf *const out = &a->call->out;
	char uuid[ID_UUID_TEXT];
	struct json_out w;

	s->head = a->op.id;
	buf_printf(out, "id: %" PRIu64 "\nevent: queue_watch\ndata: ", ++s->events);
	json_out_init(&w, out);
	json_out_object(&w, NULL);
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
give(struct ask *a, struct state *s)
{
	if (s->begun) {
		call_piece(a->call, false);
		return;
	}
	s->begun = true;
	call_begin(a->call, 200, event_stream);
}

/* The client is gone, it could not be asked, or the server stops. */
static void
end(struct ask *a, const struct state *s)
{
	if (!s->begun && a->gone)
		call_answer(a->call, 200, event_stream, NULL); /* to nobody */
	else if (!s->begun)
		ask_refuse_op(a, &a->op);
	else if (a->op.rc == SLU_ECLOSED)
		call_piece(a->call, true);
	else
		call_break(a->call);
}

static void
answer(struct ask *a)
{
	struct state *const s = a->state;

	if (a->op.rc == 0 && !a->gone) {
		write_event(a, s);
		give(a, s);
	} else if (a->op.rc == SLU_ETIMEOUT && !a->gone) {
		buf_puts(&a->call->out, ": keepalive\n\n");
		give(a, s);
	} else {
		end(a, s);
	}
}

static void
watch(struct ask *a, uint64_t head)
{
	const struct state *const s = a->state;

	ask_op(a, &a->op, OP_WATCH, s->namespace, s->queue);
	a->op.id = head;
	a->op.wait = KEEPALIVE;
	ask_run(a, answer);
}

static void
more(struct call *c)
{
	struct ask *const a = c->user;
	const struct state *const s = a->state;

	watch(a, s->head);
}

void
lockd_watch(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;
	struct slice correlation;

	if (!s || !lockd_body(a, fields, sizeof fields / sizeof fields[0], s) ||
	    !lockd_space(a, &s->namespace) || !lockd_queue(a, &s->queue, LOCKD_MISSING_QUEUE))
		return;
	correlation = lockd_correlation(api, c);
	memcpy(s->correlation, correlation.p, correlation.n);
	(void)call_add(c, "Cache-Control", SLICE("no-cache")); /* better than nothing */
	c->more = more;
	c->gone = ask_gone;
	watch(a, UINT64_MAX); /* that no message has: the first answer comes at once */
}
