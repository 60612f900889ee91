#include "api/flat/settle.h"

#include "api/handler.h"
#include "api/flat/packed.h"
#include "api/flat/error.h"
#include "api/flat/flat.h"
#include "api/flat/view.h"
#include "api/limits.h"
#include "api/split.h"
#include "form/values.h"

#include "base/id.h"
#include "base/json/json_out.h"
#include "base/le.h"
#include "base/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* --- decode ------------------------------------------------------------------- */

/* An item of the request; its members are read into op directly. */
struct settle_item {
	struct op_item op; /* first: new_items */
	struct flat_step step;
	struct given_id id;
	struct receipt receipt;
	uint64_t lease_id;
};

#define FIELD(text, how, member, ...) JSON_ROW(text, json_read_##how, struct settle_item, member, __VA_ARGS__)

/* The message and its lease: the first rows of every table. A receipt replaces them all. */
/* clang-format off */
#define WHICH                                             \
	FIELD("id", id, id),                              \
	FIELD("namespace", name, op.space, .repeats = true), \
	FIELD("queue", name, op.queue, .repeats = true, .also = { "topic", 5 }), \
	FIELD("lease_id", lease, lease_id),               \
	FIELD("fencing_token", u64, op.token),            \
	FIELD("receipt", receipt, receipt)
/* clang-format on */

/* A bit for each row. */
enum {
	HAS_ID = 1 << 0,
	HAS_SPACE = 1 << 1,
	HAS_TOKEN = 1 << 4,
	HAS_RECEIPT = 1 << 5,
	HAS_OTHERS = HAS_RECEIPT - 1, /* any row before it */
	N_WHICH = 6,                  /* rows of WHICH */
	HAS_PRIORITY = 1 << 13        /* of a nack */
};

enum {
	ITEM_BYTES = 24 /* no valid item is shorter than {"id":1,"namespace":"a"} */
};

static void
read_result(struct json *r, const struct json_field *f, void *place)
{
	json_read_raw(r, f, place);
	if (((struct slice *)place)->n > API_RESULT_MAX)
		json_fail(r, SLU_EINVAL, NULL, "expected at most %d bytes", API_RESULT_MAX);
}

static const struct json_field ack_fields[] = {
	WHICH,
	JSON_ROW("result", read_result, struct settle_item, op.text),
	FIELD("enqueue", raw, step.enqueue),
	FIELD("release", raw, step.release),
};

/* A long error text is cut instead of refused: the nack must succeed. */
static void
read_error(struct json *r, const struct json_field *f, void *place)
{
	struct slice *const text = place;

	json_read_text(r, f, place);
	*text = utf8_cut(*text, API_ERROR_MAX);
}

static void
read_reason(struct json *r, const struct json_field *f, void *place)
{
	json_read_text(r, f, place);
	if (((struct slice *)place)->n >= BREAKER_NAME)
		json_fail(r, SLU_EINVAL, NULL, "expected the name of a breaker, at most %d bytes", BREAKER_NAME - 1);
}

static void
read_scope(struct json *r, const struct json_field *f, void *place)
{
	static const char *const scopes[] = { "queue", "share", "key", "attribute" };
	struct json_str s;

	assert(f->size == sizeof(uint8_t));
	if (!json_string(r, &s))
		return;
	for (unsigned i = 0; i < COUNT(scopes); i++) {
		*(uint8_t *)place = (uint8_t)(i + 1);
		if (json_str_is(&s, slice_of(scopes[i])))
			return;
	}
	json_fail(r, SLU_EINVAL, NULL, "expected key, share, attribute or queue");
}

static const struct json_field nack_fields[] = {
	WHICH,
	JSON_ROW("error", read_error, struct settle_item, op.text),
	FIELD("delay", span, op.time, .max = API_DELAY_MAX),
	FIELD("defer", bool, op.defer),
	FIELD("dead", bool, op.dead),
	FIELD("enqueue", raw, step.enqueue),
	FIELD("retry_after", span, op.hold, .max = API_DELAY_MAX),
	JSON_ROW("scope", read_scope, struct settle_item, op.scope),
	FIELD("priority", priority, op.prio),
	JSON_ROW("reason", read_reason, struct settle_item, op.reason),
	FIELD("release", raw, step.release),
};

static void
read_checkpoint(struct json *r, const struct json_field *f, void *place)
{
	json_read_raw(r, f, place);
	if (((struct slice *)place)->n > OP_CHECKPOINT_MAX)
		json_fail(r, SLU_EINVAL, NULL, "expected at most %d bytes", OP_CHECKPOINT_MAX);
}

static const struct json_field extend_fields[] = {
	WHICH,
	FIELD("lease", span, op.time, .min = SLU_MS, .max = API_LEASE_MAX),
	JSON_ROW("checkpoint", read_checkpoint, struct settle_item, op.text),
};

static const struct table {
	const struct json_field *fields;
	size_t n;
	slu_time time; /* for an item without a time */
} tables[OP_VERBS] = {
	[OP_ACK] = { ack_fields, COUNT(ack_fields), 0 },
	[OP_NACK] = { nack_fields, COUNT(nack_fields), LEDGER_BY_POLICY },
	[OP_EXTEND] = { extend_fields, COUNT(extend_fields), 0 },
};

/* The token that lease_id and fencing_token name; VALUE_NO_LEASE if they differ. */
static uint64_t
token_of(const struct settle_item *item, bool has_token)
{
	if (has_token && item->op.token == 0)
		return VALUE_NO_LEASE; /* no lease has token 0 */
	if (!item->lease_id)
		return item->op.token;
	if (has_token && item->op.token != item->lease_id)
		return VALUE_NO_LEASE;
	return item->lease_id;
}

static void
check_given(struct json *r, const char *object, uint64_t given)
{
	if (given & HAS_RECEIPT && given & HAS_OTHERS)
		json_fail(r, SLU_EINVAL, object,
			  "expected a receipt alone, or id and namespace; not both");
	if (!(given & HAS_RECEIPT) && !(given & HAS_ID))
		json_fail(r, SLU_EINVAL, object, "expected a member \"receipt\" or \"id\"");
	if (!(given & HAS_RECEIPT) && !(given & HAS_SPACE))
		json_fail(r, SLU_EINVAL, object, "expected a member \"namespace\"");
}

static void
take_which(struct settle_item *item, uint64_t given)
{
	if (given & HAS_RECEIPT) {
		item->op.space = item->receipt.space;
		item->op.queue = item->receipt.queue;
		item->op.id = item->receipt.id;
		item->op.token = item->receipt.token;
		return;
	}
	item->op.id = item->id.id;
	item->op.rounded = item->id.rounded;
	item->op.token = token_of(item, given & HAS_TOKEN);
}

/* Checks the members of a nack together. */
static void
check_times(struct json *r, struct op_item *op)
{
	if (op->defer && op->dead)
		json_fail(r, SLU_EINVAL, NULL, "expected defer or dead, not both");
	if (op->hold && op->dead)
		json_fail(r, SLU_EINVAL, NULL, "expected retry_after or dead, not both");
	if (op->scope && !op->hold)
		json_fail(r, SLU_EINVAL, NULL, "expected retry_after with scope");
	if (op->hold && !op->scope) { /* the message alone is deferred */
		op->defer = true;
		op->time = op->hold;
		op->hold = 0;
	}
}

/* An item is read where its op will stay; the rest of it is overwritten by the next item. So the array ends with room for a
 * whole item. */
static struct op_item *
new_items(struct arena *a, size_t n)
{
	return arena_alloc(a, n * sizeof(struct op_item) + (sizeof(struct settle_item) - sizeof(struct op_item)));
}

static _Thread_local struct json_habit habits[OP_VERBS];

/* Decodes the next item of the body, at s->n. again: of an array; NULL: the item is alone. */
static void
decode_item(struct flat_settle *s, struct json *r, struct json_again *again)
{
	const struct table *const t = &tables[s->verb];
	struct settle_item *const item = (void *)&s->items[s->n];
	const char *object;
	uint64_t given;

	zero_large(item, sizeof *item);
	item->op.time = t->time;
	(void)json_peek(r); /* json_fields checks its type */
	object = r->p;
	given = again ? json_fields_again(r, t->fields, t->n, JSON_STRICT, again, item)
		      : json_fields_habit(r, t->fields, t->n, JSON_STRICT, &habits[s->verb], item);
	check_given(r, object, given);
	check_times(r, &item->op);
	take_which(item, given);
	item->op.has_prio = s->verb == OP_NACK && (given & HAS_PRIORITY);
	s->steps[s->n] = item->step;
	s->n_with += flat_step_is(&item->step);
}

static void
decode_items(struct flat_settle *s, struct json *r)
{
	struct json_again again = { .habit = &habits[s->verb] };

	json_array(r);
	while (json_element(r)) {
		if (s->n == API_SETTLE_MAX)
			json_fail(r, SLU_EINVAL, r->p, "expected at most %d items",
				  API_SETTLE_MAX);
		else
			decode_item(s, r, &again);
		s->n += r->state != JSON_FAILED;
	}
	if (s->n == 0)
		json_fail(r, SLU_EINVAL, r->start, "expected at least one item");
}

int
flat_settle_decode(struct flat_settle *s, struct arena *a, struct slice body,
		   int64_t *index, struct slu_err *err)
{
	char *const room = arena_alloc(a, body.n);
	const size_t most = body.n / ITEM_BYTES + 1 < API_SETTLE_MAX ? body.n / ITEM_BYTES + 1 : API_SETTLE_MAX;
	struct json r;

	*index = -1;
	s->n = s->n_with = 0;
	json_init(&r, body, JSON_DEPTH);
	s->many = json_peek(&r) == JSON_ARRAY;
	s->items = new_items(a, most);
	s->steps = arena_array(a, most, sizeof *s->steps);
	if (!room || !s->items || !s->steps)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	json_room(&r, room, body.n);
	if (s->many) {
		decode_items(s, &r);
	} else {
		decode_item(s, &r, NULL);
		s->n = 1;
	}
	if (!json_end(&r, NULL))
		return 0;
	if (s->many && r.depth > 0)
		*index = s->n;
	return json_explain(&r, *index, err);
}

/* --- decode a batch ------------------------------------------------------------- */

static int
read_members(const struct table *t, struct arena *a, struct slice members, struct settle_item *item, struct slu_err *err)
{
	char *const room = arena_alloc(a, members.n);
	uint64_t given;
	struct json r;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	json_init(&r, members, JSON_DEPTH);
	json_room(&r, room, members.n);
	given = json_fields(&r, t->fields + N_WHICH, t->n - N_WHICH, JSON_STRICT, item); /* none is required */
	item->op.has_prio = t->fields == nack_fields && (given << N_WHICH & HAS_PRIORITY);
	check_times(&r, &item->op);
	if (flat_step_is(&item->step))
		json_fail(&r, SLU_EINVAL, NULL, "expected neither \"enqueue\" nor \"release\" in a batch");
	return json_end(&r, NULL) ? json_explain(&r, -1, err) : 0;
}

static int
decode_packed_item(struct flat_settle *s, struct arena *a, struct packed *b, struct slu_err *err)
{
	const struct table *const t = &tables[s->verb];
	struct settle_item item = { .op.time = t->time };
	struct packed_item in;
	int rc;

	rc = packed_settle_next(b, &in, err);
	if (!rc && in.members.n > 0)
		rc = read_members(t, a, in.members, &item, err);
	if (rc)
		return rc;
	item.op.space = in.queue->space.name;
	item.op.queue = in.queue->queue.name;
	item.op.id = le64_get(in.fixed + 8);
	item.op.token = le64_get(in.fixed + 16);
	item.op.token = token_of(&item, true);
	s->items[s->n++] = item.op;
	return 0;
}

int
flat_settle_decode_packed(struct flat_settle *s, struct arena *a, struct slice body, int64_t *index,
			  struct slu_err *err)
{
	struct packed b;
	size_t most;
	int rc;

	*index = -1;
	s->n = s->n_with = 0;
	s->many = true;
	rc = packed_open(&b, a, body, PACKED_SETTLE, API_SETTLE_MAX, err);
	if (rc)
		return rc;
	most = b.rest.n / PACKED_SETTLE_BYTES; /* a batch may promise more than it has */
	s->items = arena_array(a, most < b.n ? most + 1 : b.n, sizeof *s->items);
	if (!s->items)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	while (s->n < b.n && !rc)
		rc = decode_packed_item(s, a, &b, err);
	if (!rc)
		return packed_end(&b, err);
	*index = s->n;
	return rc;
}

/* --- encode ------------------------------------------------------------------- */

/* Writes the times that the outcome of the verb has. */
static void
write_good(enum op_verb verb, const struct op_item *item, struct json_out *w)
{
	if (verb == OP_EXTEND)
		json_out_time(w, "lease_expires_at", item->until);
	if (verb == OP_NACK)
		json_out_bool(w, "dead", item->died);
	if (verb == OP_NACK && !item->died)
		json_out_time(w, "deliver_after", item->until);
}

int
flat_settle_explain(const struct op_item *item, int rc, struct slu_err *err)
{
	const int code = value_id_failed((struct given_id){ item->id, item->rounded }, rc, err);

	if (code != rc)
		return code;
	if (rc == SLU_ENOTFOUND)
		return slu_fail(err, SLU_ENOTFOUND,
				"no such message; it may be finished");
	return slu_fail(err, (enum slu_code)rc, "%s", slu_err_row(rc)->text);
}

void
flat_settle_write(enum op_verb verb, const struct op_item *item, int rc, const char *text, struct json_out *w)
{
	flat_view_id(w, item->id);
	json_out_i64(w, "status", rc ? slu_err_row(rc)->flat_status : 200);
	if (rc)
		flat_write_error(w, rc, text);
	else
		write_good(verb, item, w);
}

static inline char *
put_text(char *p, struct slice text)
{
	return (char *)memcpy(p, text.p, text.n) + text.n;
}

/* An ack that succeeded, as flat_settle_write writes it. A batch has many of them, so it is written at once. */
static void
write_acked(uint64_t id, struct json_out *w)
{
	char text[ID_UUID_TEXT + DIGITS_ROOM + 40];
	char *p = put_text(text, SLICE("{\"id\":"));

	p = digits_put(p, id);
	p = put_text(p, SLICE(",\"uid\":\""));
	(void)id_to_uuid(id, p);
	p += ID_UUID_TEXT - 1;
	p = put_text(p, SLICE("\",\"status\":200}"));
	json_out_raw(w, NULL, (struct slice){ text, (size_t)(p - text) });
}

int
flat_settle_outcome(enum op_verb verb, const struct op_item *item, int rc,
		    struct json_out *w)
{
	struct slu_err err;

	if (!rc)
		rc = item->rc;
	if (!rc && verb == OP_ACK) {
		write_acked(item->id, w);
		return 0;
	}
	if (rc)
		rc = flat_settle_explain(item, rc, &err);
	json_out_object(w, NULL);
	flat_settle_write(verb, item, rc, rc ? err.text : "", w);
	json_out_close(w);
	return rc;
}

void
flat_settle_failed(struct call *c, uint32_t n)
{
	char text[16];

	if (n == 0)
		return;
	(void)snprintf(text, sizeof text, "%" PRIu32, n);   /* fits */
	(void)call_add(c, "Sluice-Failed", slice_of(text)); /* the body has the number, too */
}

/* --- the call ----------------------------------------------------------------- */

struct state {
	struct flat_settle s; /* first: flat_finish */
	struct split split;
	bool packed; /* answer with a batch */
};

static int
plan(struct apicall *a, struct state *s, struct slu_err *err)
{
	uint32_t *const shard = arena_array(&a->memory, s->s.n, sizeof *shard);

	if (!shard)
		return SLU_ENOMEM;
	for (uint32_t i = 0; i < s->s.n; i++) {
		if (s->s.items[i].queue.n == 0)
			return slu_fail(err, SLU_EINVAL,
					"item %u: with several shards, queue is required, or the receipt",
					i);
		shard[i] = broker_lane_of(a->api->broker, apicall_routes(a), s->s.items[i].space,
					  s->s.items[i].queue);
	}
	s->s.items = apicall_split(a, &s->split, shard, broker_lanes(a->api->broker), s->s.items,
				   s->s.n, sizeof *s->s.items);
	return s->s.items ? 0 : SLU_ENOMEM;
}

static void
make_ops(struct apicall *a, struct state *s)
{
	for (unsigned i = 0; i < a->n_ops; i++) {
		const struct split_part *const part = &s->split.parts[i];
		struct op_item *const items = s->s.items + part->begin;

		apicall_op(a, &a->ops[i], s->s.verb, items->space, items->queue);
		a->ops[i].items = items;
		a->ops[i].n_items = part->end - part->begin;
	}
}

/* The result of the op that contains the item at `place`. */
static int
rc_at(const struct apicall *a, const struct state *s, uint32_t place)
{
	unsigned i = 0;

	while (i + 1 < a->n_ops && a->ops[i + 1].items <= s->s.items + place)
		i++;
	return a->ops[i].rc;
}

/* The members of an outcome: an error, or the times of a nack or extend. An ack has none. */
static void
write_packed_members(enum op_verb verb, const struct op_item *item, int rc, const char *text, struct buf *out)
{
	struct json_out w;

	if (!rc && verb == OP_ACK)
		return;
	json_out_open(&w, out);
	if (rc)
		flat_write_error(&w, rc, text);
	else
		write_good(verb, item, &w);
	json_out_finish(&w);
}

int
flat_settle_packed_outcome(enum op_verb verb, const struct op_item *item, int rc, struct buf *out)
{
	const size_t at = out->n;
	char *const room = buf_add(out, PACKED_OUTCOME_BYTES);
	struct slu_err err;
	char *p;

	no_err(&err);
	if (!rc)
		rc = item->rc;
	if (rc)
		rc = flat_settle_explain(item, rc, &err);
	if (!room)
		return rc;
	write_packed_members(verb, item, rc, err.text, out);
	p = out->p + at; /* the buffer may have moved */
	le32_put(p, (uint32_t)(out->n - at - PACKED_OUTCOME_BYTES));
	le16_put(p + 4, (uint16_t)(rc ? slu_err_row(rc)->flat_status : 200));
	le16_put(p + 6, 0);
	le64_put(p + 8, item->id);
	return rc;
}

static void
answer_packed(struct apicall *a)
{
	const struct state *const s = a->state;
	uint32_t failed = 0;

	packed_write(&a->x->out, PACKED_OUTCOMES, s->s.n);
	for (uint32_t i = 0; i < s->s.n; i++) {
		const uint32_t place = s->split.place ? s->split.place[i] : i;

		failed += flat_settle_packed_outcome(s->s.verb, &s->s.items[place], rc_at(a, s, place), &a->x->out) != 0;
	}
	flat_settle_failed(call_of(a->x), failed);
	apicall_reply_as(a, 200, packed_type);
}

static void
answer_many(struct apicall *a)
{
	const struct state *const s = a->state;
	uint32_t failed = 0;
	struct json_out w;

	json_out_init(&w, &a->x->out);
	json_out_array(&w, NULL);
	for (uint32_t i = 0; i < s->s.n; i++) {
		const uint32_t place = s->split.place ? s->split.place[i] : i;

		failed += flat_settle_outcome(s->s.verb, &s->s.items[place], rc_at(a, s, place), &w) != 0;
	}
	json_out_close(&w);
	flat_settle_failed(call_of(a->x), failed);
	apicall_reply(a, 200);
}

static void
answer(struct apicall *a)
{
	const struct state *const s = a->state;
	struct slu_err err;
	struct json_out w;

	if (a->n_ops == 1 && a->ops->rc) {
		apicall_refuse_op(a, a->ops);
		return;
	}
	if (s->s.many) {
		if (s->packed)
			answer_packed(a);
		else
			answer_many(a);
		return;
	}
	if (s->s.items->rc) {
		(void)flat_settle_explain(s->s.items, s->s.items->rc, &err);
		apicall_refuse(a, err.code, err.text);
		return;
	}
	json_out_init(&w, &a->x->out);
	(void)flat_settle_outcome(s->s.verb, s->s.items, 0, &w); /* it succeeded */
	apicall_reply(a, 200);
}

static void
settle(struct apicall *a)
{
	const struct call *const c = call_of(a->x);
	struct state *const s = a->state;
	struct slu_err err;
	int64_t index;
	int rc;

	no_err(&err);
	s->s.verb = (enum op_verb)a->arg;
	s->packed = packed_is_accepted(c);
	rc = packed_is_sent(c) ? flat_settle_decode_packed(&s->s, &a->memory, c->body, &index, &err)
			       : flat_settle_decode(&s->s, &a->memory, c->body, &index, &err);
	if (!rc && s->s.n_with) {
		flat_finish(a, &s->s);
		return;
	}
	split_none(&s->split, s->s.n);
	if (!rc && broker_lanes(a->api->broker) > 1)
		rc = plan(a, s, &err);
	if (rc) {
		apicall_refuse_item(a, rc, err.text, index);
		return;
	}
	make_ops(a, s);
	apicall_run(a, answer);
}

const struct handler flat_ack = { settle, sizeof(struct state), .arg = OP_ACK };
const struct handler flat_nack = { settle, sizeof(struct state), .arg = OP_NACK };
const struct handler flat_extend = { settle, sizeof(struct state), .arg = OP_EXTEND };
