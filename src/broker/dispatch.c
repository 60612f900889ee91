#include "broker/dispatch.h"

#include <assert.h>

struct waiter {
	struct list node; /* in its line */
	struct list any;  /* in claims or results */
	struct op *op;
	uint32_t line;
	uint32_t pos; /* in ends, or HEAP_OUT */
};

struct line {
	struct list waiters; /* never empty but while it is made */
	struct list marked;  /* in no list: not marked */
	uint64_t hash;
	uint32_t ready; /* how many may be served; UINT32_MAX: who knows */
	uint32_t n;     /* waiters */
	uint32_t handle;
};

/* What an op waits for, as the character that stands between its names; or (id other than
 * 0) of what number. */
enum want_kind {
	WANT_MESSAGE = '/', /* of a queue, to take it */
	WANT_LOOK = '?',    /* of a queue, to look at it */
	WANT_HEAD = '^',    /* of a queue: another */
	WANT_KEY = '!',
	WANT_RESULT = 'r', /* of the message `id` */
	WANT_ROOM = 'f'    /* in the flow `id` */
};

struct want {
	enum want_kind kind;
	struct slice space, name; /* name: of the queue, or the key */
	uint64_t id;
};

static struct want
want_of(const struct op *op)
{
	if (op->verb == OP_RESULT)
		return (struct want){ .kind = WANT_RESULT, .id = op->id };
	if (op->stalled)
		return (struct want){ .kind = WANT_ROOM, .id = op->flow };
	if (op->verb == OP_ACQUIRE)
		return (struct want){ WANT_KEY, op->space, op->lock.key, 0 };
	return (struct want){
		.kind = op->verb == OP_PEEK    ? WANT_LOOK
			: op->verb == OP_WATCH ? WANT_HEAD
					       : WANT_MESSAGE,
		.space = op->space,
		.name = op->queue,
	};
}

static uint64_t
want_hash(const struct dispatch *d, const struct want *w)
{
	char text[2 * MESSAGE_NAME_MAX + 1];

	_Static_assert((int)LOCK_KEY_MAX <= (int)MESSAGE_NAME_MAX, "a key fits");
	if (w->id)
		return hash_keyed(&d->secret, &w->id, sizeof w->id) + w->kind;
	assert(w->space.n <= MESSAGE_NAME_MAX && w->name.n <= MESSAGE_NAME_MAX);
	memcpy(text, w->space.p, w->space.n);
	text[w->space.n] = (char)w->kind;
	memcpy(text + w->space.n + 1, w->name.p, w->name.n);
	return hash_keyed(&d->secret, text, w->space.n + 1 + w->name.n);
}

static struct line *
line_at(const struct dispatch *d, uint32_t h)
{
	return slab_at(&d->lines, h);
}

static struct waiter *
waiter_at(const struct dispatch *d, uint32_t h)
{
	return slab_at(&d->waiters, h);
}

static struct waiter *
first_waiter(const struct line *line)
{
	return CONTAINER(line->waiters.next, struct waiter, node);
}

static uint64_t
line_hash(const void *items, uint32_t h)
{
	const struct line *line = slab_at(items, h);

	return line->hash;
}

static bool
line_is(const void *items, uint32_t h, const void *key)
{
	const struct line *line = slab_at(items, h);
	const struct want *want = key;
	const struct want has = want_of(first_waiter(line)->op);

	return has.kind == want->kind && has.id == want->id &&
	       slice_eq(has.space, want->space) && slice_eq(has.name, want->name);
}

void
dispatch_init(struct dispatch *d, const struct hash_key *secret)
{
	*d = (struct dispatch){ .secret = *secret };
	slab_init_chunked(&d->waiters, sizeof(struct waiter), 8);
	slab_init_chunked(&d->lines, sizeof(struct line), 8);
	map_init(&d->names, &d->lines, line_hash, line_is);
	heap_init(&d->ends, &d->waiters, offsetof(struct waiter, pos));
	list_init(&d->claims);
	list_init(&d->results);
	list_init(&d->marked);
}

void
dispatch_release(struct dispatch *d)
{
	assert(d->waiters.used == 0);
	heap_release(&d->ends);
	map_release(&d->names);
	slab_release(&d->lines);
	slab_release(&d->waiters);
}

/* ---- Lines ---- */

static struct line *
find_line(const struct dispatch *d, const struct want *want)
{
	uint32_t h;

	if (d->lines.used == 0)
		return NULL;
	h = map_find(&d->names, want_hash(d, want), want);
	return h == MAP_NONE ? NULL : line_at(d, h);
}

/* The line is in the map once it has its first waiter. NULL: no memory. */
static struct line *
add_line(struct dispatch *d, const struct want *want)
{
	const uint32_t h = map_reserve(&d->names, 1) ? SLAB_NONE : slab_new(&d->lines);
	struct line *line;

	if (h == SLAB_NONE)
		return NULL;
	line = line_at(d, h);
	*line = (struct line){ .hash = want_hash(d, want), .handle = h };
	list_init(&line->waiters);
	list_init(&line->marked);
	return line;
}

static void
remove_line(struct dispatch *d, struct line *line)
{
	list_remove(&line->marked);
	slab_free(&d->lines, line->handle);
}

static void
mark(struct dispatch *d, struct line *line, uint32_t n)
{
	if (list_is_empty(&line->marked))
		list_append(&d->marked, &line->marked);
	line->ready = n;
}

bool
dispatch_has_line(const struct dispatch *d, const struct op *op)
{
	const struct want want = want_of(op);

	return find_line(d, &want) != NULL;
}

bool
dispatch_is_waited_for(const struct dispatch *d, struct slice space, struct slice queue)
{
	static const enum want_kind kinds[] = { WANT_MESSAGE, WANT_LOOK, WANT_HEAD };

	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (find_line(d, &(struct want){ kinds[i], space, queue, 0 }))
			return true;
	return false;
}

uint32_t
dispatch_waiting(const struct dispatch *d, const struct op *op)
{
	const struct want want = want_of(op);
	const struct line *line = find_line(d, &want);

	return line ? line->n : 0;
}

/* ---- In and out ---- */

static void
join_line(struct dispatch *d, struct line *line, uint32_t h, struct op *op)
{
	const bool is_first = list_is_empty(&line->waiters);
	const slu_time end = op->stalled || op->wait > SLU_NEVER - op->arrived
				     ? SLU_NEVER
				     : op->arrived + op->wait;
	struct waiter *w = waiter_at(d, h);
	int rc;

	*w = (struct waiter){ .op = op, .line = line->handle, .pos = HEAP_OUT };
	list_append(&line->waiters, &w->node);
	line->n++;
	d->watches += op->verb == OP_WATCH;
	list_append(op->verb == OP_RESULT ? &d->results : &d->claims, &w->any);
	if (end != SLU_NEVER)
		heap_push(&d->ends, (struct rank){ .b = rank_time(end), .c = h }, h);
	if (is_first) {
		rc = map_insert(&d->names, line->hash, line->handle);
		assert(rc == 0); /* reserved by add_line */
	}
	op->waiter = h;
}

int
dispatch_park(struct dispatch *d, struct op *op, bool run)
{
	const struct want want = want_of(op);
	struct line *line;
	uint32_t h;

	if (op->waiter != SLAB_NONE)
		return 0;
	if (heap_reserve(&d->ends, d->waiters.used + 1))
		return SLU_ENOMEM;
	h = slab_new(&d->waiters);
	if (h == SLAB_NONE)
		return SLU_ENOMEM;
	line = find_line(d, &want);
	run = run && !line;
	if (!line)
		line = add_line(d, &want);
	if (!line) {
		slab_free(&d->waiters, h);
		return SLU_ENOMEM;
	}
	join_line(d, line, h, op);
	if (run)
		mark(d, line, UINT32_MAX);
	return 0;
}

void
dispatch_leave(struct dispatch *d, struct op *op)
{
	struct waiter *w;
	struct line *line;

	if (op->waiter == SLAB_NONE)
		return;
	w = waiter_at(d, op->waiter);
	line = line_at(d, w->line);
	if (w->node.next == w->node.prev) /* the last one: found by it until now */
		map_remove(&d->names, line->hash, line->handle);
	list_remove(&w->node);
	list_remove(&w->any);
	line->n--;
	d->watches -= op->verb == OP_WATCH;
	if (w->pos != HEAP_OUT)
		heap_remove(&d->ends, w->pos);
	slab_free(&d->waiters, op->waiter);
	op->waiter = SLAB_NONE;
	if (list_is_empty(&line->waiters))
		remove_line(d, line);
}

/* ---- Waking ---- */

/* All but claims that wait for room: messages make none. */
static void
mark_all(struct dispatch *d, uint32_t n)
{
	LIST_EACH(any, &d->claims) {
		const struct waiter *const w = CONTAINER(any, struct waiter, any);

		if (!w->op->stalled)
			mark(d, line_at(d, w->line), n);
	}
}

void
dispatch_ready(struct dispatch *d, struct slice space, struct slice queue, uint32_t n)
{
	struct want want = { WANT_MESSAGE, space, queue, 0 };
	struct line *line;

	if (d->lines.used == 0 || n == 0)
		return;
	if (queue.n == 0) {
		mark_all(d, n);
		return;
	}
	line = find_line(d, &want);
	if (line)
		mark(d, line, n);
	want.kind = WANT_LOOK;
	line = find_line(d, &want);
	if (line)
		mark(d, line, UINT32_MAX);
	dispatch_moved(d, space, queue);
}

/* Watches are few beside claims: all of them are looked through when it is not known
 * which queue it was. */
void
dispatch_moved(struct dispatch *d, struct slice space, struct slice queue)
{
	const struct want want = { WANT_HEAD, space, queue, 0 };
	struct line *line;

	if (d->watches == 0)
		return;
	if (queue.n > 0) {
		line = find_line(d, &want);
		if (line)
			mark(d, line, UINT32_MAX);
		return;
	}
	LIST_EACH(any, &d->claims) {
		const struct waiter *const w = CONTAINER(any, struct waiter, any);

		if (w->op->verb == OP_WATCH)
			mark(d, line_at(d, w->line), UINT32_MAX);
	}
}

struct op *
dispatch_room(struct dispatch *d, uint64_t flow)
{
	const struct want want = { .kind = WANT_ROOM, .id = flow };
	const struct line *const line = find_line(d, &want);
	struct op *op;

	if (!line)
		return NULL;
	op = first_waiter(line)->op;
	dispatch_leave(d, op);
	op->stalled = false;
	return op;
}

void
dispatch_freed(struct dispatch *d, struct slice space, struct slice key)
{
	const struct want want = { WANT_KEY, space, key, 0 };
	struct line *line = find_line(d, &want);

	if (line)
		mark(d, line, 1);
}

void
dispatch_gone(struct dispatch *d, uint64_t id)
{
	const struct want want = { .kind = WANT_RESULT, .id = id };
	struct line *line = find_line(d, &want);

	if (line)
		mark(d, line, UINT32_MAX);
}

void
dispatch_gone_all(struct dispatch *d)
{
	LIST_EACH(any, &d->results)
		mark(d, line_at(d, CONTAINER(any, struct waiter, any)->line), UINT32_MAX);
}

/* Append the first of a line to the batch, up to max. Returns how many; *all: there
 * is nobody behind them. */
static uint32_t
join_first(const struct line *line, uint32_t max, struct op ***tail, bool *all)
{
	const struct list *n = line->waiters.next;
	uint32_t joined = 0;

	for (; n != &line->waiters && joined < max; n = n->next, joined++) {
		struct op *op = CONTAINER(n, struct waiter, node)->op;

		op->next = NULL;
		**tail = op;
		*tail = &op->next;
	}
	*all = n == &line->waiters;
	return joined;
}

struct op *
dispatch_join(struct dispatch *d, uint32_t max, struct op **last)
{
	struct op *first = NULL;
	struct op **tail = &first;
	bool all;

	LIST_EACH_SAFE(n, &d->marked) {
		struct line *line = CONTAINER(n, struct line, marked);
		const uint32_t want = line->ready < max ? line->ready : max;
		const uint32_t joined = join_first(line, want, &tail, &all);

		max -= joined;
		if (line->ready != UINT32_MAX)
			line->ready -= joined;
		if (all || line->ready == 0)
			list_remove(&line->marked);
		if (max == 0)
			break;
	}
	*last = first ? CONTAINER(tail, struct op, next) : NULL;
	return first;
}

/* ---- Ending ---- */

/* The waiter whose moment comes first and whose line is not marked. Marked ones run
 * before the next look, so that this goes on then. */
struct op *
dispatch_expire(struct dispatch *d, slu_time now)
{
	const struct heap_node *first = heap_first(&d->ends);
	const struct waiter *w;
	struct op *op;

	if (!first || (slu_time)rank_time((int64_t)first->b) > now)
		return NULL;
	w = waiter_at(d, first->handle);
	if (!list_is_empty(&line_at(d, w->line)->marked))
		return NULL;
	op = w->op;
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
dispatch_next(const struct dispatch *d)
{
	const struct heap_node *first = heap_first(&d->ends);

	if (!list_is_empty(&d->marked))
		return 0;
	return first ? (slu_time)rank_time((int64_t)first->b) : SLU_NEVER;
}
