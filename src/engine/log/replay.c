/*
 * replay.c - makes a ledger of the records.
 *
 * The log may begin anywhere in the history: live records of earlier segments were
 * relocated to the end. So a record may be about a message that is not there yet. Replay
 * skips it: the RESTORE that follows has a later state.
 */
#include "engine/log/logengine_private.h"

#include <inttypes.h>

typedef int step_fn(struct logengine *l, const struct wal_record *rec,
		    struct logengine_entry *entry, struct slu_err *err);

int
logengine_no_memory(struct slu_err *err)
{
	return slu_fail(err, SLU_ENOMEM, "out of memory");
}

int
logengine_unsound(struct slu_err *err)
{
	return slu_fail(err, SLU_ECORRUPT, "it does not follow from the records before it");
}

int
logengine_replay_apply(struct logengine *l, const struct change *c, struct slu_err *err)
{
	const int rc = ledger_replay(l->ledger, c);

	if (rc == SLU_ENOMEM)
		return logengine_no_memory(err);
	if (!rc)
		ledgerengine_update_state(l->ledgerengine.locks, c);
	return rc ? logengine_unsound(err) : 0;
}

static int
open_queue(struct logengine *l, struct slice space, struct slice queue, uint32_t *out,
	   struct slu_err *err)
{
	const int rc = ledger_queue_open(l->ledger, space, queue, out);

	if (rc == SLU_EBUSY)
		return slu_fail(err, SLU_EINVAL, "there are more queues than max_queues");
	return rc ? logengine_no_memory(err) : 0;
}

/* Sets *where to a place for the error or result at the end of the record, 0 if it has none. */
static int
name_text(struct logengine *l, const struct wal_record *rec, struct slice text,
	  uint64_t *where, struct slu_err *err)
{
	*where = 0;
	if (text.n == 0 || l->dry)
		return 0;
	if (places_reserve(&l->places))
		return logengine_no_memory(err);
	*where = logengine_name(l, rec->where, rec->body.n, text.n, SLAB_NONE);
	return 0;
}

/* Sets *where to a place for the record of a message, which may name a payload file. */
static int
name_record(struct logengine *l, const struct wal_record *rec, const struct message *m,
	    uint64_t *where, struct slu_err *err)
{
	uint32_t file = SLAB_NONE;
	int rc;

	*where = 0;
	if (l->dry)
		return 0;
	if (places_reserve(&l->places))
		return logengine_no_memory(err);
	rc = m->file ? logengine_files_name(&l->files, m, &file, err) : 0;
	if (rc)
		return rc == SLU_ENOMEM ? rc : logengine_unsound(err);
	*where = logengine_name(l, rec->where, rec->body.n, rec->body.n, file);
	return 0;
}

/* Fills c from the record of a message. */
static int
read_message(struct logengine *l, const struct wal_record *rec, const struct message *m,
	     struct change *c, struct slu_err *err)
{
	int rc;

	rc = open_queue(l, m->space, m->queue, &c->queue, err);
	if (rc)
		return rc;
	c->id = m->id;
	c->number = m->number;
	c->prio = m->prio;
	c->due = m->due > m->accepted ? m->due : m->accepted;
	c->expires = m->expires == SLU_NEVER ? 0 : m->expires;
	c->max_attempts = m->max_attempts;
	c->keep = m->keep;
	c->terms = m->terms;
	c->share = m->share;
	c->value = m->value;
	if (m->key.n)
		c->key = ledger_key_hash(l->ledger, c->queue, m->key);
	if (m->idem.n)
		c->idem = ledger_idem_mark(l->ledger, c->queue, m->idem);
	return name_record(l, rec, m, &c->where, err);
}

/* A digest that follows belongs to this change. */
static void
note_key(struct logengine *l, const struct change *c)
{
	l->keyed.id = c->id;
	l->keyed.idem = c->idem;
}

/* Skips a digest that belongs to another record: that record was in a segment that is gone,
 * and was relocated with its digest. */
static int
step_digest(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
	    struct slu_err *err)
{
	struct change *c = &entry->change;

	(void)rec;
	if (l->keyed.id != c->id)
		return 0;
	c->idem = l->keyed.idem;
	return logengine_replay_apply(l, c, err);
}

static int
step_accept(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
	    struct slu_err *err)
{
	const int rc = read_message(l, rec, &entry->message, &entry->change, err);

	note_key(l, &entry->change);
	return rc ? rc : logengine_replay_apply(l, &entry->change, err);
}

/* The message keeps its due time, which may be before the record was written. */
static int
step_replace(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
	     struct slu_err *err)
{
	const int rc = read_message(l, rec, &entry->message, &entry->change, err);

	entry->change.due = entry->message.due;
	return rc ? rc : logengine_replay_apply(l, &entry->change, err);
}

static int
step_message(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
	     struct slu_err *err)
{
	const int rc = read_message(l, rec, &entry->message, &entry->change, err);

	l->moved = entry->change;
	l->has_moved = !rc;
	if (!rc && l->moved.share.n) { /* the record goes before its RESTORE comes */
		memcpy(l->moved_share, l->moved.share.p, l->moved.share.n);
		l->moved.share.p = l->moved_share;
	}
	if (!rc && l->moved.value.n) {
		memcpy(l->moved_value, l->moved.value.p, l->moved.value.n);
		l->moved.value.p = l->moved_value;
	}
	return rc;
}

/* Applies a change with a lease. `holder`: of the lease, empty = unknown. */
static int
apply_held(struct logengine *l, struct change *c, struct slice holder, struct slu_err *err)
{
	int rc;

	if (ledger_holder_open(l->ledger, holder, &c->holder))
		return logengine_no_memory(err);
	rc = logengine_replay_apply(l, c, err);
	ledger_holder_close(l->ledger, c->holder);
	return rc;
}

/* A group may cross segments, so the log may begin with a RESTORE whose MESSAGE was in the
 * segment before. Then the message was relocated again. */
static int
step_restore(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
	     struct slu_err *err)
{
	struct change *c = &entry->change;
	int rc;

	if (!l->has_moved && l->records == 0)
		return 0;
	if (!l->has_moved || l->moved.id != c->id)
		return logengine_unsound(err);
	l->has_moved = false;
	c->queue = l->moved.queue;
	c->prio = l->moved.prio;
	c->max_attempts = l->moved.max_attempts;
	c->keep = l->moved.keep;
	c->terms = l->moved.terms;
	c->key = l->moved.key;
	c->share = l->moved.share;
	c->value = l->moved.value;
	c->idem = l->moved.idem;
	c->where = l->moved.where;
	note_key(l, c);
	rc = name_text(l, rec, entry->text, &c->error, err);
	return rc ? rc : apply_held(l, c, entry->holder, err);
}

static int
step_claim_owned(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
		 struct slu_err *err)
{
	(void)rec;
	if (entry->text.n == 0 || entry->text.n > HOLDER_MAX)
		return logengine_unsound(err);
	return apply_held(l, &entry->change, entry->text, err);
}

static int
step_plain(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
	   struct slu_err *err)
{
	(void)rec;
	return logengine_replay_apply(l, &entry->change, err);
}

static int
step_failure(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
	     struct slu_err *err)
{
	struct change *c = &entry->change;
	const int rc = name_text(l, rec, entry->text, &c->where, err);

	return rc ? rc : logengine_replay_apply(l, c, err);
}

/* KEEP and RESULT, also for a message that the ledger does not have. */
static int
step_result(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
	    struct slu_err *err)
{
	struct change *c = &entry->change;
	int rc;

	if (entry->text.n && !c->keep)
		return logengine_unsound(err);
	rc = open_queue(l, entry->space, entry->queue, &c->queue, err);
	if (!rc)
		rc = name_text(l, rec, entry->text, &c->where, err);
	return rc ? rc : logengine_replay_apply(l, c, err);
}

static int
step_queue(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
	   struct slu_err *err)
{
	struct change *c = &entry->change;
	int rc;

	rc = open_queue(l, entry->space, entry->queue, &c->queue, err);
	if (!rc && c->kind == CHANGE_POLICY)
		rc = logengine_reserve_queue(l, c->queue, err);
	if (!rc)
		rc = logengine_replay_apply(l, c, err);
	if (!rc && c->kind == CHANGE_POLICY && !l->dry)
		logengine_note(l, &l->queues[c->queue].policy, rec->where);
	return rc;
}

/* Skips a queue that the ledger does not have. */
static int
step_forget(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
	    struct slu_err *err)
{
	struct change *c = &entry->change;
	int rc;

	(void)rec;
	c->queue = ledger_queue_find(l->ledger, entry->space, entry->queue);
	if (c->queue == SLAB_NONE)
		return 0;
	rc = logengine_replay_apply(l, c, err);
	if (!rc)
		logengine_forget_queue(l, c->queue);
	return rc;
}

static int
step_remember(struct logengine *l, const struct wal_record *rec,
	      struct logengine_entry *entry, struct slu_err *err)
{
	struct change *c = &entry->change;
	const int rc = open_queue(l, entry->space, entry->queue, &c->queue, err);

	(void)rec;
	if (rc)
		return rc;
	c->idem = ledger_idem_mark(l->ledger, c->queue, entry->idem);
	note_key(l, c);
	return logengine_replay_apply(l, c, err);
}

static int
step_spelling(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
	      struct slu_err *err)
{
	const struct spelling as = { entry->space, entry->queue };
	struct logengine_names names;
	uint32_t queue = SLAB_NONE;
	int rc;

	rc = logengine_fold(entry, &names, err);
	if (!rc)
		rc = open_queue(l, slice_of(names.space), slice_of(names.queue), &queue, err);
	if (!rc)
		rc = logengine_reserve_queue(l, queue, err);
	if (!rc && ledger_queue_spell(l->ledger, queue, &as))
		rc = logengine_no_memory(err);
	if (!rc && !l->dry)
		logengine_note(l, &l->queues[queue].spelling, rec->where);
	return rc;
}

static int
step_ceiling(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
	     struct slu_err *err)
{
	(void)err;
	if (entry->change.number > l->ceiling)
		l->ceiling = entry->change.number;
	l->ceiling_segment = rec->where.segment;
	return 0;
}

static int
step_lock(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
	  struct slu_err *err)
{
	return logengine_replay_lock(l, rec, entry, err);
}

static int
step_document(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
	      struct slu_err *err)
{
	uint64_t where;
	const int rc = name_record(l, rec, &entry->message, &where, err);

	return rc ? rc : logengine_replay_document(l, &entry->message, where, err);
}

static int
step_move(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
	  struct slu_err *err)
{
	struct change *c = &entry->change;
	const int rc = open_queue(l, entry->space, entry->queue, &c->queue, err);

	return rc ? rc : logengine_replay_move(l, rec, entry, err);
}

static int
step_intake(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
	    struct slu_err *err)
{
	struct change *c = &entry->change;
	const int rc = name_text(l, rec, rec->body, &c->where, err);

	return rc ? rc : logengine_replay_apply(l, c, err);
}

static step_fn *const steps[LOGENGINE_TYPES] = {
	[LOGENGINE_ACCEPT] = step_accept,
	[LOGENGINE_CLAIM] = step_plain,
	[LOGENGINE_EXTEND] = step_plain,
	[LOGENGINE_RETURN] = step_plain,
	[LOGENGINE_RETRY] = step_failure,
	[LOGENGINE_DIE] = step_failure,
	[LOGENGINE_DONE] = step_plain,
	[LOGENGINE_KEEP] = step_result,
	[LOGENGINE_REDRIVE] = step_plain,
	[LOGENGINE_PURGE] = step_queue,
	[LOGENGINE_POLICY] = step_queue,
	[LOGENGINE_CEILING] = step_ceiling,
	[LOGENGINE_OPENED] = step_plain,
	[LOGENGINE_CLOSED] = step_plain,
	[LOGENGINE_UNDO] = step_plain,
	[LOGENGINE_MESSAGE] = step_message,
	[LOGENGINE_RESTORE] = step_restore,
	[LOGENGINE_REMEMBER] = step_remember,
	[LOGENGINE_RESULT] = step_result,
	[LOGENGINE_POLICY_RATED] = step_queue,
	[LOGENGINE_ASIDE] = step_plain,
	[LOGENGINE_SPELLING] = step_spelling,
	[LOGENGINE_LOCK] = step_lock,
	[LOGENGINE_DOCUMENT] = step_document,
	[LOGENGINE_MARK] = step_move,
	[LOGENGINE_TAKE] = step_move,
	[LOGENGINE_UNTAKE] = step_move,
	[LOGENGINE_DROP] = step_move,
	[LOGENGINE_GIVEN] = step_move,
	[LOGENGINE_TAKEN] = step_move,
	[LOGENGINE_REFUSED] = step_move,
	[LOGENGINE_CLAIM_OWNED] = step_claim_owned,
	[LOGENGINE_SPARE] = step_plain,
	[LOGENGINE_RESTORE_OWNED] = step_restore,
	[LOGENGINE_FORGET] = step_forget,
	[LOGENGINE_POLICY_FIELDS] = step_queue,
	[LOGENGINE_DIGEST] = step_digest,
	[LOGENGINE_INTAKE] = step_intake,
	[LOGENGINE_HOLD] = step_queue,
	[LOGENGINE_REPLACE] = step_replace,
	[LOGENGINE_PRIORITY] = step_plain,
	[LOGENGINE_BREAKER] = step_queue,
	[LOGENGINE_RETRY_ATTEMPTS] = step_failure,
	[LOGENGINE_DIE_ATTEMPTS] = step_failure,
	[LOGENGINE_RESTORE_ATTEMPTS] = step_restore,
	[LOGENGINE_CANCEL] = step_plain,
	[LOGENGINE_DUE] = step_plain,
};

/* Adds the record to the error text. */
static int
tell(const struct wal_record *rec, int rc, struct slu_err *err)
{
	const struct slu_err why = *err;
	const char *name = logengine_type_name(rec->type);

	return slu_fail(err, (enum slu_code)rc,
			"%08" PRIu32 ".log: record %" PRIu64 " (%s) at %" PRIu32 ": %.100s",
			rec->where.segment, rec->seq, name ? name : "unknown",
			rec->where.offset, why.text);
}

static void
note_id(struct logengine *l, uint64_t id)
{
	l->highest_id = id > l->highest_id ? id : l->highest_id;
}

static bool
is_message(uint8_t type)
{
	return type == LOGENGINE_ACCEPT || type == LOGENGINE_MESSAGE;
}

int
logengine_replay(struct wal *w, const struct wal_record *rec, void *arg, struct slu_err *err)
{
	struct logengine *l = arg;
	struct logengine_entry entry;
	int rc;

	l->wal = w;
	if (l->watch && !l->watch(l->watch_arg, rec))
		return 0;
	l->first_seq = l->records ? l->first_seq : rec->seq;
	l->last_seq = rec->seq;
	entry.highest = 0;
	rc = logengine_decode(rec->type, rec->body, &entry, err);
	if (rc)
		return tell(rec, rc, err);
	entry.change.at = rec->time;
	if (l->has_moved && !logengine_is_restore(rec->type))
		return tell(rec, logengine_unsound(err), err);
	rc = steps[rec->type](l, rec, &entry, err);
	if (rc)
		return tell(rec, rc, err);
	places_see(&l->places, rec->where.segment);
	if (!l->dry)
		logengine_note_need(l, rec->type, is_message(rec->type) && logengine_is_replaced(&entry.message),
				    rec->where.segment);
	note_id(l, entry.change.id);
	note_id(l, entry.highest);
	l->closed = rec->type == LOGENGINE_CLOSED;
	l->records++;
	return 0;
}
