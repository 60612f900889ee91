/*
 * move.c - marks, batches that are set aside and batches that have arrived: MOVE-1 to MOVE-12 of
 * engine/move.h, as changes.
 */
#include "core/ledger/ledger_private.h"

#include "base/mem.h"

#include <assert.h>

bool
ledger_has_moved(const struct ledger *l)
{
	return l->marked > 0;
}

bool
ledger_is_elsewhere(const struct ledger *l, uint32_t queue, uint64_t epoch)
{
	const struct queue_moves *const v = ledger_queue(l, queue)->moves;

	return v && (v->lives[0] || (epoch && epoch < v->epoch));
}

void
ledger_moving(const struct ledger *l, uint32_t queue, struct ledger_moving *out)
{
	const struct queue_moves *v = ledger_queue(l, queue)->moves;

	*out = (struct ledger_moving){ .lives = "", .receiver = "" };
	if (!v)
		return;
	out->epoch = v->epoch;
	out->lives = v->lives;
	out->mark = v->where;
	if (!v->batch)
		return;
	out->batch = v->batch->number;
	out->receiver = v->batch->receiver;
	out->what = v->batch->what;
	out->n = v->batch->n;
	out->where = v->batch->where;
}

/* ---- Memory ---- */

static int
reserve_batch(struct queue_moves *v, uint32_t n)
{
	if (v->next && v->next->room >= n) /* decided, and now it is applied */
		return 0;
	mem_free(v->next);
	v->next = mem_zalloc(sizeof *v->next + n * sizeof v->next->items[0]);
	if (!v->next)
		return SLU_ENOMEM;
	v->next->room = n;
	return 0;
}

int
ledger_moving_reserve(struct ledger *l, const struct change *c)
{
	struct ledger_queue *q = ledger_queue(l, c->queue);

	if (!q->moves)
		q->moves = mem_zalloc(sizeof *q->moves);
	if (!q->moves)
		return SLU_ENOMEM;
	if (c->kind == CHANGE_TAKE)
		return reserve_batch(q->moves, c->move->n);
	if (c->kind == CHANGE_MARK)
		return 0;
	return mem_room(&q->moves->given, &q->moves->max_given, q->moves->n_given + 1, sizeof *q->moves->given)
		       ? 0
		       : SLU_ENOMEM;
}

void
ledger_moving_release(struct ledger_queue *q)
{
	if (!q->moves)
		return;
	mem_free(q->moves->batch);
	mem_free(q->moves->next);
	mem_free(q->moves->given);
	mem_free(q->moves);
}

bool
ledger_moving_is_sound(const struct ledger *l, const struct change *c)
{
	const struct taken_batch *b = ledger_batch_of(ledger_queue(l, c->queue));

	if (c->kind == CHANGE_MARK)
		return c->move->epoch != 0;
	if (c->kind == CHANGE_TAKE)
		return c->move->batch && (!b || b->number == c->move->batch);
	return c->move->batch != 0;
}

/* ---- Marks ---- */

static struct change
begin(const struct ledger *l, enum change_kind kind, uint32_t queue,
      const struct change_move *say, slu_time now)
{
	struct change c = ledger_begin(l, kind, now);

	c.queue = queue;
	c.move = say;
	return c;
}

int
ledger_mark(struct ledger *l, uint32_t queue, const struct change_move *say, bool written,
	    slu_time now, struct change *out)
{
	const struct queue_moves *v = ledger_queue(l, queue)->moves;
	const struct change c = begin(l, CHANGE_MARK, queue, say, now);
	const uint64_t epoch = v ? v->epoch : 0;

	*out = ledger_begin(l, CHANGE_NONE, now);
	if (say->epoch <= epoch || (!epoch && !say->shard[0] && !written))
		return 0;
	return ledger_promise(l, &c, out);
}

void
ledger_put_mark(struct ledger *l, const struct change *c)
{
	struct queue_moves *v = ledger_queue(l, c->queue)->moves;
	const uint64_t old = v->where;
	const size_t n = strlen(c->move->shard);

	assert(n < sizeof v->lives);
	if (c->move->epoch < v->epoch) { /* replay: a newer mark was relocated before it */
		ledger_drop(l, c->where);
		return;
	}
	l->marked += (n > 0) - (uint32_t)(v->lives[0] != 0);
	memcpy(v->lives, c->move->shard, n + 1);
	v->epoch = c->move->epoch;
	v->where = c->where;
	if (old != c->where)
		ledger_drop(l, old);
}

void
ledger_relocate_mark(struct ledger *l, uint32_t queue, uint64_t where)
{
	struct queue_moves *v = ledger_queue(l, queue)->moves;

	ledger_drop(l, v->where);
	v->where = where;
}

/* ---- Messages that were set aside ---- */

/* Takes a message out of its batch, as if it had just left its state. */
static enum msg_state
loosen(struct ledger *l, struct ledger_queue *q, const struct taken_item *item)
{
	struct msg *m = ledger_msg(l, item->msg);
	const enum msg_state from = msg_state(m);

	m->flags &= (uint8_t)~MSG_TAKEN;
	m->q.pos = SLAB_NONE;
	m->q.own8 = MSG_NONE;
	l->with_ttl -= item->expires != SLU_NEVER;
	q->count[from]--;
	l->count[from]--;
	if ((m->flags & MSG_KEYED) && from == MSG_DEAD)
		ledger_key_of(l, m)->idle--;
	else if (m->flags & MSG_KEYED)
		ledger_key_of(l, m)->taken--;
	ledger_weigh(l, q);
	return from;
}

static void
message_back(struct ledger *l, struct ledger_queue *q, const struct taken_item *item, slu_time now)
{
	const enum msg_state from = loosen(l, q, item);
	const struct msg *m = ledger_msg(l, item->msg);

	ledger_ttl_start(l, item->msg, item->expires);
	if ((m->flags & MSG_KEYED) && (m->flags & MSG_HOLDS))
		ledger_lead(l, q, item->msg);
	if (from == MSG_DEAD)
		ledger_enter(l, q, item->msg, MSG_DEAD);
	else
		ledger_settle(l, q, item->msg, now);
}

/* ---- A batch is set aside ---- */

int
ledger_take(struct ledger *l, uint32_t queue, struct change_move *say, slu_time now,
	    struct change *out)
{
	const struct queue_moves *v = ledger_queue(l, queue)->moves;
	struct change c = begin(l, CHANGE_TAKE, queue, say, now);

	assert(!ledger_batch_of(ledger_queue(l, queue)));
	say->shard = v ? v->lives : "";
	say->batch = c.number = l->counter + 1;
	return ledger_promise(l, &c, out);
}

/* Removes a message from its heap, sequence or chain; it keeps its state, and counts. */
static void
unlink_message(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	struct msg *m = ledger_msg(l, h);

	if (msg_state(m) == MSG_HELD)
		ledger_line_remove(l, q, h);
	else if (msg_state(m) == MSG_DEAD)
		chain_remove(&q->dead, &l->msgs, h);
	else
		ledger_unqueue(l, q, h);
	if (m->q.own32 != HEAP_OUT)
		heap_remove(&l->ttls, m->q.own32);
	if (m->more != SLAB_NONE)
		ledger_member_leave(l, q, m);
	if (!(m->flags & MSG_KEYED) || msg_state(m) == MSG_DEAD)
		return;
	ledger_key_of(l, m)->taken++;
	if (ledger_key_of(l, m)->head == h)
		ledger_key_of(l, m)->head = SLAB_NONE; /* the others go, too */
}

/* In pos, while the list is made. */
#define NEW_BATCH (1u << 31)

static bool
is_listed(const struct msg *m)
{
	return (m->flags & MSG_TAKEN) && (m->q.pos & NEW_BATCH);
}

/* A message that is already set aside (its record was relocated) stays so. */
static void
aside(struct ledger *l, struct ledger_queue *q, struct taken_batch *b, uint64_t id)
{
	const uint32_t h = ledger_find_any(l, id);
	struct msg *m = h == SLAB_NONE ? NULL : ledger_msg(l, h);
	struct taken_item *item = &b->items[b->n];

	if (!m || ledger_queue_of(l, m) != q || msg_state(m) == MSG_LEASED ||
	    msg_state(m) == MSG_DAMAGED || is_listed(m))
		return;
	*item = (struct taken_item){ .id = id, .msg = h, .expires = ledger_expires(l, m) };
	if (!(m->flags & MSG_TAKEN))
		unlink_message(l, q, h);
	m->flags |= MSG_TAKEN;
	m->q.pos = b->n++ | NEW_BATCH;
}

/* Items of the list before that this one does not have: no log writes that. */
static void
bring_back(struct ledger *l, struct ledger_queue *q, const struct taken_batch *old, slu_time now)
{
	for (uint32_t i = 0; old && old->what == BATCH_MESSAGES && i < old->n; i++)
		if (!is_listed(ledger_msg(l, old->items[i].msg)))
			message_back(l, q, &old->items[i], now);
}

static void
list_others(struct taken_batch *b, const struct change_move *say)
{
	for (uint32_t i = 0; i < say->n; i++) {
		b->items[i] = (struct taken_item){ .id = say->ids ? say->ids[i] : 0, .msg = SLAB_NONE };
		if (say->marks) {
			b->items[i].hash = say->marks[i].hash;
			b->items[i].check = say->marks[i].check;
		}
	}
	b->n = say->n;
}

void
ledger_put_aside(struct ledger *l, const struct change *c)
{
	struct ledger_queue *q = ledger_queue(l, c->queue);
	struct taken_batch *b = q->moves->next;
	struct taken_batch *old = q->moves->batch;

	q->moves->next = NULL;
	assert(strlen(c->move->shard) < sizeof b->receiver);
	memcpy(b->receiver, c->move->shard, strlen(c->move->shard) + 1);
	b->number = c->move->batch;
	b->where = c->where;
	b->what = c->move->what;
	if (b->what != BATCH_MESSAGES)
		list_others(b, c->move);
	for (uint32_t i = 0; b->what == BATCH_MESSAGES && i < c->move->n; i++)
		aside(l, q, b, c->move->ids[i]);
	bring_back(l, q, old, c->at);
	for (uint32_t i = 0; b->what == BATCH_MESSAGES && i < b->n; i++)
		ledger_msg(l, b->items[i].msg)->q.pos = i;
	q->moves->batch = b;
	if (old && old->where != b->where)
		ledger_drop(l, old->where);
	mem_free(old);
}

uint64_t
ledger_batch_at(const struct ledger *l, uint32_t queue, uint32_t i, uint32_t *msg)
{
	const struct taken_batch *b = ledger_batch_of(ledger_queue(l, queue));

	assert(b && i < b->n);
	*msg = b->items[i].msg;
	return b->items[i].id;
}

void
ledger_relocate_batch(struct ledger *l, uint32_t queue, uint64_t where)
{
	struct taken_batch *b = ledger_batch_of(ledger_queue(l, queue));

	ledger_drop(l, b->where);
	b->where = where;
}

/* ---- A batch returns, or goes ---- */

int
ledger_end_batch(struct ledger *l, enum change_kind kind, uint32_t queue,
		 const struct change_move *say, slu_time now, struct change *out)
{
	const struct taken_batch *b = ledger_batch_of(ledger_queue(l, queue));

	*out = ledger_begin(l, CHANGE_NONE, now);
	if (b && b->number == say->batch)
		*out = begin(l, kind, queue, say, now);
	return 0;
}

static void
message_out(struct ledger *l, struct ledger_queue *q, const struct taken_item *item)
{
	(void)loosen(l, q, item); /* its state does not matter */
	queue_drop(&q->heaps, item->msg);
	if (queue_trim(&q->heaps))
		ledger_count_heaps(l, q);
	ledger_forget(l, item->msg, 0);
}

static void
key_out(struct ledger *l, const struct taken_item *item, slu_time now)
{
	const struct idem_mark mark = { item->hash, item->check };
	const uint32_t known = idem_find(&l->idem, mark, now);

	if (known != SLAB_NONE && idem_id(&l->idem, known) == item->id &&
	    idem_until(&l->idem, known))
		idem_drop(&l->idem, known);
}

/* Detaches the batch with that number from its queue and returns it, or NULL. */
static struct taken_batch *
end(struct ledger *l, const struct change *c)
{
	struct ledger_queue *q = ledger_queue(l, c->queue);
	struct taken_batch *b = ledger_batch_of(q);

	if (!b || b->number != c->move->batch)
		return NULL;
	ledger_drop(l, b->where);
	return b;
}

static void
free_batch(struct ledger_queue *q)
{
	mem_free(q->moves->batch);
	q->moves->batch = NULL;
}

void
ledger_put_back(struct ledger *l, const struct change *c)
{
	struct ledger_queue *q = ledger_queue(l, c->queue);
	const struct taken_batch *b = end(l, c);

	for (uint32_t i = 0; b && b->what == BATCH_MESSAGES && i < b->n; i++)
		message_back(l, q, &b->items[i], c->at);
	if (b)
		free_batch(q);
	ledger_wake(l, q, 0);
}

/* Items that cleaning the log has relocated behind the TAKE were not set aside. */
static void
drop_listed(struct ledger *l, const struct ledger_queue *q, const struct change *c)
{
	for (uint32_t i = 0; i < c->move->n; i++) {
		const uint32_t h = ledger_find_any(l, c->move->ids[i]);

		if (h != SLAB_NONE && ledger_queue_of(l, ledger_msg(l, h)) == q &&
		    msg_state(ledger_msg(l, h)) != MSG_LEASED)
			ledger_drop_message(l, h, 0);
	}
}

void
ledger_put_out(struct ledger *l, const struct change *c)
{
	struct ledger_queue *q = ledger_queue(l, c->queue);
	const struct taken_batch *b = end(l, c);

	for (uint32_t i = 0; b && i < b->n; i++) {
		if (b->what == BATCH_MESSAGES)
			message_out(l, q, &b->items[i]);
		else if (b->what == BATCH_KEYS)
			key_out(l, &b->items[i], c->at);
		else if (b->what == BATCH_RESULTS)
			ledger_drop(l, results_remove(&l->results, b->items[i].id));
	}
	if (b)
		free_batch(q);
	if (c->move->what == BATCH_MESSAGES)
		drop_listed(l, q, c);
}

/* ---- A batch arrives ---- */

static struct given_batch *
find_given(const struct ledger *l, uint32_t queue, struct slice peer)
{
	const struct queue_moves *v = ledger_queue(l, queue)->moves;

	for (uint32_t i = 0; v && i < v->n_given; i++)
		if (slice_eq(slice_of(v->given[i].peer), peer))
			return &v->given[i];
	return NULL;
}

enum ledger_batch_is
ledger_batch_is(const struct ledger *l, uint32_t queue, const struct change_move *say)
{
	const struct given_batch *g = find_given(l, queue, slice_of(say->shard));

	if (!g || g->batch < say->batch)
		return LEDGER_BATCH_NEW;
	return g->batch == say->batch && g->refused ? LEDGER_BATCH_REFUSED : LEDGER_BATCH_GIVEN;
}

int
ledger_given(struct ledger *l, uint32_t queue, const struct change_move *say,
	     uint64_t counter, slu_time now, struct change *out)
{
	struct change c = begin(l, CHANGE_GIVEN, queue, say, now);

	c.number = counter; /* MOVE-9 */
	return ledger_promise(l, &c, out);
}

int
ledger_refuse(struct ledger *l, uint32_t queue, const struct change_move *say, slu_time now,
	      struct change *out)
{
	const struct change c = begin(l, CHANGE_REFUSE, queue, say, now);

	*out = ledger_begin(l, CHANGE_NONE, now);
	return ledger_batch_is(l, queue, say) == LEDGER_BATCH_NEW ? ledger_promise(l, &c, out) : 0;
}

void
ledger_put_given(struct ledger *l, const struct change *c)
{
	struct queue_moves *v = ledger_queue(l, c->queue)->moves;
	struct given_batch *g = find_given(l, c->queue, slice_of(c->move->shard));
	const uint64_t old = g ? g->where : 0;
	const size_t n = strlen(c->move->shard);

	assert(n < sizeof g->peer);
	if (!g)
		g = &v->given[v->n_given++];
	memcpy(g->peer, c->move->shard, n + 1);
	g->batch = c->move->batch;
	g->refused = c->kind == CHANGE_REFUSE;
	g->where = c->where;
	if (old != c->where)
		ledger_drop(l, old);
}

uint64_t
ledger_given_where(const struct ledger *l, uint32_t queue, struct slice peer)
{
	const struct given_batch *g = find_given(l, queue, peer);

	return g ? g->where : 0;
}

void
ledger_relocate_given(struct ledger *l, uint32_t queue, struct slice peer, uint64_t where)
{
	struct given_batch *g = find_given(l, queue, peer);

	ledger_drop(l, g->where);
	g->where = where;
}

/* Two delivered messages cannot both be the head of a key. */
static bool
may_lead(const struct ledger *l, const struct change *c)
{
	const uint32_t head = c->key ? ledger_key_head(l, c->queue, c->key) : SLAB_NONE;

	return c->state != MSG_DEAD &&
	       (head == SLAB_NONE || !(ledger_msg(l, head)->flags & MSG_HOLDS));
}

int
ledger_give(struct ledger *l, uint32_t queue, const struct ledger_gift *gift, slu_time now,
	    struct change *out)
{
	const struct ledger_offer *offer = &gift->offer;
	struct change c = ledger_begin(l, CHANGE_RESTORE, now);

	if (ledger_find_any(l, offer->id) != SLAB_NONE)
		return SLU_EEXISTS;
	c.queue = queue;
	c.id = offer->id;
	c.number = l->counter + 1;
	c.prio = offer->prio;
	c.due = gift->due;
	c.expires = gift->expires == SLU_NEVER ? 0 : gift->expires;
	c.max_attempts = offer->max_attempts;
	c.keep = offer->keep_result;
	c.terms = offer->terms;
	c.error = offer->where; /* reserves room for an error text */
	c.state = (uint8_t)gift->state;
	c.reason = (uint8_t)gift->reason;
	c.attempts = gift->attempts;
	c.failures = gift->failures;
	c.share = offer->share;
	c.value = offer->value;
	if (offer->key.n)
		c.key = ledger_key_hash(l, queue, offer->key);
	if (offer->idem.n) {
		c.idem = ledger_idem_mark(l, queue, offer->idem);
		c.digest = ledger_is_strict(l, queue) ? offer->digest : 0;
	}
	c.flags = gift->flags & (may_lead(l, &c) ? MSG_HOLDS | MSG_SPARED | MSG_FREED : MSG_SPARED | MSG_FREED);
	return ledger_promise(l, &c, out);
}

int
ledger_keep_result(struct ledger *l, uint32_t queue, uint64_t id, slu_time until,
		   slu_time now, struct change *out)
{
	struct change c = ledger_begin(l, CHANGE_RESULT, now);
	struct ledger_result there;

	*out = ledger_begin(l, CHANGE_NONE, now);
	if (!id || until <= c.at || results_find(&l->results, id, &there))
		return 0;
	c.queue = queue;
	c.id = id;
	c.keep = until;
	return ledger_promise(l, &c, out);
}

int
ledger_remember_key(struct ledger *l, uint32_t queue, const struct ledger_idem_key *key, slu_time now,
		    struct change *out)
{
	struct change c = ledger_begin(l, CHANGE_REMEMBER, now);

	*out = ledger_begin(l, CHANGE_NONE, now);
	c.queue = queue;
	c.id = key->id;
	c.remember = key->until;
	c.idem = ledger_idem_mark(l, queue, key->text);
	c.digest = ledger_is_strict(l, queue) ? key->digest : 0;
	if (key->until <= c.at || idem_find(&l->idem, c.idem, c.at) != SLAB_NONE)
		return 0;
	return ledger_promise(l, &c, out);
}

/* ---- Looking ---- */

bool
ledger_remembers(const struct ledger *l, uint32_t queue, struct slice key, uint64_t id,
		 slu_time now, struct change *out)
{
	return ledger_describe_idem(l, ledger_idem_mark(l, queue, key), now, out) && out->id == id;
}

uint32_t
ledger_remembered(const struct ledger *l, uint32_t queue)
{
	return ledger_queue(l, queue)->remembered;
}

uint32_t
ledger_results(const struct ledger *l, uint32_t queue)
{
	return ledger_queue(l, queue)->results;
}

uint32_t
ledger_results_of(const struct ledger *l, uint32_t queue, uint64_t *ids, uint32_t max)
{
	const struct heap *all = &l->results.by_until;
	uint32_t n = 0;

	for (uint32_t i = 0; i < all->n && n < max; i++) {
		const struct result *r = slab_at(&l->results.slab, all->nodes[i].handle);

		if (r->queue != queue)
			continue;
		if (ids)
			ids[n] = r->id;
		n++;
	}
	return n;
}

/* Returns whether this shard has messages of the ordering key that are not dead. */
static bool
has_key(const struct ledger *l, uint32_t queue, struct slice key)
{
	const uint32_t h = key.n ? ledger_key_find(l, queue, ledger_key_hash(l, queue, key))
				 : SLAB_NONE;
	const struct order_key *k = h == SLAB_NONE ? NULL : ledger_key(l, h);

	return k && k->refs != k->idle;
}

bool
ledger_offer_is_elsewhere(const struct ledger *l, uint32_t queue, const struct ledger_offer *offer,
			  slu_time now)
{
	const struct queue_moves *const v = ledger_queue(l, queue)->moves;

	if (offer->known)
		return !ledger_idem_id(l, queue, offer->idem, now);
	if (!ledger_is_elsewhere(l, queue, offer->epoch) ||
	    (!v->lives[0] && !offer->key.n && !offer->idem.n))
		return false;
	return !has_key(l, queue, offer->key) && !ledger_idem_id(l, queue, offer->idem, now);
}

uint64_t
ledger_idem_id(const struct ledger *l, uint32_t queue, struct slice key, slu_time now)
{
	const slu_time at = now > l->now ? now : l->now;
	const uint32_t known = key.n ? ledger_key_known(l, ledger_idem_mark(l, queue, key), at)
				     : SLAB_NONE;

	return known == SLAB_NONE ? 0 : idem_id(&l->idem, known);
}

uint32_t
ledger_leased(const struct ledger *l, uint32_t queue, uint32_t *msgs, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t h = ledger_queue(l, queue)->leased; h != SLAB_NONE && n < max;
	     h = ledger_lease_next(l, h))
		msgs[n++] = h;
	return n;
}

uint64_t
ledger_bound_by_lease(const struct ledger *l, uint32_t queue)
{
	uint64_t n = 0;

	for (uint32_t h = ledger_queue(l, queue)->leased; h != SLAB_NONE;
	     h = ledger_lease_next(l, h)) {
		const struct msg *m = ledger_msg(l, h);

		n += m->flags & MSG_KEYED ? ledger_key_of(l, m)->refs - ledger_key_of(l, m)->idle : 1;
	}
	return n;
}
