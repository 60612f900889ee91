/*
 * ledger.c - makes and frees a ledger; names of queues; messages by id.
 */
#include "core/ledger/ledger_private.h"

#include "base/mem.h"

#include <assert.h>

static uint64_t
msg_hash(const void *msgs, uint32_t h)
{
	return hash_number(msg_at(msgs, h)->id);
}

static bool
msg_is(const void *msgs, uint32_t h, const void *key)
{
	return msg_at(msgs, h)->id == *(const uint64_t *)key;
}

static uint64_t
space_hash(const void *spaces, uint32_t h)
{
	const struct space *s = slab_at(spaces, h);

	return s->hash;
}

static bool
space_is(const void *spaces, uint32_t h, const void *key)
{
	const struct space *s = slab_at(spaces, h);

	return slice_eq(slice_of(s->name), *(const struct slice *)key);
}

static uint64_t
queue_hash(const void *queues, uint32_t h)
{
	const struct ledger_queue *q = slab_at(queues, h);

	return q->hash;
}

struct full_name {
	uint32_t space;
	struct slice name;
};

static bool
queue_is(const void *queues, uint32_t h, const void *key)
{
	const struct ledger_queue *q = slab_at(queues, h);
	const struct full_name *full = key;

	return q->space == full->space && slice_eq(slice_of(q->name), full->name);
}

static uint64_t
key_hash(const void *keys, uint32_t h)
{
	const struct order_key *k = slab_at(keys, h);

	return k->hash;
}

static bool
key_is(const void *keys, uint32_t h, const void *key)
{
	const struct order_key *k = slab_at(keys, h);
	const struct key_name *name = key;

	return k->hash == name->hash && k->queue == name->queue;
}

static uint32_t *
remembered_of(void *arg, uint32_t queue)
{
	return &ledger_queue(arg, queue)->remembered;
}

static uint32_t *
results_of(void *arg, uint32_t queue)
{
	return &ledger_queue(arg, queue)->results;
}

static void
init_parts(struct ledger *l)
{
	const size_t pos = offsetof(struct msg, q.pos);

	slab_init(&l->msgs, sizeof(struct msg));
	map_init(&l->ids, &l->msgs, msg_hash, msg_is);
	slab_init(&l->leases, sizeof(struct lease));
	holders_init(&l->holders, &l->conf.secret);
	slab_init(&l->more, sizeof(struct more));
	slab_init(&l->terms, sizeof(struct own_terms));
	heap_init(&l->deadlines, &l->msgs, pos);
	heap_init(&l->ttls, &l->msgs, offsetof(struct msg, q.own32));
	slab_init_chunked(&l->spaces, sizeof(struct space), SLAB_FEW_BITS);
	map_init(&l->space_names, &l->spaces, space_hash, space_is);
	slab_init_chunked(&l->queues, sizeof(struct ledger_queue), SLAB_FEW_BITS);
	map_init(&l->queue_names, &l->queues, queue_hash, queue_is);
	heap_init(&l->agenda, &l->queues, offsetof(struct ledger_queue, pos));
	l->trend_first = l->trend_last = SLAB_NONE;
	l->found = l->woken = l->leaving = l->weighed = l->changed = l->broken = l->uncounted = l->found_key = SLAB_NONE;
	slab_init(&l->keys, sizeof(struct order_key));
	map_init(&l->key_hashes, &l->keys, key_hash, key_is);
	slab_init(&l->spots, sizeof(struct msg_spot));
	idem_init(&l->idem);
	l->idem.count = remembered_of;
	l->idem.arg = l;
	results_init(&l->results);
	l->results.count = results_of;
	l->results.arg = l;
}

int
ledger_new(struct ledger **out, const struct ledger_conf *conf)
{
	struct ledger *l = mem_zalloc(sizeof *l);

	*out = l;
	if (!l)
		return SLU_ENOMEM;
	l->conf = *conf;
	init_parts(l);
	return 0;
}

void
ledger_queue_release(struct ledger *l, struct ledger_queue *q)
{
	map_remove(&l->queue_names, q->hash, q->handle);
	ledger_space_add(l, q->space, 0, 0, UINT32_MAX); /* one less */
	l->heaps_bytes -= q->bytes;
	ledger_trend_drop(l, q);
	queue_release(&q->heaps);
	queue_release(&q->trash);
	queue_release(&q->spare);
	shares_free(q->shares);
	gates_free(q->gates);
	values_free(q->values);
	values_free(q->kinds);
	breakers_free(q->breakers);
	l->broken = l->broken == q->handle ? SLAB_NONE : l->broken;
	l->n_shares -= q->n_shares;
	ledger_moving_release(q);
	mem_free(q->own_policy);
	mem_free(q->name);
	mem_free(q->shown);
	q->name = NULL; /* ledger_queue_next skips it */
	slab_free(&l->queues, q->handle);
}

static void
release_names(struct ledger *l)
{
	for (uint32_t h = ledger_queue_next(l, SLAB_NONE); h != SLAB_NONE;
	     h = ledger_queue_next(l, h))
		ledger_queue_release(l, ledger_queue(l, h));
	for (uint32_t h = 0; h < l->spaces.used; h++) { /* none is ever freed */
		const struct space *s = slab_at(&l->spaces, h);

		mem_free(s->name);
		mem_free(s->shown);
	}
	map_release(&l->queue_names);
	map_release(&l->space_names);
	slab_release(&l->queues);
	slab_release(&l->spaces);
}

void
ledger_free(struct ledger *l)
{
	if (!l)
		return;
	mem_free(l->sources);
	release_names(l);
	trend_free(l->sum);
	results_release(&l->results);
	idem_release(&l->idem);
	slab_release(&l->spots);
	map_release(&l->key_hashes);
	slab_release(&l->keys);
	heap_release(&l->agenda);
	heap_release(&l->ttls);
	heap_release(&l->deadlines);
	slab_release(&l->more);
	slab_release(&l->terms);
	slab_release(&l->leases);
	holders_release(&l->holders);
	map_release(&l->ids);
	slab_release(&l->msgs);
	mem_free(l);
}

/* Names */

static char *
copy_name(struct slice s)
{
	char *copy = mem_alloc(s.n + 1);

	if (copy) {
		memcpy(copy, s.p, s.n);
		copy[s.n] = '\0';
	}
	return copy;
}

static uint64_t
name_hash(const struct ledger *l, uint64_t below, struct slice name)
{
	const struct hash_key secret = {
		.k0 = l->conf.secret.k0 ^ below,
		.k1 = l->conf.secret.k1,
	};

	return hash_keyed(&secret, name.p, name.n);
}

uint32_t
ledger_space_find(struct ledger *l, struct slice space)
{
	if (l->found != SLAB_NONE) {
		const uint32_t recent = ledger_queue(l, l->found)->space;

		if (space_is(&l->spaces, recent, &space))
			return recent;
	}
	return map_find(&l->space_names, name_hash(l, 0, space), &space);
}

static uint64_t
full_hash(const struct ledger *l, uint32_t space, struct slice name)
{
	const struct space *s = slab_at(&l->spaces, space);

	return name_hash(l, s->hash, name);
}

uint32_t
ledger_queue_find(struct ledger *l, struct slice space, struct slice name)
{
	struct full_name full = { ledger_space_find(l, space), name };
	uint32_t found;

	if (full.space == SLAB_NONE)
		return SLAB_NONE;
	if (l->found != SLAB_NONE && queue_is(&l->queues, l->found, &full))
		return l->found;
	found = map_find(&l->queue_names, full_hash(l, full.space, name), &full);
	if (found != SLAB_NONE)
		l->found = found;
	return found;
}

/* Stores a spelling that differs from the name, unless *shown is set. */
static int
spell(char **shown, const char *name, struct slice as)
{
	if (*shown || as.n == 0 || slice_eq(slice_of(name), as))
		return 0;
	*shown = copy_name(as);
	return *shown ? 0 : SLU_ENOMEM;
}

static int
open_space(struct ledger *l, struct slice name, struct slice as, uint32_t *out)
{
	char *copy, *shown = NULL;
	struct space *s;
	int rc;

	*out = ledger_space_find(l, name);
	if (*out != SLAB_NONE)
		return 0;
	rc = slab_reserve(&l->spaces, 1);
	if (!rc)
		rc = map_reserve(&l->space_names, 1);
	copy = rc ? NULL : copy_name(name);
	if (!copy || spell(&shown, copy, as)) {
		mem_free(copy);
		return SLU_ENOMEM;
	}
	*out = slab_new(&l->spaces);
	s = slab_at(&l->spaces, *out);
	*s = (struct space){
		.name = copy,
		.shown = shown,
		.hash = name_hash(l, 0, name),
	};
	rc = map_insert(&l->space_names, s->hash, *out);
	assert(rc == 0); /* reserved */
	return rc;
}

static void
init_queue(struct ledger *l, uint32_t h, uint32_t space, uint64_t hash)
{
	struct ledger_queue *q = ledger_queue(l, h);

	*q = (struct ledger_queue){
		.policy = &policy_default,
		.hash = hash,
		.secret = { l->conf.secret.k0 ^ hash, l->conf.secret.k1 + hash },
		.handle = h,
		.space = space,
		.leased = SLAB_NONE,
		.keys = { SLAB_NONE, SLAB_NONE },
		.wake = SLU_NEVER,
		.pos = HEAP_OUT,
		.purge_key = SLAB_NONE,
		.members = SLAB_NONE,
	};
	queue_init(&q->heaps, &l->msgs, QUEUE_STRICT, true);
	queue_init(&q->trash, &l->msgs, QUEUE_STRICT, true);
	queue_init(&q->spare, &l->msgs, QUEUE_STRICT, true);
	queue_time_by_arrival(&q->heaps);
	queue_time_by_arrival(&q->spare);
	chain_init(&q->dead);
	chain_init(&q->damaged);
}

static int
make_queue(struct ledger *l, uint32_t space, struct slice name, struct slice as,
	   uint32_t *out)
{
	const uint64_t hash = full_hash(l, space, name);
	char *copy, *shown = NULL;
	int rc;

	if (l->conf.max_queues && l->queues.used >= l->conf.max_queues)
		return SLU_EBUSY;
	rc = slab_reserve(&l->queues, 1);
	if (!rc)
		rc = map_reserve(&l->queue_names, 1);
	if (!rc)
		rc = heap_reserve(&l->agenda, l->queues.used + 1);
	copy = rc ? NULL : copy_name(name);
	if (!copy || spell(&shown, copy, as)) {
		mem_free(copy);
		return SLU_ENOMEM;
	}
	*out = slab_new(&l->queues);
	init_queue(l, *out, space, hash);
	ledger_queue(l, *out)->name = copy;
	ledger_queue(l, *out)->shown = shown;
	ledger_space_add(l, space, 0, 0, 1);
	rc = map_insert(&l->queue_names, hash, *out);
	assert(rc == 0); /* reserved */
	return rc;
}

int
ledger_queue_open(struct ledger *l, struct slice space, struct slice name,
		  uint32_t *out)
{
	return ledger_queue_open_as(l, space, name, &(struct spelling){ 0 }, out);
}

int
ledger_queue_open_as(struct ledger *l, struct slice space, struct slice name,
		     const struct spelling *as, uint32_t *out)
{
	uint32_t space_handle;
	int rc;

	*out = ledger_queue_find(l, space, name);
	if (*out != SLAB_NONE)
		return 0;
	rc = open_space(l, space, as->space, &space_handle);
	return rc ? rc : make_queue(l, space_handle, name, as->queue, out);
}

int
ledger_queue_spell(struct ledger *l, uint32_t queue, const struct spelling *as)
{
	struct ledger_queue *q = ledger_queue(l, queue);
	struct space *s = SLAB_AT_FEW(&l->spaces, q->space, struct space);
	const int rc = spell(&s->shown, s->name, as->space);

	return rc ? rc : spell(&q->shown, q->name, as->queue);
}

bool
ledger_queue_is_spelled(const struct ledger *l, uint32_t queue)
{
	const struct ledger_queue *q = ledger_queue(l, queue);
	const struct space *s = slab_at(&l->spaces, q->space);

	return q->shown || s->shown;
}

uint32_t
ledger_queue_space(const struct ledger *l, uint32_t queue)
{
	return ledger_queue(l, queue)->space;
}

uint32_t
ledger_queue_next(const struct ledger *l, uint32_t queue)
{
	uint32_t next = queue == SLAB_NONE ? 0 : queue + 1;

	while (next < l->queues.fresh && !ledger_has_queue(l, next))
		next++;
	return next < l->queues.fresh ? next : SLAB_NONE;
}

void
ledger_queue_get(const struct ledger *l, uint32_t queue, struct ledger_queue_view *out)
{
	const struct ledger_queue *q = ledger_queue(l, queue);
	const struct space *s = slab_at(&l->spaces, q->space);

	*out = (struct ledger_queue_view){
		.space = q->space,
		.space_name = s->name,
		.name = q->name,
		.space_shown = s->shown ? s->shown : s->name,
		.shown = q->shown ? q->shown : q->name,
		.policy = q->policy,
		.depth = ledger_depth(q),
		.totals = q->totals,
		.purging = q->purging,
	};
	memcpy(out->count, q->count, sizeof out->count);
}

/* ---- Hashes; 0 means no key ---- */

uint64_t
ledger_key_hash(const struct ledger *l, uint32_t queue, struct slice key)
{
	const uint64_t hash = hash_keyed(&ledger_queue(l, queue)->secret, key.p, key.n);

	return hash ? hash : 1;
}

struct idem_mark
ledger_idem_mark(const struct ledger *l, uint32_t queue, struct slice key)
{
	const struct hash_key a = ledger_queue(l, queue)->secret;
	const struct hash_key b = { ~a.k0, a.k1 };
	const struct hash_key c = { a.k0, ~a.k1 };
	const uint64_t hash = hash_keyed(&b, key.p, key.n);

	return (struct idem_mark){
		.hash = hash ? hash : 1,
		.check = (uint16_t)hash_keyed(&c, key.p, key.n),
	};
}

/* Messages by id */

void
ledger_list(struct ledger *l, uint32_t h)
{
	const int rc = map_insert(&l->ids, hash_number(ledger_msg(l, h)->id), h);

	assert(rc == 0); /* reserved */
	(void)rc;
}

void
ledger_expect(const struct ledger *l, uint64_t id)
{
	map_prefetch(&l->ids, hash_number(id));
}

void
ledger_unlist(struct ledger *l, uint32_t h)
{
	map_remove(&l->ids, hash_number(ledger_msg(l, h)->id), h);
}

uint32_t
ledger_find_raw(const struct ledger *l, uint64_t id)
{
	return map_find(&l->ids, hash_number(id), &id);
}

uint32_t
ledger_find_any(const struct ledger *l, uint64_t id)
{
	const uint32_t h = ledger_find_raw(l, id);

	if (h == SLAB_NONE ||
	    ledger_is_purged(l, ledger_queue_of(l, ledger_msg(l, h)), ledger_msg(l, h), h))
		return SLAB_NONE;
	return h;
}

uint32_t
ledger_find(const struct ledger *l, uint32_t space, uint64_t id)
{
	const uint32_t h = ledger_find_any(l, id);

	if (h == SLAB_NONE || ledger_queue_of(l, ledger_msg(l, h))->space != space)
		return SLAB_NONE;
	return h;
}
