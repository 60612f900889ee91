#include "torture/calls_private.h"
#include "torture/times.h"

#include "base/mem.h"
#include "base/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>

enum {
	PATH_MAX_BYTES = 1024,
	BODY_MAX = 8 << 20,
	CUT_PERCENT = 20, /* one of so many calls is cut */
	WANDER_PERCENT = 10,
	HOPS = 3 /* how often a call follows to an owner */
};

#define PATIENCE (60 * SLU_SEC) /* timeout of an answer: longer than any pause */

int
caller_init(struct caller *c, struct slu_err *err)
{
	struct address address;

	c->node = &c->nodes[c->number % c->n_nodes];
	c->life = target_address(c->node, &address);
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

/* Closes by a reset: bytes in flight are lost. */
static void
reset_connection(struct caller *c)
{
	const struct linger hard = { .l_onoff = 1 };

	if (c->http.wire.fd >= 0)
		(void)setsockopt(c->http.wire.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
	http_hang_up(&c->http);
}

static void
go_to(struct caller *c, struct target *node)
{
	if (node != c->node)
		c->life = 0;
	c->node = node;
}

/* Changes the node now and then: a lease of one node must work on another. */
static void
wander(struct caller *c)
{
	if (c->n_nodes > 1 && dice_chance(&c->dice, WANDER_PERCENT))
		go_to(c, &c->nodes[dice_below(&c->dice, c->n_nodes)]);
}

/* Connects to the present life of the node. */
static void
follow(struct caller *c)
{
	struct address address;
	const unsigned life = target_address(c->node, &address);

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

/* Does the text contain the address, and not one that only begins like it? */
static bool
names(const char *text, const char *address)
{
	const char *const at = strstr(text, address);

	return at && (at[strlen(address)] < '0' || at[strlen(address)] > '9');
}

/* The node that the answer names as the owner of the shard; NULL = the answer is not of that kind. */
static struct target *
owner_in(struct caller *c)
{
	struct address address;

	for (unsigned i = 0; c->http.answer.status == 503 && i < c->n_nodes; i++) {
		(void)target_address(&c->nodes[i], &address);
		if (&c->nodes[i] != c->node && names(buf_str(&c->http.answer.body), address_authority(&address)))
			return &c->nodes[i];
	}
	return NULL;
}

/* Sends the request to the node, and on to the owner that it names. A node that is gone is left. */
static int
call_owner(struct caller *c, const struct http_call *call, struct slu_err *err)
{
	struct target *owner = NULL;
	int rc;

	for (unsigned hops = 0; hops < HOPS && (hops == 0 || owner); hops++) {
		if (owner)
			go_to(c, owner);
		follow(c);
		rc = http_call(&c->http, call, err);
		owner = rc ? NULL : owner_in(c);
	}
	if (rc == SLU_EDOWN && c->n_nodes > 1)
		go_to(c, &c->nodes[dice_below(&c->dice, c->n_nodes)]);
	return rc;
}

/* Sends the request; e gets the times and the outcome. */
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
	wander(c);
	e->start = time_now();
	call.until = (struct patience){ .deadline = e->start + (cut ? soon : PATIENCE), .stop_fd = -1 };
	e->outcome = (uint8_t)outcome_of(c, call_owner(c, &call, &err));
	e->end = time_now();
	e->client = c->number;
	if (cut && e->outcome == OUTCOME_UNKNOWN)
		reset_connection(c);
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

/* Allocates room to decode the answer: its own length is enough. */
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

int
caller_object(struct caller *c, const struct json_field *fields, size_t n, void *out,
	      struct slu_err *err)
{
	struct json r;

	if (!caller_read(c, &r))
		return slu_fail(err, SLU_ENOMEM, "no memory");
	json_fields(&r, fields, n, JSON_LENIENT, out);
	return json_end(&r, err);
}

/* --- payloads --------------------------------------------------------------------- */

static char
filling(uint64_t name)
{
	return (char)('a' + name % 26);
}

static void
out_payload(struct caller *c, struct json_out *w, const struct push_item *item)
{
	char *at;

	buf_clear(&c->payload);
	buf_printf(&c->payload, "%" PRIu64 " %u ", item->name, item->size);
	at = buf_add(&c->payload, item->size);
	if (at)
		memset(at, filling(item->name), item->size);
	json_out_str(w, "text", buf_slice(&c->payload));
}

/* Takes the number before the next space, and the space. */
static bool
take_number(struct slice *s, uint64_t *out)
{
	struct slice number;

	return slice_cut(s, ' ', &number) && parse_u64(number, 0, UINT64_MAX, out, NULL) == 0;
}

/* Reads the name of a payload. Returns false if the bytes do not match. */
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

void
caller_out_item(struct caller *c, struct json_out *w, const struct push_item *item)
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
	if (item->share) {
		(void)snprintf(text, sizeof text, "s%u", item->share);
		json_out_str(w, "share", slice_of(text));
	}
	if (item->batch) {
		(void)snprintf(text, sizeof text, "%" PRIu64, item->batch);
		json_out_str(w, "batch", slice_of(text));
	}
	if (item->host) {
		json_out_object(w, "attributes");
		json_out_u64(w, "host", item->host);
		json_out_close(w);
	}
	json_out_close(w);
}

void
caller_note_item(struct event *e, const struct push_item *item)
{
	e->name = item->name;
	e->key = item->key;
	e->share = item->share;
	e->host = item->host;
	e->priority = (uint8_t)item->priority;
	e->waits = item->delay_ms || item->past || item->key;
	e->joins = e->parent || item->batch;
}

/* Reads the ids of the answer. Returns whether there are n. */
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
caller_push(struct caller *c, const struct push_item *items, unsigned n)
{
	uint64_t ids[CALLS_PUSH_MAX] = { 0 };
	struct event e = { .kind = EVENT_PUSH, .call = atomic_fetch_add(c->next_call, 1) };
	struct json_out w;

	caller_path(c, "/enqueue");
	caller_body(c, &w);
	json_out_array(&w, NULL);
	for (unsigned i = 0; i < n; i++)
		caller_out_item(c, &w, &items[i]);
	json_out_finish(&w);
	if (caller_ask(c, "POST", &e) == OUTCOME_OK && !read_ids(c, ids, n))
		e.outcome = OUTCOME_UNKNOWN;
	for (unsigned i = 0; i < n; i++) {
		e.index = i;
		e.id = e.outcome == OUTCOME_OK ? ids[i] : 0;
		caller_note_item(&e, &items[i]);
		history_add(c->history, &e);
	}
	return e.outcome;
}

/* --- claim ------------------------------------------------------------------------ */

struct claimed {
	uint64_t id, fencing_token, attempts, failure_attempts, max_attempts;
	struct slice payload, key, lease_id;
	slu_time lease_expires_at, deliver_after, enqueued_at;
};

static const struct json_field delivery_fields[] = {
	JSON_FIELD(u64, struct claimed, id, .required = true),
	JSON_FIELD(u64, struct claimed, fencing_token, .required = true),
	JSON_FIELD(u64, struct claimed, attempts, .required = true),
	JSON_FIELD(u64, struct claimed, failure_attempts, .required = true),
	JSON_FIELD(u64, struct claimed, max_attempts, .required = true),
	JSON_FIELD(base64, struct claimed, payload, .required = true),
	JSON_FIELD(text, struct claimed, key),
	JSON_FIELD(text, struct claimed, lease_id, .required = true, .max = CALLS_LEASE_ID - 1),
	JSON_FIELD(time, struct claimed, lease_expires_at, .required = true),
	JSON_FIELD(time, struct claimed, deliver_after, .required = true),
	JSON_FIELD(time, struct claimed, enqueued_at, .required = true),
};

static void
take_delivery(struct caller *c, const struct claimed *d, const struct claim_how *how,
	      struct event *e, struct held_message *held)
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
		(void)parse_u64((struct slice){ d->key.p + 1, d->key.n - 1 }, 1, UINT32_MAX, &key, NULL); /* all our ids are numbers */
	e->key = (uint32_t)key;
	*held = (struct held_message){ .id = e->id, .name = e->name, .token = e->token };
	(void)snprintf(held->lease_id, sizeof held->lease_id, "%.*s", (int)d->lease_id.n,
		       d->lease_id.p);
	history_add(c->history, e);
}

static bool
read_deliveries(struct caller *c, const struct claim_how *how, struct event *e,
		struct held_message *held, unsigned *n)
{
	struct json r;

	if (!caller_read(c, &r))
		return false;
	json_array(&r);
	while (json_element(&r)) {
		struct claimed d = { 0 };

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
caller_claim(struct caller *c, const struct claim_how *how, struct held_message *held, unsigned *n)
{
	struct event e = { .kind = EVENT_CLAIM };

	*n = 0;
	begin_claim(c, how);
	if (caller_ask(c, "GET", &e) == OUTCOME_OK && !read_deliveries(c, how, &e, held, n))
		e.outcome = OUTCOME_UNKNOWN;
	if (*n > 0)
		atomic_store(c->handed, e.start);
	return e.outcome;
}

void
caller_vanish(struct caller *c, const struct claim_how *how)
{
	const slu_time soon = (slu_time)dice_below(&c->dice, 3) * SLU_MS;
	struct http_call call = { .method = "GET" };
	struct slu_err err;

	begin_claim(c, how);
	wander(c);
	follow(c);
	call.path = buf_str(&c->path);
	call.until = (struct patience){ .deadline = time_now() + soon, .stop_fd = -1 };
	if (http_call(&c->http, &call, &err) == 0)
		return; /* the answer was faster; its messages wait until their leases end */
	reset_connection(c);
}
