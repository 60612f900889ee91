/*
 * The threads that execute requests (store/pool.h), on a store in memory that blocks and fails on
 * demand.
 */
#include "test.h"

#include "fakeclock.h"
#include "memstore.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static struct fakeclock clock_;
static struct store *store;
static struct store_pool *pool;
static unsigned budget; /* store_pool_conf.puts */

/* The order in which requests ended: their names. */
static pthread_mutex_t order_mtx = PTHREAD_MUTEX_INITIALIZER;
static char order[4096];
static _Atomic unsigned n_done;

static void
open_pool(unsigned threads, unsigned max)
{
	const struct store_pool_conf conf = { .store = store, .threads = threads, .max = max, .puts = budget, .clock = &clock_.clock };
	struct slu_err err = { 0 };

	CHECK_EQ(0, store_pool_open(&pool, &conf, &err), err.text);
}

static void
before(void)
{
	const struct store_ops *const rows[] = { &store_memory, NULL };
	const struct store_conf conf = { .url = "memory://pool" };
	struct slu_err err = { 0 };

	fakeclock_init(&clock_, SLU_SEC, SLU_SEC);
	CHECK_EQ(STORE_OK, store_open(&store, rows, &conf, &err));
}

static void
after(void)
{
	store_pool_close(pool);
	store_close(store);
	fakeclock_release(&clock_);
}

FIXTURE(before, after);

static void
note(struct store_request *r)
{
	pthread_mutex_lock(&order_mtx);
	strcat(order, order[0] ? " " : "");
	strcat(order, r->name);
	pthread_mutex_unlock(&order_mtx);
	n_done++;
}

static void
init(struct store_request *r, enum store_verb verb, const char *name)
{
	store_request_init(r);
	r->verb = verb;
	strcpy(r->name, name);
	r->done = note;
}

static void
post(struct store_request *r)
{
	struct slu_err err = { 0 };

	CHECK_EQ(0, store_pool_post(pool, r, &err), err.text);
}

/* Blocks every thread but the urgent one: `n` gets of an object that is held. */
static void
block(struct store_request *held, unsigned n)
{
	memstore_hold(store, "held");
	for (unsigned i = 0; i < n; i++) {
		init(&held[i], STORE_GET, "held");
		post(&held[i]);
	}
	WAIT_UNTIL(memstore_held(store) == n);
}

TEST(a_request_of_each_verb_brings_its_answer)
{
	static struct store_request r[6];
	static const enum store_verb verbs[] = { STORE_PUT, STORE_PUT, STORE_GET, STORE_LIST,
						 STORE_CLOCK, STORE_REMOVE };

	open_pool(2, 10);
	EACH(i, verbs) {
		init(&r[i], verbs[i], verbs[i] == STORE_LIST ? "a/" : "a/b");
		r[i].object = SLICE("0123456789");
		r[i].at = 2;
		r[i].max = verbs[i] == STORE_GET ? 3 : 0;
		post(&r[i]);
		WAIT_UNTIL(n_done == i + 1);
	}
	CHECK_EQ(STORE_OK, r[0].result);
	CHECK_EQ(STORE_EXISTS, r[1].result);
	CHECK_STR("234", buf_str(&r[2].bytes));
	CHECK_EQ(10, r[2].size);
	CHECK_EQ(1, r[3].names.n);
	CHECK_STR("a/b", r[3].names.names[0]);
	CHECK_EQ(1800000000 * SLU_SEC, r[4].wall);
	CHECK_EQ(STORE_OK, r[5].result);
	CHECK_EQ(0, store_pool_count(pool));
	EACH(i, r)
		store_request_release(&r[i]);
}

TEST(a_failed_request_has_its_cause)
{
	static struct store_request r;

	open_pool(2, 10);
	memstore_fault(store, STORE_PUT, MEMSTORE_LOSE_REQUEST, 1);
	init(&r, STORE_PUT, "a");
	post(&r);
	WAIT_UNTIL(n_done == 1);
	CHECK_EQ(STORE_FAILED, r.result);
	CHECK_EQ(SLU_EDOWN, r.err.code);
	CHECK_CONTAINS("memory://pool: put a: a planted fault", r.err.text);
	store_request_release(&r);
}

TEST(POOL_2_a_request_waits_until_it_is_due)
{
	static struct store_request late, later, now;

	open_pool(2, 10);
	init(&later, STORE_PUT, "later");
	later.due = 3 * SLU_SEC;
	post(&later);
	init(&late, STORE_PUT, "late");
	late.due = 2 * SLU_SEC;
	post(&late);
	WAIT_UNTIL(fakeclock_until(&clock_) == 2 * SLU_SEC);
	init(&now, STORE_PUT, "now");
	post(&now);
	WAIT_UNTIL(n_done == 1);
	CHECK_STR("now", order);
	fakeclock_advance(&clock_, SLU_SEC);
	WAIT_UNTIL(n_done == 2);
	WAIT_UNTIL(fakeclock_until(&clock_) == 3 * SLU_SEC);
	CHECK_STR("now late", order);
	fakeclock_advance(&clock_, SLU_SEC);
	WAIT_UNTIL(n_done == 3);
	CHECK_STR("now late later", order);
}

TEST(POOL_2_an_urgent_request_passes_blocked_threads_and_those_that_wait)
{
	static struct store_request held[2], waiting[2], beat;

	open_pool(3, 10);
	block(held, 2);
	init(&waiting[0], STORE_PUT, "first");
	init(&waiting[1], STORE_PUT, "second");
	post(&waiting[0]);
	post(&waiting[1]);
	init(&beat, STORE_PUT, "beat");
	beat.urgent = true;
	post(&beat);
	WAIT_UNTIL(n_done == 1);
	CHECK_STR("beat", order);
	memstore_release(store);
	WAIT_UNTIL(n_done == 5);
}

TEST(POOL_2_without_a_due_time_the_first_posted_begins_first)
{
	static struct store_request held[1], r[3];
	static const char *const names[] = { "a", "b", "c" };

	open_pool(2, 10);
	block(held, 1);
	EACH(i, names) {
		init(&r[i], STORE_PUT, names[i]);
		post(&r[i]);
	}
	memstore_release(store);
	WAIT_UNTIL(n_done == 4);
	CHECK_STR("held a b c", order);
}

TEST(POOL_3_one_request_too_many_is_refused)
{
	static struct store_request held[1], r[3];
	struct slu_err err;

	open_pool(2, 3);
	block(held, 1);
	EACH(i, r)
		init(&r[i], STORE_PUT, "a");
	post(&r[0]);
	post(&r[1]);
	CHECK_EQ(3, store_pool_count(pool));
	CHECK_EQ(SLU_EQFULL, store_pool_post(pool, &r[2], &err));
	memstore_release(store);
	WAIT_UNTIL(n_done == 3);
	post(&r[2]);
	WAIT_UNTIL(n_done == 4);
}

/* A thread that releases the blocked request as soon as the waiting ones were cancelled. */
static void *
release_later(void *arg)
{
	(void)arg;
	WAIT_UNTIL(n_done == 3);
	memstore_release(store);
	return NULL;
}

/* Puts an object in the mode, and waits until the put has ended. */
static void
put_one(enum store_mode mode, unsigned number)
{
	static struct store_request r;
	char name[32];

	snprintf(name, sizeof name, "%u", number);
	init(&r, STORE_PUT, name);
	r.mode = mode;
	post(&r);
	WAIT_UNTIL(n_done == number);
	store_request_release(&r);
}

TEST(POOL_6_a_second_of_puts_is_free_and_then_the_pool_says_how_long_to_rest)
{
	unsigned n = 0;

	budget = 10;
	open_pool(2, 10);
	while (n < 10)
		put_one(STORE_IF_ABSENT, ++n);
	CHECK_EQ(0, store_pool_rest(pool));
	put_one(STORE_IF_ABSENT, ++n);
	CHECK_EQ(SLU_SEC / 10, store_pool_rest(pool));
	put_one(STORE_REPLACE, ++n);
	CHECK_EQ(SLU_SEC / 10, store_pool_rest(pool));
	put_one(STORE_IF_ABSENT, ++n);
	CHECK_EQ(SLU_SEC / 5, store_pool_rest(pool));
	fakeclock_advance(&clock_, SLU_SEC / 5);
	CHECK_EQ(0, store_pool_rest(pool));
	CHECK_EQ(13, store->requests[STORE_PUT]);
}

TEST(POOL_4_a_close_cancels_what_waits_and_finishes_what_runs)
{
	static struct store_request held[1], r[3];
	struct slu_err err;
	pthread_t thread;

	open_pool(2, 10);
	block(held, 1);
	EACH(i, r) {
		init(&r[i], STORE_PUT, i ? "put" : "due");
		r[i].due = i ? 0 : 99 * SLU_SEC;
		post(&r[i]);
	}
	pthread_create(&thread, NULL, release_later, NULL);
	store_pool_close(pool);
	pool = NULL;
	pthread_join(thread, NULL);
	CHECK_EQ(4, n_done);
	CHECK_EQ(STORE_ABSENT, held[0].result);
	EACH(i, r) {
		CHECK_EQ(STORE_FAILED, r[i].result);
		CHECK_EQ(SLU_ECANCELED, r[i].err.code);
	}
	CHECK_EQ(STORE_ABSENT, store_get(store, "put", 0, 1, &r[0].bytes, NULL, &err));
}

TEST(POOL_5_a_cancel_ends_what_waits_and_leaves_what_runs)
{
	static struct store_request held[1], r;

	open_pool(2, 10);
	block(held, 1);
	init(&r, STORE_PUT, "put");
	r.due = 99 * SLU_SEC;
	post(&r);
	store_pool_cancel(pool, &held[0]);
	CHECK_EQ(0, n_done);
	store_pool_cancel(pool, &r);
	CHECK_EQ(1, n_done);
	CHECK_EQ(SLU_ECANCELED, r.err.code);
	store_pool_cancel(pool, &r); /* it is not posted */
	CHECK_EQ(1, n_done);
	memstore_release(store);
	WAIT_UNTIL(n_done == 2);
	CHECK_EQ(STORE_ABSENT, held[0].result);
}

static struct store_pool *closing;
static _Atomic int posted_while_closing;

static void
post_again(struct store_request *r)
{
	struct slu_err err;

	posted_while_closing = store_pool_post(closing, r, &err);
	n_done++;
}

TEST(POOL_4_a_pool_that_closes_takes_no_request)
{
	static struct store_request r;

	open_pool(2, 10);
	closing = pool;
	init(&r, STORE_PUT, "due");
	r.due = 99 * SLU_SEC;
	r.done = post_again;
	post(&r);
	store_pool_close(pool);
	pool = NULL;
	CHECK_EQ(1, n_done);
	CHECK_EQ(SLU_ECLOSED, posted_while_closing);
}

/* ---- Many at once ---- */

enum {
	POSTERS = 4,
	EACH_POSTS = 200
};

struct chain {
	struct store_request r; /* first */
	unsigned poster, left;
};

/* POOL-1: the request is the caller's again, so `done` posts it anew. */
static void
go_on(struct store_request *r)
{
	struct chain *c = (struct chain *)(void *)r;
	struct slu_err err;

	CHECK_EQ(STORE_OK, r->result);
	if (--c->left) {
		snprintf(r->name, sizeof r->name, "%u/%u", c->poster, c->left);
		r->urgent = c->left % 7 == 0;
		CHECK_EQ(0, store_pool_post(pool, r, &err));
	}
	n_done++;
}

static void *
post_chain(void *arg)
{
	post(arg);
	return NULL;
}

TEST(POOL_1_done_may_post_the_request_again)
{
	static struct chain c = { .left = 3 };

	open_pool(2, 1);
	init(&c.r, STORE_PUT, "first");
	c.r.done = go_on;
	post(&c.r);
	WAIT_UNTIL(n_done == 3);
}

TEST(POOL_1_every_request_ends_once_over_many_threads)
{
	static struct chain chains[POSTERS];
	pthread_t threads[POSTERS];
	struct store_names names = { 0 };
	struct slu_err err;

	open_pool(5, POSTERS);
	EACH(i, chains) {
		init(&chains[i].r, STORE_PUT, "");
		snprintf(chains[i].r.name, sizeof chains[i].r.name, "%zu/first", i);
		chains[i].r.done = go_on;
		chains[i].poster = (unsigned)i;
		chains[i].left = EACH_POSTS;
		pthread_create(&threads[i], NULL, post_chain, &chains[i]);
	}
	EACH(i, chains)
		pthread_join(threads[i], NULL);
	WAIT_UNTIL(n_done == POSTERS * EACH_POSTS);
	CHECK_EQ(STORE_OK, store_list(store, "", "", STORE_PAGE_MAX, &names, &err));
	CHECK_EQ(POSTERS * EACH_POSTS, names.n);
	store_names_release(&names);
}

/* ---- A store that does not block ---- */

static struct store_request *begun[4];
static unsigned n_begun;

static void
keep(struct store *s, struct store_request *r)
{
	(void)s;
	begun[n_begun++] = r;
}

static struct store_pool *canceled;

static void
note_cancel(struct store *s, struct store_pool *p, struct store_request *r)
{
	(void)s;
	(void)r;
	canceled = p;
}

static const struct store_ops keeping_ops = { .name = "keeping", .begin = keep, .cancel = note_cancel };

static void *
end_the_first(void *arg)
{
	(void)arg;
	store_pool_end(begun[0]);
	return NULL;
}

TEST(a_store_that_does_not_block_ends_requests_in_any_order_and_a_close_waits_for_it)
{
	static char label[] = "keeping://";
	struct store keeping = { .ops = &keeping_ops, .label = label };
	const struct store_pool_conf conf = { .store = &keeping, .threads = 2, .max = 2 };
	struct store_request a, b, c;
	struct slu_err err = { 0 };
	pthread_t thread;

	init(&a, STORE_PUT, "a");
	init(&b, STORE_PUT, "b");
	init(&c, STORE_PUT, "c");
	CHECK_EQ(0, store_pool_open(&pool, &conf, &err), err.text);
	post(&a);
	post(&b);
	CHECK_EQ(2, n_begun);
	CHECK_EQ(SLU_EQFULL, store_pool_post(pool, &c, &err));
	CHECK_EQ(0, n_done);
	store_pool_end(&b);
	CHECK_STR("b", order);
	CHECK_EQ(1, store_pool_count(pool));
	CHECK_EQ(0, pthread_create(&thread, NULL, end_the_first, NULL));
	store_pool_close(pool);
	CHECK(canceled == pool);
	pool = NULL;
	CHECK_STR("b a", order);
	CHECK_EQ(0, pthread_join(thread, NULL));
}

TORTURE(a_pool_without_memory_is_not_opened)
{
	const struct store_ops *const rows[] = { &store_memory, NULL };
	const struct store_conf conf = { .url = "memory://torture" };
	struct store_pool_conf pool_conf = { .threads = 2, .max = 4 };
	struct store_pool *p = NULL;
	struct slu_err err = { 0 };

	if (store_open(&pool_conf.store, rows, &conf, &err) != STORE_OK) {
		CHECK_EQ(SLU_ENOMEM, err.code);
		return;
	}
	if (store_pool_open(&p, &pool_conf, &err))
		CHECK_EQ(SLU_ENOMEM, err.code);
	store_pool_close(p);
	store_close(pool_conf.store);
}
