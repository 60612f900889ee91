/*
 * moving_probe.c - ask the shards of a path for the marks of a queue, and set them.
 *
 *      LOOK at all of them          the highest epoch says where the queue lives; older marks
 *                                   where it lived, and those are looked at, too
 *      GET_POLICY of the first      former one, if marks are to be set,
 *      GET_POLICY, SET_POLICY       to where it lives, if that has none of its own
 *      MARK where one is missing    where it lives first
 *
 * One op, asked again and again by the threads of the shards that answer it.
 */
#include "broker/relay_in.h"

#include "base/log.h"
#include "base/mem.h"
#include "core/policy.h"

enum {
	ROUNDS = 4 /* of looks: marks may change meanwhile */
};

enum probe_step {
	PROBE_LOOK,
	PROBE_POLICY, /* of a former shard */
	PROBE_ITS_OWN,
	PROBE_COPY,
	PROBE_LIFT,
	PROBE_MARK,
	PROBE_GLANCE, /* alone: what is left on former shards? */
	PROBE_LEAVE   /* behind it: nothing, and they will be asked no more */
};

struct probe {
	struct op op;
	struct relays *all;
	struct moving *m;
	struct relay_path path;
	uint64_t marks[SUPPLIED_MAX];
	uint64_t counters[SUPPLIED_MAX];
	bool looked[SUPPLIED_MAX];
	uint64_t highest; /* counter of all that were looked at, on the path or not */
	uint64_t by_map;  /* epoch of the map that it began with */
	bool wide;        /* all shards are asked */
	bool guess;       /* the last of the path may have nothing */
	uint32_t rumor;   /* a lane on which it lived, by an older mark; UINT32_MAX: none */
	uint32_t next;    /* shard to be asked, when wide */
	enum probe_step step;
	unsigned at;
	unsigned rounds;
	struct policy policy;
	uint64_t left; /* GLANCE: of all former ones */
	uint64_t batch;
	uint32_t batch_lane;
};

static void probe_done(struct op *op);

/* ---- Asking ---- */

/* Without an epoch: it is for this shard alone. */
static int
ask(struct probe *p, enum op_verb verb, unsigned at)
{
	const struct relay_env *const env = &p->all->env;
	const struct policy policy = p->op.policy;

	op_init(&p->op, verb, p->m->space, p->m->queue, probe_done, p);
	p->at = at;
	p->op.policy = policy;
	p->op.cost = 1;
	return shard_post(env->shard(env->arg, p->path.lanes[at]), &p->op);
}

static int
ask_move(struct probe *p, enum move_step step, unsigned at)
{
	const struct relay_env *const env = &p->all->env;

	op_init(&p->op, OP_MOVE, p->m->space, p->m->queue, probe_done, p);
	p->at = at;
	p->op.cost = 1;
	p->op.move.step = step;
	p->op.epoch = step == MOVE_LOOK ? 0 : p->path.epoch;
	p->op.lives = at == 0 ? NULL : env->name(env->arg, p->path.lanes[0]);
	return shard_post(env->shard(env->arg, p->path.lanes[at]), &p->op);
}

/* ---- The end ---- */

static void
probe_end(struct probe *p, int rc, const struct slu_err *err)
{
	struct relays *const rs = p->all;
	struct moving *const m = p->m;
	struct list held;

	list_init(&held);
	pthread_mutex_lock(&rs->mtx);
	if (m->by_map == p->by_map) /* else the map has changed meanwhile */
		m->path = p->path;
	m->state = rc || m->by_map != p->by_map ? MOVING_NEW : MOVING_KNOWN;
	m->empty = false;
	m->looked = clock_boot(rs->env.clock);
	list_take(&m->held, &held);
	m->uses--;
	pthread_mutex_unlock(&rs->mtx);
	relay_begin_all(&held, rc, err);
	mem_free(p);
}

static int
lost(const struct probe *p, const char *name, struct slu_err *err)
{
	return slu_fail(err, SLU_EMOVED,
			"queue %.*s of %.*s lives on shard %s since map version %llu, which this node does not know: reload its configuration",
			(int)p->m->queue.n, p->m->queue.p, (int)p->m->space.n, p->m->space.p, name,
			(unsigned long long)(p->op.move.epoch >> MOVE_EPOCH_BITS));
}

/* ---- Looking ---- */

static void
swap(struct probe *p, unsigned a, unsigned b)
{
	const uint32_t lane = p->path.lanes[a];
	const uint64_t mark = p->marks[a], counter = p->counters[a];
	const bool looked = p->looked[a];

	p->path.lanes[a] = p->path.lanes[b];
	p->marks[a] = p->marks[b];
	p->counters[a] = p->counters[b];
	p->looked[a] = p->looked[b];
	p->path.lanes[b] = lane;
	p->marks[b] = mark;
	p->counters[b] = counter;
	p->looked[b] = looked;
}

/* It lives on that lane. */
static void
set_home(struct probe *p, uint32_t lane)
{
	unsigned i = path_find(&p->path, lane);

	if (i == UINT_MAX) {
		if (p->path.n < SUPPLIED_MAX)
			p->path.n++;
		i = p->path.n - 1;
		p->path.lanes[i] = lane;
		p->marks[i] = p->counters[i] = 0;
		p->looked[i] = false;
	}
	swap(p, 0, i);
}

/* A mark counts that is newer than what we go by, and one of the same epoch where we take the
 * queue to live: whoever was first is right. */
static int
take_look(struct probe *p, struct slu_err *err)
{
	const struct relay_env *const env = &p->all->env;
	const struct op_move *const mv = &p->op.move;
	uint32_t lane = p->path.lanes[p->at];

	p->marks[p->at] = mv->epoch;
	p->counters[p->at] = mv->counter;
	p->looked[p->at] = true;
	p->highest = mv->counter > p->highest ? mv->counter : p->highest;
	if (mv->lives[0])
		p->rumor = lane = env->lane(env->arg, mv->lives, p->m->space, p->m->queue);
	if (mv->epoch < p->path.epoch || mv->epoch == 0)
		return 0;
	if (mv->epoch == p->path.epoch && (p->at > 0 || !mv->lives[0]))
		return 0;
	if (lane == UINT32_MAX)
		return lost(p, mv->lives, err);
	p->wide = true;
	p->guess &= lane != p->path.lanes[p->at]; /* it lives there */
	p->path.epoch = mv->epoch;
	set_home(p, lane);
	return 0;
}

static unsigned
next_look(const struct probe *p)
{
	for (unsigned i = 0; i < p->path.n; i++)
		if (!p->looked[i])
			return i;
	return UINT_MAX;
}

/* The next shard whose mark is older; where the queue lives there need not be one. */
static unsigned
next_mark(const struct probe *p)
{
	for (unsigned i = 0; i < p->path.n; i++)
		if (p->marks[i] < p->path.epoch && (i > 0 || p->marks[i] > 0))
			return i;
	return UINT_MAX;
}

/* ---- Steps ---- */

static int
mark_next(struct probe *p)
{
	const unsigned i = next_mark(p);

	p->step = PROBE_MARK;
	return i == UINT_MAX ? -1 : ask_move(p, MOVE_MARK, i);
}

/* V9. False: there is no need, or rc says why not. */
static bool
lift(struct probe *p, enum probe_step step, int *rc)
{
	const struct relay_env *const env = &p->all->env;

	*rc = 0;
	op_init(&p->op, OP_MOVE, p->m->space, p->m->queue, probe_done, p);
	if (!move_lift(&p->op.move, p->counters[0], p->highest))
		return false;
	p->step = step;
	p->at = 0;
	p->op.cost = 1;
	*rc = shard_post(env->shard(env->arg, p->path.lanes[0]), &p->op);
	return *rc == 0;
}

/* Before a mark says that it lives there. */
static int
lift_and_mark(struct probe *p)
{
	int rc;

	return lift(p, PROBE_LIFT, &rc) || rc ? rc : mark_next(p);
}

/* The one that was guessed stays on the path only if it has something, or takes itself for
 * where the queue lives. */
static void
end_guess(struct probe *p)
{
	const struct op_move *const mv = &p->op.move;
	const bool has = mv->messages || mv->remembered || mv->results || mv->batch ||
			 (mv->epoch && !mv->lives[0]);

	if (p->guess && p->at + 1 == p->path.n && p->at > 0 && (p->op.rc || !has))
		p->path.n--;
	p->guess = false;
}

/* One more shard that may not be on the path yet. */
static bool
guess(struct probe *p, uint32_t lane)
{
	const unsigned i = p->path.n;

	if (i == SUPPLIED_MAX || path_find(&p->path, lane) != UINT_MAX)
		return false;
	p->guess = true;
	p->marks[i] = p->counters[i] = 0;
	p->looked[i] = false;
	p->path.lanes[i] = lane;
	p->path.n++;
	return true;
}

/* Where it was once, by what the last one said; then, when wide, anybody. */
static bool
guess_next(struct probe *p)
{
	const struct relay_env *const env = &p->all->env;
	uint32_t lane = p->rumor;

	p->rumor = UINT32_MAX;
	if (lane != UINT32_MAX && guess(p, lane))
		return true;
	while (p->wide && p->path.n < SUPPLIED_MAX) {
		lane = env->nth(env->arg, p->next++, p->m->space, p->m->queue);
		if (lane == UINT32_MAX)
			return false;
		if (guess(p, lane))
			return true;
	}
	return false;
}

static int
after_look(struct probe *p, struct slu_err *err)
{
	int rc;
	unsigned i;

	p->rumor = UINT32_MAX;
	rc = p->op.rc ? 0 : take_look(p, err);
	if (rc)
		return rc;
	end_guess(p);
	i = p->rumor != UINT32_MAX && guess_next(p) ? p->path.n - 1 : next_look(p);
	if (i == UINT_MAX && guess_next(p))
		i = p->path.n - 1;
	if (i != UINT_MAX)
		return ask_move(p, MOVE_LOOK, i);
	if (next_mark(p) == UINT_MAX || p->path.n == 1)
		return lift_and_mark(p);
	p->step = PROBE_POLICY;
	return ask(p, OP_POLICY_GET, 1);
}

static int
after_policy(struct probe *p)
{
	if (policy_is_default(&p->op.policy))
		return lift_and_mark(p);
	p->policy = p->op.policy;
	p->step = PROBE_ITS_OWN;
	return ask(p, OP_POLICY_GET, 0);
}

static int
after_its_own(struct probe *p)
{
	if (!policy_is_default(&p->op.policy))
		return lift_and_mark(p);
	p->step = PROBE_COPY;
	p->op.policy = p->policy;
	return ask(p, OP_POLICY_SET, 0);
}

/* Somebody else may have been there with a newer one: then all are looked at again. */
static int
after_mark(struct probe *p, struct slu_err *err)
{
	if (p->op.move.epoch > p->path.epoch) {
		if (++p->rounds > ROUNDS)
			return slu_fail(err, SLU_EBUSY, "queue %.*s of %.*s moves again and again",
					(int)p->m->queue.n, p->m->queue.p, (int)p->m->space.n,
					p->m->space.p);
		memset(p->looked, 0, sizeof p->looked);
		p->step = PROBE_LOOK;
		return ask_move(p, MOVE_LOOK, p->at);
	}
	p->marks[p->at] = p->path.epoch;
	return mark_next(p);
}

/* 0: it goes on; -1: all is done. */
static int
next_step(struct probe *p, struct slu_err *err)
{
	if (p->op.rc && !p->guess) {
		*err = p->op.err;
		return p->op.rc;
	}
	switch (p->step) {
	case PROBE_LOOK:
		return after_look(p, err);
	case PROBE_POLICY:
		return after_policy(p);
	case PROBE_ITS_OWN:
		return after_its_own(p);
	case PROBE_COPY:
		return lift_and_mark(p);
	case PROBE_LIFT:
		return mark_next(p);
	default:
		return after_mark(p, err);
	}
}

/* ---- A glance ---- */

/* Will former shards be asked no more? Whose lock keys they are is not counted. */
static bool
is_left(const struct probe *p)
{
	return p->left == 0 && !slice_eq(p->m->queue, SLICE(LOCK_QUEUE));
}

/* Whole: all were asked, and where it lives knows what there is to know of them. */
static void
glance_end(struct probe *p, bool whole)
{
	struct relays *const rs = p->all;
	struct moving *const m = p->m;
	const slu_time now = clock_boot(rs->env.clock);
	bool is_stuck;

	pthread_mutex_lock(&rs->mtx);
	m->looking = false;
	m->looked = now;
	if (m->batch != p->batch)
		m->since = now;
	m->batch = p->batch;
	is_stuck = p->batch && now - m->since >= RELAY_STUCK;
	if (whole && m->state == MOVING_KNOWN && m->path.epoch == p->path.epoch)
		m->empty = is_left(p);
	pthread_mutex_unlock(&rs->mtx);
	if (is_stuck && rs->env.stuck)
		rs->env.stuck(rs->env.arg, m->space, m->queue, p->batch_lane);
	pthread_mutex_lock(&rs->mtx);
	m->uses--;
	pthread_mutex_unlock(&rs->mtx);
	mem_free(p);
}

static void
glance_next(struct probe *p)
{
	const struct op_move *const mv = &p->op.move;
	int rc = 0;

	if (p->op.rc || p->step == PROBE_LEAVE) {
		glance_end(p, p->op.rc == 0);
		return;
	}
	p->left += mv->messages + mv->remembered + mv->results + mv->damaged;
	p->highest = mv->counter > p->highest ? mv->counter : p->highest;
	if (mv->batch) {
		p->left++;
		p->batch = mv->batch;
		p->batch_lane = p->path.lanes[p->at];
	}
	if (p->at + 1 < p->path.n) {
		if (ask_move(p, MOVE_LOOK, p->at + 1))
			glance_end(p, false);
		return;
	}
	if (!is_left(p) || !lift(p, PROBE_LEAVE, &rc))
		glance_end(p, rc == 0);
}

static void
probe_done(struct op *op)
{
	struct probe *const p = op->owner;
	struct slu_err err = { 0 };
	int rc;

	if (p->step >= PROBE_GLANCE) {
		glance_next(p);
		return;
	}
	rc = next_step(p, &err);
	if (rc < 0)
		probe_end(p, 0, NULL);
	else if (rc > 0)
		probe_end(p, rc, err.code ? &err : NULL);
}

/* ---- Starting ---- */

static struct probe *
probe_new(struct relays *rs, struct moving *m, enum probe_step step)
{
	struct probe *const p = mem_zalloc(sizeof *p);

	if (!p)
		return NULL;
	p->all = rs;
	p->m = m;
	p->step = step;
	pthread_mutex_lock(&rs->mtx);
	p->path = m->path;
	p->wide = m->wide;
	p->by_map = m->by_map;
	m->uses++;
	pthread_mutex_unlock(&rs->mtx);
	return p;
}

static void
probe_give_up(struct probe *p)
{
	pthread_mutex_lock(&p->all->mtx);
	p->m->uses--;
	if (p->step == PROBE_GLANCE)
		p->m->looking = false;
	pthread_mutex_unlock(&p->all->mtx);
	mem_free(p);
}

int
probe_start(struct relays *rs, struct moving *m)
{
	struct probe *const p = probe_new(rs, m, PROBE_LOOK);
	int rc;

	if (!p)
		return SLU_ENOMEM;
	rc = ask_move(p, MOVE_LOOK, 0);
	if (rc)
		probe_give_up(p);
	return rc;
}

void
probe_glance(struct relays *rs, struct moving *m)
{
	const slu_time now = clock_boot(rs->env.clock);
	struct probe *p;
	bool due;

	pthread_mutex_lock(&rs->mtx);
	due = m->state == MOVING_KNOWN && !m->looking && now - m->looked >= RELAY_SLICE &&
	      m->path.n > 1;
	m->looking |= due;
	pthread_mutex_unlock(&rs->mtx);
	p = due ? probe_new(rs, m, PROBE_GLANCE) : NULL;
	if (due && !p) {
		pthread_mutex_lock(&rs->mtx);
		m->looking = false;
		pthread_mutex_unlock(&rs->mtx);
	}
	if (p && ask_move(p, MOVE_LOOK, 1))
		probe_give_up(p);
}
