#include "api/queue/ownstate.h"

#include "api/document.h"

#include <stdio.h>

#define TURN_MAX (10 * SLU_SEC) /* the wait for an earlier change */

static void
begin_op(struct apicall *a, enum op_verb verb)
{
	const struct ownstate *const k = a->part;

	apicall_op(a, &a->op, verb, k->space, SLICE(LOCK_QUEUE));
	a->op.lock.key = slice_of(k->key);
	a->op.lock.token = a->op.lock.fence = k->token;
	memcpy(a->op.lock.txn, k->txn, sizeof k->txn);
	a->op.lock.if_version = -1;
}

static void
end(struct apicall *a)
{
	const struct ownstate *const k = a->part;

	if (!k->rc)
		k->then(a);
	else if (k->refuse)
		k->refuse(a);
	else
		apicall_refuse(a, k->rc, k->err.text);
}

/* --- write -------------------------------------------------------------------- */

static void
released(struct apicall *a)
{
	struct ownstate *const k = a->part;

	if (!k->rc && (a->op.rc || a->op.lock.why != LOCK_OK))
		k->rc = slu_fail(&k->err, a->op.rc ? (enum slu_code)a->op.rc : SLU_EDOWN,
				 "the change took too long; try again");
	end(a);
}

/* rc: what has failed, or 0. */
static void
release(struct apicall *a, int rc)
{
	struct ownstate *const k = a->part;

	if (rc && !k->rc)
		k->rc = slu_fail(&k->err, (enum slu_code)rc, "%s", slu_err_row(rc)->text);
	begin_op(a, OP_RELEASE);
	a->op.lock.rollback = k->rc != 0;
	apicall_run(a, released);
}

static void
written(struct apicall *a)
{
	release(a, a->op.rc);
}

static void
write_next(struct apicall *a)
{
	struct ownstate *const k = a->part;

	if (k->next.n > OWNSTATE_MAX) {
		release(a, SLU_ETOOBIG);
		return;
	}
	if (k->next.n == 0 && !k->has) {
		release(a, 0);
		return;
	}
	begin_op(a, k->next.n ? OP_STATE_PUT : OP_STATE_REMOVE);
	k->put.m.type = SLICE("application/json");
	k->put.m.payload = k->next;
	k->put.m.payload_size = k->next.n;
	if (k->next.n) {
		a->op.puts = &k->put;
		a->op.n_puts = 1;
	}
	apicall_run(a, written);
}

/* --- read --------------------------------------------------------------------- */

static void
read_done(struct apicall *a, int rc)
{
	struct ownstate *const k = a->part;

	op_unpin(&a->op);
	k->text = rc ? k->text : arena_copy(&a->memory, buf_slice(&k->read));
	if (!rc && k->text.n != k->read.n)
		rc = slu_fail(&k->err, SLU_ENOMEM, "out of memory");
	buf_release(&k->read);
	if (!k->change) {
		k->rc = rc;
		end(a);
		return;
	}
	if (!rc) {
		k->rc = k->change(a, &k->err);
		k->refused = k->rc != 0;
	}
	if (rc || k->rc)
		release(a, rc);
	else
		write_next(a);
}

static int
read_text(struct apicall *a, bool may_block)
{
	struct ownstate *const k = a->part;

	buf_clear(&k->read);
	return document_read(a->op.engine, &a->op.lock.record, &a->op.lock.payload, OWNSTATE_MAX, may_block, &k->read, &k->err);
}

static void
got(struct apicall *a)
{
	struct ownstate *const k = a->part;

	k->has = !a->op.rc && a->op.lock.etag != 0;
	if (k->has)
		apicall_try(a, read_text, read_done);
	else
		read_done(a, a->op.rc);
}

static void
acquired(struct apicall *a)
{
	struct ownstate *const k = a->part;

	if (a->op.rc) {
		k->rc = slu_fail(&k->err, a->op.rc == SLU_ELEASE ? SLU_EBUSY : (enum slu_code)a->op.rc,
				 "another change of this queue is under way");
		end(a);
		return;
	}
	k->token = a->op.lock.token;
	memcpy(k->txn, a->op.lock.txn, sizeof k->txn);
	begin_op(a, OP_STATE_GET);
	apicall_run(a, got);
}

/* --- start -------------------------------------------------------------------- */

void
ownstate_init(struct ownstate *k, struct apicall *a, struct slice space, const char *prefix, struct slice queue)
{
	*k = (struct ownstate){ .space = space };
	(void)snprintf(k->key, sizeof k->key, "%s%.*s", prefix, (int)queue.n, queue.p); /* fits */
	buf_init(&k->read, OWNSTATE_MAX);
	a->part = k;
}

void
ownstate_load(struct ownstate *k, struct apicall *a, void (*then)(struct apicall *a))
{
	k->then = then;
	begin_op(a, OP_STATE_GET);
	apicall_run(a, got);
}

void
ownstate_change(struct ownstate *k, struct apicall *a, int (*change)(struct apicall *a, struct slu_err *err),
		void (*then)(struct apicall *a))
{
	k->change = change;
	k->then = then;
	begin_op(a, OP_ACQUIRE);
	a->op.lock.holder = SLICE("sluiced");
	a->op.wait = TURN_MAX;
	apicall_run(a, acquired);
}
