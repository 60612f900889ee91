/*
 * subscribe.c - POST /workers/subscriptions, POST /workers/subscriptions/{id}/heartbeat, and the calls of a create.
 *
 *      create ── subscribers_ready ──> a message for each call, of WEBHOOK_SPACE, WEBHOOK_QUEUE ──> server/webhooks.h
 */
#include "api/codeq/subscribe.h"

#include "api/codeq/create.h"
#include "api/codeq/subscribers.h"
#include "base/id.h"
#include "base/log.h"

#include <stdio.h>

#define TTL_DEFAULT      300
#define TTL_MAX          86400
#define INTERVAL_DEFAULT 5
#define INTERVAL_MAX     3600
#define CALLS_MAX        (2 * SUBSCRIBERS_SPACE) /* of a create: to a subscriber one now, and one later */

struct state {
	struct subscriber new;
	struct slice types[SUBSCRIBER_TYPES];
	struct slice url, mode, group;
	int64_t ttl, interval; /* seconds */
};

static struct state *
state_of(struct apicall *a)
{
	return codeq_of(a)->own;
}

/* --- the request -------------------------------------------------------------- */

static void
read_types(struct json *r, const struct json_field *f, void *place)
{
	struct state *const s = place;
	struct slu_err err = { 0 };

	(void)f;
	json_array(r);
	while (json_element(r)) {
		const struct slice text = json_text(r);
		char *const folded = json_take_room(r, NAME_TEXT);

		if (!folded || s->new.n_types == SUBSCRIBER_TYPES)
			json_fail(r, SLU_EINVAL, NULL, "expected at most %d eventTypes", SUBSCRIBER_TYPES);
		else if (name_fold(text, "eventType", folded, &err))
			json_fail(r, SLU_EINVAL, NULL, "%.100s", err.text);
		else
			s->types[s->new.n_types++] = slice_of(folded);
	}
}

static const struct json_field fields[] = {
	JSON_ROW("callbackUrl", json_read_text, struct state, url, .max = CODEQ_WEBHOOK, .required = true),
	{ .name = { "eventTypes", 10 }, .read = read_types },
	JSON_ROW("ttlSeconds", json_read_i64, struct state, ttl),
	JSON_ROW("deliveryMode", json_read_text, struct state, mode),
	JSON_ROW("groupId", json_read_text, struct state, group, .max = SUBSCRIBER_GROUP),
	JSON_ROW("minIntervalSeconds", json_read_i64, struct state, interval),
};

static const struct json_field beat_fields[] = {
	JSON_ROW("ttlSeconds", json_read_i64, struct state, ttl),
};

static int
read_body(struct apicall *a, const struct json_field *rows, size_t n, struct slu_err *err)
{
	const struct slice body = call_of(a->x)->body;
	const size_t room = body.n + SUBSCRIBER_TYPES * NAME_TEXT;
	char *const p = arena_alloc(&a->memory, room);
	struct json r;

	if (!p)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	if (body.n == 0 && n == COUNT(beat_fields))
		return 0;
	json_init(&r, body, JSON_DEPTH);
	json_room(&r, p, room);
	(void)json_fields(&r, rows, n, JSON_LENIENT, state_of(a)); /* absent members have their defaults */
	return json_end(&r, err);
}

/* A worker may subscribe to the commands that it may claim; without a list, to all of them. */
static int
check_types(struct apicall *a, struct slu_err *err)
{
	const struct codeq_token *const t = codeq_of(a)->token;
	struct state *const s = state_of(a);

	for (unsigned i = 0; t && i < s->new.n_types; i++)
		if (!codeq_token_has_type(t, s->types[i]))
			return slu_fail(err, SLU_EFORBIDDEN, "command %.*s is not among the eventTypes of the token",
					(int)s->types[i].n, s->types[i].p);
	s->new.types = s->types;
	if (s->new.n_types > 0 || !t || t->any_type)
		return 0;
	if (t->n_types == 0)
		return slu_fail(err, SLU_EFORBIDDEN, "the token has no eventTypes");
	s->new.types = t->types;
	s->new.n_types = t->n_types;
	return 0;
}

static int
check_mode(struct state *s, struct slu_err *err)
{
	static const char *const names[SUBSCRIBER_MODES] = {
		[SUBSCRIBER_FANOUT] = "fanout",
		[SUBSCRIBER_GROUPED] = "group",
		[SUBSCRIBER_HASHED] = "hash",
	};
	unsigned mode = 0;

	while (s->mode.n > 0 && mode < SUBSCRIBER_MODES && !slice_eq(s->mode, slice_of(names[mode])))
		mode++;
	if (mode == SUBSCRIBER_MODES)
		return slu_fail(err, SLU_EINVAL, "invalid deliveryMode: %.*s; expected fanout, group or hash",
				s->mode.n < 40 ? (int)s->mode.n : 40, s->mode.p);
	s->new.mode = (enum subscriber_mode)mode;
	if (mode == SUBSCRIBER_GROUPED && s->group.n == 0)
		return slu_fail(err, SLU_EINVAL, "no groupId; expected one with deliveryMode group");
	return 0;
}

static int64_t
within(int64_t n, int64_t normal, int64_t most)
{
	return n <= 0 ? normal : n < most ? n
					  : most;
}

static int
read_request(struct apicall *a, struct slu_err *err)
{
	struct state *const s = state_of(a);
	int rc = read_body(a, fields, COUNT(fields), err);

	if (!rc && s->url.n == 0)
		rc = slu_fail(err, SLU_EINVAL, "no callbackUrl; expected http://HOST/PATH or https://HOST/PATH");
	if (!rc)
		rc = codeq_check_address(s->url, "callbackUrl", err);
	if (!rc)
		rc = check_mode(s, err);
	if (!rc)
		rc = check_types(a, err);
	s->new.space = codeq_space(a);
	s->new.url = s->url;
	s->new.group = s->group;
	s->new.ttl = within(s->ttl, TTL_DEFAULT, TTL_MAX) * SLU_SEC;
	s->new.interval = within(s->interval, INTERVAL_DEFAULT, INTERVAL_MAX) * SLU_SEC;
	return rc;
}

/* --- answers ------------------------------------------------------------------ */

static void
answer(struct apicall *a, struct slice id, slu_time ttl)
{
	struct json_out w;

	apicall_object(a, &w);
	json_out_str(&w, "subscriptionId", id);
	json_out_time(&w, "expiresAt", clock_wall(a->api->clock) + ttl);
	apicall_reply_object(a, &w, 200);
}

static void
subscribe(struct apicall *a)
{
	struct state *const s = state_of(a);
	struct slu_err err = { 0 };
	char id[SUBSCRIBER_ID];
	int rc = read_request(a, &err);

	if (!rc)
		rc = subscribers_add(a->api->subscribers, &s->new, clock_mono(a->api->clock), id, &err);
	if (rc)
		codeq_refuse_rc(a, rc, err.text);
	else
		answer(a, slice_of(id), s->new.ttl);
}

static void
beat(struct apicall *a)
{
	struct state *const s = state_of(a);
	const struct slice id = codeq_copy(a, codeq_rest(a));
	struct slu_err err = { 0 };
	int rc = read_body(a, beat_fields, COUNT(beat_fields), &err);
	slu_time ttl;

	ttl = within(s->ttl, TTL_DEFAULT, TTL_MAX) * SLU_SEC;
	if (!rc)
		rc = subscribers_beat(a->api->subscribers, codeq_space(a), id, ttl, clock_mono(a->api->clock));
	if (rc == SLU_ENOTFOUND)
		codeq_refuse(a, 404, "subscription not found");
	else if (rc)
		codeq_refuse_rc(a, rc, err.text);
	else
		answer(a, id, ttl);
}

const struct codeq_action codeq_subscribe = { subscribe, sizeof(struct state), CODEQ_WORKER, CODEQ_SUBSCRIBE };
const struct codeq_action codeq_subscription_beat = { beat, sizeof(struct state), CODEQ_WORKER, CODEQ_SUBSCRIBE };

/* --- calls -------------------------------------------------------------------- */

/* The path of a claim, from the path of the create: "/v1/codeq/tasks", or "/v1/codeq/tasks/batch". */
static void
claim_path(struct apicall *a, char *out, size_t size)
{
	static const struct slice batch = { "/batch", 6 };
	struct slice path = slice_of(call_of(a->x)->route->path);

	if (path.n > batch.n && memcmp(path.p + path.n - batch.n, batch.p, batch.n) == 0)
		path.n -= batch.n;
	(void)snprintf(out, size, "%.*s/claim", (int)path.n, path.p); /* fits */
}

static struct slice
body_of(struct codeq_ready *r)
{
	struct apicall *const a = r->apicall;
	char id[ID_UUID_TEXT + 8], uuid[ID_UUID_TEXT], path[DIALECT_BASE + 32];
	struct json_out w;
	struct buf text;

	(void)snprintf(id, sizeof id, "ntf-%s", id_to_uuid(r->task, uuid)); /* fits */
	claim_path(a, path, sizeof path);
	buf_init(&text, 4096);
	json_out_open(&w, &text);
	json_out_str(&w, "eventType", r->command);
	json_out_bool(&w, "available", true);
	json_out_u64(&w, "queueDepth", 0); /* advisory, as there: a claim tells */
	json_out_str(&w, "claimUrl", slice_of(path));
	json_out_time(&w, "sentAt", clock_wall(a->api->clock));
	json_out_str(&w, "notificationId", slice_of(id));
	json_out_close(&w);
	return arena_take(&a->memory, &text);
}

/* Under the mutex of the register. A call without memory is left out. */
static void
tell(void *arg, struct slice url, slu_time wait)
{
	struct codeq_ready *const r = arg;
	struct apicall *const a = r->apicall;
	const struct codeq_extras x = { .webhook = codeq_copy(a, url) };

	if (!r->puts)
		r->puts = arena_array(&a->memory, CALLS_MAX, sizeof *r->puts);
	if (!r->puts || !x.webhook.n || r->n == CALLS_MAX)
		return;
	if (!r->body.n)
		r->body = body_of(r);
	r->puts[r->n] = (struct op_put){
		.m = {
			.max_attempts = WEBHOOK_CALL_TRIES,
			.prio = WEBHOOK_CALL_PRIO,
			.type = SLICE("application/json"),
			.attributes = codeq_extras_write(a, &x),
			.trace = r->trace,
			.payload = r->body,
			.payload_size = r->body.n,
		},
		.delay = wait,
	};
	r->n += r->body.n > 0 && r->puts[r->n].m.attributes.n > 0;
}

void
codeq_ready_note(struct codeq_ready *r, struct slice queue, struct slice command, uint64_t task)
{
	struct apicall *const a = r->apicall;

	r->body = (struct slice){ 0 };
	r->command = command;
	r->task = task;
	subscribers_ready(a->api->subscribers, codeq_space(a), queue, clock_mono(a->api->clock), tell, r);
}

static void
stored(struct apicall *a)
{
	struct codeq_ready *const r = a->part;

	if (a->op.rc)
		log_info(a->api->log, "no call of subscribers", F_STR("error", apicall_err_of(&a->op).text), F_APICALL(a));
	else
		codeq_webhook_kick(a);
	r->then(a);
}

void
codeq_ready_send(struct codeq_ready *r, void (*then)(struct apicall *a))
{
	struct apicall *const a = r->apicall;

	if (r->n == 0) {
		then(a);
		return;
	}
	r->then = then;
	a->part = r;
	a->ops = &a->op;
	a->n_ops = 1;
	apicall_op(a, &a->op, OP_ENQUEUE, SLICE(WEBHOOK_SPACE), SLICE(WEBHOOK_QUEUE));
	a->op.puts = r->puts;
	a->op.n_puts = r->n;
	apicall_run_own(a, stored);
}
