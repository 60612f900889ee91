#include "broker/dispatch.h"

#include <assert.h>

struct waiter {
	struct list node;  /* in its waitlist */
	struct list any;   /* in claims or results */
	struct list lapse; /* in lapsed, or in no list */
	struct op *op;
	uint32_t waitlist;
	uint32_t pos; /* in ends, or HEAP_OUT */
};

struct waitlist {
	struct list waiters; /* not empty once the waitlist is in the map */
	struct list marked;  /* in no list: not marked */
	uint64_t hash;
	uint32_t ready; /* how many waiters may be served; UINT32_MAX: not known. Not with `late` */
	uint32_t n;     /* waiters */
	uint32_t picky; /* waiters that take some kinds alone */
	uint32_t late;  /* DISPATCH-5: so many of the last waiters run; 0: `ready` counts */
	uint32_t handle;
};

enum {
	WAIT_ROOM = OP_WAITS /* beside enum op_wait: room in the credit of the stream `id` */
};

/* What an op waits for: a thing with a name, or (id other than 0) with a number. */
struct want {
	int kind;                 /* enum op_wait, or WAIT_ROOM */
	struct slice space, name; /* name: of the queue, or the key */
	uint64_t id;              /* WAIT_RESULT: the message; WAIT_ROOM: the stream */
};

/* An op that never waits asks about the claims of its queue. */
static struct want
want_of(const struct op *op)
{
	const enum op_wait wait = op_verbs[op->verb].waits;

	if (op->route.stalled)
		return (struct want){ .kind = WAIT_ROOM, .id = op->claim.stream };
	if (wait == OP_WAIT_RESULT)
		return (struct want){ .kind = wait, .id = op->id };
	return (struct want){
		.kind = wait == OP_WAIT_NONE ? OP_WAIT_MESSAGE : wait,
		.space = op->space,
		.name = wait == OP_WAIT_KEY ? op->lock.key : op->queue,
	};
}

static bool
watches(const struct op *op)
{
	return op_verbs[op->verb].waits == OP_WAIT_HEAD;
}

static uint64_t
want_hash(const struct dispatch *d, const struct want *w)
{
	char text[2 * MESSAGE_NAME_MAX + 1];

	_Static_assert((int)LOCK_KEY_MAX <= (int)MESSAGE_NAME_MAX, "a key fits");
	if (w->id)
		return hash_keyed(&d->secret, &w->id, sizeof w->id) + (unsigned)w->kind;
	assert(w->space.n <= MESSAGE_NAME_MAX && w->name.n <= MESSAGE_NAME_MAX);
	memcpy(text, w->space.p, w->space.n);
	text[w->space.n] = (char)w->kind; /* no name has this byte */
	memcpy(text + w->space.n + 1, w->name.p, w->name.n);
	return hash_keyed(&d->secret, text, w->space.n + 1 + w->name.n);
}

static struct waitlist *
waitlist_at(const struct dispatch *d, uint32_t h)
{
	return slab_at(&d->waitlists, h);
}

static struct waiter *
waiter_at(const struct dispatch *d, uint32_t h)
{
	return slab_at(&d->waiters, h);
}

static struct waiter *
first_waiter(const struct waitlist *waitlist)
{
	return CONTAINER(waitlist->waiters.next, struct waiter, node);
}

static uint64_t
waitlist_hash(const void *items, uint32_t h)
{
	const struct waitlist *waitlist = slab_at(items, h);

	return waitlist->hash;
}

static bool
waitlist_is(const void *items, uint32_t h, const void *key)
{
	const struct waitlist *waitlist = slab_at(items, h);
	const struct want *want = key;
	const struct want has = want_of(first_waiter(waitlist)->op);

	return has.kind == want->kind && has.id == want->id &&
	       slice_eq(has.space, want->space) && slice_eq(has.name, want->name);
}

static uint64_t
stream_hash(const void *d, uint32_t h)
{
	const uint64_t stream = waiter_at(d, h)->op->claim.stream;

	return hash_keyed(&((const struct dispatch *)d)->secret, &stream, sizeof stream);
}

static bool
stream_is(const void *d, uint32_t h, const void *key)
{
	return waiter_at(d, h)->op->claim.stream == *(const uint64_t *)key;
}

void
dispatch_init(struct dispatch *d, const struct hash_key *secret)
{
	*d = (struct dispatch){ .secret = *secret };
	slab_init_chunked(&d->waiters, sizeof(struct waiter), 8);
	slab_init_chunked(&d->waitlists, sizeof(struct waitlist), 8);
	map_init(&d->names, &d->waitlists, waitlist_hash, waitlist_is);
	map_init(&d->streams, d, stream_hash, stream_is);
	heap_init(&d->ends, &d->waiters, offsetof(struct waiter, pos));
	list_init(&d->claims);
	list_init(&d->results);
	list_init(&d->marked);
	list_init(&d->lapsed);
}

void
dispatch_release(struct dispatch *d)
{
	assert(d->waiters.used == 0);
	heap_release(&d->ends);
	map_release(&d->names);
	map_release(&d->streams);
	slab_release(&d->waitlists);
	slab_release(&d->waiters);
}

/* ---- Lines ---- */

static struct waitlist *
find_waitlist(const struct dispatch *d, const struct want *want)
{
	uint32_t h;

	if (d->waitlists.used == 0)
		return NULL;
	h = map_find(&d->names, want_hash(d, want), want);
	return h == MAP_NONE ? NULL : waitlist_at(d, h);
}

/* The waitlist enters the map with its first waiter. NULL: no memory. */
static struct waitlist *
add_waitlist(struct dispatch *d, const struct want *want)
{
	const uint32_t h = map_reserve(&d->names, 1) ? SLAB_NONE : slab_new(&d->waitlists);
	struct waitlist *waitlist;

	if (h == SLAB_NONE)
		return NULL;
	waitlist = waitlist_at(d, h);
	*waitlist = (struct waitlist){ .hash = want_hash(d, want), .handle = h };
	list_init(&waitlist->waiters);
	list_init(&waitlist->marked);
	return waitlist;
}

static void
remove_waitlist(struct dispatch *d, struct waitlist *waitlist)
{
	list_remove(&waitlist->marked);
	slab_free(&d->waitlists, waitlist->handle);
}

static void
mark(struct dispatch *d, struct waitlist *waitlist, uint32_t n)
{
	if (list_is_empty(&waitlist->marked))
		list_append(&d->marked, &waitlist->marked);
	if (waitlist->picky || waitlist->late)
		waitlist->late = waitlist->n;
	waitlist->ready = n;
}

/* DISPATCH-5: an op has come to the end of a waitlist with claims of kinds. */
static void
mark_last(struct dispatch *d, struct waitlist *waitlist)
{
	const bool is_marked = !list_is_empty(&waitlist->marked);
	const uint32_t late = is_marked && !waitlist->late ? waitlist->n : waitlist->late + 1;

	mark(d, waitlist, UINT32_MAX);
	waitlist->late = late < waitlist->n ? late : waitlist->n;
}

bool
dispatch_has_waiters(const struct dispatch *d, const struct op *op)
{
	const struct want want = want_of(op);

	return find_waitlist(d, &want) != NULL;
}

bool
dispatch_is_waited_for(const struct dispatch *d, struct slice space, struct slice queue)
{
	static const enum op_wait kinds[] = { OP_WAIT_MESSAGE, OP_WAIT_LOOK, OP_WAIT_HEAD };

	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (find_waitlist(d, &(struct want){ kinds[i], space, queue, 0 }))
			return true;
	return false;
}

uint32_t
dispatch_waiting(const struct dispatch *d, const struct op *op)
{
	const struct want want = want_of(op);
	const struct waitlist *waitlist = find_waitlist(d, &want);

	return waitlist ? waitlist->n : 0;
}

uint32_t
dispatch_takers(const struct dispatch *d, struct slice space, struct slice queue, struct slice line)
{
	const struct waitlist *waitlist = find_waitlist(d, &(struct want){ OP_WAIT_MESSAGE, space, queue, 0 });
	uint32_t n = 0;

	if (!waitlist || !waitlist->picky)
		return waitlist ? waitlist->n : 0;
	LIST_EACH(node, &waitlist->waiters)
		n += kinds_take(CONTAINER(node, struct waiter, node)->op->claim.kinds, line);
	return n;
}

uint32_t
dispatch_waiting_for_key(const struct dispatch *d, struct slice space, struct slice key)
{
	const struct waitlist *waitlist = find_waitlist(d, &(struct want){ OP_WAIT_KEY, space, key, 0 });

	return waitlist ? waitlist->n : 0;
}

/* ---- In and out ---- */

static bool
is_stream(const struct op *op)
{
	return op->verb == OP_CLAIM && op->claim.stream != 0;
}

static bool
is_picky(const struct op *op)
{
	return op->verb == OP_CLAIM && op->claim.kinds.n != 0;
}

static void
join_waitlist(struct dispatch *d, struct waitlist *waitlist, uint32_t h, struct op *op)
{
	const bool is_first = list_is_empty(&waitlist->waiters);
	const slu_time end = op->route.stalled || op->wait > SLU_NEVER - op->route.arrived
				     ? SLU_NEVER
				     : op->route.arrived + op->wait;
	struct waiter *w = waiter_at(d, h);
	int rc;

	*w = (struct waiter){ .op = op, .waitlist = waitlist->handle, .pos = HEAP_OUT };
	list_append(&waitlist->waiters, &w->node);
	waitlist->n++;
	waitlist->picky += is_picky(op);
	d->watches += watches(op);
	list_append(op_verbs[op->verb].waits == OP_WAIT_RESULT ? &d->results : &d->claims, &w->any);
	if (end != SLU_NEVER)
		heap_push(&d->ends, (struct rank){ .b = rank_time(end), .c = h }, h);
	list_init(&w->lapse);
	if (is_first) {
		rc = map_insert(&d->names, waitlist->hash, waitlist->handle);
		assert(rc == 0); /* reserved by add_waitlist */
	}
	if (is_stream(op)) {
		rc = map_insert(&d->streams, stream_hash(d, h), h);
		assert(rc == 0); /* reserved by dispatch_park */
	}
	op->route.waiter = h;
}

int
dispatch_park(struct dispatch *d, struct op *op, bool run)
{
	const struct want want = want_of(op);
	struct waitlist *waitlist;
	bool is_new;
	uint32_t h;

	if (op->route.waiter != SLAB_NONE)
		return 0;
	if (heap_reserve(&d->ends, d->waiters.used + 1) || (is_stream(op) && map_reserve(&d->streams, 1)))
		return SLU_ENOMEM;
	h = slab_new(&d->waiters);
	if (h == SLAB_NONE)
		return SLU_ENOMEM;
	waitlist = find_waitlist(d, &want);
	is_new = !waitlist;
	if (!waitlist)
		waitlist = add_waitlist(d, &want);
	if (!waitlist) {
		slab_free(&d->waiters, h);
		return SLU_ENOMEM;
	}
	join_waitlist(d, waitlist, h, op);
	if (run && waitlist->picky)
		mark_last(d, waitlist);
	else if (run && is_new)
		mark(d, waitlist, UINT32_MAX);
	return 0;
}

void
dispatch_leave(struct dispatch *d, struct op *op)
{
	struct waiter *w;
	struct waitlist *waitlist;

	if (op->route.waiter == SLAB_NONE)
		return;
	w = waiter_at(d, op->route.waiter);
	waitlist = waitlist_at(d, w->waitlist);
	if (w->node.next == w->node.prev) /* the last waiter: the map finds the waitlist by it */
		map_remove(&d->names, waitlist->hash, waitlist->handle);
	list_remove(&w->node);
	list_remove(&w->any);
	list_remove(&w->lapse);
	if (is_stream(op))
		map_remove(&d->streams, stream_hash(d, op->route.waiter), op->route.waiter);
	waitlist->n--;
	waitlist->picky -= is_picky(op);
	d->watches -= watches(op);
	if (w->pos != HEAP_OUT)
		heap_remove(&d->ends, w->pos);
	slab_free(&d->waiters, op->route.waiter);
	op->route.waiter = SLAB_NONE;
	if (list_is_empty(&waitlist->waiters))
		remove_waitlist(d, waitlist);
}

/* ---- Waking ---- */

/* Marks all waitlists except waitlists of streams: messages give no credit. */
static void
mark_all(struct dispatch *d, uint32_t n)
{
	LIST_EACH(any, &d->claims) {
		const struct waiter *const w = CONTAINER(any, struct waiter, any);

		if (!w->op->route.stalled)
			mark(d, waitlist_at(d, w->waitlist), n);
	}
}

void
dispatch_ready(struct dispatch *d, struct slice space, struct slice queue, uint32_t n)
{
	struct want want = { OP_WAIT_MESSAGE, space, queue, 0 };
	struct waitlist *waitlist;

	if (d->waitlists.used == 0 || n == 0)
		return;
	if (queue.n == 0) {
		mark_all(d, n);
		return;
	}
	waitlist = find_waitlist(d, &want);
	if (waitlist)
		mark(d, waitlist, n);
	want.kind = OP_WAIT_LOOK;
	waitlist = find_waitlist(d, &want);
	if (waitlist)
		mark(d, waitlist, UINT32_MAX);
	dispatch_head_changed(d, space, queue);
}

/* Watches are few beside claims: if the queue is not known, all of them are marked. */
void
dispatch_head_changed(struct dispatch *d, struct slice space, struct slice queue)
{
	const struct want want = { OP_WAIT_HEAD, space, queue, 0 };
	struct waitlist *waitlist;

	if (d->watches == 0)
		return;
	if (queue.n > 0) {
		waitlist = find_waitlist(d, &want);
		if (waitlist)
			mark(d, waitlist, UINT32_MAX);
		return;
	}
	LIST_EACH(any, &d->claims) {
		const struct waiter *const w = CONTAINER(any, struct waiter, any);

		if (watches(w->op))
			mark(d, waitlist_at(d, w->waitlist), UINT32_MAX);
	}
}

struct op *
dispatch_room(struct dispatch *d, uint64_t stream)
{
	const struct want want = { .kind = WAIT_ROOM, .id = stream };
	const struct waitlist *const waitlist = find_waitlist(d, &want);
	struct op *op;

	if (!waitlist)
		return NULL;
	op = first_waiter(waitlist)->op;
	dispatch_leave(d, op);
	op->route.stalled = false;
	return op;
}

void
dispatch_lapse(struct dispatch *d, uint64_t stream)
{
	const uint32_t h = stream ? map_find(&d->streams, hash_keyed(&d->secret, &stream, sizeof stream), &stream)
				  : MAP_NONE;

	if (h != MAP_NONE && list_is_empty(&waiter_at(d, h)->lapse))
		list_append(&d->lapsed, &waiter_at(d, h)->lapse);
}

struct op *
dispatch_lapsed(struct dispatch *d)
{
	struct op *op;

	if (list_is_empty(&d->lapsed))
		return NULL;
	op = CONTAINER(d->lapsed.next, struct waiter, lapse)->op;
	dispatch_leave(d, op);
	return op;
}

void
dispatch_freed(struct dispatch *d, struct slice space, struct slice key)
{
	const struct want want = { OP_WAIT_KEY, space, key, 0 };
	struct waitlist *waitlist = find_waitlist(d, &want);

	if (waitlist)
		mark(d, waitlist, 1);
}

void
dispatch_gone(struct dispatch *d, uint64_t id)
{
	const struct want want = { .kind = OP_WAIT_RESULT, .id = id };
	struct waitlist *waitlist = list_is_empty(&d->results) ? NULL : find_waitlist(d, &want);

	if (waitlist)
		mark(d, waitlist, UINT32_MAX);
}

void
dispatch_gone_all(struct dispatch *d)
{
	LIST_EACH(any, &d->results)
		mark(d, waitlist_at(d, CONTAINER(any, struct waiter, any)->waitlist), UINT32_MAX);
}

/* Appends the first ops of a waitlist to the batch, up to max. Returns how many; *all: no op is behind them. */
static uint32_t
join_first(const struct waitlist *waitlist, uint32_t max, struct op ***tail, bool *all)
{
	const struct list *n = waitlist->waiters.next;
	uint32_t joined = 0;

	for (; n != &waitlist->waiters && joined < max; n = n->next, joined++) {
		struct op *op = CONTAINER(n, struct waiter, node)->op;

		op->route.next = NULL;
		**tail = op;
		*tail = &op->route.next;
	}
	*all = n == &waitlist->waiters;
	return joined;
}

/* DISPATCH-5: the same for the last ops of a waitlist. Ops that have left may have been any of them: then others run again. */
static uint32_t
join_late(struct waitlist *waitlist, uint32_t max, struct op ***tail)
{
	const uint32_t late = waitlist->late < waitlist->n ? waitlist->late : waitlist->n;
	const uint32_t joins = late < max ? late : max;
	struct list *n = waitlist->waiters.next;

	for (uint32_t i = late; i < waitlist->n; i++)
		n = n->next;
	for (uint32_t i = 0; i < joins; i++, n = n->next) {
		struct op *op = CONTAINER(n, struct waiter, node)->op;

		op->route.next = NULL;
		**tail = op;
		*tail = &op->route.next;
	}
	waitlist->late = late - joins;
	return joins;
}

struct op *
dispatch_join(struct dispatch *d, uint32_t max, struct op **last)
{
	struct op *first = NULL;
	struct op **tail = &first;
	bool all;

	LIST_EACH_SAFE(n, &d->marked) {
		struct waitlist *waitlist = CONTAINER(n, struct waitlist, marked);
		const uint32_t want = waitlist->ready < max ? waitlist->ready : max;
		const bool is_late = waitlist->late > 0;
		const uint32_t joined = is_late ? join_late(waitlist, max, &tail) : join_first(waitlist, want, &tail, &all);

		max -= joined;
		if (is_late) {
			all = waitlist->late == 0;
			waitlist->ready = UINT32_MAX;
		}
		if (waitlist->ready != UINT32_MAX)
			waitlist->ready -= joined;
		if (all || waitlist->ready == 0)
			list_remove(&waitlist->marked);
		if (max == 0)
			break;
	}
	*last = first ? CONTAINER(tail, struct op, route.next) : NULL;
	return first;
}

/* ---- Ending ---- */

/* The waiter whose time is over first, or NULL. */
static const struct waiter *
first_over(const struct dispatch *d, slu_time now)
{
	const struct heap_node *first = heap_first(&d->ends);

	return first && (slu_time)rank_time((int64_t)first->b) <= now ? waiter_at(d, first->handle) : NULL;
}

/* If the waitlist of the first waiter is marked, the search ends: the waitlist runs before the next call. */
struct op *
dispatch_expire(struct dispatch *d, slu_time now)
{
	const struct waiter *w = first_over(d, now);
	struct op *op;

	if (!w || !list_is_empty(&waitlist_at(d, w->waitlist)->marked))
		return NULL;
	op = w->op;
	dispatch_leave(d, op);
	return op;
}

struct op *
dispatch_overdue(struct dispatch *d, slu_time now)
{
	const struct waiter *w = first_over(d, now);
	struct op *const op = w ? w->op : NULL;

	if (op)
		dispatch_leave(d, op);
	return op;
}

struct op *
dispatch_any(struct dispatch *d, bool claims)
{
	struct list *any = d->claims.next;
	struct op *op;

	if (any == &d->claims && !claims)
		any = d->results.next;
	if (any == &d->claims || any == &d->results)
		return NULL;
	op = CONTAINER(any, struct waiter, any)->op;
	dispatch_leave(d, op);
	return op;
}

slu_time
dispatch_first_end(const struct dispatch *d)
{
	const struct heap_node *first = heap_first(&d->ends);

	return first ? (slu_time)rank_time((int64_t)first->b) : SLU_NEVER;
}

slu_time
dispatch_next(const struct dispatch *d)
{
	return list_is_empty(&d->marked) ? dispatch_first_end(d) : 0;
}
