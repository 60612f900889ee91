/*
 * calls_schedule.c - schedules whose messages go to a queue of their own, which nobody takes.
 *
 * The idempotency key of a message names its tick: "schedule:NAME:TICK".
 */
#include "torture/calls_private.h"

#include "base/rfc3339.h"
#include "torture/times.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	PAUSE_MS = 50
};

#define GOES_ON_TIME (60 * SLU_SEC) /* a shard may change its owner first; a node reads its schedules again each 30 s */

/* The name of the schedule. */
static struct slice
name_of(const struct caller *c, uint64_t name, char text[static CALLS_FIELDS])
{
	(void)snprintf(text, CALLS_FIELDS, "%s-%" PRIu64, c->queue, name);
	return slice_of(text);
}

static void
begin_body(struct caller *c, struct json_out *w, uint64_t name)
{
	char text[CALLS_FIELDS];

	caller_body(c, w);
	json_out_object(w, NULL);
	json_out_str(w, "namespace", SLICE(TORTURE_SPACE));
	json_out_str(w, "name", name_of(c, name, text));
}

static void
out_message(const struct caller *c, struct json_out *w, uint64_t name)
{
	char text[CALLS_FIELDS];

	json_out_object(w, "message");
	(void)snprintf(text, sizeof text, "%s" CALLS_TICKS, c->queue);
	json_out_str(w, "queue", slice_of(text));
	(void)snprintf(text, sizeof text, "%" PRIu64 " 0 ", name); /* a payload of 0 bytes */
	json_out_str(w, "text", slice_of(text));
	json_out_close(w);
}

enum outcome
caller_set_schedule(struct caller *c, uint64_t name, unsigned interval_s, bool jitters)
{
	struct event e = { .kind = EVENT_SCHEDULE, .name = name, .until = interval_s * SLU_SEC };
	char text[CALLS_FIELDS];
	struct json_out w;

	caller_path(c, "/v1/admin/schedule");
	begin_body(c, &w, name);
	(void)snprintf(text, sizeof text, "@every %us", interval_s);
	json_out_str(&w, "when", slice_of(text));
	json_out_str(&w, "missed", SLICE("all:100"));
	if (jitters)
		caller_ms(&w, "jitter", 700);
	out_message(c, &w, name);
	json_out_finish(&w);
	(void)caller_ask(c, "PUT", &e); /* its outcome is in e */
	history_add(c->history, &e);
	return e.outcome;
}

enum outcome
caller_act_on_schedule(struct caller *c, uint64_t name, const char *verb)
{
	struct event e = { .kind = EVENT_SCHEDULE, .name = name, .waits = true };
	struct json_out w;

	caller_path(c, "/v1/admin/schedule/");
	buf_puts(&c->path, verb);
	begin_body(c, &w, name);
	json_out_finish(&w);
	(void)caller_ask(c, "POST", &e); /* its outcome is in e */
	if (verb[0] == 'p' || strcmp(verb, "resume") == 0)
		history_add(c->history, &e);
	return e.outcome;
}

/* --- the end of a round ---------------------------------------------------------------- */

static const struct json_field count_fields[] = {
	{ .name = { "firings", 7 }, .read = json_read_u64, .offset = offsetof(struct event, id), .size = sizeof(uint64_t), .required = true },
	{ .name = { "missed_ticks", 12 }, .read = json_read_u64, .offset = offsetof(struct event, token), .size = sizeof(uint64_t), .required = true },
};

/* Fills in the counters of a schedule. */
static int
look_at(struct caller *c, struct event *e, struct slu_err *err)
{
	char text[CALLS_FIELDS];
	int rc;

	caller_path(c, "/v1/admin/schedule?namespace=" TORTURE_SPACE "&name=");
	buf_puts(&c->path, name_of(c, e->name, text).p);
	e->start = time_now();
	rc = caller_want(c, "GET", err);
	e->end = time_now();
	e->outcome = rc ? OUTCOME_FAILED : OUTCOME_OK;
	if (rc)
		return c->http.answer.status == 404 || c->http.answer.status == 403 ? 0 : rc;
	return caller_object(c, count_fields, N_FIELDS(count_fields), e, err);
}

/* Waits until the schedule, which is there, has fired once more. */
static int
wait_for_tick(struct caller *c, struct event *e, struct slu_err *err)
{
	const slu_time end = time_now() + GOES_ON_TIME;
	const uint64_t fired = e->id;
	int rc = 0;

	while (!rc && e->outcome == OUTCOME_OK && e->id == fired && time_now() < end) {
		sleep_ms(PAUSE_MS);
		rc = look_at(c, e, err);
	}
	e->damaged = e->id == fired;
	return rc;
}

/* Nothing fires while the messages are read. */
static int
stop_schedule(struct caller *c, uint64_t name, bool goes_on, struct slu_err *err)
{
	struct event e = { .kind = EVENT_FIRINGS, .name = name, .client = c->number };
	struct json_out w;
	int rc = look_at(c, &e, err);

	if (!rc && e.outcome == OUTCOME_OK && goes_on)
		rc = wait_for_tick(c, &e, err);
	if (!rc && e.outcome == OUTCOME_OK) {
		caller_path(c, "/v1/admin/schedule/pause");
		begin_body(c, &w, name);
		json_out_finish(&w);
		rc = caller_want(c, "POST", err);
	}
	if (!rc)
		rc = look_at(c, &e, err);
	if (!rc)
		history_add(c->history, &e);
	return rc;
}

struct ticked {
	struct slice key;
};

static const struct json_field key_fields[] = {
	{ .name = { "idempotency_key", 15 }, .read = json_read_text, .offset = offsetof(struct ticked, key), .size = sizeof(struct slice) },
};

/* Sets e->due to the tick of a message; 0: it began by hand. */
static int
read_tick(struct caller *c, struct event *e, struct slu_err *err)
{
	struct ticked t = { 0 };
	char prefix[2 * CALLS_FIELDS], text[CALLS_FIELDS];
	int rc;

	caller_path(c, "/v1/admin/message?namespace=" TORTURE_SPACE);
	buf_printf(&c->path, "&id=%" PRIu64, e->id);
	rc = caller_want(c, "GET", err);
	if (!rc)
		rc = caller_object(c, key_fields, N_FIELDS(key_fields), &t, err);
	if (rc || !t.key.n)
		return rc;
	(void)snprintf(prefix, sizeof prefix, "schedule:%s:", name_of(c, e->name, text).p);
	if (!slice_skip_past(&t.key, prefix))
		return slu_fail(err, SLU_EINVAL, "a message of a schedule has another idempotency key");
	return rfc3339_parse(t.key, &e->due, err);
}

static bool
is_of_round(const struct history *h, size_t n, uint64_t name)
{
	for (size_t i = 0; i < n; i++)
		if (h->events[i].kind == EVENT_FIRINGS && h->events[i].name == name)
			return true;
	return false;
}

/* Replaces the rows from `begin` on by ticks: without those of earlier rounds, and those that began by hand. */
static int
read_ticks(struct caller *c, size_t begin, struct slu_err *err)
{
	struct history *h = c->history;
	const size_t end = h->n;
	size_t n = begin;
	int rc = 0;

	for (size_t i = begin; !rc && i < end; i++) {
		struct event e = h->events[i];

		if (!is_of_round(h, begin, e.name))
			continue;
		rc = read_tick(c, &e, err);
		if (e.due)
			h->events[n++] = e;
	}
	history_cut(h, n);
	return rc;
}

static int
list_ticks(struct caller *c, struct slu_err *err)
{
	const char *const queue = c->queue;
	const size_t begin = c->history->n;
	char name[CALLS_FIELDS];
	int rc;

	(void)snprintf(name, sizeof name, "%s" CALLS_TICKS, queue);
	c->queue = name;
	rc = caller_list(c, "/peek", "&state=all", EVENT_TICK, err);
	c->queue = queue;
	return rc ? rc : read_ticks(c, begin, err);
}

int
caller_schedules(struct caller *c, bool goes_on, struct slu_err *err)
{
	struct history *h = c->history;
	const size_t end = h->n;
	int rc = 0;

	for (size_t i = 0; !rc && i < end; i++)
		if (h->events[i].kind == EVENT_SCHEDULE && !is_of_round(h, h->n, h->events[i].name))
			rc = stop_schedule(c, h->events[i].name, goes_on, err);
	if (!rc)
		rc = list_ticks(c, err);
	for (size_t i = end; !rc && i < h->n; i++)
		if (h->events[i].kind == EVENT_FIRINGS)
			(void)caller_act_on_schedule(c, h->events[i].name, "delete"); /* one that stays is harmless */
	return rc;
}
