/*
 * attempts.c - what the ledger engine keeps of a failure: engine/attempts.h.
 *
 * The attempts before are read from the record of the last failure. If they cannot be read (no memory, a damaged record),
 * the attempt is kept without them, or, if it has no error, not at all: what was kept stays. A nack never fails for that. The end of a lease does not wait for the disk: thousands may end in
 * one run.
 */
#include "engine/ledger/ledgerengine_private.h"

#include "base/mem.h"
#include "core/ledger/letters.h"

/* Reads what was kept of the last failure. before: room for ATTEMPTS_MAX bytes. Returns false if it cannot be read. */
static bool
read_before(struct ledgerengine *k, uint64_t where, bool may_block, char *before, struct attempts *out)
{
	struct op_ref ref = { 0 };
	int rc;

	*out = (struct attempts){ 0 };
	if (!where)
		return true;
	if (k->ops->pin(k, where, &ref, NULL, NULL))
		return false;
	rc = ref.size <= ATTEMPTS_MAX ? ledgerengine_read(k, &ref, before, may_block, NULL) : SLU_ETOOBIG;
	engine_unpin(k->engine, &ref);
	if (!rc)
		(void)attempts_read((struct slice){ before, ref.size }, out);
	return !rc;
}

static uint8_t
outcome_of(const struct change *c)
{
	if (c->expired)
		return ATTEMPT_EXPIRED;
	if (c->kind == CHANGE_DIE && c->reason == DEAD_REJECTED)
		return ATTEMPT_REJECTED;
	return c->failed ? ATTEMPT_FAILED : ATTEMPT_DEFERRED;
}

/* The change is decided and not applied: the message still has its lease. Returns the number of bytes. */
static size_t
write_attempt(struct ledgerengine *k, const struct change *c, const struct ledger_view *v, struct slice error, char *before,
	      char *out)
{
	const slu_time ended = c->expired && v->until < c->at ? v->until : c->at;
	struct attempts all;

	if (!read_before(k, v->error, !c->expired, before, &all) && !error.n)
		return 0;
	attempts_add(&all, &(struct attempt_row){
				   .began = v->claimed,
				   .took = ended > v->claimed ? ended - v->claimed : 0,
				   .token = v->token,
				   .number = v->attempts,
				   .outcome = outcome_of(c),
				   .holder = ledger_holder_text(k->ledger, v->holder),
				   .error = error,
			   });
	if (error.n)
		all.error = error;
	return attempts_write(&all, out);
}

int
ledgerengine_carry_out_failure(struct ledgerengine *k, struct change *c, struct slice error, struct slu_err *err)
{
	const bool stays = c->kind == CHANGE_RETRY || c->kind == CHANGE_DIE;
	struct slice text = stays ? error : (struct slice){ 0 };
	struct ledger_view v;
	char *room = NULL;
	int rc;

	if (stays && (c->failed || error.n)) {
		ledger_get(k->ledger, c->msg, &v);
		if (v.state == MSG_LEASED && !ledger_reserve_error(k->ledger))
			room = mem_alloc((size_t)2 * ATTEMPTS_MAX);
	}
	if (room)
		text = (struct slice){ room + ATTEMPTS_MAX, write_attempt(k, c, &v, error, room, room + ATTEMPTS_MAX) };
	rc = ledgerengine_carry_out(k, c, text, err);
	mem_free(room);
	return rc;
}
