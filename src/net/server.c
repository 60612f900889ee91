#include "net/server.h"

#include "base/log.h"
#include "base/mem.h"
#include "net/files.h"
#include "net/front.h"
#include "net/protocol.h"

#include <assert.h>
#include <semaphore.h>

enum {
	MAX_ADDRESSES = 16,
	MAX_THREADS = 64,
	OTHER_FILES = 128 /* files that a process needs besides its connections */
};

struct server {
	struct front_shared shared;
	struct front *fronts[MAX_THREADS];
	struct listener listeners[MAX_ADDRESSES];
	unsigned n_listeners;
	bool stopped;
};

static const struct metric rows[SERVER_METRICS] = {
	[SERVER_CONNECTIONS] = { "connections", METRIC_GAUGE, "connections open now" },
	[SERVER_ACCEPTED] = { "accepted_total", METRIC_COUNTER, "connections taken" },
	[SERVER_TURNED_AWAY] = { "turned_away_total", METRIC_COUNTER, "connections beyond the limit" },
	[SERVER_CALLS] = { "requests_running", METRIC_GAUGE, "requests being read, run or answered now" },
	[SERVER_RECEIVED] = { "received_bytes_total", METRIC_COUNTER, "bytes from clients" },
	[SERVER_SENT] = { "sent_bytes_total", METRIC_COUNTER, "bytes to clients" },
	[SERVER_TIMEOUTS] = { "timeouts_total", METRIC_COUNTER, "clients that sent or read too slowly" },
	[SERVER_PARSE_ERRORS] = { "parse_errors_total", METRIC_COUNTER, "requests that were refused as no HTTP, or too large" },
	[SERVER_SLOW_READERS] = { "slow_readers_total", METRIC_COUNTER, "connections closed for unread answers" },
	[SERVER_HANG_UPS] = { "hang_ups_total", METRIC_COUNTER, "connections closed with requests unanswered" },
	[SERVER_HANDSHAKES] = { "tls_handshakes_total", METRIC_COUNTER, "connections that agreed on TLS" },
	[SERVER_HANDSHAKES_FAILED] = { "tls_failures_total", METRIC_COUNTER, "connections that did not, or broke its rules" },
	[SERVER_UNSENT] = { "unsent_total", METRIC_COUNTER, "answers that did not reach their client whole" },
	[SERVER_BODIES] = { "request_bytes", METRIC_GAUGE, "bytes of request bodies that are held now" },
	[SERVER_ANSWERS] = { "response_bytes", METRIC_GAUGE, "bytes of large answers that are held now" },
	[SERVER_NO_MEMORY] = { "memory_refused_total", METRIC_COUNTER, "requests refused for the bytes that others hold" },
	[SERVER_TOO_LARGE] = { "too_large_total", METRIC_COUNTER, "requests refused for the size of their body or head" },
};

/* --- open --------------------------------------------------------------------- */

static void
fill_defaults(struct server_conf *c)
{
#define DEFAULT(field, value) c->field = c->field ? c->field : (value)
	DEFAULT(threads, 1);
	DEFAULT(max_connections, 50000);
	DEFAULT(reserve, 16);
	DEFAULT(max_pipeline, 64);
	DEFAULT(max_output, (size_t)64 << 20);
	DEFAULT(max_bodies, (size_t)256 << 20);
	DEFAULT(header_timeout, 10 * SLU_SEC);
	DEFAULT(idle_timeout, 75 * SLU_SEC);
	DEFAULT(rate_period, 10 * SLU_SEC);
	DEFAULT(min_rate, 512);
	DEFAULT(start_wait, 30 * SLU_SEC);
	DEFAULT(linger, 2 * SLU_SEC);
	DEFAULT(metrics_prefix, "sluice_http_");
#undef DEFAULT
}

/* Every connection needs a descriptor: lowers the limit of connections to the limit of files. */
static void
fit_files(struct server_conf *c)
{
	const unsigned long others = c->reserve + OTHER_FILES;
	const unsigned long files = files_allow(c->max_connections + others);

	if (files >= c->max_connections + others)
		return;
	c->max_connections = files > 2 * others ? (unsigned)(files - others) : (unsigned)(files / 2 + 1);
	log_info(c->log, "connections limited by open files",
		 F_U64("max_connections", c->max_connections), F_U64("files", files));
}

static void
set_limits(struct front_shared *s)
{
	atomic_store(&s->max_connections, s->conf.max_connections);
	atomic_store(&s->max_bodies, s->conf.max_bodies / s->conf.threads);
}

void
server_set_limits(struct server *s, unsigned max_connections, size_t max_bodies)
{
	struct server_conf conf = s->shared.conf;

	conf.max_connections = max_connections;
	conf.max_bodies = max_bodies;
	conf.log = NULL; /* the start logged it already */
	fill_defaults(&conf);
	fit_files(&conf);
	atomic_store(&s->shared.max_connections, conf.max_connections);
	atomic_store(&s->shared.max_bodies, conf.max_bodies / conf.threads);
}

static int
open_protocols(struct front_shared *s)
{
	int rc = 0;

	for (unsigned i = 0; i < s->conf.n_protocols && !rc; i++)
		rc = s->conf.protocols[i].ops->open(&s->states[i], s->conf.protocols[i].conf, &s->conf);
	return rc;
}

static void
close_protocols(struct front_shared *s)
{
	for (unsigned i = 0; i < SERVER_PROTOCOLS; i++)
		if (s->states[i])
			s->conf.protocols[i].ops->close(s->states[i]);
}

static int
open_shared(struct front_shared *s, const struct server_conf *conf,
	    struct slu_err *err)
{
	int rc;

	s->conf = *conf;
	tls_slot_init(&s->tls);
	fill_defaults(&s->conf);
	assert(s->conf.n_protocols > 0 && s->conf.n_protocols <= SERVER_PROTOCOLS);
	if (s->conf.threads > MAX_THREADS)
		return slu_fail(err, SLU_EINVAL, "invalid number of network threads: %u; expected at most %d",
				conf->threads, MAX_THREADS);
	fit_files(&s->conf);
	set_limits(s);
	s->files = s->conf.max_connections + s->conf.reserve + OTHER_FILES;
	rc = metrics_init(&s->metrics, s->conf.metrics_prefix, rows, SERVER_METRICS, NULL, 1);
	if (rc == 0)
		rc = open_protocols(s);
	if (rc)
		return slu_fail(err, rc, "open the server: %s", slu_err_row(rc)->text);
	return 0;
}

int
server_open(struct server **out, const struct server_conf *conf, struct slu_err *err)
{
	struct server *s = mem_zalloc(sizeof *s);
	int rc;

	if (!s)
		return slu_fail(err, SLU_ENOMEM, "no memory for a server");
	rc = open_shared(&s->shared, conf, err);
	for (unsigned i = 0; rc == 0 && i < s->shared.conf.threads; i++)
		rc = front_open(&s->fronts[i], &s->shared, i, err);
	if (rc)
		server_close(s);
	else
		*out = s;
	return rc;
}

/* --- addresses ---------------------------------------------------------------- */

void
server_set_tls(struct server *s, struct tls_context *x)
{
	tls_slot_set(&s->shared.tls, x);
}

/* n_protocols: none has the scheme of the address. */
static unsigned
find_protocol(const struct server *s, const char *address)
{
	const struct slice scheme = listen_scheme(address);
	unsigned i = 0;

	while (scheme.n > 0 && i < s->shared.conf.n_protocols &&
	       !slice_eq(scheme, slice_of(s->shared.conf.protocols[i].ops->name)))
		i++;
	return i;
}

int
server_listen(struct server *s, const char *address, unsigned flags,
	      struct slu_err *err)
{
	struct listener *l = &s->listeners[s->n_listeners];
	const unsigned protocol = find_protocol(s, address);
	bool tls;
	int rc;

	if (s->n_listeners == MAX_ADDRESSES)
		return slu_fail(err, SLU_EBUSY, "%s: more than %d addresses", address,
				MAX_ADDRESSES);
	(void)listen_target(address, &tls);
	if (protocol == s->shared.conf.n_protocols)
		return slu_fail(err, SLU_EINVAL, "invalid listen address \"%s\": unknown scheme", address);
	if (tls && !s->shared.tls.now)
		return slu_fail(err, SLU_EINVAL,
				"%s: TLS needs a certificate and its key: set tls.cert and tls.key",
				address);
	rc = listener_open(l, s->shared.conf.protocols[protocol].ops->name, address,
			   s->shared.conf.threads, err);
	for (unsigned i = 0; rc == 0 && i < s->shared.conf.threads; i++)
		rc = front_listen(s->fronts[i], listener_take(l, i), l, protocol, s->n_listeners,
				  flags, err);
	if (rc)
		listener_close(l);
	else
		s->n_listeners++;
	return rc;
}

const char *
server_address(const struct server *s, unsigned i)
{
	return i < s->n_listeners ? s->listeners[i].name : NULL;
}

unsigned
server_port(const struct server *s, unsigned i)
{
	return i < s->n_listeners ? s->listeners[i].port : 0;
}

/* --- start and stop ----------------------------------------------------------- */

int
server_start(struct server *s, struct slu_err *err)
{
	for (unsigned i = 0; i < s->shared.conf.threads; i++) {
		const int rc = front_start(s->fronts[i], err);

		if (rc)
			return rc;
		log_debug(s->shared.conf.log, "network thread started", F_U64("number", i));
	}
	return 0;
}

void
server_hold(struct server *s)
{
	atomic_store(&s->shared.held, true);
}

void
server_release(struct server *s)
{
	atomic_store(&s->shared.held, false);
	for (unsigned i = 0; i < s->shared.conf.threads; i++)
		front_release(s->fronts[i]);
}

void
server_hand_over(struct server *s)
{
	for (unsigned i = 0; i < s->shared.conf.threads; i++)
		front_hand_over(s->fronts[i]);
}

bool
server_round(struct server *s)
{
	bool more = false;

	for (unsigned i = 0; i < s->shared.conf.threads; i++)
		more |= loop_round(s->fronts[i]->loop);
	return more;
}

/* Stop all threads, then wait for them. */
unsigned
server_stop(struct server *s, slu_time grace)
{
	if (s->stopped)
		return 0;
	s->stopped = true;
	for (unsigned i = 0; i < MAX_THREADS; i++)
		if (s->fronts[i])
			front_drain(s->fronts[i], grace);
	for (unsigned i = 0; i < MAX_THREADS; i++)
		if (s->fronts[i])
			loop_wait(s->fronts[i]->loop);
	for (unsigned i = 0; i < s->n_listeners; i++)
		listener_close(&s->listeners[i]);
	s->n_listeners = 0;
	return atomic_load(&s->shared.cut);
}

void
server_close(struct server *s)
{
	if (!s)
		return;
	(void)server_stop(s, 0); /* the number is not needed */
	for (unsigned i = 0; i < MAX_THREADS; i++) {
		if (s->fronts[i])
			loop_close(s->fronts[i]->loop);
		front_free(s->fronts[i]);
	}
	tls_slot_release(&s->shared.tls);
	close_protocols(&s->shared);
	metrics_release(&s->shared.metrics);
	mem_free(s);
}

/* --- threads ------------------------------------------------------------------ */

struct errand {
	struct loop_work work;
	void (*run)(void *arg);
	void *arg;
	sem_t *done;
};

static void
run_errand(struct loop_work *w)
{
	struct errand *e = CONTAINER(w, struct errand, work);

	e->run(e->arg);
	sem_post(e->done);
}

void
server_each(struct server *s, void (*run)(void *arg), void *arg)
{
	const unsigned n = s->shared.conf.threads;
	struct errand errands[MAX_THREADS];
	sem_t done;

	(void)sem_init(&done, 0, 0); /* fails for large values only */
	for (unsigned i = 0; i < n; i++) {
		errands[i] = (struct errand){ { .run = run_errand }, run, arg, &done };
		loop_post(s->fronts[i]->loop, &errands[i].work);
	}
	for (unsigned i = 0; i < n; i++)
		while (sem_wait(&done)) /* a signal came */
			continue;
	sem_destroy(&done);
}

static void
give_sign(struct loop_work *w)
{
	struct front *f = CONTAINER(w, struct front, sign_work);

	atomic_store(&f->sign_owed, false);
}

bool
server_alive(struct server *s)
{
	bool all = true;

	for (unsigned i = 0; i < s->shared.conf.threads; i++) {
		struct front *const f = s->fronts[i];

		if (atomic_load(&f->sign_owed)) {
			all = false;
			continue;
		}
		atomic_store(&f->sign_owed, true);
		f->sign_work.run = give_sign;
		loop_post(f->loop, &f->sign_work);
	}
	return all;
}

/* --- numbers ------------------------------------------------------------------ */

void *
server_protocol_state(const struct server *s, const struct protocol *p)
{
	for (unsigned i = 0; i < s->shared.conf.n_protocols; i++)
		if (s->shared.conf.protocols[i].ops == p)
			return s->shared.states[i];
	return NULL;
}

void
server_metrics(struct server *s, struct buf *out)
{
	metrics_write(&s->shared.metrics, out);
	for (unsigned i = 0; i < s->shared.conf.n_protocols; i++)
		if (s->shared.conf.protocols[i].ops->metrics)
			s->shared.conf.protocols[i].ops->metrics(s->shared.states[i], out);
}

int64_t
server_metric(const struct server *s, enum server_metric row)
{
	return metrics_get(&s->shared.metrics, row, 0);
}
