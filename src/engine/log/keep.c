/*
 * keep.c - writes changes as records.
 */
#include "engine/log/logengine_private.h"

#include "engine/attempts.h"
#include "engine/formats.h"
#include "engine/move_keys.h"
#include "engine/tenure.h"

#include <assert.h>
#include <inttypes.h>

enum {
	CEILING_BODY = 16,
	UNDO_BODY = 8,
	DIGEST_BODY = 16,
	END_BODY = 256,       /* largest body of an ack without a result */
	SETTLE_SEGMENTS = 256 /* of LOGENGINE_SEGMENTS_MAX, so many are not for new work */
};

/* PLACE-1 of place.h: returns SLU_EFULL if the log has too many segments. */
static int
check_span(struct logengine *l, enum wal_use use, struct slu_err *err)
{
	const uint32_t max = LOGENGINE_SEGMENTS_MAX - (use == WAL_NEW ? SETTLE_SEGMENTS : 8);
	const uint32_t oldest = wal_oldest(l->wal);

	if (oldest && l->places.newest - oldest >= max)
		return slu_fail(err, SLU_EFULL,
				"the log has reached its limit: it has %" PRIu32 " segments",
				l->places.newest - oldest + 1);
	return 0;
}

static bool
has_key_digests(const struct logengine_entry *entry)
{
	return entry->type == LOGENGINE_TAKEN && entry->move.what == BATCH_KEYS &&
	       move_keys_have_digests(entry->text);
}

/* Returns 0 if all nodes of the store can read the record (LINE-16), else the code of
 * engine_tenure.need_format. */
static int
may_write(const struct logengine *l, const struct logengine_entry *entry, struct slu_err *err)
{
	const struct engine_tenure *const t = l->stored.tenure;
	const uint32_t format = has_key_digests(entry) ? FORMATS_KEY_DIGESTS : formats_record(entry->type);

	return format > FORMATS_FIRST && t && t->need_format ? t->need_format(t->arg, format, err) : 0;
}

/* What is kept of a failure without its attempts: its error. Without one, all that was kept before stays, unless the message
 * is new here. */
static struct slice
plain_error(struct slice text, bool is_new)
{
	struct attempts all;

	if (is_new || (attempts_read(text, &all) && all.list[all.n - 1].error.n))
		return attempts_error(text);
	return (struct slice){ 0 };
}

void
logengine_type_attempts(const struct logengine *l, struct logengine_entry *entry, struct slice *text)
{
	const enum logengine_type plain = entry->type;
	struct slu_err err;

	logengine_type_failure(entry);
	if (entry->type == plain || (!wal_is_short(l->wal) && !may_write(l, entry, &err)))
		return;
	entry->type = plain;
	entry->text = *text = plain_error(*text, entry->change.kind == CHANGE_RESTORE);
}

/* Reserves room for a record that gets no row in the table of places. */
static int
reserve_room(struct logengine *l, enum wal_use use, uint64_t size, struct slu_err *err)
{
	const uint64_t need = wal_size(size), ceiling = wal_size(CEILING_BODY);
	const uint64_t least = ceiling > l->owed_largest ? ceiling : l->owed_largest;
	int rc;

	rc = check_span(l, use, err);
	if (!rc && use == WAL_NEW)
		rc = logengine_front_room(l, err);
	if (!rc)
		rc = wal_reserve(l->wal, use, need + ceiling + l->owed,
				 need > least ? need : least, err);
	if (use == WAL_NEW)
		l->stored.front.full = rc == SLU_EFULL || rc == SLU_EDOWN;
	return rc;
}

int
logengine_reserve(struct logengine *l, enum wal_use use, uint64_t size, struct slu_err *err)
{
	int rc = reserve_room(l, use, size, err);

	if (!rc && places_reserve(&l->places))
		rc = slu_fail(err, SLU_ENOMEM, "no memory for the place of a record");
	return rc;
}

int
logengine_reserve_with_digest(struct logengine *l, enum wal_use use, uint64_t size, uint64_t digest,
			      struct slu_err *err)
{
	const uint64_t more = digest ? wal_size(DIGEST_BODY) : 0;
	int rc;

	l->owed += more;
	rc = logengine_reserve(l, use, size, err);
	l->owed -= more;
	return rc;
}

static uint32_t
put_digest(struct logengine *l, const struct change *c)
{
	const struct logengine_entry entry = {
		.type = LOGENGINE_DIGEST,
		.change = { .id = c->id, .digest = c->digest },
	};
	struct logengine_bytes bytes;

	logengine_encode(&entry, &bytes);
	return logengine_append(l, LOGENGINE_DIGEST, bytes.parts, bytes.n).length;
}

/* Few messages have a digest. The others do not pay for the large entry of put_digest. */
uint32_t
logengine_put_digest(struct logengine *l, const struct change *c)
{
	return c->digest ? put_digest(l, c) : 0;
}

struct wal_where
logengine_append(struct logengine *l, uint8_t type, const struct slice *parts, unsigned n)
{
	const struct wal_where at = wal_append(l->wal, type, parts, n);

	places_see(&l->places, at.segment);
	logengine_note_need(l, type, false, at.segment);
	l->appended += at.length;
	return at;
}

void
logengine_put_ceiling(struct logengine *l, uint64_t counter)
{
	const struct logengine_entry entry = {
		.type = LOGENGINE_CEILING,
		.change = { .number = counter + l->block },
		.highest = l->highest_id,
	};
	struct logengine_bytes bytes;

	logengine_encode(&entry, &bytes);
	l->ceiling_segment = logengine_append(l, entry.type, bytes.parts, bytes.n).segment;
	l->ceiling = entry.change.number;
	l->must_sync = true;
}

void
logengine_raise_ceiling(struct logengine *l, uint64_t number)
{
	if (number + l->renew > l->ceiling)
		logengine_put_ceiling(l, number);
}

uint64_t
logengine_name(struct logengine *l, struct wal_where at, uint64_t body, uint64_t size,
	       uint32_t file)
{
	const struct place place = { at, (uint32_t)size, file };

	wal_live(l->wal, at, at.length);
	return places_add(&l->places, &place, body);
}

void
logengine_drop(void *arg, uint64_t where)
{
	struct logengine *l = arg;
	struct place place;

	places_get(&l->places, where, &place);
	wal_live(l->wal, place.at, -(int64_t)place.at.length);
	places_drop(&l->places, where);
	if (place.file != SLAB_NONE)
		logengine_files_unname(&l->files, place.file);
}

uint64_t
logengine_size(void *arg, uint64_t where)
{
	struct logengine *l = arg;
	struct place place;

	places_get(&l->places, where, &place);
	return place.file == SLAB_NONE ? place.size
				       : place.size + logengine_files_size(&l->files, place.file);
}

/* Only large messages and payload files need a row. */
static size_t
logengine_growth(struct ledgerengine *k, const struct message *m)
{
	const size_t grows = places_growth(&logengine_of(k)->places);

	return grows && (message_size(m) > PLACE_SMALL || m->file) ? grows : 0;
}

static void
logengine_footprint(const struct ledgerengine *k, struct footprint *out)
{
	const struct logengine *l = CONTAINER(k, const struct logengine, ledgerengine);

	footprint_slab(out, &l->places.rows);
	footprint_map(out, &l->places.map);
	footprint_bytes(out, (uint64_t)l->n_queues * sizeof *l->queues);
}

static bool
logengine_trim(struct ledgerengine *k)
{
	return places_trim(&logengine_of(k)->places);
}

/* ---- Queues ---- */

static void
name_queue(const struct logengine *l, uint32_t queue, struct logengine_entry *entry)
{
	struct ledger_queue_view v;

	ledger_queue_get(l->ledger, queue, &v);
	entry->space = slice_of(v.space_name);
	entry->queue = slice_of(v.name);
}

static void
spell(const struct logengine *l, uint32_t queue, struct logengine_entry *entry)
{
	struct ledger_queue_view v;

	ledger_queue_get(l->ledger, queue, &v);
	entry->type = LOGENGINE_SPELLING;
	entry->space = slice_of(v.space_shown);
	entry->queue = slice_of(v.shown);
}

int
logengine_fold(const struct logengine_entry *entry, struct logengine_names *out, struct slu_err *err)
{
	if (!name_fold(entry->space, "namespace", out->space, err) &&
	    !name_fold(entry->queue, "queue", out->queue, err))
		return 0;
	if (err)
		err->code = SLU_ECORRUPT;
	return SLU_ECORRUPT;
}

int
logengine_reserve_queue(struct logengine *l, uint32_t queue, struct slu_err *err)
{
	const uint32_t n = queue + 1 + queue / 2;
	struct logengine_queue *p;

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
unnote(struct logengine *l, const struct logengine_note *note)
{
	const struct wal_where old = { .segment = note->segment };

	if (note->segment)
		wal_live(l->wal, old, -(int64_t)note->length);
}

void
logengine_note(struct logengine *l, struct logengine_note *note, struct wal_where at)
{
	unnote(l, note);
	wal_live(l->wal, at, at.length);
	*note = (struct logengine_note){ at.segment, at.length };
}

void
logengine_forget_queue(struct logengine *l, uint32_t queue)
{
	struct logengine_queue *const q = queue < l->n_queues ? &l->queues[queue] : NULL;
	uint32_t n = 0;

	if (q) {
		unnote(l, &q->policy);
		unnote(l, &q->spelling);
		*q = (struct logengine_queue){ 0 };
	}
	for (uint32_t i = 0; i < l->n_purging; i++)
		if (l->purging[i] != queue)
			l->purging[n++] = l->purging[i];
	l->n_purging = n;
	if (l->recall.queue == queue)
		l->recall = (struct logengine_recall){ .queue = SLAB_NONE };
}

int
logengine_keep_spelling(struct logengine *l, uint32_t queue, enum wal_use use, struct slu_err *err)
{
	struct logengine_entry entry;
	struct logengine_bytes bytes;
	int rc;

	if (!ledger_queue_is_spelled(l->ledger, queue) ||
	    (queue < l->n_queues && l->queues[queue].spelling.segment))
		return 0;
	spell(l, queue, &entry);
	logengine_encode(&entry, &bytes);
	rc = logengine_reserve_queue(l, queue, err);
	if (!rc)
		rc = logengine_reserve(l, use, bytes.size, err);
	if (!rc)
		logengine_note(l, &l->queues[queue].spelling,
			       logengine_append(l, entry.type, bytes.parts, bytes.n));
	return rc;
}

/* ---- Messages ---- */

int
logengine_encode_head(struct logengine *l, const struct message *m, struct slu_err *err)
{
	const size_t n = message_head(m);

	buf_clear(&l->scratch);
	if (l->scratch.size <= n) {
		if (!mem_resize(&l->scratch.p, n + 1, 1))
			return slu_fail(err, SLU_ENOMEM, "no memory for a message");
		l->scratch.size = n + 1;
	}
	message_encode_head(m, l->scratch.p);
	l->scratch.n = n;
	return 0;
}

void
logengine_owe_undo(struct logengine *l)
{
	l->owed += wal_size(UNDO_BODY);
}

int
logengine_put_message(struct logengine *l, uint8_t type, const struct message *m, uint64_t number,
		      uint64_t *where, struct slu_err *err)
{
	const struct slice parts[] = { buf_slice(&l->scratch), m->payload };
	const size_t size = logengine_message_size(l, m);
	uint32_t file = SLAB_NONE;
	struct wal_where at;
	const int rc = m->file ? logengine_files_name(&l->files, m, &file, err) : 0;

	if (rc)
		return rc;
	logengine_raise_ceiling(l, number);
	at = logengine_append(l, type, parts, 2);
	if (logengine_is_replaced(m))
		logengine_note_need(l, type, true, at.segment);
	*where = logengine_name(l, at, size, size, file);
	return 0;
}

int
logengine_reserve_restore(struct logengine *l, enum wal_use use, uint64_t message,
			  uint64_t restore, uint64_t digest, struct slu_err *err)
{
	int rc;

	if (slab_reserve(&l->places.rows, 2) || map_reserve(&l->places.map, 2))
		return slu_fail(err, SLU_ENOMEM, "no memory for the place of a record");
	l->owed += wal_size(restore);
	rc = logengine_reserve_with_digest(l, use, message > restore ? message : restore, digest, err);
	l->owed -= wal_size(restore);
	return rc;
}

static int
logengine_keep_message(struct ledgerengine *k, const struct message *m, struct change *c,
		       struct slu_err *err)
{
	struct logengine *l = logengine_of(k);
	const enum wal_use use = !c->settles ? WAL_NEW : c->kind == CHANGE_ACCEPT ? WAL_FREE /* an ack may need it */
										  : WAL_SETTLE;
	int rc;

	assert(c->at == l->now);
	rc = logengine_keep_spelling(l, c->queue, use, err);
	if (!rc)
		rc = logengine_encode_head(l, m, err);
	if (!rc) {
		logengine_owe_undo(l);
		rc = logengine_reserve_with_digest(l, use, logengine_message_size(l, m), c->digest, err);
	}
	if (!rc)
		rc = logengine_put_message(l, c->kind == CHANGE_REPLACE ? LOGENGINE_REPLACE : LOGENGINE_ACCEPT, m, c->number,
					   &c->where, err);
	if (rc)
		return rc;
	logengine_put_digest(l, c);
	l->highest_id = m->id > l->highest_id ? m->id : l->highest_id;
	l->must_sync = true;
	return 0;
}

/* The group already has the message: appends its UNDO. The room is part of `owed`. */
static void
logengine_undo_message(struct ledgerengine *k, const struct change *c)
{
	const struct logengine_entry entry = { .type = LOGENGINE_UNDO, .change = { .id = c->id } };
	struct logengine_bytes bytes;

	logengine_encode(&entry, &bytes);
	(void)logengine_append(logengine_of(k), entry.type, bytes.parts, bytes.n);
}

/* ---- Everything else ---- */

static int
reserve_purge(struct logengine *l, struct slu_err *err)
{
	if (mem_room(&l->purging, &l->max_purging, l->n_purging + 1, sizeof *l->purging))
		return 0;
	return slu_fail(err, SLU_ENOMEM, "no memory for a purge");
}

/* Changes that make room, and opening, may use the last bytes of the log. */
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
reserve_policy(struct logengine *l, uint32_t queue, struct slu_err *err)
{
	const int rc = logengine_keep_spelling(l, queue, WAL_SETTLE, err);

	return rc ? rc : logengine_reserve_queue(l, queue, err);
}

/* The digest has a record of its own behind the record of the change. */
static uint64_t
digest_of(const struct change *c)
{
	return c->kind == CHANGE_REMEMBER ? c->digest : 0;
}

static int
reserve_for(struct logengine *l, const struct change *c, uint64_t size,
	    struct slu_err *err)
{
	int rc = 0;

	if (c->kind == CHANGE_POLICY || c->kind == CHANGE_HOLD || c->kind == CHANGE_BREAKER || c->move || c->kind == CHANGE_RESULT ||
	    c->kind == CHANGE_REMEMBER)
		rc = reserve_policy(l, c->queue, err);
	else if (c->kind == CHANGE_PURGE)
		rc = reserve_purge(l, err);
	return rc ? rc : logengine_reserve_with_digest(l, use_of(c, size), size, digest_of(c), err);
}

static const struct {
	enum logengine_type type;
	bool names_queue;
	bool may_wait; /* needs no sync: LOGENGINE-1 */
} kinds[CHANGE_KINDS] = {
	[CHANGE_CLAIM] = { LOGENGINE_CLAIM, false, true },
	[CHANGE_EXTEND] = { LOGENGINE_EXTEND, false, true },
	[CHANGE_RETURN] = { LOGENGINE_RETURN, false, true },
	[CHANGE_SPARE] = { LOGENGINE_SPARE, false, true },
	[CHANGE_RETRY] = { LOGENGINE_RETRY, false, false },
	[CHANGE_DIE] = { LOGENGINE_DIE, false, false },
	[CHANGE_DONE] = { LOGENGINE_DONE, false, false },
	[CHANGE_REDRIVE] = { LOGENGINE_REDRIVE, false, false },
	[CHANGE_PURGE] = { LOGENGINE_PURGE, true, false },
	[CHANGE_POLICY] = { LOGENGINE_POLICY, true, false },
	[CHANGE_OPENED] = { LOGENGINE_OPENED, false, false },
	[CHANGE_QUARANTINE] = { LOGENGINE_ASIDE, false, false },
	[CHANGE_REMEMBER] = { LOGENGINE_REMEMBER, true, false },
	[CHANGE_RESULT] = { LOGENGINE_RESULT, true, false },
	[CHANGE_MARK] = { LOGENGINE_MARK, true, false },
	[CHANGE_TAKE] = { LOGENGINE_TAKEN, true, false },
	[CHANGE_UNTAKE] = { LOGENGINE_UNTAKE, true, false },
	[CHANGE_DROP] = { LOGENGINE_DROP, true, false },
	[CHANGE_GIVEN] = { LOGENGINE_GIVEN, true, false },
	[CHANGE_REFUSE] = { LOGENGINE_REFUSED, true, false },
	[CHANGE_FORGET] = { LOGENGINE_FORGET, true, false },
	[CHANGE_INTAKE] = { LOGENGINE_INTAKE, false, false },
	[CHANGE_HOLD] = { LOGENGINE_HOLD, true, false },
	[CHANGE_PRIORITY] = { LOGENGINE_PRIORITY, false, false },
	[CHANGE_BREAKER] = { LOGENGINE_BREAKER, true, false },
	[CHANGE_CANCEL] = { LOGENGINE_CANCEL, false, false },
	[CHANGE_DUE] = { LOGENGINE_DUE, false, false },
};

static uint32_t
queue_of(const struct logengine *l, uint32_t msg)
{
	struct ledger_view v;

	ledger_get(l->ledger, msg, &v);
	return v.queue;
}

static void
fill_entry(const struct logengine *l, const struct change *c, struct slice text,
	   struct logengine_entry *entry)
{
	entry->type = kinds[c->kind].type;
	entry->change = *c;
	entry->text = text;
	entry->idem = text;
	if (c->kind == CHANGE_CLAIM && c->holder != HOLDER_NONE) {
		entry->type = LOGENGINE_CLAIM_OWNED;
		entry->text = ledger_holder_text(l->ledger, c->holder);
	}
	if (c->kind == CHANGE_DONE && (c->remember || c->keep))
		entry->type = LOGENGINE_KEEP;
	if (entry->type == LOGENGINE_KEEP)
		name_queue(l, queue_of(l, c->msg), entry);
	else if (kinds[c->kind].names_queue)
		name_queue(l, c->queue, entry);
	if (c->move)
		entry->move = *c->move;
	if (c->intake)
		entry->intake = *c->intake;
	if (c->kind == CHANGE_TAKE) {
		assert(c->move);
		entry->receiver = slice_of(c->move->shard);
	}
	if (c->kind == CHANGE_POLICY) {
		entry->policy = *c->policy;
		entry->type = logengine_policy_type(c->policy);
	}
}

/* Updates the state of the engine after the record was appended. */
static void
note(struct logengine *l, struct change *c, struct wal_where at)
{
	/* A lost record of an expired lease is harmless: the lease expires again. */
	if (!kinds[c->kind].may_wait && !(c->kind == CHANGE_RETRY && c->expired))
		l->must_sync = true;
	if (c->kind == CHANGE_POLICY)
		logengine_note(l, &l->queues[c->queue].policy, at);
	if (c->kind == CHANGE_PURGE)
		l->purging[l->n_purging++] = c->queue;
	if (c->kind == CHANGE_FORGET)
		logengine_forget_queue(l, c->queue);
	c->at = l->now; /* RECORD-3: replay sees the group's time */
}

/* A lease without a holder, and an end after which nothing is remembered: nearly every message has both. */
static bool
is_step(const struct change *c)
{
	return (c->kind == CHANGE_CLAIM && c->holder == HOLDER_NONE) || (c->kind == CHANGE_DONE && !c->remember && !c->keep);
}

/* The same as logengine_keep, without an entry. */
static int
keep_step(struct logengine *l, struct change *c, struct slu_err *err)
{
	char body[LOGENGINE_STEP_MAX];
	const struct slice part = { body, logengine_encode_step(c, body) };
	const int rc = reserve_room(l, use_of(c, part.n), part.n, err);

	if (rc)
		return rc;
	logengine_raise_ceiling(l, c->token);
	note(l, c, logengine_append(l, kinds[c->kind].type, &part, 1));
	return 0;
}

static int
logengine_keep(struct ledgerengine *k, struct change *c, struct slice text, struct slu_err *err)
{
	struct logengine *l = logengine_of(k);
	const uint64_t counter = c->number > c->token ? c->number : c->token;
	struct logengine_entry entry;
	struct logengine_bytes bytes;
	struct wal_where at;
	int rc;

	if (is_step(c))
		return keep_step(l, c, err);
	rc = logengine_move_text(l, c, &text, err);
	if (rc)
		return rc;
	fill_entry(l, c, text, &entry);
	logengine_type_attempts(l, &entry, &text);
	rc = may_write(l, &entry, err);
	if (rc)
		return rc;
	logengine_encode(&entry, &bytes);
	rc = reserve_for(l, c, bytes.size, err);
	if (rc)
		return rc;
	logengine_raise_ceiling(l, counter);
	at = logengine_append(l, entry.type, bytes.parts, bytes.n);
	if (digest_of(c))
		(void)put_digest(l, c);
	if (c->kind == CHANGE_MARK || c->kind == CHANGE_INTAKE)
		c->where = logengine_name(l, at, bytes.size, bytes.size, SLAB_NONE);
	else if (text.n && c->kind != CHANGE_DROP && c->kind != CHANGE_REMEMBER)
		c->where = logengine_name(l, at, bytes.size, text.n, SLAB_NONE);
	note(l, c, at);
	return 0;
}

static void
pin_file(struct logengine *l, uint32_t handle, struct op_ref *out)
{
	struct logengine_file *f = logengine_files_pin(&l->files, handle);

	*out = (struct op_ref){
		.pin = f,
		.where = LOGENGINE_REF_FILE | f->number,
		.size = (uint32_t)f->size,
	};
}

static int
logengine_pin(struct ledgerengine *k, uint64_t where, struct op_ref *out, struct op_ref *payload,
	      struct slu_err *err)
{
	struct logengine *l = logengine_of(k);
	struct place place;
	struct wal_pin pin;

	places_get(&l->places, where, &place);
	if (wal_pin(l->wal, place.at, &pin))
		return slu_fail(err, SLU_ECORRUPT,
				"%08" PRIu32 ".log: no record at %" PRIu32,
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

const struct ledgerengine_ops logengine_keeping = {
	.keep_message = logengine_keep_message,
	.keep_given = logengine_keep_given,
	.undo_message = logengine_undo_message,
	.keep = logengine_keep,
	.keep_document = logengine_keep_document,
	.keep_lock = logengine_keep_lock,
	.reserve_lock = logengine_reserve_lock,
	.sync = logengine_sync_all,
	.drop = logengine_drop_document,
	.pin = logengine_pin,
	.read = logengine_read_here,
	.claimed = logengine_claimed,
	.recall = logengine_recall,
	.backup = logengine_backup,
	.growth = logengine_growth,
	.footprint = logengine_footprint,
	.trim = logengine_trim,
};
