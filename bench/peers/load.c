#include "peers/load.h"

#include "base/mem.h"
#include "bench/bench.h"

#include <stdio.h>

enum {
	READ_SIZE = 64 * 1024,
	BUFFER_MAX = 256 * 1024 * 1024,
	SEND_EARLY = 256 * 1024, /* bytes of requests without answers before they are sent */
	PATIENCE_MS = 60 * 1000, /* how long to wait for a silent peer after the end of a phase */
	IN_VAIN_MS = 1000        /* the same, if a take may never be answered */
};

/* --- bytes ---------------------------------------------------------------------- */

static int
send_on(struct peer_load *l, struct peer_conn *c, struct slu_err *err)
{
	int rc;

	if (c->out.failed || c->held.failed)
		return slu_fail(err, SLU_ENOMEM, "out of memory for requests");
	c->socket.out = buf_slice(&c->out);
	rc = socket_send(&l->sockets, &c->socket, err);
	if (!rc && !c->socket.blocked) {
		c->socket.sent = 0;
		buf_clear(&c->out);
	}
	return rc;
}

/* Writes the next operations until there is an answer to wait for. */
static int
go_on(struct peer_load *l, struct peer_conn *c, struct slu_err *err)
{
	while (c->active && c->awaited == 0 && c->out.n < SEND_EARLY) {
		if (l->phase->next(l, c)) {
			if (c->awaited == 0)
				l->phase->done(l, c);
		} else {
			c->active = false;
			l->active--;
		}
	}
	return send_on(l, c, err);
}

static int
read_answers(struct peer_load *l, struct peer_conn *c, struct slu_err *err)
{
	struct slice in = buf_slice(&c->in);
	size_t before;
	int rc = 0;

	if (c->in.n < c->need)
		return 0;
	c->need = 0;
	do {
		before = in.n;
		if (before > 0)
			rc = l->protocol->answer(c, &in, err);
	} while (!rc && in.n < before);
	if (in.n > 0)
		memmove(c->in.p, in.p, in.n);
	c->in.n = in.n;
	return rc;
}

static int
receive(struct sockets *s, struct socket *socket, struct slu_err *err)
{
	struct peer_conn *const c = (struct peer_conn *)socket;
	struct peer_load *const l = s->arg;
	const bool waited = c->awaited > 0;
	size_t n;
	int rc;

	if (!buf_room(&c->in, READ_SIZE))
		return slu_fail(err, SLU_ENOMEM, "out of memory for answers");
	rc = socket_receive(s, socket, c->in.p + c->in.n, c->in.size - c->in.n - 1, &n, err);
	if (rc || n == 0)
		return rc;
	c->in.n += n;
	rc = read_answers(l, c, err);
	if (!rc && waited && c->awaited == 0)
		l->phase->done(l, c);
	return rc ? rc : go_on(l, c, err);
}

static int
send_more(struct sockets *s, struct socket *socket, struct slu_err *err)
{
	return go_on(s->arg, (struct peer_conn *)socket, err);
}

static int
turn(struct peer_load *l, bool *stalled, struct slu_err *err)
{
	const slu_time left = l->until - bench_now();
	const bool in_vain = l->protocol->consume && l->phase->waits;
	const int patience = in_vain ? IN_VAIN_MS : PATIENCE_MS;
	int n;
	const int rc = sockets_turn(&l->sockets, patience + (left > 0 ? (int)(left / SLU_MS) : 0), &n, err);

	*stalled = n == 0;
	if (!rc && *stalled && !in_vain)
		return slu_fail(err, SLU_EDOWN, "%s does not answer", l->protocol->name);
	return rc;
}

/* --- phases --------------------------------------------------------------------- */

/*
 * A peer that pushes deliveries may deliver a message to a connection that has just finished; another
 * connection then waits for it in vain. So a phase also ends when its time is over and nothing comes any
 * more. Its duration ends with the last operation.
 */
int
load_phase(struct peer_load *l, const struct phase *phase, struct slu_err *err)
{
	const slu_time begun = bench_now();
	bool stalled = false;
	int rc = 0;

	memset(&l->took, 0, sizeof l->took);
	l->phase = phase;
	l->messages = l->begun = 0;
	l->last = begun;
	l->active = l->connections;
	for (unsigned i = 0; i < l->connections && !rc; i++) {
		l->conns[i].active = true;
		l->conns[i].step = 0;
		l->conns[i].awaited = 0; /* drop the waits of the previous phase */
		rc = go_on(l, &l->conns[i], err);
	}
	while (!rc && l->active > 0 && !stalled)
		rc = turn(l, &stalled, err);
	for (unsigned i = 0; i < l->connections; i++)
		l->conns[i].active = false; /* late answers are read, and nothing follows */
	l->elapsed = l->last - begun;
	return rc;
}

static bool
next_step(struct peer_load *l, struct peer_conn *c)
{
	if (c->step++ > 0 || (l->step->first_only && c->index > 0))
		return false;
	l->step->say(c);
	return true;
}

static void
did_step(struct peer_load *l, struct peer_conn *c)
{
	(void)c;
	l->last = bench_now();
}

int
load_steps(struct peer_load *l, const struct step *steps, struct slu_err *err)
{
	static const struct phase phase = { "step", next_step, did_step, false };
	int rc = 0;

	l->until = bench_now() + 60 * SLU_SEC;
	for (l->step = steps; !rc && l->step && l->step->say; l->step++)
		rc = load_phase(l, &phase, err);
	return rc;
}

/* --- opening and closing -------------------------------------------------------- */

static int
open_one(struct peer_load *l, struct peer_conn *c, struct slu_err *err)
{
	buf_init(&c->out, BUFFER_MAX);
	buf_init(&c->in, BUFFER_MAX);
	buf_init(&c->held, BUFFER_MAX);
	c->work = l->work;
	c->own = mem_zalloc(l->protocol->own_size + 1);
	if (!c->own)
		return slu_fail(err, SLU_ENOMEM, "out of memory for a connection");
	return socket_connect(&l->sockets, &c->socket, err);
}

int
load_open(struct peer_load *l, struct slu_err *err)
{
	char text[32];
	int rc;

	(void)snprintf(text, sizeof text, "127.0.0.1:%u", l->port);
	l->sockets = (struct sockets){
		.address = &l->address,
		.arg = l,
		.readable = receive,
		.writable = send_more,
	};
	l->conns = mem_array(l->connections, sizeof *l->conns);
	if (!l->conns)
		return slu_fail(err, SLU_ENOMEM, "out of memory for %u connections", l->connections);
	for (unsigned i = 0; i < l->connections; i++) {
		l->conns[i].socket.fd = -1;
		l->conns[i].index = i;
	}
	rc = address_parse(&l->address, text, err);
	if (!rc)
		rc = sockets_open(&l->sockets, err);
	for (unsigned i = 0; i < l->connections && !rc; i++)
		rc = open_one(l, &l->conns[i], err);
	return rc ? rc : load_steps(l, l->protocol->hello, err);
}

void
load_close(struct peer_load *l)
{
	for (unsigned i = 0; l->conns && i < l->connections; i++) {
		struct peer_conn *c = &l->conns[i];

		socket_close(&c->socket);
		buf_release(&c->out);
		buf_release(&c->in);
		buf_release(&c->held);
		mem_free(c->own);
	}
	mem_free(l->conns);
	l->conns = NULL;
	sockets_close(&l->sockets);
}
