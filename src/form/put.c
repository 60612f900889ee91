/*
 * put.c - messages out of JSON.
 */
#include "form/put.h"

#include "form/limits.h"
#include "form/retry.h"
#include "form/unique.h"
#include "form/values.h"

#include <assert.h>

/* An item of the request; its members are read into the message directly. */
struct item {
	struct op_put put;
	struct spelled space, queue;
	struct slice text;
	struct slice json;
	uint64_t max_attempts;
	struct slice parent, state; /* traceparent and tracestate */
	struct slice copies;        /* "copy_to": an array of names */
	struct form_unique unique;
	struct slice kind;
	struct given_id batch;
};

#define FIELD(text, how, member, ...) JSON_ROW(text, json_read_##how, struct item, member, __VA_ARGS__)

enum {
	HAS_PAYLOAD = 1 << 2,
	HAS_TEXT = 1 << 3,
	HAS_JSON = 1 << 4,
	HAS_DELIVER_AFTER = 1 << 6,
	HAS_DELAY = 1 << 7,
	HAS_TTL = 1 << 8,
	HAS_IDEM = 1 << 10,
	HAS_DEADLINE = 1 << 23,
	HAS_UNIQUE = 1 << 24,
	/* Members that need no check beside the check of their row. */
	PLAIN = 1 << 0 | 1 << 1 | HAS_PAYLOAD | HAS_TEXT | HAS_JSON | 1 << 5 | HAS_DELAY | HAS_TTL,
	N_FIXED = 5 /* rows that an item of a batch has in other forms: queue and payload */
};

/* The index of a row is the number of its bit. */
static const struct json_field fields[] = {
	FIELD("namespace", spelled, space, .required = true, .repeats = true),
	FIELD("queue", spelled, queue, .required = true, .repeats = true, .also = { "topic", 5 }),
	FIELD("payload", base64, put.m.payload),
	FIELD("text", text, text),
	FIELD("json", raw, json),
	FIELD("priority", priority, put.m.prio),
	FIELD("deliver_after", time, put.m.due),
	FIELD("delay", span, put.delay, .max = API_DELAY_MAX),
	FIELD("ttl", span, put.ttl, .min = 1, .max = API_DELAY_MAX),
	FIELD("key", key, put.m.key),
	FIELD("idempotency_key", key, put.m.idem),
	FIELD("correlation_id", line, put.m.correlation),
	FIELD("attributes", object, put.m.attributes, .max = MESSAGE_ATTRIBUTES_MAX),
	FIELD("max_attempts", u64, max_attempts, .min = 1, .max = API_ATTEMPTS_MAX),
	FIELD("keep_result", span, put.m.keep, .min = SLU_SEC, .max = API_KEEP_MAX),
	FIELD("content_type", line, put.m.type),
	FIELD("traceparent", text, parent),
	FIELD("tracestate", text, state),
	FIELD("share", share, put.m.share),
	FIELD("copy_to", raw, copies),
	FIELD("lease", span, put.m.terms.lease, .min = SLU_MS, .max = API_LEASE_MAX),
	FIELD("max_runtime", span, put.m.terms.run, .min = SLU_MS, .max = API_DELAY_MAX),
	JSON_ROW("retry", form_retry_read_terms, struct item, put.m.terms),
	FIELD("deadline", time, put.deadline),
	JSON_ROW("unique", form_unique_read, struct item, unique),
	FIELD("kind", kind, kind),
	FIELD("batch", id, batch),
};

/* Takes the payload from the member that has it. */
static void
take_payload(struct json *r, struct item *item, uint64_t given)
{
	const uint64_t kinds = given & (HAS_PAYLOAD | HAS_TEXT | HAS_JSON);
	struct message *const m = &item->put.m;

	if (kinds & (kinds - 1))
		json_fail(r, SLU_EINVAL, NULL,
			  "expected one of payload, text and json, not several");
	if (given & HAS_TEXT)
		m->payload = item->text;
	if (given & HAS_JSON)
		m->payload = item->json;
	if (m->type.n == 0 && given & HAS_TEXT)
		m->type = SLICE("text/plain; charset=utf-8");
	if (m->type.n == 0 && given & HAS_JSON)
		m->type = SLICE("application/json");
	m->payload_size = m->payload.n;
}

/* A unique message has its key as an idempotency key. */
static void
take_unique(struct json *r, uint64_t given, struct item *item)
{
	const struct form_unique *const u = &item->unique;

	if (!(given & HAS_UNIQUE))
		return;
	if (given & HAS_IDEM)
		json_fail(r, SLU_EINVAL, NULL, "expected unique or idempotency_key, not both");
	if (item->copies.n)
		json_fail(r, SLU_EINVAL, NULL, "expected unique or copy_to, not both");
	item->put.m.idem = u->key;
	item->put.m.terms.unique = u->until;
	item->put.m.terms.unique_for = u->time;
	item->put.replace = u->replace;
}

/* KIND-1 */
static void
take_kind(struct json *r, struct arena *a, struct item *item)
{
	if (item->kind.n == 0 || r->state == JSON_FAILED)
		return;
	if (item->put.m.share.n)
		json_fail(r, SLU_EINVAL, NULL, "expected share or kind, not both");
	else if (value_kind(a, item->kind, &item->put.m.share, NULL))
		json_fail(r, SLU_ENOMEM, r->p, "out of memory");
}

/* Checks the members that few messages have, together with the others. */
static void
finish_special(struct json *r, struct arena *a, uint64_t given, struct item *item)
{
	if ((given & HAS_DELIVER_AFTER) && (given & HAS_DELAY))
		json_fail(r, SLU_EINVAL, NULL, "expected deliver_after or delay, not both");
	if ((given & HAS_TTL) && (given & HAS_DEADLINE))
		json_fail(r, SLU_EINVAL, NULL, "expected ttl or deadline, not both");
	if ((given & HAS_DEADLINE) && item->put.deadline < 1)
		item->put.deadline = 1; /* a time before 1970 is past, too */
	if (item->put.m.due < 0)
		item->put.m.due = 0; /* a time before 1970 means now */
	take_unique(r, given, item);
	take_kind(r, a, item);
	if (r->state != JSON_FAILED &&
	    value_trace(a, item->parent, item->state, &item->put.m.trace))
		json_fail(r, SLU_ENOMEM, r->p, "out of memory");
	item->put.m.terms.batch = item->batch.id;
	item->put.m.max_attempts = (uint16_t)item->max_attempts;
}

/* Checks the members together, and completes item->put. */
static void
finish_item(struct json *r, struct arena *a, uint64_t given, struct item *item)
{
	if (given & ~(uint64_t)PLAIN)
		finish_special(r, a, given, item);
	item->put.m.space = item->space.name;
	item->put.m.queue = item->queue.name;
	item->put.as = (struct spelling){ item->space.as, item->queue.as };
}

/* The item that is read lies where its put will stay; the rest of it is overwritten by the next item. So the array ends with
 * room for an item. */
static struct op_put *
new_puts(struct arena *a, uint32_t room)
{
	return arena_alloc(a, room * sizeof(struct op_put) + (sizeof(struct item) - sizeof(struct op_put)));
}

int
form_puts_begin(struct form_puts *e, struct arena *a, uint32_t room, struct slu_err *err)
{
	*e = (struct form_puts){ .puts = new_puts(a, room), .room = room };
	return e->puts ? 0 : slu_fail(err, SLU_ENOMEM, "out of memory");
}

/* Room for one more put. Returns false if memory is out. */
static bool
make_room(struct form_puts *e, struct arena *a)
{
	const uint32_t more = e->room * 2;
	struct op_put *puts;

	if (e->n < e->room)
		return true;
	puts = new_puts(a, more);
	if (!puts)
		return false;
	memcpy(puts, e->puts, e->n * sizeof *puts);
	e->puts = puts;
	e->room = more;
	return true;
}

/* An empty item, at the place of the next put; NULL: out of memory. */
static struct item *
new_item(struct form_puts *e, struct arena *a)
{
	struct item *item;

	if (!make_room(e, a))
		return NULL;
	item = (void *)&e->puts[e->n];
	zero_large(item, sizeof *item);
	item->put.m.prio = 5;
	return item;
}

/* Adds a copy. */
static void
add(struct form_puts *e, struct arena *a, struct json *r, const struct op_put *put)
{
	if (r->state == JSON_FAILED)
		return;
	if (make_room(e, a))
		e->puts[e->n++] = *put;
	else
		json_fail(r, SLU_ENOMEM, r->p, "out of memory");
}

static void
add_copies(struct form_puts *e, struct arena *a, struct json *r, const struct item *item)
{
	static const struct json_field name = { .size = sizeof(struct spelled) };
	struct op_put copy = item->put;
	struct spelled queue;
	uint32_t n = 0;

	json_array(r);
	while (json_element(r)) {
		if (n++ == API_COPIES_MAX)
			json_fail(r, SLU_EINVAL, NULL, "expected at most %d queues", API_COPIES_MAX);
		json_read_spelled(r, &name, &queue);
		if (r->state == JSON_FAILED)
			return;
		copy.m.queue = queue.name;
		copy.as.queue = queue.as;
		add(e, a, r, &copy);
		e->copies = true;
	}
}

/* Adds the copies of an item that was added. */
static void
add_all_copies(struct form_puts *e, struct arena *a, struct json *r, const struct item *item)
{
	struct slu_err err = { 0 };
	struct json names;
	char *room;

	json_init(&names, item->copies, JSON_DEPTH);
	room = arena_alloc(a, item->copies.n);
	if (room)
		json_room(&names, room, item->copies.n);
	add_copies(e, a, &names, item);
	if (!room || json_end(&names, NULL))
		json_fail(r, room ? SLU_EINVAL : SLU_ENOMEM, item->copies.p, "copy_to: %s",
			  room && json_explain(&names, -1, &err) ? err.text : "out of memory");
}

/* Adds the message of an item that is at its place, then its copies. */
static void
add_item(struct form_puts *e, struct arena *a, struct json *r, const struct item *item)
{
	struct item whole;

	if (r->state == JSON_FAILED)
		return;
	e->n++;
	e->batch |= item->batch.id != 0;
	if (item->copies.n == 0)
		return;
	whole = *item; /* its end is the place of the next one */
	add_all_copies(e, a, r, &whole);
}

static _Thread_local struct json_habit habit; /* of items */

/* again: of an array; NULL: the item is alone. */
static void
decode_item(struct form_puts *e, struct arena *a, struct json *r, struct json_again *again)
{
	struct item *const item = new_item(e, a);
	uint64_t given;

	if (!item) {
		json_fail(r, SLU_ENOMEM, r->p, "out of memory");
		return;
	}
	given = again ? json_fields_again(r, fields, COUNT(fields), JSON_STRICT, again, item)
		      : json_fields_habit(r, fields, COUNT(fields), JSON_STRICT, &habit, item);
	take_payload(r, item, given);
	finish_item(r, a, given, item);
	add_item(e, a, r, item);
}

static void
decode_items(struct form_puts *e, struct arena *a, struct json *r)
{
	struct json_again again = { .habit = &habit };
	uint32_t n = 0;

	json_array(r);
	while (json_element(r)) {
		if (n == API_ENQUEUE_MAX)
			json_fail(r, SLU_EINVAL, r->p, "expected at most %d items", API_ENQUEUE_MAX);
		else
			decode_item(e, a, r, &again);
		n += r->state != JSON_FAILED;
		e->items = n;
	}
	if (n == 0)
		json_fail(r, SLU_EINVAL, r->start, "expected at least one item");
}

int
form_puts_decode(struct form_puts *e, struct arena *a, struct slice body,
		 int64_t *index, struct slu_err *err)
{
	/* An estimate from the size of the body. If it is too small, grow copies. */
	const uint32_t size = body.n / 256 < API_ENQUEUE_MAX ? (uint32_t)(body.n / 256) + 1 : API_ENQUEUE_MAX;
	char *const room = arena_alloc(a, body.n);
	struct json r;
	bool many;

	*index = -1;
	if (form_puts_begin(e, a, size, err))
		return SLU_ENOMEM;
	if (!room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	json_init(&r, body, JSON_DEPTH);
	json_room(&r, room, body.n);
	many = json_peek(&r) != JSON_OBJECT;
	if (many)
		decode_items(e, a, &r);
	else
		decode_item(e, a, &r, NULL);
	if (!json_end(&r, NULL))
		return 0;
	if (many && r.depth > 0)
		*index = e->items;
	return json_explain(&r, *index, err);
}

/* The object as an item of /enqueue: with the namespace. */
static int
with_namespace(struct slice object, struct slice space, struct arena *a, struct slice *out)
{
	struct slice rest = object;
	struct buf text;

	buf_init(&text, object.n + 2 * NAME_TEXT);
	buf_puts(&text, "{\"namespace\":\"");
	buf_put(&text, space.p, space.n);
	slice_skip(&rest, 1);
	buf_puts(&text, slice_trim(rest, " \t\r\n").n > 1 ? "\"," : "\"");
	buf_put(&text, rest.p, rest.n);
	*out = arena_copy(a, buf_slice(&text));
	buf_release(&text);
	return out->n ? 0 : SLU_ENOMEM;
}

int
form_puts_object(struct form_puts *e, struct arena *a, struct slice object, struct slice space, const char *what,
		 struct slu_err *err)
{
	struct slu_err why = { 0 };
	struct slice text;
	int64_t index;
	int rc = with_namespace(object, space, a, &text);

	if (rc)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	rc = form_puts_decode(e, a, text, &index, &why);
	return rc ? slu_fail(err, (enum slu_code)rc, "%s: %.200s", what, why.text) : 0;
}

/* ---- One by one ---- */

/* Reads the members of an item and adds its message. */
static int
add_members(struct form_puts *e, struct arena *a, struct slice members, struct item *item, struct slu_err *err)
{
	char *const room = arena_alloc(a, members.n);
	struct json r;
	uint64_t given;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	json_init(&r, members, JSON_DEPTH);
	json_room(&r, room, members.n);
	given = json_fields(&r, fields + N_FIXED, COUNT(fields) - N_FIXED, JSON_STRICT, item);
	finish_item(&r, a, given << N_FIXED, item);
	add_item(e, a, &r, item);
	return json_end(&r, NULL) ? json_explain(&r, -1, err) : 0;
}

/* Most messages have no members: they need no parser. */
int
form_puts_add(struct form_puts *e, struct arena *a, const struct spelled *space, const struct spelled *queue,
	      struct slice payload, struct slice members, struct slu_err *err)
{
	struct item *const item = new_item(e, a);

	if (!item)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	item->put.m.payload = payload;
	item->put.m.payload_size = payload.n;
	item->put.m.space = space->name;
	item->put.m.queue = queue->name;
	item->put.as = (struct spelling){ space->as, queue->as };
	if (members.n == 0) {
		e->n++;
		return 0;
	}
	item->space = *space;
	item->queue = *queue;
	return add_members(e, a, members, item, err);
}
