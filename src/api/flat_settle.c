#include "api/flat_settle.h"

#include "api/ask.h"
#include "api/flat_view.h"
#include "api/limits.h"
#include "api/split.h"
#include "api/values.h"

#include "base/json_out.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>

/* --- decode ------------------------------------------------------------------- */

struct item {
	struct op_item op;
	struct given_id id;
	struct receipt receipt;
	uint64_t lease_id;
};

#define FIELD(text, how, member, ...)                          \
	{                                                      \
		.name = { text, sizeof text - 1 },             \
		.read = json_read_##how,                       \
		.offset = offsetof(struct item, member),       \
		.size = sizeof(((struct item *)NULL)->member), \
		__VA_ARGS__                                    \
	}

/* Which message, and by whose right: the first rows of every table. The receipt says all
 * of it. */
/* clang-format off */
#define WHICH                                             \
	FIELD("id", id, id),                              \
	FIELD("namespace", name, op.space),               \
	FIELD("topic", name, op.queue, .also = { "queue", 5 }), \
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
	HAS_OTHERS = HAS_RECEIPT - 1 /* any of those before it */
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
	{ .name = { "result", 6 },
	  .read = read_result,
	  .offset = offsetof(struct item, op.text),
	  .size = sizeof(struct slice) },
};

/* The text of a failure never keeps a message from being given back: it is cut. */
static void
read_error(struct json *r, const struct json_field *f, void *place)
{
	struct slice *const text = place;

	json_read_text(r, f, place);
	*text = utf8_cut(*text, API_ERROR_MAX);
}

static const struct json_field nack_fields[] = {
	WHICH,
	{ .name = { "error", 5 },
	  .read = read_error,
	  .offset = offsetof(struct item, op.text),
	  .size = sizeof(struct slice) },
	FIELD("delay", span, op.time, .max = API_DELAY_MAX),
	FIELD("defer", bool, op.defer),
	FIELD("dead", bool, op.dead),
};

static const struct json_field extend_fields[] = {
	WHICH,
	FIELD("lease", span, op.time, .min = SLU_MS, .max = API_LEASE_MAX),
};

static const struct table {
	const struct json_field *fields;
	size_t n;
	slu_time time; /* of an item that says none */
} tables[OP_VERBS] = {
	[OP_ACK] = { ack_fields, sizeof ack_fields / sizeof ack_fields[0], 0 },
	[OP_NACK] = { nack_fields, sizeof nack_fields / sizeof nack_fields[0],
		      LEDGER_BY_POLICY },
	[OP_EXTEND] = { extend_fields, sizeof extend_fields / sizeof extend_fields[0], 0 },
};

/* The one right that both name, or one that no message has. */
static uint64_t
token_of(const struct item *item, bool has_token)
{
	if (has_token && item->op.token == 0)
		return VALUE_NO_LEASE; /* no lease has it */
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
take_which(struct item *item, uint64_t given)
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

static void
decode_item(struct json *r, const struct table *t, struct op_item *out)
{
	struct item item = { .op.time = t->time };
	const char *object;
	uint64_t given;

	(void)json_peek(r); /* its type is checked by json_fields */
	object = r->p;
	given = json_fields(r, t->fields, t->n, JSON_STRICT, &item);
	check_given(r, object, given);
	if (item.op.defer && item.op.dead)
		json_fail(r, SLU_EINVAL, NULL, "expected defer or dead, not both");
	take_which(&item, given);
	*out = item.op;
}

static void
decode_items(struct flat_settle *s, struct json *r)
{
	json_array(r);
	while (json_element(r)) {
		if (s->n == API_SETTLE_MAX)
			json_fail(r, SLU_EINVAL, r->p, "expected at most %d items",
				  API_SETTLE_MAX);
		else
			decode_item(r, &tables[s->verb], &s->items[s->n]);
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
	const size_t most = body.n / ITEM_BYTES + 1;
	struct json r;

	*index = -1;
	s->n = 0;
	json_init(&r, body, JSON_DEPTH);
	s->many = json_peek(&r) == JSON_ARRAY;
	s->items = arena_array(a, most < API_SETTLE_MAX ? most : API_SETTLE_MAX,
			       sizeof *s->items);
	if (!room || !s->items)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	json_room(&r, room, body.n);
	if (s->many) {
		decode_items(s, &r);
	} else {
		decode_item(&r, &tables[s->verb], s->items);
		s->n = 1;
	}
	if (!json_end(&r, NULL))
		return 0;
	if (s->many && r.depth > 0)
		*index = s->n;
	return json_explain(&r, *index, err);
}

/* --- encode ------------------------------------------------------------------- */

/* What is good to know besides: until when. */
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

/* Why an item was refused, for people. Returns its code. */
static int
explain(const struct op_item *item, int rc, struct slu_err *err)
{
	const int code = value_id_failed((struct given_id){ item->id, item->rounded }, rc, err);

	if (code != rc)
		return code;
	if (rc == SLU_ENOTFOUND)
		return slu_fail(err, SLU_ENOTFOUND,
				"no such message here; perhaps it was finished before");
	return slu_fail(err, (enum slu_code)rc, "%s", slu_err_row(rc)->text);
}

int
flat_settle_outcome(enum op_verb verb, const struct op_item *item, int rc,
		    struct json_out *w)
{
	struct slu_err err;

	if (!rc)
		rc = item->rc;
	if (rc)
		rc = explain(item, rc, &err);
	json_out_object(w, NULL);
	flat_view_id(w, item->id);
	json_out_i64(w, "status", rc ? slu_err_row(rc)->flat_status : 200);
	if (rc)
		api_write_error(w, rc, err.text);
	else
		write_good(verb, item, w);
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
	(void)call_add(c, "Sluice-Failed", slice_of(text)); /* the body tells it, too */
}

/* --- the call ----------------------------------------------------------------- */

struct state {
	struct flat_settle s;
	struct split split;
};

static int
plan(struct ask *a, struct state *s, struct slu_err *err)
{
	uint32_t *const shard = arena_array(&a->memory, s->s.n, sizeof *shard);

	if (!shard)
		return SLU_ENOMEM;
	for (uint32_t i = 0; i < s->s.n; i++) {
		if (s->s.items[i].queue.n == 0)
			return slu_fail(err, SLU_EINVAL,
					"item %u: topic or queue is required where there are several shards, or the receipt",
					i);
		shard[i] = broker_shard_of(a->api->broker, ask_routes(a), s->s.items[i].space,
					   s->s.items[i].queue);
	}
	s->s.items = ask_split(a, &s->split, shard, broker_shards(a->api->broker), s->s.items,
			       s->s.n, sizeof *s->s.items);
	return s->s.items ? 0 : SLU_ENOMEM;
}

static void
make_ops(struct ask *a, struct state *s)
{
	for (unsigned i = 0; i < a->n_ops; i++) {
		const struct split_part *const part = &s->split.parts[i];
		struct op_item *const items = s->s.items + part->begin;

		ask_op(a, &a->ops[i], s->s.verb, items->space, items->queue);
		a->ops[i].items = items;
		a->ops[i].n_items = part->end - part->begin;
	}
}

/* What became of the op that has the item at that place. */
static int
rc_at(const struct ask *a, const struct state *s, uint32_t place)
{
	unsigned i = 0;

	while (i + 1 < a->n_ops && a->ops[i + 1].items <= s->s.items + place)
		i++;
	return a->ops[i].rc;
}

static void
answer_many(struct ask *a)
{
	const struct state *const s = a->state;
	uint32_t failed = 0;
	struct json_out w;

	json_out_init(&w, &a->call->out);
	json_out_array(&w, NULL);
	for (uint32_t i = 0; i < s->s.n; i++) {
		const uint32_t place = s->split.place ? s->split.place[i] : i;

		failed += flat_settle_outcome(s->s.verb, &s->s.items[place], rc_at(a, s, place), &w) != 0;
	}
	json_out_close(&w);
	flat_settle_failed(a->call, failed);
	ask_reply(a, 200);
}

static void
answer(struct ask *a)
{
	const struct state *const s = a->state;
	struct slu_err err;
	struct json_out w;

	if (a->n_ops == 1 && a->ops->rc) {
		ask_refuse_op(a, a->ops);
		return;
	}
	if (s->s.many) {
		answer_many(a);
		return;
	}
	if (s->s.items->rc) {
		(void)explain(s->s.items, s->s.items->rc, &err);
		ask_refuse(a, err.code, err.text);
		return;
	}
	json_out_init(&w, &a->call->out);
	(void)flat_settle_outcome(s->s.verb, s->s.items, 0, &w); /* it is good */
	ask_reply(a, 200);
}

static void
settle(struct call *c, struct api *api, enum op_verb verb)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;
	struct slu_err err = { 0 };
	int64_t index;
	int rc;

	if (!s)
		return;
	s->s.verb = verb;
	rc = flat_settle_decode(&s->s, &a->memory, c->body, &index, &err);
	split_none(&s->split, s->s.n);
	if (!rc && broker_shards(api->broker) > 1)
		rc = plan(a, s, &err);
	if (rc) {
		ask_refuse_item(a, rc, err.text, index);
		return;
	}
	make_ops(a, s);
	ask_run(a, answer);
}

void
flat_ack(struct call *c, void *api)
{
	settle(c, api, OP_ACK);
}

void
flat_nack(struct call *c, void *api)
{
	settle(c, api, OP_NACK);
}

void
flat_extend(struct call *c, void *api)
{
	settle(c, api, OP_EXTEND);
}
