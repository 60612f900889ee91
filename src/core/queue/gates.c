#include "core/queue/gates.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/time.h"

#include <sluice/err.h>

#include <assert.h>
#include <string.h>

enum {
	AHEAD = 12,    /* gates_reserve makes room for so many more, */
	PART = 16,     /* and for this part of those that there are: most calls find it */
	MANY = 1 << 17 /* gates: with so many, rounds of gates_sweep follow sooner */
};

#define SWEEP_SOON (1 * SLU_SEC)
#define SWEEP_LATE (10 * SLU_SEC)

struct gate_name {
	uint64_t name;
	uint8_t kind;
};

static uint64_t
hash_gate(uint8_t kind, uint64_t name)
{
	return hash_number(name + kind);
}

static uint64_t
gate_hash(const void *g, uint32_t h)
{
	const struct queue_gate *x = gate_at(g, h);

	return hash_gate(x->kind, x->name);
}

static bool
gate_is(const void *g, uint32_t h, const void *key)
{
	const struct queue_gate *x = gate_at(g, h);
	const struct gate_name *name = key;

	return x->kind == name->kind && x->name == name->name;
}

int
gates_new(struct gates **out)
{
	struct gates *g = mem_zalloc(sizeof *g);

	if (!g)
		return SLU_ENOMEM;
	slab_init_chunked(&g->slab, sizeof(struct queue_gate), SLAB_FEW_BITS); /* most queues have few */
	map_init(&g->names, g, gate_hash, gate_is);
	heap_init(&g->timed, &g->slab, offsetof(struct queue_gate, pos));
	g->parked = g->trash = SLAB_NONE;
	g->sweep = g->later = SLU_NEVER;
	g->changed = true;
	for (int k = 0; k < GATE_KINDS; k++)
		g->nameless[k] = SLAB_NONE;
	*out = g;
	return 0;
}

void
gates_free(struct gates *g)
{
	if (!g)
		return;
	for (uint32_t h = gates_next(g, SLAB_NONE); h != SLAB_NONE; h = gates_next(g, h))
		mem_free(gate_at(g, h)->text);
	mem_free(g->spare);
	heap_release(&g->timed);
	map_release(&g->names);
	slab_release(&g->slab);
	mem_free(g);
}

int
gates_reserve(struct gates *g, uint32_t n)
{
	const uint32_t more = n + AHEAD + g->slab.used / PART;
	int rc;

	if (g->slab.used + n <= g->room)
		return 0;
	g->changed = true;
	rc = slab_reserve(&g->slab, more);
	if (!rc)
		rc = map_reserve(&g->names, more);
	if (!rc)
		rc = heap_reserve(&g->timed, g->slab.used + more);
	if (!rc)
		g->room = g->slab.used + more;
	return rc;
}

uint32_t
gates_find(const struct gates *g, enum gate_kind kind, uint64_t name)
{
	const struct gate_name key = { name, (uint8_t)kind };

	if (!name)
		return g->nameless[kind];
	return g->slab.used ? map_find(&g->names, hash_gate(key.kind, name), &key) : SLAB_NONE;
}

/* GATES-5 */
static bool
is_gate(const struct gates *g, uint32_t h, enum gate_kind kind, uint64_t name)
{
	const struct queue_gate *x = h < g->slab.fresh && slab_has(&g->slab, h) ? gate_at(g, h) : NULL;

	return x && x->alive && x->name == name && x->kind == kind;
}

uint32_t
gates_find_at(const struct gates *g, enum gate_kind kind, uint64_t name, uint32_t *hint)
{
	uint32_t h;

	if (is_gate(g, *hint, kind, name))
		return *hint;
	h = gates_find(g, kind, name);
	*hint = h == SLAB_NONE ? *hint : h;
	return h;
}

slu_time
gates_closed(const struct gates *g, enum gate_kind kind, uint64_t name)
{
	const uint32_t h = gates_find(g, kind, name);

	return h == SLAB_NONE ? 0 : gate_at(g, h)->until;
}

/* GATES-1: the state of the bucket. One that is full, or has not been used, was empty at `start`. */
static slu_time
full_of(const struct gates *g, const struct queue_gate *x, slu_time now)
{
	if (x->full > now || !g->start)
		return x->full;
	return time_add(g->start, g->all[x->kind]);
}

static uint32_t
make(struct gates *g, enum gate_kind kind, uint64_t name)
{
	const uint32_t h = slab_new(&g->slab);
	int rc;

	assert(h != SLAB_NONE); /* reserved */
	*gate_at(g, h) = (struct queue_gate){
		.name = name,
		.parked = SLAB_NONE,
		.pos = HEAP_OUT,
		.kind = (uint8_t)kind,
		.alive = true,
	};
	if (!name)
		g->nameless[kind] = h;
	rc = name ? map_insert(&g->names, hash_gate((uint8_t)kind, name), h) : 0;
	assert(rc == 0); /* reserved */
	(void)rc;
	return h;
}

uint32_t
gates_make(struct gates *g, enum gate_kind kind, uint64_t name)
{
	const uint32_t h = gates_find(g, kind, name);

	return h == SLAB_NONE ? make(g, kind, name) : h;
}

uint32_t
gates_make_at(struct gates *g, enum gate_kind kind, uint64_t name, uint32_t *hint)
{
	const uint32_t h = gates_find_at(g, kind, name, hint);

	if (h == SLAB_NONE)
		*hint = make(g, kind, name);
	return *hint;
}

void
gates_set_rules(struct gates *g, const struct bucket_rule rules[static GATE_KINDS])
{
	for (int k = 0; k < GATE_KINDS; k++) {
		g->rules[k] = rules[k];
		g->one[k] = rules[k].rate ? bucket_time(&rules[k], 1) : 0;
		g->all[k] = rules[k].rate ? bucket_time(&rules[k], bucket_burst(&rules[k])) : 0;
	}
}

/* GATES-4 */
static slu_time
next_round(const struct gates *g, slu_time now)
{
	return time_add(now, g->slab.used < MANY ? SWEEP_LATE : SWEEP_SOON);
}

/* The gate stays open. */
static void
expect_sweep(struct gates *g, slu_time now)
{
	if (g->sweep == SLU_NEVER)
		g->sweep = next_round(g, now);
}

bool
gates_take(struct gates *g, uint32_t gate, slu_time now)
{
	struct queue_gate *x = gate_at(g, gate);
	const slu_time full = full_of(g, x, now);

	x->full = time_add(full > now ? full : now, g->one[x->kind]);
	expect_sweep(g, now);
	return x->until || x->hold || x->broken || x->half || x->full - now > g->all[x->kind] - g->one[x->kind];
}

void
gates_empty(struct gates *g, uint32_t gate)
{
	gate_at(g, gate)->full = 0;
}

static void
free_text(struct gates *g, char **text)
{
	g->changed = true;
	g->text_bytes -= *text ? strlen(*text) + 1 : 0;
	mem_free(*text);
	*text = NULL;
}

int
gates_reserve_hold(struct gates *g, struct slice name)
{
	const int rc = gates_reserve(g, 1);

	free_text(g, &g->spare);
	if (!rc)
		g->spare = mem_zalloc(name.n + 1);
	if (g->spare && name.n)
		memcpy(g->spare, name.p, name.n);
	g->text_bytes += g->spare ? strlen(g->spare) + 1 : 0;
	return rc || g->spare ? rc : SLU_ENOMEM;
}

void
gates_hold(struct gates *g, uint32_t gate, slu_time until)
{
	struct queue_gate *x = gate_at(g, gate);

	g->held += (until != 0) - (uint32_t)(x->hold != 0);
	x->hold = until;
	if (!until) {
		free_text(g, &x->text);
	} else if (!x->text) {
		assert(g->spare); /* reserved */
		x->text = g->spare;
		g->spare = NULL;
	}
}

/* After `start` a rate of any kind has no token yet, so the whole queue is closed until it has one. */
static slu_time
first_token(const struct gates *g)
{
	slu_time wait = 0;

	for (int k = 0; k < GATE_KINDS; k++)
		if (g->rules[k].rate && SLU_SEC / g->rules[k].rate > wait)
			wait = SLU_SEC / g->rules[k].rate;
	return g->start && wait ? time_add(g->start, wait) : 0;
}

static slu_time
closed_until(const struct gates *g, const struct queue_gate *x, slu_time now)
{
	const struct bucket_rule *r = &g->rules[x->kind];
	const slu_time wait = r->rate ? bucket_wait(r, full_of(g, x, now), 1, now) : 0;
	const slu_time first = x->kind == GATE_QUEUE ? first_token(g) : 0;
	slu_time until = wait ? time_add(now, wait) : 0;

	until = first > until ? first : until;
	until = x->hold > until ? x->hold : until;
	until = x->broken > until ? x->broken : until;
	return until > now ? until : 0;
}

static void
drop(struct gates *g, uint32_t h)
{
	struct queue_gate *x = gate_at(g, h);

	if (x->name)
		map_remove(&g->names, hash_gate(x->kind, x->name), h);
	else
		g->nameless[x->kind] = SLAB_NONE;
	x->alive = false;
	slab_free(&g->slab, h);
	g->changed = true;
}

static bool
is_needed(const struct queue_gate *x, slu_time now)
{
	return x->full > now || x->parked != SLAB_NONE || x->half;
}

bool
gates_rank(struct gates *g, uint32_t gate, slu_time now)
{
	struct queue_gate *x = gate_at(g, gate);

	g->steps++;
	if (!g->rules[x->kind].rate)
		x->full = 0;
	if (x->hold && x->hold <= now)
		gates_hold(g, gate, 0);
	x->until = closed_until(g, x, now);
	if (x->pos != HEAP_OUT)
		heap_remove(&g->timed, x->pos);
	if (x->until)
		heap_push(&g->timed, (struct rank){ .b = rank_time(x->until), .c = x->name }, gate);
	else if (is_needed(x, now))
		expect_sweep(g, now);
	else
		drop(g, gate);
	return x->until != 0;
}

/* A gate of the round. */
static void
look(struct gates *g, uint32_t h, slu_time now)
{
	const struct queue_gate *x = slab_has(&g->slab, h) ? gate_at(g, h) : NULL;

	if (!x || !x->alive || x->pos != HEAP_OUT)
		return;
	if (!is_needed(x, now))
		drop(g, h);
	else if (x->full > now && x->full < g->later)
		g->later = x->full;
}

uint32_t
gates_sweep(struct gates *g, slu_time now, uint32_t max)
{
	uint32_t n = 0;

	if (g->sweep > now)
		return 0;
	for (; n < max && g->hand < g->slab.fresh; n++)
		look(g, g->hand++, now);
	if (g->hand < g->slab.fresh)
		return n;
	g->sweep = g->later > next_round(g, now) ? g->later : next_round(g, now);
	g->later = SLU_NEVER;
	g->hand = 0;
	return n;
}

uint32_t
gates_next(const struct gates *g, uint32_t gate)
{
	for (uint32_t h = gate + 1; h < g->slab.fresh; h++) /* SLAB_NONE + 1 is 0 */
		if (slab_has(&g->slab, h) && gate_at(g, h)->alive)
			return h;
	return SLAB_NONE;
}

static slu_time
next_opens(const struct gates *g)
{
	return g->timed.n ? (slu_time)rank_time((int64_t)g->timed.nodes[0].b) : SLU_NEVER;
}

slu_time
gates_next_due(const struct gates *g)
{
	const slu_time opens = next_opens(g);

	return opens < g->sweep ? opens : g->sweep;
}

uint32_t
gates_due(const struct gates *g, slu_time now)
{
	return next_opens(g) <= now ? g->timed.nodes[0].handle : SLAB_NONE;
}

uint32_t
gates_tokens(const struct gates *g, enum gate_kind kind, uint32_t gate, slu_time now)
{
	const struct bucket_rule *r = &g->rules[kind];
	const struct queue_gate unused = { .kind = (uint8_t)kind };
	const struct queue_gate *x = gate == SLAB_NONE ? &unused : gate_at(g, gate);

	return r->rate ? bucket_tokens(r, full_of(g, x, now), now) : 0;
}

bool
gates_are_rated(const struct gates *g)
{
	for (int k = 0; k < GATE_KINDS; k++)
		if (g->rules[k].rate)
			return true;
	return false;
}

size_t
gates_bytes(const struct gates *g)
{
	return sizeof *g + g->text_bytes + slab_bytes(&g->slab) + map_bytes(&g->names) + heap_bytes(&g->timed);
}
