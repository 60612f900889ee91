#include "server_fixture.h"

#include <semaphore.h>

FIXTURE(NULL, fx_end);

/* What is run on the network threads. */
struct errand {
	pthread_t seen[8];
	_Atomic unsigned n;
	sem_t begun, go_on;
};

static void
note(void *arg)
{
	struct errand *e = arg;

	e->seen[atomic_fetch_add(&e->n, 1)] = pthread_self();
}

/* conf/reload.h RELOAD-3 */
TEST(an_errand_is_run_by_every_network_thread)
{
	struct errand e = { 0 };

	fx_open((struct server_conf){ .threads = 3 });
	server_each(fx.srv, note, &e);
	CHECK_EQ(3, atomic_load(&e.n));
	for (unsigned i = 0; i < 3; i++) {
		CHECK(!pthread_equal(e.seen[i], pthread_self()));
		for (unsigned j = 0; j < i; j++)
			CHECK(!pthread_equal(e.seen[i], e.seen[j]));
	}
	server_each(fx.srv, note, &e);
	CHECK_EQ(6, atomic_load(&e.n));
}

static void
hang(void *arg)
{
	struct errand *e = arg;

	sem_post(&e->begun);
	sem_wait(&e->go_on);
}

struct hanging {
	struct server *srv;
	struct errand *errand;
};

static void *
send_errand(void *arg)
{
	struct hanging *h = arg;

	server_each(h->srv, hang, h->errand);
	return NULL;
}

/* The watchdog hears nothing of a server whose thread hangs. */
TEST(a_thread_that_hangs_gives_no_sign_of_life)
{
	struct errand e = { 0 };
	struct hanging h = { .errand = &e };
	pthread_t thread;

	sem_init(&e.begun, 0, 0);
	sem_init(&e.go_on, 0, 0);
	fx_open((struct server_conf){ .threads = 1 });
	h.srv = fx.srv;
	CHECK(server_alive(fx.srv)); /* the first time nothing was asked before */
	WAIT_UNTIL(server_alive(fx.srv));
	CHECK_EQ(0, pthread_create(&thread, NULL, send_errand, &h));
	sem_wait(&e.begun);
	(void)server_alive(fx.srv); /* what was asked before may have been answered */
	CHECK(!server_alive(fx.srv));
	CHECK(!server_alive(fx.srv));
	sem_post(&e.go_on);
	WAIT_UNTIL(server_alive(fx.srv));
	pthread_join(thread, NULL);
}
