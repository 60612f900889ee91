/*
 * front.c - a log in a front folder: answered by the folder, carried to the store behind (LOGENGINE-13).
 *
 *      commit ──> folder, synced ──> answer
 *                    │ each front.flush.interval, or with front.flush.bytes, or on demand
 *                    v
 *                 mirror_carry ──> store
 *
 * One stretch of the log is on its way at a time: from the place that the store has to the goal. When the
 * store has it, the next one may begin.
 */
#include "engine/log/logengine_private.h"

#include <inttypes.h>

#define GATHER (20 * SLU_MS) /* with front.max reached: how long ops wait before the next look */

static struct carry_place
end_of(struct logengine *l, uint64_t *seq)
{
	struct wal_stats stats;

	wal_stats(l->wal, &stats);
	*seq = stats.seq;
	return (struct carry_place){ stats.last, stats.end };
}

/* Bytes of the log between two places. */
static uint64_t
bytes_between(const struct logengine *l, struct carry_place from, struct carry_place to)
{
	uint64_t bytes = to.offset;

	if (!carry_is_before(from, to))
		return 0;
	for (uint32_t s = from.segment ? from.segment : to.segment; s < to.segment; s++)
		bytes += wal_size_of(l->wal, s);
	return bytes > from.offset ? bytes - from.offset : 0;
}

static void
note_lag(struct logengine *l, const struct mirror_home *home)
{
	struct logengine_front *const f = &l->stored.front;
	const uint64_t bytes = bytes_between(l, home->place, f->end);
	const uint64_t groups = f->groups > home->groups ? f->groups - home->groups : 1;

	f->lag = bytes;
	atomic_store_explicit(&l->lag.groups, bytes ? groups : 0, memory_order_relaxed);
	atomic_store_explicit(&l->lag.bytes, bytes, memory_order_relaxed);
	atomic_store_explicit(&l->lag.since, bytes ? f->since : 0, memory_order_relaxed);
}

/* ---- Carrying ---- */

/* The store has the goal, or the shard is lost. */
static int
end_stretch(struct logengine *l, struct slu_err *err)
{
	struct logengine_front *const f = &l->stored.front;
	const int rc = mirror_check(l->stored.mirror, err);

	if (rc)
		return rc == MIRROR_BUSY ? 0 : rc;
	f->carries = false;
	f->home_seq = f->goal_seq;
	f->since = f->next_since;
	f->next_since = 0;
	return 0;
}

/* Only what is synced is carried, so the store never has more than the folder. */
static int
begin_stretch(struct logengine *l, struct slu_err *err)
{
	struct logengine_front *const f = &l->stored.front;
	const int rc = wal_flush(l->wal, err);

	if (rc)
		return rc;
	f->goal = end_of(l, &f->goal_seq);
	f->carries = true;
	f->tick = time_add(clock_mono(l->clock), f->interval);
	atomic_store(&l->flush_wanted, false);
	mirror_carry(l->stored.mirror, f->goal);
	return 0;
}

static bool
is_due(const struct logengine *l)
{
	const struct logengine_front *const f = &l->stored.front;

	if (!carry_is_before(f->goal, f->end))
		return false;
	return atomic_load_explicit(&l->flush_wanted, memory_order_relaxed) || clock_mono(l->clock) >= f->tick ||
	       bytes_between(l, f->goal, f->end) >= f->bytes;
}

static int
tick(struct logengine *l, struct slu_err *err)
{
	struct logengine_front *const f = &l->stored.front;
	struct mirror_home home = mirror_home(l->stored.mirror);
	int rc = 0;

	if (f->carries && home.reached)
		rc = end_stretch(l, err);
	else if (f->carries && clock_mono(l->clock) >= f->tick)
		mirror_nudge(l->stored.mirror);
	if (!rc && !f->carries && is_due(l))
		rc = begin_stretch(l, err);
	else if (f->carries && clock_mono(l->clock) >= f->tick)
		f->tick = time_add(clock_mono(l->clock), f->interval);
	home = mirror_home(l->stored.mirror);
	note_lag(l, &home);
	return rc;
}

int
logengine_front_commit(struct logengine *l, struct slu_err *err)
{
	struct logengine_front *const f = &l->stored.front;
	const struct carry_place end = end_of(l, &f->seq);

	if (carry_is_before(f->end, end)) {
		const slu_time now = clock_boot(l->clock);

		f->groups++;
		f->end = end;
		if (!f->carries)
			f->since = f->since ? f->since : now;
		else
			f->next_since = f->next_since ? f->next_since : now;
	}
	return tick(l, err);
}

int
logengine_front_opened(struct logengine *l, struct slu_err *err)
{
	struct logengine_front *const f = &l->stored.front;
	int rc;

	f->end = end_of(l, &f->seq);
	f->goal = mirror_home(l->stored.mirror).place;
	f->since = clock_boot(l->clock);
	rc = mirror_count(l->stored.mirror, f->end, &f->groups, err);
	if (!rc)
		log_info(l->log, "front folder", F_STR("shard", l->stored.line), F_U64("groups", f->groups),
			 F_U64("bytes", bytes_between(l, f->goal, f->end)));
	return rc ? rc : begin_stretch(l, err);
}

slu_time
logengine_front_due(const struct logengine *l)
{
	const struct logengine_front *const f = &l->stored.front;
	const bool has_more = carry_is_before(f->goal, f->end);

	if (f->carries && mirror_home(l->stored.mirror).reached)
		return l->now;
	if (!f->carries && (!has_more || is_due(l)))
		return has_more ? l->now : SLU_NEVER;
	return time_add(l->now, f->tick > l->mono ? f->tick - l->mono : 0);
}

bool
logengine_front_is_home(const struct logengine *l, struct wal_where place)
{
	const struct carry_place at = { place.segment, place.offset };

	return !l->stored.front.on || !carry_is_before(mirror_home(l->stored.mirror).place, at);
}

bool
logengine_flush(struct engine *e)
{
	struct logengine *const l = CONTAINER(e, struct logengine, engine);

	if (l->lag.has_front)
		atomic_store(&l->flush_wanted, true);
	return l->lag.has_front;
}

/* ---- front.max ---- */

static bool
is_over(const struct logengine *l)
{
	const struct logengine_front *const f = &l->stored.front;

	return f->on && f->max && f->lag >= f->max;
}

slu_time
logengine_front_rest(struct logengine *l)
{
	struct logengine_front *const f = &l->stored.front;
	const slu_time now = clock_mono(l->clock);

	if (!is_over(l)) {
		f->over_since = 0;
		return 0;
	}
	f->over_since = f->over_since ? f->over_since : now;
	return now - f->over_since < f->patience ? GATHER : 0;
}

int
logengine_front_room(const struct logengine *l, struct slu_err *err)
{
	const struct logengine_front *const f = &l->stored.front;

	if (!is_over(l))
		return 0;
	return slu_fail(err, SLU_EFULL,
			"the front folder is full: %" PRIu64 " bytes wait for the store, front.max is %" PRIu64,
			f->lag, f->max);
}

/* ---- Stop ---- */

/* Waits until the store has all, or until front.drain is over. */
static int
wait_home(struct logengine *l, struct slu_err *err)
{
	struct logengine_front *const f = &l->stored.front;
	struct clock *const clock = l->more.store_clock ? l->more.store_clock : &clock_system;
	const slu_time until = time_add(clock_mono(clock), f->drain);
	int rc = 0;

	while (!rc && clock_mono(clock) < until) {
		if (f->carries && !mirror_home(l->stored.mirror).reached) {
			mirror_pause_until(l->stored.mirror, until);
			continue;
		}
		atomic_store(&l->flush_wanted, true);
		rc = tick(l, err);
		if (!f->carries && !carry_is_before(f->goal, f->end))
			break;
	}
	return rc;
}

void
logengine_front_drain(struct logengine *l)
{
	struct logengine_front *const f = &l->stored.front;
	struct slu_err err = { 0 };

	if (!f->on || l->failed || !l->wal)
		return;
	(void)wait_home(l, &err); /* the log line has the reason */
	if (f->lag == 0)
		log_info(l->log, "front folder drained", F_STR("shard", l->stored.line));
	else
		log_warn(l->log, "front folder not drained, the next start carries the rest",
			 F_STR("shard", l->stored.line),
			 F_U64("groups", atomic_load_explicit(&l->lag.groups, memory_order_relaxed)),
			 F_U64("bytes", f->lag), F_STR("why", err.text));
}
