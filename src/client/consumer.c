#include "client/consumer.h"

#include "base/clock.h"
#include "base/contain.h"

#define QUIET_LOOK (200 * SLU_MS)

/* --- hooks ------------------------------------------------------------------------------ */

struct telling {
	slu_consumer_hook *hook;
	const struct slu_consumer_event *event;
	void *arg;
};

static int
tell(void *arg)
{
	const struct telling *const t = arg;

	CONTAIN("the hook", t->hook(t->event, t->arg));
	return 0;
}

void
worker_tell(struct worker *w, slu_consumer_hook *hook, const struct slu_consumer_event *e)
{
	struct slu_consumer_event event = *e;
	struct telling t = { hook, &event, w->conf.arg };
	struct slu_err err;

	if (!hook)
		return;
	event.name = w->conf.name;
	event.owner = w->owner;
	if (slu_guard(tell, &t, &err) && hook != w->conf.on_error)
		worker_tell_error(w, &err);
}

void
worker_tell_error(struct worker *w, const struct slu_err *err)
{
	worker_tell(w, w->conf.on_error, &(struct slu_consumer_event){ .err = err });
}

/* --- trouble with the server -------------------------------------------------------------- */

slu_time
restart_pause(const struct slu_restart *r, unsigned failures)
{
	double pause = (double)r->base;

	if (failures <= r->at_once)
		return 0;
	for (unsigned i = r->at_once + 1; i < failures && pause < (double)r->max; i++)
		pause *= r->factor;
	return pause < (double)r->max ? (slu_time)pause : r->max;
}

static void
rest(const struct worker *w, slu_time t)
{
	const struct patience until = {
		.deadline = time_add(clock_mono(&clock_system), t),
		.stop_fd = w->stop_fd,
	};

	(void)patience_wait(&until, -1, 0); /* the caller checks why it ended */
}

/* CONSUMER-3 */
static void
meet_trouble(struct worker *w, unsigned failures, const struct slu_err *err)
{
	const struct slu_restart *const r = &w->conf.restart;
	const slu_time pause = restart_pause(r, failures);

	worker_tell_error(w, err);
	if (slu_err_row(err->code)->retry == SLU_RETRY_NO ||
	    (r->max_failures && failures >= r->max_failures)) {
		worker_end(w, err->code, err);
		return;
	}
	rest(w, pause);
	if (!worker_is_ending(w))
		worker_tell(w, w->conf.on_restart,
			    &(struct slu_consumer_event){ .err = err, .failures = failures, .pause = pause });
}

/* --- a thread -------------------------------------------------------------------------------- */

static int
keep_delivery(struct kept *k, slu_time until)
{
	struct slu_delivery *const d = CONTAINER(k, struct slu_delivery, kept);
	const slu_time left = until - clock_mono(&clock_system);
	const struct slu_call call = { SLU_OPTIONS_INIT(struct slu_call), .timeout = left > 0 ? left : 1 };
	const int rc = slu_delivery_extend(d, d->info.visibility, &call, NULL);

	return rc == SLU_ECONFLICT ? 0 : rc; /* the handler has settled it */
}

static void
take_care(struct worker *w, struct slu_delivery *d)
{
	d->kept.keep = keep_delivery;
	if (w->conf.not_extended) /* a lease without an end is never extended, but it ends */
		keeper_add(&w->service->keeper, &d->kept, SLU_NEVER, d->taken);
	else
		keeper_add(&w->service->keeper, &d->kept, d->info.visibility, d->taken);
}

static int
receive_some(struct worker *w, struct receiving *r, struct slu_delivery **got, unsigned *n,
	     struct slu_err *err)
{
	const struct slu_call call = { SLU_OPTIONS_INIT(struct slu_call), .cancel_fd = w->pause_fd, .space = w->conf.space };
	int rc;

	if (r->page > 1)
		return receive_page(r, w->client, -1, &call, got, n, err);
	rc = receive_one(r, w->client, -1, &call, got, err);
	*n = !rc && *got;
	return rc;
}

static void
work_on(struct worker *w, struct slu_delivery **got, unsigned n)
{
	if (n == 0)
		return;
	atomic_fetch_add(&w->used, 1);
	for (unsigned i = 0; i < n; i++)
		take_care(w, got[i]);
	for (unsigned i = 0; i < n; i++) {
		if (worker_is_ending(w))
			worker_return(w, got[i]);
		else
			worker_handle(w, got[i]);
	}
	atomic_fetch_sub(&w->used, 1);
}

/* Until the worker is not quiet any more, or ends. */
static void
stay_quiet(const struct worker *w)
{
	while (atomic_load(&w->quiet) && !worker_is_ending(w))
		rest(w, QUIET_LOOK);
}

static void
consume(struct worker *w)
{
	const struct slu_receive how = {
		SLU_OPTIONS_INIT(struct slu_receive),
		.owner = w->owner,
		.visibility = w->conf.visibility,
		.wait = SLU_NEVER,
		.stateful = w->conf.stateful,
		.kinds = w->conf.n_kinds ? w->names.p : NULL,
	};
	struct slu_delivery *got[RECEIVE_PAGE_MAX];
	struct receiving r;
	unsigned failures = 0;

	(void)receiving_init(&r, w->client, w->conf.queue, &how, NULL); /* the options are valid */
	r.page = w->conf.stateful ? 1 : w->conf.prefetch;
	while (!worker_is_ending(w)) {
		struct slu_err err = { .code = SLU_OK };
		unsigned n = 0;
		int rc;

		stay_quiet(w);
		rc = receive_some(w, &r, got, &n, &err);

		if (rc == SLU_ECANCELED && !worker_is_ending(w))
			continue; /* it is quiet, or was */
		if (rc == SLU_ECANCELED || (rc && atomic_load(&w->client->stopped)))
			break;
		err.code = (enum slu_code)rc;
		failures = rc ? failures + 1 : 0;
		if (rc)
			meet_trouble(w, failures, &err);
		work_on(w, got, n);
	}
}

void *
consumer_main(void *arg)
{
	struct worker *const w = arg;
	struct slu_service *const s = w->service;
	bool last;

	consume(w);
	pthread_mutex_lock(&s->mtx);
	last = --w->alive == 0;
	pthread_mutex_unlock(&s->mtx);
	if (last)
		worker_tell(w, w->conf.on_stop,
			    &(struct slu_consumer_event){ .err = w->rc ? &w->err : NULL });
	pthread_mutex_lock(&s->mtx);
	s->alive--;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->mtx);
	return NULL;
}
