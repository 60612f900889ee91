#include "client/consumer.h"

#include "base/clock.h"
#include "base/forked.h"
#include "base/mem.h"
#include "base/need.h"
#include "base/sized.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
	CONSUMERS_MAX = 1024,
	CONCURRENCY_MAX = 256,
	KINDS_MAX = 64
};

/* --- configs -------------------------------------------------------------------------------- */

static bool
kinds_are_valid(const struct slu_consumer *c)
{
	for (size_t i = 0; i < c->n_kinds; i++) {
		const struct slu_kind *const k = &c->kinds[i];

		if (!k->kind || !k->kind[0] || strchr(k->kind, ',') || !k->handle)
			return false;
		for (size_t j = 0; j < i; j++)
			if (strcmp(c->kinds[j].kind, k->kind) == 0)
				return false;
	}
	return true;
}

static int
check(const struct slu_consumer *c, size_t i, struct slu_err *err)
{
	const char *wrong = NULL;

	if (!c->queue || !c->queue[0])
		wrong = "invalid queue; expected a name";
	else if (!c->handle == !c->n_kinds)
		wrong = "invalid handle; expected a function, or a table of kinds instead";
	else if (c->n_kinds > KINDS_MAX || !kinds_are_valid(c))
		wrong = "invalid kinds; expected at most 64 rows with a kind and a function, each kind once";
	else if (c->concurrency > CONCURRENCY_MAX)
		wrong = "invalid concurrency; expected at most 256";
	else if (c->prefetch > RECEIVE_PAGE_MAX)
		wrong = "invalid prefetch; expected at most 64";
	else if (c->stateful && c->prefetch > 1)
		wrong = "invalid prefetch; expected 1: messages with state come one at a time";
	else if (c->visibility < 0 || c->retry_delay < 0 || c->defer_delay < 0 ||
		 c->restart.base < 0 || c->restart.max < 0)
		wrong = "invalid time; expected 0 or more";
	else if (c->visibility == SLU_NEVER)
		wrong = "invalid visibility; expected a finite time";
	else if (c->restart.factor < 0 || (c->restart.factor > 0 && c->restart.factor < 1))
		wrong = "invalid restart.factor; expected 1 or more";
	if (wrong)
		return slu_fail(err, SLU_EINVAL, "consumer %zu (%s): %s", i, c->name ? c->name : "no name", wrong);
	return 0;
}

static void
fill_defaults(struct slu_consumer *c)
{
	struct slu_restart *const r = &c->restart;

	c->concurrency = c->concurrency ? c->concurrency : 1;
	c->prefetch = c->prefetch ? c->prefetch : 1;
	r->at_once = r->at_once ? r->at_once : 3;
	r->base = r->base > 0 ? r->base : 250 * SLU_MS;
	r->factor = r->factor > 0 ? r->factor : 2;
	r->max = r->max > 0 ? r->max : 5 * SLU_MIN;
}

static const char *
copy(const char *text, bool *failed)
{
	char *const out = text ? mem_strdup(text) : NULL;

	*failed |= text && !out;
	return out;
}

/* Copies the table of kinds, and makes the list of its names. */
static void
copy_kinds(struct worker *w, bool *failed)
{
	const struct slu_kind *const given = w->conf.kinds;
	const size_t n = w->conf.n_kinds;
	struct slu_kind *const kinds = n ? mem_array(n, sizeof *kinds) : NULL;

	w->conf.kinds = kinds;
	*failed |= n && !kinds;
	for (size_t i = 0; kinds && i < n; i++) {
		kinds[i] = given[i];
		kinds[i].kind = copy(given[i].kind, failed);
		if (i)
			buf_putc(&w->names, ',');
		buf_puts(&w->names, given[i].kind);
	}
	*failed |= n && !buf_str(&w->names);
}

/* Makes a unique owner: "mail-host-1234-...". */
static void
make_owner(struct worker *w)
{
	char made[CLIENT_OWNER_TEXT];

	client_owner(w->client, w->conf.owner, made);
	if (w->conf.owner)
		memcpy(w->owner, made, sizeof made);
	else
		(void)snprintf(w->owner, sizeof w->owner, "%.40s-%.90s", w->conf.name, made);
}

static int
worker_init(struct worker *w, struct slu_service *s, const struct slu_consumer *conf,
	    struct slu_err *err)
{
	bool failed = false;

	*w = (struct worker){ .service = s, .client = s->client, .conf = *conf, .stop_fd = -1, .pause_fd = -1 };
	buf_init(&w->names, WORKER_NAMES);
	w->conf.name = copy(conf->name ? conf->name : conf->queue, &failed);
	w->conf.queue = copy(conf->queue, &failed);
	w->conf.space = copy(conf->space, &failed);
	w->conf.owner = copy(conf->owner, &failed);
	copy_kinds(w, &failed);
	fill_defaults(&w->conf);
	w->threads = mem_array(w->conf.concurrency, sizeof w->threads[0]);
	if (failed || !w->threads)
		return slu_fail(err, SLU_ENOMEM, "no memory for consumer %s", conf->queue);
	make_owner(w);
	w->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->pause_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return w->stop_fd < 0 || w->pause_fd < 0 ? slu_fail(err, SLU_EFAILED, "cannot open a descriptor: %m") : 0;
}

static void
worker_release(struct worker *w)
{
	mem_free((void *)w->conf.name);
	mem_free((void *)w->conf.queue);
	mem_free((void *)w->conf.space);
	mem_free((void *)w->conf.owner);
	for (size_t i = 0; w->conf.kinds && i < w->conf.n_kinds; i++)
		mem_free((void *)w->conf.kinds[i].kind);
	mem_free((void *)w->conf.kinds);
	buf_release(&w->names);
	mem_free(w->threads);
	if (w->service && w->stop_fd >= 0)
		close(w->stop_fd);
	if (w->service && w->pause_fd >= 0)
		close(w->pause_fd);
}

static int
service_new(struct slu_service **out, struct slu_client *client,
	    const struct slu_consumer *consumers, size_t n, struct slu_err *err)
{
	struct slu_service *s = mem_zalloc(sizeof *s);
	int rc = 0;

	*out = NULL;
	if (s)
		s->workers = mem_array(n + 1, sizeof s->workers[0]);
	if (!s || !s->workers) {
		mem_free(s);
		return slu_fail(err, SLU_ENOMEM, "no memory for a service");
	}
	s->born = forked_now();
	s->client = client;
	pthread_mutex_init(&s->mtx, NULL);
	pthread_cond_init(&s->changed, NULL);
	for (size_t i = 0; i < n && !rc; i++) {
		rc = check(&consumers[i], i, err);
		if (!rc)
			rc = worker_init(&s->workers[s->n++], s, &consumers[i], err);
	}
	if (rc) {
		slu_service_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

int
slu_service_new(struct slu_service **out, struct slu_client *client,
		const struct slu_consumer *consumers, size_t n, struct slu_err *err)
{
	NEED3(out, client, consumers, err);

	struct sized_array a;
	int rc;

	*out = NULL;
	if (n == 0 || n > CONSUMERS_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid number of consumers: %zu; expected 1 to %d", n, CONSUMERS_MAX);
	rc = sized_array(&a, consumers, n, sizeof *consumers, "slu_consumer", err);
	if (!rc)
		rc = service_new(out, client, a.items, n, err);
	sized_array_release(&a);
	return rc;
}

void
slu_service_free(struct slu_service *s)
{
	if (!s || s->born != forked_now())
		return;
	slu_service_stop(s);
	(void)slu_service_wait(s, 0, NULL); /* on_error reported why the worker ended */
	for (size_t i = 0; i < s->n; i++)
		worker_release(&s->workers[i]);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->mtx);
	mem_free(s->workers);
	mem_free(s);
}

/* --- running -------------------------------------------------------------------------------- */

bool
worker_is_ending(const struct worker *w)
{
	struct pollfd p = { .fd = w->stop_fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

void
worker_ask_to_end(const struct worker *w)
{
	const uint64_t one = 1;

	(void)!write(w->stop_fd, &one, sizeof one); /* an eventfd takes it */
	worker_wake(w);
}

void
worker_end(struct worker *w, int rc, const struct slu_err *err)
{
	pthread_mutex_lock(&w->service->mtx);
	if (!w->rc) {
		w->rc = rc;
		w->err = *err;
	}
	pthread_mutex_unlock(&w->service->mtx);
	worker_ask_to_end(w);
}

void
slu_service_stop(struct slu_service *s)
{
	if (!s || s->born != forked_now())
		return; /* a child must not write to the parent's descriptors */
	for (size_t i = 0; i < s->n; i++)
		worker_ask_to_end(&s->workers[i]);
}

/* Counts threads that could not be started as ended. */
static int
start_worker(struct worker *w, struct slu_err *err)
{
	struct slu_service *const s = w->service;
	uint64_t old;

	(void)!read(w->stop_fd, &old, sizeof old); /* remove signals of the previous run */
	(void)!read(w->pause_fd, &old, sizeof old);
	atomic_store(&w->quiet, false);
	w->rc = 0;
	worker_tell(w, w->conf.on_start, &(struct slu_consumer_event){ 0 });
	for (unsigned i = 0; i < w->conf.concurrency; i++) {
		pthread_mutex_lock(&s->mtx);
		w->alive++;
		s->alive++;
		pthread_mutex_unlock(&s->mtx);
		if (pthread_create(&w->threads[i], NULL, consumer_main, w) == 0)
			continue;
		pthread_mutex_lock(&s->mtx);
		w->alive--;
		s->alive--;
		pthread_mutex_unlock(&s->mtx);
		w->started = i;
		return slu_fail(err, SLU_EDOWN, "cannot start a thread for consumer %s", w->conf.name);
	}
	w->started = w->conf.concurrency;
	worker_beat_start(w);
	return 0;
}

int
slu_service_start(struct slu_service *s, struct slu_err *err)
{
	NEED(s, err);
	NEED_OURS(s, err);

	int rc;

	pthread_mutex_lock(&s->mtx);
	rc = s->running ? slu_fail(err, SLU_ECONFLICT, "the service is already running") : 0;
	s->running = true;
	pthread_mutex_unlock(&s->mtx);
	if (rc)
		return rc;
	rc = keeper_start(&s->keeper, err);
	if (rc) {
		s->running = false;
		return rc;
	}
	for (size_t i = 0; i < s->n; i++)
		s->workers[i].started = 0;
	for (size_t i = 0; i < s->n && !rc; i++)
		rc = start_worker(&s->workers[i], err);
	if (rc) {
		slu_service_stop(s);
		(void)slu_service_wait(s, 0, NULL); /* no worker can change it */
	}
	return rc;
}

/* Joins the threads. The caller holds mtx; other callers wait for the first. */
static void
reap(struct slu_service *s)
{
	if (s->reaping) {
		while (s->running)
			pthread_cond_wait(&s->changed, &s->mtx);
		return;
	}
	s->reaping = true;
	pthread_mutex_unlock(&s->mtx);
	for (size_t i = 0; i < s->n; i++)
		for (unsigned j = 0; j < s->workers[i].started; j++)
			pthread_join(s->workers[i].threads[j], NULL);
	for (size_t i = 0; i < s->n; i++)
		worker_beat_stop(&s->workers[i]);
	keeper_stop(&s->keeper);
	pthread_mutex_lock(&s->mtx);
	s->reaping = s->running = false;
	pthread_cond_broadcast(&s->changed);
}

int
slu_service_wait(struct slu_service *s, slu_time timeout, struct slu_err *err)
{
	NEED(s, err);
	NEED_OURS(s, err);

	const slu_time end = time_add(clock_mono(&clock_system), timeout > 0 ? timeout : SLU_NEVER);
	int rc = 0;

	if (need_time(timeout, "timeout", err))
		return SLU_EINVAL;
	pthread_mutex_lock(&s->mtx);
	while (s->alive > 0 && !rc) {
		clock_wait(&clock_system, &s->changed, &s->mtx, end);
		if (s->alive > 0 && clock_mono(&clock_system) >= end)
			rc = slu_fail(err, SLU_ETIMEOUT, "%u threads of the service are still running", s->alive);
	}
	if (!rc && s->running)
		reap(s);
	for (size_t i = 0; i < s->n && !rc; i++) {
		rc = s->workers[i].rc;
		if (rc && err)
			*err = s->workers[i].err;
	}
	pthread_mutex_unlock(&s->mtx);
	return rc;
}

int
slu_service_run(struct slu_service *s, struct slu_err *err)
{
	NEED(s, err);

	const int rc = slu_service_start(s, err);

	return rc ? rc : slu_service_wait(s, 0, err);
}
