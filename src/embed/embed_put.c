/*
 * embed_put.c - messages of a user's program into a queue.
 */
#include "embed/embed.h"

#include "base/json/json.h"
#include "base/mem.h"
#include "base/need.h"
#include "base/sized.h"
#include "engine/msgbatch.h"
#include "engine/payload.h"
#include "form/values.h"

enum {
	READ_SIZE = 64 << 10 /* bytes of one call of slu_read_fn */
};

/* ---- One message ---- */

static struct slice
maybe(const char *s)
{
	return s ? slice_of(s) : (struct slice){ 0 };
}

static int
check_texts(const struct message *m, struct slu_err *err)
{
	int rc = 0;

	if (m->key.p)
		rc = key_check(m->key, "key", err);
	if (!rc && m->share.p && !kind_is(m->share))
		rc = share_check(m->share, "share", err);
	if (!rc && m->idem.p)
		rc = key_check(m->idem, "idempotency key", err);
	if (!rc && m->correlation.p)
		rc = correlation_check(m->correlation, "correlation id", err);
	if (!rc && m->attributes.p) /* at most as deep as an answer of the server can nest it */
		rc = json_check(m->attributes, JSON_OBJECT, JSON_DEPTH - 2, "attributes", err);
	return rc ? rc : message_check(m, err);
}

static int
check_put(const struct slu_put *in, struct slu_err *err)
{
	int rc = need_time(in->delay, "delay", err);

	rc = rc ? rc : need_time(in->due, "due", err);
	rc = rc ? rc : need_time(in->ttl, "ttl", err);
	rc = rc ? rc : need_time(in->keep_result, "keep_result", err);
	rc = rc ? rc : need_time(in->lease, "lease", err);
	rc = rc ? rc : need_time(in->max_runtime, "max_runtime", err);
	rc = rc ? rc : need_time(in->deadline, "deadline", err);
	rc = rc ? rc : need_time(in->unique_for, "unique_for", err);
	if (!rc && in->unique && !in->idempotency)
		rc = slu_fail(err, SLU_EINVAL, "a unique message needs an idempotency key");
	if (!rc && in->kind && in->share)
		rc = slu_fail(err, SLU_EINVAL, "a message has a share or a kind; expected one of them");
	if (!rc && in->kind)
		rc = kind_check(slice_of(in->kind), "kind", err);
	rc = rc ? rc : need_bytes(in->payload, in->size, "payload", err);
	if (rc)
		return rc;
	if (in->max_attempts > UINT16_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid max_attempts: %u; expected at most %u",
				in->max_attempts, UINT16_MAX);
	return 0;
}

/* The texts of a put that do not come from the caller, in the arena. */
static int
fill_names(const struct slu_broker *b, const struct slu_put *in, struct arena *a, struct op_put *out, struct slu_err *err)
{
	char folded[NAME_TEXT];

	if (in->queue) {
		if (name_fold(slice_of(in->queue), "queue", folded, err))
			return SLU_EINVAL;
		out->m.queue = arena_copy(a, slice_of(folded));
		out->as = (struct spelling){ slice_of(b->space_as), slice_of(in->queue) };
		if (!out->m.queue.n)
			return slu_fail(err, SLU_ENOMEM, "no memory for the name of a queue");
	}
	return in->kind ? value_kind(a, slice_of(in->kind), &out->m.share, err) : 0;
}

static int
fill_put(const struct slu_broker *b, const struct embed_call *c, const struct slu_put *in, struct arena *a,
	 struct op_put *out, struct slu_err *err)
{
	int rc = check_put(in, err);

	*out = (struct op_put){
		.m = {
			.space = c->op.space,
			.queue = c->op.queue,
			.key = maybe(in->key),
			.share = maybe(in->share),
			.idem = maybe(in->idempotency),
			.correlation = maybe(in->correlation),
			.type = maybe(in->content_type),
			.attributes = maybe(in->attributes),
			.payload = { in->payload, in->size },
			.payload_size = in->size,
			.prio = in->priority,
			.due = in->due,
			.keep = in->keep_result,
			.max_attempts = (uint16_t)in->max_attempts,
			.terms = { .lease = in->lease, .run = in->max_runtime, .unique = (uint64_t)in->unique, .unique_for = in->unique_for, .batch = in->batch },
		},
		.delay = in->delay,
		.ttl = in->ttl,
		.deadline = in->deadline,
		.replace = in->replace,
	};
	if (in->retry)
		terms_set_retry(&out->m.terms, in->retry);
	if (!rc)
		rc = fill_names(b, in, a, out, err);
	return rc ? rc : check_texts(&out->m, err);
}

int
embed_fill(struct slu_broker *b, const struct embed_call *c, const struct slu_put *in, struct arena *a, struct op_put *out,
	   struct slu_err *err)
{
	const int rc = fill_put(b, c, in, a, out, err);

	if (rc || !in->read)
		return rc;
	return slu_fail(err, SLU_EINVAL, "invalid read; expected a payload in memory here");
}

static int
read_all(const struct slu_put *in, struct payload *p, struct slu_err *err)
{
	char *room = mem_alloc(READ_SIZE);
	int64_t n = 0;
	int rc = 0;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "no memory for a payload");
	while (!rc && (n = in->read(in->read_arg, room, READ_SIZE)) > 0)
		rc = payload_write(p, room, n < READ_SIZE ? (size_t)n : READ_SIZE, err);
	mem_free(room);
	if (!rc && n < 0)
		rc = slu_fail(err, SLU_EINVAL, "the payload could not be read");
	return rc;
}

/* Stores a large payload with the engine before its message is enqueued. */
static int
store(struct engine *e, const struct slu_put *in, struct message *m, struct payload **out,
      struct slu_err *err)
{
	int rc;

	if (!in->read)
		return payload_store(e, m, out, err);
	rc = payload_open(e, out, err);
	if (!rc)
		rc = read_all(in, *out, err);
	return rc ? rc : payload_seal(*out, m, err);
}

static int
store_all(struct slu_broker *b, struct embed_call *c, const struct slu_put *puts,
	  struct payload **stored, struct slu_err *err)
{
	struct engine *e = broker_engine_of(b->broker, NULL, c->op.space, c->op.queue);
	int rc = 0;

	for (uint32_t i = 0; !rc && i < c->op.n_puts; i++)
		if (puts[i].read || payload_is_large(e, puts[i].size))
			rc = store(e, &puts[i], &c->op.puts[i].m, &stored[i], err);
	return rc;
}

static bool
has_large(struct slu_broker *b, const struct embed_call *c, const struct slu_put *puts)
{
	const struct engine *e = broker_engine_of(b->broker, NULL, c->op.space, c->op.queue);

	for (uint32_t i = 0; i < c->op.n_puts; i++)
		if (puts[i].read || payload_is_large(e, puts[i].size))
			return true;
	return false;
}

static int
run_large(struct slu_broker *b, struct embed_call *c, const struct slu_put *puts,
	  struct slu_err *err)
{
	struct payload **stored = mem_array(c->op.n_puts, sizeof(struct payload *));
	int rc;

	if (!stored)
		return slu_fail(err, SLU_ENOMEM, "no memory for payloads");
	rc = store_all(b, c, puts, stored, err);
	if (!rc)
		rc = embed_run(b, c, err);
	for (uint32_t i = 0; i < c->op.n_puts; i++)
		payload_close(stored[i]);
	mem_free(stored);
	return rc;
}

/* Members of a batch join on its shard: all puts, or none. */
static int
join_batch(struct embed_call *c, struct op_item *batch, bool large, struct slu_err *err)
{
	struct op *const op = &c->op;

	for (uint32_t i = 0; i < op->n_puts; i++)
		if (op->puts[i].m.terms.batch != op->puts[0].m.terms.batch || op->puts[i].replace)
			return slu_fail(err, SLU_EINVAL, "invalid batch; expected the same in all messages of a call, and no replace");
	if (large)
		return slu_fail(err, SLU_ETOOBIG, "a member of a batch is too large; expected at most 1 MiB");
	*batch = (struct op_item){ .id = op->puts[0].m.terms.batch };
	op_make_finish(op);
	op->queue = SLICE(MSGBATCH_QUEUE);
	op->items = batch;
	op->n_items = 1;
	return 0;
}

static bool
has_batch(const struct embed_call *c)
{
	for (uint32_t i = 0; i < c->op.n_puts; i++)
		if (c->op.puts[i].m.terms.batch)
			return true;
	return false;
}

void
embed_answer(const struct op *op, struct slu_put *puts)
{
	for (uint32_t i = 0; i < op->n_puts; i++) {
		puts[i].id = op->puts[i].m.id;
		puts[i].existed = op->puts[i].existed;
		puts[i].replaced = op->puts[i].replaced;
	}
}

static int
enqueue(struct slu_broker *b, struct embed_call *c, struct slu_put *puts, struct arena *a,
	struct slu_err *err)
{
	struct op_item batch;
	bool large;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < c->op.n_puts; i++)
		rc = fill_put(b, c, &puts[i], a, &c->op.puts[i], err);
	if (rc)
		return rc;
	large = has_large(b, c, puts);
	if (has_batch(c))
		rc = join_batch(c, &batch, large, err);
	if (!rc)
		rc = large ? run_large(b, c, puts, err) : embed_run(b, c, err);
	if (!rc)
		embed_answer(&c->op, puts);
	return rc;
}

static int
enqueue_sized(struct slu_broker *b, struct embed_call *c, struct slu_put *puts,
	      struct slu_err *err)
{
	struct arena memory = { 0 };
	struct sized_array a;
	int rc = sized_array(&a, puts, c->op.n_puts, sizeof *puts, "slu_put", err);

	if (!rc)
		rc = enqueue(b, c, a.items, &memory, err);
	if (!rc)
		sized_array_answer(&a, puts, c->op.n_puts, sizeof *puts);
	sized_array_release(&a);
	arena_release(&memory);
	return rc;
}

int
slu_enqueue(struct slu_broker *b, const char *queue, struct slu_put *puts, size_t n,
	    struct slu_err *err)
{
	NEED3(b, queue, puts, err);

	struct op_put one, *many = &one;
	struct embed_call c;
	int rc;

	if (n == 0)
		return slu_fail(err, SLU_EINVAL, "no message to enqueue; expected 1 or more");
	if (n > UINT32_MAX)
		return slu_fail(err, SLU_ETOOBIG, "too many messages in one call: %zu; expected at most %u", n, UINT32_MAX);
	if (n > 1)
		many = mem_array(n, sizeof *many);
	if (!many)
		return slu_fail(err, SLU_ENOMEM, "no memory for %zu messages", n);
	rc = embed_begin(b, &c, OP_ENQUEUE, queue, err);
	if (!rc) {
		c.op.puts = many;
		c.op.n_puts = (uint32_t)n;
		rc = enqueue_sized(b, &c, puts, err);
		embed_end(b, &c);
	}
	if (n > 1)
		mem_free(many);
	return rc;
}
