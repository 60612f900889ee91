/*
 * log_clean.c - the oldest segment, slice by slice: what is still needed is written
 * anew, the rest goes with the file.
 *
 *      oldest                                            the group of this run
 *      +------+--------+-------+--------+-----+            +---------+---------+ - -
 *      | head | accept | claim | accept | ... |            | message | restore |
 *      +------+--------+-------+--------+-----+            +---------+---------+ - -
 *                 |       never    |                            ^
 *                 |     needed     +------ gone: its key? ------|--> remember
 *                 +-------------- still there ------------------+
 *
 *  C1  Only what establishes something is looked at: message, result, remembered key,
 *      policy, spelling, ceiling, lock, document, mark, batch. What happened to a message afterwards
 *      stands behind its record in the log, so it is either in the log still or part of the
 *      RESTORE.
 *  C2  An error text goes with its message, so it never lies before it.
 *  C3  A slice is appended before the ops of its run: all that it copies was committed.
 *  C4  A slice copies 256 KiB, or as much as the run before it wrote if that was more:
 *      so cleaning keeps up. It reads 1 MiB, or four times that.
 *  C5  While a purge is being freed it is not known which idempotency keys it leaves
 *      behind: cleaning waits.
 *  C6  A payload that has a file stays there: only the record that names it moves.
 *  C7  When the disk is full and the reserve is being used up, the oldest segment is cleaned
 *      as soon as that gives room, and there is room for it: its copies, each with its
 *      RESTORE, are likely to need three quarters of a segment at most. Once all of them were
 *      cleaned so it is not done again before less lives: it would go round for ever.
 *  C8  A message that is set aside and was moved stands behind the record that says so. So
 *      that is written anew, too, before the segment goes. If the batch is dropped before:
 *      that names its messages itself. The same goes for lock keys.
 */
#include "engine/log_in.h"

#include <assert.h>
#include <inttypes.h>

enum {
	SLICE = 256 * 1024,
	RESTORE = 96 /* bytes of one on disk, without an error text */
};

static void
stop_cleaning(struct log_engine *l, const struct slu_err *err)
{
	l->clean.damaged = true;
	wal_cursor_close(&l->clean.cursor);
	log_error(l->log, "cleaning stopped", F_U64("segment", l->clean.segment),
		  F_STR("why", err->text));
}

/* ---- Messages ---- */

static int
read_text(struct log_engine *l, uint64_t where, struct slice *out, struct slu_err *err)
{
	struct wal_record rec;
	struct place place;
	int rc;

	places_get(&l->places, where, &place);
	buf_clear(&l->scratch);
	if (l->scratch.size < place.at.length) {
		char *p = mem_realloc(l->scratch.p, place.at.length);

		if (!p)
			return slu_fail(err, SLU_ENOMEM, "no memory for an error text");
		l->scratch.p = p;
		l->scratch.size = place.at.length;
	}
	rc = wal_read(l->wal, place.at, l->scratch.p, place.at.length, &rec, err);
	if (rc)
		return rc;
	*out = (struct slice){ rec.body.p + rec.body.n - place.size, place.size };
	return 0;
}

/* Room for two records and a digest, and for two places. */
static int
reserve_move(struct log_engine *l, uint64_t message, uint64_t restore, uint64_t digest,
	     struct slu_err *err)
{
	int rc;

	if (slab_reserve(&l->places.rows, 2) || map_reserve(&l->places.map, 2))
		return slu_fail(err, SLU_ENOMEM, "no memory for the place of a record");
	l->owed += wal_size(restore);
	rc = log_reserve_with_digest(l, WAL_FREE, message > restore ? message : restore, digest,
				     err);
	l->owed -= wal_size(restore);
	return rc;
}

/* C6: the payload's file, named by the record's copy, too. */
uint32_t
log_name_file_again(struct log_engine *l, uint64_t where)
{
	struct place place;

	places_get(&l->places, where, &place);
	if (place.file != SLAB_NONE)
		log_files_name_again(&l->files, place.file);
	return place.file;
}

static int
move_message(struct log_engine *l, const struct wal_record *rec, uint32_t msg,
	     const struct ledger_view *v, struct slu_err *err)
{
	const uint64_t error = v->error;
	struct log_entry entry;
	uint32_t file;
	struct log_bytes bytes;
	struct wal_where at;
	int rc = 0;

	entry.type = LOG_RESTORE;
	entry.text = (struct slice){ 0 };
	if (error)
		rc = read_text(l, error, &entry.text, err);
	if (rc)
		return rc;
	ledger_describe(l->ledger, msg, l->now, &entry.change);
	entry.owner = ledger_owner_text(l->ledger, entry.change.owner);
	if (entry.owner.n)
		entry.type = LOG_RESTORE_OWNED;
	log_encode(&entry, &bytes);
	rc = reserve_move(l, rec->body.n, bytes.size, entry.change.digest, err);
	if (rc)
		return rc;
	file = log_name_file_again(l, v->where);
	at = log_append(l, LOG_MESSAGE, &rec->body, 1);
	ledger_move(l->ledger, msg, log_name(l, at, rec->body.n, rec->body.n, file));
	if (v->taken)
		l->queues[v->queue].retake = true;
	at = log_append(l, entry.type, bytes.parts, bytes.n);
	(void)log_put_digest(l, &entry.change);
	if (error)
		ledger_move_error(l->ledger, msg,
				  log_name(l, at, bytes.size, entry.text.n, SLAB_NONE));
	return 0;
}

/* body, unless NULL, is how long the record's is. */
static int
append_one(struct log_engine *l, const struct log_entry *entry, struct wal_where *at,
	   uint64_t *body, struct slu_err *err)
{
	struct log_bytes bytes;
	int rc;

	log_encode(entry, &bytes);
	rc = log_reserve(l, WAL_FREE, bytes.size, err);
	if (rc)
		return rc;
	*at = log_append(l, entry->type, bytes.parts, bytes.n);
	if (body)
		*body = bytes.size;
	return 0;
}

/* An idempotency key whose message id is gone. */
static int
move_idem(struct log_engine *l, struct log_entry *entry, uint64_t id, struct slu_err *err)
{
	const uint32_t queue = ledger_queue_find(l->ledger, entry->space, entry->queue);
	struct log_bytes bytes;
	struct change c;
	uint32_t length;
	int rc;

	if (queue == SLAB_NONE)
		return 0;
	if (!ledger_describe_idem(l->ledger, ledger_idem_mark(l->ledger, queue, entry->idem),
				  l->now, &c) ||
	    c.id != id)
		return 0;
	entry->type = LOG_REMEMBER;
	entry->change = c;
	log_encode(entry, &bytes);
	rc = log_reserve_with_digest(l, WAL_FREE, bytes.size, c.digest, err);
	if (rc)
		return rc;
	length = log_append(l, LOG_REMEMBER, bytes.parts, bytes.n).length;
	length += log_put_digest(l, &c);
	l->clean.kept = (15 * l->clean.kept + length) / 16;
	return 0;
}

static int
clean_message(struct log_engine *l, const struct wal_record *rec, struct log_entry *entry,
	      struct slu_err *err)
{
	const struct message *m = &entry->message;
	const uint32_t msg = ledger_find_any(l->ledger, m->id);
	struct ledger_view v = { 0 };

	if (msg != SLAB_NONE)
		ledger_get(l->ledger, msg, &v);
	if (msg != SLAB_NONE && places_is(&l->places, v.where, rec->where))
		return move_message(l, rec, msg, &v, err);
	if (msg != SLAB_NONE || m->idem.n == 0)
		return 0;
	entry->space = m->space;
	entry->queue = m->queue;
	entry->idem = m->idem;
	return move_idem(l, entry, m->id, err);
}

/* ---- The rest ---- */

static int
clean_remember(struct log_engine *l, const struct wal_record *rec,
	       struct log_entry *entry, struct slu_err *err)
{
	(void)rec;
	return move_idem(l, entry, entry->change.id, err);
}

/* Of KEEP and RESULT. */
static int
clean_result(struct log_engine *l, const struct wal_record *rec, struct log_entry *entry,
	     struct slu_err *err)
{
	const uint64_t id = entry->change.id;
	struct ledger_result result;
	struct wal_where at;
	uint64_t body;
	int rc;

	if (!entry->change.keep || !ledger_result_any(l->ledger, id, &result))
		return 0;
	if (entry->text.n ? !places_is(&l->places, result.where, rec->where)
			  : result.where != 0)
		return 0;
	entry->type = LOG_RESULT;
	entry->change.keep = result.until;
	rc = append_one(l, entry, &at, &body, err);
	if (!rc && entry->text.n)
		ledger_result_move(l->ledger, id,
				   log_name(l, at, body, entry->text.n, SLAB_NONE));
	return rc;
}

static int
clean_policy(struct log_engine *l, const struct wal_record *rec, struct log_entry *entry,
	     struct slu_err *err)
{
	const uint32_t queue = ledger_queue_find(l->ledger, entry->space, entry->queue);
	struct ledger_queue_view v;
	struct wal_where at;
	int rc;

	if (queue == SLAB_NONE || queue >= l->n_queues ||
	    l->queues[queue].policy.segment != rec->where.segment)
		return 0;
	ledger_queue_get(l->ledger, queue, &v);
	entry->policy = *v.policy;
	entry->type = log_policy_type(v.policy); /* which another of this segment may not be */
	rc = append_one(l, entry, &at, NULL, err);
	if (!rc)
		log_note(l, &l->queues[queue].policy, at);
	return rc;
}

static int
clean_spelling(struct log_engine *l, const struct wal_record *rec,
	       struct log_entry *entry, struct slu_err *err)
{
	struct log_names names;
	struct wal_where at;
	uint32_t queue;
	int rc;

	rc = log_fold(entry, &names, err);
	if (rc)
		return rc;
	queue = ledger_queue_find(l->ledger, slice_of(names.space), slice_of(names.queue));
	if (queue == SLAB_NONE || queue >= l->n_queues ||
	    l->queues[queue].spelling.segment != rec->where.segment)
		return 0;
	rc = append_one(l, entry, &at, NULL, err);
	if (!rc)
		log_note(l, &l->queues[queue].spelling, at);
	return rc;
}

static int
clean_ceiling(struct log_engine *l, const struct wal_record *rec, struct log_entry *entry,
	      struct slu_err *err)
{
	int rc;

	(void)entry;
	if (l->ceiling_segment != rec->where.segment)
		return 0;
	rc = log_reserve(l, WAL_FREE, 0, err);
	if (!rc)
		log_put_ceiling(l, ledger_counter(l->ledger));
	return rc;
}

typedef int clean_fn(struct log_engine *l, const struct wal_record *rec,
		     struct log_entry *entry, struct slu_err *err);

/* C1 */
static clean_fn *const steps[LOG_TYPES] = {
	[LOG_ACCEPT] = clean_message,
	[LOG_MESSAGE] = clean_message,
	[LOG_KEEP] = clean_result,
	[LOG_RESULT] = clean_result,
	[LOG_REMEMBER] = clean_remember,
	[LOG_POLICY] = clean_policy,
	[LOG_CEILING] = clean_ceiling,
	[LOG_POLICY_RATED] = clean_policy,
	[LOG_SPELLING] = clean_spelling,
	[LOG_LOCK] = log_clean_lock,
	[LOG_DOCUMENT] = log_clean_document,
	[LOG_MARK] = log_clean_move,
	[LOG_TAKE] = log_clean_move,
	[LOG_GIVEN] = log_clean_move,
	[LOG_TAKEN] = log_clean_move,
	[LOG_REFUSED] = log_clean_move,
	[LOG_POLICY_FIELDS] = clean_policy,
};

/* ---- Slices ---- */

/* C5 */
static bool
is_purging(struct log_engine *l)
{
	while (l->n_purging > 0) {
		struct ledger_queue_view v;

		ledger_queue_get(l->ledger, l->purging[l->n_purging - 1], &v);
		if (v.purging)
			return true;
		l->n_purging--;
	}
	return false;
}

/* C7: its messages are taken to be as large as all are. */
static bool
is_worth_it(struct log_engine *l, uint32_t oldest, uint32_t messages)
{
	const uint64_t size = wal_size_of(l->wal, oldest);
	uint64_t copies = (uint64_t)wal_live_in(l->wal, oldest);
	struct wal_stats stats;
	uint64_t rest;

	if (!wal_is_short(l->wal))
		return false;
	wal_stats(l->wal, &stats);
	if (l->clean.tried >= stats.segments && stats.live >= l->clean.least)
		return false;
	copies += copies * messages / (stats.live + 1) * RESTORE;
	rest = wal_size_of(l->wal, oldest + stats.segments - 1) - stats.end;
	return copies <= size / 4 * 3 && copies <= stats.spare_bytes + rest;
}

/* What the log may have beyond twice what lives; remembered keys live, too. */
static bool
is_due(struct log_engine *l)
{
	const uint32_t oldest = wal_oldest(l->wal);
	struct ledger_size size;

	ledger_size(l->ledger, &size);
	return oldest && (wal_excess(l->wal) > 2 * size.remembered * l->clean.kept ||
			  is_worth_it(l, oldest, size.messages));
}

/* C7 */
static void
count_tries(struct log_engine *l)
{
	struct log_clean *c = &l->clean;
	struct wal_stats stats;

	wal_stats(l->wal, &stats);
	if (c->tried == 0 || stats.live < c->least) {
		c->tried = 0;
		c->least = stats.live;
	}
	c->tried = wal_is_short(l->wal) ? c->tried + 1 : 0;
}

static bool
begin(struct log_engine *l, struct slu_err *err)
{
	struct log_clean *c = &l->clean;

	if (c->segment)
		return true;
	if (!is_due(l))
		return false;
	count_tries(l);
	c->segment = wal_oldest(l->wal);
	c->read = false;
	if (wal_cursor_open(&c->cursor, l->wal, c->segment, err)) {
		c->segment = 0;
		return false;
	}
	return true;
}

/* Later: what was moved meanwhile is not moved again. */
static void
begin_anew(struct log_engine *l)
{
	wal_cursor_close(&l->clean.cursor);
	l->clean.segment = 0;
	l->clean.blocked = true;
}

/* One record. Other than 0: no more in this slice. */
static int
clean_one(struct log_engine *l, uint64_t *seen, struct slu_err *err)
{
	struct log_clean *c = &l->clean;
	struct log_entry entry;
	struct wal_record rec;
	int rc;

	rc = wal_cursor_next(&c->cursor, &rec, err);
	if (rc)
		return rc;
	c->read = rec.type == 0;
	*seen += rec.where.length;
	if (c->read || rec.type >= LOG_TYPES || !steps[rec.type])
		return 0;
	rc = log_decode(rec.type, rec.body, &entry, err);
	return rc ? rc : steps[rec.type](l, &rec, &entry, err);
}

void
log_clean_slice(struct log_engine *l)
{
	const uint64_t slice = l->appended > SLICE ? l->appended : SLICE;
	struct log_clean *c = &l->clean;
	struct slu_err err = { 0 };
	uint64_t seen = 0;
	int rc = 0;

	l->appended = 0;
	c->slice = 0;
	c->again = c->blocked = false;
	if (c->damaged || is_purging(l) || !begin(l, &err))
		return;
	while (!rc && !c->read && seen < 4 * slice && l->appended < slice)
		rc = clean_one(l, &seen, &err);
	if (!rc && c->read)
		rc = log_retake(l, &err);
	c->slice = l->appended;
	c->copied += l->appended;
	l->appended = 0;
	c->again = !rc && !c->read;
	if (rc == SLU_EFULL || rc == SLU_ENOMEM)
		begin_anew(l);
	else if (rc)
		stop_cleaning(l, &err);
}

int
log_clean_end(struct log_engine *l, struct slu_err *err)
{
	struct log_clean *c = &l->clean;
	int rc;

	if (c->damaged)
		return 0;
	if (!c->segment)
		c->again = !c->blocked && is_due(l);
	if (!c->segment || !c->read)
		return 0;
	wal_cursor_close(&c->cursor);
	if (wal_live_in(l->wal, c->segment)) { /* then C1 does not hold: keep it */
		(void)slu_fail(err, SLU_ECORRUPT, "something lives where nothing should");
		stop_cleaning(l, err);
		return 0;
	}
	rc = wal_recycle(l->wal, err);
	c->segment = 0;
	c->again = !rc && is_due(l);
	return rc;
}
