/*
 * finish.c - /ack and /nack with `enqueue` or `release`: the message ends, others begin, and a lock key becomes free, in one step.
 *
 *      {"receipt":"AQiBAAB...", "enqueue":[{"namespace":"shop","queue":"mail","text":"thanks"}]}
 *      {"id":1234567890, "uid":"...", "status":200, "enqueued":[{"id":..., "uid":"...", "duplicate":false}]}
 *
 * Each item of the call is an op: OP_FINISH with one of them, OP_ACK or OP_NACK without. Items are independent of each other.
 */
#include "api/flat/settle.h"

#include "api/flat/enqueue.h"
#include "api/handler.h"
#include "api/limits.h"
#include "api/lockd/id.h"
#include "core/names.h"
#include "engine/payload.h"

#include <stdio.h>

/* ---- The question ---- */

/* The file of a large payload would have to be stored before: such a message is enqueued by /enqueue. */
static int
check_sizes(struct apicall *a, const struct form_puts *e, struct slu_err *err)
{
	for (uint32_t i = 0; i < e->n; i++) {
		const struct message *const m = &e->puts[i].m;

		if (m->terms.batch)
			return slu_fail(err, SLU_EINVAL, "item %u: batch: members of a batch are enqueued by /enqueue, not with an ack", i);
		if (payload_is_large(broker_engine_of(a->api->broker, apicall_routes(a), m->space, m->queue), m->payload.n))
			return slu_fail(err, SLU_ETOOBIG, "item %u: a payload of %zu bytes; expected at most 1 MiB with an ack",
					i, m->payload.n);
	}
	return 0;
}

static int
decode_children(struct apicall *a, struct slice text, struct op *op, struct slu_err *err)
{
	struct form_puts e = { 0 };
	struct slu_err why = { 0 };
	int64_t index;
	int rc = form_puts_decode(&e, &a->memory, text, &index, &why);

	if (!rc)
		rc = check_sizes(a, &e, &why);
	if (rc)
		return slu_fail(err, (enum slu_code)rc, "enqueue: %.200s", why.text);
	op->puts = e.puts;
	op->n_puts = e.n;
	return 0;
}

struct release {
	struct slice key, lease_id, txn_id, state;
	uint64_t fence;
};

static void
read_state(struct json *r, const struct json_field *f, void *place)
{
	json_read_raw(r, f, place);
	if (((struct slice *)place)->n > API_RESULT_MAX)
		json_fail(r, SLU_EINVAL, NULL, "expected at most %d bytes", API_RESULT_MAX);
}

static const struct json_field release_fields[] = {
	JSON_ROW("key", json_read_text, struct release, key),
	JSON_ROW("lease_id", json_read_text, struct release, lease_id),
	JSON_ROW("txn_id", json_read_text, struct release, txn_id),
	JSON_ROW("fencing_token", json_read_u64, struct release, fence, .min = 1, .max = INT64_MAX),
	JSON_ROW("state", read_state, struct release, state),
};

/* The ids of the answer to /v1/acquire. */
static int
read_lease(const struct release *r, struct op_unlock *out, struct slu_err *err)
{
	struct lockd_xid txn;

	if (!lockd_xid_parse(r->txn_id, &txn))
		return slu_fail(err, SLU_EINVAL, "release: invalid txn_id: %.*s; expected that of the acquire", (int)r->txn_id.n, r->txn_id.p);
	memcpy(out->txn, txn.b, LOCK_TXN);
	out->token = lockd_lease_token(r->lease_id);
	out->fence = r->fence;
	return 0;
}

static int
decode_release(struct apicall *a, struct slice text, struct op_unlock *out, struct slu_err *err)
{
	char *const room = arena_alloc(&a->memory, text.n), *const key = arena_alloc(&a->memory, NAME_TEXT);
	struct release given = { 0 };
	struct slu_err why;
	struct json r;

	if (!room || !key)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	json_init(&r, text, JSON_DEPTH);
	json_room(&r, room, text.n);
	(void)json_fields(&r, release_fields, COUNT(release_fields), JSON_STRICT, &given);
	if (json_end(&r, &why))
		return slu_fail(err, SLU_EINVAL, "release: %.200s", why.text);
	if (lock_key_fold(given.key, "key", key, &why))
		return slu_fail(err, SLU_EINVAL, "release: %.200s", why.text);
	out->key = slice_of(key);
	out->state = given.state;
	return read_lease(&given, out, err);
}

static int
decode_step(struct apicall *a, const struct flat_step *step, struct op *op, struct slu_err *err)
{
	int rc = step->enqueue.n ? decode_children(a, step->enqueue, op, err) : 0;

	if (!rc && step->release.n)
		rc = decode_release(a, step->release, &op->unlock, err);
	return rc;
}

static int
make_op(struct apicall *a, struct flat_settle *s, uint32_t i, struct slu_err *err)
{
	struct op_item *const item = &s->items[i];
	const bool with = flat_step_is(&s->steps[i]);
	struct op *const op = &a->ops[i];

	apicall_op(a, op, with ? OP_FINISH : s->verb, item->space, item->queue);
	op->items = item;
	op->n_items = 1;
	item->nack = s->verb == OP_NACK;
	if (item->queue.n == 0 && (with || broker_lanes(a->api->broker) > 1))
		return slu_fail(err, SLU_EINVAL, "with enqueue, release or several shards, queue is required, or the receipt");
	return with ? decode_step(a, &s->steps[i], op, err) : 0;
}

/* ---- The answer ---- */

static void
write_ids(const struct op *op, struct json_out *w)
{
	const struct form_puts e = { .puts = op->puts, .n = op->n_puts };

	json_out_array(w, "enqueued");
	flat_enqueue_ids(&e, NULL, FLAT_DETAIL, NULL, w);
	json_out_close(w);
}

/* The code of item i, and its text in err. */
static int
outcome(const struct op *op, struct slu_err *err)
{
	const struct op_item *const item = op->items;
	const int rc = op->rc ? op->rc : item->rc;

	*err = (struct slu_err){ 0 };
	if (op->verb == OP_FINISH && rc && rc != SLU_ENOTFOUND)
		*err = apicall_err_of(op);
	else if (rc)
		(void)flat_settle_explain(item, rc, err);
	return (int)err->code;
}

static void
write_outcome(const struct flat_settle *s, const struct op *op, int rc, const struct slu_err *err, struct json_out *w)
{
	json_out_object(w, NULL);
	flat_settle_write(s->verb, op->items, rc, err->text, w);
	if (!rc && op->n_puts)
		write_ids(op, w);
	json_out_close(w);
}

static void
answer(struct apicall *a)
{
	const struct flat_settle *const s = a->state;
	uint32_t failed = 0;
	struct slu_err err;
	struct json_out w;

	if (!s->many && outcome(a->ops, &err)) {
		apicall_refuse_err(a, &err, -1);
		return;
	}
	json_out_init(&w, &a->x->out);
	if (s->many)
		json_out_array(&w, NULL);
	for (uint32_t i = 0; i < s->n; i++) {
		const int rc = outcome(&a->ops[i], &err);

		failed += rc != 0;
		write_outcome(s, &a->ops[i], rc, &err, &w);
	}
	if (s->many)
		json_out_close(&w);
	flat_settle_failed(call_of(a->x), failed);
	apicall_reply(a, 200);
}

void
flat_finish(struct apicall *a, struct flat_settle *s)
{
	struct slu_err err = { 0 };
	uint32_t i = 0;
	int rc = 0;

	a->n_ops = s->n;
	if (s->n > 1)
		a->ops = arena_array(&a->memory, s->n, sizeof *a->ops);
	if (!a->ops) {
		a->ops = &a->op;
		a->n_ops = 1;
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	while (!rc && i < s->n)
		rc = make_op(a, s, i++, &err);
	if (rc)
		apicall_refuse_item(a, rc, err.text, s->many ? (int64_t)i - 1 : -1);
	else
		apicall_run(a, answer);
}
