/*
 * moving_probe.c - ask the shards of a path for the marks of a queue, and set them.
 *
 *      LOOK at all of them          the highest epoch says where the queue lives; older marks
 *                                   where it lived, and those are looked at, too
 *      GET_POLICY of where          it lived, if nobody has set marks of this epoch yet,
 *      GET_POLICY, SET_POLICY       to where it lives, if that has another one (but without
 *                                   any mark none that is the default)
 *      MARK where one is missing    where it lives first, and what leads somewhere last
 *      GET_POLICY, ...              once more: until then it may have been set where it lived
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
	PROBE_POLICY, /* of where it lived */
	PROBE_ITS_OWN,
	PROBE_COPY,
	PROBE_LIFT,
	PROBE_MARK,
	PROBE_NEWER, /* policy of where it lived */
	PROBE_COPIED,
	PROBE_RENEW,
	PROBE_GLANCE, /* alone: what is left on former shards? */
	PROBE_LEAVE   /* behind it: nothing, and they will be asked no more */
};

struct probe {
	struct op op;
	struct relays *all;
	struct moving *m;
	struct relay_path path;
	uint64_t marks[SUPPLIED_MAX];
	uint32_t lives[SUPPLIED_MAX]; /* the lane that they say */
	uint64_t counters[SUPPLIED_MAX];
	bool looked[SUPPLIED_MAX];
	uint64_t highest; /* counter of all that were looked at, on the path or not */
	uint64_t by_map;  /* epoch of the map that it began with */
	bool wide;        /* all shards are asked */
	uint32_t guess;   /* lane that is asked though nothing names it; UINT32_MAX: none */
	uint32_t next;    /* shard to be asked, when wide */
	enum probe_step step;
	unsigned at;
	unsigned rounds;
	unsigned lived; /* where on the path; 0: nobody was asked for a policy */
	bool sure;      /* a mark says so */
	struct policy policy, newer;
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
	const uint32_t lives = p->lives[a];
	const bool looked = p->looked[a];

	p->path.lanes[a] = p->path.lanes[b];
	p->marks[a] = p->marks[b];
	p->lives[a] = p->lives[b];
	p->counters[a] = p->counters[b];
	p->looked[a] = p->looked[b];
	p->path.lanes[b] = lane;
	p->marks[b] = mark;
	p->lives[b] = lives;
	p->counters[b] = counter;
	p->looked[b] = looked;
}

static unsigned
append(struct probe *p, uint32_t lane)
{
	const unsigned i = p->path.n++;

	p->path.lanes[i] = lane;
	p->marks[i] = p->counters[i] = 0;
	p->looked[i] = false;
	return i;
}

/* It lives on that lane. */
static void
set_home(struct probe *p, uint32_t lane)
{
	unsigned i = path_find(&p->path, lane);

	if (i == UINT_MAX && p->path.n == SUPPLIED_MAX)
		p->path.n--;
	if (i == UINT_MAX)
		i = append(p, lane);
	swap(p, 0, i);
}

/* Where an older mark points to, some of it may be: the line of a key, too. So it must answer,
 * unless there is no such shard any more. */
static void
add_former(struct probe *p, uint32_t lane)
{
	if (lane != UINT32_MAX && path_find(&p->path, lane) == UINT_MAX && p->path.n < SUPPLIED_MAX)
		(void)append(p, lane);
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
		lane = env->lane(env->arg, mv->lives, p->m->space, p->m->queue);
	p->lives[p->at] = lane;
	if (mv->epoch < p->path.epoch || mv->epoch == 0) {
		add_former(p, lane);
		return 0;
	}
	if (mv->epoch == p->path.epoch && (p->at > 0 || !mv->lives[0]))
		return 0;
	if (lane == UINT32_MAX)
		return lost(p, mv->lives, err);
	p->wide = true;
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

/* The next shard whose mark is older. Where the queue lives is the first, and need have none; then
 * the last: only the mark of one before it may lead there, so if we die that still does. */
static unsigned
next_mark(const struct probe *p)
{
	if (p->marks[0] > 0 && p->marks[0] < p->path.epoch)
		return 0;
	for (unsigned i = p->path.n - 1; i > 0; i--)
		if (p->marks[i] < p->path.epoch)
			return i;
	return UINT_MAX;
}

/* ---- Steps ---- */

static int
mark_next(struct probe *p)
{
	const unsigned i = next_mark(p);

	p->step = i == UINT_MAX ? PROBE_NEWER : PROBE_MARK;
	if (i != UINT_MAX)
		return ask_move(p, MOVE_MARK, i);
	return p->lived ? ask(p, OP_POLICY_GET, p->lived) : -1;
}

/* An op that knew no better may have set it there until the mark stood. */
static int
after_newer(struct probe *p)
{
	if (policy_is_same(&p->op.policy, &p->policy))
		return -1;
	p->newer = p->op.policy;
	p->step = PROBE_COPIED;
	return ask(p, OP_POLICY_GET, 0);
}

static int
after_copied(struct probe *p)
{
	if (!policy_follows(&p->op.policy, &p->policy, &p->newer))
		return -1;
	p->step = PROBE_RENEW;
	return ask(p, OP_POLICY_SET, 0);
}

/* Whoever sets one meanwhile does so where it lived first: that would be seen. */
static int
after_renewed(struct probe *p)
{
	p->policy = p->newer;
	p->step = PROBE_NEWER;
	return ++p->rounds > ROUNDS ? -1 : ask(p, OP_POLICY_GET, p->lived);
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

/* The one that was guessed stays on the path only if it has something, takes itself for where the
 * queue lives, or is that: then another is the last. */
static void
end_guess(struct probe *p)
{
	const struct op_move *const mv = &p->op.move;
	const bool has = mv->messages || mv->remembered || mv->results || mv->batch ||
			 (mv->epoch && !mv->lives[0]);

	if (p->path.lanes[p->path.n - 1] == p->guess && (p->op.rc || !has))
		p->path.n--;
	p->guess = UINT32_MAX;
}

/* One more shard that is not on the path yet. */
static bool
guess_next(struct probe *p)
{
	const struct relay_env *const env = &p->all->env;
	uint32_t lane;

	while (p->wide && p->path.n < SUPPLIED_MAX) {
		lane = env->nth(env->arg, p->next++, p->m->space, p->m->queue);
		if (lane == UINT32_MAX)
			return false;
		if (path_find(&p->path, lane) != UINT_MAX)
			continue;
		p->guess = lane;
		(void)append(p, lane);
		return true;
	}
	return false;
}

/* A mark that says "here" may be of somebody who died before the others were set: only one that
 * points elsewhere counts. */
static bool
points(const struct probe *p, unsigned i)
{
	return p->marks[i] && p->lives[i] != p->path.lanes[i];
}

/* Where it lived before this epoch; 0: there, or nobody knows. */
static unsigned
lived_at(struct probe *p)
{
	uint64_t epoch = 0;
	unsigned at = 1;

	for (unsigned i = 0; i < p->path.n; i++)
		if (points(p, i) && p->marks[i] > epoch && p->marks[i] < p->path.epoch) {
			epoch = p->marks[i];
			at = path_find(&p->path, p->lives[i]);
		}
	p->sure = epoch > 0;
	return at == UINT_MAX ? 0 : at;
}

/* Whoever set the first mark of this epoch has done so before. */
static int
copy_policy(struct probe *p)
{
	const unsigned lived = lived_at(p);
	bool done = lived == 0;

	for (unsigned i = 0; i < p->path.n; i++)
		done |= points(p, i) && p->marks[i] == p->path.epoch;
	if (done)
		return lift_and_mark(p);
	p->step = PROBE_POLICY;
	p->lived = lived;
	return ask(p, OP_POLICY_GET, lived);
}

static int
after_look(struct probe *p, struct slu_err *err)
{
	const int rc = p->op.rc ? 0 : take_look(p, err);
	unsigned i;

	if (rc)
		return rc;
	end_guess(p);
	i = next_look(p);
	if (i == UINT_MAX && guess_next(p))
		i = p->path.n - 1;
	if (i != UINT_MAX)
		return ask_move(p, MOVE_LOOK, i);
	if (next_mark(p) == UINT_MAX || p->path.n == 1)
		return lift_and_mark(p);
	return copy_policy(p);
}

static int
after_policy(struct probe *p)
{
	p->policy = p->op.policy;
	p->step = PROBE_ITS_OWN;
	return ask(p, OP_POLICY_GET, 0);
}

static int
after_its_own(struct probe *p)
{
	if (!policy_replaces(&p->policy, &p->op.policy, p->sure))
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
		p->lived = 0;
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
	if (p->op.rc && p->guess == UINT32_MAX) {
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
	case PROBE_NEWER:
		return after_newer(p);
	case PROBE_COPIED:
		return after_copied(p);
	case PROBE_RENEW:
		return after_renewed(p);
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
	p->counters[p->at] = mv->counter;
	if (p->at > 0)
		p->left += mv->messages + mv->remembered + mv->results + mv->damaged;
	p->highest = mv->counter > p->highest ? mv->counter : p->highest;
	if (mv->batch && !p->batch) { /* that of where it lives comes first: others may wait for it */
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
	p->guess = UINT32_MAX;
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
	if (p && ask_move(p, MOVE_LOOK, 0))
		probe_give_up(p);
}
