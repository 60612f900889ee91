/*
 * calls_batch.c - batches: messages of the queue as members, and a callback in a queue of its own, which nobody takes.
 */
#include "torture/calls_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void
out_callback(struct caller *c, struct json_out *w, uint64_t name)
{
	char text[CALLS_FIELDS];

	json_out_object(w, "callback");
	(void)snprintf(text, sizeof text, "%s" CALLS_CALLBACKS, c->queue);
	json_out_str(w, "queue", slice_of(text));
	(void)snprintf(text, sizeof text, "%" PRIu64 " 0 ", name); /* a payload of 0 bytes */
	json_out_str(w, "text", slice_of(text));
	json_out_close(w);
}

enum outcome
caller_open_batch(struct caller *c, uint64_t name, uint64_t *id)
{
	struct slice answer;
	struct event e = { 0 };
	struct json_out w;

	caller_path(c, "/batches");
	caller_body(c, &w);
	json_out_object(&w, NULL);
	json_out_str(&w, "namespace", SLICE(TORTURE_SPACE));
	out_callback(c, &w, name);
	json_out_finish(&w);
	*id = 0;
	if (caller_ask(c, "POST", &e) != OUTCOME_OK)
		return e.outcome;
	answer = buf_slice(&c->http.answer.body);
	*id = slice_skip_past(&answer, "\"id\":") ? strtoull(answer.p, NULL, 10) : 0;
	return *id ? OUTCOME_OK : OUTCOME_UNKNOWN;
}

enum outcome
caller_close_batch(struct caller *c, uint64_t name, uint64_t id)
{
	struct event e = { .kind = EVENT_BATCH, .name = name, .id = id };
	struct json_out w;

	caller_path(c, "/batches/close");
	caller_body(c, &w);
	json_out_object(&w, NULL);
	json_out_str(&w, "namespace", SLICE(TORTURE_SPACE));
	json_out_u64(&w, "id", id);
	json_out_finish(&w);
	(void)caller_ask(c, "POST", &e); /* its outcome is in e */
	history_add(c->history, &e);
	return e.outcome;
}
