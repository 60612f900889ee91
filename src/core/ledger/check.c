#include "core/ledger/check.h"

#include "core/ledger/batches.h"
#include "core/ledger/ledger_private.h"

enum {
	COUNTED_KEYS = 1000
};

static bool
is_in_ready_heap(const struct ledger *l, const struct ledger_queue *q, uint32_t h)
{
	const struct msg *m = ledger_msg(l, h);
	const uint32_t flow = ledger_flow_of(l, m);

	if (flow == SHARES_PLAIN)
		return queue_has_ready(&q->heaps, h);
	return m->q.place == QUEUE_READY && heap_has(shares_flow_heap(q->shares, flow), m->q.pos, h);
}

/* LEDGERVALUE-3, LEDGERKIND-2: the messages that wait behind their values, or behind their kinds. */
static uint32_t
in_strands(const struct values *v)
{
	uint32_t n = 0;

	for (uint32_t h = v ? values_strand_next(v, SLAB_NONE) : SLAB_NONE; h != SLAB_NONE; h = values_strand_next(v, h))
		n += values_heap(v, h)->n;
	return n;
}

static bool
is_behind(const struct ledger *l, const struct values *v, uint32_t strand, uint32_t h)
{
	const struct msg *m = ledger_msg(l, h);

	return strand != SLAB_NONE && values_front(v, strand) != h && m->q.place == QUEUE_OUT &&
	       heap_has(values_heap(v, strand), m->q.pos, h);
}

static bool
waits_behind(const struct ledger *l, const struct ledger_queue *q, uint32_t h)
{
	return is_behind(l, q->values, ledger_strand_of(l, ledger_msg(l, h)), h) ||
	       is_behind(l, q->kinds, ledger_kind_of(l, ledger_msg(l, h)), h);
}

/* The ready messages with a share. */
static uint32_t
in_flows(const struct ledger_queue *q)
{
	uint32_t n = 0;

	for (uint32_t h = q->shares ? shares_flow_next(q->shares, SLAB_NONE) : SLAB_NONE; h != SLAB_NONE;
	     h = shares_flow_next(q->shares, h))
		n += shares_flow_heap(q->shares, h)->n;
	return n;
}

/* LEDGERGATE-3 */
static uint32_t
count_parked(const struct ledger *l, const struct ledger_queue *q)
{
	uint32_t n = 0;

	for (uint32_t h = q->gates ? q->gates->parked : SLAB_NONE; h != SLAB_NONE; h = ledger_msg(l, h)->q.pos)
		n++;
	return n;
}

static const char *
check_parked(const struct ledger *l, const struct ledger_queue *q, uint32_t h)
{
	const struct msg *m = ledger_msg(l, h);
	const uint32_t x = q->gates ? gates_find(q->gates, GATE_KEY, ledger_key_of(l, m)->hash) : SLAB_NONE;

	if (x == SLAB_NONE || gate_at(q->gates, x)->parked != h || !gate_at(q->gates, x)->until)
		return "a parked message is at no closed gate";
	return ledger_key_of(l, m)->head == h ? NULL : "a parked message is not the head of its key";
}

static const char *
check_place(const struct ledger *l, const struct ledger_queue *q, uint32_t h)
{
	const struct msg *m = ledger_msg(l, h);
	const bool out = m->q.place == QUEUE_OUT;
	const struct taken_batch *b = ledger_batch_of(q);

	if (m->flags & MSG_TAKEN)
		return out && b && m->q.pos < b->n && b->items[m->q.pos].msg == h
			       ? NULL
			       : "a message that is set aside is in no batch";
	switch (msg_state(m)) {
	case MSG_READY:
		if (m->flags & MSG_PARKED)
			return check_parked(l, q, h);
		return waits_behind(l, q, h) || is_in_ready_heap(l, q, h)
			       ? NULL
			       : "a ready message is not in the ready heap";
	case MSG_DELAYED:
		return m->q.place == QUEUE_TIMED && heap_has(&q->heaps.timed, m->q.pos, h)
			       ? NULL
			       : "a delayed message is not in the timed heap";
	case MSG_LEASED:
		return out && heap_has(&l->deadlines, m->q.pos, h)
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
	return heap_has(&l->ttls, m->q.own32, h) ? NULL : "a ttl is not in its heap";
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
check_head(const struct ledger *l, const struct order_key *k)
{
	const struct msg *head;

	if (k->head == SLAB_NONE)
		return k->held.first == SLAB_NONE ? NULL : "a sequence without a head";
	head = ledger_msg(l, k->head);
	if (msg_state(head) != MSG_READY && msg_state(head) != MSG_DELAYED &&
	    msg_state(head) != MSG_LEASED)
		return "a head that is not in the queue";
	if (!(head->flags & MSG_HOLDS) && k->held.first != SLAB_NONE &&
	    !msg_before(head, ledger_msg(l, k->held.first)))
		return "a head that is not first";
	return NULL;
}

/* How many messages of that state are set aside. */
static uint32_t
taken_in(const struct ledger *l, const struct ledger_queue *q, enum msg_state state)
{
	const struct taken_batch *b = ledger_batch_of(q);
	uint32_t n = 0;

	for (uint32_t i = 0; b && b->what == BATCH_MESSAGES && i < b->n; i++)
		n += msg_state(ledger_msg(l, b->items[i].msg)) == state;
	return n;
}

/* The counters of a key match its messages. Skipped if there are too many keys to scan all messages
 * for each. */
static const char *
check_counts(const struct ledger *l, const struct order_key *k, uint32_t key)
{
	uint32_t refs = 0, idle = 0, taken = 0;

	if (l->keys.used > COUNTED_KEYS)
		return NULL;
	for (uint32_t h = 0; h < l->msgs.fresh; h++) {
		const struct msg *m = ledger_scan_msg(l, h);
		const bool dead = m && msg_state(m) >= MSG_DEAD;

		if (!m || !(m->flags & MSG_KEYED) || ledger_key_handle(l, m) != key)
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
check_keys(const struct ledger *l, const struct ledger_queue *q)
{
	uint32_t held = 0;
	const char *wrong = NULL;

	for (uint32_t h = ledger_key_next(l, q, SLAB_NONE); !wrong && h != SLAB_NONE;
	     h = ledger_key_next(l, q, h)) {
		const struct order_key *k = ledger_key(l, h);

		wrong = check_chain(l, &k->held, MSG_HELD, &held);
		if (!wrong && !q->purging)
			wrong = check_head(l, k);
		if (!wrong)
			wrong = check_counts(l, k, h);
	}
	if (!wrong && !q->purging && held + taken_in(l, q, MSG_HELD) != q->count[MSG_HELD])
		wrong = "held messages that are in no sequence";
	return wrong;
}

static const char *
check_leased(const struct ledger *l, const struct ledger_queue *q)
{
	uint32_t last = SLAB_NONE, n = 0;

	for (uint32_t h = q->leased; h != SLAB_NONE; h = ledger_lease_next(l, h)) {
		const struct msg *m = ledger_msg(l, h);

		if (msg_state(m) != MSG_LEASED || ledger_lease(l, m)->prev != last)
			return "a list of leased messages is broken";
		last = h;
		n++;
	}
	return n == q->count[MSG_LEASED] ? NULL : "leased messages that are not listed";
}

static uint32_t
remembered_in(const struct ledger *l, const struct ledger_queue *q)
{
	uint32_t n = 0;

	for (uint32_t h = 0; h < l->idem.entries.fresh; h++) {
		const struct idem_entry *e = idem_entry(&l->idem, h);

		n += e && e->queue == q->handle && e->until != IDEM_LIVE;
	}
	return n;
}

static const char *
check_queue(const struct ledger *l, const struct ledger_queue *q,
	    const uint32_t count[static MSG_STATES])
{
	const uint32_t waiting = count[MSG_READY] + count[MSG_DELAYED];
	const uint32_t in_heaps = waiting - taken_in(l, q, MSG_READY) - taken_in(l, q, MSG_DELAYED);
	uint32_t dead = 0, damaged = 0;
	const char *wrong = check_chain(l, &q->dead, MSG_DEAD, &dead);

	if (!wrong)
		wrong = check_chain(l, &q->damaged, MSG_DAMAGED, &damaged);
	if (!wrong)
		wrong = check_leased(l, q);
	if (wrong)
		return wrong;
	for (int s = 0; s < MSG_STATES; s++)
		if (count[s] != q->count[s])
			return "a counter is not what is there";
	if (q->shares && shares_check(q->shares))
		return shares_check(q->shares);
	if (q->values && values_check(q->values))
		return values_check(q->values);
	if (q->kinds && values_check(q->kinds))
		return values_check(q->kinds);
	if (remembered_in(l, q) != q->remembered)
		return "remembered keys are counted wrong";
	if (ledger_results_of(l, q->handle, NULL, UINT32_MAX) != q->results)
		return "results are counted wrong";
	if (dead + taken_in(l, q, MSG_DEAD) != q->count[MSG_DEAD])
		return "dead letters that are not listed";
	if (damaged != q->count[MSG_DAMAGED])
		return "damaged messages that are not listed";
	if (in_heaps != queue_ready(&q->heaps) + q->heaps.timed.n + in_flows(q) + in_strands(q->values) + in_strands(q->kinds) + count_parked(l, q))
		return "heaps hold what is not there";
	if (q->heaps.held != waiting + count[MSG_LEASED] + count[MSG_HELD] +
				     count[MSG_DEAD] + count[MSG_DAMAGED])
		return "room is kept for what is not there";
	return check_keys(l, q);
}

/* One scan of all messages for each queue: slow and simple. */
static const char *
check_messages(const struct ledger *l, const struct ledger_queue *q)
{
	uint32_t count[MSG_STATES] = { 0 }, members = 0;
	const char *wrong = NULL;

	for (uint32_t h = 0; !wrong && h < l->msgs.fresh; h++) {
		const struct msg *m = ledger_scan_msg(l, h);

		if (!m || ledger_queue_of(l, m) != q ||
		    ledger_is_purged(l, q, m, h))
			continue;
		count[msg_state(m)]++;
		members += !(m->flags & MSG_TAKEN) && ledger_is_purgeable(msg_state(m)) && ledger_member_of(l, h);
		wrong = check_place(l, q, h);
		if (!wrong)
			wrong = check_ttl(l, h);
	}
	if (!wrong && members != q->n_members)
		wrong = "members of batches that are not listed";
	return wrong ? wrong : check_queue(l, q, count);
}

/* A namespace counts its messages until they are freed, also messages of a purge. */
static const char *
check_space(const struct ledger *l, uint32_t space)
{
	const struct space *s = slab_at(&l->spaces, space);
	uint64_t messages = 0, bytes = 0;
	uint32_t queues = 0;

	for (uint32_t h = SLAB_NONE; (h = ledger_queue_next(l, h)) != SLAB_NONE;)
		queues += ledger_queue(l, h)->space == space;
	for (uint32_t h = 0; h < l->msgs.fresh; h++) {
		const struct msg *m = ledger_scan_msg(l, h);

		if (!m || ledger_queue_of(l, m)->space != space)
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
		const struct ledger_queue *q = ledger_queue(l, h);

		bytes += queue_bytes(&q->heaps) + queue_bytes(&q->trash) + queue_bytes(&q->spare);
		bytes += q->shares ? shares_bytes(q->shares) : 0;
		bytes += q->gates ? gates_bytes(q->gates) : 0;
		bytes += q->values ? values_bytes(q->values) : 0;
		bytes += q->kinds ? values_bytes(q->kinds) : 0;
		bytes += q->own_policy ? sizeof *q->own_policy : 0;
		bytes += q->breakers ? breakers_bytes(q->breakers) : 0;
	}
	return bytes == l->heaps_bytes ? NULL : "heaps of queues are not counted as they are";
}

const char *
ledger_scan_check(const struct ledger *l)
{
	const char *wrong = check_memory(l);

	for (uint32_t h = ledger_queue_next(l, SLAB_NONE); !wrong && h != SLAB_NONE;
	     h = ledger_queue_next(l, h))
		wrong = check_messages(l, ledger_queue(l, h));
	for (uint32_t h = 0; !wrong && h < l->spaces.used; h++)
		wrong = check_space(l, h);
	if (!wrong && map_count(&l->ids) != l->msgs.used)
		wrong = "messages that no id leads to";
	if (!wrong && l->deadlines.n != l->leases.used)
		wrong = "leases without a message";
	return wrong;
}

bool
ledger_is_gated(const struct ledger *l, uint32_t msg)
{
	const struct msg *m = ledger_msg(l, msg);
	const struct ledger_queue *q = ledger_queue_of(l, m);

	return (m->flags & MSG_PARKED) ||
	       (ledger_flow_of(l, m) != SHARES_PLAIN &&
		ledger_gate_is_closed(q, GATE_SHARE, shares_hash(q->shares, ledger_flow_of(l, m)))) ||
	       (ledger_strand_of(l, m) != SLAB_NONE && ledger_gate_is_closed(q, GATE_VALUE, ledger_value_hash(l, q, m)));
}

bool
ledger_is_parked(const struct ledger *l, uint32_t msg)
{
	return ledger_msg(l, msg)->flags & MSG_PARKED;
}

bool
ledger_has_turns(const struct ledger *l, uint32_t queue)
{
	return ledger_queue(l, queue)->shares != NULL;
}
