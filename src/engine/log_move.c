/*
 * log_move.c - moves in the log: what is given, marks, batches; kept, read back, cleaned.
 *
 *      given:   | message | restore | message | restore | ... | given |     one group
 *      taken:   | take: which |  . . .  | drop: which, once more |          see C8
 */
#include "engine/log_in.h"

#include "base/le.h"
#include "engine/move_keys.h"

#include <assert.h>

enum {
	ID = 8 /* bytes */
};

static struct log_engine *
of_clerk(struct clerk *k)
{
	return CONTAINER(k, struct log_engine, clerk);
}

/* ---- Keeping ---- */

/* Room for two records, and for two places. */
static int
reserve_given(struct log_engine *l, uint64_t digest, uint64_t message, uint64_t restore,
	      struct slu_err *err)
{
	int rc;

	if (slab_reserve(&l->places.rows, 2) || map_reserve(&l->places.map, 2))
		return slu_fail(err, SLU_ENOMEM, "no memory for the place of a record");
	log_owe_undo(l);
	l->owed += wal_size(restore);
	rc = log_reserve_with_digest(l, WAL_NEW, message > restore ? message : restore, digest, err);
	l->owed -= wal_size(restore);
	return rc;
}

int
log_keep_given(struct clerk *k, const struct message *m, struct change *c,
	       struct slice error, struct slu_err *err)
{
	struct log_engine *l = of_clerk(k);
	const size_t size = message_size(m);
	struct log_entry entry;
	uint32_t file = SLAB_NONE;
	struct log_bytes bytes;
	int rc;

	c->at = l->now;
	entry.type = LOG_RESTORE;
	entry.change = *c;
	entry.text = error;
	log_encode(&entry, &bytes);
	rc = log_keep_spelling(l, c->queue, WAL_NEW, err);
	if (!rc)
		rc = log_encode_head(l, m, err);
	if (!rc)
		rc = reserve_given(l, c->digest, size, bytes.size, err);
	if (!rc && m->file)
		rc = log_files_name(&l->files, m, &file, err);
	if (rc)
		return rc;
	if (c->number > l->ceiling)
		log_put_ceiling(l, c->number);

	const struct slice parts[] = { { l->scratch.p, message_head(m) }, m->payload };
	struct wal_where at;

	c->where = log_name(l, log_append(l, LOG_MESSAGE, parts, 2), size, size, file);
	at = log_append(l, LOG_RESTORE, bytes.parts, bytes.n);
	(void)log_put_digest(l, c);
	if (error.n)
		c->error = log_name(l, at, bytes.size, error.n, SLAB_NONE);
	l->highest_id = m->id > l->highest_id ? m->id : l->highest_id;
	l->must_sync = true;
	return 0;
}

/* Which messages or results go with the batch. */
static int
list_batch(struct log_engine *l, uint32_t queue, uint32_t n, struct slice *text,
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
log_move_text(struct log_engine *l, const struct change *c, struct slice *text,
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

/* False: no more, now. */
static bool
tell_key(struct log_engine *l, const struct wal_record *rec, struct clerk_recall *to)
{
	struct log_entry entry;
	struct slice space, queue, key;

	if ((rec->type != LOG_ACCEPT && rec->type != LOG_MESSAGE && rec->type != LOG_REMEMBER) ||
	    log_decode(rec->type, rec->body, &entry, NULL))
		return true;
	space = rec->type == LOG_REMEMBER ? entry.space : entry.message.space;
	queue = rec->type == LOG_REMEMBER ? entry.queue : entry.message.queue;
	key = rec->type == LOG_REMEMBER ? entry.idem : entry.message.idem;
	if (!key.n || ledger_queue_find(l->ledger, space, queue) != l->recall.queue)
		return true;
	return to->tell(to, rec->type == LOG_REMEMBER ? entry.change.id : entry.message.id, key);
}

/* *more: whoever is told has not enough. */
static int
recall_segment(struct log_engine *l, uint32_t segment, struct clerk_recall *to, bool *more,
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

/* A segment at a time, until some were wanted. What has ended since its segment was read is
 * found in the next round. */
int
log_recall(struct clerk *k, uint32_t queue, struct clerk_recall *to, bool *end,
	   struct slu_err *err)
{
	struct log_engine *l = of_clerk(k);
	struct log_recall *r = &l->recall;
	const uint32_t oldest = wal_oldest(l->wal);
	bool more = true;
	int rc;

	if (r->queue != queue || !r->segment)
		*r = (struct log_recall){ .queue = queue };
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
is_take(const struct log_entry *entry)
{
	return entry->type == LOG_TAKE || entry->type == LOG_TAKEN;
}

/* Of what came from a shard, or did not. */
static bool
is_given(const struct log_entry *entry)
{
	return entry->type == LOG_GIVEN || entry->type == LOG_REFUSED;
}

/* What the record names: its text, or of a mark all of it. */
static int
name(struct log_engine *l, const struct wal_record *rec, const struct log_entry *entry,
     uint64_t *where, struct slu_err *err)
{
	const bool whole = entry->type == LOG_MARK;

	*where = 0;
	if (l->dry || !(whole || is_take(entry) || is_given(entry)))
		return 0;
	if (places_reserve(&l->places))
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	*where = log_name(l, rec->where, rec->body.n, whole ? rec->body.n : entry->text.n, SLAB_NONE);
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

/* The marks of keys, and the ids of their messages. */
static int
replay_keys(struct log_engine *l, struct log_entry *entry, struct slu_err *err)
{
	struct slice rest = entry->text;
	struct idem_mark *marks;
	struct move_key key;
	uint64_t *ids;
	uint32_t n;
	int rc;

	if (move_keys_count(rest, &n, err) || n == 0)
		return log_unsound(err);
	ids = mem_array(n, sizeof *ids);
	marks = mem_array(n, sizeof *marks);
	for (uint32_t i = 0; ids && marks && move_key_next(&rest, &key); i++) {
		ids[i] = key.id;
		marks[i] = ledger_idem_mark(l->ledger, entry->change.queue, key.text);
	}
	entry->move.n = n;
	entry->move.ids = ids;
	entry->move.marks = marks;
	rc = ids && marks ? log_replay_apply(l, &entry->change, err)
			  : slu_fail(err, SLU_ENOMEM, "out of memory");
	mem_free(ids);
	mem_free(marks);
	return rc;
}

/* Lock keys, by their names. */
static int
replay_names(struct log_engine *l, struct log_entry *entry, struct slu_err *err)
{
	struct slice rest = entry->text, name;

	entry->move.n = 0;
	while (locks_next_name(&rest, &name))
		entry->move.n++;
	if (rest.n || entry->move.n == 0)
		return log_unsound(err);
	entry->move.names = entry->text;
	return log_replay_apply(l, &entry->change, err);
}

/* Of those that have a list. */
static int
replay_list(struct log_engine *l, struct log_entry *entry, struct slu_err *err)
{
	uint64_t *ids;
	int rc;

	if (is_take(entry) && entry->move.what == BATCH_KEYS)
		return replay_keys(l, entry, err);
	if (entry->move.what == BATCH_LOCKS)
		return replay_names(l, entry, err);
	if (entry->move.what == BATCH_NONE || entry->text.n % ID ||
	    (is_take(entry) && entry->text.n == 0))
		return log_unsound(err);
	ids = read_ids(entry->text, &entry->move.n);
	if (!ids)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	entry->move.ids = ids;
	rc = log_replay_apply(l, &entry->change, err);
	mem_free(ids);
	return rc;
}

int
log_replay_move(struct log_engine *l, const struct wal_record *rec, struct log_entry *entry,
		struct slu_err *err)
{
	struct change *c = &entry->change;
	struct slice named = entry->whom;
	char shard[LEDGER_SHARD] = "";
	struct ledger_moving v;
	int rc;

	c->move = &entry->move;
	entry->move.space = entry->space;
	ledger_moving(l->ledger, c->queue, &v);
	if (entry->type == LOG_UNTAKE)
		entry->move.what = v.what;
	if (is_take(entry))
		c->number = entry->move.batch;
	if (entry->type == LOG_MARK || is_given(entry))
		named = entry->text;
	if (named.n >= sizeof shard || (!named.n && is_given(entry)))
		return log_unsound(err);
	if (named.n)
		memcpy(shard, named.p, named.n);
	entry->move.shard = shard;
	rc = log_reserve_queue(l, c->queue, err);
	if (!rc)
		rc = name(l, rec, entry, &c->where, err);
	if (rc)
		return rc;
	if (is_take(entry) || entry->type == LOG_DROP)
		return replay_list(l, entry, err);
	return log_replay_apply(l, c, err);
}

/* ---- Cleaning ---- */

/* The same once more. */
static int
append_again(struct log_engine *l, uint8_t type, struct slice body, uint64_t size,
	     uint64_t *where, struct slu_err *err)
{
	const int rc = log_reserve(l, WAL_FREE, body.n, err);

	if (!rc)
		*where = log_name(l, log_append(l, type, &body, 1), body.n, size, SLAB_NONE);
	return rc;
}

int
log_clean_move(struct log_engine *l, const struct wal_record *rec, struct log_entry *entry,
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
	where = entry->type == LOG_MARK ? v.mark : ledger_given_where(l->ledger, queue, entry->text);
	if (!where || !places_is(&l->places, where, rec->where))
		return 0;
	rc = append_again(l, rec->type, rec->body,
			  entry->type == LOG_MARK ? rec->body.n : entry->text.n, &where, err);
	if (!rc && entry->type == LOG_MARK)
		ledger_mark_move(l->ledger, queue, where);
	else if (!rc)
		ledger_given_move(l->ledger, queue, entry->text, where);
	return rc;
}

/* C8, for one queue. */
static int
retake(struct log_engine *l, uint32_t queue, uint64_t where, struct slu_err *err)
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
		ledger_batch_move(l->ledger, queue, moved);
	mem_free(bytes);
	return rc;
}

int
log_retake(struct log_engine *l, struct slu_err *err)
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
