#include "torture/calls_in.h"
#include "torture/times.h"

#include "base/mem.h"
#include "base/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>

enum {
	PATH_MAX_BYTES = 1024,
	BODY_MAX = 8 << 20,
	CUT_PERCENT = 20, /* of calls, while connections are cut */
	WANDER_PERCENT = 10
};

#define PATIENCE (60 * SLU_SEC) /* for an answer: far more than any pause */

int
caller_init(struct caller *c, struct slu_err *err)
{
	struct address address;

	c->node = &c->nodes[c->number % c->n_nodes];
	c->life = victim_address(c->node, &address);
	c->room = NULL;
	c->room_n = 0;
	http_init(&c->http, &address);
	buf_init(&c->path, PATH_MAX_BYTES);
	buf_init(&c->body, BODY_MAX);
	buf_init(&c->payload, BODY_MAX);
	return buf_reserve(&c->body, BODY_MAX / 8) ? 0 : slu_fail(err, SLU_ENOMEM, "no memory");
}

void
caller_release(struct caller *c)
{
	http_release(&c->http);
	buf_release(&c->path);
	buf_release(&c->body);
	buf_release(&c->payload);
	mem_free(c->room);
	c->room = NULL;
}

/* --- asking ----------------------------------------------------------------------- */

/* Go without a word: what is on its way meets a reset. */
static void
slam(struct caller *c)
{
	const struct linger hard = { .l_onoff = 1 };

	if (c->http.wire.fd >= 0)
		(void)setsockopt(c->http.wire.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
	http_hang_up(&c->http);
}

/* Another node, now and then: what one has given another must take. */
static void
wander(struct caller *c)
{
	if (c->n_nodes == 1 || !dice_chance(&c->dice, WANDER_PERCENT))
		return;
	c->node = &c->nodes[dice_below(&c->dice, c->n_nodes)];
	c->life = 0;
}

static void
follow(struct caller *c)
{
	struct address address;
	unsigned life;

	wander(c);
	life = victim_address(c->node, &address);
	if (life == c->life)
		return;
	c->life = life;
	http_hang_up(&c->http);
	c->http.address = address;
}

static enum outcome
outcome_of(struct caller *c, int rc)
{
	static const char unknown[] = "\"outcome_unknown\"";

	if (rc)
		return rc == SLU_EDOWN ? OUTCOME_FAILED : OUTCOME_UNKNOWN;
	if (c->http.answer.status / 100 == 2)
		return OUTCOME_OK;
	return strstr(buf_str(&c->http.answer.body), unknown) ? OUTCOME_UNKNOWN : OUTCOME_FAILED;
}

/* Make the call that path and body say; e gets its times and its outcome. */
enum outcome
caller_ask(struct caller *c, const char *method, struct event *e)
{
	const bool cut = atomic_load(c->cuts) && dice_chance(&c->dice, CUT_PERCENT);
	const slu_time soon = (slu_time)dice_below(&c->dice, 4) * SLU_MS;
	struct http_call call = {
		.method = method,
		.path = buf_str(&c->path),
		.fields = c->fields[0] ? c->fields : NULL,
	};
	struct slu_err err;

	if (strcmp(method, "GET") != 0)
		call.body = buf_slice(&c->body);
	follow(c);
	e->start = time_now();
	call.until = (struct patience){ .deadline = e->start + (cut ? soon : PATIENCE), .stop_fd = -1 };
	e->outcome = (uint8_t)outcome_of(c, http_call(&c->http, &call, &err));
	e->end = time_now();
	e->client = c->number;
	if (cut && e->outcome == OUTCOME_UNKNOWN)
		slam(c);
	return e->outcome;
}

void
caller_path(struct caller *c, const char *path)
{
	buf_clear(&c->path);
	buf_puts(&c->path, path);
}

void
caller_query(struct caller *c, const char *path)
{
	caller_path(c, path);
	buf_printf(&c->path, "?namespace=" TORTURE_SPACE "&topic=%s", c->queue);
}

void
caller_body(struct caller *c, struct json_out *w)
{
	buf_clear(&c->body);
	json_out_init(w, &c->body);
}

void
caller_place(struct caller *c, struct json_out *w)
{
	json_out_str(w, "namespace", SLICE(TORTURE_SPACE));
	json_out_str(w, "topic", slice_of(c->queue));
}

void
caller_ms(struct json_out *w, const char *name, unsigned ms)
{
	char text[16];

	(void)snprintf(text, sizeof text, "%ums", ms);
	json_out_str(w, name, slice_of(text));
}

/* Room to decode an answer in: as much as it is long is always enough. */
static bool
make_room(struct caller *c)
{
	const size_t n = c->http.answer.body.n;

	if (n <= c->room_n)
		return true;
	mem_free(c->room);
	c->room = mem_alloc(n);
	c->room_n = c->room ? n : 0;
	return c->room;
}

bool
caller_read(struct caller *c, struct json *r)
{
	json_init(r, buf_slice(&c->http.answer.body), JSON_DEPTH);
	if (!make_room(c))
		return false;
	json_room(r, c->room, c->room_n);
	return true;
}

/* --- payloads --------------------------------------------------------------------- */

static char
filling(uint64_t name)
{
	return (char)('a' + name % 26);
}

static void
out_payload(struct caller *c, struct json_out *w, const struct item *item)
{
	char *at;

	buf_clear(&c->payload);
	buf_printf(&c->payload, "%" PRIu64 " %u ", item->name, item->size);
	at = buf_add(&c->payload, item->size);
	if (at)
		memset(at, filling(item->name), item->size);
	json_out_str(w, "text", buf_slice(&c->payload));
}

/* The number before the next space, which goes with it. */
static bool
take_number(struct slice *s, uint64_t *out)
{
	const char *space = s->n ? memchr(s->p, ' ', s->n) : NULL;
	const size_t n = space ? (size_t)(space - s->p) : 0;

	if (!space || parse_u64((struct slice){ s->p, n }, 0, UINT64_MAX, out, NULL) != 0)
		return false;
	s->p += n + 1;
	s->n -= n + 1;
	return true;
}

/* Who it is; false: these are not its bytes. */
bool
payload_read(struct slice payload, uint64_t *name)
{
	uint64_t size;

	*name = 0;
	if (!take_number(&payload, name) || !take_number(&payload, &size) || payload.n != size)
		return false;
	for (size_t i = 0; i < payload.n; i++)
		if (payload.p[i] != filling(*name))
			return false;
	return true;
}

/* --- push ------------------------------------------------------------------------- */

static void
out_item(struct caller *c, struct json_out *w, const struct item *item)
{
	char text[32];

	json_out_object(w, NULL);
	caller_place(c, w);
	out_payload(c, w, item);
	json_out_i64(w, "priority", item->priority);
	if (item->key) {
		(void)snprintf(text, sizeof text, "k%u", item->key);
		json_out_str(w, "key", slice_of(text));
	}
	if (item->delay_ms)
		caller_ms(w, "delay", item->delay_ms);
	else if (item->past)
		json_out_str(w, "deliver_after", SLICE("2023-10-27T10:00:00Z"));
	if (item->idempotent) {
		(void)snprintf(text, sizeof text, "i%" PRIu64, item->name);
		json_out_str(w, "idempotency_key", slice_of(text));
	}
	json_out_close(w);
}

/* Ids of the answer; whether there are n. */
static bool
read_ids(struct caller *c, uint64_t *ids, unsigned n)
{
	struct json r;
	unsigned got = 0;

	if (!caller_read(c, &r))
		return false;
	json_array(&r);
	while (json_element(&r)) {
		const uint64_t id = json_u64(&r, 1, INT64_MAX);

		if (got < n)
			ids[got] = id;
		got++;
	}
	return json_end(&r, NULL) == 0 && got == n;
}

enum outcome
caller_push(struct caller *c, const struct item *items, unsigned n)
{
	uint64_t ids[CALLS_PUSH_MAX] = { 0 };
	struct event e = { .kind = EVENT_PUSH, .call = atomic_fetch_add(c->next_call, 1) };
	struct json_out w;

	caller_path(c, "/enqueue");
	caller_body(c, &w);
	json_out_array(&w, NULL);
	for (unsigned i = 0; i < n; i++)
		out_item(c, &w, &items[i]);
	json_out_close(&w);
	json_out_end(&w);
	if (caller_ask(c, "POST", &e) == OUTCOME_OK && !read_ids(c, ids, n))
		e.outcome = OUTCOME_UNKNOWN;
	for (unsigned i = 0; i < n; i++) {
		e.index = i;
		e.id = e.outcome == OUTCOME_OK ? ids[i] : 0;
		e.name = items[i].name;
		e.key = items[i].key;
		history_add(c->history, &e);
	}
	return e.outcome;
}

/* --- claim ------------------------------------------------------------------------ */

struct delivery {
	uint64_t id, fencing_token, attempts, failure_attempts, max_attempts;
	struct slice payload, key, lease_id;
	slu_time lease_expires_at, deliver_after, enqueued_at;
};

static const struct json_field delivery_fields[] = {
	JSON_FIELD(u64, struct delivery, id, .required = true),
	JSON_FIELD(u64, struct delivery, fencing_token, .required = true),
	JSON_FIELD(u64, struct delivery, attempts, .required = true),
	JSON_FIELD(u64, struct delivery, failure_attempts, .required = true),
	JSON_FIELD(u64, struct delivery, max_attempts, .required = true),
	JSON_FIELD(base64, struct delivery, payload, .required = true),
	JSON_FIELD(text, struct delivery, key),
	JSON_FIELD(text, struct delivery, lease_id, .required = true, .max = CALLS_LEASE_ID - 1),
	JSON_FIELD(time, struct delivery, lease_expires_at, .required = true),
	JSON_FIELD(time, struct delivery, deliver_after, .required = true),
	JSON_FIELD(time, struct delivery, enqueued_at, .required = true),
};

static void
take_delivery(struct caller *c, const struct delivery *d, const struct claim_how *how,
	      struct event *e, struct held *held)
{
	uint64_t key = 0;

	e->id = d->id;
	e->token = d->fencing_token;
	e->until = d->lease_expires_at;
	e->granted = d->lease_expires_at - how->lease_ms * SLU_MS;
	e->due = d->deliver_after > d->enqueued_at ? d->deliver_after : d->enqueued_at;
	e->attempts = (uint16_t)d->attempts;
	e->failures = (uint16_t)d->failure_attempts;
	e->max_attempts = (uint16_t)d->max_attempts;
	e->damaged = !payload_read(d->payload, &e->name);
	if (d->key.n > 1)
		(void)parse_u64((struct slice){ d->key.p + 1, d->key.n - 1 }, 1, UINT32_MAX, &key, NULL); /* ours are all like that */
	e->key = (uint32_t)key;
	*held = (struct held){ .id = e->id, .name = e->name, .token = e->token };
	(void)snprintf(held->lease_id, sizeof held->lease_id, "%.*s", (int)d->lease_id.n,
		       d->lease_id.p);
	history_add(c->history, e);
}

static bool
read_deliveries(struct caller *c, const struct claim_how *how, struct event *e,
		struct held *held, unsigned *n)
{
	struct json r;

	if (!caller_read(c, &r))
		return false;
	json_array(&r);
	while (json_element(&r)) {
		struct delivery d = { 0 };

		json_fields(&r, delivery_fields, N_FIELDS(delivery_fields), JSON_LENIENT, &d);
		if (d.id && *n < how->limit)
			take_delivery(c, &d, how, e, &held[(*n)++]);
	}
	return json_end(&r, NULL) == 0;
}

static void
begin_claim(struct caller *c, const struct claim_how *how)
{
	caller_query(c, "/dequeue");
	buf_printf(&c->path, "&limit=%u&lease=%ums", how->limit, how->lease_ms);
	if (how->wait_ms)
		buf_printf(&c->path, "&wait=%ums", how->wait_ms);
}

enum outcome
caller_claim(struct caller *c, const struct claim_how *how, struct held *held, unsigned *n)
{
	struct event e = { .kind = EVENT_CLAIM };

	*n = 0;
	begin_claim(c, how);
	if (caller_ask(c, "GET", &e) == OUTCOME_OK && !read_deliveries(c, how, &e, held, n))
		e.outcome = OUTCOME_UNKNOWN;
	return e.outcome;
}

void
caller_vanish(struct caller *c, const struct claim_how *how)
{
	const slu_time soon = (slu_time)dice_below(&c->dice, 3) * SLU_MS;
	struct http_call call = { .method = "GET" };
	struct slu_err err;

	begin_claim(c, how);
	follow(c);
	call.path = buf_str(&c->path);
	call.until = (struct patience){ .deadline = time_now() + soon, .stop_fd = -1 };
	if (http_call(&c->http, &call, &err) == 0)
		return; /* it was faster; what it brought is left to its lease */
	slam(c);
}
