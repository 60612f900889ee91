/*
 * The consumer service against real servers.
 */
#include "served.h"

#include "client/consumer.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct test_server srv;

/* What the callbacks of a test have seen. */
struct seen {
	_Atomic unsigned handled, errors, restarts, started, stopped;
	_Atomic unsigned inside; /* handlers that run */
	_Atomic bool go;         /* handlers may end */
	_Atomic int error;       /* code of the last */
	enum slu_verdict verdict;
	char owner[140];
	char text[16];
	pthread_mutex_t mtx;
};

static struct slu_client *
start(const char *engine)
{
	served_start(&srv, 1, engine);
	return served_client(&srv);
}

static void
send_some(struct slu_client *c, const char *queue, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		FINE(slu_client_send(c, queue, &(struct slu_send){ SLU_OPTIONS_INIT(struct slu_send), .payload = "hello", .size = 5, .max_attempts = 9 }, NULL, NULL, &err));
}

/* What the server says at `path`; the caller frees it. */
static char *
get(struct slu_client *c, const char *path)
{
	struct slu_answer a;

	FINE(slu_client_call(c, &(struct slu_request){ SLU_OPTIONS_INIT(struct slu_request), .method = "GET", .path = path }, &a, NULL, &err));
	return a.body;
}

/* Messages that are left in a queue, whatever their state. */
static unsigned
left_in(struct slu_client *c, const char *queue)
{
	char path[100], *body;
	const char *total;
	unsigned n;

	(void)snprintf(path, sizeof path, "/stats?namespace=test&topic=%s", queue);
	body = get(c, path);
	total = strstr(body, "\"total\":");
	CHECK(total);
	n = (unsigned)atoi(total + 8);
	slu_free(body);
	return n;
}

/* Whether a receive waits at the server for a message. */
static bool
one_waits(struct slu_client *c)
{
	char *const body = get(c, "/metrics");
	const char *at = strstr(body, "\nsluice_waiting{");
	unsigned n = 0;

	CHECK(at);
	for (; at; at = strstr(at + 1, "\nsluice_waiting{"))
		n += (unsigned)atoi(strstr(at, "} ") + 2);
	slu_free(body);
	return n > 0;
}

static void
on_start(const struct slu_consumer_event *e, void *arg)
{
	struct seen *s = arg;

	(void)snprintf(s->owner, sizeof s->owner, "%s", e->owner);
	atomic_fetch_add(&s->started, 1);
}

static void
on_stop(const struct slu_consumer_event *e, void *arg)
{
	struct seen *s = arg;

	(void)e;
	atomic_fetch_add(&s->stopped, 1);
}

static void
on_error(const struct slu_consumer_event *e, void *arg)
{
	struct seen *s = arg;

	atomic_store(&s->error, e->err->code);
	atomic_fetch_add(&s->errors, 1);
}

static void
on_restart(const struct slu_consumer_event *e, void *arg)
{
	struct seen *s = arg;

	CHECK(e->failures > 0 && e->err);
	atomic_fetch_add(&s->restarts, 1);
}

static enum slu_verdict
handle(struct slu_delivery *d, void *arg, struct slu_err *err)
{
	struct seen *s = arg;
	char text[16] = "";
	size_t n;

	if (slu_delivery_read(d, text, sizeof text - 1, &n, err))
		return SLU_RETRY;
	CHECK_STR("hello", text);
	atomic_fetch_add(&s->handled, 1);
	return s->verdict;
}

static struct slu_consumer
consumer(const char *queue, struct seen *s)
{
	return (struct slu_consumer){
		SLU_OPTIONS_INIT(struct slu_consumer),
		.queue = queue,
		.handle = handle,
		.arg = s,
		.on_start = on_start,
		.on_stop = on_stop,
		.on_error = on_error,
		.on_restart = on_restart,
	};
}

static struct slu_service *
begin(struct slu_client *c, const struct slu_consumer *consumers, size_t n)
{
	struct slu_service *s;

	FINE(slu_service_new(&s, c, consumers, n, &err));
	FINE(slu_service_start(s, &err));
	return s;
}

static void
end(struct slu_service *s)
{
	slu_service_stop(s);
	FINE(slu_service_wait(s, 0, &err));
	slu_service_free(s);
}

static enum slu_verdict
handle_kind(struct slu_delivery *d, void *arg, struct slu_err *err)
{
	struct seen *s = arg;

	(void)err;
	(void)snprintf(s->text, sizeof s->text, "%s", slu_delivery_info(d)->kind);
	atomic_fetch_add(&s->handled, 1);
	return SLU_DONE;
}

static void
send_kind(struct slu_client *c, const char *kind)
{
	FINE(slu_client_send(c, "jobs", &(struct slu_send){ SLU_OPTIONS_INIT(struct slu_send), .payload = "hello", .size = 5, .kind = kind }, NULL, NULL, &err));
}

/* PW-F17: a table of kinds; a kind that it does not have stays in the queue. */
TEST(a_consumer_dispatches_by_the_kind_of_the_message)
{
	static struct seen resized, cropped;
	struct slu_client *c = start("memory");
	const struct slu_kind table[] = { { "resize", handle_kind, &resized }, { "crop", handle_kind, NULL } };
	struct slu_consumer one = consumer("jobs", &cropped);
	struct slu_service *s;

	one.kinds = table;
	one.n_kinds = 2;
	CHECK_EQ(SLU_EINVAL, slu_service_new(&s, c, &one, 1, NULL)); /* a handler, and a table */
	one.handle = NULL;
	send_kind(c, "mail");
	send_kind(c, "crop");
	send_kind(c, "resize");
	send_kind(c, "resize");
	s = begin(c, &one, 1);
	WAIT_UNTIL(left_in(c, "jobs") == 1);
	CHECK_EQ(2, atomic_load(&resized.handled));
	CHECK_EQ(1, atomic_load(&cropped.handled));
	end(s);
	CHECK_STR("resize", resized.text);
	CHECK_STR("crop", cropped.text);
	CHECK_EQ(1, left_in(c, "jobs"));
	slu_client_free(c);
}

/* LQ-70: each config is a worker of its own; LQ-71: with an owner of its own. */
TEST(two_consumers_run_side_by_side)
{
	static struct seen mail, bills;
	struct slu_client *c = start("memory");
	struct slu_consumer both[] = { consumer("mail", &mail), consumer("bills", &bills) };
	struct slu_service *s, *other;
	char owner[140];

	both[0].concurrency = 3;
	s = begin(c, both, 2);
	CHECK_EQ(SLU_ECONFLICT, slu_service_start(s, NULL));
	send_some(c, "mail", 20);
	send_some(c, "bills", 5);
	WAIT_UNTIL(left_in(c, "mail") == 0 && left_in(c, "bills") == 0);
	CHECK_EQ(20, atomic_load(&mail.handled));
	CHECK_EQ(5, atomic_load(&bills.handled));
	CHECK_EQ(1, atomic_load(&mail.started));
	CHECK(strcmp(mail.owner, bills.owner) != 0);
	CHECK(strncmp(mail.owner, "mail-", 5) == 0);
	(void)snprintf(owner, sizeof owner, "%s", mail.owner);
	other = begin(c, both, 1);
	CHECK(strcmp(owner, mail.owner) != 0);
	end(other);
	end(s);
	CHECK_EQ(2, atomic_load(&mail.stopped));
	slu_client_free(c);
}

/* Asks the worker by the call of an operator. */
static void
ask_worker(struct slu_client *c, const char *verb, const char *name)
{
	char path[64], body[256];
	struct slu_answer a;

	(void)snprintf(path, sizeof path, "/v1/admin/worker/%s", verb);
	(void)snprintf(body, sizeof body, "{\"namespace\":\"test\",\"worker\":\"%s\"}", name);
	FINE(slu_client_call(c, &(struct slu_request){ SLU_OPTIONS_INIT(struct slu_request), .method = "POST", .path = path, .body = body, .size = strlen(body) },
			     &a, NULL, &err));
	slu_free(a.body);
}

static bool
is_listed(struct slu_client *c, const char *name)
{
	char *const body = get(c, "/v1/admin/workers?namespace=test");
	const bool listed = strstr(body, name) != NULL;

	slu_free(body);
	return listed;
}

/* The worker beats at once and then each 5 s: the test sets what the keeper waits for. */
static void
beat_now(struct slu_service *s)
{
	pthread_mutex_lock(&s->keeper.mtx);
	s->workers[0].beat.due = 0;
	pthread_cond_broadcast(&s->keeper.changed);
	pthread_mutex_unlock(&s->keeper.mtx);
}

TEST(an_operator_makes_a_worker_quiet_resumes_and_stops_it)
{
	static struct seen mail;
	struct slu_client *c = start("memory");
	struct slu_consumer conf = consumer("mail", &mail);
	struct slu_service *s;

	conf.concurrency = 2;
	s = begin(c, &conf, 1);
	send_some(c, "mail", 1);
	WAIT_UNTIL(atomic_load(&mail.handled) == 1 && is_listed(c, mail.owner) && one_waits(c));
	ask_worker(c, "quiet", mail.owner);
	beat_now(s);
	WAIT_UNTIL(atomic_load(&s->workers[0].quiet) && !one_waits(c));
	send_some(c, "mail", 1);
	CHECK_EQ(1, left_in(c, "mail"));
	CHECK_EQ(1, atomic_load(&mail.handled));
	ask_worker(c, "resume", mail.owner);
	beat_now(s);
	WAIT_UNTIL(atomic_load(&mail.handled) == 2);
	ask_worker(c, "stop", mail.owner);
	beat_now(s);
	FINE(slu_service_wait(s, 0, &err));
	CHECK_EQ(1, atomic_load(&mail.stopped));
	CHECK_EQ(0, atomic_load(&mail.errors));
	slu_service_free(s);
	slu_client_free(c);
}

TEST(what_a_handler_says_becomes_of_the_message)
{
	static struct seen seen;
	struct slu_client *c = start("memory");
	struct slu_consumer one = consumer("mail", &seen);
	struct slu_service *s;

	seen.verdict = SLU_DEAD;
	s = begin(c, &one, 1);
	send_some(c, "mail", 1);
	WAIT_UNTIL(atomic_load(&seen.handled) == 1);
	end(s);
	CHECK_EQ(1, left_in(c, "mail")); /* as a dead letter */
	seen.verdict = SLU_DEFER;
	s = begin(c, &one, 1);
	send_some(c, "mail", 1);
	WAIT_UNTIL(atomic_load(&seen.handled) > 15); /* no failure, so never dead */
	end(s);
	seen.verdict = SLU_RETRY;
	atomic_store(&seen.handled, 0);
	s = begin(c, &one, 1);
	WAIT_UNTIL(atomic_load(&seen.handled) == 9);
	end(s);
	CHECK_EQ(9, atomic_load(&seen.handled));
	CHECK_EQ(2, left_in(c, "mail"));
	CHECK_EQ(0, atomic_load(&seen.errors));
	slu_client_free(c);
}

static enum slu_verdict
handle_slowly(struct slu_delivery *d, void *arg, struct slu_err *err)
{
	struct seen *s = arg;

	(void)d;
	(void)err;
	atomic_fetch_add(&s->inside, 1);
	WAIT_UNTIL(atomic_load(&s->go));
	atomic_fetch_sub(&s->inside, 1);
	atomic_fetch_add(&s->handled, 1);
	return SLU_DONE;
}

TEST(a_lease_is_kept_while_its_handler_runs)
{
	static struct seen seen;
	struct slu_client *c = start("memory");
	struct slu_consumer one = consumer("mail", &seen);
	const struct timespec more_than_a_lease = { 1, 600000000 };
	struct slu_service *s;

	one.handle = handle_slowly;
	one.visibility = SLU_SEC;
	one.prefetch = 4;
	send_some(c, "mail", 3);
	s = begin(c, &one, 1);
	WAIT_UNTIL(atomic_load(&seen.inside) == 1);
	nanosleep(&more_than_a_lease, NULL); /* the two that wait are kept, too */
	atomic_store(&seen.go, true);
	WAIT_UNTIL(left_in(c, "mail") == 0);
	end(s);
	CHECK_EQ(3, atomic_load(&seen.handled));
	CHECK_EQ(0, atomic_load(&seen.errors));
	slu_client_free(c);
}

TEST(a_stop_lets_what_runs_finish_and_gives_the_rest_back)
{
	static struct seen seen;
	struct slu_client *c = start("memory");
	struct slu_consumer one = consumer("mail", &seen);
	struct slu_delivery *d;
	struct slu_service *s;

	one.handle = handle_slowly;
	one.prefetch = 8;
	send_some(c, "mail", 3);
	s = begin(c, &one, 1);
	WAIT_UNTIL(atomic_load(&seen.inside) == 1);
	slu_service_stop(s);
	CHECK_EQ(SLU_ETIMEOUT, slu_service_wait(s, 10 * SLU_MS, NULL));
	atomic_store(&seen.go, true);
	FINE(slu_service_wait(s, 0, &err));
	CHECK_EQ(1, atomic_load(&seen.handled));
	FINE(slu_client_receive(c, "mail", NULL, &d, NULL, &err));
	CHECK(d);
	CHECK_EQ(0, slu_delivery_info(d)->failures);
	slu_delivery_close(d);
	FINE(slu_service_start(s, &err)); /* once more */
	WAIT_UNTIL(left_in(c, "mail") == 0);
	end(s);
	slu_client_free(c);
}

/* LQ-72: a server restart, by kill -9, in the middle: nothing is lost, nothing is to be
 * done. */
TEST(a_service_outlives_its_server)
{
	static struct seen seen;
	struct slu_client *c = start("log");
	struct slu_consumer one = consumer("mail", &seen);
	struct slu_service *s;

	one.concurrency = 2;
	one.visibility = SLU_SEC; /* what was on its way when the server died comes again soon */
	s = begin(c, &one, 1);
	send_some(c, "mail", 10);
	served_kill(&srv); /* in the middle of something, as it happens */
	served_again(&srv);
	send_some(c, "mail", 10);
	served_kill(&srv); /* and until it is noticed */
	WAIT_UNTIL(atomic_load(&seen.restarts) > 0);
	served_again(&srv);
	send_some(c, "mail", 10);
	WAIT_UNTIL(left_in(c, "mail") == 0);
	CHECK(atomic_load(&seen.handled) >= 30);
	CHECK(atomic_load(&seen.errors) > 0);
	end(s);
	slu_client_free(c);
}

TEST(failures_have_a_budget)
{
	static struct seen seen;
	const struct slu_client_config config = { SLU_OPTIONS_INIT(struct slu_client_config), .servers = "unix:nobody.sock" };
	struct slu_consumer one = consumer("mail", &seen);
	struct slu_service *s;
	struct slu_client *c;
	struct slu_err why;

	one.restart = (struct slu_restart){ .at_once = 1, .base = SLU_MS, .max_failures = 5 };
	FINE(slu_client_new(&c, &config, &err));
	FINE(slu_service_new(&s, c, &one, 1, &err));
	CHECK_EQ(SLU_EDOWN, slu_service_run(s, &why));
	CHECK_CONTAINS("nobody.sock", why.text);
	CHECK_EQ(5, atomic_load(&seen.errors));
	CHECK_EQ(4, atomic_load(&seen.restarts));
	CHECK_EQ(1, atomic_load(&seen.stopped));
	slu_service_free(s);
	slu_client_free(c);
}

TEST(what_would_come_again_for_ever_ends_its_worker_alone)
{
	static struct seen bad, good;
	struct slu_client *c = start("memory");
	struct slu_consumer both[] = { consumer("no such name!", &bad), consumer("mail", &good) };
	struct slu_service *s = begin(c, both, 2);

	WAIT_UNTIL(atomic_load(&bad.stopped) == 1);
	CHECK_EQ(0, atomic_load(&bad.restarts));
	send_some(c, "mail", 1);
	WAIT_UNTIL(left_in(c, "mail") == 0);
	slu_service_stop(s);
	CHECK_EQ(SLU_EINVAL, slu_service_wait(s, 0, NULL));
	slu_service_free(s);
	slu_client_free(c);
}

/* --- crashes ------------------------------------------------------------------------ */

static enum slu_verdict
panic_once(struct slu_delivery *d, void *arg, struct slu_err *err)
{
	if (slu_delivery_info(d)->attempts == 1)
		slu_panic("a bug");
	return handle(d, arg, err);
}

static void
panic_in_hook(const struct slu_consumer_event *e, void *arg)
{
	on_start(e, arg);
	slu_panic("a bug in a hook");
}

/* LQ-73: a panic in the handler, and in hooks: the worker goes on, on_error is told. */
TEST(a_handler_that_panics_fails_its_delivery_alone)
{
	static struct seen seen;
	struct slu_client *c = start("memory");
	struct slu_consumer one = consumer("mail", &seen);
	struct slu_service *s;

	one.handle = panic_once;
	one.on_start = panic_in_hook;
	s = begin(c, &one, 1);
	CHECK_EQ(1, atomic_load(&seen.errors));
	send_some(c, "mail", 2);
	WAIT_UNTIL(left_in(c, "mail") == 0);
	CHECK_EQ(2, atomic_load(&seen.handled));
	CHECK_EQ(3, atomic_load(&seen.errors));
	CHECK_EQ(SLU_EPANIC, atomic_load(&seen.error));
	end(s);
	one.on_panic = SLU_DEAD;
	s = begin(c, &one, 1);
	send_some(c, "mail", 1);
	WAIT_UNTIL(atomic_load(&seen.errors) == 5);
	end(s);
	CHECK_EQ(1, left_in(c, "mail"));
	slu_client_free(c);
}

static enum slu_verdict
die_once(struct slu_delivery *d, void *arg, struct slu_err *err)
{
	_Atomic unsigned *done = arg;
	char text[8] = "";
	size_t n;

	(void)!slu_delivery_read(d, text, sizeof text - 1, &n, err); /* looked at below */
	if (slu_delivery_info(d)->attempts == 1)
		(void)raise(SIGKILL); /* as a memory fault would */
	if (strcmp(text, "hello") == 0)
		atomic_fetch_add(done, 1);
	slu_fail(err, SLU_EFAILED, "not yet");
	return slu_delivery_info(d)->attempts == 2 ? SLU_RETRY : SLU_DONE;
}

/* LQ-73: with in_child also what no program survives. */
TEST(a_handler_in_a_child_may_crash)
{
	static struct seen seen;
	_Atomic unsigned *done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct slu_client *c = start("memory");
	struct slu_consumer one = { SLU_OPTIONS_INIT(struct slu_consumer), .queue = "mail", .handle = die_once, .arg = done, .in_child = true };
	struct slu_service *s;

	(void)seen;
	CHECK(done != MAP_FAILED);
	send_some(c, "mail", 2);
	s = begin(c, &one, 1);
	WAIT_UNTIL(left_in(c, "mail") == 0);
	CHECK_EQ(4, atomic_load(done)); /* a failed and a good attempt each */
	end(s);
	slu_client_free(c);
}

static enum slu_verdict
count_in_state(struct slu_delivery *d, void *arg, struct slu_err *err)
{
	struct seen *s = arg;
	struct slu_lease *state = slu_delivery_state(d);
	struct slu_state doc;

	CHECK(state);
	CHECK_EQ(0, slu_state_get(d->client, state, &doc, NULL, err));
	(void)snprintf(s->text, sizeof s->text, "%s", doc.text ? doc.text : "none");
	slu_free(doc.text);
	CHECK_EQ(0, slu_state_put(d->client, state, "7", 1, NULL, NULL, err));
	return atomic_fetch_add(&s->handled, 1) == 0 ? SLU_RETRY : SLU_DONE;
}

TEST(a_stateful_consumer_finds_what_it_noted)
{
	static struct seen seen;
	struct slu_client *c = start("memory");
	struct slu_consumer one = consumer("mail", &seen);
	struct slu_service *s;

	one.handle = count_in_state;
	one.stateful = true;
	send_some(c, "mail", 1);
	s = begin(c, &one, 1);
	WAIT_UNTIL(left_in(c, "mail") == 0);
	end(s);
	CHECK_STR("7", seen.text);
	slu_client_free(c);
}

TEST(pauses_grow_up_to_their_maximum)
{
	static const struct {
		unsigned failures;
		slu_time want;
	} cases[] = {
		{ 1, 0 },
		{ 3, 0 },
		{ 4, 250 * SLU_MS },
		{ 5, 500 * SLU_MS },
		{ 14, 256 * SLU_SEC },
		{ 15, 300 * SLU_SEC },
		{ 4000000000u, 300 * SLU_SEC },
	};
	const struct slu_restart r = { 3, 250 * SLU_MS, 2, 5 * SLU_MIN, 0 };

	EACH(i, cases)
		CHECK_EQ(cases[i].want, restart_pause(&r, cases[i].failures));
}

TEST(a_config_that_cannot_work_is_refused)
{
	static struct seen seen;
	struct slu_consumer bad[4] = { consumer("", &seen), consumer("q", &seen), consumer("q", &seen), consumer("q", &seen) };
	struct slu_service *s;
	struct slu_client *c;

	bad[1].handle = NULL;
	bad[2].prefetch = 65;
	bad[3].restart.factor = 0.5;
	FINE(slu_client_new(&c, NULL, &err));
	EACH(i, bad)
		CHECK_EQ(SLU_EINVAL, slu_service_new(&s, c, &bad[i], 1, NULL));
	CHECK_EQ(SLU_EINVAL, slu_service_new(&s, c, bad, 0, NULL));
	slu_service_free(NULL);
	slu_client_free(c);
}
