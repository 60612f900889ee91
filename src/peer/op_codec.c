#include "peer/op_codec_private.h"

#include "base/mem.h"

static void
put_head(struct codec *c)
{
	buf_putc(c->out, OP_CODEC_VERSION);
	buf_putc(c->out, (char)op_wire[c->op->verb]);
	op_put_fields(c, op_fields, n_op_fields, c->op);
}

static int
get_head(struct slice *message, enum op_verb *verb, struct slu_err *err)
{
	const uint8_t *const head = (const uint8_t *)message->p;

	if (message->n < 2 || message->n > OP_CODEC_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid length of a message from another node: %zu", message->n);
	if (head[0] != OP_CODEC_VERSION)
		return slu_fail(err, SLU_EINVAL, "version %u of a message from another node; expected %d", head[0],
				OP_CODEC_VERSION);
	for (unsigned v = 0; v < OP_VERBS; v++) {
		if (!op_wire[v] || op_wire[v] != head[1])
			continue;
		*verb = (enum op_verb)v;
		slice_skip(message, 2);
		return 0;
	}
	return slu_fail(err, SLU_EINVAL, "unknown verb %u of a message from another node", head[1]);
}

static bool
file_travels(const struct message *m)
{
	struct engine *const e = m->keeper;

	return !m->file || (e && e->ops->away && e->ops->away->travels(e, m));
}

bool
op_travels(const struct op *op)
{
	for (uint32_t i = 0; i < op->n_puts; i++)
		if (!file_travels(&op->puts[i].m))
			return false;
	return op_wire[op->verb] && op->n_puts <= OP_CODEC_LIST && op->n_items <= OP_CODEC_LIST &&
	       op->max_rows <= OP_CODEC_LIST && op->max_queues <= OP_CODEC_LIST && op->max_keys <= OP_CODEC_LIST &&
	       op->max_uses <= OP_CODEC_LIST && op->max_steps <= OP_CODEC_LIST;
}

void
op_encode_question(const struct op *op, struct buf *out)
{
	struct codec c = { .op = op, .verb = 1ull << op->verb, .out = out };

	put_head(&c);
}

/* Room for the answer. STATS answers with one queue. */
static int
make_room(struct op *op, struct slu_err *err)
{
	const bool rows = op->max_rows > 0;

	if (op->verb == OP_STATS && op->max_queues == 0)
		op->max_queues = 1;
	if (op->max_rows > OP_CODEC_LIST || op->max_queues > OP_CODEC_LIST || op->max_keys > OP_CODEC_LIST ||
	    op->max_uses > OP_CODEC_LIST || op->max_steps > OP_CODEC_LIST)
		return slu_fail(err, SLU_EINVAL, "invalid room for an answer; expected at most %d rows", OP_CODEC_LIST);
	if (rows)
		op->rows = mem_array(op->max_rows, sizeof *op->rows);
	if (op->max_queues)
		op->queues = mem_array(op->max_queues, sizeof *op->queues);
	if (op->max_keys)
		op->keys = mem_array(op->max_keys, sizeof *op->keys);
	if (op->max_uses)
		op->uses = mem_array(op->max_uses, sizeof *op->uses);
	if (op->max_steps)
		op->steps = mem_array(op->max_steps, sizeof *op->steps);
	if ((rows && !op->rows) || (op->max_queues && !op->queues) || (op->max_keys && !op->keys) ||
	    (op->max_uses && !op->uses) || (op->max_steps && !op->steps))
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	return 0;
}

int
op_decode_question(struct op *op, struct slice message, struct slu_err *err)
{
	enum op_verb verb = OP_ENQUEUE;
	int rc = get_head(&message, &verb, err);

	memset(op, 0, sizeof *op);
	if (rc)
		return rc;
	op_init(op, verb, (struct slice){ 0 }, (struct slice){ 0 }, NULL, NULL);
	rc = op_get_fields(&(struct codec){ .into = op, .verb = 1ull << verb, .w = { .rest = message }, .err = err },
			   op_fields, n_op_fields, op, false);
	if (!rc)
		rc = make_room(op, err);
	if (rc)
		op_release_question(op);
	return rc;
}

void
op_release_question(struct op *op)
{
	if (op->engine)
		op_unpin(op);
	mem_free(op->puts);
	mem_free(op->items);
	mem_free(op->rows);
	mem_free(op->queues);
	mem_free(op->keys);
	mem_free(op->uses);
	mem_free(op->steps);
	if (op_is_of(op->verb, OP_OF_LOCK))
		mem_free(op->lock.held_by);
	memset(op, 0, sizeof *op);
}

int
op_encode_answer(const struct op *op, bool may_block, struct buf *out)
{
	const size_t before = out->n;
	struct codec c = { .op = op, .verb = 1ull << op->verb, .answer = true, .out = out, .may_block = may_block };

	put_head(&c);
	if (c.rc)
		out->n = before;
	return c.rc;
}

/* The fields of a question that the answer sets. Questions of verbs that change something, and lists, are left out:
 * they are not sent again. */
struct asked {
	uint64_t id;
	uint64_t cursor;
	union {
		struct op_lock lock;
		struct policy policy;
	};
};

static struct asked
asked_of(const struct op *op)
{
	struct asked a = { .id = op->id, .cursor = op->cursor };

	if (op_is_of(op->verb, OP_OF_LOCK))
		a.lock = op->lock;
	else if (op_is_of(op->verb, OP_OF_POLICY))
		a.policy = op->policy;
	return a;
}

/* CODEC-6. Nothing is pinned. */
static void
ask_again(struct op *op, const struct asked *a)
{
	op->id = a->id;
	op->cursor = a->cursor;
	if (op_is_of(op->verb, OP_OF_LOCK))
		op->lock = a->lock;
	else if (op_is_of(op->verb, OP_OF_POLICY))
		op->policy = a->policy;
	op->rc = 0;
	op->err = (struct slu_err){ 0 };
}

int
op_decode_answer(struct op *op, struct peer_bytes *message, struct engine *lane, struct slu_err *err)
{
	const struct asked asked = asked_of(op);
	struct slice rest = { message->p, message->n };
	enum op_verb verb = OP_ENQUEUE;
	struct codec c = { .into = op, .verb = 1ull << op->verb, .answer = true, .message = message, .lane = lane, .err = err };
	int rc = get_head(&rest, &verb, err);

	op->n_rows = op->verb == OP_RETURN ? op->n_rows : 0;
	op->n_queues = op->n_keys = op->n_uses = op->n_steps = 0;
	op->engine = &peer_engine;
	if (!rc && verb != op->verb)
		rc = slu_fail(err, SLU_EINVAL, "malformed answer from another node: expected %s, not %s", op_verb_name(op->verb),
			      op_verb_name(verb));
	c.w.rest = rest;
	if (!rc)
		rc = op_get_fields(&c, op_fields, n_op_fields, op, false);
	if (rc && op->verb != OP_RETURN)
		op_drop_rows(op);
	if (rc)
		ask_again(op, &asked);
	op->err.code = (enum slu_code)op->rc;
	return rc;
}
