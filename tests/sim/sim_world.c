/*
 * sim_world.c - the dice, the trace, and the steps of a schedule.
 */
#include "sim_world.h"

#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

const char *const world_spaces[2] = { "north", "south" };
const char *const world_names[2] = { "alpha", "beta" };

static struct sim_world world; /* large: one for all schedules */
static struct simdisk disk;

/* In place of the kernel's: what is to be repeated can be. */
ssize_t
getrandom(void *out, size_t n, unsigned flags)
{
	char *p = out;

	(void)flags;
	for (size_t i = 0; i < n; i++)
		p[i] = (char)test_random(&world.random);
	return (ssize_t)n;
}

struct slice
world_space(unsigned queue)
{
	return slice_of(world_spaces[queue < MODEL_QUEUES ? queue / 2 : queue - MODEL_QUEUES]);
}

struct slice
world_queue(unsigned queue)
{
	return queue < MODEL_QUEUES ? slice_of(world_names[queue % 2]) : SLICE(LOCK_QUEUE);
}

uint64_t
world_dice(struct sim_world *w, uint64_t n)
{
	return test_random(&w->dice) % n;
}

bool
world_chance(struct sim_world *w, unsigned percent)
{
	return world_dice(w, 100) < percent;
}

static void
mix(struct sim_world *w, uint64_t n)
{
	w->sum.hash = (w->sum.hash ^ n) * 0x9e3779b97f4a7c15u;
	w->sum.hash ^= w->sum.hash >> 29;
}

void
world_note(struct sim_world *w, const char *what, uint64_t a, uint64_t b, uint64_t c)
{
	mix(w, (uint64_t)what[0] << 32 | w->step);
	mix(w, a);
	mix(w, b);
	mix(w, c);
	if (w->conf.trace)
		printf("# %4u %16" PRId64 " %-12s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		       w->step, (int64_t)clock_mono(&w->clock.clock), what, a, b, c);
}

void
world_fail(struct sim_world *w, const char *fmt, ...)
{
	va_list ap;

	printf("# seed %" PRIu64 ", step %u: ", w->conf.seed, w->step);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n# replay with: sim --seed %" PRIu64 " --steps %u%s", w->conf.seed, w->conf.steps,
	       w->conf.moves ? " --moves" : "");
	if (w->conf.forgets)
		printf(" --forgets");
	if (w->conf.reopens)
		printf(" --reopens");
	if (w->conf.lates)
		printf(" --lates");
	if (w->conf.cut)
		printf(" --cut %lu", w->conf.cut);
	if (w->conf.tear == SIM_TEAR_BYTE)
		printf(" --bytes %lu", w->conf.bytes);
	printf(" --trace\n");
	fflush(stdout);
	_exit(1);
}

struct world_shard *
world_shard(struct sim_world *w, unsigned queue)
{
	return &w->shards[w->model.queues[queue].shard];
}

slu_time
world_lane_now(struct sim_world *w, unsigned lane)
{
	return clock_boot(&w->clock.clock) + w->shards[lane].offset;
}

slu_time
world_now(struct sim_world *w, unsigned queue)
{
	return world_lane_now(w, w->model.queues[queue].shard);
}

bool
world_is_down(struct sim_world *w, unsigned queue)
{
	bool down = w->disk->dead || w->failing || w->patience;

	for (unsigned i = 0; i < w->n_shards; i++)
		if (w->conf.moves || i == w->model.queues[queue].shard)
			down |= w->shards[i].failed || w->shards[i].hurt || w->shards[i].late;
	return down;
}

/* ---- Rounds ---- */

/* Dead letters that may have been too many: which are there, and how many? */
static void
see_faded(struct sim_world *w, unsigned shard, unsigned queue, slu_time now)
{
	struct ledger *l = logengine_ledger(w->shards[shard].engine);
	const uint32_t max = w->model.queues[queue].policy.dlq_max;
	struct sim_model *m = &w->model;
	unsigned n = 0;

	for (unsigned i = 0; i < m->n;) {
		struct sim_msg *x = &m->msgs[i];

		if (x->queue == queue && x->fading && ledger_find_any(l, x->id) == SLAB_NONE) {
			model_remove(m, x, 0, now);
			w->shards[shard].synced = true;
		} else {
			i++;
		}
	}
	EACH_MSG(x, m)
	{
		if (x->queue != queue || x->state != M_DEAD)
			continue;
		n++;
		x->fading = false;
	}
	if (max && n > max)
		world_fail(w, "queue %u keeps %u dead letters, at most %u", queue, n, max);
}

/* A claim that waits says nothing unless it got something; but what it found to be over,
 * and nothing else, may have died. */
static void
see_over(struct sim_world *w, unsigned shard, slu_time now)
{
	struct ledger *l = logengine_ledger(w->shards[shard].engine);

	EACH_MSG(x, &w->model)
	{
		struct ledger_view v;
		uint32_t h;

		if (w->model.queues[x->queue].shard != shard ||
		    (!x->vague && (x->state != M_WAIT ||
				   x->failures < model_max_attempts(&w->model, x))))
			continue;
		h = ledger_find_any(l, x->id);
		if (h == SLAB_NONE) { /* and it was one dead letter too many, at once */
			if (x->state == M_WAIT && w->model.queues[x->queue].policy.dlq_max) {
				model_die(&w->model, x, DEAD_MAX_ATTEMPTS, now);
				x->fading = true;
			}
			continue;
		}
		ledger_get(l, h, &v);
		if (v.state == MSG_DEAD && x->state == M_WAIT) {
			model_die(&w->model, x, DEAD_MAX_ATTEMPTS, now);
			w->shards[shard].synced = true;
		} else if (v.state != MSG_DEAD && x->state == M_DEAD) {
			x->state = M_WAIT;
			x->reason = DEAD_NOT;
			x->expires = v.expires;
			x->holds = v.flags & MSG_HOLDS;
		}
		x->vague = false;
	}
}

/* Claims and extends are synced within a second. */
static void
exact_ends(struct sim_world *w, unsigned i)
{
	struct world_shard *s = &w->shards[i];
	const slu_time mono = clock_mono(&w->clock.clock);

	if (model_tick(&w->model, i, mono + s->offset, mono + s->offset))
		s->synced = true;
	see_over(w, i, mono + s->offset);
	(void)model_tick(&w->model, i, mono + s->offset, mono + s->offset);
	for (unsigned q = 0; q < MODEL_QUEUES; q++)
		if (w->model.queues[q].shard == i)
			see_faded(w, i, q, mono + s->offset);
	world_see_hurt(w, i);
	if (s->synced)
		model_synced(&w->model, i);
	else if (!s->hurt)
		model_settle(&w->model, i, mono);
	s->synced = s->purged = s->buried = false;
}

void
world_see_hurt(struct sim_world *w, unsigned i)
{
	struct wal_stats stats;

	logengine_stats(w->shards[i].engine, &stats);
	w->shards[i].hurt = stats.failed;
}

static void
miss(struct sim_world *w, unsigned i)
{
	if (w->judge->misses)
		w->judge->misses(w, i);
}

static void
end_round(struct sim_world *w, unsigned i)
{
	struct world_shard *s = &w->shards[i];

	if (!s->failed && !s->open && broker_health(w->broker, i, NULL)) {
		s->failed = true;
		world_note(w, "failed", i, 0, 0);
		if (!w->disk->dead && !w->failing)
			world_fail(w, "shard %u failed", i);
		miss(w, i);
	}
	if (!s->failed && logengine_is_late(s->engine)) {
		world_note(w, "late", i, 0, 0);
		if (!w->limited && !w->failing && !w->disk->dead)
			world_fail(w, "shard %u is late, and there is room", i);
		s->late = true;
		miss(w, i);
	}
	if (!s->failed && !s->hurt && !s->late && !s->open)
		w->judge->ends(w, i);
}

static bool
takes(const struct sim_call *c)
{
	return c->op.verb == OP_CLAIM || c->op.verb == OP_ACQUIRE;
}

/* Do they want the same? */
static bool
is_rival(const struct sim_call *c, const struct sim_call *d)
{
	return d->op.verb == c->op.verb && d->queue == c->queue &&
	       (d->op.verb != OP_ACQUIRE || d->key == c->key);
}

/* Does this claim or acquire stand in line, or will it? */
static bool
is_in_line(const struct sim_world *w, const struct sim_call *c)
{
	if (c->op.route.waiter != SLAB_NONE || c->op.wait > 0)
		return true;
	for (size_t i = 0; takes(c) && i < COUNT(w->calls); i++) {
		const struct sim_call *d = &w->calls[i];

		if (d->state == CALL_POSTED && is_rival(c, d) && !d->canceled &&
		    (d->op.route.waiter != SLAB_NONE || (d->op.wait > 0 && d->serial < c->serial)))
			return true;
	}
	return false;
}

/* LANE-2 of broker/lane.h: the earliest arrival of what runs, except waiting ops. */
static void
find_first(struct sim_world *w, unsigned shard)
{
	struct world_shard *s = &w->shards[shard];

	s->first = clock_boot(&w->clock.clock) + s->offset;
	EACH(i, w->calls) {
		struct sim_call *c = &w->calls[i];
		const bool waited = c->op.route.waited; /* an acquire, in vain: it comes anew */
		const bool line = !waited && (takes(c) || c->op.verb == OP_PEEK);
		const slu_time came = waited ? c->op.route.arrived : c->posted;

		c->parked = c->state == CALL_POSTED && c->op.route.waiter != SLAB_NONE;
		if (c->state == CALL_POSTED && !c->canceled &&
		    w->model.queues[c->queue].shard == shard && c->op.route.waiter == SLAB_NONE &&
		    !(line && !w->draining && is_in_line(w, c)) && came < s->first)
			s->first = came;
	}
}

/* A line that was there is run when something was ready already; one that is new, always. */
static void
find_lines(struct sim_world *w)
{
	for (unsigned q = 0; q < MODEL_QUEUES; q++)
		w->runs[q] = true;
	EACH(i, w->calls) {
		const struct sim_call *c = &w->calls[i];

		if (c->parked && c->op.verb == OP_CLAIM && !model_best(&w->model, c->queue))
			w->runs[c->queue] = false;
	}
}

static void
exact_begins(struct sim_world *w)
{
	for (unsigned i = 0; i < w->n_shards; i++)
		find_first(w, i);
	find_lines(w);
}

static slu_time
round_until(struct sim_world *w)
{
	slu_time until;

	if (w->judge->begins)
		w->judge->begins(w);
	until = broker_round(w->broker);
	for (unsigned i = 0; i < w->n_shards; i++)
		end_round(w, i);
	return until;
}

void
world_round(struct sim_world *w)
{
	(void)round_until(w);
}

/* Nobody waits for what is there, or longer than he wanted: DISPATCH-3, DISPATCH-4 of dispatch.h. */
static void
exact_rests(struct sim_world *w)
{
	EACH(i, w->calls) {
		const struct sim_call *c = &w->calls[i];
		const bool paused = w->model.queues[c->queue].policy.paused;

		if (c->state != CALL_POSTED || world_is_down(w, c->queue))
			continue;
		if (c->op.wait == 0 || c->posted + c->op.wait <= world_now(w, c->queue))
			world_fail(w, "%s %u waits for too long", op_verb_name(c->op.verb),
				   c->serial);
		if (c->op.verb == OP_ACQUIRE && world_is_free(w, c))
			world_fail(w, "K2: %u waits for a key that nobody has", c->serial);
		if (c->op.verb != OP_RESULT && !paused && model_best(&w->model, c->queue))
			world_fail(w, "%s %u waits, and there is something",
				   op_verb_name(c->op.verb), c->serial);
	}
}

void
world_idle(struct sim_world *w)
{
	for (int i = 0; round_until(w) <= clock_boot(&w->clock.clock); i++)
		if (i == 1000)
			world_fail(w, "the shards never rest");
	w->judge->rests(w);
}

const struct judge judge_exact = {
	.hears = world_hear,
	.begins = exact_begins,
	.ends = exact_ends,
	.misses = world_doubt_run,
	.rests = exact_rests,
	.adopts = world_adopt,
	.verifies = world_verify,
};

/* ---- Steps ---- */

static void
pass_time(struct sim_world *w)
{
	static const slu_time units[] = { SLU_MS, SLU_MS, 50 * SLU_MS, SLU_SEC, 10 * SLU_SEC,
					  SLU_MIN, SLU_HOUR };
	slu_time by = (slu_time)world_dice(w, 40) * units[world_dice(w, COUNT(units))];

	if (world_chance(w, 30)) { /* to the moment, or one before or after it */
		const slu_time until = round_until(w);

		if (until != SLU_NEVER)
			by = until - clock_boot(&w->clock.clock) + (slu_time)world_dice(w, 3) - 1;
	}
	by = by < 0 ? 0 : by;
	world_note(w, "time", (uint64_t)by, 0, 0);
	fakeclock_advance(&w->clock, by);
	if (w->room_at <= clock_mono(&w->clock.clock)) {
		w->limited = w->tight = false;
		w->room_at = SLU_NEVER;
	}
}

static void
read_on(struct sim_world *w)
{
	struct sim_call *c = &w->calls[world_dice(w, WORLD_CALLS)];

	if (c->state == CALL_READING)
		world_read_on(w, c);
}

static bool
any_late(const struct sim_world *w)
{
	bool late = false;

	for (unsigned i = 0; i < w->n_shards; i++)
		late |= w->shards[i].late;
	return late;
}

static void
check_all(struct sim_world *w)
{
	world_idle(w);
	if (!w->disk->dead && !w->failing && !any_late(w))
		w->judge->verifies(w);
}

static bool
any_failed(const struct sim_world *w)
{
	bool failed = w->disk->dead;

	for (unsigned i = 0; i < w->n_shards; i++)
		failed |= w->shards[i].failed || w->shards[i].hurt;
	return failed;
}

static void
do_step(struct sim_world *w)
{
	const uint64_t what = world_dice(w, 100);

	if (w->conf.moves && world_chance(w, 30)) {
		world_move(w);
		return;
	}
	if (what < 50)
		world_post(w);
	else if (what < 74)
		world_round(w);
	else if (what < 84)
		pass_time(w);
	else if (what < 88)
		world_hang_up(w);
	else if (what < 94)
		read_on(w);
	else if (what < 96)
		check_all(w);
	else if (w->faults)
		world_fault(w);
}

/* Somebody sees that it has failed, and starts it anew. */
static void
mend(struct sim_world *w)
{
	const bool dead = w->disk->dead;

	if (any_late(w) && !dead) {
		world_crash(w, false);
		world_open(w);
	}
	if (!any_failed(w) || (!dead && !world_chance(w, 20)))
		return;
	if (w->conf.reopens && world_chance(w, 50) && world_reopen(w))
		return;
	world_crash(w, dead ? w->conf.cut || world_chance(w, 80) : world_chance(w, 20));
	world_open(w);
}

/* ---- A schedule ---- */

static void
on_log(void *arg, enum slu_log_level level, const char *line, size_t n)
{
	struct sim_world *w = arg;

	(void)level;
	if (w->conf.trace)
		printf("# %4u   log: %.*s\n", w->step, (int)n, line);
}

static void
begin(struct sim_world *w, const struct sim_conf *conf)
{
	static const uint32_t sizes[] = { 8 << 10, 16 << 10, 64 << 10, 64 << 10 };

	w->conf = *conf;
	memset(&w->sum, 0, sizeof w->sum);
	w->dice = conf->seed;
	w->random = ~conf->seed;
	w->lateness = conf->seed * 2654435761u | 1;
	w->patience = conf->lates && conf->seed % 2 ? 300 * SLU_MS : 0;
	w->disk = &disk;
	simdisk_init(w->disk);
	fakeclock_init(&w->clock, SLU_SEC, 1800000000 * SLU_SEC);
	w->log = slu_log_new(SLU_LOG_WARN, SLU_LOG_LOGFMT, on_log, w);
	w->logengine_conf = (struct logengine_conf){
		.clock = &w->clock.clock,
		.segment_size = sizes[world_dice(w, COUNT(sizes))],
		.no_helper = true,
		.secret = { 1 + world_dice(w, 1000), 2 },
	};
	w->n_shards = world_chance(w, 80) ? 1 : 2;
	w->n_shards += conf->moves;
	w->n_queues = 1 + (unsigned)world_dice(w, MODEL_QUEUES);
	w->producers = 20 + (unsigned)world_dice(w, 40);
	w->max_payload = 1 + (unsigned)world_dice(w, world_chance(w, 30) ? 3000 : 200);
	w->steps = 30 + (unsigned)world_dice(w, 120);
	if (world_chance(w, 25)) { /* much goes in and out: segments are cleaned */
		w->logengine_conf.segment_size = sizes[0];
		w->max_payload = 1500;
		w->producers = 35;
		w->steps += 150;
	}
	if (conf->seed % 3 == 0) /* WAL-9 of wal.h: segments grow */
		w->logengine_conf.first_size = sizes[0];
	w->faults = conf->cut == 0;
	w->limited = w->lost = w->failing = w->draining = w->dying = false;
	w->room_at = SLU_NEVER;
	w->hurt.path[0] = 0;
	w->locks = conf->seed % 3 == 0 && !conf->lates; /* so that other schedules stay what they were */
	w->idle = conf->forgets && world_chance(w, 50) ? world_some_time(w) : 0;
	w->judge = conf->moves ? &judge_moving : &judge_exact;
	world_begin_moves(w);
	w->serial = w->step = w->n_leases = w->n_held = w->docs = 0;
	EACH(i, w->calls)
		w->calls[i].state = CALL_FREE;
	model_init(&w->model);
	w->batches = 0;
	memset(w->taken, 0, sizeof w->taken);
}

static void
end(struct sim_world *w)
{
	slu_log_free(w->log);
	simdisk_release(w->disk);
	fakeclock_release(&w->clock);
}

/* What there is in the end is what there is after a stop, and after any number of
 * opens. */
static void
finish(struct sim_world *w)
{
	if (any_failed(w)) {
		world_crash(w, w->disk->dead);
		world_open(w);
	}
	w->faults = false;
	simdisk_heal(w->disk);
	w->disk->capacity = 0;
	w->failing = w->limited = false;
	fakeclock_advance(&w->clock, SLU_SEC); /* it tries again after a while */
	check_all(w);
	if (w->conf.moves)
		world_gather(w);
	w->sum.changes = w->disk->changes;
	world_stop(w);
	world_open(w);
	world_crash(w, false);
	world_open(w);
	check_all(w);
	if (w->conf.moves)
		world_drain(w);
	world_stop(w);
}

void
sim_run(const struct sim_conf *conf, struct sim_result *out)
{
	struct sim_world *w = &world;
	unsigned steps;

	begin(w, conf);
	steps = conf->steps ? conf->steps : w->steps;
	w->conf.steps = steps;
	world_open(w);
	if (conf->cut)
		simdisk_power_off(w->disk, conf->cut);
	for (w->step = 1; w->step <= steps; w->step++) {
		do_step(w);
		mend(w);
		if (conf->cut && w->sum.cuts)
			break;
	}
	finish(w);
	w->sum.steps = steps;
	*out = w->sum;
	end(w);
}
