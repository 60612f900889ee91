#include "engine/redis/redis_private.h"

#include "base/hash.h"
#include "base/mem.h"

#include <stdio.h>

/* A fixed key: every node must compute the same hashes, and a client that chooses names of
 * queues gains nothing by collisions. */
static const struct hash_key secret = { 0x736c756963650001ull, 0x736c756963650002ull };

struct qname {
	struct slice space, queue;
};

struct rqueue *
rqueue_at(const struct redis *r, uint32_t h)
{
	return slab_at(&r->queues, h);
}

static uint64_t
hash_of(struct slice space, struct slice queue)
{
	char text[2 * MESSAGE_NAME_MAX + 1];

	memcpy(text, space.p, space.n);
	text[space.n] = '/';
	memcpy(text + space.n + 1, queue.p, queue.n);
	return hash_keyed(&secret, text, space.n + 1 + queue.n);
}

static uint64_t
queue_hash(const void *items, uint32_t h)
{
	return ((const struct rqueue *)slab_at(items, h))->hash;
}

static bool
queue_is(const void *items, uint32_t h, const void *key)
{
	const struct rqueue *q = slab_at(items, h);
	const struct qname *name = key;

	return slice_eq(slice_of(q->space), name->space) &&
	       slice_eq(slice_of(q->name), name->queue);
}

void
rqueues_init(struct redis *r)
{
	slab_init_chunked(&r->queues, sizeof(struct rqueue), 8);
	map_init(&r->names, &r->queues, queue_hash, queue_is);
}

void
rqueues_release(struct redis *r)
{
	for (uint32_t i = 0; i < r->queues.used; i++) {
		mem_free(rqueue_at(r, i)->prios);
		mem_free(rqueue_at(r, i)->space_shown);
		mem_free(rqueue_at(r, i)->shown);
		mem_free((void *)rqueue_at(r, i)->base);
	}
	map_release(&r->names);
	slab_release(&r->queues);
}

uint32_t
rqueue_find(const struct redis *r, struct slice space, struct slice queue)
{
	const struct qname name = { space, queue };

	if (space.n == 0 || space.n > MESSAGE_NAME_MAX || queue.n == 0 || queue.n > MESSAGE_NAME_MAX)
		return SLAB_NONE;
	return map_find(&r->names, hash_of(space, queue), &name);
}

/* Allocates base, space and name in one piece. */
static int
name_queue(const struct redis *r, struct rqueue *q, struct slice space, struct slice queue)
{
	const char *prefix = r->conf.prefix;
	const size_t size = strlen(prefix) + strlen(r->segment) + 2 * (space.n + queue.n) + 32;
	char *p = mem_alloc(size);
	int n;

	if (!p)
		return SLU_ENOMEM;
	n = snprintf(p, size, "%s:q:%s%.*s:%.*s%s%s:", prefix, r->conf.tags ? "{" : "",
		     (int)queue.n, queue.p, (int)space.n, space.p, r->segment,
		     r->conf.tags ? "}" : "");
	q->base = p;
	q->slot = rnode_slot((struct slice){ p, (size_t)n });
	q->space = p + n + 1;
	q->name = q->space + space.n + 1;
	(void)snprintf(p + n + 1, size - (size_t)n - 1, "%.*s%c%.*s", (int)space.n, space.p, 0,
		       (int)queue.n, queue.p);
	return 0;
}

int
rqueue_open(struct redis *r, struct slice space, struct slice queue, uint32_t *out)
{
	struct rqueue *q;
	uint32_t h = rqueue_find(r, space, queue);
	int rc = 0;

	*out = h;
	if (h != SLAB_NONE)
		return 0;
	rc = map_reserve(&r->names, 1);
	h = rc ? SLAB_NONE : slab_new(&r->queues);
	if (h == SLAB_NONE)
		return SLU_ENOMEM;
	q = rqueue_at(r, h);
	q->next_due = SLU_NEVER;
	q->hash = hash_of(space, queue);
	rc = name_queue(r, q, space, queue);
	if (!rc)
		rc = map_insert(&r->names, q->hash, h);
	if (rc) {
		mem_free((void *)q->base);
		slab_free(&r->queues, h);
	}
	*out = h;
	return rc;
}

void
rqueue_forget(struct redis *r, uint32_t h)
{
	struct rqueue *q = rqueue_at(r, h);

	ledger_add_totals(&r->forgotten, &q->totals);
	q->totals = (struct ledger_totals){ 0 };
	q->next_due = SLU_NEVER;
	q->listed = false;
	q->gone = true;
}

int
rqueue_add_prio(struct rqueue *q, int32_t prio)
{
	for (uint32_t i = 0; i < q->n_prios; i++)
		if (q->prios[i] == prio)
			return 0;
	if (!mem_resize(&q->prios, q->n_prios + 1, sizeof *q->prios))
		return SLU_ENOMEM;
	q->prios[q->n_prios++] = prio;
	return 0;
}
