/*
 * ledgerengine_private.h - what the files of engine/ledger/ share; for them alone.
 */
#ifndef ENGINE_LEDGER_LEDGERENGINE_PRIVATE_H
#define ENGINE_LEDGER_LEDGERENGINE_PRIVATE_H

#include "engine/attempts.h"
#include "engine/ledger/ledgerengine.h"

#define LEDGERENGINE_LATER (100 * SLU_MS) /* after which a change that was not kept is tried again */

/* Runs an op of one verb: fills in its answer. */
typedef void ledgerengine_fn(struct ledgerengine *k, struct op *op);

/* Whether a copy of this process may have answered the grant with this token: it is not given back. */
static inline bool
ledgerengine_is_copied(const struct ledgerengine *k, uint64_t token)
{
	return token > k->copied_above && token <= k->copied_upto;
}

/* Keeps the change, then applies it. */
int ledgerengine_carry_out(struct ledgerengine *k, struct change *c, struct slice text,
			   struct slu_err *err);

/* attempts.c: the same, and keeps the attempt with the change, if it is a RETRY or DIE that ends a lease: ATTEMPTS-3 of
 * engine/attempts.h. */
int ledgerengine_carry_out_failure(struct ledgerengine *k, struct change *c, struct slice error,
				   struct slu_err *err);

/* The queue of an op, or SLAB_NONE if the queue does not exist. */
/* Reads a text of a message from its record. member: the offset of the slice in struct message. A text that is longer than
 * the room is cut. */
int ledgerengine_text(struct ledgerengine *k, uint32_t msg, size_t member, char *out, size_t room, struct slice *text);

uint32_t ledgerengine_queue(const struct ledgerengine *k, const struct op *op);

/* Fills in the row of a message without its record. */
void ledgerengine_bare_row(struct ledgerengine *k, uint32_t msg, struct op_row *row);

/* Fills in the row of a message and pins its record; with_error: also its last error. */
int ledgerengine_row(struct ledgerengine *k, uint32_t msg, bool with_error, struct op_row *row,
		     struct slu_err *err);

/* Reads a whole pinned record into `out`, also one that this run has kept. */
int ledgerengine_read(struct ledgerengine *k, const struct op_ref *ref, char *out, bool may_block, struct slu_err *err);

/* ---- enqueue.c, claim.c, settle.c, look.c: the verbs of messages and queues ---- */

ledgerengine_fn ledgerengine_enqueue, ledgerengine_intake, ledgerengine_schedule;
ledgerengine_fn ledgerengine_claim;
ledgerengine_fn ledgerengine_return, ledgerengine_items, ledgerengine_finish, ledgerengine_purge, ledgerengine_pause,
	ledgerengine_policy_set;
ledgerengine_fn ledgerengine_limits, ledgerengine_hold, ledgerengine_trend;
ledgerengine_fn ledgerengine_get, ledgerengine_why, ledgerengine_peek, ledgerengine_watch, ledgerengine_list,
	ledgerengine_result, ledgerengine_stats, ledgerengine_queues, ledgerengine_policy_get,
	ledgerengine_backup, ledgerengine_shard, ledgerengine_presence;

/* Accepts the puts of an op that are not `taken`, all or none. moved: returns SLU_EMOVED if another shard accepts a put;
 * otherwise the put stays without a number (MOVE-2). */
int ledgerengine_put_all(struct ledgerengine *k, struct op *op, bool moved, struct slu_err *err);

/* Keeps a message that was decided, then applies it. */
int ledgerengine_put_carry_out(struct ledgerengine *k, struct op_put *put, struct change *c, struct slu_err *err);

/* ---- storage.c ---- */

/* Answers an OP_TREND of the storage. Returns false if nothing was synced or put. */
bool ledgerengine_read_storage(struct ledgerengine *k, struct op *op);

/* ---- outbox.c: engine/outbox.h ---- */

/* OUTBOX-4 */
void ledgerengine_draw_source(struct ledgerengine *k);

/* Finds where the puts of a step go: sets `pending` of those that other shards accept. */
int ledgerengine_find_homes(struct ledgerengine *k, struct op *op, struct slu_err *err);

/* Makes the entry of a put that is `pending`, and sets `entry`, `line` and m.number. */
int ledgerengine_promise(struct ledgerengine *k, struct op_put *put, struct slu_err *err);

/* The same for an event of a batch: OUTBOX-8. */
int ledgerengine_promise_event(struct ledgerengine *k, struct op_put *put, struct slu_err *err);

/* The same for a dead letter: OUTBOX-7. */
int ledgerengine_promise_letter(struct ledgerengine *k, struct op_put *put, struct slu_err *err);

/* ---- letters.c: dead letters that leave their queue ---- */

/* At the start of a run, when all that was kept before can be read: sends dead letters, up to a number. Sets letters_wait
 * if one cannot leave now. */
void ledgerengine_send_letters(struct ledgerengine *k);

/* When there are dead letters to send, or SLU_NEVER. */
slu_time ledgerengine_letters_due(struct ledgerengine *k);

/* ---- msgbatch.c: engine/msgbatch.h ---- */

struct msgbatch_event;

/* OP_FINISH in the queue of the batches: joins, or closes, the batch that its item names. */
bool ledgerengine_is_of_batch(const struct op *op);
ledgerengine_fn ledgerengine_batch;

/* Accepts or promises an event; *told: for ledgerengine_batch_untell, which undoes it. */
int ledgerengine_batch_tell(struct ledgerengine *k, struct slice space, uint64_t batch, const struct msgbatch_event *e,
			    uint64_t *told, struct slu_err *err);
void ledgerengine_batch_untell(struct ledgerengine *k, uint64_t told); /* 0: nothing was told */

/* MSGBATCH-2: before a change that ends or redrives a message. *told: 0 if the message is no member. */
int ledgerengine_batch_change(struct ledgerengine *k, struct change *c, uint64_t *told, struct slu_err *err);

/* MSGBATCH-5: of the puts of an INTAKE that are duplicates; and undoes it. */
int ledgerengine_batch_known(struct ledgerengine *k, struct op *op, struct slu_err *err);
void ledgerengine_batch_unknown(struct ledgerengine *k, struct op *op);

/* MSGBATCH-7 */
enum {
	LEDGERENGINE_MEMBERS = 1000
};

/* Returns whether the queue has more members than one purge takes; deletes some, and adds their number to *n. */
bool ledgerengine_has_members(const struct ledgerengine *k, uint32_t queue);
int ledgerengine_remove_members(struct ledgerengine *k, uint32_t queue, uint64_t *n);

/* Before a purge: events for the members that it removes; undoes them. */
struct ledgerengine_told {
	uint64_t ids[LEDGERENGINE_MEMBERS];
	uint32_t n;
};

int ledgerengine_batch_purge(struct ledgerengine *k, uint32_t queue, struct ledgerengine_told *told, struct slu_err *err);
void ledgerengine_batch_untold(struct ledgerengine *k, struct ledgerengine_told *told);

/* At the start of a run: counts events, and begins callbacks. */
void ledgerengine_batches_fold(struct ledgerengine *k);

/* A message of the queue became ready. */
void ledgerengine_batches_note(struct ledgerengine *k, uint32_t queue, const char *name);

/* When there is something to count, or SLU_NEVER. */
slu_time ledgerengine_batches_due(const struct ledgerengine *k);

void ledgerengine_batches_release(struct ledgerengine *k);

/* ---- enqueue.c ---- */

/* Keeps the record of a message, then applies the change. */
int ledgerengine_keep_message(struct ledgerengine *k, const struct message *m, struct change *c, struct slu_err *err);

/* OP-4: undoes the puts before n, the latest first. */
void ledgerengine_put_undo(struct ledgerengine *k, struct op *op, uint32_t n);

/* What a strict queue compares under an idempotency key; 0: the queue is not strict. */
uint64_t ledgerengine_digest(const struct ledgerengine *k, uint32_t queue, const struct message *m);

/* ---- forget.c ---- */

ledgerengine_fn ledgerengine_forget;

/* Returns true if an idle queue may be forgotten now. */
bool ledgerengine_may_forget(struct ledgerengine *k, uint32_t queue);

/* ---- lock.c, lock_look.c: the verbs of locks that change something, and those that do not ---- */

ledgerengine_fn ledgerengine_acquire, ledgerengine_state_put;
ledgerengine_fn ledgerengine_change_held; /* the other verbs of the holder */
ledgerengine_fn ledgerengine_state_get, ledgerengine_describe, ledgerengine_keys,
	ledgerengine_attachments;

/* Keeps the change of a key, then applies it. */
int ledgerengine_carry_out_lock(struct ledgerengine *k, struct lock_change *c, struct slu_err *err);

/* Ends the leases of keys that run out until then. */
int ledgerengine_tick_locks(struct ledgerengine *k, slu_time until, struct slu_err *err);

#define LEDGERENGINE_NO_MESSAGE UINT64_MAX /* no message has this id */

/* The key that an op names, and the right by which the op acts; ref->id is LEDGERENGINE_NO_MESSAGE if
 * this shard does not have the message of the key. Returns SLU_EINVAL. */
int ledgerengine_lock_ref(const struct ledgerengine *k, struct op *op, struct lock_ref *ref,
			  struct slu_err *err);

/* The key, or NULL. */
const struct lock *ledgerengine_lock_find(const struct ledgerengine *k, const struct lock_ref *ref);

/* Answers with what is committed; staged: with what the holder sees. */
void ledgerengine_lock_tell(struct op_lock *q, const struct lock *lock, bool staged);

/* Answers why the op is refused. */
void ledgerengine_lock_refuse(struct ledgerengine *k, struct op *op, const struct lock_ref *ref, int rc,
			      struct slu_err *err);

/* Returns true if the op, which has proved to hold the key, sees what is staged. */
bool ledgerengine_lock_sees_staged(const struct lock *lock, const struct lock_ref *ref);

/* Fills in version and etag of the state of a message. */
void ledgerengine_tell_state(const struct ledgerengine *k, struct op_row *row);

/* ENGINE-5: reports keys that are free. */
void ledgerengine_report_freed(struct ledgerengine *k);

/* ---- unlock.c: an OP_FINISH that releases a key; does nothing without one ---- */

/* Returns SLU_ETOGETHER, SLU_EBUSY, or a code of locks_finish, if the key cannot be released now. */
int ledgerengine_unlock_check(struct ledgerengine *k, const struct op *op, struct slu_err *err);

/* Keeps the state, and reserves room for the key as it will be. Then ledgerengine_unlock_end must follow, with whether the step is
 * done. */
int ledgerengine_unlock_reserve(struct ledgerengine *k, const struct op *op, struct lock_change *c, struct slu_err *err);
void ledgerengine_unlock_end(struct ledgerengine *k, const struct op *op, struct lock_change *c, bool done);

/* ---- checkpoint.c: LOCK-12 of core/locks/locks.h ---- */

/* Makes the text, JSON, the state of a message that the caller holds. */
int ledgerengine_checkpoint(struct ledgerengine *k, const struct op *op, uint32_t msg, struct slice text);

/* Pins the state of a message for a claim: row->checkpoint. */
int ledgerengine_show_state(struct ledgerengine *k, struct op_row *row, struct slu_err *err);

/* ---- limit.c ---- */

void ledgerengine_limit_begin(struct ledgerengine *k); /* before a run */
void ledgerengine_limit_release(struct ledgerengine *k);

/* These return SLU_EMEMORY, SLU_EQUOTA or SLU_EBUSY if a limit is reached: for a message, for a
 * new queue, for a document, for a new lock key. */
int ledgerengine_limit_put(struct ledgerengine *k, uint32_t queue, const struct ledger_offer *offer,
			   const struct message *m, struct slu_err *err);
int ledgerengine_limit_queue(struct ledgerengine *k, struct slice space, struct slice name, struct slu_err *err);
int ledgerengine_limit_document(struct ledgerengine *k, const struct message *m, struct slu_err *err);
int ledgerengine_limit_key(struct ledgerengine *k, struct slu_err *err);

#endif
