#include "api/worker/workers.h"

#include "base/hash.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/parse.h"
#include "core/names.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

/* --- the field ---------------------------------------------------------------- */

static struct slice
trim(struct slice s)
{
	while (s.n > 0 && s.p[0] == ' ')
		slice_skip(&s, 1);
	while (s.n > 0 && s.p[s.n - 1] == ' ')
		s.n--;
	return s;
}

/* Takes what is in front of the separator, and the separator. */
static struct slice
cut(struct slice *rest, char separator)
{
	const char *const at = rest->n ? memchr(rest->p, separator, rest->n) : NULL;
	const struct slice part = { rest->p, at ? (size_t)(at - rest->p) : rest->n };

	slice_skip(rest, at ? part.n + 1 : part.n);
	return trim(part);
}

static bool
is_printable(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < ' ' || s.p[i] > '~')
			return false;
	return true;
}

struct part {
	const char *name;
	size_t text;   /* offset of a struct slice; 0: a number */
	size_t number; /* offset of a uint32_t */
	size_t max;    /* bytes of a text */
};

#define TEXT(member, most)                                               \
	{                                                                \
#member, offsetof(struct worker_beat, member), 0, (most) \
	}
#define NUMBER(member)                                              \
	{                                                           \
#member, 0, offsetof(struct worker_beat, member), 0 \
	}

static const struct part parts[] = {
	TEXT(name, WORKERS_NAME),
	TEXT(host, WORKERS_NAME),
	TEXT(version, WORKERS_WORD),
	TEXT(instance, WORKERS_WORD),
	NUMBER(slots),
	NUMBER(used),
	NUMBER(lost),
	NUMBER(late),
	NUMBER(ends),
};

static int
read_part(const struct part *p, struct slice value, struct worker_beat *out, struct slu_err *err)
{
	uint64_t n = 0;

	if (p->text) {
		if (value.n > p->max || !is_printable(value))
			return slu_fail(err, SLU_EINVAL, "invalid %s in Sluice-Worker; expected at most %zu printable bytes",
					p->name, p->max);
		memcpy((char *)out + p->text, &value, sizeof value);
		return 0;
	}
	if (parse_u64(value, 0, UINT32_MAX, &n, NULL))
		return slu_fail(err, SLU_EINVAL, "invalid %s in Sluice-Worker: %.*s; expected a number", p->name,
				value.n < 40 ? (int)value.n : 40, value.p);
	memcpy((char *)out + p->number, &(uint32_t){ (uint32_t)n }, sizeof(uint32_t));
	return 0;
}

int
worker_field_read(struct slice field, struct worker_beat *out, struct slu_err *err)
{
	int rc = 0;

	while (field.n > 0 && !rc) {
		struct slice value = cut(&field, ';');
		const struct slice name = cut(&value, '=');

		value = trim(value);
		for (unsigned i = 0; i < COUNT(parts) && !rc; i++)
			if (slice_eq(name, slice_of(parts[i].name)))
				rc = read_part(&parts[i], value, out, err);
	}
	if (!rc && !out->name.n)
		return slu_fail(err, SLU_EINVAL, "invalid Sluice-Worker: no name; expected name=NAME, and optionally "
						 "host=HOST; version=VERSION; instance=TEXT; slots=N; used=N; lost=N; late=N; ends=1");
	return rc;
}

/* --- the register ------------------------------------------------------------- */

struct worker_row {
	struct list node; /* in workers.rows, the oldest beat first */
	uint32_t handle;
	enum worker_state state;
	slu_time since, wall; /* its first and last beat, to be shown */
	slu_time last;        /* the last, on the clock of the caller */
	uint32_t slots, used, lost, late;
	uint32_t crashes;
	slu_time crashed; /* on the wall clock */
	uint16_t queues_n;
	char space[NAME_TEXT];
	char name[WORKERS_NAME + 1], host[WORKERS_NAME + 1];
	char version[WORKERS_WORD + 1], instance[WORKERS_WORD + 1];
	char queues[WORKERS_QUEUES];
};

struct workers {
	struct hash_key secret;

	/* Shared, under mtx. */
	pthread_mutex_t mtx;
	struct map by_name;
	struct list rows;
	_Atomic uint32_t n;                 /* read without mtx, too */
	uint32_t first_free;                /* no place before it is free */
	struct worker_row *at[WORKERS_MAX]; /* by handle; NULL: free */
	struct crews crews;                 /* each queue of each row */
};

struct worker_key {
	struct slice space, name;
};

static uint64_t
hash(const struct workers *w, struct slice space, struct slice name)
{
	char text[NAME_TEXT + WORKERS_NAME + 1];
	const int n = snprintf(text, sizeof text, "%.*s/%.*s", (int)space.n, space.p, (int)name.n, name.p);

	return hash_keyed(&w->secret, text, (size_t)n);
}

static uint64_t
row_hash(const void *items, uint32_t handle)
{
	const struct workers *const w = items;
	const struct worker_row *const r = w->at[handle];

	return hash(w, slice_of(r->space), slice_of(r->name));
}

static bool
row_is(const void *items, uint32_t handle, const void *key)
{
	const struct workers *const w = items;
	const struct worker_row *const r = w->at[handle];
	const struct worker_key *const k = key;

	return slice_eq(slice_of(r->space), k->space) && slice_eq(slice_of(r->name), k->name);
}

int
workers_new(struct workers **out, struct slu_err *err)
{
	struct workers *const w = mem_zalloc(sizeof *w);
	int rc;

	*out = NULL;
	if (!w)
		return SLU_ENOMEM;
	rc = hash_key_init(&w->secret, err);
	if (rc) {
		mem_free(w);
		return rc;
	}
	pthread_mutex_init(&w->mtx, NULL);
	map_init(&w->by_name, w, row_hash, row_is);
	list_init(&w->rows);
	crews_init(&w->crews, &w->secret);
	*out = w;
	return 0;
}

static struct queue_crew
crew_of(const struct worker_row *r)
{
	return (struct queue_crew){ 1, r->slots, r->used };
}

/* Drops the first queue of the row. */
static void
drop_queue(struct workers *w, struct worker_row *r)
{
	const struct slice first = slice_of(r->queues);

	crews_leave(&w->crews, slice_of(r->space), first, crew_of(r));
	r->queues_n -= (uint16_t)(first.n + 1);
	memmove(r->queues, r->queues + first.n + 1, r->queues_n);
}

static void
drop_queues(struct workers *w, struct worker_row *r)
{
	while (r->queues_n)
		drop_queue(w, r);
}

static void
forget(struct workers *w, struct worker_row *r)
{
	drop_queues(w, r);
	map_remove(&w->by_name, row_hash(w, r->handle), r->handle);
	list_remove(&r->node);
	w->at[r->handle] = NULL;
	w->first_free = r->handle < w->first_free ? r->handle : w->first_free;
	w->n--;
	mem_free(r);
}

void
workers_free(struct workers *w)
{
	if (!w)
		return;
	LIST_EACH_SAFE(n, &w->rows)
		forget(w, CONTAINER(n, struct worker_row, node));
	map_release(&w->by_name);
	crews_release(&w->crews);
	pthread_mutex_destroy(&w->mtx);
	mem_free(w);
}

/* WORKERS-1 */
static void
forget_old(struct workers *w, slu_time now)
{
	LIST_EACH_SAFE(n, &w->rows) {
		struct worker_row *const r = CONTAINER(n, struct worker_row, node);

		if (now - r->last <= WORKERS_AGE)
			break;
		forget(w, r);
	}
}

static struct worker_row *
find(const struct workers *w, struct slice space, struct slice name)
{
	const struct worker_key key = { space, name };
	const uint32_t handle = map_find(&w->by_name, hash(w, space, name), &key);

	return handle == MAP_NONE ? NULL : w->at[handle];
}

static void
set(char *out, size_t size, struct slice text)
{
	(void)snprintf(out, size, "%.*s", (int)text.n, text.p); /* fits: names and fields are checked */
}

static int
add(struct workers *w, const struct worker_beat *b, struct worker_row **out, struct slu_err *err)
{
	struct worker_row *r;

	if (w->n == WORKERS_MAX)
		return slu_fail(err, SLU_EBUSY, "the register has %d workers", WORKERS_MAX);
	r = mem_zalloc(sizeof *r);
	if (!r)
		return SLU_ENOMEM;
	while (w->at[w->first_free])
		w->first_free++;
	r->handle = w->first_free;
	r->since = b->wall;
	set(r->space, sizeof r->space, b->namespace);
	set(r->name, sizeof r->name, b->name);
	w->at[r->handle] = r;
	if (map_insert(&w->by_name, hash(w, b->namespace, b->name), r->handle)) {
		w->at[r->handle] = NULL;
		mem_free(r);
		return SLU_ENOMEM;
	}
	list_append(&w->rows, &r->node);
	w->n++;
	*out = r;
	return 0;
}

static bool
has_queue(struct slice queues, struct slice queue)
{
	while (queues.n > 0) {
		const struct slice name = slice_of(queues.p);

		if (slice_eq(name, queue))
			return true;
		slice_skip(&queues, name.n + 1);
	}
	return false;
}

static void
add_queue(struct workers *w, struct worker_row *r, struct slice queue)
{
	if (!queue.n || has_queue((struct slice){ r->queues, r->queues_n }, queue))
		return;
	while (r->queues_n + queue.n + 1 > sizeof r->queues)
		drop_queue(w, r);
	if (!crews_join(&w->crews, slice_of(r->space), queue, crew_of(r)))
		return;
	memcpy(r->queues + r->queues_n, queue.p, queue.n);
	r->queues[r->queues_n + queue.n] = '\0';
	r->queues_n += (uint16_t)(queue.n + 1);
}

/* Its crews know the new numbers. */
static void
set_slots(struct workers *w, struct worker_row *r, uint32_t slots, uint32_t used)
{
	struct slice queues = { r->queues, r->queues_n };

	while (queues.n > 0) {
		const struct slice name = slice_of(queues.p);

		(void)crews_join(&w->crews, slice_of(r->space), name, (struct queue_crew){ 0, slots, used }); /* it is there */
		crews_leave(&w->crews, slice_of(r->space), name, (struct queue_crew){ 0, r->slots, r->used });
		slice_skip(&queues, name.n + 1);
	}
	r->slots = slots;
	r->used = used;
}

static void
note(struct workers *w, struct worker_row *r, const struct worker_beat *b, slu_time now)
{
	if (!slice_eq(slice_of(r->instance), b->instance)) { /* WORKERS-2 */
		if (r->instance[0] && b->instance.n && r->used) {
			r->crashes++;
			r->crashed = b->wall;
		}
		r->state = WORKER_RUNNING;
		r->since = b->wall;
		drop_queues(w, r);
	}
	r->last = now;
	r->wall = b->wall;
	set_slots(w, r, b->slots, b->used);
	r->lost = b->lost;
	r->late = b->late;
	set(r->host, sizeof r->host, b->host);
	set(r->version, sizeof r->version, b->version);
	set(r->instance, sizeof r->instance, b->instance);
	add_queue(w, r, b->queue);
}

int
workers_beat(struct workers *w, const struct worker_beat *b, slu_time now, enum worker_state *state,
	     struct slu_err *err)
{
	struct worker_row *r;
	int rc = 0;

	*state = WORKER_RUNNING;
	pthread_mutex_lock(&w->mtx);
	forget_old(w, now);
	r = find(w, b->namespace, b->name);
	if (b->ends) { /* WORKERS-3 */
		if (r && slice_eq(slice_of(r->instance), b->instance))
			forget(w, r);
		pthread_mutex_unlock(&w->mtx);
		return 0;
	}
	if (!r)
		rc = add(w, b, &r, err);
	if (!rc) {
		note(w, r, b, now);
		list_remove(&r->node);
		list_append(&w->rows, &r->node);
		*state = r->state;
	}
	pthread_mutex_unlock(&w->mtx);
	return rc;
}

enum worker_state
workers_state(struct workers *w, struct slice namespace, struct slice name)
{
	enum worker_state state;
	const struct worker_row *r;

	pthread_mutex_lock(&w->mtx);
	r = find(w, namespace, name);
	state = r ? r->state : WORKER_RUNNING;
	pthread_mutex_unlock(&w->mtx);
	return state;
}

struct queue_crew
workers_crew(struct workers *w, struct slice namespace, struct slice queue, slu_time now)
{
	struct queue_crew crew = { 0 };

	if (atomic_load_explicit(&w->n, memory_order_relaxed) == 0)
		return crew;
	pthread_mutex_lock(&w->mtx);
	forget_old(w, now);
	crew = crews_of(&w->crews, namespace, queue);
	pthread_mutex_unlock(&w->mtx);
	return crew;
}

struct slice
workers_version(struct workers *w, struct slice namespace, struct slice name, char room[static WORKERS_WORD + 1])
{
	const struct worker_row *r;

	room[0] = '\0';
	if (atomic_load_explicit(&w->n, memory_order_relaxed) == 0)
		return (struct slice){ 0 };
	pthread_mutex_lock(&w->mtx);
	r = find(w, namespace, name);
	if (r)
		memcpy(room, r->version, sizeof r->version);
	pthread_mutex_unlock(&w->mtx);
	return slice_of(room);
}

int
workers_ask(struct workers *w, struct slice namespace, struct slice name, enum worker_state state, slu_time now)
{
	struct worker_row *r;

	pthread_mutex_lock(&w->mtx);
	forget_old(w, now);
	r = find(w, namespace, name);
	if (r)
		r->state = state;
	pthread_mutex_unlock(&w->mtx);
	return r ? 0 : SLU_ENOTFOUND;
}

static struct worker_shown
show(const struct worker_row *r)
{
	return (struct worker_shown){
		.beat = {
			.namespace = slice_of(r->space),
			.name = slice_of(r->name),
			.host = slice_of(r->host),
			.version = slice_of(r->version),
			.instance = slice_of(r->instance),
			.slots = r->slots,
			.used = r->used,
			.lost = r->lost,
			.late = r->late,
			.wall = r->wall,
		},
		.queues = { r->queues, r->queues_n },
		.since = r->since,
		.crashes = r->crashes,
		.crashed = r->crashed,
		.state = r->state,
	};
}

static bool
is_wanted(const struct worker_row *r, struct slice namespace, struct slice queue)
{
	return (!namespace.n || slice_eq(slice_of(r->space), namespace)) &&
	       (!queue.n || has_queue((struct slice){ r->queues, r->queues_n }, queue));
}

void
workers_list(struct workers *w, struct slice namespace, struct slice queue, uint32_t max, slu_time now,
	     uint64_t *cursor, worker_each *each, void *arg)
{
	uint64_t at = *cursor < WORKERS_MAX ? *cursor : WORKERS_MAX;

	pthread_mutex_lock(&w->mtx);
	forget_old(w, now);
	for (; at < WORKERS_MAX && max > 0; at++) {
		struct worker_shown s;

		if (!w->at[at] || !is_wanted(w->at[at], namespace, queue))
			continue;
		s = show(w->at[at]);
		each(arg, &s);
		max--;
	}
	pthread_mutex_unlock(&w->mtx);
	*cursor = at < WORKERS_MAX ? at : 0;
}

const char *
worker_state_name(enum worker_state state)
{
	static const char *const names[WORKER_STATES] = { "running", "quiet", "stop" };

	return names[state];
}
