/*
 * clerk_in.h - what the parts of the clerk share: clerk*.c alone.
 */
#ifndef ENGINE_CLERK_IN_H
#define ENGINE_CLERK_IN_H

#include "engine/clerk.h"

typedef void clerk_fn(struct clerk *k, struct op *op);

/* Have it kept, then apply it. */
int clerk_carry_out(struct clerk *k, struct change *c, struct slice text,
		    struct slu_err *err);

/* The queue of an op, or SLAB_NONE when nobody used it yet. */
uint32_t clerk_queue(const struct clerk *k, const struct op *op);

/* A message as it stands, and its record pinned; its last error too, if asked for. */
int clerk_row(struct clerk *k, uint32_t msg, bool with_error, struct op_row *row,
	      struct slu_err *err);

/* Let go of what the row has pinned. */
void clerk_unpin_row(struct clerk *k, struct op_row *row);

/* clerk_claim.c */
clerk_fn clerk_claim;

/* clerk_lock.c: the verbs of locks that change something; what falls due. */
clerk_fn clerk_acquire, clerk_keepalive, clerk_release_lock, clerk_state_put,
	clerk_state_remove, clerk_state_meta;
int clerk_carry_out_lock(struct clerk *k, struct lock_change *c, struct slu_err *err);
int clerk_tick_locks(struct clerk *k, slu_time until, struct slu_err *err);

/* Which key an op is about, and by whose right; the key, or NULL. SLU_EINVAL. */
int clerk_lock_ref(const struct clerk *k, struct op *op, struct lock_ref *ref,
		   struct slu_err *err);
const struct lock *clerk_lock_find(const struct clerk *k, const struct lock_ref *ref);

/* V5 of move.h: it is not known here, and its queue lives elsewhere: op says where. */
bool clerk_lock_is_elsewhere(const struct clerk *k, struct op *op);

/* Answer as it is committed, or (staged) as the holder sees it; or why not. */
void clerk_lock_tell(struct op_lock *q, const struct lock *lock, bool staged);
void clerk_lock_refuse(struct clerk *k, struct op *op, const struct lock_ref *ref, int rc,
		       struct slu_err *err);

/* Does its holder, who has proved to be that, see what is staged? */
bool clerk_lock_is_his(const struct lock *lock, const struct lock_ref *ref);

/* clerk_lock_look.c: those that do not. */
clerk_fn clerk_state_get, clerk_describe, clerk_keys, clerk_attachments;

/* The version and etag of its state. */
void clerk_tell_state(const struct clerk *k, struct op_row *row);

/* clerk_limit.c: around a run; and when the clerk goes. */
void clerk_limit_begin(struct clerk *k);
void clerk_limit_release(struct clerk *k);

/* May this message be accepted, a queue be made, a document be kept, a lock key be made?
 * SLU_EMEMORY, SLU_EQUOTA, SLU_EBUSY. */
int clerk_limit_put(struct clerk *k, uint32_t queue, const struct ledger_offer *offer,
		    const struct message *m, struct slu_err *err);
int clerk_limit_queue(struct clerk *k, struct slice space, struct slice name, struct slu_err *err);
int clerk_limit_document(struct clerk *k, const struct message *m, struct slu_err *err);
int clerk_limit_key(struct clerk *k, struct slu_err *err);

/* Bytes that a message counts for the quota of its namespace. */
uint64_t clerk_message_bytes(const struct message *m);
/* What a strict queue compares under an idempotency key; 0: it does not. */
uint64_t clerk_digest(const struct clerk *k, uint32_t queue, const struct message *m);

/* clerk_settle.c */
clerk_fn clerk_return, clerk_items, clerk_purge, clerk_pause, clerk_policy_set;

/* clerk_forget.c: OP_FORGET; and whether a queue that is idle is to be forgotten. */
clerk_fn clerk_forget;
bool clerk_may_forget(struct clerk *k, uint32_t queue);

/* clerk_move.c: V1, before any op that says an epoch; V5, after any. */
int clerk_mark(struct clerk *k, struct op *op, struct slu_err *err);
void clerk_point_elsewhere(struct clerk *k, struct op *op);

/* Where the queue lives, if not here. */
bool clerk_lives_elsewhere(const struct clerk *k, uint32_t queue, char out[static MOVE_SHARD]);

/* The same for an op; and V11: MOVE_UNKNOWN. */
bool clerk_is_elsewhere(const struct clerk *k, const struct op *op, uint32_t queue,
			char out[static MOVE_SHARD]);

/* Documents of a message or a key, as rows that there is room for; how large a record is. */
int clerk_add_states(struct clerk *k, struct op *op, const struct lock *lock,
		     struct slu_err *err);
uint64_t clerk_record_size(struct clerk *k, uint64_t where);

/* Make a queue, if there is none: of the op's spelling. */
int clerk_open_queue(struct clerk *k, const struct op *op, struct slice space, struct slice name,
		     uint32_t *out, struct slu_err *err);

/* clerk_move_lock.c: the keys of LOCK_QUEUE. Let the ledger know of those that have some; set
 * the next ones aside; answer a page of them; their names, for whoever ends the batch. */
bool clerk_has_locks(const struct op *op);
int clerk_open_locks(struct clerk *k, const struct op *op, struct slu_err *err);
int clerk_take_locks(struct clerk *k, const struct op *op, uint32_t queue, struct slu_err *err);
int clerk_show_locks(struct clerk *k, struct op *op, uint32_t n, struct slu_err *err);
void clerk_name_locks(const struct clerk *k, const struct op *op, struct buf *out);

/* clerk_give.c */
int clerk_give(struct clerk *k, struct op *op, uint32_t queue, struct slu_err *err);
int clerk_refuse(struct clerk *k, struct op *op, uint32_t queue, struct slu_err *err);

/* clerk_look.c */
clerk_fn clerk_get, clerk_peek, clerk_watch, clerk_list, clerk_result, clerk_stats, clerk_topics,
	clerk_policy_get, clerk_backup, clerk_shard, clerk_move;

#endif
