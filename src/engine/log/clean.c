/*
 * clean.c - relocates the live records of the oldest segment, slice by slice, until the
 * segment can be recycled.
 *
 *      oldest                                            the group of this run
 *      +------+--------+-------+--------+-----+            +---------+---------+ - -
 *      | head | accept | claim | accept | ... |            | message | restore |
 *      +------+--------+-------+--------+-----+            +---------+---------+ - -
 *                 |       never    |                            ^
 *                 |     needed     +----- gone; its key? -------|--> remember
 *                 +---------------- alive ----------------------+
 *
 *  CLEAN-1  Cleaning handles only records that establish something: message, result,
 *      remembered key, lock, document, mark, batch, intake, hold. Later changes
 *      of a message are behind its record, so they are still in the log or part of the
 *      RESTORE. Policies, spellings and the ceiling are written again from memory, before
 *      the segment is read.
 *  CLEAN-2  An error text is relocated with its message, so it is never before the message.
 *  CLEAN-3  A slice is appended before the ops of its run, so it copies only committed
 *      records.
 *  CLEAN-4  A slice copies 256 KiB, or as many bytes as the last run wrote if that was more,
 *      so cleaning keeps up. It reads at most four times that.
 *  CLEAN-5  Cleaning waits while a purge frees messages: until then it is unknown which
 *      idempotency keys the purge leaves.
 *  CLEAN-6  A payload file stays: only the record that names the file is relocated.
 *  CLEAN-7  When the disk is full and the reserve is incomplete, the oldest segment is
 *      cleaned early, if that makes room and there is room for the copies: with their
 *      RESTOREs they are estimated to need at most three quarters of a segment. After one
 *      pass over all segments this stops until fewer bytes live; otherwise it would go on for
 *      ever.
 *  CLEAN-8  A relocated message that is set aside is behind the record of its batch. So that
 *      record is written again, too, before the segment goes. If the batch is dropped before,
 *      the DROP names its messages itself. The same holds for lock keys.
 *  CLEAN-9  A segment is recycled unread if nothing of it can be needed: it has no live bytes and
 *      only records whose need wal_live counts. A queue that is worked off in order costs no reading.
 *  CLEAN-10  A message that was replaced needs its first record until it is relocated: replay
 *      ignores a REPLACE of a message that does not exist. So cleaning relocates it, from its
 *      new record, when it meets the first one.
 */
#include "engine/log/logengine_private.h"

#include "base/mem.h"
#include "core/ledger/use.h"

enum {
	SLICE = 256 * 1024,
	RESTORE = 96, /* bytes of a RESTORE on disk, without an error text */
	PRIORITY_BODY = 12
};

static void
stop_cleaning(struct logengine *l, const struct slu_err *err)
{
	l->clean.damaged = true;
	wal_cursor_close(&l->clean.cursor);
	log_error(l->log, "cleaning stopped", F_U64("segment", l->clean.segment),
		  F_STR("why", err->text));
}

/* ---- Messages ---- */

static int
read_text(struct logengine *l, uint64_t where, struct slice *out, struct slu_err *err)
{
	struct wal_record rec;
	struct place place;
	int rc;

	places_get(&l->places, where, &place);
	buf_clear(&l->scratch);
	if (l->scratch.size < place.at.length) {
		if (!mem_resize(&l->scratch.p, place.at.length, 1))
			return slu_fail(err, SLU_ENOMEM, "no memory for an error text");
		l->scratch.size = place.at.length;
	}
	rc = wal_read(l->wal, place.at, l->scratch.p, place.at.length, &rec, err);
	if (rc)
		return rc;
	*out = (struct slice){ rec.body.p + rec.body.n - place.size, place.size };
	return 0;
}

uint32_t
logengine_name_file_again(struct logengine *l, uint64_t where)
{
	struct place place;

	places_get(&l->places, where, &place);
	if (place.file != SLAB_NONE)
		logengine_files_name_again(&l->files, place.file);
	return place.file;
}

/* The record of a message has the priority that it was accepted with. */
static void
put_priority(struct logengine *l, const struct ledger_view *v)
{
	const struct logengine_entry entry = {
		.type = LOGENGINE_PRIORITY,
		.change = { .id = v->id, .prio = v->prio },
	};
	struct logengine_bytes bytes;

	logengine_encode(&entry, &bytes);
	(void)logengine_append(l, LOGENGINE_PRIORITY, bytes.parts, bytes.n);
}

static int
move_message(struct logengine *l, const struct wal_record *rec, const struct message *m, uint32_t msg,
	     const struct ledger_view *v, struct slu_err *err)
{
	const uint64_t error = v->error;
	struct logengine_entry entry;
	uint32_t file;
	struct logengine_bytes bytes;
	struct wal_where at;
	int rc = 0;

	entry.type = LOGENGINE_RESTORE;
	entry.text = (struct slice){ 0 };
	if (error)
		rc = read_text(l, error, &entry.text, err);
	if (rc)
		return rc;
	ledger_describe(l->ledger, msg, l->now, &entry.change);
	entry.holder = ledger_holder_text(l->ledger, entry.change.holder);
	if (entry.holder.n)
		entry.type = LOGENGINE_RESTORE_OWNED;
	logengine_type_failure(&entry);
	logengine_encode(&entry, &bytes);
	l->owed += wal_size(PRIORITY_BODY);
	rc = logengine_reserve_restore(l, WAL_FREE, rec->body.n, bytes.size, entry.change.digest, err);
	l->owed -= wal_size(PRIORITY_BODY);
	if (rc)
		return rc;
	file = logengine_name_file_again(l, v->where);
	at = logengine_append(l, LOGENGINE_MESSAGE, &rec->body, 1);
	logengine_note_need(l, LOGENGINE_MESSAGE, logengine_is_replaced(m), at.segment);
	ledger_relocate(l->ledger, msg, logengine_name(l, at, rec->body.n, rec->body.n, file));
	if (v->taken)
		l->queues[v->queue].retake = true;
	at = logengine_append(l, entry.type, bytes.parts, bytes.n);
	l->clean.texts = (15 * l->clean.texts + entry.text.n + 15) / 16;
	(void)logengine_put_digest(l, &entry.change);
	if (v->prio != m->prio)
		put_priority(l, v);
	if (error)
		ledger_relocate_error(l->ledger, msg,
				      logengine_name(l, at, bytes.size, entry.text.n, SLAB_NONE));
	return 0;
}

/* Appends a record. Sets *body, unless it is NULL, to the length of its body. */
static int
append_one(struct logengine *l, const struct logengine_entry *entry, struct wal_where *at,
	   uint64_t *body, struct slu_err *err)
{
	struct logengine_bytes bytes;
	int rc;

	logengine_encode(entry, &bytes);
	rc = logengine_reserve(l, WAL_FREE, bytes.size, err);
	if (rc)
		return rc;
	*at = logengine_append(l, entry->type, bytes.parts, bytes.n);
	if (body)
		*body = bytes.size;
	return 0;
}

/* Relocates the idempotency key of a message that is gone, if the ledger remembers it. */
static int
move_idem(struct logengine *l, struct logengine_entry *entry, uint64_t id, struct slu_err *err)
{
	const uint32_t queue = ledger_queue_find(l->ledger, entry->space, entry->queue);
	struct logengine_bytes bytes;
	struct change c;
	uint32_t length;
	int rc;

	if (queue == SLAB_NONE)
		return 0;
	if (!ledger_describe_idem(l->ledger, ledger_idem_mark(l->ledger, queue, entry->idem),
				  l->now, &c) ||
	    c.id != id)
		return 0;
	entry->type = LOGENGINE_REMEMBER;
	entry->change = c;
	logengine_encode(entry, &bytes);
	rc = logengine_reserve_with_digest(l, WAL_FREE, bytes.size, c.digest, err);
	if (rc)
		return rc;
	length = logengine_append(l, LOGENGINE_REMEMBER, bytes.parts, bytes.n).length;
	length += logengine_put_digest(l, &c);
	l->clean.kept = (15 * l->clean.kept + length) / 16;
	return 0;
}

/* CLEAN-10. The record of the message is read into memory of its own: move_message uses the scratch buffer. */
static int
move_replaced(struct logengine *l, uint32_t msg, const struct ledger_view *v, struct slu_err *err)
{
	struct logengine_entry entry;
	struct wal_record rec;
	struct place place;
	char *bytes;
	int rc;

	places_get(&l->places, v->where, &place);
	if (!wal_is_written(l->wal, place.at)) /* this slice has relocated it: CLEAN-3 */
		return 0;
	bytes = mem_alloc(place.at.length);
	if (!bytes)
		return slu_fail(err, SLU_ENOMEM, "no memory for a message");
	rc = wal_read(l->wal, place.at, bytes, place.at.length, &rec, err);
	if (!rc && rec.type == LOGENGINE_REPLACE)
		rc = logengine_decode(rec.type, rec.body, &entry, err);
	if (!rc && rec.type == LOGENGINE_REPLACE)
		rc = move_message(l, &rec, &entry.message, msg, v, err);
	mem_free(bytes);
	return rc;
}

static int
clean_message(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
	      struct slu_err *err)
{
	const struct message *m = &entry->message;
	const uint32_t msg = ledger_find_any(l->ledger, m->id);
	struct ledger_view v = { 0 };

	if (msg != SLAB_NONE)
		ledger_get(l->ledger, msg, &v);
	if (msg != SLAB_NONE && places_is(&l->places, v.where, rec->where))
		return move_message(l, rec, m, msg, &v, err);
	if (msg != SLAB_NONE)
		return move_replaced(l, msg, &v, err);
	if (m->idem.n == 0)
		return 0;
	entry->space = m->space;
	entry->queue = m->queue;
	entry->idem = m->idem;
	return move_idem(l, entry, m->id, err);
}

/* ---- The rest ---- */

static int
clean_remember(struct logengine *l, const struct wal_record *rec,
	       struct logengine_entry *entry, struct slu_err *err)
{
	(void)rec;
	return move_idem(l, entry, entry->change.id, err);
}

/* KEEP and RESULT. */
static int
clean_result(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
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
	entry->type = LOGENGINE_RESULT;
	entry->change.keep = result.until;
	rc = append_one(l, entry, &at, &body, err);
	if (!rc && entry->text.n)
		ledger_relocate_result(l->ledger, id,
				       logengine_name(l, at, body, entry->text.n, SLAB_NONE));
	return rc;
}

static int
clean_intake(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
	     struct slu_err *err)
{
	const uint8_t *const source = entry->intake.source;
	const uint64_t where = ledger_intake_where(l->ledger, source);
	struct wal_where at;
	uint64_t body;
	int rc;

	if (!where || !places_is(&l->places, where, rec->where))
		return 0;
	rc = append_one(l, entry, &at, &body, err);
	if (!rc)
		ledger_relocate_intake(l->ledger, source, logengine_name(l, at, body, body, SLAB_NONE));
	return rc;
}

/* A hold that still lasts is written again. Older records of the scope went before it. */
static int
clean_hold(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
	   struct slu_err *err)
{
	const uint32_t queue = ledger_queue_find(l->ledger, entry->space, entry->queue);
	const struct change *c = &entry->change;
	struct wal_where at;

	(void)rec;
	if (queue == SLAB_NONE || !c->until || c->until <= l->now ||
	    ledger_hold_end(l->ledger, queue, (enum gate_kind)c->scope, c->share) != c->until)
		return 0;
	return append_one(l, entry, &at, NULL, err);
}

/* The same for a circuit that is not closed. */
static int
clean_breaker(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
	      struct slu_err *err)
{
	const uint32_t queue = ledger_queue_find(l->ledger, entry->space, entry->queue);
	const struct change *c = &entry->change;
	const struct ledger_scope scope = { (enum gate_kind)c->scope, c->share };
	struct wal_where at;

	(void)rec;
	if (queue == SLAB_NONE || !c->until || ledger_breaker_until(l->ledger, queue, &scope, c->value) != c->until)
		return 0;
	return append_one(l, entry, &at, NULL, err);
}

typedef int clean_fn(struct logengine *l, const struct wal_record *rec,
		     struct logengine_entry *entry, struct slu_err *err);

/* CLEAN-1 */
static clean_fn *const steps[LOGENGINE_TYPES] = {
	[LOGENGINE_ACCEPT] = clean_message,
	[LOGENGINE_MESSAGE] = clean_message,
	[LOGENGINE_REPLACE] = clean_message,
	[LOGENGINE_KEEP] = clean_result,
	[LOGENGINE_RESULT] = clean_result,
	[LOGENGINE_REMEMBER] = clean_remember,
	[LOGENGINE_LOCK] = logengine_clean_lock,
	[LOGENGINE_DOCUMENT] = logengine_clean_document,
	[LOGENGINE_MARK] = logengine_clean_move,
	[LOGENGINE_TAKE] = logengine_clean_move,
	[LOGENGINE_GIVEN] = logengine_clean_move,
	[LOGENGINE_TAKEN] = logengine_clean_move,
	[LOGENGINE_REFUSED] = logengine_clean_move,
	[LOGENGINE_INTAKE] = clean_intake,
	[LOGENGINE_HOLD] = clean_hold,
	[LOGENGINE_BREAKER] = clean_breaker,
};

/* CLEAN-9: wal_live counts messages, but not their idempotency keys. */
static bool
is_counted(uint8_t type, bool keyed)
{
	return (type == LOGENGINE_ACCEPT || type == LOGENGINE_MESSAGE) && !keyed;
}

void
logengine_note_need(struct logengine *l, uint8_t type, bool keyed, uint32_t segment)
{
	if (steps[type] && !is_counted(type, keyed))
		wal_set_uncounted(l->wal, segment);
}

/* ---- What memory has ---- */

static int
rewrite_policy(struct logengine *l, uint32_t queue, struct slu_err *err)
{
	struct logengine_entry entry;
	struct ledger_queue_view v;
	struct wal_where at;
	int rc;

	ledger_queue_get(l->ledger, queue, &v);
	entry.type = logengine_policy_type(v.policy);
	entry.space = slice_of(v.space_name);
	entry.queue = slice_of(v.name);
	entry.policy = *v.policy;
	rc = append_one(l, &entry, &at, NULL, err);
	if (!rc)
		logengine_note(l, &l->queues[queue].policy, at);
	return rc;
}

static int
rewrite_spelling(struct logengine *l, uint32_t queue, struct slu_err *err)
{
	struct logengine_entry entry;
	struct ledger_queue_view v;
	struct wal_where at;
	int rc;

	ledger_queue_get(l->ledger, queue, &v);
	entry.type = LOGENGINE_SPELLING;
	entry.space = slice_of(v.space_shown);
	entry.queue = slice_of(v.shown);
	rc = append_one(l, &entry, &at, NULL, err);
	if (!rc)
		logengine_note(l, &l->queues[queue].spelling, at);
	return rc;
}

/* Relocates the policies and spellings of the segment, and its ceiling last. */
static int
rewrite_next(struct logengine *l, uint64_t *seen, struct slu_err *err)
{
	struct logengine_clean *c = &l->clean;
	const uint32_t queue = c->queue;
	int rc = 0;

	*seen += sizeof *l->queues;
	if (queue < l->n_queues && l->queues[queue].policy.segment == c->segment)
		rc = rewrite_policy(l, queue, err);
	if (!rc && queue < l->n_queues && l->queues[queue].spelling.segment == c->segment)
		rc = rewrite_spelling(l, queue, err);
	c->queue += !rc;
	if (rc || queue < l->n_queues)
		return rc;
	if (l->ceiling_segment == c->segment) {
		rc = logengine_reserve(l, WAL_FREE, 0, err);
		if (rc)
			return rc;
		logengine_put_ceiling(l, ledger_counter(l->ledger));
	}
	c->rewritten = true;
	c->read = !wal_is_needed(l->wal, c->segment);
	return c->read ? 0 : wal_cursor_open(&c->cursor, l->wal, c->segment, err);
}

/* ---- Slices ---- */

/* CLEAN-5 */
static bool
is_purging(struct logengine *l)
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

/* CLEAN-7. Assumes that the messages of the segment have the mean size, and their errors the size of the last ones relocated. */
static bool
is_worth_it(struct logengine *l, uint32_t oldest, uint32_t messages)
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
	copies += copies * messages / (stats.live + 1) * (RESTORE + l->clean.texts);
	rest = wal_size_of(l->wal, oldest + stats.segments - 1) - stats.end;
	return copies <= size / 4 * 3 && copies <= stats.spare_bytes + rest;
}

/* Whether the log has more than twice its live bytes (remembered keys count as live), or CLEAN-7
 * applies. */
static bool
is_due(struct logengine *l)
{
	const uint32_t oldest = wal_oldest(l->wal);
	struct ledger_size size;

	ledger_size(l->ledger, &size);
	return oldest && (wal_excess(l->wal) > 2 * size.remembered * l->clean.kept ||
			  is_worth_it(l, oldest, size.messages));
}

/* CLEAN-7 */
static void
count_tries(struct logengine *l)
{
	struct logengine_clean *c = &l->clean;
	struct wal_stats stats;

	wal_stats(l->wal, &stats);
	if (c->tried == 0 || stats.live < c->least) {
		c->tried = 0;
		c->least = stats.live;
	}
	c->tried = wal_is_short(l->wal) ? c->tried + 1 : 0;
}

static bool
begin(struct logengine *l)
{
	struct logengine_clean *c = &l->clean;

	if (c->segment)
		return true;
	if (!is_due(l))
		return false;
	count_tries(l);
	c->segment = wal_oldest(l->wal);
	c->queue = 0;
	c->read = c->rewritten = false;
	return true;
}

/* Ends this attempt. The next one does not relocate the same records again. */
static void
try_later(struct logengine *l)
{
	wal_cursor_close(&l->clean.cursor);
	l->clean.segment = 0;
	l->clean.blocked = true;
}

/* Whether the record is of a message that is gone without a key to remember: nothing else of it is read. Most are. */
static bool
is_of_past(const struct logengine *l, const struct wal_record *rec)
{
	bool has_key = true;
	uint64_t id;

	if (!is_counted(rec->type, false))
		return false;
	id = message_id_of(rec->body, &has_key);
	return id && !has_key && ledger_find_any(l->ledger, id) == SLAB_NONE;
}

/* Handles one record. If it does not return 0, the slice ends. */
static int
clean_one(struct logengine *l, uint64_t *seen, struct slu_err *err)
{
	struct logengine_clean *c = &l->clean;
	struct logengine_entry entry;
	struct wal_record rec;
	int rc;

	rc = wal_cursor_next(&c->cursor, &rec, err);
	if (rc)
		return rc;
	c->read = rec.type == 0;
	*seen += rec.where.length;
	if (c->read || rec.type >= LOGENGINE_TYPES || !steps[rec.type] || is_of_past(l, &rec))
		return 0;
	rc = logengine_decode(rec.type, rec.body, &entry, err);
	return rc ? rc : steps[rec.type](l, &rec, &entry, err);
}

void
logengine_clean_slice(struct logengine *l)
{
	const uint64_t slice = l->appended > SLICE ? l->appended : SLICE;
	struct logengine_clean *c = &l->clean;
	struct slu_err err;
	uint64_t seen = 0;
	int rc = 0;

	no_err(&err);
	l->appended = 0;
	c->slice = 0;
	c->again = c->blocked = false;
	if (c->damaged)
		return;
	if (is_purging(l)) {
		c->again = c->segment != 0;
		return;
	}
	if (!begin(l))
		return;
	while (!rc && !c->read && seen < 4 * slice && l->appended < slice)
		rc = c->rewritten ? clean_one(l, &seen, &err) : rewrite_next(l, &seen, &err);
	if (!rc && c->read)
		rc = logengine_retake(l, &err);
	c->slice = l->appended;
	c->copied += l->appended;
	l->appended = 0;
	c->again = !rc && !c->read;
	if (rc == SLU_EFULL || rc == SLU_ENOMEM)
		try_later(l);
	else if (rc)
		stop_cleaning(l, &err);
}

/* LOGENGINE-13: whether the store has the copies of the segment, if it has to. */
static bool
has_copies_home(struct logengine *l)
{
	struct logengine_clean *const c = &l->clean;
	struct wal_stats stats;

	if (!l->stored.front.on)
		return true;
	if (!c->home.segment) {
		wal_stats(l->wal, &stats);
		c->home = (struct wal_where){ .segment = stats.last, .offset = stats.end };
	}
	if (!logengine_front_is_home(l, c->home))
		return false;
	c->home = (struct wal_where){ 0 };
	return true;
}

int
logengine_clean_end(struct logengine *l, struct slu_err *err)
{
	struct logengine_clean *c = &l->clean;
	int rc;

	if (c->damaged)
		return 0;
	if (!c->segment)
		c->again = !c->blocked && is_due(l);
	if (!c->segment || !c->read)
		return 0;
	wal_cursor_close(&c->cursor);
	if (wal_live_in(l->wal, c->segment)) { /* CLEAN-1 does not hold: keep the segment */
		(void)slu_fail(err, SLU_ECORRUPT, "live bytes are left in the segment");
		stop_cleaning(l, err);
		return 0;
	}
	if (!has_copies_home(l))
		return 0;
	rc = wal_recycle(l->wal, err);
	c->segment = 0;
	c->again = !rc && is_due(l);
	return rc;
}
