#include "memstore.h"
#include "test.h"

#include <pthread.h>
#include <stdlib.h>

enum {
	OBJECTS = 20000,
	PLACES = 16
};

struct object {
	char *name;
	char *bytes;
	size_t n;
};

/* What all stores of one name share. */
struct place {
	char name[64];
	unsigned users; /* under places_mtx; 0: free */
	pthread_mutex_t mtx;
	pthread_cond_t released;

	/* Shared, under mtx. */
	struct object *objects; /* in the order of their names */
	uint32_t n;
	struct {
		enum memstore_fault fault;
		unsigned n;
	} faults[STORE_VERBS];
	char hold[STORE_NAME_MAX];
	unsigned held;
	slu_time wall;
};

struct memstore {
	struct store store; /* first */
	struct place *place;
};

static struct place places[PLACES];
static pthread_mutex_t places_mtx = PTHREAD_MUTEX_INITIALIZER;

static struct place *
of(struct store *s)
{
	return ((struct memstore *)(void *)s)->place;
}

/* ---- Faults ---- */

void
memstore_fault(struct store *s, enum store_verb verb, enum memstore_fault fault, unsigned n)
{
	struct place *p = of(s);

	pthread_mutex_lock(&p->mtx);
	p->faults[verb].fault = fault;
	p->faults[verb].n = n;
	pthread_mutex_unlock(&p->mtx);
}

void
memstore_hold(struct store *s, const char *name)
{
	struct place *p = of(s);

	pthread_mutex_lock(&p->mtx);
	strcpy(p->hold, name);
	pthread_mutex_unlock(&p->mtx);
}

void
memstore_release(struct store *s)
{
	struct place *p = of(s);

	pthread_mutex_lock(&p->mtx);
	p->hold[0] = '\0';
	pthread_cond_broadcast(&p->released);
	pthread_mutex_unlock(&p->mtx);
}

unsigned
memstore_held(struct store *s)
{
	struct place *p = of(s);

	pthread_mutex_lock(&p->mtx);
	unsigned n = p->held;

	pthread_mutex_unlock(&p->mtx);
	return n;
}

void
memstore_set_clock(struct store *s, slu_time wall)
{
	struct place *p = of(s);

	pthread_mutex_lock(&p->mtx);
	p->wall = wall;
	pthread_mutex_unlock(&p->mtx);
}

/* Locks the place for a call. Waits while the name is held. Returns the fault of this call. */
static enum memstore_fault
begin(struct place *p, enum store_verb verb, const char *name)
{
	pthread_mutex_lock(&p->mtx);
	p->held++;
	while (p->hold[0] && strcmp(p->hold, name) == 0)
		pthread_cond_wait(&p->released, &p->mtx);
	p->held--;
	if (!p->faults[verb].n)
		return MEMSTORE_NONE;
	p->faults[verb].n--;
	return p->faults[verb].fault;
}

/* Whether the call happens at all. */
static bool
happens(enum memstore_fault fault)
{
	return fault == MEMSTORE_NONE || fault == MEMSTORE_LOSE_ANSWER;
}

static enum store_result
end(struct place *p, enum memstore_fault fault, enum store_result r, struct slu_err *err)
{
	pthread_mutex_unlock(&p->mtx);
	if (fault == MEMSTORE_NONE)
		return r;
	slu_fail(err, fault == MEMSTORE_REFUSE ? SLU_EFORBIDDEN : SLU_EDOWN, "a planted fault");
	return fault == MEMSTORE_REFUSE ? STORE_REFUSED : STORE_FAILED;
}

/* ---- Objects ---- */

/* The index of the first object whose name is not before `name`. */
static uint32_t
position(const struct place *p, const char *name)
{
	uint32_t low = 0, high = p->n;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (strcmp(p->objects[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct object *
lookup(const struct place *p, const char *name)
{
	uint32_t i = position(p, name);

	return i < p->n && strcmp(p->objects[i].name, name) == 0 ? &p->objects[i] : NULL;
}

static void
set_bytes(struct object *o, struct slice bytes)
{
	free(o->bytes);
	o->bytes = malloc(bytes.n + 1);
	o->n = bytes.n;
	if (!o->bytes)
		abort();
	if (bytes.n)
		memcpy(o->bytes, bytes.p, bytes.n);
}

static void
insert(struct place *p, const char *name, struct slice bytes)
{
	uint32_t i = position(p, name);

	if (p->n == OBJECTS)
		abort();
	memmove(p->objects + i + 1, p->objects + i, (p->n - i) * sizeof *p->objects);
	p->objects[i] = (struct object){ .name = strdup(name) };
	p->n++;
	set_bytes(&p->objects[i], bytes);
}

static enum store_result
put(struct store *s, const char *name, struct slice bytes, enum store_mode mode,
    struct slu_err *err)
{
	struct place *p = of(s);
	enum memstore_fault fault = begin(p, STORE_PUT, name);
	struct object *o = lookup(p, name);

	if (happens(fault)) {
		if (o && mode == STORE_REPLACE)
			set_bytes(o, bytes);
		else if (!o)
			insert(p, name, bytes);
	}
	return end(p, fault, o && mode == STORE_IF_ABSENT ? STORE_EXISTS : STORE_OK, err);
}

static enum store_result
get(struct store *s, const char *name, uint64_t at, size_t max, struct buf *out, uint64_t *size,
    struct slu_err *err)
{
	struct place *p = of(s);
	enum memstore_fault fault = begin(p, STORE_GET, name);
	const struct object *o = lookup(p, name);

	if (o) {
		size_t left = at < o->n ? o->n - (size_t)at : 0;

		*size = o->n;
		buf_put(out, o->bytes + o->n - left, left < max ? left : max);
	}
	return end(p, fault, o ? STORE_OK : STORE_ABSENT, err);
}

static enum store_result
list(struct store *s, const char *prefix, const char *after, uint32_t max,
     struct store_names *out, struct slu_err *err)
{
	struct place *p = of(s);
	enum memstore_fault fault = begin(p, STORE_LIST, prefix);
	uint32_t i = position(p, strcmp(prefix, after) > 0 ? prefix : after);

	if (i < p->n && strcmp(p->objects[i].name, after) == 0)
		i++;
	for (; i < p->n && strncmp(p->objects[i].name, prefix, strlen(prefix)) == 0; i++) {
		out->more = out->n == max;
		if (out->more)
			break;
		store_names_add(out, p->objects[i].name);
	}
	return end(p, fault, STORE_OK, err);
}

static enum store_result
remove_object(struct store *s, const char *name, struct slu_err *err)
{
	struct place *p = of(s);
	enum memstore_fault fault = begin(p, STORE_REMOVE, name);
	struct object *o = lookup(p, name);

	if (o && happens(fault)) {
		free(o->name);
		free(o->bytes);
		memmove(o, o + 1, (size_t)(p->objects + p->n - (o + 1)) * sizeof *o);
		p->n--;
	}
	return end(p, fault, o ? STORE_OK : STORE_ABSENT, err);
}

static enum store_result
read_clock(struct store *s, slu_time *wall, struct slu_err *err)
{
	struct place *p = of(s);
	enum memstore_fault fault = begin(p, STORE_CLOCK, "");

	*wall = p->wall;
	return end(p, fault, STORE_OK, err);
}

/* ---- Open and close ---- */

/* Under places_mtx. */
static struct place *
place_find(const char *name)
{
	for (unsigned i = 0; i < PLACES; i++)
		if (places[i].users && strcmp(places[i].name, name) == 0)
			return &places[i];
	for (unsigned i = 0; i < PLACES; i++)
		if (!places[i].users)
			return &places[i];
	abort();
}

/* Under places_mtx. */
static void
place_use(struct place *p, const char *name)
{
	if (p->users++)
		return;
	*p = (struct place){ .users = 1, .wall = 1800000000 * SLU_SEC };
	strcpy(p->name, name);
	p->objects = calloc(OBJECTS, sizeof *p->objects);
	pthread_mutex_init(&p->mtx, NULL);
	pthread_cond_init(&p->released, NULL);
}

/* Under places_mtx. */
static void
place_leave(struct place *p)
{
	if (--p->users)
		return;
	for (uint32_t i = 0; i < p->n; i++) {
		free(p->objects[i].name);
		free(p->objects[i].bytes);
	}
	free(p->objects);
	pthread_mutex_destroy(&p->mtx);
	pthread_cond_destroy(&p->released);
}

static enum store_result
open_store(struct store **out, const char *rest, const struct store_conf *conf,
	   struct slu_err *err)
{
	struct memstore *m = calloc(1, sizeof *m);
	(void)conf;

	if (!m || strlen(rest) >= sizeof m->place->name) {
		free(m);
		slu_fail(err, SLU_EINVAL, "invalid URL; expected memory://NAME");
		return STORE_REFUSED;
	}
	pthread_mutex_lock(&places_mtx);
	m->place = place_find(rest);
	place_use(m->place, rest);
	pthread_mutex_unlock(&places_mtx);
	*out = &m->store;
	return STORE_OK;
}

static void
close_store(struct store *s)
{
	pthread_mutex_lock(&places_mtx);
	place_leave(of(s));
	pthread_mutex_unlock(&places_mtx);
	free(s);
}

static void
get_names(struct store *s, const char *prefix, struct store_names *out)
{
	struct slu_err err;

	*out = (struct store_names){ 0 };
	CHECK_EQ(STORE_OK, store_list(s, prefix, "", STORE_PAGE_MAX, out, &err));
}

unsigned
memstore_count(struct store *s, const char *prefix)
{
	struct store_names names;
	unsigned n;

	get_names(s, prefix, &names);
	n = names.n;
	store_names_release(&names);
	return n;
}

void
memstore_lose(struct store *s, const char *prefix, unsigned n)
{
	struct store_names names;
	struct slu_err err;

	get_names(s, prefix, &names);
	for (unsigned i = 1; i <= n; i++)
		CHECK_EQ(STORE_OK, store_remove(s, names.names[names.n - i], &err));
	store_names_release(&names);
}

const struct store_ops store_memory = {
	.name = "memory",
	.doc = "memory of this process, for tests",
	.open = open_store,
	.close = close_store,
	.put = put,
	.get = get,
	.list = list,
	.remove = remove_object,
	.clock = read_clock,
};
