/*
 * sim_life.c - the process and its disk: open, stop, kill, power cut, damage, and
 * everything that can go wrong on the way.
 */
#include "sim_world.h"

#include "broker/lane.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	FULL_SEGMENT = 64 << 10
};

/* The one that is running: an engine's open has no argument for it. */
static struct sim_world *current;

static void
trace_op(const char *shard, const struct op *op, int rc)
{
	printf("# %4u   %s: %s", current->step, shard, op_verb_name(op->verb));
	if (op->verb == OP_MOVE)
		printf(" %d, batch %" PRIu64 ", counter %" PRIu64 ", mark %" PRIx64 " %s, %" PRIu64 " messages",
		       op->move.step, op->move.batch, op->move.counter, op->move.epoch,
		       op->move.lives, op->move.messages);
	for (uint32_t i = 0; i < op->n_puts; i++)
		printf(", %" PRIu64 " %.*s %.*s%s", op->puts[i].m.id, (int)op->puts[i].m.key.n,
		       op->puts[i].m.key.p, (int)op->puts[i].m.idem.n, op->puts[i].m.idem.p,
		       op->puts[i].taken ? " taken" : "");
	for (uint32_t i = 0; i < op->n_items; i++)
		printf(", %" PRIu64 ": %d", op->items[i].id, op->items[i].rc);
	for (uint32_t i = 0; i < op->n_rows && !rc; i++)
		printf(", row %" PRIu64, op->rows[i].id);
	printf(" (%.*s/%.*s, epoch %" PRIx64 "): %d %s%s\n", (int)op->space.n, op->space.p,
	       (int)op->queue.n, op->queue.p, op->home.epoch, rc ? rc : op->rc,
	       op->home.elsewhere[0] ? "-> " : "", op->home.elsewhere);
}

/* A trace tells what each shard ran: an op of a queue that moves asks several. */
static int
run_traced(struct engine *e, struct op *batch, slu_time due, slu_time now, struct slu_err *err)
{
	const int rc = engine_log.run(e, batch, due, now, err);
	unsigned shard = 0;

	if (!current->conf.moves || !current->conf.trace)
		return rc;
	while (current->shards[shard].engine != e)
		shard++;
	EACH_OP(op, batch)
	trace_op(broker_shard_name(current->broker, shard), op, rc);
	return rc;
}

/* The outcome is known a moment later: the shard looks again in one of the next rounds. The batch took
 * no time, so that the shard does not gather (LANE-15): a shard that gathers seems to rest. */
static int
commit_late(struct engine *e, struct slu_err *err)
{
	struct world_shard *s = current->shards;

	while (s->engine != e)
		s++;
	if (test_random(&current->lateness) % 2) {
		current->sum.lates += !s->open;
		s->open = true;
		s->poke(s->poke_arg);
		(void)slu_fail(err, SLU_EDOWN, "the disk of a test");
		return ENGINE_LATER;
	}
	s->open = false;
	((struct lane *)s->poke_arg)->began = clock_mono(&current->clock.clock);
	return engine_log.commit(e, err);
}

/* A shard that lost patience closes with an open batch. */
static int
close_late(struct engine *e)
{
	struct slu_err err;
	bool open = false;

	EACH(i, current->shards)
		open |= current->shards[i].engine == e && current->shards[i].open;
	if (open)
		(void)engine_log.commit(e, &err); /* close reports a failure */
	return engine_log.close(e);
}

static int
open_log(struct engine **out, const struct engine_conf *conf, struct engine_found *found,
	 struct slu_err *err)
{
	struct sim_world *w = current;
	struct world_shard *s = &w->shards[w->opened];
	const int rc = logengine_open(out, conf, &w->logengine_conf, found, err);

	if (rc)
		return rc;
	(*out)->ops = &w->engine;
	*s = (struct world_shard){
		.engine = *out,
		.offset = found->now - clock_boot(&w->clock.clock),
		.poke = conf->poke,
		.poke_arg = conf->poke_arg,
	};
	w->opened++;
	return 0;
}

/* Only when the world wants it: world_reopen. */
static int
reopen_log(struct engine *e, const struct engine_conf *conf, struct engine_found *found,
	   struct slu_err *err)
{
	if (!current->reopens)
		return slu_fail(err, SLU_EBUSY, "not now");
	return engine_log.reopen(e, conf, found, err);
}

static int
try_open(struct sim_world *w)
{
	struct broker_shard_conf shards[MODEL_SHARDS] = { {
		.engine = &w->engine,
		.lanes = w->n_shards,
		.storage = { .folder = "log", .disk = &w->disk->disk, .log = w->log },
	} };
	struct broker_conf conf = {
		.shards = shards,
		.n_shards = 1,
		.clock = &w->clock.clock,
		.by_hand = true,
	};
	int rc;

	if (w->conf.moves) {
		conf.n_shards = w->n_shards;
		for (unsigned i = 0; i < w->n_shards; i++)
			shards[i] = world_shard_conf(w, i);
		conf.map = world_map(w);
		conf.hand = &w->hand;
	}
	w->opened = 0;
	w->engine = engine_log;
	w->engine.open = open_log;
	w->engine.run = run_traced;
	w->engine.reopen = reopen_log;
	if (w->conf.lates)
		w->engine.commit = commit_late;
	if (w->conf.lates)
		w->engine.close = close_late;
	current = w;
	rc = broker_open(&w->broker, &conf, &w->err);
	if (!rc)
		atomic_store(&broker_quota(w->broker)->idle, w->idle);
	return rc;
}

/* ---- Damage ---- */

static void
heal_damage(struct sim_world *w)
{
	size_t size;
	char *p = simdisk_content(w->disk, w->hurt.path, &size);

	if (w->hurt.path[0] && p && w->hurt.at + w->hurt.n <= size)
		memcpy(p + w->hurt.at, w->hurt.was, w->hurt.n);
	w->hurt.path[0] = 0;
}

/* Damage while it is down: a bit that flips, or a sector of zeros. The next open finds it, or it does not matter. */
static void
hurt(struct sim_world *w)
{
	const char *name = simdisk_name(w->disk, (unsigned)world_dice(w, 12));
	size_t size;
	char *p;

	if (!name || strstr(name, "lock"))
		return;
	p = simdisk_content(w->disk, name, &size);
	if (size < SIM_SECTOR)
		return;
	snprintf(w->hurt.path, sizeof w->hurt.path, "%s", name);
	w->hurt.at = world_dice(w, size);
	w->hurt.n = 1;
	if (world_chance(w, 30)) {
		w->hurt.at -= w->hurt.at % SIM_SECTOR;
		w->hurt.n = SIM_SECTOR;
	}
	memcpy(w->hurt.was, p + w->hurt.at, w->hurt.n);
	if (w->hurt.n == 1)
		p[w->hurt.at] ^= (char)(1 << world_dice(w, 8));
	else
		memset(p + w->hurt.at, 0, w->hurt.n);
	world_note(w, name, w->hurt.at, w->hurt.n, 0);
	w->sum.damages++;
}

/* Refused: by the name of the file, and nothing has been changed. */
static void
check_refusal(struct sim_world *w, int rc)
{
	const char *name = strrchr(w->hurt.path, '/') + 1;

	if (rc != SLU_ECORRUPT && rc != SLU_EINVAL)
		world_fail(w, "damage of %s at %zu: %d, %s", name, w->hurt.at, rc, w->err.text);
	if (!strstr(w->err.text, name))
		world_fail(w, "damage of %s at %zu is not named: %s", name, w->hurt.at,
			   w->err.text);
}

/* ---- Open ---- */

static void
forget_faults(struct sim_world *w)
{
	simdisk_kill(w->disk);
	w->disk->capacity = 0;
	w->failing = w->limited = w->tight = false;
}

/* The wall clock is not what it was. */
static void
step_wall(struct sim_world *w)
{
	static const slu_time steps[] = { SLU_SEC, SLU_MIN, SLU_HOUR, 24 * SLU_HOUR };
	const slu_time by = steps[world_dice(w, COUNT(steps))];
	const slu_time wall = clock_wall(&w->clock.clock);

	if (!w->faults || !world_chance(w, 20))
		return;
	fakeclock_set_wall(&w->clock, world_chance(w, 50) ? wall + by : wall - by);
}

/* Also while it is being opened the power may go. */
static void
spoil_open(struct sim_world *w)
{
	if (!w->faults || w->hurt.path[0])
		return;
	if (world_chance(w, 10))
		simdisk_power_off(w->disk, 1 + world_dice(w, 12));
	else if (world_chance(w, 3)) {
		simdisk_fail(w->disk, SIM_ALL, 1 + world_dice(w, 40), EIO, true);
		w->failing = true;
	}
}

static void
power_cut(struct sim_world *w)
{
	world_note(w, "power cut", 0, 0, 0);
	w->lost = true;
	w->sum.cuts++;
	if (w->conf.tear == SIM_TEAR_BYTE) {
		const size_t last = simdisk_tear(w->disk, ".log", w->conf.bytes);

		w->sum.last = w->sum.cuts == 1 ? last : w->sum.last;
	} else
		simdisk_crash(w->disk, world_dice(w, 1 << 20));
}

/* It did not open: was there a reason? */
static void
after_refusal(struct sim_world *w, int rc)
{
	world_note(w, "not opened", (uint64_t)rc, 0, 0);
	if (w->disk->dead) {
		if (world_chance(w, 70))
			power_cut(w);
		else
			forget_faults(w);
	} else if (w->hurt.path[0]) {
		check_refusal(w, rc);
		heal_damage(w);
	} else if (w->failing || w->limited) {
		forget_faults(w);
	} else {
		world_fail(w, "it does not open: %d, %s", rc, w->err.text);
	}
}

/* Which shard a queue is on is known as soon as there is a broker. */
static void
place_queues(struct sim_world *w)
{
	for (unsigned q = 0; q < MODEL_PLACES; q++)
		w->model.queues[q].shard =
			broker_lane_of(w->broker, NULL, world_space(q), world_queue(q));
}

void
world_open(struct sim_world *w)
{
	bool done = false;

	for (int i = 0; !done; i++) {
		int rc;

		if (i == 100)
			world_fail(w, "it never opens");
		step_wall(w);
		if (i < 5)
			spoil_open(w);
		w->draining = w->dying = false;
		rc = try_open(w);
		w->want = (struct broker_totals){ 0 };
		if (rc) {
			after_refusal(w, rc);
			continue;
		}
		w->sum.opens++;
		place_queues(w);
		w->lost = w->lost || w->hurt.path[0];
		world_note(w, "open", w->model.n, (uint64_t)w->shards[0].offset, 0);
		done = w->judge->adopts(w);
		if (!done) {
			world_crash(w, world_chance(w, 50));
			continue;
		}
		w->lost = w->failing = w->disk->dead;
		w->hurt.path[0] = 0;
	}
	if (!w->disk->dead)
		simdisk_heal(w->disk);
}

/* The one shard has failed, the disk is well again, and nothing is pinned: the shard reopens its
 * engine by itself, and holds what it would after a kill. False: it is to be started anew. */
bool
world_reopen(struct sim_world *w)
{
	struct world_shard *const s = &w->shards[0];

	if (w->n_shards > 1 || w->conf.moves || !s->failed || w->disk->dead)
		return false;
	EACH(i, w->calls)
		if (w->calls[i].state == CALL_READING) {
			op_unpin(&w->calls[i].op);
			w->calls[i].state = CALL_FREE;
		}
	simdisk_heal(w->disk);
	w->disk->capacity = 0;
	w->limited = w->tight = false;
	w->reopens = true;
	fakeclock_advance(&w->clock, LANE_RETRY_MAX);
	world_round(w);
	w->reopens = false;
	if (broker_health(w->broker, 0, &w->err))
		world_fail(w, "it does not reopen: %s", w->err.text);
	world_note(w, "reopen", w->model.n, 0, 0);
	s->failed = s->hurt = s->late = false;
	w->sum.opens++;
	w->sum.reopens++;
	if (!w->judge->adopts(w))
		world_fail(w, "it has reopened, and fails");
	w->lost = w->failing = false;
	return true;
}

/* ---- End ---- */

static void
close_broker(struct sim_world *w)
{
	EACH(i, w->calls)
		if (w->calls[i].state == CALL_READING) {
			op_unpin(&w->calls[i].op);
			w->calls[i].state = CALL_FREE;
		}
	broker_stop(w->broker);
	world_end_movers(w);
	(void)broker_close(w->broker); /* a dead disk keeps nothing */
	w->broker = NULL;
	EACH(i, w->calls)
		if (w->calls[i].state != CALL_FREE)
			world_fail(w, "B1: %u was never answered", w->calls[i].serial);
}

void
world_crash(struct sim_world *w, bool power)
{
	world_note(w, power ? "power" : "kill", w->disk->dead, 0, 0);
	w->disk->dead = w->draining = w->dying = true;
	close_broker(w);
	w->disk->capacity = 0;
	w->limited = w->tight = false;
	if (power) {
		power_cut(w);
	} else {
		simdisk_kill(w->disk);
		w->sum.kills++;
	}
}

/* BROKER-2 */
static void
check_totals(struct sim_world *w)
{
	struct broker_totals sum = { 0 }, one;

	for (unsigned i = 0; i < w->n_shards; i++) {
		broker_totals(w->broker, i, &one);
		sum.ops += one.ops;
		sum.accepted += one.accepted;
		sum.delivered += one.delivered;
		sum.returned += one.returned;
		sum.acked += one.acked;
		sum.nacked += one.nacked;
		sum.deleted += one.deleted;
	}
	if (sum.ops != w->want.ops || sum.accepted != w->want.accepted ||
	    sum.delivered != w->want.delivered || sum.returned != w->want.returned ||
	    sum.acked != w->want.acked || sum.nacked != w->want.nacked ||
	    sum.deleted != w->want.deleted)
		world_fail(w, "B2: accepted %" PRIu64 ", %" PRIu64 "; delivered %" PRIu64 ", %" PRIu64 "; acked %" PRIu64 ", %" PRIu64,
			   sum.accepted, w->want.accepted, sum.delivered, w->want.delivered,
			   sum.acked, w->want.acked);
}

void
world_stop(struct sim_world *w)
{
	bool sound = !w->failing && !w->disk->dead;

	world_note(w, "stop", 0, 0, 0);
	broker_drain(w->broker);
	w->draining = true;
	for (unsigned n = (unsigned)world_dice(w, 10); n > 0; n--)
		world_post(w);
	world_idle(w);
	broker_stop(w->broker);
	world_round(w);
	EACH(i, w->calls)
		if (w->calls[i].state == CALL_POSTED)
			world_fail(w, "B1: %u was not answered at the stop",
				   w->calls[i].serial);
	sound = sound && !w->disk->dead && !w->failing;
	for (unsigned i = 0; i < w->n_shards; i++)
		sound = sound && !w->shards[i].late && !broker_health(w->broker, i, NULL);
	if (sound && !w->conf.moves)
		check_totals(w);
	close_broker(w);
	w->failing = w->limited = w->tight = false;
	w->disk->capacity = 0;
	if (w->disk->dead && world_chance(w, 50)) {
		power_cut(w);
		return;
	}
	if (!sound || w->disk->dead) {
		simdisk_kill(w->disk);
		return;
	}
	for (unsigned i = 0; i < w->n_shards; i++)
		model_synced(&w->model, i);
	if (world_chance(w, 30))
		power_cut(w); /* all was synced */
	else
		simdisk_kill(w->disk);
}

/* ---- Faults ---- */

/* Only where the segments that are kept for settling are large beside what a round writes
 * and cleaning copies in one go, as real ones are. */
static void
fill_up(struct sim_world *w)
{
	if (w->disk->capacity) {
		world_note(w, "room", 0, 0, 0);
		w->disk->capacity = 0;
		w->room_at = clock_mono(&w->clock.clock) + 200 * SLU_MS;
		return;
	}
	world_note(w, "full", 0, 0, 0);
	w->sum.fulls++;
	w->limited = true;
	w->tight = w->logengine_conf.segment_size < FULL_SEGMENT;
	w->room_at = SLU_NEVER;
	w->disk->capacity = simdisk_used(w->disk) +
			    world_dice(w, 3) * w->logengine_conf.segment_size;
}

static void
fail_calls(struct sim_world *w)
{
	static const unsigned ops[] = {
		SIM_BIT(SIM_SYNC),
		SIM_BIT(SIM_WRITE),
		SIM_BIT(SIM_RENAME),
		SIM_BIT(SIM_CREATE) | SIM_BIT(SIM_ALLOCATE),
		SIM_BIT(SIM_READ),
		SIM_BIT(SIM_SYNC_FOLDER) | SIM_BIT(SIM_REMOVE),
	};

	w->failing = true;
	w->sum.fails++;
	world_note(w, "fail", 0, 0, 0);
	simdisk_fail(w->disk, ops[world_dice(w, COUNT(ops))], 1 + world_dice(w, 4), EIO,
		     world_chance(w, 30));
}

static void
restart(struct sim_world *w, bool power)
{
	world_crash(w, power);
	if (!power && world_chance(w, 40))
		hurt(w);
	world_open(w);
}

void
world_fault(struct sim_world *w)
{
	switch (world_dice(w, 8)) {
	case 0:
	case 1:
		simdisk_power_off(w->disk, 1 + world_dice(w, 10));
		break;
	case 2:
		restart(w, true);
		break;
	case 3:
		restart(w, false);
		break;
	case 4:
	case 5:
		fill_up(w);
		break;
	case 6:
		fail_calls(w);
		break;
	default:
		world_stop(w);
		if (!w->lost && world_chance(w, 40))
			hurt(w);
		world_open(w);
	}
}
