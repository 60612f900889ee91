#include "api/flat/enqueue.h"

#include "api/flat/packed.h"
#include "api/flat/flat.h"
#include "api/flat/policy.h"
#include "api/flat/unique.h"
#include "api/groups.h"
#include "api/handler.h"
#include "api/flat/error.h"
#include "api/limits.h"
#include "api/split.h"
#include "api/values.h"

#include "base/json/json_out.h"
#include "engine/msgbatch.h"
#include "engine/payload.h"

#include <assert.h>

/* --- decode ------------------------------------------------------------------- */

/* An item of the request; its members are read into the message directly. */
struct item {
	struct op_put put;
	struct spelled space, queue;
	struct slice text;
	struct slice json;
	uint64_t max_attempts;
	struct slice parent, state; /* traceparent and tracestate */
	struct slice copies;        /* "copy_to": an array of names */
	struct flat_unique unique;
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
	N_FIXED = 5 /* rows that an item of a batch has in other forms: queue and payload */
};

/* A retry policy of the message; a member that is missing has its default. */
static void
read_retry(struct json *r, const struct json_field *f, void *place)
{
	struct slu_backoff b = policy_default.retry;

	assert(f->size == sizeof(struct terms));
	flat_retry_read(r, &b);
	terms_set_retry(place, &b);
}

/* The index of a row is the number of its bit. */
static const struct json_field fields[] = {
	FIELD("namespace", spelled, space, .required = true, .repeats = true),
	FIELD("topic", spelled, queue, .required = true, .repeats = true, .also = { "queue", 5 }),
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
	JSON_ROW("retry", read_retry, struct item, put.m.terms),
	FIELD("deadline", time, put.deadline),
	JSON_ROW("unique", flat_unique_read, struct item, unique),
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
	const struct flat_unique *const u = &item->unique;

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

/* Checks the members together, and completes item->put. */
static void
finish_item(struct json *r, struct arena *a, uint64_t given, struct item *item)
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
	item->put.m.space = item->space.name;
	item->put.m.queue = item->queue.name;
	item->put.as = (struct spelling){ item->space.as, item->queue.as };
	item->put.m.max_attempts = (uint16_t)item->max_attempts;
}

/* Decodes an item into item->put. */
static void
decode_item(struct json *r, struct arena *a, struct json_again *again, struct item *item)
{
	uint64_t given;

	*item = (struct item){ .put.m.prio = 5 };
	given = json_fields_again(r, fields, COUNT(fields), JSON_STRICT, again, item);
	take_payload(r, item, given);
	finish_item(r, a, given, item);
}

/* Adds a put. */
static void
add(struct flat_enqueue *e, struct arena *a, struct json *r, uint32_t *size, const struct op_put *put)
{
	const uint32_t more = *size * 2;
	struct op_put *puts = e->puts;

	if (r->state == JSON_FAILED)
		return;
	if (e->n == *size) {
		puts = arena_array(a, more, sizeof *puts);
		if (!puts) {
			json_fail(r, SLU_ENOMEM, r->p, "out of memory");
			return;
		}
		memcpy(puts, e->puts, e->n * sizeof *puts);
		e->puts = puts;
		*size = more;
	}
	puts[e->n++] = *put;
}

static void
add_copies(struct flat_enqueue *e, struct arena *a, struct json *r, uint32_t *size, const struct item *item)
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
		add(e, a, r, size, &copy);
		e->copies = true;
	}
}

/* Adds the message, then its copies. */
static void
add_item(struct flat_enqueue *e, struct arena *a, struct json *r, uint32_t *size, const struct item *item)
{
	struct slu_err err = { 0 };
	struct json names;
	char *room;

	add(e, a, r, size, &item->put);
	e->batch |= item->batch.id != 0;
	if (item->copies.n == 0 || r->state == JSON_FAILED)
		return;
	json_init(&names, item->copies, JSON_DEPTH);
	room = arena_alloc(a, item->copies.n);
	if (room)
		json_room(&names, room, item->copies.n);
	add_copies(e, a, &names, size, item);
	if (!room || json_end(&names, NULL))
		json_fail(r, room ? SLU_EINVAL : SLU_ENOMEM, item->copies.p, "copy_to: %s",
			  room && json_explain(&names, -1, &err) ? err.text : "out of memory");
}

static void
decode_items(struct flat_enqueue *e, struct arena *a, struct json *r, uint32_t *size)
{
	struct json_again again = { 0 };
	uint32_t n = 0;

	json_array(r);
	while (json_element(r)) {
		struct item item;

		if (n == API_ENQUEUE_MAX) {
			json_fail(r, SLU_EINVAL, r->p, "expected at most %d items", API_ENQUEUE_MAX);
		} else {
			decode_item(r, a, &again, &item);
			add_item(e, a, r, size, &item);
		}
		n += r->state != JSON_FAILED;
		e->items = n;
	}
	if (n == 0)
		json_fail(r, SLU_EINVAL, r->start, "expected at least one item");
}

int
flat_enqueue_decode(struct flat_enqueue *e, struct arena *a, struct slice body,
		    int64_t *index, struct slu_err *err)
{
	/* An estimate from the size of the body. If it is too small, grow copies. */
	uint32_t size = body.n / 256 < API_ENQUEUE_MAX ? (uint32_t)(body.n / 256) + 1 : API_ENQUEUE_MAX;
	char *const room = arena_alloc(a, body.n);
	struct item item;
	struct json r;
	bool many;

	*index = -1;
	e->n = e->items = 0;
	e->copies = e->batch = false;
	e->puts = arena_array(a, size, sizeof *e->puts);
	if (!room || !e->puts)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	json_init(&r, body, JSON_DEPTH);
	json_room(&r, room, body.n);
	many = json_peek(&r) != JSON_OBJECT;
	if (many) {
		decode_items(e, a, &r, &size);
	} else {
		decode_item(&r, a, NULL, &item);
		add_item(e, a, &r, &size, &item);
	}
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
flat_enqueue_object(struct flat_enqueue *e, struct arena *a, struct slice object, struct slice space, const char *what,
		    struct slu_err *err)
{
	struct slu_err why = { 0 };
	struct slice text;
	int64_t index;
	int rc = with_namespace(object, space, a, &text);

	if (rc)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	rc = flat_enqueue_decode(e, a, text, &index, &why);
	return rc ? slu_fail(err, (enum slu_code)rc, "%s: %.200s", what, why.text) : 0;
}

/* --- decode a batch ------------------------------------------------------------- */

/* Reads the members of an item and adds its message. */
static int
add_members(struct flat_enqueue *e, struct arena *a, uint32_t *size, const struct packed_item *in,
	    struct item *item, struct slu_err *err)
{
	char *const room = arena_alloc(a, in->members.n);
	struct json r;
	uint64_t given;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	json_init(&r, in->members, JSON_DEPTH);
	json_room(&r, room, in->members.n);
	given = json_fields(&r, fields + N_FIXED, COUNT(fields) - N_FIXED, JSON_STRICT, item);
	finish_item(&r, a, given << N_FIXED, item);
	add_item(e, a, &r, size, item);
	return json_end(&r, NULL) ? json_explain(&r, -1, err) : 0;
}

/* Most messages have no members: they need no parser. */
static int
add_packed_item(struct flat_enqueue *e, struct arena *a, uint32_t *size, const struct packed_item *in,
		struct slu_err *err)
{
	const struct packed_queue *const q = in->queue;
	struct item item = { .put.m = { .prio = 5, .payload = in->payload, .payload_size = in->payload.n } };
	struct json r = { 0 };

	item.space = q->space;
	item.queue = q->queue;
	if (in->members.n > 0)
		return add_members(e, a, size, in, &item, err);
	item.put.m.space = q->space.name;
	item.put.m.queue = q->queue.name;
	item.put.as = (struct spelling){ q->space.as, q->queue.as };
	add(e, a, &r, size, &item.put);
	return r.state == JSON_FAILED ? slu_fail(err, SLU_ENOMEM, "out of memory") : 0;
}

int
flat_enqueue_decode_packed(struct flat_enqueue *e, struct arena *a, struct slice body, int64_t *index,
			   struct slu_err *err)
{
	struct packed_item in;
	struct packed b;
	uint32_t size;
	int rc;

	*index = -1;
	e->n = e->items = 0;
	e->copies = e->batch = false;
	rc = packed_open(&b, a, body, PACKED_PUT, API_ENQUEUE_MAX, err);
	if (rc)
		return rc;
	size = b.rest.n / PACKED_PUT_BYTES < b.n ? (uint32_t)(b.rest.n / PACKED_PUT_BYTES) + 1 : b.n;
	e->puts = arena_array(a, size, sizeof *e->puts);
	if (!e->puts)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	for (; e->items < b.n && !rc; e->items += !rc) {
		rc = packed_put_next(&b, &in, err);
		if (!rc)
			rc = add_packed_item(e, a, &size, &in, err);
	}
	if (!rc)
		return packed_end(&b, err);
	*index = e->items;
	return rc;
}

/* --- encode ------------------------------------------------------------------- */

static void
write_detail(const struct op_put *put, struct json_out *w)
{
	char uuid[ID_UUID_TEXT];

	json_out_object(w, NULL);
	json_out_u64(w, "id", put->m.id);
	json_out_plain(w, "uid", slice_of(id_to_uuid(put->m.id, uuid)));
	json_out_bool(w, "duplicate", put->existed);
	if (put->pending)
		json_out_bool(w, "pending", true);
	if (put->m.terms.unique && !put->pending)
		json_out_str(w, "unique", put->replaced ? SLICE("replaced") : put->existed ? SLICE("kept")
											   : SLICE("new"));
	json_out_close(w);
}

static void
write_id(const struct op_put *put, enum flat_ids form, struct json_out *w)
{
	char uuid[ID_UUID_TEXT];

	if (form == FLAT_DETAIL)
		write_detail(put, w);
	else if (form == FLAT_UUIDS)
		json_out_plain(w, NULL, slice_of(id_to_uuid(put->m.id, uuid)));
	else
		json_out_u64(w, NULL, put->m.id);
}

void
flat_enqueue_ids(const struct flat_enqueue *e, const uint32_t *place, enum flat_ids form,
		 const bool *ok, struct json_out *w)
{
	for (uint32_t i = 0; i < e->n; i++) {
		const uint32_t at = place ? place[i] : i;

		if (ok && !ok[at])
			json_out_null(w, NULL);
		else
			write_id(&e->puts[at], form, w);
	}
}

/* --- the call ----------------------------------------------------------------- */

struct state {
	struct flat_enqueue e; /* first: flat_large_store */
	struct split split;    /* with several shards */
	struct op_item item;   /* members of a batch: the batch */
	struct slice ids;      /* "uid" */
	struct slice detail;   /* "1" */
	enum flat_ids form;    /* the form that ids and detail choose */
	bool atomic;           /* all messages are accepted, or none */
	bool step;             /* atomic, and over several shards */
	bool packed;           /* answer with a batch */
};

static const struct param params[] = {
	PARAM(word, struct state, ids),
	PARAM(word, struct state, detail),
	PARAM(flag, struct state, atomic),
};

/* Returns whether a message cannot go to another shard with the others. */
static bool
is_bound(struct apicall *a, const struct message *m)
{
	const struct engine *const e = flat_engine_of(a, m);

	return e->ops->shared || payload_is_large(e, m->payload.n);
}

/* Sets *apart if one OP_ENQUEUE cannot accept all messages. A queue that moves has several shards. */
static int
check_atomic(struct apicall *a, const struct state *s, const uint32_t *group, bool *apart, int64_t *index,
	     struct slu_err *err)
{
	struct broker_place places[SUPPLIED_MAX];
	int64_t bound = -1;
	unsigned n;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < s->e.n; i++) {
		const struct message *const m = &s->e.puts[i].m;

		*index = i;
		rc = broker_places(a->api->broker, apicall_routes(a), m->space, m->queue, places, &n, err);
		*apart |= !rc && (n > 1 || group[i] != group[0]);
		bound = bound < 0 && is_bound(a, m) ? (int64_t)i : bound;
	}
	if (rc || !*apart || bound < 0)
		return rc;
	*index = bound;
	return slu_fail(err, SLU_ESPANS, "a message of queue %.*s cannot go to another shard with the others; nothing was enqueued",
			(int)s->e.puts[bound].m.queue.n, s->e.puts[bound].m.queue.p);
}

/* Members join on the shard of their batch: one OP_FINISH. */
static int
plan_batch(struct apicall *a, struct state *s, int64_t *index, struct slu_err *err)
{
	const struct message *const first = &s->e.puts[0].m;

	for (uint32_t i = 0; i < s->e.n; i++) {
		const struct message *const m = &s->e.puts[i].m;

		*index = i;
		if (m->terms.batch != first->terms.batch || !slice_eq(m->space, first->space))
			return slu_fail(err, SLU_EINVAL, "batch: expected the same batch and namespace in all messages of a call");
		if (s->e.puts[i].replace)
			return slu_fail(err, SLU_EINVAL, "batch: a member cannot replace another message");
		if (is_bound(a, m))
			return slu_fail(err, SLU_ESPANS, "batch: a message of queue %.*s is too large for a batch, or its shard takes none; nothing was enqueued",
					(int)m->queue.n, m->queue.p);
	}
	s->item = (struct op_item){ .id = first->terms.batch };
	s->step = true;
	return 0;
}

static int
plan(struct apicall *a, struct state *s, int64_t *index, struct slu_err *err)
{
	uint32_t *const group = arena_array(&a->memory, s->e.n, sizeof *group);
	uint32_t n_groups;
	int rc;

	if (!group)
		return SLU_ENOMEM;
	rc = groups_make(a->api->broker, apicall_routes(a), &a->memory, s->e.puts, s->e.n, group, &n_groups);
	if (!rc && s->e.batch)
		rc = plan_batch(a, s, index, err);
	else if (!rc && s->atomic)
		rc = check_atomic(a, s, group, &s->step, index, err);
	if (rc)
		return rc;
	if (s->step) { /* one OP_FINISH: the shard of the first message sends the others on */
		split_none(&s->split, s->e.n);
		return 0;
	}
	s->e.puts = apicall_split(a, &s->split, group, n_groups, s->e.puts, s->e.n,
				  sizeof *s->e.puts);
	return s->e.puts ? 0 : SLU_ENOMEM;
}

static void
make_ops(struct apicall *a, struct state *s)
{
	for (unsigned i = 0; i < a->n_ops; i++) {
		const struct split_part *const part = &s->split.parts[i];
		struct op_put *const puts = s->e.puts + part->begin;

		apicall_op(a, &a->ops[i], s->step ? OP_FINISH : OP_ENQUEUE, puts->m.space,
			   s->item.id ? SLICE(MSGBATCH_QUEUE) : puts->m.queue);
		a->ops[i].items = &s->item;
		a->ops[i].n_items = s->item.id != 0;
		a->ops[i].puts = puts;
		a->ops[i].n_puts = part->end - part->begin;
	}
}

/* The index in the request of the item that made an op fail. */
static int64_t
item_of(const struct apicall *a, const struct op *op)
{
	const struct state *const s = a->state;
	const uint32_t at = (uint32_t)(op->puts - s->e.puts) + op->failed;

	if (!s->split.place)
		return at;
	for (uint32_t i = 0; i < s->e.n; i++)
		if (s->split.place[i] == at)
			return i;
	return -1;
}

/* The index of the item that failed; -1 if the server failed. */
static int64_t
failed_item(const struct apicall *a, const struct op *op)
{
	return slu_err_row(op->rc)->flat_status >= 500 ? -1 : item_of(a, op);
}

/* Some shards accepted their part and others did not: answer with the error and the ids. */
static void
answer_in_part(struct apicall *a, const struct op *failed)
{
	const struct state *const s = a->state;
	bool *const ok = arena_array(&a->memory, s->e.n, sizeof *ok);
	const struct slu_err err = apicall_err_of(failed);
	struct json_out w;

	if (!ok) {
		apicall_refuse(a, SLU_EUNKNOWN, NULL);
		return;
	}
	for (unsigned i = 0; i < a->n_ops; i++)
		for (uint32_t j = 0; j < a->ops[i].n_puts; j++)
			ok[a->ops[i].puts - s->e.puts + j] = a->ops[i].rc == 0;
	apicall_object(a, &w);
	api_count_limit(a->api, &err);
	flat_add_retry(call_of(a->x), &err);
	flat_write_err(&w, &err);
	if (failed_item(a, failed) >= 0)
		json_out_i64(&w, "index", failed_item(a, failed));
	json_out_array(&w, "ids");
	flat_enqueue_ids(&s->e, s->split.place, s->form, ok, &w);
	json_out_close(&w);
	apicall_reply_object(a, &w, (unsigned)slu_err_row(failed->rc)->flat_status);
}

static void
reply_packed(struct apicall *a, const struct state *s)
{
	packed_write(&a->x->out, PACKED_IDS, s->e.n);
	for (uint32_t i = 0; i < s->e.n; i++)
		packed_write_id(&a->x->out, &s->e.puts[s->split.place ? s->split.place[i] : i]);
	apicall_reply_as(a, 200, packed_type);
}

static void
answer(struct apicall *a)
{
	const struct state *const s = a->state;
	const struct op *failed = NULL;
	struct json_out w;

	flat_large_close(&s->e);
	for (unsigned i = 0; i < a->n_ops && !failed; i++)
		if (a->ops[i].rc)
			failed = &a->ops[i];
	if (failed && a->n_ops > 1) {
		answer_in_part(a, failed);
		return;
	}
	if (failed) {
		const struct slu_err err = apicall_err_of(failed);

		apicall_refuse_err(a, &err, failed_item(a, failed));
		return;
	}
	if (s->packed) {
		reply_packed(a, s);
		return;
	}
	json_out_init(&w, &a->x->out);
	json_out_array(&w, NULL);
	flat_enqueue_ids(&s->e, s->split.place, s->form, NULL, &w);
	apicall_reply_object(a, &w, 200);
}

static void
run(struct apicall *a)
{
	make_ops(a, a->state);
	apicall_run(a, answer);
}

/* An item without a trace has the trace of the request. */
static int
inherit_trace(struct apicall *a, struct flat_enqueue *e)
{
	struct slice trace;

	if (value_trace(&a->memory, call_field(call_of(a->x), "traceparent"),
			call_field(call_of(a->x), "tracestate"), &trace))
		return SLU_ENOMEM;
	for (uint32_t i = 0; trace.n && i < e->n; i++)
		if (e->puts[i].m.trace.n == 0)
			e->puts[i].m.trace = trace;
	return 0;
}

static int
choose_form(struct state *s, struct slu_err *err)
{
	if (s->ids.n > 0 && !slice_eq(s->ids, SLICE("uid")))
		return slu_fail(err, SLU_EINVAL, "ids: expected uid");
	if (s->detail.n > 0 && !slice_eq(s->detail, SLICE("1")) &&
	    !slice_eq(s->detail, SLICE("0")))
		return slu_fail(err, SLU_EINVAL, "detail: expected 1");
	s->form = slice_eq(s->detail, SLICE("1")) ? FLAT_DETAIL
		  : s->ids.n                      ? FLAT_UUIDS
						  : FLAT_NUMBERS;
	return 0;
}

static int
decode(struct apicall *a, struct state *s, int64_t *index, struct slu_err *err)
{
	const struct call *const c = call_of(a->x);
	int rc;

	*index = -1;
	rc = choose_form(s, err);
	if (rc)
		return rc;
	s->packed = packed_is_accepted(c);
	rc = packed_is_sent(c) ? flat_enqueue_decode_packed(&s->e, &a->memory, c->body, index, err)
			       : flat_enqueue_decode(&s->e, &a->memory, c->body, index, err);
	if (!rc && inherit_trace(a, &s->e))
		rc = slu_fail(err, SLU_ENOMEM, "out of memory");
	if (rc)
		return rc;
	s->atomic |= s->e.copies;
	if (s->e.batch || broker_lanes(a->api->broker) > 1 || groups_any(a->api->broker))
		return plan(a, s, index, err);
	split_none(&s->split, s->e.n);
	return 0;
}

static void
enqueue(struct apicall *a)
{
	struct state *const s = a->state;
	struct slu_err err = { 0 };
	int64_t index;
	int rc;

	rc = decode(a, s, &index, &err);
	if (rc) {
		apicall_refuse_item(a, rc, err.text, index);
		return;
	}
	make_ops(a, s);
	a->item_of = item_of;
	if (!apicall_pass(a))
		return; /* refused before anything is stored */
	if (call_of(a->x)->body.n > API_SMALL_BODY && flat_has_large(a))
		flat_large_store(a, run);
	else
		apicall_run(a, answer);
}

const struct handler flat_enqueue = { enqueue, sizeof(struct state), QUERY_ROWS(params) };
