#include "core/ledger_check.h"

#include "core/ledger_in.h"

enum {
	COUNTED_KEYS = 1000
};

/* Digest: a hash of each thing, added up, so that their order does not count. */

static const struct hash_key digest_key = { 0x736c75696365u, 0x6c6564676572u };

struct digest_msg {
	uint64_t topic, id, number, token, key, where, error, idem, flags;
	int64_t prio, due, expires, keep, until, claimed;
	uint64_t state, reason, attempts, failures, max_attempts;
};

static uint64_t
digest_message(const struct ledger *l, uint32_t h)
{
	struct ledger_view v;
	struct change c;

	ledger_get(l, h, &v);
	ledger_describe(l, h, 0, &c);

	const struct digest_msg d = {
		.topic = ledger_topic(l, v.queue)->hash,
		.id = v.id,
		.number = v.number,
		.token = v.token,
		.key = v.key,
		.where = v.where,
		.error = v.error,
		.idem = c.idem.hash + c.idem.check,
		.flags = v.flags,
		.prio = v.prio,
		.due = v.due,
		.expires = v.expires,
		.keep = v.keep_result,
		.until = v.until,
		.claimed = v.claimed,
		.state = v.state,
		.reason = v.reason,
		.attempts = v.attempts,
		.failures = v.failures,
		.max_attempts = c.max_attempts,
	};

	return hash_keyed(&digest_key, &d, sizeof d);
}

static uint64_t
digest_messages(const struct ledger *l)
{
	uint64_t sum = 0;

	for (uint32_t h = 0; h < l->msgs.fresh; h++)
		if (ledger_scan_msg(l, h))
			sum += digest_message(l, h);
	return sum;
}

static uint64_t
digest_policies(const struct ledger *l)
{
	uint64_t sum = 0;

	for (uint32_t h = ledger_queue_next(l, SLAB_NONE); h != SLAB_NONE;
	     h = ledger_queue_next(l, h)) {
		const struct topic *t = ledger_topic(l, h);
		const struct policy *p = &t->policy;
		const int64_t d[] = {
			(int64_t)t->hash, p->lease, p->max_attempts, p->retry.kind,
			p->retry.jitter, p->retry.base, p->retry.max, p->ttl,
			p->max_depth, p->warn_depth, p->window, p->dlq_retention,
			p->dlq_max, p->require_lease, p->paused, p->max_rate, p->burst, p->strict
		};

		if (t->has_policy)
			sum += hash_keyed(&digest_key, d, sizeof d);
	}
	return sum;
}

static uint64_t
digest_text(const char *text)
{
	return text ? hash_keyed(&digest_key, text, strlen(text)) : 0;
}

static uint64_t
digest_spellings(const struct ledger *l)
{
	uint64_t sum = 0;

	for (uint32_t h = ledger_queue_next(l, SLAB_NONE); h != SLAB_NONE;
	     h = ledger_queue_next(l, h)) {
		const struct topic *t = ledger_topic(l, h);
		const struct space *s = slab_at(&l->spaces, t->space);

		sum += digest_text(t->shown) + digest_text(s->shown);
	}
	return sum;
}

static uint64_t
digest_kept(const struct ledger *l, slu_time now)
{
	uint64_t sum = 0;

	for (uint32_t h = 0; h < l->idem.entries.fresh; h++) {
		const struct idem_entry *e = idem_entry(&l->idem, h);
		const slu_time until = e ? idem_until(&l->idem, h) : 0;

		if (e && (until == 0 || until > now)) /* what is over may have been swept */
			sum += hash_keyed(&digest_key, e, offsetof(struct idem_entry, queue));
	}
	for (uint32_t i = 0; i < l->results.by_until.n; i++) {
		const struct heap_node *n = &l->results.by_until.nodes[i];
		const struct result *r = slab_at(&l->results.slab, n->handle);
		const uint64_t d[] = { r->id, r->where, n->b,
				       ledger_topic(l, r->queue)->hash };

		sum += hash_keyed(&digest_key, d, sizeof d);
	}
	return sum;
}

/* What is set aside, in its order. */
static uint64_t
digest_batch(const struct batch *b)
{
	uint64_t sum = b ? b->number : 0;

	for (uint32_t i = 0; b && i < b->n; i++) {
		const uint64_t d[] = { sum, b->items[i].id, b->items[i].hash, b->what };

		sum = hash_keyed(&digest_key, d, sizeof d);
	}
	return sum;
}

static uint64_t
digest_moves(const struct ledger *l)
{
	uint64_t sum = 0;

	for (uint32_t h = ledger_queue_next(l, SLAB_NONE); h != SLAB_NONE;
	     h = ledger_queue_next(l, h)) {
		const struct topic *t = ledger_topic(l, h);
		const struct moving *v = t->moving;
		const uint64_t d[] = { t->hash, v ? v->epoch : 0, v ? digest_text(v->lives) : 0,
				       digest_batch(ledger_batch_of(t)) };

		if (v && (v->epoch || v->batch))
			sum += hash_keyed(&digest_key, d, sizeof d);
		for (uint32_t i = 0; v && i < v->n_given; i++)
			sum += t->hash ^ digest_text(v->given[i].peer) ^ v->given[i].batch;
	}
	return sum;
}

uint64_t
ledger_digest_at(const struct ledger *l, slu_time now)
{
	const uint64_t d[] = { digest_messages(l), digest_policies(l), digest_kept(l, now),
			       digest_spellings(l), digest_moves(l), l->counter };

	return hash_keyed(&digest_key, d, sizeof d);
}

uint64_t
ledger_digest(const struct ledger *l)
{
	return ledger_digest_at(l, l->now);
}

/* Scan */

static bool
is_at(const struct heap *heap, uint32_t pos, uint32_t h)
{
	return pos < heap->n && heap->nodes[pos].handle == h;
}

static const char *
check_place(const struct ledger *l, const struct topic *t, uint32_t h)
{
	const struct msg *m = ledger_msg(l, h);
	const bool out = m->q.place == QUEUE_OUT;
	const struct batch *b = ledger_batch_of(t);

	if (m->flags & MSG_TAKEN)
		return out && b && m->q.pos < b->n && b->items[m->q.pos].msg == h
			       ? NULL
			       : "a message that is set aside is in no batch";
	switch (msg_state(m)) {
	case MSG_READY:
		return m->q.place == QUEUE_READY && is_at(&t->queue.ready, m->q.pos, h)
			       ? NULL
			       : "a ready message is not in the ready heap";
	case MSG_DELAYED:
		return m->q.place == QUEUE_TIMED && is_at(&t->queue.timed, m->q.pos, h)
			       ? NULL
			       : "a delayed message is not in the timed heap";
	case MSG_LEASED:
		return out && is_at(&l->deadlines, m->q.pos, h)
			       ? NULL
			       : "a leased message has no deadline";
	default:
		return out ? NULL : "a held, dead or damaged message is in a heap";
	}
}

static const char *
check_ttl(const struct ledger *l, uint32_t h)
{
	const struct msg *m = ledger_msg(l, h);

	if (m->q.own32 == HEAP_OUT)
		return NULL;
	if (msg_state(m) == MSG_LEASED || msg_state(m) >= MSG_DEAD || (m->flags & MSG_TAKEN))
		return "a ttl counts for a message that is leased, dead, damaged or set aside";
	return is_at(&l->ttls, m->q.own32, h) ? NULL : "a ttl is not in its heap";
}

static const char *
check_chain(const struct ledger *l, const struct chain *c, enum msg_state state,
	    uint32_t *n)
{
	uint32_t last = SLAB_NONE;

	for (uint32_t h = c->first; h != SLAB_NONE; h = chain_next(&l->msgs, h)) {
		const struct msg *m = ledger_msg(l, h);

		if (msg_state(m) != state || m->link != last)
			return "a chain is broken";
		if (last != SLAB_NONE && !msg_before(ledger_msg(l, last), m))
			return "a chain is out of order";
		last = h;
		++*n;
	}
	return last == c->last ? NULL : "a chain does not end with its last";
}

static const char *
check_head(const struct ledger *l, const struct key *k)
{
	const struct msg *head;

	if (k->head == SLAB_NONE)
		return k->line.first == SLAB_NONE ? NULL : "a line without a head";
	head = ledger_msg(l, k->head);
	if (msg_state(head) != MSG_READY && msg_state(head) != MSG_DELAYED &&
	    msg_state(head) != MSG_LEASED)
		return "a head that is not in the queue";
	if (!(head->flags & MSG_HOLDS) && k->line.first != SLAB_NONE &&
	    !msg_before(head, ledger_msg(l, k->line.first)))
		return "a head that is not first";
	return NULL;
}

/* How many messages of that state are set aside. */
static uint32_t
taken_in(const struct ledger *l, const struct topic *t, enum msg_state state)
{
	const struct batch *b = ledger_batch_of(t);
	uint32_t n = 0;

	for (uint32_t i = 0; b && b->what == BATCH_MESSAGES && i < b->n; i++)
		n += msg_state(ledger_msg(l, b->items[i].msg)) == state;
	return n;
}

/* What a key counts of its messages is what they are; unless there are too many to look at
 * all messages for each. */
static const char *
check_counts(const struct ledger *l, const struct key *k, uint32_t key)
{
	uint32_t refs = 0, idle = 0, taken = 0;

	if (l->keys.used > COUNTED_KEYS)
		return NULL;
	for (uint32_t h = 0; h < l->msgs.fresh; h++) {
		const struct msg *m = ledger_scan_msg(l, h);
		const bool dead = m && msg_state(m) >= MSG_DEAD;

		if (!m || !(m->flags & MSG_KEYED) || m->home != key)
			continue;
		refs++;
		idle += dead;
		taken += !dead && (m->flags & MSG_TAKEN);
	}
	if (refs != k->refs || idle != k->idle || taken != k->taken)
		return "a key counts what it does not have";
	return taken && taken != refs - idle ? "a key is set aside by halves" : NULL;
}

static const char *
check_keys(const struct ledger *l, const struct topic *t)
{
	uint32_t held = 0;
	const char *wrong = NULL;

	for (uint32_t h = ledger_key_next(l, t, SLAB_NONE); !wrong && h != SLAB_NONE;
	     h = ledger_key_next(l, t, h)) {
		const struct key *k = ledger_key(l, h);

		wrong = check_chain(l, &k->line, MSG_HELD, &held);
		if (!wrong && !t->purging)
			wrong = check_head(l, k);
		if (!wrong)
			wrong = check_counts(l, k, h);
	}
	if (!wrong && !t->purging && held + taken_in(l, t, MSG_HELD) != t->count[MSG_HELD])
		wrong = "held messages that are in no line";
	return wrong;
}

static const char *
check_leased(const struct ledger *l, const struct topic *t)
{
	uint32_t last = SLAB_NONE, n = 0;

	for (uint32_t h = t->leased; h != SLAB_NONE; h = ledger_lease_next(l, h)) {
		const struct msg *m = ledger_msg(l, h);

		if (msg_state(m) != MSG_LEASED || ledger_lease(l, m)->prev != last)
			return "a list of leased messages is broken";
		last = h;
		n++;
	}
	return n == t->count[MSG_LEASED] ? NULL : "leased messages that are not listed";
}

static uint32_t
remembered_in(const struct ledger *l, const struct topic *t)
{
	uint32_t n = 0;

	for (uint32_t h = 0; h < l->idem.entries.fresh; h++) {
		const struct idem_entry *e = idem_entry(&l->idem, h);

		n += e && e->queue == t->handle && e->until != IDEM_LIVE;
	}
	return n;
}

static const char *
check_topic(const struct ledger *l, const struct topic *t,
	    const uint32_t count[static MSG_STATES])
{
	const uint32_t waiting = count[MSG_READY] + count[MSG_DELAYED];
	const uint32_t in_heaps = waiting - taken_in(l, t, MSG_READY) - taken_in(l, t, MSG_DELAYED);
	uint32_t dead = 0, damaged = 0;
	const char *wrong = check_chain(l, &t->dead, MSG_DEAD, &dead);

	if (!wrong)
		wrong = check_chain(l, &t->damaged, MSG_DAMAGED, &damaged);
	if (!wrong)
		wrong = check_leased(l, t);
	if (wrong)
		return wrong;
	for (int s = 0; s < MSG_STATES; s++)
		if (count[s] != t->count[s])
			return "a counter is not what is there";
	if (remembered_in(l, t) != t->remembered)
		return "remembered keys are counted wrong";
	if (ledger_results_of(l, t->handle, NULL, UINT32_MAX) != t->results)
		return "results are counted wrong";
	if (dead + taken_in(l, t, MSG_DEAD) != t->count[MSG_DEAD])
		return "dead letters that are not listed";
	if (damaged != t->count[MSG_DAMAGED])
		return "damaged messages that are not listed";
	if (in_heaps != t->queue.ready.n + t->queue.timed.n)
		return "heaps hold what is not there";
	if (t->queue.held != waiting + count[MSG_LEASED] + count[MSG_HELD] +
				     count[MSG_DEAD] + count[MSG_DAMAGED])
		return "room is kept for what is not there";
	return check_keys(l, t);
}

/* One pass over all messages for each topic: slow and plain. */
static const char *
check_messages(const struct ledger *l, const struct topic *t)
{
	uint32_t count[MSG_STATES] = { 0 };
	const char *wrong = NULL;

	for (uint32_t h = 0; !wrong && h < l->msgs.fresh; h++) {
		const struct msg *m = ledger_scan_msg(l, h);

		if (!m || ledger_topic_of(l, m) != t ||
		    ledger_is_purged(t, m, h))
			continue;
		count[msg_state(m)]++;
		wrong = check_place(l, t, h);
		if (!wrong)
			wrong = check_ttl(l, h);
	}
	return wrong ? wrong : check_topic(l, t, count);
}

/* A namespace counts its messages until they are freed, also those of a purge. */
static const char *
check_space(const struct ledger *l, uint32_t space)
{
	const struct space *s = slab_at(&l->spaces, space);
	uint64_t messages = 0, bytes = 0;
	uint32_t queues = 0;

	for (uint32_t h = SLAB_NONE; (h = ledger_queue_next(l, h)) != SLAB_NONE;)
		queues += ledger_topic(l, h)->space == space;
	for (uint32_t h = 0; h < l->msgs.fresh; h++) {
		const struct msg *m = ledger_scan_msg(l, h);

		if (!m || ledger_topic_of(l, m)->space != space)
			continue;
		messages++;
		bytes += ledger_record_size(l, m->where);
	}
	return messages == s->messages && bytes == s->bytes && queues == s->queues ? NULL : "a namespace counts what it does not have";
}

static const char *
check_memory(const struct ledger *l)
{
	uint64_t bytes = 0;

	for (uint32_t h = SLAB_NONE; (h = ledger_queue_next(l, h)) != SLAB_NONE;) {
		const struct topic *t = ledger_topic(l, h);

		bytes += queue_bytes(&t->queue) + queue_bytes(&t->trash) + queue_bytes(&t->spare);
	}
	return bytes == l->topic_bytes ? NULL : "heaps of queues are not counted as they are";
}

const char *
ledger_scan_check(const struct ledger *l)
{
	const char *wrong = check_memory(l);

	for (uint32_t h = ledger_queue_next(l, SLAB_NONE); !wrong && h != SLAB_NONE;
	     h = ledger_queue_next(l, h))
		wrong = check_messages(l, ledger_topic(l, h));
	for (uint32_t h = 0; !wrong && h < l->spaces.used; h++)
		wrong = check_space(l, h);
	if (!wrong && map_count(&l->ids) != l->msgs.used)
		wrong = "messages that no id leads to";
	if (!wrong && l->deadlines.n != l->leases.used)
		wrong = "leases without a message";
	return wrong;
}
