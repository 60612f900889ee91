#include "torture/calls_private.h"

#include <stdlib.h>

static const char *const settle_paths[EVENT_KINDS] = {
	[EVENT_ACK] = "/ack",
	[EVENT_NACK] = "/nack",
	[EVENT_EXTEND] = "/extend",
};

static void
out_held(struct caller *c, struct json_out *w, const struct held_message *held)
{
	json_out_object(w, NULL);
	caller_place(c, w);
	json_out_u64(w, "id", held->id);
	json_out_str(w, "lease_id", slice_of(held->lease_id));
	json_out_u64(w, "fencing_token", held->token);
}

struct settled {
	slu_time lease_expires_at, deliver_after;
	uint64_t status;
	bool dead;
};

static const struct json_field settled_fields[] = {
	JSON_FIELDS(time, struct settled, lease_expires_at, deliver_after),
	JSON_FIELD(u64, struct settled, status),
	JSON_FIELD(bool, struct settled, dead),
};

static void
name_held(struct event *e, const struct held_message *held)
{
	e->id = held->id;
	e->name = held->name;
	e->token = held->token;
}

static void
read_settled(struct caller *c, struct event *e)
{
	struct settled s = { 0 };

	if (e->outcome != OUTCOME_OK ||
	    caller_object(c, settled_fields, N_FIELDS(settled_fields), &s, NULL))
		return;
	e->state = s.dead ? STATE_DEAD : 0;
	e->until = e->kind == EVENT_EXTEND ? s.lease_expires_at : s.deliver_after;
}

enum outcome
caller_settle(struct caller *c, enum event_kind kind, const struct held_message *held,
	      const struct settle_how *how)
{
	struct event e = { .kind = (uint8_t)kind };
	struct json_out w;

	name_held(&e, held);
	caller_path(c, settle_paths[kind]);
	caller_body(c, &w);
	out_held(c, &w, held);
	if (how->time_ms)
		caller_ms(&w, kind == EVENT_EXTEND ? "lease" : "delay", how->time_ms);
	if (how->defer)
		json_out_bool(&w, "defer", true);
	if (how->dead)
		json_out_bool(&w, "dead", true);
	json_out_finish(&w);
	(void)caller_ask(c, "POST", &e); /* its outcome is in e */
	if (kind != EVENT_ACK)
		read_settled(c, &e);
	history_add(c->history, &e);
	return e.outcome;
}

/* The id of the message that the ack has enqueued, or 0. */
static uint64_t
enqueued(struct caller *c)
{
	struct slice s = buf_slice(&c->http.answer.body);

	return slice_skip_past(&s, "\"enqueued\":") && slice_skip_past(&s, "\"id\":") ? strtoull(s.p, NULL, 10) : 0;
}

enum outcome
caller_finish(struct caller *c, const struct held_message *held, const struct push_item *item)
{
	struct event e = { .kind = EVENT_ACK }, child;
	struct json_out w;

	name_held(&e, held);
	caller_path(c, settle_paths[EVENT_ACK]);
	caller_body(c, &w);
	out_held(c, &w, held);
	json_out_array(&w, "enqueue");
	caller_out_item(c, &w, item);
	json_out_close(&w);
	json_out_finish(&w);
	(void)caller_ask(c, "POST", &e); /* its outcome is in e */
	child = e;
	child.kind = EVENT_PUSH;
	child.call = atomic_fetch_add(c->next_call, 1);
	child.parent = held->name;
	child.id = e.outcome == OUTCOME_OK ? enqueued(c) : 0;
	if (e.outcome == OUTCOME_OK && !child.id)
		e.outcome = child.outcome = OUTCOME_UNKNOWN;
	caller_note_item(&child, item);
	history_add(c->history, &e);
	history_add(c->history, &child);
	return e.outcome;
}

/* Reads one answer for each message, in order. */
static bool
read_all_settled(struct caller *c, struct event *e, const struct held_message *held, unsigned n)
{
	struct json r;
	unsigned i = 0;

	if (!caller_read(c, &r))
		return false;
	json_array(&r);
	while (json_element(&r)) {
		struct settled s = { 0 };

		json_fields(&r, settled_fields, N_FIELDS(settled_fields), JSON_LENIENT, &s);
		if (i >= n)
			continue;
		name_held(e, &held[i]);
		e->outcome = s.status == 200 ? OUTCOME_OK : OUTCOME_FAILED;
		history_add(c->history, e);
		i++;
	}
	return json_end(&r, NULL) == 0 && i == n;
}

enum outcome
caller_ack_all(struct caller *c, const struct held_message *held, unsigned n)
{
	struct event e = { .kind = EVENT_ACK };
	struct json_out w;

	caller_path(c, settle_paths[EVENT_ACK]);
	caller_body(c, &w);
	json_out_array(&w, NULL);
	for (unsigned i = 0; i < n; i++) {
		out_held(c, &w, &held[i]);
		json_out_close(&w);
	}
	json_out_finish(&w);
	if (caller_ask(c, "POST", &e) == OUTCOME_OK)
		return read_all_settled(c, &e, held, n) ? OUTCOME_OK : OUTCOME_UNKNOWN;
	for (unsigned i = 0; i < n; i++) {
		name_held(&e, &held[i]);
		history_add(c->history, &e);
	}
	return e.outcome;
}
