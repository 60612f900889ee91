/*
 * discover.c - asks the shards of a path for the marks of a queue, and sets the marks that are missing.
 *
 *      LOOK at all of them        the highest epoch names the shard that the queue lives on; older
 *                                 marks name former shards, which are looked at, too
 *      POLICY_GET of the former   shard, if no mark of this epoch is set yet, then
 *      POLICY_GET, POLICY_SET     of the shard that the queue lives on, if its policy differs (a
 *                                 default policy is copied only if a mark names the former shard)
 *      MARK where one is missing  the shard that the queue lives on first
 *      POLICY_GET, ...            once more: the policy may have changed on the former shard
 *
 * A discovery is one op. The threads of the shards that answer it post it again.
 */
#include "broker/move/follow_private.h"

#include "base/log.h"
#include "base/mem.h"
#include "core/queue/policy.h"

enum {
	ROUNDS = 4 /* of looks: marks may change meanwhile */
};

enum discover_step {
	DISCOVER_LOOK,
	DISCOVER_POLICY,  /* of the shard that the queue lived on */
	DISCOVER_ITS_OWN, /* policy of the shard that the queue lives on */
	DISCOVER_COPY,    /* sets it */
	DISCOVER_LIFT,
	DISCOVER_MARK,
	DISCOVER_NEWER,  /* policy of the shard that the queue lived on, again */
	DISCOVER_COPIED, /* policy of the shard that the queue lives on, again */
	DISCOVER_RENEW,  /* sets it */
	DISCOVER_GLANCE, /* alone: what is left on former shards? */
	DISCOVER_LEAVE   /* after a glance: nothing is left, and they are asked no more */
};

/* What a look at a lane of the path has found. */
struct lane_finding {
	bool looked;
	uint64_t mark;    /* its epoch */
	uint32_t lives;   /* the lane that the mark names */
	uint64_t counter; /* of tokens */
};

struct discovery {
	struct op op;
	struct follows *all;
	struct movetable_row *m;
	struct follow_path path;
	struct lane_finding found[SUPPLIED_MAX]; /* by index of the path */
	uint64_t highest;                        /* counter of all lanes that were looked at */
	uint64_t by_map;                         /* epoch of the map at the start */
	bool wide;                               /* all shards are asked */
	uint32_t guess;                          /* lane that is asked though nothing names it; UINT32_MAX: none */
	uint32_t next;                           /* wide: the next shard to ask */
	enum discover_step step;
	unsigned at;          /* index of the path that is asked */
	unsigned rounds;      /* so far */
	unsigned lived;       /* index of the shard that the queue lived on; 0: its policy is not copied */
	bool sure;            /* a mark names that shard */
	struct policy policy; /* of that shard, as it was copied */
	struct policy newer;  /* the same, after the marks were set */
	uint64_t left;        /* GLANCE: messages, keys and results on all former shards */
	uint64_t batch;       /* GLANCE: number of a batch that is set aside, or 0 */
	uint32_t batch_lane;  /* GLANCE: its lane */
};

static void discover_done(struct op *op);

/* ---- Asking ---- */

static void
begin(struct discovery *p, enum op_verb verb, unsigned at)
{
	op_init(&p->op, verb, p->m->space, p->m->queue, discover_done, p);
	p->op.route.cost = 1;
	p->at = at;
}

static int
post(struct discovery *p)
{
	return lane_post(p->all->b->lanes[p->path.lanes[p->at]], &p->op);
}

/* Asks one shard, without an epoch: it sets no mark. */
static int
ask(struct discovery *p, enum op_verb verb, unsigned at)
{
	const struct policy policy = p->op.policy;

	begin(p, verb, at);
	p->op.policy = policy;
	return post(p);
}

static int
ask_move(struct discovery *p, enum move_step step, unsigned at)
{
	begin(p, OP_MOVE, at);
	p->op.move.step = step;
	p->op.home.epoch = step == MOVE_LOOK ? 0 : p->path.epoch;
	p->op.home.lives = at == 0 ? NULL : broker_mark_name(p->all->b, p->path.lanes[0]);
	return post(p);
}

/* ---- The end ---- */

static void
discover_end(struct discovery *p, int rc, const struct slu_err *err)
{
	struct follows *const rs = p->all;
	struct movetable_row *const m = p->m;
	struct list held;

	list_init(&held);
	pthread_mutex_lock(&rs->mtx);
	if (m->by_map == p->by_map) /* otherwise the map has changed meanwhile */
		m->path = p->path;
	m->state = rc || m->by_map != p->by_map ? MOVETABLE_NEW : MOVETABLE_KNOWN;
	m->empty = false;
	m->looked = clock_boot(rs->b->clock);
	list_take(&m->held, &held);
	m->uses--;
	pthread_mutex_unlock(&rs->mtx);
	follow_begin_all(&held, rc, err);
	mem_free(p);
}

static int
lost(const struct discovery *p, const char *name, struct slu_err *err)
{
	return slu_fail(err, SLU_EMOVED,
			"queue %.*s of %.*s lives on shard %s since map version %llu, which this node does not have; reload its configuration",
			(int)p->m->queue.n, p->m->queue.p, (int)p->m->space.n, p->m->space.p, name,
			(unsigned long long)(p->op.move.epoch >> MOVE_EPOCH_BITS));
}

/* ---- Looking ---- */

static void
swap(struct discovery *p, unsigned a, unsigned b)
{
	const uint32_t lane = p->path.lanes[a];
	const struct lane_finding found = p->found[a];

	p->path.lanes[a] = p->path.lanes[b];
	p->found[a] = p->found[b];
	p->path.lanes[b] = lane;
	p->found[b] = found;
}

static unsigned
append(struct discovery *p, uint32_t lane)
{
	const unsigned i = p->path.n++;

	p->path.lanes[i] = lane;
	p->found[i] = (struct lane_finding){ 0 };
	return i;
}

/* The queue lives on that lane. */
static void
set_home(struct discovery *p, uint32_t lane)
{
	unsigned i = follow_path_find(&p->path, lane);

	if (i == UINT_MAX && p->path.n == SUPPLIED_MAX)
		p->path.n--;
	if (i == UINT_MAX)
		i = append(p, lane);
	swap(p, 0, i);
}

/* The lane that an older mark names may have messages of the queue, or the sequence of a key. So it is on the
 * path and must answer, unless this node has no such shard. */
static void
add_former(struct discovery *p, uint32_t lane)
{
	if (lane != UINT32_MAX && follow_path_find(&p->path, lane) == UINT_MAX && p->path.n < SUPPLIED_MAX)
		(void)append(p, lane);
}

/* A mark with a newer epoch than the path counts; also a mark with the same epoch on the shard that the
 * queue lives on by the path: the first node to set it is right. */
static int
take_look(struct discovery *p, struct slu_err *err)
{
	const struct op_move *const mv = &p->op.move;
	uint32_t lane = p->path.lanes[p->at];

	p->highest = mv->counter > p->highest ? mv->counter : p->highest;
	if (mv->lives[0])
		lane = broker_lane_on(p->all->b, mv->lives, p->m->space, p->m->queue);
	p->found[p->at] = (struct lane_finding){ true, mv->epoch, lane, mv->counter };
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
next_look(const struct discovery *p)
{
	for (unsigned i = 0; i < p->path.n; i++)
		if (!p->found[i].looked)
			return i;
	return UINT_MAX;
}

/* The next index of the path to mark. The shard that the queue lives on is the first, and may have no
 * mark; then from the last to the second: a shard of the path may be known only by the mark of one
 * before it, which must stay until the later one is marked. */
static unsigned
next_mark(const struct discovery *p)
{
	if (p->found[0].mark > 0 && p->found[0].mark < p->path.epoch)
		return 0;
	for (unsigned i = p->path.n - 1; i > 0; i--)
		if (p->found[i].mark < p->path.epoch)
			return i;
	return UINT_MAX;
}

/* ---- Steps ---- */

static int
mark_next(struct discovery *p)
{
	const unsigned i = next_mark(p);

	p->step = i == UINT_MAX ? DISCOVER_NEWER : DISCOVER_MARK;
	if (i != UINT_MAX)
		return ask_move(p, MOVE_MARK, i);
	return p->lived ? ask(p, OP_POLICY_GET, p->lived) : -1;
}

/* The policy may have changed on the former shard before its mark was set. */
static int
after_newer(struct discovery *p)
{
	if (policy_is_same(&p->op.policy, &p->policy))
		return -1;
	p->newer = p->op.policy;
	p->step = DISCOVER_COPIED;
	return ask(p, OP_POLICY_GET, 0);
}

static int
after_copied(struct discovery *p)
{
	if (!policy_follows(&p->op.policy, &p->policy, &p->newer))
		return -1;
	p->step = DISCOVER_RENEW;
	return ask(p, OP_POLICY_SET, 0);
}

/* A change meanwhile goes to the former shard first: the next look there sees it. */
static int
after_renewed(struct discovery *p)
{
	p->policy = p->newer;
	p->step = DISCOVER_NEWER;
	return ++p->rounds > ROUNDS ? -1 : ask(p, OP_POLICY_GET, p->lived);
}

/* MOVE-9. Returns false if the counter need not be lifted, or with *rc if it cannot be. */
static bool
lift(struct discovery *p, enum discover_step step, int *rc)
{
	*rc = 0;
	begin(p, OP_MOVE, 0);
	if (!move_lift(&p->op.move, p->found[0].counter, p->highest))
		return false;
	p->step = step;
	*rc = post(p);
	return *rc == 0;
}

/* The counter is lifted before a mark sends ops there. */
static int
lift_and_mark(struct discovery *p)
{
	int rc;

	return lift(p, DISCOVER_LIFT, &rc) || rc ? rc : mark_next(p);
}

/* The shard that was guessed stays on the path only if it has something or has a mark that names itself;
 * if the queue lives there, it is no longer the last of the path. */
static void
end_guess(struct discovery *p)
{
	const struct op_move *const mv = &p->op.move;
	const bool has = mv->messages || mv->remembered || mv->results || mv->batch ||
			 (mv->epoch && !mv->lives[0]);

	if (p->path.lanes[p->path.n - 1] == p->guess && (p->op.rc || !has))
		p->path.n--;
	p->guess = UINT32_MAX;
}

/* The lane of a queue on the i-th shard; UINT32_MAX: no more shards. */
static uint32_t
nth_lane(const struct broker *b, uint32_t i, struct slice space, struct slice queue)
{
	const uint32_t open = broker_lanes(b);

	for (uint32_t at = 0; at < open; at += b->shard_of[at]->lanes)
		if (i-- == 0)
			return broker_lane_on(b, b->shard_of[at]->name, space, queue);
	return UINT32_MAX;
}

/* Appends one more shard that is not on the path yet. Returns false if all shards are on it. */
static bool
guess_next(struct discovery *p)
{
	uint32_t lane;

	while (p->wide && p->path.n < SUPPLIED_MAX) {
		lane = nth_lane(p->all->b, p->next++, p->m->space, p->m->queue);
		if (lane == UINT32_MAX)
			return false;
		if (follow_path_find(&p->path, lane) != UINT_MAX)
			continue;
		p->guess = lane;
		(void)append(p, lane);
		return true;
	}
	return false;
}

/* A mark that names its own shard may be left from a node that died before it set the others: only a mark
 * that names another shard counts. */
static bool
points(const struct discovery *p, unsigned i)
{
	return p->found[i].mark && p->found[i].lives != p->path.lanes[i];
}

/* The index of the shard that the queue lived on before this epoch; 0: the same shard, or not known. */
static unsigned
lived_at(struct discovery *p)
{
	uint64_t epoch = 0;
	unsigned at = 1;

	for (unsigned i = 0; i < p->path.n; i++)
		if (points(p, i) && p->found[i].mark > epoch && p->found[i].mark < p->path.epoch) {
			epoch = p->found[i].mark;
			at = follow_path_find(&p->path, p->found[i].lives);
		}
	p->sure = epoch > 0;
	return at == UINT_MAX ? 0 : at;
}

/* A node copies the policy before it sets the first mark of an epoch. */
static int
copy_policy(struct discovery *p)
{
	const unsigned lived = lived_at(p);
	bool done = lived == 0;

	for (unsigned i = 0; i < p->path.n; i++)
		done |= points(p, i) && p->found[i].mark == p->path.epoch;
	if (done)
		return lift_and_mark(p);
	p->step = DISCOVER_POLICY;
	p->lived = lived;
	return ask(p, OP_POLICY_GET, lived);
}

static int
after_look(struct discovery *p, struct slu_err *err)
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
after_policy(struct discovery *p)
{
	p->policy = p->op.policy;
	p->step = DISCOVER_ITS_OWN;
	return ask(p, OP_POLICY_GET, 0);
}

static int
after_its_own(struct discovery *p)
{
	if (!policy_replaces(&p->policy, &p->op.policy, p->sure))
		return lift_and_mark(p);
	p->step = DISCOVER_COPY;
	p->op.policy = p->policy;
	return ask(p, OP_POLICY_SET, 0);
}

/* Another node may have set a newer mark: then all shards are looked at again. */
static int
after_mark(struct discovery *p, struct slu_err *err)
{
	if (p->op.move.epoch > p->path.epoch) {
		if (++p->rounds > ROUNDS)
			return slu_fail(err, SLU_EBUSY, "queue %.*s of %.*s keeps moving",
					(int)p->m->queue.n, p->m->queue.p, (int)p->m->space.n,
					p->m->space.p);
		for (unsigned i = 0; i < p->path.n; i++)
			p->found[i].looked = false;
		p->lived = 0;
		p->step = DISCOVER_LOOK;
		return ask_move(p, MOVE_LOOK, p->at);
	}
	p->found[p->at].mark = p->path.epoch;
	return mark_next(p);
}

/* Returns 0 if the op was posted again, -1 if the discovery is done. */
static int
next_step(struct discovery *p, struct slu_err *err)
{
	if (p->op.rc && p->guess == UINT32_MAX) {
		*err = p->op.err;
		return p->op.rc;
	}
	switch (p->step) {
	case DISCOVER_LOOK:
		return after_look(p, err);
	case DISCOVER_POLICY:
		return after_policy(p);
	case DISCOVER_ITS_OWN:
		return after_its_own(p);
	case DISCOVER_COPY:
		return lift_and_mark(p);
	case DISCOVER_LIFT:
		return mark_next(p);
	case DISCOVER_NEWER:
		return after_newer(p);
	case DISCOVER_COPIED:
		return after_copied(p);
	case DISCOVER_RENEW:
		return after_renewed(p);
	default:
		return after_mark(p, err);
	}
}

/* ---- A glance ---- */

/* Returns true if former shards need not be asked any more; never for lock keys, which are not counted. */
static bool
is_left(const struct discovery *p)
{
	return p->left == 0 && !slice_eq(p->m->queue, SLICE(LOCK_QUEUE));
}

/* whole: all shards have answered, and the counter is lifted. */
static void
glance_end(struct discovery *p, bool whole)
{
	struct follows *const rs = p->all;
	struct movetable_row *const m = p->m;
	const slu_time now = clock_boot(rs->b->clock);
	bool is_stuck;

	pthread_mutex_lock(&rs->mtx);
	m->looking = false;
	m->looked = now;
	if (m->batch != p->batch)
		m->since = now;
	m->batch = p->batch;
	is_stuck = p->batch && now - m->since >= FOLLOW_STUCK;
	if (whole && m->state == MOVETABLE_KNOWN && m->path.epoch == p->path.epoch)
		m->empty = is_left(p);
	pthread_mutex_unlock(&rs->mtx);
	if (is_stuck)
		broker_repair(rs->b, m->space, m->queue, p->batch_lane);
	pthread_mutex_lock(&rs->mtx);
	m->uses--;
	pthread_mutex_unlock(&rs->mtx);
	mem_free(p);
}

static void
glance_next(struct discovery *p)
{
	const struct op_move *const mv = &p->op.move;
	int rc = 0;

	if (p->op.rc || p->step == DISCOVER_LEAVE) {
		glance_end(p, p->op.rc == 0);
		return;
	}
	p->found[p->at].counter = mv->counter;
	if (p->at > 0)
		p->left += mv->messages + mv->remembered + mv->results + mv->damaged;
	p->highest = mv->counter > p->highest ? mv->counter : p->highest;
	if (mv->batch && !p->batch) { /* the batch of lanes[0] comes first: others may wait for it */
		p->left++;
		p->batch = mv->batch;
		p->batch_lane = p->path.lanes[p->at];
	}
	if (p->at + 1 < p->path.n) {
		if (ask_move(p, MOVE_LOOK, p->at + 1))
			glance_end(p, false);
		return;
	}
	if (!is_left(p) || !lift(p, DISCOVER_LEAVE, &rc))
		glance_end(p, rc == 0);
}

static void
discover_done(struct op *op)
{
	struct discovery *const p = op->owner;
	struct slu_err err = { 0 };
	int rc;

	if (p->step >= DISCOVER_GLANCE) {
		glance_next(p);
		return;
	}
	rc = next_step(p, &err);
	if (rc < 0)
		discover_end(p, 0, NULL);
	else if (rc > 0)
		discover_end(p, rc, err.code ? &err : NULL);
}

/* ---- Starting ---- */

static struct discovery *
discover_new(struct follows *rs, struct movetable_row *m, enum discover_step step)
{
	struct discovery *const p = mem_zalloc(sizeof *p);

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
discover_give_up(struct discovery *p)
{
	pthread_mutex_lock(&p->all->mtx);
	p->m->uses--;
	if (p->step == DISCOVER_GLANCE)
		p->m->looking = false;
	pthread_mutex_unlock(&p->all->mtx);
	mem_free(p);
}

int
discover_start(struct follows *rs, struct movetable_row *m)
{
	struct discovery *const p = discover_new(rs, m, DISCOVER_LOOK);
	int rc;

	if (!p)
		return SLU_ENOMEM;
	rc = ask_move(p, MOVE_LOOK, 0);
	if (rc)
		discover_give_up(p);
	return rc;
}

void
discover_glance(struct follows *rs, struct movetable_row *m)
{
	const slu_time now = clock_boot(rs->b->clock);
	struct discovery *p;
	bool due;

	pthread_mutex_lock(&rs->mtx);
	due = m->state == MOVETABLE_KNOWN && !m->looking && now - m->looked >= FOLLOW_SLICE &&
	      m->path.n > 1;
	m->looking |= due;
	pthread_mutex_unlock(&rs->mtx);
	p = due ? discover_new(rs, m, DISCOVER_GLANCE) : NULL;
	if (due && !p) {
		pthread_mutex_lock(&rs->mtx);
		m->looking = false;
		pthread_mutex_unlock(&rs->mtx);
	}
	if (p && ask_move(p, MOVE_LOOK, 0))
		discover_give_up(p);
}
