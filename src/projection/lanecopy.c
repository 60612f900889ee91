#include "projection/lanecopy.h"

#include "base/log.h"
#include "base/mem.h"

#include <strings.h>

enum {
	BATCH_BYTES = 8 << 20 /* of payloads: a transaction ends behind the message that passes it */
};

#define LOOK_EVERY SLU_SEC /* for rebuilds that operators want */

struct lanecopy *
lanecopy_new(uint32_t lane, uint32_t max_changes)
{
	struct lanecopy *const l = mem_zalloc(sizeof *l);

	if (!l)
		return NULL;
	l->lane = lane;
	changes_init(&l->changes, max_changes);
	pthread_mutex_init(&l->mtx, NULL); /* cannot fail without attributes */
	return l;
}

void
lanecopy_free(struct lanecopy *l)
{
	if (!l)
		return;
	changes_release(&l->changes);
	pthread_mutex_destroy(&l->mtx);
	mem_free(l);
}

/* ---- The lane's thread ---- */

void
lanecopy_opened(struct lanecopy *l, uint64_t epoch)
{
	pthread_mutex_lock(&l->mtx);
	l->serves = true;
	l->epoch = epoch;
	l->openings++;
	changes_lose(&l->changes);
	pthread_mutex_unlock(&l->mtx);
}

void
lanecopy_closed(struct lanecopy *l)
{
	pthread_mutex_lock(&l->mtx);
	l->serves = false;
	changes_lose(&l->changes);
	pthread_mutex_unlock(&l->mtx);
}

/* What a change means for the message that it names. Other changes are not about one message. */
static const struct meaning {
	bool counts;
	enum changes_kind kind;
} meanings[CHANGE_KINDS] = {
	[CHANGE_ACCEPT] = { true, CHANGES_ACCEPTED },
	[CHANGE_RESTORE] = { true, CHANGES_CHANGED }, /* the shard it comes from may have written a row */
	[CHANGE_CLAIM] = { true, CHANGES_CHANGED },
	[CHANGE_EXTEND] = { true, CHANGES_CHANGED },
	[CHANGE_RETURN] = { true, CHANGES_CHANGED },
	[CHANGE_SPARE] = { true, CHANGES_CHANGED },
	[CHANGE_RETRY] = { true, CHANGES_CHANGED },
	[CHANGE_DIE] = { true, CHANGES_CHANGED },
	[CHANGE_REDRIVE] = { true, CHANGES_CHANGED },
	[CHANGE_QUARANTINE] = { true, CHANGES_CHANGED },
	[CHANGE_REPLACE] = { true, CHANGES_CHANGED },
	[CHANGE_PRIORITY] = { true, CHANGES_CHANGED },
	[CHANGE_DUE] = { true, CHANGES_CHANGED },
	[CHANGE_DONE] = { true, CHANGES_ENDED },
	[CHANGE_DROP] = { true, CHANGES_ENDED },
	[CHANGE_UNTAKE] = { true, CHANGES_CHANGED },
};

void
lanecopy_changed(struct lanecopy *l, const struct change *c, slu_time now)
{
	const struct meaning *const m = &meanings[c->kind];

	pthread_mutex_lock(&l->mtx);
	if (m->counts && c->id)
		changes_note(&l->changes, c->id, m->kind, now);
	else if (c->kind == CHANGE_PURGE)
		changes_lose(&l->changes); /* it does not name the messages */
	pthread_mutex_unlock(&l->mtx);
}

/* ---- Writing ---- */

static bool
is_wanted(const struct projection_conf *conf, const struct items_row *row)
{
	for (unsigned i = 0; i < conf->n_queues; i++) {
		struct slice rest = slice_of(conf->queues[i]), space;
		const bool named = slice_cut(&rest, '/', &space);

		if (space.n == row->space.n && strncasecmp(space.p, row->space.p, space.n) == 0 &&
		    (!named || (rest.n == row->queue.n && strncasecmp(rest.p, row->queue.p, rest.n) == 0)))
			return true;
	}
	return conf->n_queues == 0;
}

static int
commit(struct lanecopy *l, struct copier *w, struct slu_err *err)
{
	int rc = 0;

	if (w->batch.n == 0)
		return 0;
	rc = items_write(w->items, &l->fence, &w->batch, err);
	if (!rc) {
		atomic_fetch_add(&w->messages, w->batch.n);
		atomic_fetch_add(&w->transactions, 1);
	}
	items_batch_clear(&w->batch);
	return rc;
}

/* Adds the i-th message of the look to the batch. A damaged message keeps the row that it has. */
static int
add(struct copier *w, uint32_t i, uint64_t id, struct slu_err *err)
{
	struct items_row row;
	struct slu_err why = { 0 };
	const int rc = lanelook_row(&w->look, i, &row, &why);

	if (rc && rc != SLU_ENOTFOUND && rc != SLU_ECORRUPT)
		return slu_fail(err, (enum slu_code)rc, "%s", why.text);
	if (rc == SLU_ENOTFOUND || (!rc && !is_wanted(w->conf, &row)))
		items_batch_drop(&w->batch, id);
	else if (!rc)
		items_batch_put(&w->batch, &row);
	return 0;
}

/* The lane does not answer: it is no longer ours, or its engine has failed. Either ends with lanecopy_opened or
 * lanecopy_closed. SLU_EMOVED has another meaning for the caller. */
static int
fail_lane(int rc, struct slu_err *err)
{
	if (rc == SLU_EMOVED)
		return slu_fail(err, SLU_EBUSY, "the shard is no longer at this node");
	return rc;
}

/* Writes up to LANELOOK_MAX messages as they are now. */
static int
write_ids(struct lanecopy *l, struct copier *w, const uint64_t *ids, uint32_t n, struct slu_err *err)
{
	int rc = fail_lane(lanelook_get(&w->look, l->lane, ids, n, err), err);

	items_batch_clear(&w->batch);
	for (uint32_t i = 0; i < n && !rc; i++) {
		rc = fail_lane(add(w, i, ids[i], err), err);
		if (!rc && (w->batch.bytes >= BATCH_BYTES || w->batch.n >= w->conf->batch))
			rc = commit(l, w, err);
	}
	if (!rc)
		rc = commit(l, w, err);
	lanelook_end(&w->look);
	return rc;
}

/* Writes messages that have changed and are old enough. If that fails, they wait again. */
static int
write_changes(struct lanecopy *l, struct copier *w, slu_time now, uint32_t *n, struct slu_err *err)
{
	int rc = 0;

	pthread_mutex_lock(&l->mtx);
	*n = changes_take(&l->changes, now - w->conf->after, w->ids, LANELOOK_MAX);
	pthread_mutex_unlock(&l->mtx);
	if (*n > 0)
		rc = write_ids(l, w, w->ids, *n, err);
	if (!rc)
		return 0;
	pthread_mutex_lock(&l->mtx);
	for (uint32_t i = 0; i < *n; i++)
		changes_note(&l->changes, w->ids[i], CHANGES_CHANGED, now);
	pthread_mutex_unlock(&l->mtx);
	return rc;
}

/* ---- Rebuilds ---- */

static void
set_step(struct lanecopy *l, enum copy_step step)
{
	l->step = step;
	l->at = 0;
	pthread_mutex_lock(&l->mtx);
	l->rebuilding = step != COPY_DONE;
	pthread_mutex_unlock(&l->mtx);
}

static void
begin_rebuild(struct lanecopy *l, struct copier *w, slu_time now)
{
	set_step(l, COPY_LIST);
	l->began = now;
	l->rebuilt = 0;
	atomic_fetch_add(&w->rebuilds, 1);
}

/* PROJECTION-2: messages that are new come with the changes. */
static uint32_t
leave_new_out(struct lanecopy *l, uint64_t *ids, uint32_t n)
{
	uint32_t kept = 0;

	pthread_mutex_lock(&l->mtx);
	for (uint32_t i = 0; i < n; i++)
		if (!changes_is_new(&l->changes, ids[i]))
			ids[kept++] = ids[i];
	pthread_mutex_unlock(&l->mtx);
	return kept;
}

/* One page. */
static int
rebuild(struct lanecopy *l, struct copier *w, slu_time now, struct slu_err *err)
{
	uint64_t at = l->at;
	uint32_t n = 0, kept;
	int rc;

	if (l->step == COPY_LIST)
		rc = fail_lane(lanelook_list(&w->look, l->lane, &at, w->ids, &n, err), err);
	else
		rc = items_page(w->items, &l->fence, l->step == COPY_DEAD, at, w->ids, LANELOOK_MAX, &n, err);
	if (rc)
		return rc;
	if (l->step != COPY_LIST)
		at = n == LANELOOK_MAX ? w->ids[n - 1] : 0;
	kept = l->step == COPY_LIST ? leave_new_out(l, w->ids, n) : n;
	rc = kept ? write_ids(l, w, w->ids, kept, err) : 0;
	if (rc)
		return rc; /* the same page again */
	l->rebuilt += n;
	l->at = at;
	if (at == 0)
		set_step(l, l->step + 1);
	if (l->step == COPY_DONE)
		log_info(w->conf->log, "projection rebuilt", F_STR("shard", l->shard), F_U64("checked", l->rebuilt),
			 F_TIME("took", now - l->began));
	return 0;
}

/* ---- Work ---- */

/* Returns whether this node may write. */
static bool
follow_lane(struct lanecopy *l, struct copier *w, slu_time now, uint64_t *epoch)
{
	bool serves, anew;

	pthread_mutex_lock(&l->mtx);
	serves = l->serves;
	*epoch = l->epoch;
	if (serves && l->opening != l->openings) {
		l->opening = l->openings;
		l->claimed = l->deposed = false;
	}
	anew = serves && l->changes.lost && !l->deposed;
	if (anew)
		changes_begin(&l->changes);
	pthread_mutex_unlock(&l->mtx);
	if (anew)
		begin_rebuild(l, w, now);
	return serves && !l->deposed;
}

static int
claim(struct lanecopy *l, struct copier *w, uint64_t epoch, struct slu_err *err)
{
	int rc;

	(void)broker_batch_name(w->broker, l->lane, l->shard);
	rc = items_claim(w->items, l->shard, epoch, &l->fence, err);
	if (rc)
		return rc;
	l->claimed = true;
	l->wanted = l->fence.wanted;
	log_info(w->conf->log, "projection begins", F_STR("shard", l->shard), F_U64("epoch", l->fence.epoch));
	return 0;
}

/* One batch. */
static int
work(struct lanecopy *l, struct copier *w, slu_time now, bool *more, struct slu_err *err)
{
	uint32_t n = 0;
	int rc = write_changes(l, w, now, &n, err);

	if (!rc && n < LANELOOK_MAX && l->step != COPY_DONE)
		rc = rebuild(l, w, now, err);
	if (!rc && n == 0 && now - l->looked >= LOOK_EVERY) {
		rc = items_look(w->items, &l->fence, err);
		l->looked = now;
	}
	if (!rc && l->fence.wanted != l->wanted) {
		l->wanted = l->fence.wanted;
		begin_rebuild(l, w, now);
	}
	*more = !rc && (n == LANELOOK_MAX || l->step != COPY_DONE);
	return rc;
}

/* PROJECTION-4 */
static void
note_deposed(struct lanecopy *l, struct copier *w, const struct slu_err *err)
{
	l->deposed = true;
	set_step(l, COPY_DONE);
	pthread_mutex_lock(&l->mtx);
	changes_lose(&l->changes);
	pthread_mutex_unlock(&l->mtx);
	log_warn(w->conf->log, "projection ends", F_STR("shard", l->shard), F_STR("why", err->text));
}

int
lanecopy_work(struct lanecopy *l, struct copier *w, slu_time now, bool *more, struct slu_err *err)
{
	uint64_t epoch;
	int rc = 0;

	*more = false;
	if (!follow_lane(l, w, now, &epoch))
		return 0;
	if (!l->claimed)
		rc = claim(l, w, epoch, err);
	if (!rc)
		rc = work(l, w, now, more, err);
	if (rc == SLU_EMOVED) {
		note_deposed(l, w, err);
		rc = 0;
	}
	pthread_mutex_lock(&l->mtx);
	l->behind = !rc ? 0 : l->behind ? l->behind
					: now;
	pthread_mutex_unlock(&l->mtx);
	atomic_fetch_add(&w->failures, rc != 0);
	return rc;
}

void
lanecopy_count(struct lanecopy *l, slu_time after, slu_time now, struct projection_counts *out)
{
	slu_time since;

	pthread_mutex_lock(&l->mtx);
	since = changes_oldest(&l->changes);
	since = since == SLU_NEVER ? now : since + after;
	if (l->behind && l->behind < since)
		since = l->behind;
	if (l->serves && now - since > out->lag)
		out->lag = now - since;
	out->waiting += changes_count(&l->changes);
	out->rebuilding |= l->serves && l->rebuilding;
	pthread_mutex_unlock(&l->mtx);
}
