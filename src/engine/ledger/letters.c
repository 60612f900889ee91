/*
 * letters.c - dead letters of a queue with a dead_letter_queue leave it by the outbox: OUTBOX-7 of engine/outbox.h.
 */
#include "engine/ledger/ledgerengine_private.h"

#include "base/mem.h"
#include "base/time.h"
#include "core/ledger/letters.h"

enum {
	LETTERS = 64 /* dead letters that leave in a run */
};

/* A dead letter as it is read from its queue. */
struct letter {
	struct op_row row;
	char *bytes; /* its record, then its error */
	struct op_put put;
};

static int
read_letter(struct ledgerengine *k, uint32_t msg, struct letter *t, struct slu_err *err)
{
	struct op_row *const row = &t->row;
	int rc = ledgerengine_row(k, msg, true, row, err);

	if (rc)
		return rc;
	t->bytes = mem_alloc((size_t)row->record.size + row->error.size + 1);
	if (!t->bytes)
		return SLU_ENOMEM;
	rc = ledgerengine_read(k, &row->record, t->bytes, true, err);
	if (!rc && row->error.size)
		rc = ledgerengine_read(k, &row->error, t->bytes + row->record.size, true, err);
	return rc ? rc : message_decode((struct slice){ t->bytes, row->record.size }, &t->put.m, err);
}

static struct slice
cut(struct slice text)
{
	return (struct slice){ text.p, text.n < MESSAGE_ERROR_MAX ? text.n : MESSAGE_ERROR_MAX };
}

/* Turns the message into one of the other queue, where it starts again. Its idempotency key stays behind. */
static void
address(struct letter *t, const struct ledger_queue_view *from)
{
	struct message *const m = &t->put.m;

	m->sent = m->sent ? m->sent : m->accepted;
	m->source = slice_of(from->name);
	m->queue = slice_of(from->policy->dead_letter_queue);
	m->reason = t->row.reason;
	m->error = cut(attempts_error((struct slice){ t->bytes + t->row.record.size, t->row.error.size }));
	m->prio = t->row.prio;
	m->idem = (struct slice){ 0 };
	m->max_attempts = 0;
	m->terms = (struct terms){ 0 };
	m->due = 0;
	m->expires = 0;
}

static int
end_here(struct ledgerengine *k, const struct letter *t, uint32_t space)
{
	const struct ledger_ref ref = { .space = space, .queue = SLAB_NONE, .id = t->row.id };
	struct slu_err err = { 0 };
	struct change c;
	const int rc = ledger_delete(k->ledger, &ref, k->now, &c);

	return rc ? rc : ledgerengine_carry_out(k, &c, (struct slice){ 0 }, &err);
}

/* The entry first: it can be undone. */
static int
send(struct ledgerengine *k, struct letter *t, const struct ledger_queue_view *from, struct slu_err *err)
{
	struct op op = { .verb = OP_FINISH, .puts = &t->put, .n_puts = 1 };
	int rc;

	if (t->put.m.file)
		return SLU_ETOGETHER;
	address(t, from);
	rc = ledgerengine_promise_letter(k, &t->put, err);
	if (rc)
		return rc;
	rc = end_here(k, t, from->space);
	if (rc)
		ledgerengine_put_undo(k, &op, 1);
	return rc;
}

/* Returns true if the dead letter can never leave: its bytes are damaged, too large for the outbox, or the other shard
 * takes none. */
static bool
stays(int rc)
{
	return rc == SLU_ETOGETHER || rc == SLU_ECORRUPT || rc == SLU_EINVAL || rc == SLU_ETOOBIG;
}

/* Returns 0 also if the dead letter stays. */
static int
send_one(struct ledgerengine *k, uint32_t queue, uint32_t msg)
{
	struct letter t = { 0 };
	struct ledger_queue_view from;
	struct slu_err err = { 0 };
	int rc;

	ledger_queue_get(k->ledger, queue, &from);
	rc = read_letter(k, msg, &t, &err);
	if (!rc)
		rc = send(k, &t, &from, &err);
	op_unpin_row(k->engine, &t.row);
	mem_free(t.bytes);
	if (!stays(rc))
		return rc;
	ledger_stay(k->ledger, msg);
	return 0;
}

void
ledgerengine_send_letters(struct ledgerengine *k)
{
	unsigned left = LETTERS;

	k->letters_wait = false;
	for (uint32_t q = SLAB_NONE; k->home && left && (q = ledger_leaving(k->ledger, q)) != SLAB_NONE;) {
		uint32_t msg;

		while (left && (msg = ledger_leaving_first(k->ledger, q)) != SLAB_NONE && !send_one(k, q, msg))
			left--;
		k->letters_wait |= left && msg != SLAB_NONE;
	}
}

slu_time
ledgerengine_letters_due(struct ledgerengine *k)
{
	if (!k->home || ledger_leaving(k->ledger, SLAB_NONE) == SLAB_NONE)
		return SLU_NEVER;
	return k->letters_wait ? time_add(k->now, LEDGERENGINE_LATER) : k->now;
}
