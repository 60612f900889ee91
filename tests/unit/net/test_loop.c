#include "test.h"

#include "base/list.h"
#include "net/loop.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
	POSTERS = 4,
	POSTS = 5000
};

static struct loop *
open_loop(void)
{
	struct slu_err err;
	struct loop *l = NULL;

	CHECK_EQ(0, loop_open(&l, &err), err.text);
	return l;
}

static void
start(struct loop *l)
{
	struct slu_err err;

	CHECK_EQ(0, loop_start(l, "test loop", &err), err.text);
}

/* --- LOOP-2 ----------------------------------------------------------------------- */

struct item {
	struct loop_work work;
	int poster, number;
};

static struct item items[POSTERS][POSTS];
static struct loop *shared_loop;
static int next_of[POSTERS]; /* the loop's */
static _Atomic int ran;

static void
run_item(struct loop_work *w)
{
	const struct item *it = CONTAINER(w, struct item, work);

	CHECK(loop_is_here(shared_loop));
	CHECK_EQ(next_of[it->poster]++, it->number);
	atomic_fetch_add(&ran, 1);
}

static void *
post_all(void *arg)
{
	struct item *list = arg;

	for (int i = 0; i < POSTS; i++)
		loop_post(shared_loop, &list[i].work);
	return NULL;
}

TEST(what_each_thread_posts_runs_in_its_order)
{
	pthread_t threads[POSTERS];

	shared_loop = open_loop();
	start(shared_loop);
	CHECK(!loop_is_here(shared_loop));
	for (int i = 0; i < POSTERS; i++) {
		for (int k = 0; k < POSTS; k++)
			items[i][k] = (struct item){ { NULL, run_item }, i, k };
		CHECK_EQ(0, pthread_create(&threads[i], NULL, post_all, items[i]));
	}
	for (int i = 0; i < POSTERS; i++)
		pthread_join(threads[i], NULL);
	loop_close(shared_loop); /* all was posted before: all runs */
	CHECK_EQ(POSTERS * POSTS, atomic_load(&ran));
}

/* --- one wake-up for many ------------------------------------------------------- */

struct gate {
	struct loop_work work;
	_Atomic int state; /* 1: the loop is in it, 2: it may go on */
};

static void
wait_in_gate(struct loop_work *w)
{
	struct gate *g = CONTAINER(w, struct gate, work);

	atomic_store(&g->state, 1);
	WAIT_UNTIL(atomic_load(&g->state) == 2);
}

/* Counts turns of its loop; closed there, LOOP-3. */
struct counter {
	uv_prepare_t uv;
	struct loop_work close;
	int fairqueue;
};

static void
count_turn(uv_prepare_t *p)
{
	CONTAINER(p, struct counter, uv)->fairqueue++;
}

static void
close_counter(struct loop_work *w)
{
	uv_close((uv_handle_t *)&CONTAINER(w, struct counter, close)->uv, NULL);
}

TEST(posts_that_gather_cost_one_turn_of_the_loop)
{
	static struct gate gate = { .work = { NULL, wait_in_gate } };
	static struct counter counter = { .close = { NULL, close_counter } };

	shared_loop = open_loop();
	uv_prepare_init(loop_uv(shared_loop), &counter.uv);
	uv_prepare_start(&counter.uv, count_turn);
	start(shared_loop);
	loop_post(shared_loop, &gate.work);
	WAIT_UNTIL(atomic_load(&gate.state) == 1);
	for (int k = 0; k < POSTS; k++) {
		items[0][k] = (struct item){ { NULL, run_item }, 0, k };
		loop_post(shared_loop, &items[0][k].work);
	}
	loop_post(shared_loop, &counter.close);
	atomic_store(&gate.state, 2);
	loop_close(shared_loop);
	CHECK_EQ(POSTS, atomic_load(&ran));
	CHECK(counter.fairqueue < 10);
}

/* --- polling: LOOP-4 ---------------------------------------------------------- */

static _Atomic bool polls;

static void
poll_on(struct loop_work *w)
{
	(void)w;
	loop_poll(shared_loop, true);
	atomic_store(&polls, true);
}

static void
poll_off(struct loop_work *w)
{
	(void)w;
	loop_poll(shared_loop, false);
}

TEST(a_loop_that_polls_runs_what_is_posted)
{
	struct loop_work on = { .run = poll_on };

	shared_loop = open_loop();
	start(shared_loop);
	loop_post(shared_loop, &on);
	for (int k = 0; k < POSTS; k++) {
		items[0][k] = (struct item){ { NULL, run_item }, 0, k };
		loop_post(shared_loop, &items[0][k].work);
		WAIT_UNTIL(k % 8 || atomic_load(&ran) == k + 1);
	}
	loop_close(shared_loop);
	CHECK_EQ(POSTS, atomic_load(&ran));
}

/* The post that comes just when polling ends wakes the loop, or the loop sees it. */
TEST(no_post_is_forgotten_when_polling_ends)
{
	struct loop_work on = { .run = poll_on }, off = { .run = poll_off };

	shared_loop = open_loop();
	start(shared_loop);
	for (int k = 0; k < POSTS; k++) {
		items[0][k] = (struct item){ { NULL, run_item }, 0, k };
		atomic_store(&polls, false);
		loop_post(shared_loop, &on);
		WAIT_UNTIL(atomic_load(&polls));
		loop_post(shared_loop, &off);
		loop_post(shared_loop, &items[0][k].work);
		WAIT_UNTIL(atomic_load(&ran) == k + 1);
	}
	loop_close(shared_loop);
}

/* --- work that posts, a loop that never started --------------------------------- */

static void
post_again(struct loop_work *w)
{
	struct item *it = CONTAINER(w, struct item, work);

	if (++it->number < 100)
		loop_post(shared_loop, w);
}

TEST(what_runs_may_post_and_is_run_before_the_end)
{
	struct item it = { .work = { NULL, post_again } };

	shared_loop = open_loop();
	loop_post(shared_loop, &it.work);
	loop_close(shared_loop); /* never started: it runs here */
	CHECK_EQ(100, it.number);
	loop_close(NULL);
}

/* --- timers --------------------------------------------------------------------- */

struct alarm {
	struct loop_timer timer;
	slu_time set_for;
	int fired;
};

static struct alarm alarms[3];
static int order[3], n_fired;

static void
ring(struct loop_timer *t)
{
	struct alarm *a = CONTAINER(t, struct alarm, timer);

	CHECK(loop_now(t->loop) >= a->set_for);
	CHECK(t->at == SLU_NEVER);
	a->fired++;
	order[n_fired++] = (int)(a - alarms);
	if (n_fired == 2) /* the third was called off */
		for (int i = 0; i < 3; i++)
			loop_timer_release(&alarms[i].timer);
}

static void
set_alarm(int i, slu_time in)
{
	struct loop_timer *t = &alarms[i].timer;

	alarms[i].set_for = loop_now(t->loop) + in;
	loop_timer_set(t, alarms[i].set_for);
}

TEST(timers_fire_once_in_order_and_never_early)
{
	struct loop *l = open_loop();
	struct loop_timer none = { .loop = NULL };

	for (int i = 0; i < 3; i++)
		loop_timer_init(&alarms[i].timer, l, ring);
	set_alarm(0, 20 * SLU_MS);
	set_alarm(1, 5 * SLU_MS + 1);
	set_alarm(2, 10 * SLU_MS);
	loop_timer_set(&alarms[2].timer, SLU_NEVER);
	set_alarm(0, 7 * SLU_MS); /* the last word counts */
	loop_timer_release(&none);
	loop_close(l);
	CHECK_EQ(2, n_fired);
	CHECK_EQ(1, order[0]);
	CHECK_EQ(0, order[1]);
}

TORTURE(a_loop_opens_or_says_why_not)
{
	struct slu_err err = { 0 };
	struct loop *l = NULL;
	const int rc = loop_open(&l, &err);

	CHECK(rc == 0 || (rc == SLU_ENOMEM && err.text[0]));
	loop_close(l);
}
