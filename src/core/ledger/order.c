/*
 * order.c - ordering keys and their sequences (LEDGER-3, LEDGERHEAP-2).
 */
#include "core/ledger/ledger_private.h"

#include <assert.h>

/* Two keys of one queue with the same hash share a sequence. Keys of two queues must not, so the queue
 * is compared, too. */
static uint32_t
find_key(const struct ledger *l, uint32_t queue, uint64_t hash)
{
	const struct key_name name = { hash, queue };

	return map_find(&l->key_hashes, hash, &name);
}

/* Returns whether the key that was found last is this one. */
static bool
is_found(const struct ledger *l, uint32_t queue, uint64_t hash)
{
	const struct order_key *k = l->found_key != SLAB_NONE ? ledger_key(l, l->found_key) : NULL;

	return k && k->hash == hash && k->queue == queue;
}

uint32_t
ledger_key_find(const struct ledger *l, uint32_t queue, uint64_t hash)
{
	const uint32_t h = is_found(l, queue, hash) ? l->found_key : find_key(l, queue, hash);

	return h == MAP_NONE ? SLAB_NONE : h;
}

uint32_t
ledger_key_head(const struct ledger *l, uint32_t queue, uint64_t hash)
{
	const uint32_t h = find_key(l, queue, hash);

	return h == MAP_NONE ? SLAB_NONE : ledger_key(l, h)->head;
}

int
ledger_key_reserve(struct ledger *l, uint32_t queue, uint64_t hash)
{
	int rc;

	if (hash == 0)
		return 0;
	if (!is_found(l, queue, hash))
		l->found_key = find_key(l, queue, hash);
	if (l->found_key != MAP_NONE)
		return 0;
	rc = slab_reserve(&l->keys, 1);
	return rc ? rc : map_reserve(&l->key_hashes, 1);
}

/* The lists of keys */

static void
list_key(struct ledger *l, struct ledger_queue *q, uint32_t key, enum key_list list)
{
	struct order_key *k = ledger_key(l, key);

	k->prev = SLAB_NONE;
	k->next = q->keys[list];
	if (k->next != SLAB_NONE)
		ledger_key(l, k->next)->prev = key;
	q->keys[list] = key;
}

static void
unlist_key(struct ledger *l, struct ledger_queue *q, uint32_t key, enum key_list list)
{
	const struct order_key *k = ledger_key(l, key);

	if (q->purge_key == key)
		q->purge_key = k->next;
	if (k->prev == SLAB_NONE)
		q->keys[list] = k->next;
	else
		ledger_key(l, k->prev)->next = k->next;
	if (k->next != SLAB_NONE)
		ledger_key(l, k->next)->prev = k->prev;
}

uint32_t
ledger_key_next(const struct ledger *l, const struct ledger_queue *q, uint32_t key)
{
	const struct order_key *k = key == SLAB_NONE ? NULL : ledger_key(l, key);
	const uint32_t next = k ? k->next : q->keys[KEYS_LINED];

	if (next != SLAB_NONE || (k && k->held.first == SLAB_NONE))
		return next;
	return q->keys[KEYS_PLAIN];
}

void
ledger_line_insert(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	const uint32_t key = ledger_key_handle(l, ledger_msg(l, h));
	struct order_key *k = ledger_key(l, key);

	if (k->held.first == SLAB_NONE) {
		unlist_key(l, q, key, KEYS_PLAIN);
		list_key(l, q, key, KEYS_LINED);
	}
	chain_insert(&k->held, &l->msgs, h);
}

void
ledger_line_remove(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	const uint32_t key = ledger_key_handle(l, ledger_msg(l, h));
	struct order_key *k = ledger_key(l, key);

	chain_remove(&k->held, &l->msgs, h);
	if (k->held.first == SLAB_NONE) {
		unlist_key(l, q, key, KEYS_LINED);
		list_key(l, q, key, KEYS_PLAIN);
	}
}

static uint32_t
make_key(struct ledger *l, uint32_t queue, uint64_t hash)
{
	struct ledger_queue *q = ledger_queue(l, queue);
	const uint32_t h = slab_new(&l->keys);
	struct order_key *k;
	int rc;

	assert(h != SLAB_NONE); /* reserved */
	k = ledger_key(l, h);
	*k = (struct order_key){
		.hash = hash,
		.queue = queue,
		.head = SLAB_NONE,
	};
	chain_init(&k->held);
	list_key(l, q, h, KEYS_PLAIN);
	rc = map_insert(&l->key_hashes, hash, h);
	assert(rc == 0); /* reserved */
	(void)rc;
	return h;
}

uint32_t
ledger_key_attach(struct ledger *l, uint32_t queue, uint64_t hash)
{
	uint32_t h = is_found(l, queue, hash) ? l->found_key : find_key(l, queue, hash);

	if (h == MAP_NONE)
		h = make_key(l, queue, hash);
	ledger_key(l, h)->refs++;
	return h;
}

void
ledger_key_detach(struct ledger *l, struct ledger_queue *q, uint32_t key)
{
	struct order_key *k = ledger_key(l, key);

	if (--k->refs > 0)
		return;
	assert(k->head == SLAB_NONE && k->held.first == SLAB_NONE);
	unlist_key(l, q, key, KEYS_PLAIN);
	map_remove(&l->key_hashes, k->hash, key);
	slab_free(&l->keys, key);
	if (l->found_key == key)
		l->found_key = SLAB_NONE;
}

/* The head was never delivered, and returns to the sequence. */
static void
displace(struct ledger *l, struct ledger_queue *q, struct order_key *k)
{
	const uint32_t head = k->head;

	k->head = SLAB_NONE;
	ledger_leave(l, q, head);
	ledger_enter(l, q, head, MSG_HELD);
}

/* Only a replay of a cleaned log brings a message that belongs before the head. */
static bool
goes_before_head(const struct ledger *l, const struct ledger_queue *q, const struct order_key *k,
		 uint32_t h)
{
	const struct msg *head = ledger_msg(l, k->head);

	return !(head->flags & MSG_HOLDS) && msg_before(ledger_msg(l, h), head) &&
	       !ledger_is_purged(l, q, head, k->head);
}

void
ledger_join(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	struct order_key *k = ledger_key_of(l, ledger_msg(l, h));

	if (k->head != SLAB_NONE && goes_before_head(l, q, k, h)) {
		displace(l, q, k);
	} else if (k->head != SLAB_NONE || k->held.first != SLAB_NONE) {
		ledger_enter(l, q, h, MSG_HELD);
		return;
	}
	k->head = h;
	ledger_enter(l, q, h, MSG_READY);
}

void
ledger_lead(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	struct order_key *k = ledger_key_of(l, ledger_msg(l, h));

	if (k->head == h)
		return;
	if (k->head != SLAB_NONE)
		displace(l, q, k);
	k->head = h;
}

void
ledger_advance(struct ledger *l, struct ledger_queue *q, struct order_key *k)
{
	const uint32_t next = k->held.first;

	if (k->head != SLAB_NONE || next == SLAB_NONE ||
	    ledger_is_purged(l, q, ledger_msg(l, next), next))
		return;
	ledger_leave(l, q, next);
	k->head = next;
	ledger_enter(l, q, next, MSG_READY);
}

void
ledger_pass(struct ledger *l, struct ledger_queue *q, uint32_t h)
{
	const struct msg *m = ledger_msg(l, h);
	struct order_key *k;

	if (!(m->flags & MSG_KEYED))
		return;
	k = ledger_key_of(l, m);
	if (k->head != h)
		return;
	k->head = SLAB_NONE;
	ledger_advance(l, q, k);
}
