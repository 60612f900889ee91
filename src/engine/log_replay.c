/*
 * log_replay.c - records become a ledger again.
 *
 * The log may begin anywhere in the history: what was needed of the segments before
 * was written anew, behind. So a record may be about a message that is not there
 * (yet): it says nothing then, for the RESTORE that comes knows better.
 */
#include "engine/log_in.h"

#include <inttypes.h>

typedef int step_fn(struct log_engine *l, const struct wal_record *rec,
		    struct log_entry *entry, struct slu_err *err);

static int
no_memory(struct slu_err *err)
{
	return slu_fail(err, SLU_ENOMEM, "out of memory");
}

int
log_unsound(struct slu_err *err)
{
	return slu_fail(err, SLU_ECORRUPT, "it does not follow from those before it");
}

int
log_replay_apply(struct log_engine *l, const struct change *c, struct slu_err *err)
{
	const int rc = ledger_replay(l->ledger, c);

	if (rc == SLU_ENOMEM)
		return no_memory(err);
	if (!rc)
		clerk_follow(l->clerk.locks, c);
	return rc ? log_unsound(err) : 0;
}

static int
open_queue(struct log_engine *l, struct slice space, struct slice queue, uint32_t *out,
	   struct slu_err *err)
{
	const int rc = ledger_queue_open(l->ledger, space, queue, out);

	if (rc == SLU_EBUSY)
		return slu_fail(err, SLU_EINVAL, "there are more queues than max_queues");
	return rc ? no_memory(err) : 0;
}

/* The end of the record is an error or result: *where names it, or is 0. */
static int
name_text(struct log_engine *l, const struct wal_record *rec, struct slice text,
	  uint64_t *where, struct slu_err *err)
{
	*where = 0;
	if (text.n == 0 || l->dry)
		return 0;
	if (places_reserve(&l->places))
		return no_memory(err);
	*where = log_name(l, rec->where, rec->body.n, text.n, SLAB_NONE);
	return 0;
}

/* The same for the record of a message, which may name a file. */
static int
name_record(struct log_engine *l, const struct wal_record *rec, const struct message *m,
	    uint64_t *where, struct slu_err *err)
{
	uint32_t file = SLAB_NONE;
	int rc;

	*where = 0;
	if (l->dry)
		return 0;
	if (places_reserve(&l->places))
		return no_memory(err);
	rc = m->file ? log_files_name(&l->files, m, &file, err) : 0;
	if (rc)
		return rc == SLU_ENOMEM ? rc : log_unsound(err);
	*where = log_name(l, rec->where, rec->body.n, rec->body.n, file);
	return 0;
}

/* What the record of a message says about it. */
static int
read_message(struct log_engine *l, const struct wal_record *rec, const struct message *m,
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
	if (m->key.n)
		c->key = ledger_key_hash(l->ledger, c->queue, m->key);
	if (m->idem.n)
		c->idem = ledger_idem_mark(l->ledger, c->queue, m->idem);
	return name_record(l, rec, m, &c->where, err);
}

/* A digest that follows is about this. */
static void
note_key(struct log_engine *l, const struct change *c)
{
	l->keyed.id = c->id;
	l->keyed.idem = c->idem;
}

/* A digest of something else says nothing: its key was in the segment before, where the log
 * does not begin any more, and was written once more, with its digest. */
static int
step_digest(struct log_engine *l, const struct wal_record *rec, struct log_entry *entry,
	    struct slu_err *err)
{
	struct change *c = &entry->change;

	(void)rec;
	if (l->keyed.id != c->id)
		return 0;
	c->idem = l->keyed.idem;
	return log_replay_apply(l, c, err);
}

static int
step_accept(struct log_engine *l, const struct wal_record *rec, struct log_entry *entry,
	    struct slu_err *err)
{
	const int rc = read_message(l, rec, &entry->message, &entry->change, err);

	note_key(l, &entry->change);
	return rc ? rc : log_replay_apply(l, &entry->change, err);
}

static int
step_message(struct log_engine *l, const struct wal_record *rec, struct log_entry *entry,
	     struct slu_err *err)
{
	const int rc = read_message(l, rec, &entry->message, &entry->change, err);

	l->moved = entry->change;
	l->has_moved = !rc;
	return rc;
}

/* A lease, and who has it; n 0: nobody knows. */
static int
apply_owned(struct log_engine *l, struct change *c, struct slice owner, struct slu_err *err)
{
	int rc;

	if (ledger_owner_open(l->ledger, owner, &c->owner))
		return no_memory(err);
	rc = log_replay_apply(l, c, err);
	ledger_owner_close(l->ledger, c->owner);
	return rc;
}

/* A group may cross segments, so the log may begin with a RESTORE whose MESSAGE was in
 * the segment before. It has been moved once more then. */
static int
step_restore(struct log_engine *l, const struct wal_record *rec, struct log_entry *entry,
	     struct slu_err *err)
{
	struct change *c = &entry->change;
	int rc;

	if (!l->has_moved && l->records == 0)
		return 0;
	if (!l->has_moved || l->moved.id != c->id)
		return log_unsound(err);
	l->has_moved = false;
	c->queue = l->moved.queue;
	c->prio = l->moved.prio;
	c->max_attempts = l->moved.max_attempts;
	c->keep = l->moved.keep;
	c->key = l->moved.key;
	c->idem = l->moved.idem;
	c->where = l->moved.where;
	note_key(l, c);
	rc = name_text(l, rec, entry->text, &c->error, err);
	return rc ? rc : apply_owned(l, c, entry->owner, err);
}

static int
step_claim_owned(struct log_engine *l, const struct wal_record *rec, struct log_entry *entry,
		 struct slu_err *err)
{
	(void)rec;
	if (entry->text.n == 0 || entry->text.n > OWNER_MAX)
		return log_unsound(err);
	return apply_owned(l, &entry->change, entry->text, err);
}

static int
step_plain(struct log_engine *l, const struct wal_record *rec, struct log_entry *entry,
	   struct slu_err *err)
{
	(void)rec;
	return log_replay_apply(l, &entry->change, err);
}

static int
step_failure(struct log_engine *l, const struct wal_record *rec, struct log_entry *entry,
	     struct slu_err *err)
{
	struct change *c = &entry->change;
	const int rc = name_text(l, rec, entry->text, &c->where, err);

	return rc ? rc : log_replay_apply(l, c, err);
}

/* KEEP and RESULT: also for messages that are not there. */
static int
step_result(struct log_engine *l, const struct wal_record *rec, struct log_entry *entry,
	    struct slu_err *err)
{
	struct change *c = &entry->change;
	int rc;

	if (entry->text.n && !c->keep)
		return log_unsound(err);
	rc = open_queue(l, entry->space, entry->queue, &c->queue, err);
	if (!rc)
		rc = name_text(l, rec, entry->text, &c->where, err);
	return rc ? rc : log_replay_apply(l, c, err);
}

static int
step_queue(struct log_engine *l, const struct wal_record *rec, struct log_entry *entry,
	   struct slu_err *err)
{
	struct change *c = &entry->change;
	int rc;

	rc = open_queue(l, entry->space, entry->queue, &c->queue, err);
	if (!rc && c->kind == CHANGE_POLICY)
		rc = log_reserve_queue(l, c->queue, err);
	if (!rc)
		rc = log_replay_apply(l, c, err);
	if (!rc && c->kind == CHANGE_POLICY && !l->dry)
		log_note(l, &l->queues[c->queue].policy, rec->where);
	return rc;
}

/* A queue that the log does not tell of any more is forgotten already. */
static int
step_forget(struct log_engine *l, const struct wal_record *rec, struct log_entry *entry,
	    struct slu_err *err)
{
	struct change *c = &entry->change;
	int rc;

	(void)rec;
	c->queue = ledger_queue_find(l->ledger, entry->space, entry->queue);
	if (c->queue == SLAB_NONE)
		return 0;
	rc = log_replay_apply(l, c, err);
	if (!rc)
		log_forget_queue(l, c->queue);
	return rc;
}

static int
step_remember(struct log_engine *l, const struct wal_record *rec,
	      struct log_entry *entry, struct slu_err *err)
{
	struct change *c = &entry->change;
	const int rc = open_queue(l, entry->space, entry->queue, &c->queue, err);

	(void)rec;
	if (rc)
		return rc;
	c->idem = ledger_idem_mark(l->ledger, c->queue, entry->idem);
	note_key(l, c);
	return log_replay_apply(l, c, err);
}

static int
step_spelling(struct log_engine *l, const struct wal_record *rec, struct log_entry *entry,
	      struct slu_err *err)
{
	const struct spelling as = { entry->space, entry->queue };
	struct log_names names;
	uint32_t queue;
	int rc;

	rc = log_fold(entry, &names, err);
	if (!rc)
		rc = open_queue(l, slice_of(names.space), slice_of(names.queue), &queue, err);
	if (!rc)
		rc = log_reserve_queue(l, queue, err);
	if (!rc && ledger_queue_spell(l->ledger, queue, &as))
		rc = no_memory(err);
	if (!rc && !l->dry)
		log_note(l, &l->queues[queue].spelling, rec->where);
	return rc;
}

static int
step_ceiling(struct log_engine *l, const struct wal_record *rec, struct log_entry *entry,
	     struct slu_err *err)
{
	(void)err;
	if (entry->change.number > l->ceiling)
		l->ceiling = entry->change.number;
	l->ceiling_segment = rec->where.segment;
	return 0;
}

static int
step_lock(struct log_engine *l, const struct wal_record *rec, struct log_entry *entry,
	  struct slu_err *err)
{
	return log_replay_lock(l, rec, entry, err);
}

static int
step_document(struct log_engine *l, const struct wal_record *rec, struct log_entry *entry,
	      struct slu_err *err)
{
	uint64_t where;
	const int rc = name_record(l, rec, &entry->message, &where, err);

	return rc ? rc : log_replay_document(l, &entry->message, where, err);
}

static int
step_move(struct log_engine *l, const struct wal_record *rec, struct log_entry *entry,
	  struct slu_err *err)
{
	struct change *c = &entry->change;
	const int rc = open_queue(l, entry->space, entry->queue, &c->queue, err);

	return rc ? rc : log_replay_move(l, rec, entry, err);
}

static step_fn *const steps[LOG_TYPES] = {
	[LOG_ACCEPT] = step_accept,
	[LOG_CLAIM] = step_plain,
	[LOG_EXTEND] = step_plain,
	[LOG_RETURN] = step_plain,
	[LOG_RETRY] = step_failure,
	[LOG_DIE] = step_failure,
	[LOG_DONE] = step_plain,
	[LOG_KEEP] = step_result,
	[LOG_REDRIVE] = step_plain,
	[LOG_PURGE] = step_queue,
	[LOG_POLICY] = step_queue,
	[LOG_CEILING] = step_ceiling,
	[LOG_OPENED] = step_plain,
	[LOG_CLOSED] = step_plain,
	[LOG_UNDO] = step_plain,
	[LOG_MESSAGE] = step_message,
	[LOG_RESTORE] = step_restore,
	[LOG_REMEMBER] = step_remember,
	[LOG_RESULT] = step_result,
	[LOG_POLICY_RATED] = step_queue,
	[LOG_ASIDE] = step_plain,
	[LOG_SPELLING] = step_spelling,
	[LOG_LOCK] = step_lock,
	[LOG_DOCUMENT] = step_document,
	[LOG_MARK] = step_move,
	[LOG_TAKE] = step_move,
	[LOG_UNTAKE] = step_move,
	[LOG_DROP] = step_move,
	[LOG_GIVEN] = step_move,
	[LOG_TAKEN] = step_move,
	[LOG_REFUSED] = step_move,
	[LOG_CLAIM_OWNED] = step_claim_owned,
	[LOG_SPARE] = step_plain,
	[LOG_RESTORE_OWNED] = step_restore,
	[LOG_FORGET] = step_forget,
	[LOG_POLICY_FIELDS] = step_queue,
	[LOG_DIGEST] = step_digest,
};

/* Add which record it was. */
static int
tell(const struct wal_record *rec, int rc, struct slu_err *err)
{
	const struct slu_err why = *err;
	const char *name = log_type_name(rec->type);

	return slu_fail(err, (enum slu_code)rc,
			"%08" PRIu32 ".log: record %" PRIu64 " (%s) at %" PRIu32 ": %.100s",
			rec->where.segment, rec->seq, name ? name : "unknown",
			rec->where.offset, why.text);
}

static void
note_id(struct log_engine *l, uint64_t id)
{
	l->highest_id = id > l->highest_id ? id : l->highest_id;
}

int
log_replay(struct wal *w, const struct wal_record *rec, void *arg, struct slu_err *err)
{
	struct log_engine *l = arg;
	struct log_entry entry;
	int rc;

	l->wal = w;
	l->first_seq = l->records ? l->first_seq : rec->seq;
	l->last_seq = rec->seq;
	entry.highest = 0;
	rc = log_decode(rec->type, rec->body, &entry, err);
	if (rc)
		return tell(rec, rc, err);
	entry.change.at = rec->time;
	if (l->has_moved && !log_is_restore(rec->type))
		return tell(rec, log_unsound(err), err);
	rc = steps[rec->type](l, rec, &entry, err);
	if (rc)
		return tell(rec, rc, err);
	places_see(&l->places, rec->where.segment);
	note_id(l, entry.change.id);
	note_id(l, entry.highest);
	l->closed = rec->type == LOG_CLOSED;
	l->records++;
	return 0;
}
