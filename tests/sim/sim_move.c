/*
 * sim_move.c - the map of the shards, and the movers of queues: the mover's own code, on a
 * stack of its own, which goes on by one step when the dice say so, or not for a long time.
 *
 *      movecopy_move ── posts a step, awaits it ──> the world goes on: rounds, clients, faults
 *           ^                                         │
 *           └───────────── a step of the world <──────┘
 *
 * When the process dies, so do they: the broker is stopped, so their step is answered and all
 * that they post from then on is refused.
 */
#include "fiber.h"
#include "sim_moving.h"

#include "core/supplier.h"

static const char *const names[MODEL_SHARDS] = { "a", "b", "c" };

/* ---- The map ---- */

struct broker_shard_conf
world_shard_conf(struct sim_world *w, unsigned i)
{
	return (struct broker_shard_conf){
		.name = names[i],
		.engine = &w->engine,
		.storage = { .folder = names[i], .disk = &w->disk->disk, .log = w->log, .patience = w->patience },
	};
}

struct shardmap *
world_map(struct sim_world *w)
{
	const struct supplier_conf now = { .standard = names[w->map.now] };
	struct shardmap_conf conf = { names, w->n_shards, .version = w->map.version };
	struct shardmap *map;

	CHECK_EQ(0, supplier_new(&conf.now, &now, NULL));
	if (w->map.before >= 0) {
		const struct supplier_conf before = { .standard = names[w->map.before] };

		CHECK_EQ(0, supplier_new(&conf.before, &before, NULL));
	}
	CHECK_EQ(0, shardmap_new(&map, &conf, NULL));
	return map;
}

/* All queues live on the other shard from now on. Where there is a third one, what it has
 * would not be found: a map names one former shard. */
static void
reroute(struct sim_world *w)
{
	struct broker_shard_conf shards[MODEL_SHARDS];
	struct routes *routes;

	if (w->n_shards > 2 || w->draining)
		return;
	w->map.version++;
	w->map.before = (int)w->map.now;
	w->map.now = 1 - w->map.now;
	world_note(w, "map", w->map.version, w->map.now, 0);
	for (unsigned i = 0; i < w->n_shards; i++)
		shards[i] = world_shard_conf(w, i);
	if (broker_routes_new(w->broker, world_map(w), shards, w->n_shards, &routes, &w->err))
		world_fail(w, "a map was refused: %s", w->err.text);
	broker_routes_use(w->broker, routes);
}

/* ---- A mover ---- */

static void
run_mover(void *arg)
{
	struct mover *m = arg;
	struct broker *b = m->w->broker;

	if (m->mends)
		m->rc = movecopy_finish(b, world_space(m->queue), world_queue(m->queue), m->lane,
					&m->err);
	else
		m->rc = movecopy_move(b, &m->ask, &m->told, &m->err);
}

static void
await(void *arg, const bool *done)
{
	struct sim_world *w = arg;
	struct mover *m = w->running;

	m->awaits = done;
	while (!*done)
		fiber_yield(m->fiber);
}

static bool
can_go_on(const struct mover *m)
{
	return m->fiber && (!m->awaits || *m->awaits);
}

static void
end_mover(struct sim_world *w, struct mover *m)
{
	world_note(w, m->mends ? "mended" : "moved", m->serial, (uint64_t)m->rc, m->told.moved);
	fiber_free(m->fiber);
	m->fiber = NULL;
	w->model.queues[m->queue].forcing -= m->ask.force;
	w->model.queues[m->queue].doubt |= m->behind && m->rc;
	w->sum.moved += m->told.moved;
	w->sum.mended += m->mends && m->rc == 0;
}

static void
go_on(struct sim_world *w, struct mover *m)
{
	bool alive;

	w->running = m;
	alive = fiber_resume(m->fiber);
	w->running = NULL;
	if (!alive)
		end_mover(w, m);
}

static void
start(struct sim_world *w, struct mover *m, const struct mover *job)
{
	*m = *job;
	m->w = w;
	m->serial = ++w->n_movers;
	m->ask.space = world_space(m->queue);
	m->ask.queue = world_queue(m->queue);
	EACH(i, w->movers)
		if (w->movers[i].fiber && w->movers[i].queue == m->queue) {
			m->crowded = w->movers[i].crowded = true;
			w->model.queues[m->queue].doubt |= w->movers[i].behind; /* it may be overtaken */
		}
	m->fiber = fiber_new(run_mover, m);
	w->model.queues[m->queue].forcing += m->ask.force;
	EACH_MSG(x, &w->model)
	x->weak |= m->ask.force && x->queue == m->queue;
	w->sum.movers++;
	world_note(w, m->mends ? "mends" : "moves", m->serial, m->queue,
		   m->mends ? m->lane : (uint64_t)m->ask.to[0]);
}

/* A queue, or where lock keys are. */
static unsigned
some_place(struct sim_world *w)
{
	if (w->locks && world_chance(w, 40))
		return MODEL_QUEUES + (unsigned)world_dice(w, MODEL_SPACES);
	return (unsigned)world_dice(w, w->n_queues);
}

static void
start_mover(struct sim_world *w, struct mover *m)
{
	const unsigned from = (unsigned)world_dice(w, w->n_shards);
	const unsigned by = 1 + (unsigned)world_dice(w, w->n_shards - 1);
	struct mover job = {
		.queue = some_place(w),
		.ask = {
			.from = names[from],
			.to = names[(from + by) % w->n_shards],
			.batch = 1 + (uint32_t)world_dice(w, 6),
			.force = world_chance(w, 10),
			.budget = world_chance(w, 70) ? SLU_HOUR : 0,
		},
	};

	job.ask.force &= job.queue < MODEL_QUEUES; /* the judge knows no lease of a key that ends so */
	if (!w->draining)
		start(w, m, &job);
}

/* A batch is set aside, and no mover goes on with it. */
static void
stuck(void *arg, struct slice space, struct slice queue, uint32_t lane)
{
	struct sim_world *w = arg;
	unsigned q = 0;

	while (!slice_eq(world_space(q), space) || !slice_eq(world_queue(q), queue))
		q++;
	for (unsigned i = 0; i < w->n_jobs; i++)
		if (w->jobs[i].queue == q && w->jobs[i].lane == lane)
			return;
	if (w->n_jobs == WORLD_JOBS)
		return;
	w->jobs[w->n_jobs].queue = q;
	w->jobs[w->n_jobs++].lane = lane;
}

/* One at a time. */
static void
start_moverepair(struct sim_world *w)
{
	struct mover *m = &w->movers[WORLD_MOVERS - 1];
	const struct mover job = { .mends = true, .queue = w->jobs[0].queue, .lane = w->jobs[0].lane };

	if (m->fiber || w->draining || w->n_jobs == 0)
		return;
	w->n_jobs--;
	memmove(w->jobs, w->jobs + 1, w->n_jobs * sizeof w->jobs[0]);
	start(w, m, &job);
}

void
world_begin_moves(struct sim_world *w)
{
	w->map.version = 1;
	w->map.now = 0;
	w->map.before = -1;
	w->skew = 0;
	w->turn = w->n_movers = 0;
	w->running = NULL;
	w->n_jobs = 0;
	w->hand = (struct broker_hand){ w, await, stuck };
}

bool
world_is_behind(const struct sim_world *w, unsigned queue)
{
	bool behind = false;

	EACH(i, w->movers)
		behind |= w->movers[i].fiber && w->movers[i].queue == queue && w->movers[i].behind;
	return behind;
}

/* ---- Steps ---- */

/* Some steps of one of them, while the shards do what is asked. */
static void
go_on_for_a_while(struct sim_world *w, struct mover *m)
{
	unsigned n = world_chance(w, 50) ? 1 : 1 + (unsigned)world_dice(w, 30);

	while (n-- > 0 && m->fiber) {
		if (can_go_on(m))
			go_on(w, m);
		else
			world_round(w);
	}
}

void
world_move(struct sim_world *w)
{
	struct mover *m = &w->movers[world_dice(w, WORLD_MOVERS)];

	start_moverepair(w);
	if (world_chance(w, 5))
		reroute(w);
	else if (m->fiber)
		go_on_for_a_while(w, m);
	else if (m != &w->movers[WORLD_MOVERS - 1] && world_chance(w, 50))
		start_mover(w, m);
}

/* The broker is stopped: what they wait for is answered, and nothing that they post is taken. */
void
world_end_movers(struct sim_world *w)
{
	w->n_jobs = 0;
	EACH(i, w->movers)
		while (w->movers[i].fiber)
			go_on(w, &w->movers[i]);
}

/* ---- Rest ---- */

static bool
any_mover(const struct sim_world *w)
{
	bool any = w->n_jobs > 0;

	EACH(i, w->movers)
		any |= w->movers[i].fiber != NULL;
	return any;
}

void
world_let_movers_end(struct sim_world *w)
{
	for (int i = 0; any_mover(w); i++) {
		if (i == 10000)
			world_fail(w, "who moves never ends");
		start_moverepair(w);
		world_idle(w);
		EACH(k, w->movers)
			if (can_go_on(&w->movers[k]))
				go_on(w, &w->movers[k]);
	}
}

void
world_move_queue(struct sim_world *w, unsigned queue, unsigned from, unsigned to, bool force)
{
	struct mover *m = &w->movers[0];
	const struct mover job = {
		.queue = queue,
		.ask = {
			.from = names[from],
			.to = names[to],
			.batch = 1 + (uint32_t)world_dice(w, 20),
			.force = force,
			.budget = SLU_HOUR,
		},
	};

	for (int i = 0; i < 100; i++) {
		start(w, m, &job);
		world_let_movers_end(w);
		if (!m->rc && m->told.remembered && !m->told.left && !m->told.results)
			world_pass_hour(w);  /* the keys have expired; the sweep of the hour forgets them */
		else if (m->rc != SLU_EBUSY) /* the log is searched for keys */
			break;
	}
	if (m->rc || !m->told.done)
		world_fail(w,
			   "SH-72: queue %u does not leave %s: %d, %s; left %" PRIu64
			   ", leased %" PRIu64 ", keys %" PRIu64 ", results %" PRIu64,
			   queue, names[from], m->rc, m->err.text, m->told.left, m->told.leased,
			   m->told.remembered, m->told.results);
}
