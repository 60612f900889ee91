/*
 * front.c - deadlines, the work before the loop sleeps, and the end of a front.
 */
#include "net/front.h"

#include "base/clock.h"
#include "base/mem.h"
#include "net/protocol.h"

#include <assert.h>
#include <sched.h>
#include <stdio.h>

enum {
	SLAB_BITS = 6
};

#define FRONT_STALE (2 * SLU_MS)

/* --- connections -------------------------------------------------------------- */

struct conn *
front_conn(const struct front *f, uint32_t slot, uint32_t generation)
{
	struct conn *c = slab_at(&f->slab, slot);

	return c->generation == generation ? c : NULL;
}

void
front_dirty(struct front *f, struct conn *c)
{
	if (list_is_empty(&c->dirty))
		list_append(&f->dirty, &c->dirty);
}

void
front_forget(struct front *f, struct conn *c)
{
	atomic_fetch_sub(&f->shared->connections, 1);
	front_count(f, SERVER_CONNECTIONS, (uint64_t)-1);
	slab_free(&f->slab, c->slot);
	front_check_end(f);
}

/* --- deadlines (NETFRONT-3) ----------------------------------------------------------- */

void
front_watch(struct front *f, slu_time deadline)
{
	const slu_time earliest = time_add(f->swept, f->tick);
	const slu_time at = deadline > earliest ? deadline : earliest;

	if (at < f->deadlines.at && deadline != SLU_NEVER)
		loop_timer_set(&f->deadlines, at);
}

static void
sweep(struct loop_timer *t)
{
	struct front *f = CONTAINER(t, struct front, deadlines);
	const slu_time now = loop_now(f->loop);
	slu_time next = SLU_NEVER;

	f->swept = now;
	LIST_EACH_SAFE(n, &f->conns) {
		struct conn *c = CONTAINER(n, struct conn, node);

		if (c->deadline <= now)
			conn_expire(c);
		if (c->generation != 0 && c->deadline < next)
			next = c->deadline;
	}
	front_watch(f, next);
}

static slu_time
tick_of(const struct server_conf *conf)
{
	slu_time least = conf->header_timeout;

	least = conf->idle_timeout < least ? conf->idle_timeout : least;
	least = conf->rate_period < least ? conf->rate_period : least;
	least = conf->linger < least ? conf->linger : least;
	least /= 4;
	if (least > SLU_SEC)
		return SLU_SEC;
	return least < 5 * SLU_MS ? 5 * SLU_MS : least;
}

/* --- before the loop sleeps (NETFRONT-2, NETFRONT-4) ------------------------------------------ */

static void
publish(struct front *f)
{
	static_assert(SERVER_METRICS <= 64, "a bit of front.counted each");

	for (uint64_t rows = f->counted; rows; rows &= rows - 1) {
		const unsigned i = (unsigned)__builtin_ctzll(rows);

		if (f->counts[i])
			metrics_add(&f->shared->metrics, i, 0, f->counts[i]);
		f->counts[i] = 0;
	}
	f->counted = 0;
}

/* --- polling (NETFRONT-5) --------------------------------------------------------------- */

/* How many exchanges are on their way. */
static unsigned
on_their_way(struct front *f)
{
	const slu_time now = loop_now(f->loop);

	if (now - f->event_at >= FRONT_STALE)
		f->n_stale = f->n_seen;
	if (f->n_stale > f->n_exchanges)
		f->n_stale = f->n_exchanges;
	f->event_at = now;
	f->n_seen = f->n_exchanges;
	return f->n_exchanges - f->n_stale;
}

static void
begin_wait(struct front *f)
{
	const unsigned n = on_their_way(f);
	slu_time now;

	f->events_seen = f->events;
	if (n > 1 && !f->poller.began)
		return;
	now = clock_mono(&clock_system);
	poller_end(&f->poller, now);
	loop_poll(f->loop, n <= 1 && poller_begin(&f->poller, n ? POLLER_ANSWER : POLLER_REQUEST, now));
}

static void
rest(struct front *f)
{
	if (!f->poller.allowed)
		return;
	if (f->events != f->events_seen)
		begin_wait(f);
	else if (f->poller.seen)
		loop_poll(f->loop, poller_again(&f->poller, clock_mono(&clock_system)));
}

static void
before_sleep(uv_prepare_t *prepare)
{
	struct front *f = prepare->data;

	while (!list_is_empty(&f->dirty))
		conn_turn(CONTAINER(f->dirty.next, struct conn, dirty));
	if (f->owed)
		front_take_owed(f);
	publish(f);
	rest(f);
}

/* --- SERVER-10 ---------------------------------------------------------------------- */

static void
release(struct loop_work *w)
{
	struct front *f = CONTAINER(w, struct front, release_work);

	LIST_EACH(n, &f->conns) {
		struct conn *c = CONTAINER(n, struct conn, node);

		if (conn_is_held(c))
			conn_go_ahead(c);
	}
}

void
front_release(struct front *f)
{
	f->release_work.run = release;
	loop_post(f->loop, &f->release_work);
}

static void
hand_over(struct loop_work *w)
{
	struct front *f = CONTAINER(w, struct front, hand_over_work);

	f->hands_over = true;
	front_close_listeners(f);
}

void
front_hand_over(struct front *f)
{
	f->hand_over_work.run = hand_over;
	loop_post(f->loop, &f->hand_over_work);
}

/* --- the end ------------------------------------------------------------------ */

void
front_check_end(struct front *f)
{
	if (!f->draining || f->ended || f->n_exchanges > 0 || f->slab.used > 0)
		return;
	f->ended = true;
	publish(f);
	loop_timer_release(&f->deadlines);
	loop_timer_release(&f->drain_end);
	uv_close((uv_handle_t *)&f->prepare, NULL);
	loop_stop(f->loop);
}

static void
close_all(struct loop_timer *t)
{
	struct front *f = CONTAINER(t, struct front, drain_end);

	while (!list_is_empty(&f->conns)) {
		struct conn *c = CONTAINER(f->conns.next, struct conn, node);

		if (!list_is_empty(&c->exchanges))
			atomic_fetch_add(&f->shared->cut, 1);
		conn_close(c);
	}
}

static void
drain(struct loop_work *w)
{
	struct front *f = CONTAINER(w, struct front, drain_work);

	f->draining = true;
	front_close_listeners(f);
	LIST_EACH_SAFE(n, &f->conns) {
		struct conn *c = CONTAINER(n, struct conn, node);

		if (conn_is_held(c))
			conn_refuse_held(c, CONN_STARTING); /* it will not be ready */
		if (c->generation != 0)
			conn_turn(c); /* idle ones close */
	}
	loop_timer_set(&f->drain_end, time_add(loop_now(f->loop), f->drain_grace));
	front_check_end(f);
}

void
front_drain(struct front *f, slu_time grace)
{
	f->drain_grace = grace;
	f->drain_work.run = drain;
	loop_post(f->loop, &f->drain_work);
}

/* --- open --------------------------------------------------------------------- */

static void
close_protocols(struct front *f)
{
	for (unsigned i = 0; i < SERVER_PROTOCOLS; i++) {
		struct front_protocol *const p = &f->protocols[i];

		exchange_free_spares(p);
		if (p->state)
			p->ops->thread_close(p->state);
	}
}

static int
open_protocols(struct front *f, struct front_shared *shared)
{
	int rc = 0;

	for (unsigned i = 0; i < shared->conf.n_protocols && !rc; i++) {
		struct front_protocol *const p = &f->protocols[i];

		p->ops = shared->conf.protocols[i].ops;
		p->shared = shared->states[i];
		if (p->ops->thread_open)
			rc = p->ops->thread_open(&p->state, p->shared);
	}
	return rc;
}

/* Every connection has room for any protocol. */
static size_t
conn_size(const struct server_conf *conf)
{
	size_t most = sizeof(struct conn);

	for (unsigned i = 0; i < conf->n_protocols; i++)
		if (conf->protocols[i].ops->conn_size > most)
			most = conf->protocols[i].ops->conn_size;
	return most;
}

int
front_open(struct front **out, struct front_shared *shared, unsigned number,
	   struct slu_err *err)
{
	struct front *f = mem_zalloc(sizeof *f);
	int rc;

	if (!f)
		return slu_fail(err, SLU_ENOMEM, "no memory for a network thread");
	f->read = mem_alloc(FRONT_READ + 1);
	rc = f->read ? open_protocols(f, shared) : SLU_ENOMEM;
	if (rc)
		slu_fail(err, rc, "no memory for a network thread");
	else
		rc = loop_open(&f->loop, err);
	if (!rc)
		rc = loop_reserve(f->loop, shared->files, err);
	if (rc) {
		loop_close(f->loop);
		close_protocols(f);
		mem_free(f->read);
		mem_free(f);
		return rc;
	}
	f->shared = shared;
	f->number = number;
	f->tick = tick_of(&shared->conf);
	list_init(&f->listeners);
	list_init(&f->conns);
	list_init(&f->dirty);
	slab_init_chunked(&f->slab, conn_size(&shared->conf), SLAB_BITS);
	loop_timer_init(&f->deadlines, f->loop, sweep);
	loop_timer_init(&f->drain_end, f->loop, close_all);
	(void)uv_prepare_init(loop_uv(f->loop), &f->prepare); /* always 0 */
	(void)uv_prepare_start(&f->prepare, before_sleep);    /* always 0 */
	f->prepare.data = f;
	*out = f;
	return 0;
}

/* That this process may use. */
static unsigned
processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

int
front_start(struct front *f, struct slu_err *err)
{
	char name[16];

	(void)snprintf(name, sizeof name, "net %u", f->number);
	poller_init(&f->poller, processors());
	return loop_start(f->loop, name, err);
}

void
front_free(struct front *f)
{
	if (!f)
		return;
	close_protocols(f);
	tls_room_free(f->tls_room);
	slab_release(&f->slab);
	mem_free(f->read);
	mem_free(f);
}
