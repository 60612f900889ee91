/*
 * ledger_moving.c - where a queue lives, what of it is set aside, what has come: V1 to V12
 * of engine/move.h, as changes.
 */
#include "core/ledger_in.h"

#include "base/mem.h"

#include <assert.h>

bool
ledger_has_moved(const struct ledger *l)
{
	return l->marked > 0;
}

void
ledger_moving(const struct ledger *l, uint32_t queue, struct ledger_moving *out)
{
	const struct moving *v = ledger_topic(l, queue)->moving;

	*out = (struct ledger_moving){ .lives = "", .whom = "" };
	if (!v)
		return;
	out->epoch = v->epoch;
	out->lives = v->lives;
	out->mark = v->where;
	if (!v->batch)
		return;
	out->batch = v->batch->number;
	out->whom = v->batch->whom;
	out->what = v->batch->what;
	out->n = v->batch->n;
	out->where = v->batch->where;
}

/* ---- Memory ---- */

static int
reserve_given(struct moving *v)
{
	const uint32_t max = v->max_given + 4;
	struct given *p;

	if (v->n_given < v->max_given)
		return 0;
	p = mem_realloc(v->given, max * sizeof *p);
	if (!p)
		return SLU_ENOMEM;
	v->given = p;
	v->max_given = max;
	return 0;
}

static int
reserve_batch(struct moving *v, uint32_t n)
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
	struct topic *t = ledger_topic(l, c->queue);

	if (!t->moving)
		t->moving = mem_zalloc(sizeof *t->moving);
	if (!t->moving)
		return SLU_ENOMEM;
	if (c->kind == CHANGE_TAKE)
		return reserve_batch(t->moving, c->move->n);
	return c->kind == CHANGE_MARK ? 0 : reserve_given(t->moving);
}

void
ledger_moving_release(struct topic *t)
{
	if (!t->moving)
		return;
	mem_free(t->moving->batch);
	mem_free(t->moving->next);
	mem_free(t->moving->given);
	mem_free(t->moving);
}

bool
ledger_moving_is_sound(const struct ledger *l, const struct change *c)
{
	const struct batch *b = ledger_batch_of(ledger_topic(l, c->queue));

	if (c->kind == CHANGE_MARK)
		return c->move->epoch != 0;
	if (c->kind == CHANGE_TAKE)
		return c->move->batch && (!b || b->number == c->move->batch);
	return c->move->batch != 0;
}

/* ---- Marks ---- */

/* Deciding has asked for memory, so applying has it. */
static int
promise(struct ledger *l, const struct change *c, struct change *out)
{
	const int rc = ledger_reserve(l, c);

	if (!rc)
		*out = *c;
	return rc;
}

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
	const struct moving *v = ledger_topic(l, queue)->moving;
	const struct change c = begin(l, CHANGE_MARK, queue, say, now);
	const uint64_t epoch = v ? v->epoch : 0;

	*out = ledger_begin(l, CHANGE_NONE, now);
	if (say->epoch <= epoch || (!epoch && !say->shard[0] && !written))
		return 0;
	return promise(l, &c, out);
}

void
ledger_put_mark(struct ledger *l, const struct change *c)
{
	struct moving *v = ledger_topic(l, c->queue)->moving;
	const uint64_t old = v->where;
	const size_t n = strlen(c->move->shard);

	assert(n < sizeof v->lives);
	if (c->move->epoch < v->epoch) { /* read back: a newer one was moved ahead */
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
ledger_mark_move(struct ledger *l, uint32_t queue, uint64_t where)
{
	struct moving *v = ledger_topic(l, queue)->moving;

	ledger_drop(l, v->where);
	v->where = where;
}

/* ---- Messages that were set aside ---- */

/* As if it had just left its state. */
static enum msg_state
loosen(struct ledger *l, struct topic *t, const struct batch_item *item)
{
	struct msg *m = ledger_msg(l, item->msg);
	const enum msg_state from = msg_state(m);

	m->flags &= (uint8_t)~MSG_TAKEN;
	m->q.pos = SLAB_NONE;
	m->q.own8 = MSG_NONE;
	l->with_ttl -= item->expires != SLU_NEVER;
	t->count[from]--;
	if ((m->flags & MSG_KEYED) && from == MSG_DEAD)
		ledger_key_of(l, m)->idle--;
	else if (m->flags & MSG_KEYED)
		ledger_key_of(l, m)->taken--;
	ledger_weigh(l, t);
	return from;
}

static void
message_back(struct ledger *l, struct topic *t, const struct batch_item *item, slu_time now)
{
	const enum msg_state from = loosen(l, t, item);
	const struct msg *m = ledger_msg(l, item->msg);

	ledger_ttl_start(l, item->msg, item->expires);
	if ((m->flags & MSG_KEYED) && (m->flags & MSG_HOLDS))
		ledger_lead(l, t, item->msg);
	if (from == MSG_DEAD)
		ledger_enter(l, t, item->msg, MSG_DEAD);
	else
		ledger_settle(l, t, item->msg, now);
}

/* ---- A batch is set aside ---- */

int
ledger_take(struct ledger *l, uint32_t queue, struct change_move *say, slu_time now,
	    struct change *out)
{
	const struct moving *v = ledger_topic(l, queue)->moving;
	struct change c = begin(l, CHANGE_TAKE, queue, say, now);

	assert(!ledger_batch_of(ledger_topic(l, queue)));
	say->shard = v ? v->lives : "";
	say->batch = c.number = l->counter + 1;
	return promise(l, &c, out);
}

/* Out of its heap, line or chain; its state stays, and counts. */
static void
unlink_message(struct ledger *l, struct topic *t, uint32_t h)
{
	struct msg *m = ledger_msg(l, h);

	if (msg_state(m) == MSG_HELD)
		ledger_line_remove(l, t, h);
	else if (msg_state(m) == MSG_DEAD)
		chain_remove(&t->dead, &l->msgs, h);
	else
		queue_take(&t->queue, h);
	if (m->q.own32 != HEAP_OUT)
		heap_remove(&l->ttls, m->q.own32);
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

/* What is set aside already (its record was moved forward) stays so. */
static void
aside(struct ledger *l, struct topic *t, struct batch *b, uint64_t id)
{
	const uint32_t h = ledger_find_any(l, id);
	struct msg *m = h == SLAB_NONE ? NULL : ledger_msg(l, h);
	struct batch_item *item = &b->items[b->n];

	if (!m || ledger_topic_of(l, m) != t || msg_state(m) == MSG_LEASED ||
	    msg_state(m) == MSG_DAMAGED || is_listed(m))
		return;
	*item = (struct batch_item){ .id = id, .msg = h, .expires = ledger_expires(l, m) };
	if (!(m->flags & MSG_TAKEN))
		unlink_message(l, t, h);
	m->flags |= MSG_TAKEN;
	m->q.pos = b->n++ | NEW_BATCH;
}

/* What the list before had and this one has not: nobody writes that. */
static void
bring_back(struct ledger *l, struct topic *t, const struct batch *old, slu_time now)
{
	for (uint32_t i = 0; old && old->what == BATCH_MESSAGES && i < old->n; i++)
		if (!is_listed(ledger_msg(l, old->items[i].msg)))
			message_back(l, t, &old->items[i], now);
}

static void
list_others(struct batch *b, const struct change_move *say)
{
	for (uint32_t i = 0; i < say->n; i++) {
		b->items[i] = (struct batch_item){ .id = say->ids ? say->ids[i] : 0, .msg = SLAB_NONE };
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
	struct topic *t = ledger_topic(l, c->queue);
	struct batch *b = t->moving->next;
	struct batch *old = t->moving->batch;

	t->moving->next = NULL;
	assert(strlen(c->move->shard) < sizeof b->whom);
	strcpy(b->whom, c->move->shard);
	b->number = c->move->batch;
	b->where = c->where;
	b->what = c->move->what;
	if (b->what != BATCH_MESSAGES)
		list_others(b, c->move);
	for (uint32_t i = 0; b->what == BATCH_MESSAGES && i < c->move->n; i++)
		aside(l, t, b, c->move->ids[i]);
	bring_back(l, t, old, c->at);
	for (uint32_t i = 0; b->what == BATCH_MESSAGES && i < b->n; i++)
		ledger_msg(l, b->items[i].msg)->q.pos = i;
	t->moving->batch = b;
	if (old && old->where != b->where)
		ledger_drop(l, old->where);
	mem_free(old);
}

uint64_t
ledger_batch_at(const struct ledger *l, uint32_t queue, uint32_t i, uint32_t *msg)
{
	const struct batch *b = ledger_batch_of(ledger_topic(l, queue));

	assert(b && i < b->n);
	*msg = b->items[i].msg;
	return b->items[i].id;
}

void
ledger_batch_move(struct ledger *l, uint32_t queue, uint64_t where)
{
	struct batch *b = ledger_batch_of(ledger_topic(l, queue));

	ledger_drop(l, b->where);
	b->where = where;
}

/* ---- And goes back, or away ---- */

int
ledger_end_batch(struct ledger *l, enum change_kind kind, uint32_t queue,
		 const struct change_move *say, slu_time now, struct change *out)
{
	const struct batch *b = ledger_batch_of(ledger_topic(l, queue));

	*out = ledger_begin(l, CHANGE_NONE, now);
	if (b && b->number == say->batch)
		*out = begin(l, kind, queue, say, now);
	return 0;
}

static void
message_out(struct ledger *l, struct topic *t, const struct batch_item *item)
{
	(void)loosen(l, t, item); /* whatever it was */
	queue_drop(&t->queue, item->msg);
	if (queue_trim(&t->queue))
		ledger_count_topic(l, t);
	ledger_forget(l, item->msg, 0);
}

static void
key_out(struct ledger *l, const struct batch_item *item, slu_time now)
{
	const struct idem_mark mark = { item->hash, item->check };
	const uint32_t known = idem_find(&l->idem, mark, now);

	if (known != SLAB_NONE && idem_id(&l->idem, known) == item->id &&
	    idem_until(&l->idem, known))
		idem_drop(&l->idem, known);
}

/* The batch of that number, which is there no more; or NULL. */
static struct batch *
end(struct ledger *l, const struct change *c)
{
	struct topic *t = ledger_topic(l, c->queue);
	struct batch *b = ledger_batch_of(t);

	if (!b || b->number != c->move->batch)
		return NULL;
	ledger_drop(l, b->where);
	return b;
}

static void
free_batch(struct topic *t)
{
	mem_free(t->moving->batch);
	t->moving->batch = NULL;
}

void
ledger_put_back(struct ledger *l, const struct change *c)
{
	struct topic *t = ledger_topic(l, c->queue);
	const struct batch *b = end(l, c);

	for (uint32_t i = 0; b && b->what == BATCH_MESSAGES && i < b->n; i++)
		message_back(l, t, &b->items[i], c->at);
	if (b)
		free_batch(t);
	ledger_wake(l, t, 0);
}

/* What a log that was cleaned has behind the TAKE was not set aside. */
static void
drop_listed(struct ledger *l, const struct topic *t, const struct change *c)
{
	for (uint32_t i = 0; i < c->move->n; i++) {
		const uint32_t h = ledger_find_any(l, c->move->ids[i]);

		if (h != SLAB_NONE && ledger_topic_of(l, ledger_msg(l, h)) == t &&
		    msg_state(ledger_msg(l, h)) != MSG_LEASED)
			ledger_drop_message(l, h, 0);
	}
}

void
ledger_put_out(struct ledger *l, const struct change *c)
{
	struct topic *t = ledger_topic(l, c->queue);
	const struct batch *b = end(l, c);

	for (uint32_t i = 0; b && i < b->n; i++) {
		if (b->what == BATCH_MESSAGES)
			message_out(l, t, &b->items[i]);
		else if (b->what == BATCH_KEYS)
			key_out(l, &b->items[i], c->at);
		else if (b->what == BATCH_RESULTS)
			ledger_drop(l, results_remove(&l->results, b->items[i].id));
	}
	if (b)
		free_batch(t);
	if (c->move->what == BATCH_MESSAGES)
		drop_listed(l, t, c);
}

/* ---- What comes ---- */

static struct given *
find_given(const struct ledger *l, uint32_t queue, struct slice peer)
{
	const struct moving *v = ledger_topic(l, queue)->moving;

	for (uint32_t i = 0; v && i < v->n_given; i++)
		if (slice_eq(slice_of(v->given[i].peer), peer))
			return &v->given[i];
	return NULL;
}

enum ledger_batch_is
ledger_batch_is(const struct ledger *l, uint32_t queue, const struct change_move *say)
{
	const struct given *g = find_given(l, queue, slice_of(say->shard));

	if (!g || g->batch < say->batch)
		return LEDGER_BATCH_NEW;
	return g->batch == say->batch && g->refused ? LEDGER_BATCH_REFUSED : LEDGER_BATCH_GIVEN;
}

int
ledger_given(struct ledger *l, uint32_t queue, const struct change_move *say,
	     uint64_t counter, slu_time now, struct change *out)
{
	struct change c = begin(l, CHANGE_GIVEN, queue, say, now);

	c.number = counter; /* V9 */
	return promise(l, &c, out);
}

int
ledger_refuse(struct ledger *l, uint32_t queue, const struct change_move *say, slu_time now,
	      struct change *out)
{
	const struct change c = begin(l, CHANGE_REFUSE, queue, say, now);

	*out = ledger_begin(l, CHANGE_NONE, now);
	return ledger_batch_is(l, queue, say) == LEDGER_BATCH_NEW ? promise(l, &c, out) : 0;
}

void
ledger_put_given(struct ledger *l, const struct change *c)
{
	struct moving *v = ledger_topic(l, c->queue)->moving;
	struct given *g = find_given(l, c->queue, slice_of(c->move->shard));
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
	const struct given *g = find_given(l, queue, peer);

	return g ? g->where : 0;
}

void
ledger_given_move(struct ledger *l, uint32_t queue, struct slice peer, uint64_t where)
{
	struct given *g = find_given(l, queue, peer);

	ledger_drop(l, g->where);
	g->where = where;
}

/* Two that were handed out cannot both lead a key. */
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
	c.error = offer->where; /* room for an error is kept as if there was one */
	c.state = (uint8_t)gift->state;
	c.reason = (uint8_t)gift->reason;
	c.attempts = gift->attempts;
	c.failures = gift->failures;
	if (offer->key.n)
		c.key = ledger_key_hash(l, queue, offer->key);
	if (offer->idem.n) {
		c.idem = ledger_idem_mark(l, queue, offer->idem);
		c.digest = ledger_is_strict(l, queue) ? offer->digest : 0;
	}
	c.flags = gift->flags & (may_lead(l, &c) ? MSG_HOLDS | MSG_SPARED : MSG_SPARED);
	return promise(l, &c, out);
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
	return promise(l, &c, out);
}

int
ledger_remember_key(struct ledger *l, uint32_t queue, struct slice key, uint64_t id,
		    slu_time until, slu_time now, struct change *out)
{
	struct change c = ledger_begin(l, CHANGE_REMEMBER, now);

	*out = ledger_begin(l, CHANGE_NONE, now);
	c.queue = queue;
	c.id = id;
	c.remember = until;
	c.idem = ledger_idem_mark(l, queue, key);
	if (until <= c.at || idem_find(&l->idem, c.idem, c.at) != SLAB_NONE)
		return 0;
	return promise(l, &c, out);
}

/* ---- Looking ---- */

slu_time
ledger_remembers(const struct ledger *l, uint32_t queue, struct slice key, uint64_t id,
		 slu_time now, struct idem_mark *mark)
{
	struct change c;

	*mark = ledger_idem_mark(l, queue, key);
	return ledger_describe_idem(l, *mark, now, &c) && c.id == id ? c.remember : 0;
}

uint32_t
ledger_remembered(const struct ledger *l, uint32_t queue)
{
	return ledger_topic(l, queue)->remembered;
}

uint32_t
ledger_results(const struct ledger *l, uint32_t queue)
{
	return ledger_topic(l, queue)->results;
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

enum ledger_key_is
ledger_key_is(const struct ledger *l, uint32_t queue, struct slice key)
{
	const uint32_t h = key.n ? ledger_key_find(l, queue, ledger_key_hash(l, queue, key))
				 : SLAB_NONE;
	const struct key *k = h == SLAB_NONE ? NULL : ledger_key(l, h);

	if (!k || k->refs == k->idle)
		return LEDGER_KEY_AWAY;
	return k->taken ? LEDGER_KEY_TAKEN : LEDGER_KEY_HERE;
}

uint64_t
ledger_idem_id(const struct ledger *l, uint32_t queue, struct slice key, slu_time now)
{
	const slu_time at = now > l->now ? now : l->now;
	const uint32_t known = key.n ? idem_find(&l->idem, ledger_idem_mark(l, queue, key), at)
				     : SLAB_NONE;

	return known == SLAB_NONE ? 0 : idem_id(&l->idem, known);
}

uint32_t
ledger_leased(const struct ledger *l, uint32_t queue, uint32_t *msgs, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t h = ledger_topic(l, queue)->leased; h != SLAB_NONE && n < max;
	     h = ledger_lease_next(l, h))
		msgs[n++] = h;
	return n;
}

uint64_t
ledger_bound_by_lease(const struct ledger *l, uint32_t queue)
{
	uint64_t n = 0;

	for (uint32_t h = ledger_topic(l, queue)->leased; h != SLAB_NONE;
	     h = ledger_lease_next(l, h)) {
		const struct msg *m = ledger_msg(l, h);

		n += m->flags & MSG_KEYED ? ledger_key_of(l, m)->refs - ledger_key_of(l, m)->idle : 1;
	}
	return n;
}
