/*
 * checkpoint.c - the state of a message that an extend stores and the next claim shows: LOCK-12 of core/locks/locks.h.
 *
 *      claim ──> extend with a checkpoint ──> lease ends in any way ──> claim: row->checkpoint
 *                 one group: document, key, lease
 */
#include "engine/ledger/ledgerengine_private.h"

/* The record of the document, which is the record of a message. */
static void
fill(const struct ledgerengine *k, const struct ledger_view *v, uint64_t etag, struct slice text, struct message *m)
{
	struct ledger_queue_view q;

	ledger_queue_get(k->ledger, v->queue, &q);
	*m = (struct message){
		.id = v->id,
		.number = etag,
		.accepted = k->now,
		.due = k->now,
		.space = slice_of(q.space_name),
		.queue = slice_of(q.name),
		.type = SLICE("application/json"),
		.payload = text,
		.payload_size = text.n,
	};
}

/* The key and the right of the holder of the message. */
static void
refer(const struct ledger_view *v, struct lock_ref *ref)
{
	*ref = (struct lock_ref){ .id = v->id, .token = v->token, .held = v->token, .until = v->until, .if_version = -1 };
	lock_txn(v->token, ref->txn);
}

static int
keep(struct ledgerengine *k, const struct message *m, struct lock_change *c)
{
	uint64_t where;
	int rc = k->ops->keep_document(k, m, &where, NULL);

	if (rc) {
		locks_undo(c);
		return rc;
	}
	lock_doc(c->next, (struct slice){ 0 })->where = where;
	rc = ledgerengine_carry_out_lock(k, c, NULL);
	if (rc)
		k->ops->drop(k, where);
	return rc;
}

int
ledgerengine_checkpoint(struct ledgerengine *k, const struct op *op, uint32_t msg, struct slice text)
{
	const uint64_t etag = ledger_counter(k->ledger) + 1;
	struct ledger_view v;
	struct lock_change c;
	struct lock_ref ref;
	enum lock_why why;
	struct message m;
	int rc = 0;

	ledger_get(k->ledger, msg, &v);
	refer(&v, &ref);
	fill(k, &v, etag, text, &m);
	if (!locks_of_message(k->locks, v.id))
		rc = ledgerengine_limit_document(k, &m, NULL);
	if (!rc)
		rc = locks_put(k->locks, &ref, (struct slice){ 0 }, etag, false, op->route.arrived, &c, &why);
	if (rc)
		return rc;
	locks_put_commits(&c, k->now);
	return keep(k, &m, &c);
}

/* A claim shows a state that is small, and in its record. */
int
ledgerengine_show_state(struct ledgerengine *k, struct op_row *row, struct slu_err *err)
{
	const struct lock *const lock = locks_of_message(k->locks, row->id);
	const struct lock_doc *const doc = lock ? lock_doc(lock, (struct slice){ 0 }) : NULL;
	int rc;

	if (!doc || !doc->where)
		return 0;
	rc = k->ops->pin(k, doc->where, &row->checkpoint, NULL, err);
	if (!rc && row->checkpoint.size > OP_STATE_SHOWN) {
		engine_unpin(k->engine, &row->checkpoint);
		row->checkpoint = (struct op_ref){ 0 };
	}
	return rc;
}
