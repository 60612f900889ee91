/*
 * ledger.c - a ledger's parts, its names, and look-ups.
 */
#include "core/ledger_in.h"

#include "base/mem.h"

#include <assert.h>

enum {
	FEW_BITS = 4 /* topics and namespaces come in chunks of 16 */
};

/* Ids are ours: an outsider cannot choose them, so any good mix will do. */
static uint64_t
mixed(uint64_t id)
{
	id *= 0x9e3779b97f4a7c15u;
	return id ^ id >> 32;
}

static uint64_t
msg_hash(const void *msgs, uint32_t h)
{
	return mixed(msg_at(msgs, h)->id);
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
topic_hash(const void *topics, uint32_t h)
{
	const struct topic *t = slab_at(topics, h);

	return t->hash;
}

struct full_name {
	uint32_t space;
	struct slice name;
};

static bool
topic_is(const void *topics, uint32_t h, const void *key)
{
	const struct topic *t = slab_at(topics, h);
	const struct full_name *full = key;

	return t->space == full->space && slice_eq(slice_of(t->name), full->name);
}

static uint64_t
key_hash(const void *keys, uint32_t h)
{
	const struct key *k = slab_at(keys, h);

	return k->hash;
}

static bool
key_is(const void *keys, uint32_t h, const void *key)
{
	const struct key *k = slab_at(keys, h);
	const struct key_name *name = key;

	return k->hash == name->hash && k->topic == name->topic;
}

static uint32_t *
remembered_of(void *arg, uint32_t queue)
{
	return &ledger_topic(arg, queue)->remembered;
}

static uint32_t *
results_of(void *arg, uint32_t queue)
{
	return &ledger_topic(arg, queue)->results;
}

static void
init_parts(struct ledger *l)
{
	const size_t pos = offsetof(struct msg, q.pos);

	slab_init(&l->msgs, sizeof(struct msg));
	map_init(&l->ids, &l->msgs, msg_hash, msg_is);
	slab_init(&l->leases, sizeof(struct lease));
	owners_init(&l->owners, &l->conf.secret);
	slab_init(&l->more, sizeof(struct more));
	heap_init(&l->deadlines, &l->msgs, pos);
	heap_init(&l->ttls, &l->msgs, offsetof(struct msg, q.own32));
	slab_init_chunked(&l->spaces, sizeof(struct space), FEW_BITS);
	map_init(&l->space_names, &l->spaces, space_hash, space_is);
	slab_init_chunked(&l->topics, sizeof(struct topic), FEW_BITS);
	map_init(&l->topic_names, &l->topics, topic_hash, topic_is);
	heap_init(&l->agenda, &l->topics, offsetof(struct topic, pos));
	l->found = l->woken = l->weighed = l->changed = SLAB_NONE;
	slab_init(&l->keys, sizeof(struct key));
	map_init(&l->key_hashes, &l->keys, key_hash, key_is);
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
ledger_topic_release(struct ledger *l, struct topic *t)
{
	map_remove(&l->topic_names, t->hash, t->handle);
	ledger_space_add(l, t->space, 0, 0, UINT32_MAX); /* one less */
	l->topic_bytes -= t->bytes;
	queue_release(&t->queue);
	queue_release(&t->trash);
	queue_release(&t->spare);
	ledger_moving_release(t);
	mem_free(t->name);
	mem_free(t->shown);
	t->name = NULL; /* so ledger_queue_next passes it over */
	slab_free(&l->topics, t->handle);
}

static void
release_names(struct ledger *l)
{
	for (uint32_t h = ledger_queue_next(l, SLAB_NONE); h != SLAB_NONE;
	     h = ledger_queue_next(l, h))
		ledger_topic_release(l, ledger_topic(l, h));
	for (uint32_t h = 0; h < l->spaces.used; h++) { /* none is ever freed */
		const struct space *s = slab_at(&l->spaces, h);

		mem_free(s->name);
		mem_free(s->shown);
	}
	map_release(&l->topic_names);
	map_release(&l->space_names);
	slab_release(&l->topics);
	slab_release(&l->spaces);
}

void
ledger_free(struct ledger *l)
{
	if (!l)
		return;
	release_names(l);
	results_release(&l->results);
	idem_release(&l->idem);
	map_release(&l->key_hashes);
	slab_release(&l->keys);
	heap_release(&l->agenda);
	heap_release(&l->ttls);
	heap_release(&l->deadlines);
	slab_release(&l->more);
	slab_release(&l->leases);
	owners_release(&l->owners);
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
		const uint32_t recent = ledger_topic(l, l->found)->space;

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
	if (l->found != SLAB_NONE && topic_is(&l->topics, l->found, &full))
		return l->found;
	found = map_find(&l->topic_names, full_hash(l, full.space, name), &full);
	if (found != SLAB_NONE)
		l->found = found;
	return found;
}

/* Show name as it is spelled, unless *shown says already how. */
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
init_topic(struct ledger *l, uint32_t h, uint32_t space, uint64_t hash)
{
	struct topic *t = ledger_topic(l, h);

	*t = (struct topic){
		.policy = policy_default,
		.hash = hash,
		.secret = { l->conf.secret.k0 ^ hash, l->conf.secret.k1 + hash },
		.handle = h,
		.space = space,
		.leased = SLAB_NONE,
		.keys = { SLAB_NONE, SLAB_NONE },
		.wake = SLU_NEVER,
		.pos = HEAP_OUT,
		.purge_key = SLAB_NONE,
	};
	queue_init(&t->queue, &l->msgs, QUEUE_STRICT, true);
	queue_init(&t->trash, &l->msgs, QUEUE_STRICT, true);
	queue_init(&t->spare, &l->msgs, QUEUE_STRICT, true);
	queue_time_by_arrival(&t->queue);
	queue_time_by_arrival(&t->spare);
	chain_init(&t->dead);
	chain_init(&t->damaged);
}

static int
make_topic(struct ledger *l, uint32_t space, struct slice name, struct slice as,
	   uint32_t *out)
{
	const uint64_t hash = full_hash(l, space, name);
	char *copy, *shown = NULL;
	int rc;

	if (l->conf.max_queues && l->topics.used >= l->conf.max_queues)
		return SLU_EBUSY;
	rc = slab_reserve(&l->topics, 1);
	if (!rc)
		rc = map_reserve(&l->topic_names, 1);
	if (!rc)
		rc = heap_reserve(&l->agenda, l->topics.used + 1);
	copy = rc ? NULL : copy_name(name);
	if (!copy || spell(&shown, copy, as)) {
		mem_free(copy);
		return SLU_ENOMEM;
	}
	*out = slab_new(&l->topics);
	init_topic(l, *out, space, hash);
	ledger_topic(l, *out)->name = copy;
	ledger_topic(l, *out)->shown = shown;
	ledger_space_add(l, space, 0, 0, 1);
	rc = map_insert(&l->topic_names, hash, *out);
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
	return rc ? rc : make_topic(l, space_handle, name, as->queue, out);
}

int
ledger_queue_spell(struct ledger *l, uint32_t queue, const struct spelling *as)
{
	struct topic *t = ledger_topic(l, queue);
	struct space *s = slab_at(&l->spaces, t->space);
	const int rc = spell(&s->shown, s->name, as->space);

	return rc ? rc : spell(&t->shown, t->name, as->queue);
}

bool
ledger_queue_is_spelled(const struct ledger *l, uint32_t queue)
{
	const struct topic *t = ledger_topic(l, queue);
	const struct space *s = slab_at(&l->spaces, t->space);

	return t->shown || s->shown;
}

uint32_t
ledger_queue_space(const struct ledger *l, uint32_t queue)
{
	return ledger_topic(l, queue)->space;
}

uint32_t
ledger_queue_next(const struct ledger *l, uint32_t queue)
{
	uint32_t next = queue == SLAB_NONE ? 0 : queue + 1;

	while (next < l->topics.fresh && !ledger_has_topic(l, next))
		next++;
	return next < l->topics.fresh ? next : SLAB_NONE;
}

void
ledger_queue_get(const struct ledger *l, uint32_t queue, struct ledger_queue_view *out)
{
	const struct topic *t = ledger_topic(l, queue);
	const struct space *s = slab_at(&l->spaces, t->space);

	*out = (struct ledger_queue_view){
		.space = t->space,
		.space_name = s->name,
		.name = t->name,
		.space_shown = s->shown ? s->shown : s->name,
		.shown = t->shown ? t->shown : t->name,
		.policy = &t->policy,
		.depth = ledger_depth(t),
		.totals = t->totals,
		.purging = t->purging,
	};
	memcpy(out->count, t->count, sizeof out->count);
}

/* Hashes; 0 means that there is no key. */

uint64_t
ledger_key_hash(const struct ledger *l, uint32_t queue, struct slice key)
{
	const uint64_t hash = hash_keyed(&ledger_topic(l, queue)->secret, key.p, key.n);

	return hash ? hash : 1;
}

struct idem_mark
ledger_idem_mark(const struct ledger *l, uint32_t queue, struct slice key)
{
	const struct hash_key a = ledger_topic(l, queue)->secret;
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
	const int rc = map_insert(&l->ids, mixed(ledger_msg(l, h)->id), h);

	assert(rc == 0); /* reserved */
	(void)rc;
}

void
ledger_unlist(struct ledger *l, uint32_t h)
{
	map_remove(&l->ids, mixed(ledger_msg(l, h)->id), h);
}

uint32_t
ledger_find_raw(const struct ledger *l, uint64_t id)
{
	return map_find(&l->ids, mixed(id), &id);
}

uint32_t
ledger_find_any(const struct ledger *l, uint64_t id)
{
	const uint32_t h = ledger_find_raw(l, id);

	if (h == SLAB_NONE ||
	    ledger_is_purged(ledger_topic_of(l, ledger_msg(l, h)), ledger_msg(l, h), h))
		return SLAB_NONE;
	return h;
}

uint32_t
ledger_find(const struct ledger *l, uint32_t space, uint64_t id)
{
	const uint32_t h = ledger_find_any(l, id);

	if (h == SLAB_NONE || ledger_topic_of(l, ledger_msg(l, h))->space != space)
		return SLAB_NONE;
	return h;
}
