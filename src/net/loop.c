/*
 * loop.c - a libuv loop, and the stack of posted work.
 *
 * Posters push with a compare-and-swap; the loop takes the whole stack with one
 * exchange and reverses it. No single element is popped, so there is no ABA problem.
 */
#include "net/loop.h"

#include "base/mem.h"
#include "net/files.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	STACK = 8 << 20 /* of a thread, unless ulimit sets another */
};

struct loop {
	uv_loop_t uv;
	uv_async_t wake;
	uv_idle_t awake;   /* active: LOOP-4 */
	uv_poll_t highest; /* loop_reserve's, as the next */
	uv_work_t first_work;
	pthread_t thread;
	bool started;
	bool ended;   /* and joined */
	bool closing; /* wake is closed, or about to be */

	/* shared */
	_Alignas(64) _Atomic(struct loop_work *) posted; /* newest first */
	_Atomic bool stopping;
	_Atomic bool polls; /* LOOP-4 */
};

static _Thread_local const struct loop *loop_here;

/* --- work ------------------------------------------------------------------ */

static struct loop_work *
oldest_first(struct loop_work *newest)
{
	struct loop_work *list = NULL;

	while (newest) {
		struct loop_work *next = newest->next;

		newest->next = list;
		list = newest;
		newest = next;
	}
	return list;
}

static void
run_posted(struct loop *l)
{
	struct loop_work *w = atomic_exchange_explicit(&l->posted, NULL,
						       memory_order_acquire);

	for (w = oldest_first(w); w;) {
		struct loop_work *next = w->next; /* w is gone once it has run */

		w->run(w);
		w = next;
	}
}

/* LOOP-2: stopping is read before what was posted, so what was posted before the stop is
 * seen. What that posts in turn is run as well. */
static void
on_wake(uv_async_t *async)
{
	struct loop *l = async->data;
	const bool stopping = atomic_load(&l->stopping);

	run_posted(l);
	if (!stopping || l->closing)
		return;
	while (atomic_load(&l->posted))
		run_posted(l);
	l->closing = true;
	uv_close((uv_handle_t *)&l->wake, NULL);
	uv_close((uv_handle_t *)&l->awake, NULL);
}

void
loop_post(struct loop *l, struct loop_work *w)
{
	struct loop_work *old = atomic_load_explicit(&l->posted, memory_order_relaxed);

	do {
		w->next = old;
	} while (!atomic_compare_exchange_weak(&l->posted, &old, w));
	if (!old && !atomic_load(&l->polls))
		(void)uv_async_send(&l->wake); /* cannot fail on Linux */
}

/* --- polling (LOOP-4) ------------------------------------------------------ */

/* An active idle handle keeps a turn from sleeping. */
static void
stay_awake(uv_idle_t *awake)
{
	struct loop *const l = awake->data;

	if (atomic_load_explicit(&l->posted, memory_order_relaxed))
		run_posted(l);
	else
		sched_yield();
}

/* A poster that has seen `polls` wakes nobody; its work is seen here. */
void
loop_poll(struct loop *l, bool on)
{
	assert(loop_is_here(l));
	if (on == atomic_load_explicit(&l->polls, memory_order_relaxed))
		return;
	atomic_store(&l->polls, on);
	if (on)
		(void)uv_idle_start(&l->awake, stay_awake); /* always 0 */
	else
		(void)uv_idle_stop(&l->awake); /* always 0 */
	if (!on && atomic_load(&l->posted))
		(void)uv_async_send(&l->wake); /* cannot fail on Linux */
}

/* --- open, run, close ------------------------------------------------------ */

int
loop_open(struct loop **out, struct slu_err *err)
{
	struct loop *l = mem_aligned(64, sizeof *l);
	int rc;

	if (!l)
		return slu_fail(err, SLU_ENOMEM, "no memory for an event loop");
	memset(l, 0, sizeof *l);
	rc = uv_loop_init(&l->uv);
	if (rc)
		goto no_loop;
	rc = uv_async_init(&l->uv, &l->wake, on_wake);
	if (rc)
		goto no_wake;
	(void)uv_idle_init(&l->uv, &l->awake); /* always 0 */
	l->wake.data = l->awake.data = l;
	*out = l;
	return 0;
no_wake:
	(void)uv_loop_close(&l->uv); /* it has no handles */
no_loop:
	mem_free(l);
	return slu_fail(err, SLU_EDOWN, "open an event loop: %s", uv_strerror(rc));
}

/* libuv finds a descriptor in an array that grows when a higher one is watched. */
static void
watch_highest(struct loop *l, unsigned files)
{
	const int low = eventfd(0, EFD_CLOEXEC);
	const int fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, (int)files - 1);

	if (low >= 0)
		close(low);
	if (fd < 0)
		return; /* then no socket can have it either */
	if (uv_poll_init(&l->uv, &l->highest, fd) == 0) {
		(void)uv_poll_start(&l->highest, UV_READABLE, NULL); /* always 0 */
		(void)uv_poll_stop(&l->highest);                     /* always 0 */
		uv_close((uv_handle_t *)&l->highest, NULL);
	}
	close(fd);
}

static void
do_nothing(uv_work_t *work)
{
	(void)work; /* the threads are there when it is done */
}

int
loop_reserve(struct loop *l, unsigned files, struct slu_err *err)
{
	const size_t bytes = 2 * files * sizeof(void *) + LOOP_FILE_THREADS * STACK;
	const unsigned long limit = files_allow(files);
	void *const room = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (room == MAP_FAILED)
		return slu_fail(err, SLU_ENOMEM,
				"no memory for %u connections and the threads that read files",
				files);
	munmap(room, bytes);
	watch_highest(l, files < limit ? files : (unsigned)limit);
	if (uv_queue_work(&l->uv, &l->first_work, do_nothing, NULL))
		return slu_fail(err, SLU_EDOWN, "cannot start the threads that read files");
	return 0;
}

static void *
run(void *arg)
{
	struct loop *l = arg;

	loop_here = l;
	(void)uv_run(&l->uv, UV_RUN_DEFAULT); /* LOOP-3 */
	run_posted(l);
	loop_here = NULL;
	return NULL;
}

/* Signals are for the thread that called us; and a write to a client that is gone is
 * an error of that write, not SIGPIPE. */
int
loop_start(struct loop *l, const char *name, struct slu_err *err)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&l->thread, NULL, run, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return slu_fail(err, SLU_EDOWN, "start thread %s: %s", name,
				strerror(rc));
	l->started = true;
	(void)pthread_setname_np(l->thread, name); /* too long: it has none */
	return 0;
}

/* libuv watches a new descriptor from the beginning of the next turn, and prepare handles run
 * then: hence LOOP_QUIET. */
bool
loop_round(struct loop *l)
{
	struct pollfd ready = { .fd = uv_backend_fd(&l->uv), .events = POLLIN };
	int at_work;

	assert(!l->started);
	loop_here = l;
	(void)uv_run(&l->uv, UV_RUN_NOWAIT); /* LOOP-3 */
	loop_here = NULL;
	at_work = l->uv.active_reqs.count > 0;
	return uv_backend_timeout(&l->uv) == 0 || poll(&ready, 1, at_work) > 0 || at_work;
}

void
loop_stop(struct loop *l)
{
	if (!atomic_exchange(&l->stopping, true))
		(void)uv_async_send(&l->wake); /* cannot fail on Linux */
}

void
loop_wait(struct loop *l)
{
	assert(!loop_is_here(l));
	if (l->ended)
		return;
	if (l->started)
		pthread_join(l->thread, NULL);
	else
		run(l);
	l->ended = true;
}

void
loop_close(struct loop *l)
{
	int rc;

	if (!l)
		return;
	loop_stop(l);
	loop_wait(l);
	rc = uv_loop_close(&l->uv);
	assert(rc == 0); /* LOOP-3 */
	(void)rc;
	mem_free(l);
}

bool
loop_is_here(const struct loop *l)
{
	return loop_here == l;
}

uv_loop_t *
loop_uv(struct loop *l)
{
	return &l->uv;
}

slu_time
loop_now(const struct loop *l)
{
	return (slu_time)uv_now(&l->uv) * SLU_MS;
}

/* --- timers ---------------------------------------------------------------- */

static void
on_timer(uv_timer_t *uv)
{
	struct loop_timer *t = uv->data;

	t->at = SLU_NEVER;
	t->fire(t);
}

void
loop_timer_init(struct loop_timer *t, struct loop *l,
		void (*fire)(struct loop_timer *t))
{
	*t = (struct loop_timer){ .fire = fire, .loop = l, .at = SLU_NEVER };
	(void)uv_timer_init(&l->uv, &t->uv); /* always 0 */
	t->uv.data = t;
}

/* Rounded up, so that it is never early. */
void
loop_timer_set(struct loop_timer *t, slu_time at)
{
	const slu_time wait = at - loop_now(t->loop);

	t->at = at;
	if (at == SLU_NEVER)
		(void)uv_timer_stop(&t->uv); /* always 0 */
	else
		(void)uv_timer_start(&t->uv, on_timer, /* fails only when closing */
				     wait > 0 ? (uint64_t)((wait - 1) / SLU_MS + 1) : 0, 0);
}

void
loop_timer_release(struct loop_timer *t)
{
	if (t->loop && !uv_is_closing((uv_handle_t *)&t->uv))
		uv_close((uv_handle_t *)&t->uv, NULL);
}
