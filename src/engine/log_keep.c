/*
 * log_keep.c - changes become records.
 */
#include "engine/log_in.h"

#include <assert.h>
#include <inttypes.h>

enum {
	CEILING_BODY = 16,
	UNDO_BODY = 8,
	DIGEST_BODY = 16,
	END_BODY = 256,       /* of an ack that keeps no result */
	BLOCK = 1 << 20,      /* numbers set aside at a time */
	SETTLE_SEGMENTS = 256 /* of those that may be named: not for new work */
};

static struct log_engine *
of_clerk(struct clerk *k)
{
	return CONTAINER(k, struct log_engine, clerk);
}

/* P1 of log_place.h: how many segments there may be. */
static int
check_span(struct log_engine *l, enum wal_use use, struct slu_err *err)
{
	const uint32_t max = LOG_SEGMENTS_MAX - (use == WAL_NEW ? SETTLE_SEGMENTS : 8);
	const uint32_t oldest = wal_oldest(l->wal);

	if (oldest && l->places.newest - oldest >= max)
		return slu_fail(err, SLU_EFULL, "the log has %" PRIu32 " segments, the "
						"most it may",
				l->places.newest - oldest + 1);
	return 0;
}

int
log_reserve(struct log_engine *l, enum wal_use use, uint64_t size, struct slu_err *err)
{
	const uint64_t need = wal_size(size), ceiling = wal_size(CEILING_BODY);
	int rc;

	rc = check_span(l, use, err);
	if (!rc)
		rc = wal_reserve(l->wal, use, need + ceiling + l->owed,
				 need > ceiling ? need : ceiling, err);
	if (!rc && places_reserve(&l->places))
		rc = slu_fail(err, SLU_ENOMEM, "no memory for the place of a record");
	return rc;
}

int
log_reserve_with_digest(struct log_engine *l, enum wal_use use, uint64_t size, uint64_t digest,
			struct slu_err *err)
{
	const uint64_t more = digest ? wal_size(DIGEST_BODY) : 0;
	int rc;

	l->owed += more;
	rc = log_reserve(l, use, size, err);
	l->owed -= more;
	return rc;
}

static uint32_t
put_digest(struct log_engine *l, const struct change *c)
{
	const struct log_entry entry = {
		.type = LOG_DIGEST,
		.change = { .id = c->id, .digest = c->digest },
	};
	struct log_bytes bytes;

	log_encode(&entry, &bytes);
	return log_append(l, LOG_DIGEST, bytes.parts, bytes.n).length;
}

/* Few messages have one: those do not pay for an entry, which is large. */
uint32_t
log_put_digest(struct log_engine *l, const struct change *c)
{
	return c->digest ? put_digest(l, c) : 0;
}

struct wal_where
log_append(struct log_engine *l, uint8_t type, const struct slice *parts, unsigned n)
{
	const struct wal_where at = wal_append(l->wal, type, parts, n);

	places_see(&l->places, at.segment);
	l->appended += at.length;
	return at;
}

void
log_put_ceiling(struct log_engine *l, uint64_t counter)
{
	const struct log_entry entry = {
		.type = LOG_CEILING,
		.change = { .number = counter + BLOCK },
		.highest = l->highest_id,
	};
	struct log_bytes bytes;

	log_encode(&entry, &bytes);
	l->ceiling_segment = log_append(l, entry.type, bytes.parts, bytes.n).segment;
	l->ceiling = entry.change.number;
	l->must_sync = true;
}

uint64_t
log_name(struct log_engine *l, struct wal_where at, uint64_t body, uint64_t size,
	 uint32_t file)
{
	const struct place place = { at, (uint32_t)size, file };

	wal_live(l->wal, at, at.length);
	return places_add(&l->places, &place, body);
}

void
log_drop(void *arg, uint64_t where)
{
	struct log_engine *l = arg;
	struct place place;

	places_get(&l->places, where, &place);
	wal_live(l->wal, place.at, -(int64_t)place.at.length);
	places_drop(&l->places, where);
	if (place.file != SLAB_NONE)
		log_files_unname(&l->files, place.file);
}

uint64_t
log_size(void *arg, uint64_t where)
{
	struct log_engine *l = arg;
	struct place place;

	places_get(&l->places, where, &place);
	return place.file == SLAB_NONE ? place.size
				       : place.size + log_files_size(&l->files, place.file);
}

/* Most places have no row. */
static size_t
log_growth(struct clerk *k, const struct message *m)
{
	return message_size(m) > PLACE_SMALL || m->file ? places_growth(&of_clerk(k)->places) : 0;
}

static void
log_footprint(const struct clerk *k, struct footprint *out)
{
	const struct log_engine *l = CONTAINER(k, const struct log_engine, clerk);

	footprint_slab(out, &l->places.rows);
	footprint_map(out, &l->places.map);
	footprint_bytes(out, (uint64_t)l->n_queues * sizeof *l->queues);
}

static bool
log_trim(struct clerk *k)
{
	return places_trim(&of_clerk(k)->places);
}

/* ---- Queues ---- */

void
log_name_queue(const struct log_engine *l, uint32_t queue, struct log_entry *entry)
{
	struct ledger_queue_view v;

	ledger_queue_get(l->ledger, queue, &v);
	entry->space = slice_of(v.space_name);
	entry->queue = slice_of(v.name);
}

void
log_spell(const struct log_engine *l, uint32_t queue, struct log_entry *entry)
{
	struct ledger_queue_view v;

	ledger_queue_get(l->ledger, queue, &v);
	entry->type = LOG_SPELLING;
	entry->space = slice_of(v.space_shown);
	entry->queue = slice_of(v.shown);
}

int
log_fold(const struct log_entry *entry, struct log_names *out, struct slu_err *err)
{
	if (!name_fold(entry->space, "namespace", out->space, err) &&
	    !name_fold(entry->queue, "queue", out->queue, err))
		return 0;
	if (err)
		err->code = SLU_ECORRUPT;
	return SLU_ECORRUPT;
}

int
log_reserve_queue(struct log_engine *l, uint32_t queue, struct slu_err *err)
{
	const uint32_t n = queue + 1 + queue / 2;
	struct log_queue *p;

	if (queue < l->n_queues)
		return 0;
	p = mem_realloc(l->queues, n * sizeof *p);
	if (!p)
		return slu_fail(err, SLU_ENOMEM, "no memory for a queue");
	memset(p + l->n_queues, 0, (n - l->n_queues) * sizeof *p);
	l->queues = p;
	l->n_queues = n;
	return 0;
}

static void
unnote(struct log_engine *l, const struct log_note *note)
{
	const struct wal_where old = { .segment = note->segment };

	if (note->segment)
		wal_live(l->wal, old, -(int64_t)note->length);
}

void
log_note(struct log_engine *l, struct log_note *note, struct wal_where at)
{
	unnote(l, note);
	wal_live(l->wal, at, at.length);
	*note = (struct log_note){ at.segment, at.length };
}

void
log_forget_queue(struct log_engine *l, uint32_t queue)
{
	struct log_queue *const q = queue < l->n_queues ? &l->queues[queue] : NULL;
	uint32_t n = 0;

	if (q) {
		unnote(l, &q->policy);
		unnote(l, &q->spelling);
		*q = (struct log_queue){ 0 };
	}
	for (uint32_t i = 0; i < l->n_purging; i++)
		if (l->purging[i] != queue)
			l->purging[n++] = l->purging[i];
	l->n_purging = n;
	if (l->recall.queue == queue)
		l->recall = (struct log_recall){ .queue = SLAB_NONE };
}

/* G8: before the first record that names the queue in this log. */
int
log_keep_spelling(struct log_engine *l, uint32_t queue, enum wal_use use, struct slu_err *err)
{
	struct log_entry entry;
	struct log_bytes bytes;
	int rc;

	if (!ledger_queue_is_spelled(l->ledger, queue) ||
	    (queue < l->n_queues && l->queues[queue].spelling.segment))
		return 0;
	log_spell(l, queue, &entry);
	log_encode(&entry, &bytes);
	rc = log_reserve_queue(l, queue, err);
	if (!rc)
		rc = log_reserve(l, use, bytes.size, err);
	if (!rc)
		log_note(l, &l->queues[queue].spelling,
			 log_append(l, entry.type, bytes.parts, bytes.n));
	return rc;
}

/* ---- Messages ---- */

int
log_encode_head(struct log_engine *l, const struct message *m, struct slu_err *err)
{
	const size_t n = message_head(m);

	buf_clear(&l->scratch);
	if (l->scratch.size <= n) {
		char *p = mem_realloc(l->scratch.p, n + 1);

		if (!p)
			return slu_fail(err, SLU_ENOMEM, "no memory for a message");
		l->scratch.p = p;
		l->scratch.size = n + 1;
	}
	message_encode_head(m, l->scratch.p);
	return 0;
}

void
log_owe_undo(struct log_engine *l)
{
	l->owed += wal_size(UNDO_BODY);
}

static int
log_keep_message(struct clerk *k, const struct message *m, struct change *c,
		 struct slu_err *err)
{
	struct log_engine *l = of_clerk(k);
	const size_t size = message_size(m);
	uint32_t file = SLAB_NONE;
	int rc;

	assert(c->at == l->now);
	rc = log_keep_spelling(l, c->queue, WAL_NEW, err);
	if (!rc)
		rc = log_encode_head(l, m, err);
	if (!rc) {
		log_owe_undo(l);
		rc = log_reserve_with_digest(l, WAL_NEW, size, c->digest, err);
	}
	if (!rc && m->file)
		rc = log_files_name(&l->files, m, &file, err);
	if (rc)
		return rc;
	if (c->number > l->ceiling)
		log_put_ceiling(l, c->number);

	const struct slice parts[] = { { l->scratch.p, message_head(m) }, m->payload };

	c->where = log_name(l, log_append(l, LOG_ACCEPT, parts, 2), size, size, file);
	log_put_digest(l, c);
	l->highest_id = m->id > l->highest_id ? m->id : l->highest_id;
	l->must_sync = true;
	return 0;
}

/* It is in the group already: say that it is void. Room is owed. */
static void
log_undo_message(struct clerk *k, const struct change *c)
{
	const struct log_entry entry = { .type = LOG_UNDO, .change = { .id = c->id } };
	struct log_bytes bytes;

	log_encode(&entry, &bytes);
	(void)log_append(of_clerk(k), entry.type, bytes.parts, bytes.n);
}

/* ---- Everything else ---- */

static int
reserve_purge(struct log_engine *l, struct slu_err *err)
{
	const uint32_t max = l->max_purging + 8;
	uint32_t *p;

	if (l->n_purging < l->max_purging)
		return 0;
	p = mem_realloc(l->purging, max * sizeof *p);
	if (!p)
		return slu_fail(err, SLU_ENOMEM, "no memory for a purge");
	l->purging = p;
	l->max_purging = max;
	return 0;
}

/* What makes room, and to open at all, is possible to the last. */
static enum wal_use
use_of(const struct change *c, uint64_t size)
{
	const bool ends = c->kind == CHANGE_DONE && size <= END_BODY;

	return ends || c->kind == CHANGE_OPENED || c->kind == CHANGE_PURGE ||
			       c->kind == CHANGE_DROP || c->kind == CHANGE_FORGET
		       ? WAL_FREE
		       : WAL_SETTLE;
}

static int
reserve_policy(struct log_engine *l, uint32_t queue, struct slu_err *err)
{
	const int rc = log_keep_spelling(l, queue, WAL_SETTLE, err);

	return rc ? rc : log_reserve_queue(l, queue, err);
}

static int
reserve_for(struct log_engine *l, const struct change *c, uint64_t size,
	    struct slu_err *err)
{
	int rc = 0;

	if (c->kind == CHANGE_POLICY || c->move || c->kind == CHANGE_RESULT ||
	    c->kind == CHANGE_REMEMBER)
		rc = reserve_policy(l, c->queue, err);
	else if (c->kind == CHANGE_PURGE)
		rc = reserve_purge(l, err);
	return rc ? rc : log_reserve(l, use_of(c, size), size, err);
}

static const struct {
	enum log_type type;
	bool names_queue;
	bool may_wait; /* written is enough: G1 */
} kinds[CHANGE_KINDS] = {
	[CHANGE_CLAIM] = { LOG_CLAIM, false, true },
	[CHANGE_EXTEND] = { LOG_EXTEND, false, true },
	[CHANGE_RETURN] = { LOG_RETURN, false, true },
	[CHANGE_SPARE] = { LOG_SPARE, false, true },
	[CHANGE_RETRY] = { LOG_RETRY, false, false },
	[CHANGE_DIE] = { LOG_DIE, false, false },
	[CHANGE_DONE] = { LOG_DONE, false, false },
	[CHANGE_REDRIVE] = { LOG_REDRIVE, false, false },
	[CHANGE_PURGE] = { LOG_PURGE, true, false },
	[CHANGE_POLICY] = { LOG_POLICY, true, false },
	[CHANGE_OPENED] = { LOG_OPENED, false, false },
	[CHANGE_ASIDE] = { LOG_ASIDE, false, false },
	[CHANGE_REMEMBER] = { LOG_REMEMBER, true, false },
	[CHANGE_RESULT] = { LOG_RESULT, true, false },
	[CHANGE_MARK] = { LOG_MARK, true, false },
	[CHANGE_TAKE] = { LOG_TAKEN, true, false },
	[CHANGE_UNTAKE] = { LOG_UNTAKE, true, false },
	[CHANGE_DROP] = { LOG_DROP, true, false },
	[CHANGE_GIVEN] = { LOG_GIVEN, true, false },
	[CHANGE_REFUSE] = { LOG_REFUSED, true, false },
	[CHANGE_FORGET] = { LOG_FORGET, true, false },
};

static uint32_t
queue_of(const struct log_engine *l, uint32_t msg)
{
	struct ledger_view v;

	ledger_get(l->ledger, msg, &v);
	return v.queue;
}

static void
fill_entry(const struct log_engine *l, const struct change *c, struct slice text,
	   struct log_entry *entry)
{
	entry->type = kinds[c->kind].type;
	entry->change = *c;
	entry->text = text;
	entry->idem = text;
	if (c->kind == CHANGE_CLAIM && c->owner != OWNER_NONE) {
		entry->type = LOG_CLAIM_OWNED;
		entry->text = ledger_owner_text(l->ledger, c->owner);
	}
	if (c->kind == CHANGE_DONE && (c->remember || c->keep))
		entry->type = LOG_KEEP;
	if (entry->type == LOG_KEEP)
		log_name_queue(l, queue_of(l, c->msg), entry);
	else if (kinds[c->kind].names_queue)
		log_name_queue(l, c->queue, entry);
	if (c->move)
		entry->move = *c->move;
	if (c->kind == CHANGE_TAKE)
		entry->whom = slice_of(c->move->shard);
	if (c->kind == CHANGE_POLICY) {
		entry->policy = *c->policy;
		entry->type = log_policy_type(c->policy);
	}
}

/* The record is in the group. */
static void
note(struct log_engine *l, struct change *c, struct wal_where at)
{
	/* A lease that ran out will do so again. */
	if (!kinds[c->kind].may_wait && !(c->kind == CHANGE_RETRY && c->expired))
		l->must_sync = true;
	if (c->kind == CHANGE_POLICY)
		log_note(l, &l->queues[c->queue].policy, at);
	if (c->kind == CHANGE_PURGE)
		l->purging[l->n_purging++] = c->queue;
	if (c->kind == CHANGE_FORGET)
		log_forget_queue(l, c->queue);
	c->at = l->now; /* the only time that the record has */
}

static int
log_keep(struct clerk *k, struct change *c, struct slice text, struct slu_err *err)
{
	struct log_engine *l = of_clerk(k);
	const uint64_t counter = c->number > c->token ? c->number : c->token;
	struct log_entry entry;
	struct log_bytes bytes;
	struct wal_where at;
	int rc;

	rc = log_move_text(l, c, &text, err);
	if (rc)
		return rc;
	fill_entry(l, c, text, &entry);
	log_encode(&entry, &bytes);
	rc = reserve_for(l, c, bytes.size, err);
	if (rc)
		return rc;
	if (counter > l->ceiling)
		log_put_ceiling(l, counter);
	at = log_append(l, entry.type, bytes.parts, bytes.n);
	if (c->kind == CHANGE_MARK)
		c->where = log_name(l, at, bytes.size, bytes.size, SLAB_NONE);
	else if (text.n && c->kind != CHANGE_DROP && c->kind != CHANGE_REMEMBER)
		c->where = log_name(l, at, bytes.size, text.n, SLAB_NONE);
	note(l, c, at);
	return 0;
}

static void
pin_file(struct log_engine *l, uint32_t handle, struct op_ref *out)
{
	struct log_file *f = log_files_pin(&l->files, handle);

	*out = (struct op_ref){
		.pin = f,
		.where = LOG_REF_FILE | f->number,
		.size = (uint32_t)f->size,
	};
}

static int
log_pin(struct clerk *k, uint64_t where, struct op_ref *out, struct op_ref *payload,
	struct slu_err *err)
{
	struct log_engine *l = of_clerk(k);
	struct place place;
	struct wal_pin pin;

	places_get(&l->places, where, &place);
	if (wal_pin(l->wal, place.at, &pin))
		return slu_fail(err, SLU_ECORRUPT,
				"the log has nothing at %08" PRIu32 ".log, %" PRIu32,
				place.at.segment, place.at.offset);
	*out = (struct op_ref){
		.pin = pin.segment,
		.where = (uint64_t)place.at.length << 32 | place.at.offset,
		.size = place.size,
	};
	if (place.file != SLAB_NONE && payload)
		pin_file(l, place.file, payload);
	return 0;
}

const struct clerk_ops log_keeping = {
	.keep_message = log_keep_message,
	.keep_given = log_keep_given,
	.undo_message = log_undo_message,
	.keep = log_keep,
	.keep_document = log_keep_document,
	.keep_lock = log_keep_lock,
	.sync = log_sync_all,
	.drop = log_drop_document,
	.pin = log_pin,
	.recall = log_recall,
	.backup = log_backup,
	.growth = log_growth,
	.footprint = log_footprint,
	.trim = log_trim,
};
