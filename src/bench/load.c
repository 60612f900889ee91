#include "bench/load.h"

#include "base/mem.h"
#include "bench/bench.h"

enum {
	READ_SIZE = 256 * 1024,
	ANSWER_MAX = 64 * 1024 * 1024
};

static int
begin(struct load *l, struct load_conn *c, struct slu_err *err)
{
	int rc = 0;

	c->request = (struct slice){ 0 };
	c->active = l->next(l, c);
	c->idle = c->active && c->request.n == 0;
	if (!c->active)
		l->active--;
	if (!c->active || c->idle)
		return 0;
	answer_begin(&c->answer, false);
	c->socket.out = c->request;
	c->socket.sent = 0;
	c->began = bench_now();
	if (c->socket.fd < 0)
		rc = socket_connect(&l->sockets, &c->socket, err);
	return rc ? rc : socket_send(&l->sockets, &c->socket, err);
}

int
load_go(struct load *l, struct load_conn *c, struct slu_err *err)
{
	return c->idle ? begin(l, c, err) : 0;
}

static int
answered(struct load *l, struct load_conn *c, struct slu_err *err)
{
	int rc = 0;

	hist_add(l->hist, bench_now() - c->began);
	l->requests++;
	if (l->fresh)
		socket_close(&c->socket);
	if (l->answered)
		rc = l->answered(l, c, err);
	else if (c->answer.status >= 300)
		rc = slu_fail(err, SLU_EFAILED, "%s answered with status %u: %.100s",
			      l->address->text, c->answer.status, buf_str(&c->answer.body));
	return rc ? rc : begin(l, c, err);
}

static int
receive(struct sockets *s, struct socket *socket, struct slu_err *err)
{
	struct load_conn *const c = (struct load_conn *)socket;
	struct load *const l = s->arg;
	struct slice in = { l->room, 0 };
	const int rc = socket_receive(s, socket, l->room, READ_SIZE, &in.n, err);

	if (rc || in.n == 0)
		return rc;
	switch (answer_next(&c->answer, &in)) {
	case ANSWER_WHOLE:
		return answered(l, c, err);
	case ANSWER_REFUSED:
		return slu_fail(err, SLU_EDOWN, "%s: malformed answer: %s",
				l->address->text, answer_refusal(&c->answer));
	default:
		return l->more ? l->more(l, c, err) : 0;
	}
}

static int
open_all(struct load *l, struct slu_err *err)
{
	int rc;

	l->sockets = (struct sockets){ .address = l->address, .arg = l, .readable = receive };
	l->room = mem_alloc(READ_SIZE);
	l->conns = mem_array(l->connections, sizeof *l->conns);
	for (unsigned i = 0; l->conns && i < l->connections; i++)
		l->conns[i].socket.fd = -1;
	if (!l->room || !l->conns)
		return slu_fail(err, SLU_ENOMEM, "no memory for %u connections", l->connections);
	rc = sockets_open(&l->sockets, err);
	for (unsigned i = 0; i < l->connections && !rc; i++) {
		struct load_conn *const c = &l->conns[i];

		c->index = i;
		c->active = true;
		answer_init(&c->answer, ANSWER_MAX);
		buf_init(&c->own, ANSWER_MAX);
		rc = l->fresh ? 0 : socket_connect(&l->sockets, &c->socket, err);
	}
	return rc;
}

static void
close_all(struct load *l)
{
	for (unsigned i = 0; l->conns && i < l->connections; i++) {
		socket_close(&l->conns[i].socket);
		answer_release(&l->conns[i].answer);
		buf_release(&l->conns[i].own);
	}
	mem_free(l->conns);
	mem_free(l->room);
	sockets_close(&l->sockets);
}

int
load_run(struct load *l, struct slu_err *err)
{
	slu_time begun;
	int n, rc;

	l->requests = 0;
	l->active = l->connections;
	rc = open_all(l, err);
	begun = bench_now();
	for (unsigned i = 0; i < l->connections && !rc; i++)
		rc = begin(l, &l->conns[i], err);
	while (!rc && l->active > 0 && !l->quit)
		rc = sockets_turn(&l->sockets, -1, &n, err);
	l->elapsed = bench_now() - begun;
	close_all(l);
	return rc;
}
