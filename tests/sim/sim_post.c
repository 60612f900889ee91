/*
 * sim_post.c - clients: what they ask for, and how they go away.
 */
#include "sim_world.h"

#include <stdio.h>

struct sim_call *
world_free_call(struct sim_world *w)
{
	EACH(i, w->calls)
		if (w->calls[i].state == CALL_FREE)
			return &w->calls[i];
	return NULL;
}

void
world_start(struct sim_world *w, struct sim_call *c, enum op_verb verb, unsigned queue)
{
	op_init(&c->op, verb, world_space(queue), world_queue(queue), world_answered, c);
	c->w = w;
	c->queue = queue;
	c->serial = ++w->serial;
	c->canceled = c->returning = false;
	c->op.rows = c->rows;
	c->op.max_rows = 1 + (uint32_t)world_dice(w, WORLD_EACH);
	c->op.queues = &c->stats;
	c->op.max_queues = 1;
	c->op.items = c->items;
	c->op.puts = c->puts;
}

/* A short time, or a long one. */
slu_time
world_some_time(struct sim_world *w)
{
	static const slu_time units[] = { SLU_MS, 20 * SLU_MS, SLU_SEC, 10 * SLU_SEC, SLU_MIN };

	return (slu_time)(1 + world_dice(w, 50)) * units[world_dice(w, COUNT(units))];
}

/* ---- Producers ---- */

void
world_make_put(struct sim_world *w, struct sim_call *c, unsigned i)
{
	struct put_facts *f = &c->facts[i];
	struct op_put *put = &c->puts[i];
	struct message *m = &put->m;

	*f = (struct put_facts){
		.key = world_chance(w, 50) ? (int)world_dice(w, MODEL_KEYS) : -1,
		.idem = world_chance(w, 25) ? (int)world_dice(w, MODEL_IDEMS) : -1,
		.keep = world_chance(w, 20) ? world_some_time(w) : 0,
		.size = (unsigned)world_dice(w, w->max_payload),
		.too_big = world_chance(w, 1),
	};
	if (w->conf.moves && f->idem >= 0) /* a client that sends a message again does not change its key */
		f->key = f->idem % (MODEL_KEYS + 1) - 1;
	f->id = broker_new_id(w->broker, (struct slice){ 0 }, (struct slice){ 0 });
	*put = (struct op_put){ .m.id = f->id };
	m->prio = (int32_t)world_dice(w, 3);
	m->max_attempts = (uint16_t)(world_chance(w, 30) ? 1 + world_dice(w, 4) : 0);
	m->keep = f->keep;
	m->payload = (struct slice){ world_payload(m->id), f->size };
	if (f->too_big)
		m->payload.n = w->logengine_conf.segment_size;
	if (f->key >= 0) {
		snprintf(c->keys[i], sizeof c->keys[i], "k%d", f->key);
		m->key = slice_of(c->keys[i]);
	}
	if (f->idem >= 0) {
		snprintf(c->idems[i], sizeof c->idems[i], "i%d", f->idem);
		m->idem = slice_of(c->idems[i]);
	}
	if (world_chance(w, 20))
		put->delay = world_some_time(w);
	if (world_chance(w, 10))
		put->ttl = world_some_time(w);
}

static bool
make_enqueue(struct sim_world *w, struct sim_call *c, unsigned queue)
{
	world_start(w, c, OP_ENQUEUE, queue);
	c->op.n_puts = 1 + (uint32_t)world_dice(w, WORLD_EACH);
	for (unsigned i = 0; i < c->op.n_puts; i++)
		world_make_put(w, c, i);
	if (!w->conf.moves && world_chance(w, 10))
		world_make_batch(w, c);
	return w->model.n + WORLD_CALLS * WORLD_EACH < MODEL_MSGS;
}

/* ---- Consumers ---- */

static bool
make_claim(struct sim_world *w, struct sim_call *c, unsigned queue)
{
	world_start(w, c, OP_CLAIM, queue);
	c->op.wait = world_chance(w, 50) ? world_some_time(w) : 0;
	c->op.claim.lease = world_chance(w, 70) ? world_some_time(w) : 0;
	c->op.claim.max_bytes = world_chance(w, 5) ? w->max_payload : 0;
	c->op.claim.stateful = w->locks;
	c->op.claim.holder = SLICE(WORLD_HOLDER);
	return true;
}

/* A lease that a client has or had; sometimes a wrong token, none, or another queue. */
static bool
make_item(struct sim_world *w, struct sim_call *c, unsigned i)
{
	const unsigned at = (unsigned)world_dice(w, w->n_leases);
	const struct sim_lease l = w->leases[at];
	struct op_item *it = &c->items[i];

	if (l.queue != c->queue && !world_chance(w, 2))
		return false;
	*it = (struct op_item){ .id = l.id, .token = l.token };
	if (world_chance(w, 5))
		it->token = world_chance(w, 50) && !w->conf.moves ? 0 : l.token - 1;
	if (!world_chance(w, 20)) /* a few say it twice, or come back with it later */
		w->leases[at] = w->leases[--w->n_leases];
	return true;
}

static void
finish_item(struct sim_world *w, struct sim_call *c, unsigned i)
{
	struct op_item *it = &c->items[i];

	if (c->op.verb == OP_EXTEND)
		it->time = world_chance(w, 70) ? world_some_time(w) : 0;
	if (c->op.verb == OP_NACK) {
		it->defer = world_chance(w, 25);
		it->dead = world_chance(w, 15);
		it->time = world_chance(w, 50) ? LEDGER_BY_POLICY : world_some_time(w) - SLU_MS;
	}
	if (c->op.verb != OP_EXTEND && world_chance(w, 40)) {
		world_text(c->texts[i], c->op.verb == OP_ACK ? 'r' : 'e', it->id);
		it->text = slice_of(c->texts[i]);
	}
}

static bool
make_settle(struct sim_world *w, struct sim_call *c, unsigned queue)
{
	static const enum op_verb verbs[] = { OP_ACK, OP_ACK, OP_ACK, OP_NACK, OP_NACK,
					      OP_EXTEND };
	const unsigned n = 1 + (unsigned)world_dice(w, WORLD_EACH);

	world_start(w, c, verbs[world_dice(w, COUNT(verbs))], queue);
	for (unsigned i = 0; i < n && w->n_leases; i++)
		if (make_item(w, c, c->op.n_items))
			finish_item(w, c, c->op.n_items++);
	if (c->op.n_items && c->op.verb == OP_ACK && !w->conf.moves && world_chance(w, 20) &&
	    w->model.n + WORLD_CALLS * WORLD_EACH < MODEL_MSGS)
		world_make_finish(w, c);
	return c->op.n_items > 0;
}

/* ---- Operators ---- */

/* One that is there, or was, or never. */
static uint64_t
some_id(struct sim_world *w)
{
	const struct sim_model *m = &w->model;

	if (m->n && world_chance(w, 70))
		return m->msgs[world_dice(w, m->n)].id;
	if (m->n_gone && world_chance(w, 80))
		return m->gone[world_dice(w, m->n_gone)];
	return 1 + world_dice(w, 1000);
}

/* Mostly of its own queue. */
static unsigned
queue_of(struct sim_world *w, uint64_t id, unsigned queue)
{
	const struct sim_msg *x = model_find(&w->model, id);

	return x && world_chance(w, 95) ? x->queue : queue;
}

static bool
make_manage(struct sim_world *w, struct sim_call *c, unsigned queue)
{
	const uint64_t id = some_id(w);

	world_start(w, c, world_chance(w, 60) ? OP_REDRIVE : OP_DELETE, queue_of(w, id, queue));
	c->items[0] = (struct op_item){ .id = id };
	c->op.n_items = 1;
	return true;
}

static bool
make_policy(struct sim_world *w, struct sim_call *c, unsigned queue)
{
	struct policy *p = &c->op.policy;

	world_start(w, c, OP_POLICY_SET, queue);
	*p = policy_default;
	p->lease = world_some_time(w);
	p->max_attempts = 1 + (uint32_t)world_dice(w, 5);
	p->retry.jitter = world_chance(w, 50) ? SLU_JITTER_NONE : SLU_JITTER_FULL;
	p->retry.base = world_some_time(w);
	p->retry.max = SLU_HOUR;
	p->ttl = world_chance(w, 10) ? SLU_MIN + world_some_time(w) : 0;
	p->max_depth = world_chance(w, 20) ? 10 + (uint32_t)world_dice(w, 50) : 0;
	p->window = world_chance(w, 50) ? (slu_time)world_dice(w, 200) * SLU_MIN : p->window;
	p->dlq_retention = world_chance(w, 15) ? world_some_time(w) : 0;
	p->dlq_max = world_chance(w, 15) ? 1 + (uint32_t)world_dice(w, 8) : 0;
	p->require_lease = world_chance(w, 20);
	p->paused = world_chance(w, 15);
	return true;
}

static bool
make_purge(struct sim_world *w, struct sim_call *c, unsigned queue)
{
	world_start(w, c, OP_PURGE, queue);
	return world_chance(w, 30);
}

static bool
make_pause(struct sim_world *w, struct sim_call *c, unsigned queue)
{
	world_start(w, c, OP_PAUSE, queue);
	c->op.policy.paused = world_chance(w, 30);
	return true;
}

/* ---- Looking ---- */

static bool
make_look(struct sim_world *w, struct sim_call *c, unsigned queue)
{
	static const enum op_verb verbs[] = { OP_GET, OP_PEEK, OP_STATS, OP_RESULT,
					      OP_RESULT, OP_POLICY_GET };
	const enum op_verb verb = verbs[world_dice(w, COUNT(verbs))];
	uint64_t id = some_id(w);

	if (verb == OP_RESULT && w->model.n_results && world_chance(w, 50))
		id = w->model.results[world_dice(w, w->model.n_results)].id;
	world_start(w, c, verb, verb == OP_GET ? queue_of(w, id, queue) : queue);
	c->op.id = id;
	if (verb == OP_PEEK || verb == OP_RESULT)
		c->op.wait = world_chance(w, 50) ? world_some_time(w) : 0;
	return true;
}

/* ---- Posting ---- */

typedef bool make_fn(struct sim_world *w, struct sim_call *c, unsigned queue);

static make_fn *
choose(struct sim_world *w)
{
	static make_fn *const rare[] = { make_manage, make_manage, make_policy, make_purge,
					 make_pause, make_look, make_look, make_look };

	if (w->conf.forgets && world_chance(w, 5))
		return world_make_forget;
	if (w->locks && world_chance(w, 45))
		return world_make_lock;
	if (world_chance(w, w->producers))
		return make_enqueue;
	if (world_chance(w, 12))
		return rare[world_dice(w, COUNT(rare))];
	return w->n_leases && world_chance(w, 50) ? make_settle : make_claim;
}

void
world_send(struct sim_world *w, struct sim_call *c)
{
	const bool adds = c->op.verb == OP_ENQUEUE || c->op.verb == OP_INTAKE || c->op.verb == OP_CLAIM ||
			  c->op.verb == OP_ACQUIRE;
	int rc;

	c->posted = world_now(w, c->queue);
	c->ends = clock_boot(&w->clock.clock) + c->op.wait;
	c->rested = c->starved = 0;
	world_note(w, op_verb_name(c->op.verb), c->serial, c->queue,
		   c->op.n_items ? c->items[0].id : c->op.n_puts);
	rc = broker_post(w->broker, &c->op);
	if (rc == SLU_ECLOSED && adds && w->draining)
		return;
	if (rc == SLU_ECONFLICT && c->op.verb == OP_FORGET && w->conf.moves)
		return;
	if (rc)
		world_fail(w, "%s was not taken: %d", op_verb_name(c->op.verb), rc);
	c->state = CALL_POSTED;
	if (w->judge->posts)
		w->judge->posts(w, c);
	w->sum.ops++;
	w->want.ops++;
}

void
world_post(struct sim_world *w)
{
	const unsigned queue = (unsigned)world_dice(w, w->n_queues);
	struct sim_call *c = world_free_call(w);

	if (c && choose(w)(w, c, queue))
		world_send(w, c);
}

void
world_hang_up(struct sim_world *w)
{
	struct sim_call *c = &w->calls[world_dice(w, WORLD_CALLS)];

	if (c->state != CALL_POSTED || c->canceled)
		return;
	world_note(w, "hang up", c->serial, c->queue, 0);
	c->canceled = true;
	broker_cancel(w->broker, &c->op);
}

/* The client reads what it was granted, or is found to be gone: some of it, or all,
 * goes back. */
void
world_read_on(struct sim_world *w, struct sim_call *c)
{
	const bool lock = c->op.verb == OP_ACQUIRE;
	const uint32_t from = (uint32_t)world_dice(w, c->op.n_rows + 1);

	if (!world_chance(w, 40) || (!lock && from == c->op.n_rows)) {
		if (lock)
			world_keep_lock(w, c);
		op_unpin(&c->op);
		c->state = CALL_FREE;
		return;
	}
	world_note(w, "return", c->serial, from, c->op.n_rows);
	for (uint32_t i = 0; i < from; i++)
		engine_unpin(c->op.engine, &c->op.rows[i].record);
	c->returning = true;
	c->op.claim.spare = !lock && world_chance(w, 40); /* a stream that ends has had the first */
	c->posted = world_now(w, c->queue);
	c->ends = clock_boot(&w->clock.clock);
	c->rested = c->starved = 0;
	if (broker_return(w->broker, &c->op, from))
		world_fail(w, "a return was not taken");
	c->state = CALL_POSTED;
	w->want.ops++;
}
