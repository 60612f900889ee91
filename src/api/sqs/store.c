#include "api/sqs/store.h"

#include "api/document.h"

#include <stdio.h>

#define TURN_MAX (10 * SLU_SEC) /* the wait for an earlier change */

enum step {
	LOAD,
	CHANGE,
	REMOVE
};

struct sqs_storing {
	struct sqs_document document;
	enum step step;
	char key[NAME_TEXT + 8];
	uint64_t token; /* of the lease; 0: none */
	uint8_t txn[LOCK_TXN];
	enum sqs_code (*change)(struct apicall *a, struct slu_err *err);
	void (*then)(struct apicall *a);
	enum sqs_code refused; /* by change */
	int rc;                /* of the op that failed */
	struct slu_err err;
	struct buf text;
	struct op_put put;
};

struct sqs_document *
sqs_document(struct apicall *a)
{
	return &((struct sqs_storing *)a->part)->document;
}

/* --- pairs -------------------------------------------------------------------- */

static struct sqs_pair *
find(const struct sqs_pairs *l, struct slice name)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (slice_eq(l->items[i].name, name))
			return &l->items[i];
	return NULL;
}

struct slice
sqs_pairs_find(const struct sqs_pairs *l, const char *name)
{
	const struct sqs_pair *const pair = find(l, slice_of(name));

	return pair ? pair->value : (struct slice){ 0 };
}

void
sqs_pairs_remove(struct sqs_pairs *l, struct slice name)
{
	struct sqs_pair *const pair = find(l, name);

	if (pair)
		*pair = l->items[--l->n];
}

bool
sqs_pairs_set(struct sqs_pairs *l, struct arena *a, struct slice name, struct slice value)
{
	struct sqs_pair *pair = find(l, name);

	if (!pair)
		pair = sqs_pairs_add(l, a);
	if (pair)
		*pair = (struct sqs_pair){ name, value };
	return pair != NULL;
}

/* --- the text ----------------------------------------------------------------- */

static void
read_pairs(struct json *r, struct arena *a, struct sqs_pairs *l)
{
	struct json_str name;

	json_object(r);
	while (json_member(r, &name)) {
		char *const room = arena_alloc(a, name.n + 1);
		struct sqs_pair *const pair = room ? sqs_pairs_add(l, a) : NULL;

		if (!pair)
			json_fail(r, SLU_ENOMEM, NULL, "fewer members");
		else
			*pair = (struct sqs_pair){ json_str_text(&name, room), json_text(r) };
	}
}

static int
parse(struct apicall *a, struct sqs_storing *t)
{
	const struct slice text = arena_copy(&a->memory, buf_slice(&t->text));
	char *const room = arena_alloc(&a->memory, text.n + 1);
	struct json_str name;
	struct json r;

	if (text.n != t->text.n || !room)
		return slu_fail(&t->err, SLU_ENOMEM, "out of memory");
	json_init(&r, text, JSON_DEPTH);
	json_room(&r, room, text.n + 1);
	json_object(&r);
	while (json_member(&r, &name))
		if (json_str_is(&name, SLICE("created")))
			t->document.created = json_i64(&r, 0, INT64_MAX);
		else if (json_str_is(&name, SLICE("modified")))
			t->document.modified = json_i64(&r, 0, INT64_MAX);
		else if (json_str_is(&name, SLICE("attributes")))
			read_pairs(&r, &a->memory, &t->document.attributes);
		else if (json_str_is(&name, SLICE("tags")))
			read_pairs(&r, &a->memory, &t->document.tags);
	return json_end(&r, &t->err);
}

static void
write_pairs(struct json_out *w, const char *name, const struct sqs_pairs *l)
{
	json_out_object(w, name);
	for (uint32_t i = 0; i < l->n; i++) {
		json_out_name(w, l->items[i].name);
		json_out_str(w, NULL, l->items[i].value);
	}
	json_out_close(w);
}

/* Sets the payload of the put. */
static int
format(struct apicall *a, struct sqs_storing *t)
{
	struct json_out w;

	buf_clear(&t->text);
	json_out_open(&w, &t->text);
	json_out_i64(&w, "created", t->document.created);
	json_out_i64(&w, "modified", t->document.modified);
	write_pairs(&w, "attributes", &t->document.attributes);
	write_pairs(&w, "tags", &t->document.tags);
	json_out_close(&w);
	if (t->text.failed)
		return SLU_ETOOBIG;
	t->put.m.type = SLICE("application/json");
	t->put.m.payload = arena_copy(&a->memory, buf_slice(&t->text));
	t->put.m.payload_size = t->put.m.payload.n;
	return t->put.m.payload.n ? 0 : SLU_ENOMEM;
}

/* --- the ops ------------------------------------------------------------------ */

static void
begin_op(struct apicall *a, enum op_verb verb)
{
	struct sqs_storing *const t = a->part;

	apicall_op(a, &a->op, verb, slice_of(sqs_of(a)->space), SLICE(LOCK_QUEUE));
	a->op.lock.key = slice_of(t->key);
	a->op.lock.token = a->op.lock.fence = t->token;
	memcpy(a->op.lock.txn, t->txn, sizeof t->txn);
	a->op.lock.if_version = -1;
}

static void
end(struct apicall *a)
{
	struct sqs_storing *const t = a->part;

	buf_release(&t->text);
	if (t->refused)
		sqs_refuse(a, t->refused, "%s", t->err.text);
	else if (t->rc)
		apicall_refuse(a, t->rc, t->err.text);
	else
		t->then(a);
}

static void
released(struct apicall *a)
{
	struct sqs_storing *const t = a->part;

	if (!t->rc && !t->refused && (a->op.rc || a->op.lock.why != LOCK_OK))
		t->rc = slu_fail(&t->err, a->op.rc ? (enum slu_code)a->op.rc : SLU_EDOWN,
				 "the change took too long; try again");
	end(a);
}

/* rc: what has failed, or 0. */
static void
release(struct apicall *a, int rc)
{
	struct sqs_storing *const t = a->part;

	if (rc && !t->rc)
		t->rc = slu_fail(&t->err, (enum slu_code)rc, "%s", slu_err_row(rc)->text);
	begin_op(a, OP_RELEASE);
	a->op.lock.rollback = t->rc || t->refused;
	apicall_run(a, released);
}

static void
written(struct apicall *a)
{
	release(a, a->op.rc);
}

static void
write_document(struct apicall *a)
{
	struct sqs_storing *const t = a->part;
	const int rc = format(a, t);

	if (rc) {
		release(a, rc);
		return;
	}
	begin_op(a, OP_STATE_PUT);
	a->op.puts = &t->put;
	a->op.n_puts = 1;
	apicall_run(a, written);
}

static void
read_done(struct apicall *a, int rc)
{
	struct sqs_storing *const t = a->part;

	op_unpin(&a->op);
	if (!rc && t->text.n > 0)
		rc = parse(a, t);
	if (t->step == LOAD) {
		t->rc = rc;
		end(a);
		return;
	}
	if (!rc)
		t->refused = t->change(a, &t->err);
	if (rc || t->refused)
		release(a, rc);
	else
		write_document(a);
}

static int
read_text(struct apicall *a, bool may_block)
{
	struct sqs_storing *const t = a->part;

	buf_clear(&t->text);
	return document_read(a->op.engine, &a->op.lock.record, &a->op.lock.payload, SQS_DOCUMENT_MAX, may_block,
			     &t->text, &t->err);
}

static void
got(struct apicall *a)
{
	if (a->op.rc)
		read_done(a, a->op.rc);
	else if (a->op.lock.etag == 0)
		read_done(a, 0);
	else
		apicall_try(a, read_text, read_done);
}

static void
acquired(struct apicall *a)
{
	struct sqs_storing *const t = a->part;

	if (a->op.rc) {
		t->rc = slu_fail(&t->err, a->op.rc == SLU_ELEASE ? SLU_EBUSY : (enum slu_code)a->op.rc,
				 "another change of this queue is under way");
		end(a);
		return;
	}
	t->token = a->op.lock.token;
	memcpy(t->txn, a->op.lock.txn, sizeof t->txn);
	begin_op(a, t->step == REMOVE ? OP_STATE_REMOVE : OP_STATE_GET);
	apicall_run(a, t->step == REMOVE ? written : got);
}

static void
start(struct apicall *a, enum step step, void (*then)(struct apicall *a))
{
	struct sqs_storing *const t = arena_alloc(&a->memory, sizeof *t);

	if (!t) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	*t = (struct sqs_storing){ .step = step, .then = then };
	(void)snprintf(t->key, sizeof t->key, "~sqs/%s", sqs_of(a)->queue); /* fits */
	buf_init(&t->text, SQS_DOCUMENT_MAX);
	a->part = t;
}

static void
acquire(struct apicall *a)
{
	if (!a->part)
		return;
	begin_op(a, OP_ACQUIRE);
	a->op.lock.holder = SLICE("sluiced");
	a->op.wait = TURN_MAX;
	apicall_run(a, acquired);
}

void
sqs_store_load(struct apicall *a, void (*then)(struct apicall *a))
{
	a->part = NULL;
	start(a, LOAD, then);
	if (!a->part)
		return;
	begin_op(a, OP_STATE_GET);
	apicall_run(a, got);
}

void
sqs_store_change(struct apicall *a, enum sqs_code (*change)(struct apicall *a, struct slu_err *err),
		 void (*then)(struct apicall *a))
{
	a->part = NULL;
	start(a, CHANGE, then);
	if (a->part)
		((struct sqs_storing *)a->part)->change = change;
	acquire(a);
}

void
sqs_store_remove(struct apicall *a, void (*then)(struct apicall *a))
{
	a->part = NULL;
	start(a, REMOVE, then);
	acquire(a);
}
