#include "store/pool.h"

#include "base/clock.h"
#include "base/mem.h"

#include <assert.h>

/* Requests wait in two queues. A thread takes from the first ones: a thread for urgent requests
 * from URGENT alone, every other thread from both. */
enum {
	URGENT,
	OTHERS,
	QUEUES
};

struct seat {
	struct store_pool *pool;
	pthread_t thread;
	unsigned last; /* the last queue from which the thread takes */
};

struct store_pool {
	struct store *store;
	struct clock *clock;
	unsigned max;
	slu_time step; /* POOL-6: the time that a put takes of the budget; 0 = no budget */
	struct seat *seats;
	unsigned n_seats;
	pthread_mutex_t mtx;
	pthread_cond_t work[QUEUES]; /* of the threads with that `last` */
	unsigned waiting[QUEUES];    /* threads that wait for it */
	unsigned woken[QUEUES];      /* of these, were woken for a request */

	/* Shared, under mtx. */
	struct list queues[QUEUES]; /* the earliest due first */
	unsigned count;             /* requests that wait or run */
	bool closing;
	slu_time spent; /* POOL-6: the budget is spent up to this moment */
};

void
store_request_init(struct store_request *r)
{
	*r = (struct store_request){ 0 };
	buf_init(&r->bytes, STORE_OBJECT_MAX);
	list_init(&r->node);
}

void
store_request_release(struct store_request *r)
{
	assert(!r->posted);
	buf_release(&r->bytes);
	store_names_release(&r->names);
}

/* ---- One request ---- */

static enum store_result
do_put(struct store *s, struct store_request *r)
{
	return store_put(s, r->name, r->object, r->mode, &r->err);
}

static enum store_result
do_get(struct store *s, struct store_request *r)
{
	buf_clear(&r->bytes);
	return store_get(s, r->name, r->at, r->max ? r->max : SIZE_MAX, &r->bytes, &r->size,
			 &r->err);
}

static enum store_result
do_list(struct store *s, struct store_request *r)
{
	uint32_t max = r->max && r->max < STORE_PAGE_MAX ? (uint32_t)r->max : STORE_PAGE_MAX;

	return store_list(s, r->name, r->after, max, &r->names, &r->err);
}

static enum store_result
do_remove(struct store *s, struct store_request *r)
{
	return r->more.n ? store_remove_all(s, r->name, r->more, &r->err) : store_remove(s, r->name, &r->err);
}

static enum store_result
do_clock(struct store *s, struct store_request *r)
{
	return store_clock(s, &r->wall, &r->err);
}

static enum store_result (*const verbs[STORE_VERBS])(struct store *, struct store_request *) = {
	[STORE_PUT] = do_put,
	[STORE_GET] = do_get,
	[STORE_LIST] = do_list,
	[STORE_REMOVE] = do_remove,
	[STORE_CLOCK] = do_clock,
};

void
store_execute(struct store *s, struct store_request *r, struct clock *clock)
{
	const slu_time began = clock_boot(clock);

	r->err = (struct slu_err){ 0 };
	r->result = verbs[r->verb](s, r);
	r->took = clock_boot(clock) - began;
}

/* Gives the request back. The lock is not held. */
static void
finish(struct store_pool *p, struct store_request *r)
{
	pthread_mutex_lock(&p->mtx);
	p->count--;
	r->posted = false;
	pthread_mutex_unlock(&p->mtx);
	r->done(r);
}

/* ---- Threads ---- */

/* Under mtx: takes the first request that may begin now. If none may, returns NULL and sets
 * *until to the moment when the next one may. */
static struct store_request *
take(struct store_pool *p, unsigned last, slu_time now, slu_time *until)
{
	*until = SLU_NEVER;
	for (unsigned i = 0; i <= last; i++) {
		if (list_is_empty(&p->queues[i]))
			continue;
		struct store_request *r =
			CONTAINER(p->queues[i].next, struct store_request, node);

		if (r->due <= now) {
			list_remove(&r->node);
			return r;
		}
		if (r->due < *until)
			*until = r->due;
	}
	return NULL;
}

/* Waits for the next request. NULL: the pool closes. */
static struct store_request *
next(struct store_pool *p, unsigned last)
{
	struct store_request *r = NULL;

	pthread_mutex_lock(&p->mtx);
	while (!p->closing) {
		const slu_time now = clock_boot(p->clock);
		slu_time until;

		r = take(p, last, now, &until);
		if (r)
			break;
		p->waiting[last]++;
		clock_wait(p->clock, &p->work[last], &p->mtx,
			   until == SLU_NEVER ? SLU_NEVER
					      : time_add(clock_mono(p->clock), until - now));
		p->waiting[last]--;
		p->woken[last] -= p->woken[last] > 0;
	}
	pthread_mutex_unlock(&p->mtx);
	return r;
}

static void *
serve(void *arg)
{
	struct seat *seat = arg;
	struct store_request *r;

	while ((r = next(seat->pool, seat->last))) {
		store_execute(seat->pool->store, r, seat->pool->clock);
		finish(seat->pool, r);
	}
	return NULL;
}

void
store_pool_end(struct store_request *r)
{
	struct store_pool *const p = r->pool;

	r->posted = false;
	r->done(r); /* may post r again, or free it */
	pthread_mutex_lock(&p->mtx);
	p->count--;
	pthread_cond_broadcast(&p->work[OTHERS]); /* POOL-4 */
	pthread_mutex_unlock(&p->mtx);
}

/* ---- Post ---- */

/* Under mtx: behind all requests that are due at the same time or earlier. */
static void
enqueue(struct list *queue, struct store_request *r)
{
	struct list *before = queue->prev;

	while (before != queue && CONTAINER(before, struct store_request, node)->due > r->due)
		before = before->prev;
	list_append(before->next, &r->node);
}

/* Under mtx: POOL-6. */
static void
spend(struct store_pool *p, const struct store_request *r)
{
	const slu_time now = p->step ? clock_boot(p->clock) : 0;

	if (!p->step || r->verb != STORE_PUT || r->mode == STORE_REPLACE)
		return;
	p->spent = (p->spent > now ? p->spent : now) + p->step;
}

slu_time
store_pool_rest(struct store_pool *p)
{
	slu_time rest = 0;

	if (!p->step)
		return 0;
	pthread_mutex_lock(&p->mtx);
	rest = p->spent - SLU_SEC - clock_boot(p->clock);
	pthread_mutex_unlock(&p->mtx);
	return rest > 0 ? rest : 0;
}

/* Under mtx */
static void
wake(struct store_pool *p, unsigned last)
{
	p->woken[last] += p->waiting[last] > p->woken[last];
	pthread_cond_signal(&p->work[last]);
}

/* Under mtx: a thread takes the request. If the thread for urgent requests is idle, another one would find nothing to do. When a
 * request that is due later may begin, that thread may be busy. */
static void
give_to_threads(struct store_pool *p, struct store_request *r)
{
	const bool idle = p->waiting[URGENT] > p->woken[URGENT];

	enqueue(&p->queues[r->urgent ? URGENT : OTHERS], r);
	if (r->urgent)
		wake(p, URGENT);
	if (!r->urgent || r->due || !idle)
		wake(p, OTHERS);
}

int
store_pool_post(struct store_pool *p, struct store_request *r, struct slu_err *err)
{
	int rc = 0;

	pthread_mutex_lock(&p->mtx);
	if (p->closing) {
		rc = slu_fail(err, SLU_ECLOSED, "store: the pool is closed");
	} else if (p->count >= p->max) {
		rc = slu_fail(err, SLU_EQFULL, "store: %u requests wait already", p->count);
	} else {
		p->count++;
		r->posted = true;
		r->pool = p;
		spend(p, r);
		if (!p->store->ops->begin)
			give_to_threads(p, r);
	}
	pthread_mutex_unlock(&p->mtx);
	if (!rc && p->store->ops->begin)
		p->store->ops->begin(p->store, r);
	return rc;
}

unsigned
store_pool_count(struct store_pool *p)
{
	pthread_mutex_lock(&p->mtx);
	unsigned n = p->count;

	pthread_mutex_unlock(&p->mtx);
	return n;
}

/* ---- Open and close ---- */

static int
start(struct store_pool *p, unsigned threads, struct slu_err *err)
{
	for (; p->n_seats < threads; p->n_seats++) {
		struct seat *seat = &p->seats[p->n_seats];

		*seat = (struct seat){ .pool = p, .last = p->n_seats ? OTHERS : URGENT };
		if (pthread_create(&seat->thread, NULL, serve, seat))
			return slu_fail(err, SLU_EDOWN, "store: cannot start a thread");
		pthread_setname_np(seat->thread, "store");
	}
	return 0;
}

int
store_pool_open(struct store_pool **out, const struct store_pool_conf *conf, struct slu_err *err)
{
	struct store_pool *p = mem_zalloc(sizeof *p);

	assert(conf->threads >= 2);
	*out = NULL;
	if (p)
		p->seats = mem_array(conf->threads, sizeof *p->seats);
	if (!p || !p->seats) {
		mem_free(p);
		return slu_fail(err, SLU_ENOMEM, "store: out of memory");
	}
	p->store = conf->store;
	p->clock = conf->clock ? conf->clock : &clock_system;
	p->max = conf->max;
	p->step = conf->puts ? SLU_SEC / conf->puts : 0;
	pthread_mutex_init(&p->mtx, NULL); /* cannot fail with these attributes */
	for (unsigned i = 0; i < QUEUES; i++) {
		pthread_cond_init(&p->work[i], NULL); /* nor this */
		list_init(&p->queues[i]);
	}
	int rc = conf->store->ops->begin ? 0 : start(p, conf->threads, err);

	if (rc)
		store_pool_close(p);
	else
		*out = p;
	return rc;
}

/* Ends a request that has not begun (POOL-4, POOL-5). */
static void
cancel(struct store_pool *p, struct store_request *r)
{
	r->result = STORE_FAILED;
	r->took = 0;
	slu_fail(&r->err, SLU_ECANCELED, "%s: %s: canceled", p->store->label,
		 *r->name ? r->name : "store");
	finish(p, r);
}

void
store_pool_cancel(struct store_pool *p, struct store_request *r)
{
	bool waits;

	if (p->store->ops->begin) {
		p->store->ops->cancel(p->store, p, r);
		return;
	}
	pthread_mutex_lock(&p->mtx);
	waits = r->posted && !list_is_empty(&r->node);
	if (waits)
		list_remove(&r->node);
	pthread_mutex_unlock(&p->mtx);
	if (waits)
		cancel(p, r);
}

/* A store that does not block ends what waits and what runs. */
static void
wait_for_store(struct store_pool *p)
{
	if (!p->store->ops->begin)
		return;
	p->store->ops->cancel(p->store, p, NULL);
	pthread_mutex_lock(&p->mtx);
	while (p->count > 0)
		clock_wait(p->clock, &p->work[OTHERS], &p->mtx, SLU_NEVER);
	pthread_mutex_unlock(&p->mtx);
}

void
store_pool_close(struct store_pool *p)
{
	struct list waiting;

	if (!p)
		return;
	list_init(&waiting);
	pthread_mutex_lock(&p->mtx);
	p->closing = true;
	for (unsigned i = 0; i < QUEUES; i++) {
		list_take(&p->queues[i], &waiting);
		pthread_cond_broadcast(&p->work[i]);
	}
	pthread_mutex_unlock(&p->mtx);
	LIST_EACH_SAFE(n, &waiting) {
		list_remove(n);
		cancel(p, CONTAINER(n, struct store_request, node));
	}
	wait_for_store(p);
	for (unsigned i = 0; i < p->n_seats; i++)
		pthread_join(p->seats[i].thread, NULL);
	for (unsigned i = 0; i < QUEUES; i++)
		pthread_cond_destroy(&p->work[i]);
	pthread_mutex_destroy(&p->mtx);
	mem_free(p->seats);
	mem_free(p);
}
