#include "core/queue/values.h"

#include "base/cpu.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/queue/ownname.h"

#include <sluice/err.h>

#include <assert.h>
#include <string.h>

/* In each struct `alive` is behind the first 8 bytes, which a free item of a slab does not keep. */
struct value {
	uint64_t hash; /* of the name */
	struct ownname name;
	uint32_t messages;
	uint32_t leased;
	uint32_t max;     /* of leased messages; 0: no limit */
	uint32_t strands; /* the first strand, or SLAB_NONE */
	bool alive;
	bool blocked;
	bool closed;   /* by its gate */
	uint32_t gate; /* of the owner */
};

struct strand {
	struct heap waiting;
	struct heap trash; /* of a purge */
	uint32_t value;
	uint32_t flow;
	uint32_t messages;   /* in any state; `waiting` has room for all */
	uint32_t front;      /* the message in front, or SLAB_NONE */
	uint32_t prev, next; /* strands of the value, or SLAB_NONE */
	uint32_t spot;       /* of the owner */
	bool alive;
};

struct values {
	const struct slab *items;
	struct hash_key secret;
	struct slab values;
	struct slab strands;
	struct map names;
	struct map strand_of; /* by value and flow */
	uint32_t loose;       /* the strand that was reserved last, or SLAB_NONE */
	uint32_t trash;       /* the next strand to look at for trash */
	uint32_t max;         /* of leased messages of a new value */
	size_t heap_bytes;    /* of the heaps of strands, and of names */
	bool changed;         /* values_bytes may have changed since the last values_have_changed */
};

static struct value *
value_at(const struct values *v, uint32_t h)
{
	return SLAB_AT_FEW(&v->values, h, struct value);
}

static struct strand *
strand_at(const struct values *v, uint32_t h)
{
	return SLAB_AT_FEW(&v->strands, h, struct strand);
}

static const struct queue_item *
item_at(const struct values *v, uint32_t item)
{
	return slab_at(v->items, item);
}

static struct rank
rank_of(const struct queue_item *it)
{
	return (struct rank){ .a = rank_i32(it->prio), .b = rank_time(it->due), .c = it->seq };
}

/* ---- Maps ---- */

struct value_key {
	uint64_t hash;
	const struct slice *name; /* NULL: any name with this hash */
};

static uint64_t
name_hash(const void *v, uint32_t h)
{
	return value_at(v, h)->hash;
}

static bool
name_is(const void *v, uint32_t h, const void *key)
{
	const struct value *x = value_at(v, h);
	const struct value_key *k = key;

	return x->hash == k->hash && (!k->name || slice_eq(ownname_get(&x->name), *k->name));
}

struct strand_key {
	uint32_t value, flow;
};

static uint64_t
hash_strand(uint32_t value, uint32_t flow)
{
	return hash_number((uint64_t)value << 32 | flow);
}

static uint64_t
strand_hash(const void *v, uint32_t h)
{
	return hash_strand(strand_at(v, h)->value, strand_at(v, h)->flow);
}

static bool
strand_is(const void *v, uint32_t h, const void *key)
{
	const struct strand *s = strand_at(v, h);
	const struct strand_key *k = key;

	return s->value == k->value && s->flow == k->flow;
}

/* ---- Making and freeing ---- */

int
values_new(struct values **out, const struct slab *items, const struct hash_key *secret)
{
	struct values *v = mem_zalloc(sizeof *v);

	if (!v)
		return SLU_ENOMEM;
	v->items = items;
	v->secret = *secret;
	v->loose = SLAB_NONE;
	v->changed = true;
	slab_init_chunked(&v->values, sizeof(struct value), SLAB_FEW_BITS); /* most queues have few */
	slab_init_chunked(&v->strands, sizeof(struct strand), SLAB_FEW_BITS);
	map_init(&v->names, v, name_hash, name_is);
	map_init(&v->strand_of, v, strand_hash, strand_is);
	*out = v;
	return 0;
}

void
values_free(struct values *v)
{
	if (!v)
		return;
	for (uint32_t h = SLAB_NONE; (h = values_strand_next(v, h)) != SLAB_NONE;) {
		heap_release(&strand_at(v, h)->waiting);
		heap_release(&strand_at(v, h)->trash);
	}
	for (uint32_t h = SLAB_NONE; (h = values_next(v, h)) != SLAB_NONE;)
		ownname_release(&value_at(v, h)->name);
	map_release(&v->names);
	map_release(&v->strand_of);
	slab_release(&v->values);
	slab_release(&v->strands);
	mem_free(v);
}

static int
grow(struct values *v, struct heap *h, uint32_t n)
{
	const size_t before = heap_bytes(h);
	const int rc = heap_reserve(h, n);

	v->heap_bytes += heap_bytes(h) - before;
	v->changed = true;
	return rc;
}

static void
shrink(struct values *v, struct heap *h)
{
	v->heap_bytes -= heap_bytes(h);
	v->changed = true;
	heap_release(h);
}

static int
make_value(struct values *v, struct slice name, uint32_t *out)
{
	const int rc = map_reserve(&v->names, 1);
	const uint32_t h = rc ? SLAB_NONE : slab_new(&v->values);
	struct value *x = h == SLAB_NONE ? NULL : value_at(v, h);
	struct ownname own;

	if (!x || !ownname_set(&own, name)) {
		if (x)
			slab_free(&v->values, h);
		return SLU_ENOMEM;
	}
	*x = (struct value){
		.hash = hash_keyed(&v->secret, name.p, name.n),
		.name = own,
		.max = v->max,
		.strands = SLAB_NONE,
		.gate = SLAB_NONE,
		.alive = true,
	};
	v->heap_bytes += ownname_bytes(&own);
	(void)map_insert(&v->names, x->hash, h); /* reserved */
	*out = h;
	return 0;
}

static void
drop_value(struct values *v, uint32_t h)
{
	struct value *x = value_at(v, h);

	if (x->strands != SLAB_NONE)
		return;
	map_remove(&v->names, x->hash, h);
	v->heap_bytes -= ownname_bytes(&x->name);
	ownname_release(&x->name);
	x->alive = false;
	slab_free(&v->values, h);
}

static int
make_strand(struct values *v, uint32_t value, uint32_t flow, uint32_t *out)
{
	struct value *x = value_at(v, value);
	struct strand *s;

	v->changed = true;
	*out = map_reserve(&v->strand_of, 1) ? SLAB_NONE : slab_new(&v->strands);
	if (*out == SLAB_NONE)
		return SLU_ENOMEM;
	s = strand_at(v, *out);
	*s = (struct strand){
		.value = value,
		.flow = flow,
		.front = SLAB_NONE,
		.prev = SLAB_NONE,
		.next = x->strands,
		.spot = SLAB_NONE,
		.alive = true,
	};
	heap_init(&s->waiting, v->items, offsetof(struct queue_item, pos));
	heap_init(&s->trash, v->items, offsetof(struct queue_item, pos));
	if (s->next != SLAB_NONE)
		strand_at(v, s->next)->prev = *out;
	x->strands = *out;
	(void)map_insert(&v->strand_of, hash_strand(value, flow), *out); /* reserved */
	return 0;
}

static void
drop_strand(struct values *v, uint32_t h)
{
	struct strand *s = strand_at(v, h);
	const uint32_t value = s->value;

	assert(s->messages == 0 && s->waiting.n == 0 && s->trash.n == 0);
	map_remove(&v->strand_of, hash_strand(value, s->flow), h);
	shrink(v, &s->waiting);
	shrink(v, &s->trash);
	if (s->prev == SLAB_NONE)
		value_at(v, value)->strands = s->next;
	else
		strand_at(v, s->prev)->next = s->next;
	if (s->next != SLAB_NONE)
		strand_at(v, s->next)->prev = s->prev;
	s->alive = false;
	slab_free(&v->strands, h);
	drop_value(v, value);
}

static void
drop_loose(struct values *v)
{
	const uint32_t h = v->loose;

	v->loose = SLAB_NONE;
	if (h != SLAB_NONE && strand_at(v, h)->messages == 0)
		drop_strand(v, h);
}

static uint32_t
find_strand(const struct values *v, struct slice name, uint32_t flow, uint32_t *value)
{
	const struct value_key key = { hash_keyed(&v->secret, name.p, name.n), &name };

	*value = map_find(&v->names, key.hash, &key);
	if (*value == SLAB_NONE)
		return SLAB_NONE;
	return map_find(&v->strand_of, hash_strand(*value, flow), &(const struct strand_key){ *value, flow });
}

uint32_t
values_strand(const struct values *v, struct slice name, uint32_t flow)
{
	uint32_t value;

	return find_strand(v, name, flow, &value);
}

static int
make(struct values *v, struct slice name, uint32_t flow, uint32_t value, uint32_t *strand)
{
	int rc = value == SLAB_NONE ? make_value(v, name, &value) : 0;

	if (rc)
		return rc;
	rc = make_strand(v, value, flow, strand);
	if (rc)
		drop_value(v, value);
	else
		v->loose = *strand;
	return rc;
}

int
values_reserve(struct values *v, struct slice name, uint32_t flow, uint32_t *strand)
{
	uint32_t value;
	int rc;

	*strand = find_strand(v, name, flow, &value);
	if (*strand == SLAB_NONE) {
		drop_loose(v);
		*strand = find_strand(v, name, flow, &value); /* the value may be gone with its strand */
		rc = make(v, name, flow, value, strand);
		if (rc)
			return rc;
	}
	return values_room(v, *strand);
}

int
values_room(struct values *v, uint32_t strand)
{
	struct strand *s = strand_at(v, strand);

	return s->messages < s->waiting.max ? 0 : grow(v, &s->waiting, s->messages + 1);
}

bool
values_is_strand(const struct values *v, uint32_t strand, struct slice name, uint32_t flow)
{
	const struct strand *s = strand < v->strands.fresh && slab_has(&v->strands, strand) ? strand_at(v, strand) : NULL;
	const struct value *x = s && s->alive && s->flow == flow ? value_at(v, s->value) : NULL;

	return x && slice_eq(ownname_get(&x->name), name);
}

uint32_t *
values_spot(const struct values *v, uint32_t strand)
{
	return &strand_at(v, strand)->spot;
}

uint32_t *
values_gate(const struct values *v, uint32_t strand)
{
	return &value_at(v, strand_at(v, strand)->value)->gate;
}

void
values_load(const struct values *v, uint32_t strand, bool deep)
{
	const struct strand *s = strand_at(v, strand);

	if (!deep) {
		cpu_prefetch(s);
		cpu_prefetch((const char *)s + 64);
		return;
	}
	cpu_prefetch(value_at(v, s->value));
	cpu_prefetch(s->waiting.nodes);
}

void
values_hold(struct values *v, uint32_t strand)
{
	struct strand *s = strand_at(v, strand);

	s->messages++;
	value_at(v, s->value)->messages++;
	v->loose = v->loose == strand ? SLAB_NONE : v->loose;
}

void
values_drop(struct values *v, uint32_t strand)
{
	struct strand *s = strand_at(v, strand);

	assert(s->messages > s->waiting.n + s->trash.n);
	s->messages--;
	value_at(v, s->value)->messages--;
	if (s->messages == 0)
		drop_strand(v, strand);
}

/* ---- Ready messages ---- */

uint32_t
values_front(const struct values *v, uint32_t strand)
{
	return strand_at(v, strand)->front;
}

bool
values_before(const struct queue_item *a, const struct queue_item *b)
{
	if (a->prio != b->prio)
		return a->prio < b->prio;
	return a->due != b->due ? a->due < b->due : a->seq < b->seq;
}

bool
values_leads(const struct values *v, uint32_t strand, uint32_t item)
{
	const struct strand *s = strand_at(v, strand);

	if (value_at(v, s->value)->blocked)
		return false;
	return s->front == SLAB_NONE || values_before(item_at(v, item), item_at(v, s->front));
}

void
values_lead(struct values *v, uint32_t strand, uint32_t item)
{
	strand_at(v, strand)->front = item;
}

void
values_push(struct values *v, uint32_t strand, uint32_t item)
{
	heap_push(&strand_at(v, strand)->waiting, rank_of(item_at(v, item)), item);
}

void
values_pull(struct values *v, uint32_t strand, uint32_t item)
{
	heap_remove(&strand_at(v, strand)->waiting, item_at(v, item)->pos);
}

uint32_t
values_pop(struct values *v, uint32_t strand)
{
	struct strand *s = strand_at(v, strand);

	return s->waiting.n == 0 || value_at(v, s->value)->blocked ? SLAB_NONE : heap_pop(&s->waiting);
}

const struct heap *
values_heap(const struct values *v, uint32_t strand)
{
	return &strand_at(v, strand)->waiting;
}

/* ---- Values ---- */

uint32_t
values_of(const struct values *v, uint32_t strand)
{
	return strand_at(v, strand)->value;
}

uint64_t
values_hash(const struct values *v, uint32_t strand)
{
	return value_at(v, strand_at(v, strand)->value)->hash;
}

uint32_t
values_find(const struct values *v, uint64_t hash)
{
	return map_find(&v->names, hash, &(const struct value_key){ hash, NULL });
}

void
values_get(const struct values *v, uint32_t value, struct value_view *out)
{
	const struct value *x = value_at(v, value);

	*out = (struct value_view){
		.name = ownname_get(&x->name),
		.hash = x->hash,
		.messages = x->messages,
		.leased = x->leased,
		.blocked = x->blocked,
	};
}

uint32_t
values_ready(const struct values *v, uint32_t value)
{
	uint32_t n = 0;

	for (uint32_t h = value_at(v, value)->strands; h != SLAB_NONE; h = strand_at(v, h)->next)
		n += strand_at(v, h)->waiting.n + (strand_at(v, h)->front != SLAB_NONE);
	return n;
}

uint32_t
values_count(const struct values *v)
{
	return v->values.used;
}

uint32_t
values_next(const struct values *v, uint32_t value)
{
	for (uint32_t h = value + 1; h < v->values.fresh; h++) /* SLAB_NONE + 1 is 0 */
		if (slab_has(&v->values, h) && value_at(v, h)->alive)
			return h;
	return SLAB_NONE;
}

static bool
block(struct value *x)
{
	const bool was = x->blocked;

	x->blocked = x->closed || (x->max && x->leased >= x->max);
	return x->blocked != was;
}

bool
values_lease(struct values *v, uint32_t value, bool begins)
{
	struct value *x = value_at(v, value);

	x->leased += begins ? 1 : UINT32_MAX; /* one less */
	return block(x);
}

bool
values_close(struct values *v, uint32_t value, bool closed)
{
	value_at(v, value)->closed = closed;
	return block(value_at(v, value));
}

bool
values_limit(struct values *v, uint32_t value, uint32_t max)
{
	value_at(v, value)->max = max;
	return block(value_at(v, value));
}

void
values_set_limit(struct values *v, uint32_t max)
{
	v->max = max;
}

uint32_t
values_first(const struct values *v, uint32_t value)
{
	return value_at(v, value)->strands;
}

uint32_t
values_beside(const struct values *v, uint32_t strand)
{
	return strand_at(v, strand)->next;
}

uint32_t
values_strand_next(const struct values *v, uint32_t strand)
{
	for (uint32_t h = strand + 1; h < v->strands.fresh; h++) /* SLAB_NONE + 1 is 0 */
		if (slab_has(&v->strands, h) && strand_at(v, h)->alive)
			return h;
	return SLAB_NONE;
}

/* ---- Purging ---- */

int
values_purge_reserve(struct values *v)
{
	int rc = 0;

	for (uint32_t h = SLAB_NONE; !rc && (h = values_strand_next(v, h)) != SLAB_NONE;)
		rc = grow(v, &strand_at(v, h)->trash, strand_at(v, h)->messages);
	return rc;
}

void
values_purge(struct values *v)
{
	v->trash = 0;
	for (uint32_t h = SLAB_NONE; (h = values_strand_next(v, h)) != SLAB_NONE;) {
		struct strand *s = strand_at(v, h);
		const struct heap full = s->waiting;

		assert(s->trash.n == 0);
		s->front = SLAB_NONE;
		s->waiting = s->trash;
		s->trash = full;
	}
}

bool
values_is_trash(const struct values *v, uint32_t strand, uint32_t item)
{
	return heap_has(&strand_at(v, strand)->trash, item_at(v, item)->pos, item);
}

uint32_t
values_trash_pop(struct values *v)
{
	for (; v->trash < v->strands.fresh; v->trash++) {
		struct strand *s = strand_at(v, v->trash);

		if (!slab_has(&v->strands, v->trash) || !s->alive)
			continue;
		if (s->trash.n > 0)
			return heap_drop_last(&s->trash);
		shrink(v, &s->trash);
	}
	return SLAB_NONE;
}

/* ---- Memory and checks ---- */

size_t
values_bytes(const struct values *v)
{
	return sizeof *v + v->heap_bytes + slab_bytes(&v->values) + slab_bytes(&v->strands) + map_bytes(&v->names) +
	       map_bytes(&v->strand_of);
}

bool
values_have_changed(struct values *v)
{
	const bool changed = v->changed;

	v->changed = false;
	return changed;
}

static const char *
check_strand(const struct values *v, uint32_t h)
{
	const struct strand *s = strand_at(v, h);
	const struct value *x = value_at(v, s->value);

	if (!x->alive || (s->messages == 0 && h != v->loose))
		return "a strand of nothing";
	if (s->messages < s->waiting.n + s->trash.n + (s->front != SLAB_NONE) || s->waiting.max < s->messages - s->trash.n)
		return "a strand has no room for its messages";
	if (x->blocked)
		return s->front == SLAB_NONE ? NULL : "a blocked value has a message in front";
	if (s->front == SLAB_NONE)
		return s->waiting.n == 0 ? NULL : "an open strand has nothing in front";
	return s->waiting.n && values_before(item_at(v, s->waiting.nodes[0].handle), item_at(v, s->front))
		       ? "a better message waits behind the one in front"
		       : NULL;
}

const char *
values_check(const struct values *v)
{
	const char *wrong = NULL;
	uint32_t messages = 0, of_values = 0;

	for (uint32_t h = SLAB_NONE; !wrong && (h = values_strand_next(v, h)) != SLAB_NONE;) {
		wrong = check_strand(v, h);
		messages += strand_at(v, h)->messages;
	}
	for (uint32_t h = SLAB_NONE; !wrong && (h = values_next(v, h)) != SLAB_NONE;) {
		const struct value *x = value_at(v, h);

		of_values += x->messages;
		if (x->blocked != (x->closed || (x->max && x->leased >= x->max)))
			wrong = "a value is blocked without a reason, or is not";
	}
	return wrong || messages == of_values ? wrong : "a value counts what it does not have";
}
