/*
 * request.c - sends one request to the server that serves, and repeats it where that is safe.
 *
 *      try ──> answered ───────────────────────────────────────> done
 *       ^        ├─ "not now": passive, starting, moved ... ─┐
 *       │        ├─ "outcome unknown" ── like "no answer"   │
 *       │        └─ refused: its code                       │
 *       ├── no server: nothing was sent ────────────────────┤
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
#include <stdio.h>

enum {
	PATH_MAX_BYTES = 8 * 1024,
	BODY_MAX_BYTES = 64 << 20
};

#define PAUSE_FIRST (20 * SLU_MS)
#define PAUSE_MAX   SLU_SEC

/* With several servers, a connect waits at most this long. */
#define CONNECT_TIME (5 * SLU_SEC)

void
client_request_init(struct client_request *a, struct slu_client *c, const struct slu_call *given, const char *method,
		    const char *path)
{
	const slu_time now = clock_mono(&clock_system);
	struct slu_call room, none = { 0 };
	const struct slu_call *call;

	*a = (struct client_request){ .client = c, .method = method, .patience = c->patience };
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
client_request_waits(struct client_request *a, slu_time wait)
{
	a->waits = true;
	a->wait = wait;
	if (wait > 0 && !a->has_timeout) /* CLIENT-1 */
		a->until.deadline = SLU_NEVER;
}

void
client_request_param_time(struct client_request *a, const char *name, slu_time t)
{
	char text[DURATION_TEXT];

	if (t > 0)
		http_param(&a->path, name, format_duration(t, text, sizeof text));
}

void
client_request_field(struct client_request *a, const char *name, const char *value)
{
	if (value && !value[strcspn(value, "\r\n")])
		buf_printf(&a->fields, "%s: %s\r\n", name, value);
}

void
client_request_lease(struct client_request *a, const struct slu_lease *l)
{
	char token[24];

	(void)snprintf(token, sizeof token, "%" PRIu64, l->token); /* fits */
	client_request_field(a, "X-Lease-ID", l->id);
	client_request_field(a, "X-Txn-ID", l->txn);
	client_request_field(a, "X-Fencing-Token", token);
}

struct slice
client_request_body(const struct client_request *a)
{
	return buf_slice(&a->link->http.answer.body);
}

struct link *
client_request_take(struct client_request *a)
{
	struct link *const l = a->link;

	a->link = NULL;
	return l;
}

void
client_request_release(struct client_request *a)
{
	link_end(a->client, client_request_take(a));
	buf_release(&a->path);
	buf_release(&a->body);
	buf_release(&a->fields);
}

/* --- one try ------------------------------------------------------------------------ */

static int
try_once(struct client_request *a, unsigned server, struct slu_err *err)
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

	link_end(a->client, client_request_take(a));
	a->status = 0;
	if (a->path.failed || a->body.failed || a->fields.failed)
		return slu_fail(err, SLU_ETOOBIG, "%.40s: request too large",
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

/* May the request be tried again? Yes, if nothing happened or if it is repeatable. */
static bool
may_repeat(const struct client_request *a, int rc)
{
	if (rc == SLU_EUNKNOWN)
		return a->repeatable && !a->source;
	return rc == SLU_EDOWN;
}

/* Makes one try. *again: another try makes sense. */
static int
judge(struct client_request *a, int rc, bool *again, struct slu_err *err)
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
		http_hang_up(&a->link->http); /* a stopping server waits for our connection */
	a->too_early = kind == REFUSAL_WAITING && a->waits;
	*again = (kind == REFUSAL_AWAY || a->too_early) && (!a->source || a->rewind);
	if (rc == SLU_EUNKNOWN) /* another node has the queue, and it did not answer the server */
		*again = may_repeat(a, rc);
	return rc;
}

/* The result of a request that is not tried again. After a try that may have happened, a server that does
 * not serve proves nothing. */
static int
doubted(const struct client_request *a, int rc, struct slu_err *err)
{
	if (!a->in_doubt || a->too_early)
		return rc;
	if (err)
		err->code = SLU_EUNKNOWN;
	return SLU_EUNKNOWN;
}

/* Pauses, but not beyond the deadline. */
static int
rest(const struct client_request *a, slu_time pause, slu_time give_up)
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
	slu_time give_up_alone; /* end of the tries as long as no server was reached */
	unsigned server;        /* index of the server to try */
	unsigned n;             /* how many servers were tried since the last pause */
};

/* Prepares another try. Returns 0, or why the request is not tried again. */
static int
next_try(struct client_request *a, struct tries *t, int failed)
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
run(struct client_request *a, struct slu_err *err)
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
		rc = next_try(a, &t, doubted(a, rc, err));
		if (rc == SLU_ECANCELED)
			slu_fail(err, rc, "stopped: no server answers");
		if (rc)
			return rc;
		a->retried |= a->in_doubt;
	}
	if (a->status && t.server != first)
		atomic_store(&c->now, t.server);
	return rc;
}

int
client_request_run(struct client_request *a, struct slu_err *err)
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

int
client_request_finish(struct client_request *a, struct slu_err *err)
{
	const int rc = client_request_run(a, err);

	client_request_release(a);
	return rc;
}
