/*
 * follow.c - an op follows the path of its queue.
 */
#include "broker/move/follow_private.h"

#include "base/limit.h"
#include "base/mem.h"

enum {
	HOPS = 16 /* how often an op learns that its queue lives elsewhere, before it fails */
};

/* ---- In and out ---- */

/* Such an op is nudged when a former shard has messages. */
static bool
waits_for_messages(const struct op *op)
{
	return follow_kind(op) == OP_FOLLOW_CLAIM || follow_kind(op) == OP_FOLLOW_WATCH;
}

/* Starts to follow; uses the row. Under mtx. */
static struct follow *
follow_new(struct follows *rs, struct movetable_row *m, struct op *op)
{
	struct follow *const r = mem_zalloc(sizeof *r);

	if (!r)
		return NULL;
	*r = (struct follow){
		.all = rs,
		.op = op,
		.m = m,
		.path = m->path,
		.verb = op->verb,
		.wait = op->wait,
		.max_rows = op->max_rows,
		.max_keys = op->max_keys,
		.cursor = op->cursor,
		.id = op->id,
		.until = SLU_NEVER,
	};
	if (op->wait <= SLU_NEVER - follow_now(r))
		r->until = follow_now(r) + op->wait;
	list_init(&r->node);
	list_init(&r->waiting);
	if (op->wait > 0 && waits_for_messages(op))
		list_append(&m->waiting, &r->waiting);
	m->uses++;
	op->route.follow = r;
	return r;
}

/* Gives the op its question back. */
static void
follow_free(struct follow *r)
{
	struct op *const op = r->op;

	pthread_mutex_lock(&r->all->mtx);
	list_remove(&r->node);
	list_remove(&r->waiting);
	r->m->uses--;
	pthread_mutex_unlock(&r->all->mtx);
	op->verb = r->verb;
	op->wait = r->wait;
	op->max_rows = r->max_rows;
	op->max_keys = r->max_keys;
	op->route.follow = NULL;
	op->home.epoch = 0; /* a return goes to the shard that granted the messages */
	op->home.lives = NULL;
	op->home.known = op->home.formers = false;
	mem_free(r);
}

static void
finish(struct follow *r)
{
	struct op *const op = r->op;

	follow_free(r);
	atomic_store(&op->route.canceled, OP_CANCEL_DONE);
	op->done(op);
}

static void
fail(struct follow *r, int rc, const struct slu_err *err)
{
	struct op *const op = r->op;

	op_unpin(op);
	op->n_rows = 0;
	op->n_queues = 0;
	op->n_keys = 0;
	if ((r->took || r->unknown) && rc != SLU_EUNKNOWN)
		op_fail(op, SLU_EUNKNOWN, NULL); /* FOLLOW-1 */
	else
		op_fail(op, rc, err);
	finish(r);
}

/* ---- Asking ---- */

/* The file of a large payload is on one shard: its op fails at once, without waiting for the move. */
static int
check_files(struct op *op, const struct lane *s)
{
	for (uint32_t i = 0; i < op->n_puts; i++) {
		const struct message *const m = &op->puts[i].m;

		if (!op->puts[i].taken && m->file && m->keeper && m->keeper != s->engine)
			return limit_fail(&op->err, SLU_EBUSY, LIMIT_MOVE, SLU_SEC,
					  "a large payload waits until its queue has moved");
	}
	return 0;
}

/* Asks the shard at that index of the path. */
static int
ask(struct follow *r, unsigned at)
{
	const struct follow_rule *const rule = follow_rule_of(r->op);
	struct lane *const s = r->all->b->lanes[r->path.lanes[at]];
	struct op *const op = r->op;
	int rc = 0;

	if (at == 0 || follow_kind(op) != OP_FOLLOW_PUTS) /* MOVE-2: a former shard may not take it */
		rc = check_files(op, s);
	if (rc)
		return rc;
	r->at = at;
	op->rc = 0;
	op->n_rows = op->n_queues = op->n_keys = 0;
	op->count = 0;
	op->max_rows = r->max_rows;
	op->home.elsewhere[0] = '\0';
	op->home.epoch = r->known ? r->path.epoch : 0;
	op->home.lives = at == 0 ? NULL : broker_mark_name(r->all->b, r->path.lanes[0]);
	op->home.above = op_is(op->verb, OP_KEYED) ? r->above : 0;
	op->wait = 0;
	op->home.known = r->recalls;
	op->home.formers = r->path.n > 1 || !r->known;
	if (rule->ask)
		rule->ask(r);
	return lane_forward(s, op);
}

static void
go(struct follow *r, unsigned at)
{
	const int rc = ask(r, at);

	if (rc)
		fail(r, rc, &r->op->err);
}

/* Returns true if no former shard needs to see the messages. */
static bool
is_keyless(const struct op *op)
{
	for (uint32_t i = 0; i < op->n_puts; i++)
		if (op->puts[i].m.key.n || op->puts[i].m.idem.n)
			return false;
	return true;
}

/* Returns true if the sequence of a message may be on one shard and its idempotency key on another. */
static bool
has_both_keys(const struct op *op)
{
	for (uint32_t i = 0; i < op->n_puts; i++)
		if (!op->puts[i].taken && op->puts[i].m.key.n && op->puts[i].m.idem.n)
			return true;
	return false;
}

/* The next index from `at` on that is asked for idempotency keys. After the last one, 1: the op itself
 * starts there, so index 1 need not be asked before. */
static unsigned
next_recall(struct follow *r, unsigned at)
{
	r->recalls = at <= r->path.n;
	return r->recalls ? at % r->path.n : 1; /* the shard that the queue lives on is the last */
}

static unsigned
first_of(struct follow *r)
{
	const struct op *const op = r->op;

	r->recalls = false;
	if (r->path.n == 1)
		return 0;
	switch (follow_kind(op)) {
	case OP_FOLLOW_HOME:
		return 0;
	case OP_FOLLOW_PAGES:
		return follow_list_at(r);
	case OP_FOLLOW_PUTS:
		return has_both_keys(op) ? next_recall(r, 2) : !is_keyless(op);
	default:
		return 1;
	}
}

/* ---- Beginning ---- */

/* Holds the op until the marks are known. Under mtx. Returns true if the caller has to ask for them. */
static bool
hold(struct follow *r)
{
	const bool first = r->m->state == MOVETABLE_NEW;

	list_append(&r->m->held, &r->node);
	if (first)
		r->m->state = MOVETABLE_ASKED;
	return first;
}

/* The shards could not be asked: fails the ops that were held meanwhile, except r. */
static void
release_held(struct follow *r, int rc)
{
	struct list held;

	list_init(&held);
	pthread_mutex_lock(&r->all->mtx);
	list_remove(&r->node);
	r->m->state = MOVETABLE_NEW;
	list_take(&r->m->held, &held);
	pthread_mutex_unlock(&r->all->mtx);
	follow_begin_all(&held, rc, NULL);
}

/* Returns 0 if the op is on its way or held; with a code the caller still has the op. */
static int
begin(struct follow *r)
{
	struct follows *const rs = r->all;
	struct movetable_row *const m = r->m;
	bool first = false, goes;
	int rc;

	discover_glance(rs, m);
	pthread_mutex_lock(&rs->mtx);
	r->path = m->path;
	r->known = m->state == MOVETABLE_KNOWN;
	goes = r->known || r->why;
	if (!goes)
		first = hold(r);
	pthread_mutex_unlock(&rs->mtx);
	if (goes)
		return ask(r, first_of(r));
	if (!first)
		return 0; /* discover.c has it now */
	rc = discover_start(rs, m);
	if (rc)
		release_held(r, rc);
	return rc;
}

static void
begin_again(struct follow *r)
{
	int nudged = OP_NUDGED;
	int rc;

	(void)atomic_compare_exchange_strong(&r->op->route.unwanted, &nudged, OP_WANTED);
	atomic_store(&r->op->route.canceled, OP_CANCEL_AWAY);
	rc = begin(r);
	if (rc)
		fail(r, rc, &r->op->err);
}

/* A shard that did not answer may answer now. */
static void
start_over(struct follow *r)
{
	r->why = 0;
	begin_again(r);
}

void
follow_begin_all(struct list *held, int rc, const struct slu_err *err)
{
	while (!list_is_empty(held)) {
		struct follow *const r = CONTAINER(held->next, struct follow, node);

		list_remove(&r->node);
		if (rc && (op_is(r->op->verb, OP_STRICT) || rc == SLU_ECLOSED)) {
			fail(r, rc, err); /* FOLLOW-3 */
			continue;
		}
		r->why = rc;
		if (err)
			r->err = *err;
		begin_again(r);
	}
}

/* Lets an op follow its queue, if the queue moves. Returns NULL with rc 0 if not. Under mtx. */
static struct follow *
join(struct follows *rs, struct op *op, struct slice space, struct slice queue,
     const struct follow_path *by_map, uint32_t *lane, int *rc)
{
	struct movetable_row *m = movetable_find(rs, space, queue);
	struct follow *r;

	*rc = 0;
	if (!m && by_map->n == 1)
		return NULL;
	if (!m)
		m = movetable_add(rs, space, queue, by_map);
	if (m && by_map->epoch > m->by_map)
		movetable_follow(m, by_map);
	if (m && m->empty) {
		*lane = m->path.lanes[0];
		op->home.epoch = m->path.epoch;
		return NULL;
	}
	r = m ? follow_new(rs, m, op) : NULL;
	if (!r)
		*rc = SLU_ENOMEM;
	return r;
}

/* A queue that is or may be on several shards is not forgotten: a shard that has messages of it would
 * make it again. */
static int
check_forget(struct follows *rs, struct op *op, const struct follow_path *by_map)
{
	const struct movetable_row *m;
	bool moves;

	pthread_mutex_lock(&rs->mtx);
	m = movetable_find(rs, op->space, op->queue);
	moves = m ? !m->empty || by_map->epoch > m->by_map : by_map->n > 1;
	pthread_mutex_unlock(&rs->mtx);
	if (!moves)
		return 0;
	return slu_fail(&op->err, SLU_ECONFLICT,
			"queue %.*s is being moved between shards; delete it when the move has ended",
			(int)op->queue.n, op->queue.p);
}

static int
post_at(struct follows *rs, struct op *op, uint32_t lane)
{
	if (follow_kind(op) == OP_FOLLOW_PAGES && !op->route.spans)
		op->cursor = follow_list_cursor(op->cursor);
	return lane_post(rs->b->lanes[lane], op);
}

/* Posts an op whose queue may be on several shards. */
static int
post_moving(struct follows *rs, struct op *op, const struct follow_path *by_map)
{
	struct follow *r = NULL;
	uint32_t lane = by_map->lanes[0];
	struct slice space, queue;
	int rc = 0;

	if (follow_is_mixed(op, &space, &queue))
		return follow_split(rs, op);
	atomic_store(&op->route.unwanted, OP_WANTED);
	atomic_store(&op->route.canceled, OP_CANCEL_AWAY); /* before a nudge can find it */
	if (follow_rule_of(op)) {
		pthread_mutex_lock(&rs->mtx);
		r = join(rs, op, space, queue, by_map, &lane, &rc);
		pthread_mutex_unlock(&rs->mtx);
	}
	if (!rc && !r)
		rc = check_files(op, rs->b->lanes[lane]);
	if (rc)
		return rc;
	if (!r)
		return post_at(rs, op, lane);
	rc = begin(r);
	if (rc)
		follow_free(r);
	return rc;
}

int
follow_post(struct follows *rs, struct op *op, const struct follow_path *by_map)
{
	int rc = 0;

	op->route.follow = NULL;
	op->home.elsewhere[0] = '\0';
	op->home.above = 0;
	if (follow_kind(op) == OP_FOLLOW_REFUSE) {
		rc = check_forget(rs, op, by_map);
		op->home.epoch = 0; /* a forget leaves no mark */
	}
	if (rc)
		return rc;
	if (op->home.epoch && follow_kind(op) != OP_FOLLOW_NOT && (by_map->n > 1 || follows_any(rs)))
		return post_moving(rs, op, by_map);
	return post_at(rs, op, by_map->lanes[0]);
}

/* ---- Answers ---- */

/* Lets an op follow after a shard has answered that the queue lives elsewhere. */
static struct follow *
adopt(struct follows *rs, const struct lane *s, struct op *op)
{
	const struct follow_path here = { .epoch = op->home.epoch, .n = 1, .lanes = { s->index } };
	struct slice space, queue;
	struct movetable_row *m;
	struct follow *r;

	(void)follow_is_mixed(op, &space, &queue);
	pthread_mutex_lock(&rs->mtx);
	m = movetable_find(rs, space, queue);
	if (!m)
		m = movetable_add(rs, space, queue, &here);
	r = m ? follow_new(rs, m, op) : NULL;
	pthread_mutex_unlock(&rs->mtx);
	if (!r)
		return NULL;
	r->path = here;
	if (r->until != SLU_NEVER)
		r->until -= s->now - op->route.arrived; /* the op has waited there */
	return r;
}

/* The queue moves faster than the op can follow: a claim ends without rows, other ops fail. */
static void
give_up(struct follow *r)
{
	if (follow_kind(r->op) != OP_FOLLOW_CLAIM) {
		fail(r, SLU_EMOVED, NULL);
		return;
	}
	r->op->rc = 0;
	finish(r);
}

/* The path is wrong. If it was not discovered again yet, this op holds all ops until it is. */
static void
learn(struct follow *r)
{
	struct movetable_row *const m = r->m;

	if (++r->hops > HOPS) {
		give_up(r);
		return;
	}
	pthread_mutex_lock(&r->all->mtx);
	if (m->state == MOVETABLE_KNOWN && m->path.epoch <= r->path.epoch)
		m->state = MOVETABLE_NEW;
	m->empty = false;
	m->wide = true;
	pthread_mutex_unlock(&r->all->mtx);
	begin_again(r);
}

/* FOLLOW-4 */
static void
stay(struct follow *r, struct lane *s)
{
	if (!r->patient)
		r->patient = follow_now(r) + FOLLOW_BUSY;
	if (s->closed || follow_now(r) >= r->patient)
		fail(r, r->op->rc, &r->op->err);
	else
		lane_later(s, r->op);
}

static unsigned
after(struct follow *r)
{
	if (r->recalls)
		return next_recall(r, (r->at == 0 ? r->path.n : r->at) + 1);
	return r->at + 1 < r->path.n ? r->at + 1 : 0;
}

static void
follow(struct follow *r, struct lane *s, enum follow_next next)
{
	const bool is_canceled = atomic_load(&r->op->route.unwanted) == OP_CANCELED;

	if (next == FOLLOW_DONE) {
		finish(r);
		return;
	}
	if (is_canceled) {
		fail(r, SLU_ECANCELED, NULL);
		return;
	}
	atomic_store(&r->op->route.canceled, OP_CANCEL_AWAY);
	if (next == FOLLOW_STAY)
		stay(r, s);
	else if (next == FOLLOW_LEARN)
		learn(r);
	else if (next == FOLLOW_ON)
		go(r, after(r));
	else
		start_over(r);
}

/* Returns true if the op was posted to one shard and now has to follow. */
static bool
is_for_others(const struct op *op)
{
	return (op_is_elsewhere(op) || follow_in_move(op)) && follow_rule_of(op) && op->home.epoch &&
	       op->rc != SLU_ECANCELED;
}

static void
take_answer(struct follow *r, struct lane *s)
{
	struct op *const op = r->op;
	enum follow_next next;

	if (op_is_elsewhere(op) && op->home.counter > r->above)
		r->above = op->home.counter;
	if (op->rc == SLU_ECANCELED && atomic_load(&op->route.unwanted) != OP_NUDGED) {
		fail(r, SLU_ECANCELED, NULL);
		return;
	}
	if (op->rc == SLU_ECANCELED)
		next = FOLLOW_AGAIN;
	else
		next = follow_rule_of(op)->answered(r);
	if (next != FOLLOW_DONE) {
		op_unpin(op);
		op->n_rows = op->n_keys = 0;
	}
	follow(r, s, next);
}

/* The batch of a step may have what ops wait for. */
static void
wake_waiting(struct lane *s, const struct op *op)
{
	if (op->move.step != MOVE_LOOK && op->rc == 0)
		dispatch_ready(&s->dispatch, op->space, op->queue, UINT32_MAX);
}

bool
follow_answered(struct lane *s, struct op *op)
{
	struct follow *r = op->route.follow;

	if (!s->follows)
		return false;
	if (op->verb == OP_MOVE)
		wake_waiting(s, op);
	if (!r && !is_for_others(op))
		return false;
	if (!r && follow_split_rest(s->follows, op))
		return true;
	if (!r)
		r = adopt(s->follows, s, op);
	if (r)
		take_answer(r, s);
	return r;
}

/* ---- Nudges ---- */

/* Lets n ops that wait where the queue lives ask the former shard that has something. */
static void
nudge(struct follows *rs, const struct movetable_row *m, uint32_t n)
{
	LIST_EACH(each, &m->waiting) {
		struct op *const op = CONTAINER(each, struct follow, waiting)->op;

		if (n == 0)
			break;
		if (atomic_load(&op->route.unwanted) != OP_WANTED)
			continue;
		if (op_unwant(op, OP_NUDGED))
			lane_stop(rs->b->lanes[op->route.lane], op);
		n--;
	}
}

static bool
is_former(const struct movetable_row *m, uint32_t lane)
{
	const unsigned i = follow_path_find(&m->path, lane);

	return i != 0 && i != UINT_MAX;
}

void
follow_ready(const struct lane *s, struct slice space, struct slice queue, uint32_t n)
{
	struct follows *const rs = s->follows;
	const struct movetable_row *m;

	if (!rs || !follows_any(rs))
		return;
	pthread_mutex_lock(&rs->mtx);
	m = queue.n ? movetable_find(rs, space, queue) : NULL;
	if (m && is_former(m, s->index))
		nudge(rs, m, n);
	if (queue.n == 0) {
		LIST_EACH(each, &rs->all) {
			m = CONTAINER(each, struct movetable_row, any);
			if (is_former(m, s->index))
				nudge(rs, m, n);
		}
	}
	pthread_mutex_unlock(&rs->mtx);
}
