/*
 * ask.c - one call to whichever server serves, made again where that is safe.
 *
 *      try ──> answered ───────────────────────────────────────> done
 *       ^        ├─ "not now": passive, starting, draining ─┐
 *       │        └─ refused: its code                       │
 *       ├── nobody there: nothing was sent ─────────────────┤
 *       ├── sent, no answer: repeatable? ── no: EUNKNOWN    │
 *       │                        └── yes ───────────────────┤
 *       └──── the next server; after a round of all, a pause ┘   until patience ends
 */
#include "client/client.h"

#include "base/clock.h"
#include "base/forked.h"
#include "base/need.h"
#include "base/parse.h"
#include "base/sized.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

enum {
	PATH_MAX_BYTES = 8 * 1024,
	BODY_MAX_BYTES = 64 << 20
};

#define PAUSE_FIRST (20 * SLU_MS)
#define PAUSE_MAX   SLU_SEC

/* Where there is another server, one that is not even reached is not waited for longer. */
#define CONNECT_TIME (5 * SLU_SEC)

void
ask_init(struct ask *a, struct slu_client *c, const struct slu_call *given, const char *method,
	 const char *path)
{
	const slu_time now = clock_mono(&clock_system);
	struct slu_call room, none = { 0 };
	const struct slu_call *call;

	*a = (struct ask){ .client = c, .method = method, .patience = c->patience };
	call = SIZED(slu_call, given, &room, &a->refused);
	if (call && need_time(call->timeout, "timeout", &a->refused))
		call = NULL;
	call = call ? call : &none;
	a->space = call->space ? call->space : c->space;
	a->until = (struct patience){
		.deadline = time_add(now, call->timeout ? call->timeout : c->timeout),
		.stop_fd = call->cancel_fd > 0 ? call->cancel_fd : -1,
	};
	a->has_timeout = call->timeout != 0;
	a->repeatable = strcmp(method, "GET") == 0;
	buf_init(&a->path, PATH_MAX_BYTES);
	buf_init(&a->body, BODY_MAX_BYTES);
	buf_init(&a->fields, PATH_MAX_BYTES);
	if (path)
		buf_puts(&a->path, path);
}

void
ask_waits(struct ask *a, slu_time wait)
{
	a->waits = true;
	a->wait = wait;
	if (wait > 0 && !a->has_timeout) /* Q1 */
		a->until.deadline = SLU_NEVER;
}

void
ask_param(struct ask *a, const char *name, const char *value)
{
	if (!value)
		return;
	buf_putc(&a->path, strchr(buf_str(&a->path), '?') ? '&' : '?');
	buf_printf(&a->path, "%s=", name);
	http_encode(&a->path, slice_of(value));
}

void
ask_param_u64(struct ask *a, const char *name, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%" PRIu64, value); /* fits */
	ask_param(a, name, text);
}

void
ask_param_time(struct ask *a, const char *name, slu_time t)
{
	char text[DURATION_TEXT];

	if (t > 0)
		ask_param(a, name, format_duration(t, text, sizeof text));
}

void
ask_field(struct ask *a, const char *name, const char *value)
{
	if (value && !value[strcspn(value, "\r\n")])
		buf_printf(&a->fields, "%s: %s\r\n", name, value);
}

void
ask_lease(struct ask *a, const struct slu_lease *l)
{
	char token[24];

	(void)snprintf(token, sizeof token, "%" PRIu64, l->token); /* fits */
	ask_field(a, "X-Lease-ID", l->id);
	ask_field(a, "X-Txn-ID", l->txn);
	ask_field(a, "X-Fencing-Token", token);
}

struct slice
ask_body(const struct ask *a)
{
	return buf_slice(&a->link->http.answer.body);
}

struct link *
ask_take(struct ask *a)
{
	struct link *const l = a->link;

	a->link = NULL;
	return l;
}

void
ask_release(struct ask *a)
{
	link_end(a->client, ask_take(a));
	buf_release(&a->path);
	buf_release(&a->body);
	buf_release(&a->fields);
}

/* --- one try ------------------------------------------------------------------------ */

static int
try_once(struct ask *a, unsigned server, struct slu_err *err)
{
	struct http_call call = {
		.method = a->method,
		.source = a->source,
		.source_arg = a->source_arg,
		.content_type = a->content_type,
		.repeatable = a->repeatable,
		.waits = a->waits,
		.in_pieces = a->in_pieces,
		.until = a->until,
		.connect_time = a->client->n_servers > 1 ? CONNECT_TIME : SLU_NEVER,
	};
	int rc;

	link_end(a->client, ask_take(a));
	a->status = 0;
	if (a->path.failed || a->body.failed || a->fields.failed)
		return slu_fail(err, SLU_ETOOBIG, "%.40s: the request would be too large",
				buf_str(&a->path));
	if (a->rewind)
		a->rewind(a->source_arg);
	a->link = link_begin(a->client, server);
	if (!a->link)
		return slu_fail(err, SLU_ENOMEM, "no memory for a connection");
	call.path = buf_str(&a->path);
	call.body = buf_slice(&a->body);
	call.fields = a->fields.n > 0 ? buf_str(&a->fields) : NULL;
	rc = http_begin(&a->link->http, &call, err);
	a->status = rc ? 0 : a->link->http.answer.status;
	a->retried |= a->link->http.repeated;
	if (!rc && a->in_pieces && a->status >= 300)
		rc = http_gather(&a->link->http, &a->until, err);
	return rc;
}

/* --- until somebody answers ---------------------------------------------------------- */

/* What the failed try says about another: nothing has happened, or once more is the same. */
static bool
may_repeat(const struct ask *a, int rc)
{
	if (rc == SLU_EUNKNOWN)
		return a->repeatable && !a->source;
	return rc == SLU_EDOWN;
}

/* 0, or what is wrong; *again: another try makes sense. */
static int
judge(struct ask *a, int rc, bool *again, struct slu_err *err)
{
	enum refusal_kind kind;

	a->too_early = false;
	a->met |= rc == 0 || rc == SLU_EUNKNOWN;
	if (rc) {
		*again = may_repeat(a, rc);
		return rc;
	}
	if (a->status < 300)
		return 0;
	rc = refusal_read(a, &kind, err);
	if (kind == REFUSAL_AWAY)
		http_hang_up(&a->link->http); /* a server that stops waits for us */
	a->too_early = kind == REFUSAL_WAITING && a->waits;
	*again = (kind == REFUSAL_AWAY || a->too_early) && (!a->source || a->rewind);
	return rc;
}

/* Rest, but not beyond the end of anybody's patience. */
static int
rest(const struct ask *a, slu_time pause, slu_time give_up)
{
	const slu_time now = clock_mono(&clock_system);
	const slu_time end = time_add(now, pause);
	struct patience until = a->until;

	if (now >= give_up || now >= until.deadline)
		return SLU_ETIMEOUT;
	if (end < until.deadline)
		until.deadline = end;
	if (a->begins && !a->in_doubt)
		until.client_fd = a->client->stop_fd;
	return patience_wait(&until, -1, 0) == SLU_ECANCELED ? SLU_ECANCELED : 0;
}

struct tries {
	slu_time began, give_up, pause;
	slu_time give_up_alone; /* while no server was met */
	unsigned server;        /* to try */
	unsigned n;             /* tried since the last pause */
};

/* After a try that another may follow: 0 when there is one, else why not. */
static int
next_try(struct ask *a, struct tries *t, int failed)
{
	struct slu_client *const c = a->client;
	int rc;

	t->server = (t->server + 1) % c->n_servers;
	if (++t->n < c->n_servers)
		return 0;
	t->n = 0;
	if (a->too_early)
		rc = rest(a, t->pause, time_add(t->began, a->wait));
	else
		rc = a->patience < 0 ? failed : rest(a, t->pause, a->met ? t->give_up : t->give_up_alone);
	t->pause = 2 * t->pause < PAUSE_MAX ? 2 * t->pause : PAUSE_MAX;
	return rc == SLU_ETIMEOUT ? failed : rc;
}

static int
run(struct ask *a, struct slu_err *err)
{
	struct slu_client *const c = a->client;
	struct tries t = { .began = clock_mono(&clock_system), .pause = PAUSE_FIRST };
	const unsigned first = atomic_load(&c->now);
	const slu_time patience = a->patience < a->wait ? a->wait : a->patience;
	bool again = true;
	int rc;

	t.give_up = time_add(t.began, patience < 0 ? 0 : patience);
	t.give_up_alone = c->absence < a->patience ? time_add(t.began, c->absence) : t.give_up;
	t.server = first;
	for (;;) {
		const slu_time spent = clock_mono(&clock_system) - t.began;

		if (a->write)
			a->write(a, a->wait == SLU_NEVER ? SLU_NEVER : a->wait > spent ? a->wait - spent
										       : 0);
		again = false;
		rc = judge(a, try_once(a, t.server, err), &again, err);
		if (!rc || !again)
			break;
		a->in_doubt |= rc == SLU_EUNKNOWN;
		rc = next_try(a, &t, a->in_doubt ? http_in_doubt(rc, err) : rc);
		if (rc == SLU_ECANCELED)
			slu_fail(err, rc, "stopped while no server answers");
		if (rc)
			return rc;
		a->retried |= a->in_doubt;
	}
	if (a->status && t.server != first)
		atomic_store(&c->now, t.server);
	return rc;
}

int
ask_run(struct ask *a, struct slu_err *err)
{
	struct slu_client *const c = a->client;
	int rc;

	NEED_OURS(c, err);
	if (a->refused.code)
		return slu_fail(err, a->refused.code, "%s", a->refused.text);
	if (a->begins && atomic_load(&c->stopped))
		return client_stopped(err);
	if (a->begins && a->waits)
		a->until.client_fd = c->stop_fd;
	rc = run(a, err);
	return rc == SLU_ECANCELED && a->begins && atomic_load(&c->stopped) ? client_stopped(err) : rc;
}
