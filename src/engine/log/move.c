/*
 * move.c - moves in the log: writes, replays and cleans received messages, marks and
 * batches.
 *
 *      received:  | message | restore | message | restore | ... | given |     one group
 *      sent:      | taken: its messages |  . . .  | drop: its messages |      see CLEAN-8
 */
#include "engine/log/logengine_private.h"

#include "base/le.h"
#include "engine/move_keys.h"

enum {
	ID = 8 /* bytes */
};

/* ---- Keeping ---- */

int
logengine_keep_given(struct ledgerengine *k, const struct message *m, struct change *c,
		     struct slice error, struct slu_err *err)
{
	struct logengine *l = logengine_of(k);
	struct logengine_entry entry;
	struct logengine_bytes bytes;
	struct wal_where at;
	int rc;

	c->at = l->now;
	entry.type = LOGENGINE_RESTORE;
	entry.change = *c;
	entry.holder = (struct slice){ 0 };
	entry.text = error;
	logengine_type_attempts(l, &entry, &error);
	logengine_encode(&entry, &bytes);
	rc = logengine_keep_spelling(l, c->queue, WAL_NEW, err);
	if (!rc)
		rc = logengine_encode_head(l, m, err);
	if (!rc) {
		logengine_owe_undo(l);
		rc = logengine_reserve_restore(l, WAL_NEW, logengine_message_size(l, m), bytes.size, c->digest, err);
	}
	if (!rc)
		rc = logengine_put_message(l, LOGENGINE_MESSAGE, m, c->number, &c->where, err);
	if (rc)
		return rc;
	at = logengine_append(l, entry.type, bytes.parts, bytes.n);
	(void)logengine_put_digest(l, c);
	if (error.n)
		c->error = logengine_name(l, at, bytes.size, error.n, SLAB_NONE);
	l->highest_id = m->id > l->highest_id ? m->id : l->highest_id;
	l->must_sync = true;
	return 0;
}

/* Lists the ids of the batch's messages or results in scratch. */
static int
list_batch(struct logengine *l, uint32_t queue, uint32_t n, struct slice *text,
	   struct slu_err *err)
{
	char id[ID];
	uint32_t msg;

	buf_clear(&l->scratch);
	for (uint32_t i = 0; i < n; i++) {
		le64_put(id, ledger_batch_at(l->ledger, queue, i, &msg));
		buf_put(&l->scratch, id, ID);
	}
	if (l->scratch.failed)
		return slu_fail(err, SLU_ENOMEM, "no memory for the record of a batch");
	*text = buf_slice(&l->scratch);
	return 0;
}

int
logengine_move_text(struct logengine *l, const struct change *c, struct slice *text,
		    struct slu_err *err)
{
	struct ledger_moving v;

	if (c->kind == CHANGE_MARK)
		*text = slice_of(c->move->shard);
	if (c->kind != CHANGE_DROP)
		return 0;
	ledger_moving(l->ledger, c->queue, &v);
	if (v.what == BATCH_LOCKS)
		*text = c->move->names;
	else if (v.what != BATCH_KEYS)
		return list_batch(l, c->queue, v.n, text, err);
	return 0;
}

/* ---- Remembered keys: their texts are in the records of their messages ---- */

/* Passes the idempotency key of the record on, if it is one of the queue. Returns false if
 * the receiver has enough. */
static bool
tell_key(struct logengine *l, const struct wal_record *rec, struct ledgerengine_recall *to)
{
	struct logengine_entry entry;
	struct slice space, queue, key;

	if ((rec->type != LOGENGINE_ACCEPT && rec->type != LOGENGINE_MESSAGE && rec->type != LOGENGINE_REMEMBER) ||
	    logengine_decode(rec->type, rec->body, &entry, NULL))
		return true;
	space = rec->type == LOGENGINE_REMEMBER ? entry.space : entry.message.space;
	queue = rec->type == LOGENGINE_REMEMBER ? entry.queue : entry.message.queue;
	key = rec->type == LOGENGINE_REMEMBER ? entry.idem : entry.message.idem;
	if (!key.n || ledger_queue_find(l->ledger, space, queue) != l->recall.queue)
		return true;
	return to->tell(to, rec->type == LOGENGINE_REMEMBER ? entry.change.id : entry.message.id, key);
}

/* Reads a segment. Sets *more to false if the receiver has enough. */
static int
recall_segment(struct logengine *l, uint32_t segment, struct ledgerengine_recall *to, bool *more,
	       struct slu_err *err)
{
	struct wal_cursor cursor;
	struct wal_record rec;
	int rc;

	rc = wal_cursor_open(&cursor, l->wal, segment, err);
	if (rc)
		return rc == SLU_ENOTFOUND ? 0 : rc;
	do
		rc = wal_cursor_next(&cursor, &rec, err);
	while (!rc && rec.type && (*more = tell_key(l, &rec, to)));
	wal_cursor_close(&cursor);
	return rc;
}

/* Reads a segment per call. A key whose message ends after its segment was read is found in
 * the next round, so the search ends with a round that found nothing. */
int
logengine_recall(struct ledgerengine *k, uint32_t queue, struct ledgerengine_recall *to, bool *end,
		 struct slu_err *err)
{
	struct logengine *l = logengine_of(k);
	struct logengine_recall *r = &l->recall;
	const uint32_t oldest = wal_oldest(l->wal);
	bool more = true;
	int rc;

	if (r->queue != queue || !r->segment)
		*r = (struct logengine_recall){ .queue = queue };
	if (r->segment < oldest || !r->segment)
		r->segment = oldest ? oldest : l->places.newest;
	rc = recall_segment(l, r->segment, to, &more, err);
	r->wanted |= to->wanted > 0;
	r->segment += more;
	*end = false;
	if (r->segment > l->places.newest) {
		*end = !r->wanted;
		r->segment = 0;
	}
	return rc;
}

/* ---- Reading back ---- */

static bool
is_take(const struct logengine_entry *entry)
{
	return entry->type == LOGENGINE_TAKE || entry->type == LOGENGINE_TAKEN;
}

/* Whether the record is about a batch from another shard. */
static bool
is_given(const struct logengine_entry *entry)
{
	return entry->type == LOGENGINE_GIVEN || entry->type == LOGENGINE_REFUSED;
}

/* Makes a place for the text of the record, for a mark of its whole body. */
static int
name(struct logengine *l, const struct wal_record *rec, const struct logengine_entry *entry,
     uint64_t *where, struct slu_err *err)
{
	const bool whole = entry->type == LOGENGINE_MARK;

	*where = 0;
	if (l->dry || !(whole || is_take(entry) || is_given(entry)))
		return 0;
	if (places_reserve(&l->places))
		return logengine_no_memory(err);
	*where = logengine_name(l, rec->where, rec->body.n, whole ? rec->body.n : entry->text.n, SLAB_NONE);
	return 0;
}

static uint64_t *
read_ids(struct slice text, uint32_t *n)
{
	uint64_t *ids = mem_array(text.n / ID + 1, sizeof *ids);

	*n = (uint32_t)(text.n / ID);
	for (uint32_t i = 0; ids && i < *n; i++)
		ids[i] = le64_get(text.p + (size_t)i * ID);
	return ids;
}

/* A batch of idempotency keys. */
static int
replay_keys(struct logengine *l, struct logengine_entry *entry, struct slu_err *err)
{
	struct slice rest = entry->text;
	struct idem_mark *marks;
	struct move_key key;
	uint64_t *ids;
	uint32_t n;
	int rc;

	if (move_keys_count(rest, &n, err) || n == 0)
		return logengine_unsound(err);
	ids = mem_array(n, sizeof *ids);
	marks = mem_array(n, sizeof *marks);
	for (uint32_t i = 0; ids && marks && move_key_next(&rest, &key); i++) {
		ids[i] = key.id;
		marks[i] = ledger_idem_mark(l->ledger, entry->change.queue, key.text);
	}
	entry->move.n = n;
	entry->move.ids = ids;
	entry->move.marks = marks;
	rc = ids && marks ? logengine_replay_apply(l, &entry->change, err)
			  : logengine_no_memory(err);
	mem_free(ids);
	mem_free(marks);
	return rc;
}

/* A batch of lock keys, by name. */
static int
replay_names(struct logengine *l, struct logengine_entry *entry, struct slu_err *err)
{
	struct slice rest = entry->text, name;

	entry->move.n = 0;
	while (locks_next_name(&rest, &name))
		entry->move.n++;
	if (rest.n || entry->move.n == 0)
		return logengine_unsound(err);
	entry->move.names = entry->text;
	return logengine_replay_apply(l, &entry->change, err);
}

/* A record with a list: a batch that is set aside or dropped. */
static int
replay_list(struct logengine *l, struct logengine_entry *entry, struct slu_err *err)
{
	uint64_t *ids;
	int rc;

	if (is_take(entry) && entry->move.what == BATCH_KEYS)
		return replay_keys(l, entry, err);
	if (entry->move.what == BATCH_LOCKS)
		return replay_names(l, entry, err);
	if (entry->move.what == BATCH_NONE || entry->text.n % ID ||
	    (is_take(entry) && entry->text.n == 0))
		return logengine_unsound(err);
	ids = read_ids(entry->text, &entry->move.n);
	if (!ids)
		return logengine_no_memory(err);
	entry->move.ids = ids;
	rc = logengine_replay_apply(l, &entry->change, err);
	mem_free(ids);
	return rc;
}

int
logengine_replay_move(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
		      struct slu_err *err)
{
	struct change *c = &entry->change;
	struct slice named = entry->receiver;
	char shard[LEDGER_SHARD] = "";
	struct ledger_moving v;
	int rc;

	c->move = &entry->move;
	entry->move.space = entry->space;
	ledger_moving(l->ledger, c->queue, &v);
	if (entry->type == LOGENGINE_UNTAKE)
		entry->move.what = v.what;
	if (is_take(entry))
		c->number = entry->move.batch;
	if (entry->type == LOGENGINE_MARK || is_given(entry))
		named = entry->text;
	if (named.n >= sizeof shard || (!named.n && is_given(entry)))
		return logengine_unsound(err);
	if (named.n)
		memcpy(shard, named.p, named.n);
	entry->move.shard = shard;
	rc = logengine_reserve_queue(l, c->queue, err);
	if (!rc)
		rc = name(l, rec, entry, &c->where, err);
	if (rc)
		return rc;
	if (is_take(entry) || entry->type == LOGENGINE_DROP)
		return replay_list(l, entry, err);
	return logengine_replay_apply(l, c, err);
}

/* ---- Cleaning ---- */

/* Appends a copy of a record. */
static int
append_again(struct logengine *l, uint8_t type, struct slice body, uint64_t size,
	     uint64_t *where, struct slu_err *err)
{
	const int rc = logengine_reserve(l, WAL_FREE, body.n, err);

	if (!rc)
		*where = logengine_name(l, logengine_append(l, type, &body, 1), body.n, size, SLAB_NONE);
	return rc;
}

int
logengine_clean_move(struct logengine *l, const struct wal_record *rec, struct logengine_entry *entry,
		     struct slu_err *err)
{
	const uint32_t queue = ledger_queue_find(l->ledger, entry->space, entry->queue);
	struct ledger_moving v;
	uint64_t where;
	int rc;

	if (queue == SLAB_NONE)
		return 0;
	ledger_moving(l->ledger, queue, &v);
	if (is_take(entry)) {
		if (v.batch && places_is(&l->places, v.where, rec->where))
			l->queues[queue].retake = true;
		return 0;
	}
	where = entry->type == LOGENGINE_MARK ? v.mark : ledger_given_where(l->ledger, queue, entry->text);
	if (!where || !places_is(&l->places, where, rec->where))
		return 0;
	rc = append_again(l, rec->type, rec->body,
			  entry->type == LOGENGINE_MARK ? rec->body.n : entry->text.n, &where, err);
	if (!rc && entry->type == LOGENGINE_MARK)
		ledger_relocate_mark(l->ledger, queue, where);
	else if (!rc)
		ledger_relocate_given(l->ledger, queue, entry->text, where);
	return rc;
}

/* CLEAN-8 for one queue. */
static int
retake(struct logengine *l, uint32_t queue, uint64_t where, struct slu_err *err)
{
	struct wal_record rec;
	struct place place;
	uint64_t moved;
	char *bytes;
	int rc;

	places_get(&l->places, where, &place);
	bytes = mem_alloc(place.at.length);
	if (!bytes)
		return slu_fail(err, SLU_ENOMEM, "no memory for the record of a batch");
	rc = wal_read(l->wal, place.at, bytes, place.at.length, &rec, err);
	if (!rc)
		rc = append_again(l, rec.type, rec.body, place.size, &moved, err);
	if (!rc)
		ledger_relocate_batch(l->ledger, queue, moved);
	mem_free(bytes);
	return rc;
}

int
logengine_retake(struct logengine *l, struct slu_err *err)
{
	for (uint32_t queue = 0; queue < l->n_queues; queue++) {
		struct ledger_moving v;
		int rc = 0;

		if (!l->queues[queue].retake)
			continue;
		ledger_moving(l->ledger, queue, &v);
		if (v.batch)
			rc = retake(l, queue, v.where, err);
		if (rc)
			return rc;
		l->queues[queue].retake = false;
	}
	return 0;
}
