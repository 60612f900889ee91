/*
 * embed_settle.c - the holder of a message acks, nacks or extends it, and begins others.
 */
#include "embed/embed.h"

#include "base/json/json.h"
#include "base/need.h"
#include "base/sized.h"
#include "engine/payload.h"

#include <inttypes.h>

/* ---- The message alone ---- */

static int
settle(struct slu_broker *b, enum op_verb verb, struct op_item *item, struct slu_err *err)
{
	struct embed_call c;
	int rc;

	rc = embed_begin(b, &c, verb, NULL, err);
	if (rc)
		return rc;
	c.op.items = item;
	c.op.n_items = 1;
	rc = embed_run(b, &c, err);
	if (!rc && item->rc)
		rc = slu_fail(err, (enum slu_code)item->rc, "message %" PRIu64 ": %s", item->id,
			      slu_err_row(item->rc)->text);
	embed_end(b, &c);
	return rc;
}

int
slu_ack(struct slu_broker *b, const struct slu_message *m, const void *result, size_t size,
	struct slu_err *err)
{
	NEED2(b, m, err);

	struct op_item item = {
		.id = m->id,
		.token = m->token,
		.text = { result, result ? size : 0 },
	};

	if (need_bytes(result, size, "result", err))
		return SLU_EINVAL;
	return settle(b, OP_ACK, &item, err);
}

static int
read_hold(const struct slu_nack_options *o, struct op_item *item, struct slu_err *err)
{
	static const char *const scopes[] = { "queue", "share", "key", "attribute" };

	if (!o->retry_after && !o->scope)
		return 0;
	for (unsigned i = 0; o->scope && i < COUNT(scopes); i++)
		if (strcmp(o->scope, scopes[i]) == 0)
			item->scope = (uint8_t)(i + 1);
	item->hold = o->retry_after;
	if (!item->scope)
		return slu_fail(err, SLU_EINVAL, "invalid scope: %s; expected key, share, attribute or queue", o->scope ? o->scope : "none");
	return item->hold > 0 ? 0 : slu_fail(err, SLU_EINVAL, "invalid retry_after; expected more than 0");
}

static int
read_nack(const struct slu_nack_options *o, struct op_item *item, struct slu_err *err)
{
	item->time = o->has_delay ? o->delay : LEDGER_BY_POLICY;
	item->defer = o->defer;
	item->has_prio = o->has_priority;
	item->prio = o->priority;
	item->dead = o->dead;
	if (o->has_delay && need_time(o->delay, "delay", err))
		return SLU_EINVAL;
	if (o->error)
		item->text = slice_of(o->error);
	if (o->reason)
		item->reason = slice_of(o->reason);
	return read_hold(o, item, err);
}

int
slu_nack(struct slu_broker *b, const struct slu_message *m,
	 const struct slu_nack_options *options, struct slu_err *err)
{
	NEED2(b, m, err);

	struct slu_nack_options room;
	const struct slu_nack_options *o = SIZED(slu_nack_options, options, &room, err);
	struct op_item item = { .id = m->id, .token = m->token };

	if (!o || read_nack(o, &item, err))
		return SLU_EINVAL;
	return settle(b, OP_NACK, &item, err);
}

static int
extend(struct slu_broker *b, struct slu_message *m, slu_time lease, struct slice checkpoint, struct slu_err *err)
{
	struct op_item item = { .id = m->id, .token = m->token, .time = lease, .text = checkpoint };
	int rc;

	if (need_lease(lease, "lease", err))
		return SLU_EINVAL;
	rc = settle(b, OP_EXTEND, &item, err);
	if (!rc)
		m->lease_until = item.until;
	return rc;
}

int
slu_extend(struct slu_broker *b, struct slu_message *m, slu_time lease, struct slu_err *err)
{
	NEED2(b, m, err);

	return extend(b, m, lease, (struct slice){ 0 }, err);
}

int
slu_checkpoint(struct slu_broker *b, struct slu_message *m, slu_time lease, const char *checkpoint, struct slu_err *err)
{
	NEED3(b, m, checkpoint, err);

	const struct slice text = slice_of(checkpoint);

	if (text.n > OP_CHECKPOINT_MAX)
		return slu_fail(err, SLU_ETOOBIG, "a checkpoint of %zu bytes; expected at most %d", text.n, OP_CHECKPOINT_MAX);
	if (json_check(text, JSON_NONE, JSON_DEPTH - 2, "checkpoint", err))
		return SLU_EINVAL;
	return extend(b, m, lease, text, err);
}

/* ---- Others begin ---- */

static int
read_finish(const struct slu_finish_options *o, struct op_item *item, struct slu_err *err)
{
	struct slu_nack_options room;
	const struct slu_nack_options *nack;

	item->text = (struct slice){ o->result, o->result ? o->result_size : 0 };
	if (need_bytes(o->result, o->result_size, "result", err))
		return SLU_EINVAL;
	if (!o->nack)
		return 0;
	if (o->result)
		return slu_fail(err, SLU_EINVAL, "invalid result; expected none with a nack");
	nack = SIZED(slu_nack_options, o->nack, &room, err);
	item->nack = true;
	return nack ? read_nack(nack, item, err) : SLU_EINVAL;
}

static int
fill_children(struct slu_broker *b, struct embed_call *c, const struct slu_put *puts, struct arena *a, struct slu_err *err)
{
	const struct engine *const e = broker_engine_of(b->broker, NULL, c->op.space, c->op.queue);
	int rc = 0;

	for (uint32_t i = 0; i < c->op.n_puts && !rc; i++) {
		rc = embed_fill(b, c, &puts[i], a, &c->op.puts[i], err);
		if (!rc && puts[i].batch)
			rc = slu_fail(err, SLU_EINVAL, "invalid batch; expected no members of a batch with an ack");
		if (!rc && payload_is_large(e, puts[i].size))
			rc = slu_fail(err, SLU_ETOOBIG, "a payload of %zu bytes; expected at most 1 MiB with an ack", puts[i].size);
	}
	return rc;
}

static int
finish(struct slu_broker *b, struct embed_call *c, const struct slu_finish_options *o, struct slu_err *err)
{
	struct arena memory = { 0 };
	struct sized_array a;
	int rc = sized_array(&a, o->puts, o->n, sizeof *o->puts, "slu_put", err);

	c->op.puts = arena_array(&memory, o->n, sizeof *c->op.puts);
	c->op.n_puts = (uint32_t)o->n;
	if (!rc && !c->op.puts)
		rc = slu_fail(err, SLU_ENOMEM, "no memory for %zu messages", o->n);
	if (!rc)
		rc = fill_children(b, c, a.items, &memory, err);
	if (!rc)
		rc = embed_run(b, c, err);
	if (!rc) {
		embed_answer(&c->op, a.items);
		sized_array_answer(&a, o->puts, o->n, sizeof *o->puts);
	}
	sized_array_release(&a);
	arena_release(&memory);
	return rc;
}

int
slu_finish(struct slu_broker *b, const struct slu_message *m, const struct slu_finish_options *options, struct slu_err *err)
{
	NEED2(b, m, err);

	struct slu_finish_options room;
	const struct slu_finish_options *o = SIZED(slu_finish_options, options, &room, err);
	struct op_item item = { .id = m->id, .token = m->token };
	struct embed_call c;
	int rc;

	if (!o || read_finish(o, &item, err))
		return SLU_EINVAL;
	if (o->n == 0)
		return settle(b, item.nack ? OP_NACK : OP_ACK, &item, err);
	if (!o->puts || o->n > UINT32_MAX || !embed_queue_of(m).n)
		return slu_fail(err, SLU_EINVAL, "invalid puts or message; expected n messages, and a message that is not released");
	rc = embed_begin(b, &c, OP_FINISH, NULL, err);
	if (rc)
		return rc;
	c.op.queue = embed_queue_of(m);
	c.op.items = &item;
	c.op.n_items = 1;
	rc = finish(b, &c, o, err);
	embed_end(b, &c);
	return rc;
}
