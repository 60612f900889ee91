/*
 * shares_peek.c - the next deliveries of a queue, in order, without delivering.
 *
 * At each level the flows are walked by the rule with copies of their tags. Only the first flows can be
 * among the first deliveries, so at most `max` of them are looked at.
 */
#include "core/queue/shares_private.h"

#include "base/mem.h"

#include <sluice/err.h>

/* A flow, or the plain messages, on the way. */
struct cursor {
	const struct heap *heap; /* NULL: plain messages */
	uint64_t tag;
	uint32_t weight;
	uint16_t rest;
	uint32_t *msgs; /* the first `n` messages of the heap */
	uint32_t n, at;
};

struct peek {
	const struct shares *s;
	uint32_t *out;
	uint32_t n, max;
	uint32_t *plain; /* the first plain messages */
	uint32_t n_plain, at_plain;
	struct heap turns; /* of cursors */
};

static bool
has_plain(const struct peek *p, int32_t prio)
{
	return p->at_plain < p->n_plain && shares_item(p->s, p->plain[p->at_plain])->prio == prio;
}

/* Makes the list of a cursor longer, if it has ended and its heap has more. */
static int
fill(struct cursor *c, uint32_t max)
{
	const uint32_t more = c->n ? 2 * c->n : 1, want = more < max ? more : max;

	if (c->at < c->n || c->n == c->heap->n || c->n == max)
		return 0;
	if (!mem_resize(&c->msgs, want, sizeof *c->msgs))
		return SLU_ENOMEM;
	return heap_peek(c->heap, c->msgs, want, &c->n);
}

/* Gives the cursor its next turn, if it has a message. */
static int
queue_up(struct peek *p, struct cursor *all, uint32_t i, int32_t prio)
{
	struct cursor *c = &all[i];
	const int rc = c->heap ? fill(c, p->max) : 0;
	uint32_t item = SLAB_NONE;

	if (rc)
		return rc;
	if (!c->heap && has_plain(p, prio))
		item = p->plain[p->at_plain];
	else if (c->heap && c->at < c->n)
		item = c->msgs[c->at];
	if (item != SLAB_NONE)
		heap_push(&p->turns, (struct rank){ .b = c->tag, .c = shares_item(p->s, item)->seq }, i);
	return 0;
}

static void
take_turn(struct peek *p, struct cursor *c)
{
	p->out[p->n++] = c->heap ? c->msgs[c->at++] : p->plain[p->at_plain++];
	c->tag += share_cost(c->weight, &c->rest);
}

static int
walk_cursors(struct peek *p, struct cursor *all, uint32_t n, int32_t prio)
{
	int rc = heap_reserve(&p->turns, n);

	for (uint32_t i = 0; !rc && i < n; i++)
		rc = queue_up(p, all, i, prio);
	while (!rc && p->turns.n > 0 && p->n < p->max) {
		const uint32_t i = heap_pop(&p->turns);

		take_turn(p, &all[i]);
		rc = queue_up(p, all, i, prio);
	}
	while (p->turns.n > 0)
		(void)heap_pop(&p->turns); /* beyond max */
	return rc;
}

static int
walk_level(struct peek *p, const struct level *l)
{
	struct cursor *all = mem_array(p->max + 1, sizeof *all);
	uint32_t *flows = mem_array(p->max + 1, sizeof *flows);
	uint32_t n = 0;
	int rc = all && flows ? heap_peek(&l->active, flows, p->max, &n) : SLU_ENOMEM;

	for (uint32_t i = 0; !rc && i < n; i++) {
		const struct flow *f = flow_at(p->s, flows[i]);

		all[i] = (struct cursor){ .heap = &f->ready, .tag = f->tag, .weight = share_at(p->s, f->share)->weight, .rest = f->rest };
	}
	if (!rc) {
		all[n] = (struct cursor){ .tag = plain_tag(l), .weight = 1 };
		rc = walk_cursors(p, all, n + 1, l->prio);
	}
	for (uint32_t i = 0; all && i < n; i++)
		mem_free(all[i].msgs);
	mem_free(flows);
	mem_free(all);
	return rc;
}

/* The plain messages of priorities before `prio`. */
static void
walk_plain(struct peek *p, const struct level *before)
{
	while (p->n < p->max && p->at_plain < p->n_plain &&
	       (!before || shares_item(p->s, p->plain[p->at_plain])->prio < before->prio))
		p->out[p->n++] = p->plain[p->at_plain++];
}

static int
walk(struct peek *p, const uint32_t *levels, uint32_t n_levels)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < n_levels && p->n < p->max; i++) {
		walk_plain(p, level_at(p->s, levels[i]));
		rc = walk_level(p, level_at(p->s, levels[i]));
	}
	if (!rc)
		walk_plain(p, NULL);
	return rc;
}

int
shares_peek(const struct shares *s, const struct queue *plain, uint32_t *msgs, uint32_t max, uint32_t *n)
{
	struct peek p = { .s = s, .out = msgs, .max = max };
	uint32_t *levels = mem_array(max + 1, sizeof *levels);
	uint32_t n_levels = 0;
	int rc;

	heap_init(&p.turns, NULL, 0);
	p.plain = mem_array(max + 1, sizeof *p.plain);
	rc = levels && p.plain ? 0 : SLU_ENOMEM;
	if (!rc && !s->plain_blocked)
		rc = queue_peek(plain, p.plain, max, &p.n_plain);
	if (!rc)
		rc = heap_peek(&s->order, levels, max, &n_levels);
	if (!rc)
		rc = walk(&p, levels, n_levels);
	heap_release(&p.turns);
	mem_free(p.plain);
	mem_free(levels);
	*n = p.n;
	return rc;
}

slu_time
shares_oldest(const struct shares *s, uint32_t look)
{
	slu_time oldest = SLU_NEVER;

	for (uint32_t i = 0; i < s->order.n && look > 0; i++) {
		const struct heap *active = &level_at(s, s->order.nodes[i].handle)->active;

		for (uint32_t k = 0; k < active->n && look > 0; k++, look--) {
			const struct heap *ready = &flow_at(s, active->nodes[k].handle)->ready;
			const slu_time due = (slu_time)rank_time((int64_t)ready->nodes[0].b);

			oldest = due < oldest ? due : oldest;
		}
	}
	return oldest;
}

slu_time
shares_oldest_of(const struct shares *s, uint32_t share, uint32_t look)
{
	slu_time oldest = SLU_NEVER;

	for (uint32_t h = share_at(s, share)->flows; h != SLAB_NONE && look > 0; h = flow_at(s, h)->next, look--) {
		const struct heap *const ready = &flow_at(s, h)->ready;
		const slu_time due = ready->n ? (slu_time)rank_time((int64_t)ready->nodes[0].b) : SLU_NEVER;

		oldest = due < oldest ? due : oldest;
	}
	return oldest;
}
