/*
 * membership.c - members.h over a store, in a thread.
 */
#include "members/membership.h"

#include "members/members_private.h"
#include "members/on_store.h"

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"

enum {
	POOL_THREADS = 3 /* one of them for beats */
};

/* A request on its way. */
struct membership_shot {
	struct store_request request;
	struct membership *ms;
	unsigned slot;
};

struct membership {
	struct membership_conf conf;
	struct store_pool *pool;
	struct membership_shot shots[MEMBERS_SLOTS];
	pthread_t thread;

	pthread_mutex_t mtx;
	pthread_cond_t changed;

	/* shared, under mtx */
	struct members *members;
	bool news; /* the thread looks again before it sleeps */
	bool closing;
	bool failing; /* the log says that the store fails */
};

slu_time
membership_now(void)
{
	return clock_boot(&clock_system);
}

struct members *
membership_lock(struct membership *ms)
{
	pthread_mutex_lock(&ms->mtx);
	return ms->members;
}

void
membership_unlock(struct membership *ms)
{
	ms->news = true;
	pthread_cond_signal(&ms->changed);
	pthread_mutex_unlock(&ms->mtx);
}

/* ---- Requests ---- */

/* Under mtx. One log line when the store begins to fail, one when beats and reads succeed again. */
static void
note_health(struct membership *ms, const struct store_request *r)
{
	const bool failed = on_store_answer(r).result == LINE_FAILED;

	if (failed && !ms->failing && !ms->closing) {
		log_warn(ms->conf.log, "store failed", F_STR("object", r->name), F_STR("error", r->err.text));
		ms->failing = true;
	} else if (ms->failing && ms->members->counting) {
		log_info(ms->conf.log, "store answers again");
		ms->failing = false;
	}
}

static void
on_done(struct store_request *r)
{
	struct membership_shot *const shot = CONTAINER(r, struct membership_shot, request);
	struct membership *const ms = shot->ms;
	const struct line_answer a = on_store_answer(r);

	pthread_mutex_lock(&ms->mtx);
	members_reply(ms->members, shot->slot, &a, membership_now());
	note_health(ms, r);
	membership_unlock(ms);
}

/* Under mtx. */
static void
post(struct membership *ms, const struct line_request *r)
{
	struct membership_shot *const shot = &ms->shots[r->slot];
	struct store_request *const to = &shot->request;
	struct slu_err err;

	on_store_ask(to, r);
	to->urgent = r->verb == LINE_REPLACE;
	to->done = on_done;
	shot->ms = ms;
	shot->slot = r->slot;
	if (store_pool_post(ms->pool, to, &err))
		members_reply(ms->members, r->slot, &(struct line_answer){ .result = LINE_FAILED }, membership_now());
}

/* ---- The thread ---- */

/* Under mtx. */
static void
handle_events(struct membership *ms)
{
	struct members_event e;

	while (!ms->closing && members_event(ms->members, membership_now(), &e)) {
		pthread_mutex_unlock(&ms->mtx);
		ms->conf.event(ms->conf.arg, ms, &e);
		pthread_mutex_lock(&ms->mtx);
	}
}

/* Under mtx. The boot clock may run ahead of the clock that is waited for: the machine sleeps. */
static void
sleep_until_due(struct membership *ms)
{
	const slu_time now = membership_now(), due = members_due(ms->members);
	const slu_time longest = members_interval(ms->members);
	const slu_time pause = due < now ? 0 : due - now < longest ? due - now
								   : longest;

	if (!ms->news && pause > 0)
		clock_wait(&clock_system, &ms->changed, &ms->mtx, time_add(clock_mono(&clock_system), pause));
	ms->news = false;
}

static void *
run(void *arg)
{
	struct membership *const ms = arg;
	struct line_request r;

	pthread_mutex_lock(&ms->mtx);
	while (!ms->closing) {
		while (members_next(ms->members, membership_now(), &r))
			post(ms, &r);
		handle_events(ms);
		if (!ms->closing)
			sleep_until_due(ms);
	}
	pthread_mutex_unlock(&ms->mtx);
	return NULL;
}

/* ---- Open and close ---- */

static void
release(struct membership *ms)
{
	store_pool_close(ms->pool);
	for (unsigned i = 0; i < MEMBERS_SLOTS; i++)
		store_request_release(&ms->shots[i].request);
	members_free(ms->members);
	pthread_cond_destroy(&ms->changed);
	pthread_mutex_destroy(&ms->mtx);
	mem_free(ms);
}

static int
start(struct membership *ms, struct slu_err *err)
{
	const struct store_pool_conf pool = {
		.store = ms->conf.store,
		.threads = POOL_THREADS,
		.max = MEMBERS_SLOTS,
	};
	int rc = members_new(&ms->members, &ms->conf.members);

	if (rc)
		return slu_fail(err, rc, "out of memory");
	rc = store_pool_open(&ms->pool, &pool, err);
	if (rc)
		return rc;
	if (pthread_create(&ms->thread, NULL, run, ms))
		return slu_fail(err, SLU_EDOWN, "cannot start a thread");
	return 0;
}

int
membership_open(struct membership **out, const struct membership_conf *conf, struct slu_err *err)
{
	struct membership *const ms = mem_zalloc(sizeof *ms);
	int rc;

	if (!ms)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	ms->conf = *conf;
	pthread_mutex_init(&ms->mtx, NULL);
	pthread_cond_init(&ms->changed, NULL);
	for (unsigned i = 0; i < MEMBERS_SLOTS; i++)
		store_request_init(&ms->shots[i].request);
	rc = start(ms, err);
	if (rc) {
		release(ms);
		return rc;
	}
	*out = ms;
	return 0;
}

void
membership_close(struct membership *ms)
{
	if (!ms)
		return;
	pthread_mutex_lock(&ms->mtx);
	ms->closing = true;
	membership_unlock(ms);
	pthread_join(ms->thread, NULL);
	release(ms);
}
