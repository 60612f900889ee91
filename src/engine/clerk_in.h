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

/* clerk_lock.c: the verbs of locks; what falls due. */
clerk_fn clerk_acquire, clerk_keepalive, clerk_release_lock, clerk_state_get,
	clerk_state_put, clerk_state_remove, clerk_state_meta, clerk_describe, clerk_keys,
	clerk_attachments;
int clerk_tick_locks(struct clerk *k, slu_time until, struct slu_err *err);

/* The version and etag of its state. */
void clerk_tell_state(const struct clerk *k, struct op_row *row);

/* clerk_settle.c */
clerk_fn clerk_return, clerk_items, clerk_purge, clerk_pause, clerk_policy_set;

/* clerk_look.c */
clerk_fn clerk_get, clerk_peek, clerk_watch, clerk_list, clerk_result, clerk_stats, clerk_topics,
	clerk_policy_get, clerk_backup, clerk_shard;

#endif
