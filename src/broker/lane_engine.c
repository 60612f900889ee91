/*
 * lane_engine.c - the engine of a lane: opened, failed, reopened, closed.
 */
#include "broker/lane_private.h"

#include "base/log.h"
#include "base/mem.h"
#include "broker/move/follow.h"
#include "broker/outbox.h"
#include "core/backoff.h"

/* LANE-4: after an attempt that took long, also REST times as long. */
static const struct slu_backoff reopening = {
	.kind = SLU_BACKOFF_EXPONENTIAL,
	.base = 100 * SLU_MS,
	.max = LANE_RETRY_MAX,
};

enum {
	REST = 4
};

#define STEADY (60 * SLU_SEC) /* an engine that ran so long begins with the shortest delay */

/* ---- Called by the engine ---- */

static void
on_ready(void *arg, struct slice space, struct slice queue, uint32_t n)
{
	struct lane *s = arg;

	dispatch_ready(&s->dispatch, space, queue, n);
	follow_ready(s, space, queue, n);
	if (outbox_is(space))
		outbox_kick(s->outbox, queue);
}

static void
on_freed(void *arg, struct slice space, struct slice key)
{
	struct lane *s = arg;

	dispatch_freed(&s->dispatch, space, key);
}

static bool
is_waited_for(void *arg, struct slice space, struct slice queue)
{
	struct lane *s = arg;

	return dispatch_is_waited_for(&s->dispatch, space, queue);
}

/* Changes that end a lease, if the message has one. */
static const bool ends_lease[CHANGE_KINDS] = {
	[CHANGE_RETURN] = true,
	[CHANGE_RETRY] = true,
	[CHANGE_DIE] = true,
	[CHANGE_DONE] = true,
	[CHANGE_QUARANTINE] = true,
	[CHANGE_SPARE] = true,
};

void
lane_make_room(struct lane *s, uint64_t stream)
{
	struct op *const op = stream ? dispatch_room(&s->dispatch, stream) : NULL;

	if (!op)
		return;
	op->route.next = s->resumed;
	s->resumed = op;
}

static void
on_changed(void *arg, const struct change *c)
{
	struct lane *s = arg;
	uint64_t stream;

	s->deaths |= c->kind == CHANGE_DIE;
	if (c->kind == CHANGE_EXTEND)
		credit_extend(&s->credits, c->id, c->until);
	if (!ends_lease[c->kind])
		return;
	stream = credit_settle(&s->credits, c->id, c->token);
	if (c->expired)
		dispatch_lapse(&s->dispatch, stream); /* LANE-11 */
	else
		lane_make_room(s, stream);
}

static void
on_observed(void *arg, const struct change *c)
{
	const struct lane *s = arg;

	s->conf.observer->changed(s->conf.observer->arg, s->index, c);
}

static void
on_poke(void *arg)
{
	struct lane *s = arg;

	mailbox_poke(&s->mailbox);
}

static bool
on_reading(void *arg, uint64_t done, uint64_t all)
{
	struct lane *s = arg;

	(void)done;
	(void)all; /* only the broker's open reports progress */
	return !mailbox_is_closed(&s->mailbox);
}

/* ---- Open and close ---- */

/* What the engine found. Time and ids never go back. `offset`: between the boot clock and the time
 * of the lane, at least. */
static void
take_found(struct lane *s, const struct engine_found *found, slu_time offset)
{
	s->now = found->now > s->now ? found->now : s->now;
	s->offset = s->now - clock_boot(s->clock);
	if (s->offset < offset)
		s->offset = offset; /* the time of the opening counts */
	atomic_store_explicit(&s->ahead_of_boot, s->offset, memory_order_relaxed);
	s->conf.patience = found->patience ? found->patience : s->conf.patience;
	s->highest_id = found->highest_id;
	s->one_queue = found->one_queue;
	s->opened_at = s->now;
}

void
lane_notice(const struct lane *s, struct slice queue)
{
	if (s->notice)
		s->notice->scheduled(s->notice->arg, queue);
}

static void
tell_opened(const struct lane *s, const struct engine_found *found)
{
	const struct engine_observer *const o = s->conf.observer;

	if (o)
		o->opened(o->arg, s->index, found->epoch);
	outbox_opened(s->outbox);
	lane_notice(s, (struct slice){ 0 });
}

int
lane_open_engine(struct lane *s, const struct engine_ops *ops, const struct engine_conf *conf,
		 struct slu_err *err)
{
	struct engine_conf *const own = &s->conf;
	struct engine_found found = { 0 };
	slu_time offset;
	int rc;

	*own = *conf;
	own->wall = clock_wall(s->clock);
	offset = own->wall - clock_boot(s->clock);
	own->ready = on_ready;
	own->freed = on_freed;
	own->waited_for = is_waited_for;
	own->ready_arg = s;
	own->changed = on_changed;
	own->changed_arg = s;
	own->observe = conf->observer ? on_observed : NULL;
	own->observe_arg = s;
	own->poke = on_poke;
	own->poke_arg = s;
	if (conf->folder) {
		s->folder = mem_strdup(conf->folder);
		own->folder = s->folder;
		if (!s->folder)
			return slu_fail(err, SLU_ENOMEM, "no memory for shard %u", s->index);
	}
	rc = ops->open(&s->engine, own, &found, err);
	if (rc)
		return rc;
	take_found(s, &found, found.own_time ? s->now - clock_boot(s->clock) : offset);
	own->left = NULL; /* a move that this process began goes on or is repaired */
	own->reading = on_reading;
	own->reading_arg = s;
	if (own->tenure)
		lane_begin_tenure(s);
	else
		tell_opened(s, &found);
	return 0;
}

int
lane_close_engine(struct lane *s)
{
	const int rc = s->engine ? s->engine->ops->close(s->engine) : 0;

	mem_free(s->folder);
	return rc;
}

/* ---- Failing and reopening (LANE-4) ---- */

void
lane_note_failure(struct lane *s, int rc, const struct slu_err *err)
{
	pthread_mutex_lock(&s->mtx);
	s->why = *err;
	s->failed = rc;
	pthread_mutex_unlock(&s->mtx);
	s->down = *err;
	s->down.code = rc == SLU_EMOVED ? SLU_EMOVED : SLU_EDOWN;
}

static void
retry_later(struct lane *s, slu_time took)
{
	slu_time delay;

	s->attempts++;
	delay = backoff_delay(&reopening, s->attempts, 0);
	delay = delay > REST * took ? delay : REST * took;
	s->retry_at = s->engine->ops->reopen && !s->conf.tenure ? time_add(s->now, delay) : SLU_NEVER;
}

void
lane_fail_engine(struct lane *s, int rc, const struct slu_err *err)
{
	if (s->now - s->opened_at >= STEADY)
		s->attempts = 0;
	lane_note_failure(s, rc, err);
	log_error(s->log, "shard failed", F_U64("shard", s->index), F_STR("why", err->text));
	retry_later(s, 0);
}

/* Leases of streams are counted anew: the engine may have lost some that were written and not
 * synced. */
void
lane_serve_again(struct lane *s, const struct engine_found *found)
{
	take_found(s, found, s->offset);
	flows_forget(&s->credits);
	if (s->conf.given)
		s->conf.given(s->conf.given_arg, found->highest_id);
	s->failed = 0;
	s->retry_at = SLU_NEVER;
	tell_opened(s, found);
}

void
lane_reopen_engine(struct lane *s)
{
	const slu_time began = clock_mono(s->clock);
	struct engine_found found = { 0 };
	struct slu_err err = { 0 };
	int rc;

	if (s->closed || s->now < s->retry_at)
		return;
	s->conf.wall = s->now;
	rc = s->engine->ops->reopen(s->engine, &s->conf, &found, &err);
	if (!rc) {
		log_info(s->log, "shard reopened", F_U64("shard", s->index), F_U64("attempts", s->attempts));
		lane_serve_again(s, &found);
		return;
	}
	if (rc != SLU_EBUSY) {
		lane_note_failure(s, SLU_EDOWN, &err);
		log_warn(s->log, "shard not reopened", F_U64("shard", s->index), F_STR("why", err.text));
	}
	retry_later(s, clock_mono(s->clock) - began);
}

void
lane_note_doubt(struct lane *s, const struct slu_err *err)
{
	pthread_mutex_lock(&s->mtx);
	s->doubted = err != NULL;
	if (err)
		s->why = *err;
	pthread_mutex_unlock(&s->mtx);
	if (err)
		log_warn(s->log, "shard does not answer", F_U64("shard", s->index), F_STR("why", err->text));
	else if (!s->failed)
		log_info(s->log, "shard answers again", F_U64("shard", s->index));
}

int
lane_failure(struct lane *s, struct slu_err *err)
{
	int rc;

	pthread_mutex_lock(&s->mtx);
	rc = s->failed ? s->failed : s->doubted ? SLU_EDOWN
						: 0;
	if (rc && err)
		*err = s->why;
	pthread_mutex_unlock(&s->mtx);
	return rc;
}
