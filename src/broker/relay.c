/*
 * relay.c - an op follows the path of its queue.
 */
#include "broker/relay_in.h"

#include "base/limit.h"
#include "base/mem.h"

enum {
	HOPS = 16 /* how often an op learns that its queue lives elsewhere */
};

static slu_time
now_of(const struct relay *r)
{
	return clock_boot(r->all->env.clock);
}

/* ---- In and out ---- */

/* The row is used by it from here on. Under mtx. */
static struct relay *
relay_new(struct relays *rs, struct moving *m, struct op *op)
{
	struct relay *const r = mem_zalloc(sizeof *r);

	if (!r)
		return NULL;
	*r = (struct relay){
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
	if (op->wait <= SLU_NEVER - now_of(r))
		r->until = now_of(r) + op->wait;
	list_init(&r->node);
	list_init(&r->waiting);
	if (op->wait > 0 && relay_verb_of(op->verb)->waits)
		list_append(&m->waiting, &r->waiting);
	m->uses++;
	op->relay = r;
	return r;
}

/* The op is its maker's again, but for done. */
static void
relay_free(struct relay *r)
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
	op->relay = NULL;
	op->epoch = 0; /* whatever comes of the answer belongs to the shard that gave it */
	op->lives = NULL;
	op->known = op->formers = false;
	mem_free(r);
}

static void
finish(struct relay *r)
{
	struct op *const op = r->op;

	relay_free(r);
	atomic_store(&op->canceled, OP_CANCEL_DONE);
	op->done(op);
}

static void
fail(struct relay *r, int rc, const struct slu_err *err)
{
	struct op *const op = r->op;

	op_unpin(op);
	op->n_rows = 0;
	op->n_queues = 0;
	op->n_keys = 0;
	if ((r->took || r->unknown) && rc != SLU_EUNKNOWN)
		op_fail(op, SLU_EUNKNOWN, NULL); /* Y1 */
	else
		op_fail(op, rc, err);
	finish(r);
}

/* ---- Asking ---- */

/* A payload that has a file is where that was written, and nowhere else: it is not worth
 * waiting for. */
static int
check_files(struct op *op, const struct shard *s)
{
	for (uint32_t i = 0; i < op->n_puts; i++) {
		const struct message *const m = &op->puts[i].m;

		if (!op->puts[i].taken && m->file && m->keeper && m->keeper != s->engine)
			return limit_fail(&op->err, SLU_EBUSY, LIMIT_MOVE, SLU_SEC,
					  "a payload with a file of its own waits until its queue has moved");
	}
	return 0;
}

/* One shard more is asked. */
static int
ask(struct relay *r, unsigned at)
{
	const struct relay_env *const env = &r->all->env;
	const struct relay_verb *const verb = relay_verb_of(r->op->verb);
	struct shard *const s = env->shard(env->arg, r->path.lanes[at]);
	struct op *const op = r->op;
	int rc = 0;

	if (at == 0 || op->verb != OP_ENQUEUE) /* V2: a former shard may not want it */
		rc = check_files(op, s);
	if (rc)
		return rc;
	r->at = at;
	op->rc = 0;
	op->n_rows = op->n_queues = op->n_keys = 0;
	op->count = 0;
	op->max_rows = r->max_rows;
	op->elsewhere[0] = '\0';
	op->epoch = r->known ? r->path.epoch : 0;
	op->lives = at == 0 ? NULL : env->name(env->arg, r->path.lanes[0]);
	op->above = verb->key ? r->above : 0;
	op->wait = 0;
	op->known = r->recalls;
	op->formers = r->path.n > 1 || !r->known;
	if (verb->ask)
		verb->ask(r);
	return shard_forward(s, op);
}

static void
go(struct relay *r, unsigned at)
{
	const int rc = ask(r, at);

	if (rc)
		fail(r, rc, &r->op->err);
}

/* Messages that no former shard has a say in. */
static bool
is_keyless(const struct op *op)
{
	for (uint32_t i = 0; i < op->n_puts; i++)
		if (op->puts[i].m.key.n || op->puts[i].m.idem.n)
			return false;
	return true;
}

/* A message whose line may be on one shard, and its idempotency key on another. */
static bool
has_both_keys(const struct op *op)
{
	for (uint32_t i = 0; i < op->n_puts; i++)
		if (!op->puts[i].taken && op->puts[i].m.key.n && op->puts[i].m.idem.n)
			return true;
	return false;
}

/* The next shard from `at` on that is asked for idempotency keys; 1: the last one has been,
 * and now the op itself goes its way. That begins there, so shard 1 need not be asked. */
static unsigned
next_recall(struct relay *r, unsigned at)
{
	r->recalls = at <= r->path.n;
	return r->recalls ? at % r->path.n : 1; /* where it lives is the last */
}

static unsigned
first_of(struct relay *r)
{
	const struct op *const op = r->op;

	r->recalls = false;
	if (r->path.n == 1 || relay_verb_of(op->verb)->home)
		return 0;
	if (op->verb == OP_LIST)
		return relay_list_at(r);
	if (op->verb == OP_ENQUEUE && has_both_keys(op))
		return next_recall(r, 2);
	return op->verb == OP_ENQUEUE && is_keyless(op) ? 0 : 1;
}

/* ---- Beginning ---- */

/* Until the marks are known. Under mtx. True: somebody has to ask for them. */
static bool
hold(struct relay *r)
{
	const bool first = r->m->state == MOVING_NEW;

	list_append(&r->m->held, &r->node);
	if (first)
		r->m->state = MOVING_ASKED;
	return first;
}

/* The shards could not be asked: whoever came meanwhile is told, but for r itself. */
static void
release_held(struct relay *r, int rc)
{
	struct list held;

	list_init(&held);
	pthread_mutex_lock(&r->all->mtx);
	list_remove(&r->node);
	r->m->state = MOVING_NEW;
	list_take(&r->m->held, &held);
	pthread_mutex_unlock(&r->all->mtx);
	relay_begin_all(&held, rc, NULL);
}

/* 0: it is on its way or held; else nobody has it. */
static int
begin(struct relay *r)
{
	struct relays *const rs = r->all;
	struct moving *const m = r->m;
	bool first = false, goes;
	int rc;

	probe_glance(rs, m);
	pthread_mutex_lock(&rs->mtx);
	r->path = m->path;
	r->known = m->state == MOVING_KNOWN;
	goes = r->known || r->why;
	if (!goes)
		first = hold(r);
	pthread_mutex_unlock(&rs->mtx);
	if (goes)
		return ask(r, first_of(r));
	if (!first)
		return 0; /* it is whoever asks for the marks that has it now */
	rc = probe_start(rs, m);
	if (rc)
		release_held(r, rc);
	return rc;
}

static void
begin_again(struct relay *r)
{
	int nudged = OP_NUDGED;
	int rc;

	(void)atomic_compare_exchange_strong(&r->op->unwanted, &nudged, OP_WANTED);
	atomic_store(&r->op->canceled, OP_CANCEL_AWAY);
	rc = begin(r);
	if (rc)
		fail(r, rc, &r->op->err);
}

/* Whoever could not answer may now. */
static void
start_over(struct relay *r)
{
	r->why = 0;
	begin_again(r);
}

void
relay_begin_all(struct list *held, int rc, const struct slu_err *err)
{
	while (!list_is_empty(held)) {
		struct relay *const r = CONTAINER(held->next, struct relay, node);

		list_remove(&r->node);
		if (rc && (relay_verb_of(r->op->verb)->strict || rc == SLU_ECLOSED)) {
			fail(r, rc, err); /* Y3 */
			continue;
		}
		r->why = rc;
		if (err)
			r->err = *err;
		begin_again(r);
	}
}

/* What becomes of an op that was not relayed so far. NULL and rc 0: nothing. Under mtx. */
static struct relay *
join(struct relays *rs, struct op *op, struct slice space, struct slice queue,
     const struct relay_path *by_map, uint32_t *lane, int *rc)
{
	struct moving *m = moving_find(rs, space, queue);
	struct relay *r;

	*rc = 0;
	if (!m && by_map->n == 1)
		return NULL;
	if (!m)
		m = moving_add(rs, space, queue, by_map);
	if (m && by_map->epoch > m->by_map)
		moving_follow(m, by_map);
	if (m && m->empty) {
		*lane = m->path.lanes[0];
		op->epoch = m->path.epoch;
		return NULL;
	}
	r = m ? relay_new(rs, m, op) : NULL;
	if (!r)
		*rc = SLU_ENOMEM;
	return r;
}

int
relay_check_forget(struct relays *rs, struct op *op, const struct relay_path *by_map)
{
	const struct moving *m;
	bool moves;

	pthread_mutex_lock(&rs->mtx);
	m = moving_find(rs, op->space, op->queue);
	moves = m ? !m->empty || by_map->epoch > m->by_map : by_map->n > 1;
	pthread_mutex_unlock(&rs->mtx);
	if (!moves)
		return 0;
	return slu_fail(&op->err, SLU_ECONFLICT,
			"queue %.*s is on its way between shards; delete it when its move has ended",
			(int)op->queue.n, op->queue.p);
}

int
relay_post(struct relays *rs, struct op *op, const struct relay_path *by_map)
{
	struct relay *r = NULL;
	uint32_t lane = by_map->lanes[0];
	struct slice space, queue;
	int rc = 0;

	if (relay_is_mixed(op, &space, &queue))
		return relay_split(rs, op);
	atomic_store(&op->unwanted, OP_WANTED);
	atomic_store(&op->canceled, OP_CANCEL_AWAY); /* before anybody can nudge it */
	if (relay_verb_of(op->verb)) {
		pthread_mutex_lock(&rs->mtx);
		r = join(rs, op, space, queue, by_map, &lane, &rc);
		pthread_mutex_unlock(&rs->mtx);
	}
	if (!rc && !r)
		rc = check_files(op, rs->env.shard(rs->env.arg, lane));
	if (rc)
		return rc;
	if (op->verb == OP_LIST && !r)
		op->cursor = relay_list_cursor(op->cursor);
	if (!r)
		return shard_post(rs->env.shard(rs->env.arg, lane), op);
	rc = begin(r);
	if (rc)
		relay_free(r);
	return rc;
}

/* ---- Answers ---- */

/* A shard says that the queue lives elsewhere, and whoever posted did not know. */
static struct relay *
adopt(struct relays *rs, const struct shard *s, struct op *op)
{
	const struct relay_path here = { .epoch = op->epoch, .n = 1, .lanes = { s->index } };
	struct slice space, queue;
	struct moving *m;
	struct relay *r;

	(void)relay_is_mixed(op, &space, &queue);
	pthread_mutex_lock(&rs->mtx);
	m = moving_find(rs, space, queue);
	if (!m)
		m = moving_add(rs, space, queue, &here);
	r = m ? relay_new(rs, m, op) : NULL;
	pthread_mutex_unlock(&rs->mtx);
	if (!r)
		return NULL;
	r->path = here;
	if (r->until != SLU_NEVER)
		r->until -= s->now - op->arrived; /* it has waited there */
	return r;
}

/* It moves faster than we can follow: who waits for messages comes again, others are told. */
static void
give_up(struct relay *r)
{
	if (r->op->verb != OP_CLAIM && r->op->verb != OP_PEEK) {
		fail(r, SLU_EMOVED, NULL);
		return;
	}
	r->op->rc = 0;
	finish(r);
}

/* The queue is not where we thought. If nobody has found out yet, this op makes others
 * wait until somebody has. */
static void
learn(struct relay *r)
{
	struct moving *const m = r->m;

	if (++r->hops > HOPS) {
		give_up(r);
		return;
	}
	pthread_mutex_lock(&r->all->mtx);
	if (m->state == MOVING_KNOWN && m->path.epoch <= r->path.epoch)
		m->state = MOVING_NEW;
	m->empty = false;
	m->wide = true;
	pthread_mutex_unlock(&r->all->mtx);
	begin_again(r);
}

/* Y4 */
static void
stay(struct relay *r, struct shard *s)
{
	if (!r->patient)
		r->patient = now_of(r) + RELAY_BUSY;
	if (s->closed || now_of(r) >= r->patient)
		fail(r, r->op->rc, &r->op->err);
	else
		shard_later(s, r->op);
}

static unsigned
after(struct relay *r)
{
	if (r->recalls)
		return next_recall(r, (r->at == 0 ? r->path.n : r->at) + 1);
	return r->at + 1 < r->path.n ? r->at + 1 : 0;
}

static void
follow(struct relay *r, struct shard *s, enum relay_next next)
{
	const bool is_canceled = atomic_load(&r->op->unwanted) == OP_CANCELED;

	if (next == RELAY_DONE) {
		finish(r);
		return;
	}
	if (is_canceled) {
		fail(r, SLU_ECANCELED, NULL);
		return;
	}
	atomic_store(&r->op->canceled, OP_CANCEL_AWAY);
	if (next == RELAY_STAY)
		stay(r, s);
	else if (next == RELAY_LEARN)
		learn(r);
	else if (next == RELAY_ON)
		go(r, after(r));
	else
		start_over(r);
}

/* Did it come without a relay, but needs one? */
static bool
is_for_others(const struct op *op)
{
	return relay_verb_of(op->verb) && op->epoch && op->rc != SLU_ECANCELED &&
	       (op->elsewhere[0] || relay_in_move(op));
}

void
relay_answered(struct relays *rs, struct shard *s, struct op *op)
{
	struct relay *r = op->relay;
	enum relay_next next;

	if (!r && is_for_others(op) && relay_split_rest(rs, op))
		return;
	if (!r && is_for_others(op))
		r = adopt(rs, s, op);
	if (!r) {
		op->done(op);
		return;
	}
	if (op->elsewhere[0] && op->counter > r->above)
		r->above = op->counter;
	if (op->rc == SLU_ECANCELED && atomic_load(&op->unwanted) != OP_NUDGED) {
		fail(r, SLU_ECANCELED, NULL);
		return;
	}
	if (op->rc == SLU_ECANCELED)
		next = RELAY_AGAIN;
	else
		next = relay_verb_of(op->verb)->answered(r);
	if (next != RELAY_DONE) {
		op_unpin(op);
		op->n_rows = op->n_keys = 0;
	}
	follow(r, s, next);
}

/* ---- Nudges ---- */

/* Those that wait where the queue lives ask the former shard that has something. */
static void
nudge(struct relays *rs, const struct moving *m, uint32_t n)
{
	const struct relay_env *const env = &rs->env;

	LIST_EACH(each, &m->waiting) {
		struct op *const op = CONTAINER(each, struct relay, waiting)->op;

		if (n == 0)
			break;
		if (atomic_load(&op->unwanted) != OP_WANTED)
			continue;
		if (op_unwant(op, OP_NUDGED))
			shard_stop(env->shard(env->arg, op->shard), op);
		n--;
	}
}

static bool
is_former(const struct moving *m, uint32_t lane)
{
	const unsigned i = path_find(&m->path, lane);

	return i != 0 && i != UINT_MAX;
}

void
relay_ready(struct relays *rs, uint32_t lane, struct slice space, struct slice queue, uint32_t n)
{
	const struct moving *m;

	if (!relays_any(rs))
		return;
	pthread_mutex_lock(&rs->mtx);
	m = queue.n ? moving_find(rs, space, queue) : NULL;
	if (m && is_former(m, lane))
		nudge(rs, m, n);
	if (queue.n == 0) {
		LIST_EACH(each, &rs->all) {
			m = CONTAINER(each, struct moving, any);
			if (is_former(m, lane))
				nudge(rs, m, n);
		}
	}
	pthread_mutex_unlock(&rs->mtx);
}
