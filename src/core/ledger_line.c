/*
 * ledger_line.c - the keys, and who stands where in the line of each (L3, I2).
 */
#include "core/ledger_in.h"

#include <assert.h>

/* Two keys of one queue with the same hash share a line. Those of two queues must
 * not, so the queue is compared too. */
static uint32_t
find_key(const struct ledger *l, uint32_t topic, uint64_t hash)
{
	const struct key_name name = { hash, topic };

	return map_find(&l->key_hashes, hash, &name);
}

uint32_t
ledger_key_find(const struct ledger *l, uint32_t topic, uint64_t hash)
{
	const uint32_t h = find_key(l, topic, hash);

	return h == MAP_NONE ? SLAB_NONE : h;
}

uint32_t
ledger_key_head(const struct ledger *l, uint32_t topic, uint64_t hash)
{
	const uint32_t h = find_key(l, topic, hash);

	return h == MAP_NONE ? SLAB_NONE : ledger_key(l, h)->head;
}

int
ledger_key_reserve(struct ledger *l, uint32_t topic, uint64_t hash)
{
	int rc;

	if (hash == 0 || find_key(l, topic, hash) != MAP_NONE)
		return 0;
	rc = slab_reserve(&l->keys, 1);
	return rc ? rc : map_reserve(&l->key_hashes, 1);
}

/* The lists of keys */

static void
list_key(struct ledger *l, struct topic *t, uint32_t key, enum key_list list)
{
	struct key *k = ledger_key(l, key);

	k->prev = SLAB_NONE;
	k->next = t->keys[list];
	if (k->next != SLAB_NONE)
		ledger_key(l, k->next)->prev = key;
	t->keys[list] = key;
}

static void
unlist_key(struct ledger *l, struct topic *t, uint32_t key, enum key_list list)
{
	const struct key *k = ledger_key(l, key);

	if (t->purge_key == key)
		t->purge_key = k->next;
	if (k->prev == SLAB_NONE)
		t->keys[list] = k->next;
	else
		ledger_key(l, k->prev)->next = k->next;
	if (k->next != SLAB_NONE)
		ledger_key(l, k->next)->prev = k->prev;
}

uint32_t
ledger_key_next(const struct ledger *l, const struct topic *t, uint32_t key)
{
	const struct key *k = key == SLAB_NONE ? NULL : ledger_key(l, key);
	const uint32_t next = k ? k->next : t->keys[KEYS_LINED];

	if (next != SLAB_NONE || (k && k->line.first == SLAB_NONE))
		return next;
	return t->keys[KEYS_PLAIN];
}

void
ledger_line_insert(struct ledger *l, struct topic *t, uint32_t h)
{
	const uint32_t key = ledger_msg(l, h)->home;
	struct key *k = ledger_key(l, key);

	if (k->line.first == SLAB_NONE) {
		unlist_key(l, t, key, KEYS_PLAIN);
		list_key(l, t, key, KEYS_LINED);
	}
	chain_insert(&k->line, &l->msgs, h);
}

void
ledger_line_remove(struct ledger *l, struct topic *t, uint32_t h)
{
	const uint32_t key = ledger_msg(l, h)->home;
	struct key *k = ledger_key(l, key);

	chain_remove(&k->line, &l->msgs, h);
	if (k->line.first == SLAB_NONE) {
		unlist_key(l, t, key, KEYS_LINED);
		list_key(l, t, key, KEYS_PLAIN);
	}
}

static uint32_t
make_key(struct ledger *l, uint32_t topic, uint64_t hash)
{
	struct topic *t = ledger_topic(l, topic);
	const uint32_t h = slab_new(&l->keys);
	struct key *k;
	int rc;

	assert(h != SLAB_NONE); /* reserved */
	k = ledger_key(l, h);
	*k = (struct key){
		.hash = hash,
		.topic = topic,
		.head = SLAB_NONE,
	};
	chain_init(&k->line);
	list_key(l, t, h, KEYS_PLAIN);
	rc = map_insert(&l->key_hashes, hash, h);
	assert(rc == 0); /* reserved */
	(void)rc;
	return h;
}

uint32_t
ledger_key_attach(struct ledger *l, uint32_t topic, uint64_t hash)
{
	uint32_t h = find_key(l, topic, hash);

	if (h == MAP_NONE)
		h = make_key(l, topic, hash);
	ledger_key(l, h)->refs++;
	return h;
}

void
ledger_key_detach(struct ledger *l, struct topic *t, uint32_t key)
{
	struct key *k = ledger_key(l, key);

	if (--k->refs > 0)
		return;
	assert(k->head == SLAB_NONE && k->line.first == SLAB_NONE);
	unlist_key(l, t, key, KEYS_PLAIN);
	map_remove(&l->key_hashes, k->hash, key);
	slab_free(&l->keys, key);
}

/* The head was never handed out and steps back into the line. */
static void
displace(struct ledger *l, struct topic *t, struct key *k)
{
	const uint32_t head = k->head;

	k->head = SLAB_NONE;
	ledger_leave(l, t, head);
	ledger_enter(l, t, head, MSG_HELD);
}

/* Only what is read back from a cleaned log comes before a head that is there. */
static bool
goes_before_head(const struct ledger *l, const struct topic *t, const struct key *k,
		 uint32_t h)
{
	const struct msg *head = ledger_msg(l, k->head);

	return !(head->flags & MSG_HOLDS) && msg_before(ledger_msg(l, h), head) &&
	       !ledger_is_purged(t, head, k->head);
}

void
ledger_join(struct ledger *l, struct topic *t, uint32_t h)
{
	struct key *k = ledger_key_of(l, ledger_msg(l, h));

	if (k->head != SLAB_NONE && goes_before_head(l, t, k, h)) {
		displace(l, t, k);
	} else if (k->head != SLAB_NONE || k->line.first != SLAB_NONE) {
		ledger_enter(l, t, h, MSG_HELD);
		return;
	}
	k->head = h;
	ledger_enter(l, t, h, MSG_READY);
}

void
ledger_lead(struct ledger *l, struct topic *t, uint32_t h)
{
	struct key *k = ledger_key_of(l, ledger_msg(l, h));

	if (k->head == h)
		return;
	if (k->head != SLAB_NONE)
		displace(l, t, k);
	k->head = h;
}

void
ledger_advance(struct ledger *l, struct topic *t, struct key *k)
{
	const uint32_t next = k->line.first;

	if (k->head != SLAB_NONE || next == SLAB_NONE ||
	    ledger_is_purged(t, ledger_msg(l, next), next))
		return;
	ledger_leave(l, t, next);
	k->head = next;
	ledger_enter(l, t, next, MSG_READY);
}

void
ledger_pass(struct ledger *l, struct topic *t, uint32_t h)
{
	const struct msg *m = ledger_msg(l, h);
	struct key *k;

	if (!(m->flags & MSG_KEYED))
		return;
	k = ledger_key_of(l, m);
	if (k->head != h)
		return;
	k->head = SLAB_NONE;
	ledger_advance(l, t, k);
}
