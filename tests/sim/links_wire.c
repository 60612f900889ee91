#include "links_wire.h"

#include "test.h"

#include <limits.h>

struct sim_wire wires[WIRES];

/* ---- Wires ---- */

static struct sim_wire *
wire_of(int fd)
{
	return &wires[fd / 2];
}

static void
forget(struct sim_wire *w)
{
	for (unsigned end = 0; end < 2; end++) {
		buf_release(&w->bytes[end]);
		buf_release(&w->arrived[end]);
	}
	*w = (struct sim_wire){ 0 };
}

static struct sim_wire *
new_wire(unsigned from, unsigned to)
{
	struct sim_wire *w = wires;

	while (w < wires + WIRES && w->used)
		w++;
	CHECK(w < wires + WIRES);
	*w = (struct sim_wire){ .used = true, .nodes = { from, to } };
	for (unsigned end = 0; end < 2; end++) {
		buf_init(&w->bytes[end], SIZE_MAX);
		buf_init(&w->arrived[end], SIZE_MAX);
	}
	return w;
}

static void
take_front(struct buf *b, size_t n)
{
	memmove(b->p, b->p + n, b->n - n);
	b->n -= n;
}

void
wire_carry(struct sim_wire *w, unsigned end, size_t n)
{
	struct buf *const b = &w->bytes[end];

	n = n < b->n ? n : b->n;
	if (w->broken || n == 0)
		return;
	if (!w->shut[!end])
		buf_put(&w->arrived[!end], b->p, n);
	take_front(b, n);
}

void
wire_break(struct sim_wire *w)
{
	w->broken = true;
	for (unsigned end = 0; end < 2; end++)
		buf_clear(&w->bytes[end]);
}

void
wire_notice(struct sim_wire *w, unsigned end)
{
	w->notices[end] = w->broken;
}

static void
shut_end(int fd)
{
	struct sim_wire *const w = wire_of(fd);

	w->shut[fd % 2] = true;
	if (w->shut[0] && w->shut[1])
		forget(w);
}

void
wires_cut(unsigned node)
{
	for (unsigned i = 0; i < WIRES; i++)
		for (unsigned end = 0; wires[i].used && end < 2; end++)
			if (wires[i].nodes[end] == node && !wires[i].shut[end])
				wire_break(&wires[i]);
}

void
wires_release(void)
{
	for (unsigned i = 0; i < WIRES; i++)
		if (wires[i].used)
			forget(&wires[i]);
}

/* ---- peer/peernet_private.h: peersock.c, peernet_dial.c ---- */

int
peersock_open(struct peersock *s, struct peernet *p, int fd, enum hello_role role,
	      const struct link_events *events, const uint8_t *other)
{
	struct link_conf conf = { .role = role, .events = events, .secret = p->secret };
	static uint64_t nonces;

	nonces++;
	memcpy(conf.nonce, &nonces, sizeof nonces);
	memcpy(conf.life, p->life, HELLO_LIFE);
	if (other)
		memcpy(conf.other, other, HELLO_LIFE);
	*s = (struct peersock){ .fd = fd };
	buf_init(&s->out, SIZE_MAX);
	link_init(&s->link, &conf, links_now());
	return 0;
}

void
peernet_dial(struct peer_callee *c, const struct peer_target *t)
{
	const unsigned to = links_node_alive(t->life), from = links_node_of(c->net);
	struct sim_wire *w;

	if (to == UINT_MAX) {
		link_lose(&c->sock.link, "connection refused");
		return;
	}
	w = new_wire(from, to);
	c->sock.fd = 2 * (int)(w - wires);
	links_accept(to, c->sock.fd + 1);
}

static bool
is_lost(const struct sim_wire *w, unsigned end)
{
	return w->notices[end] || (w->shut[!end] && w->bytes[!end].n == 0 && w->arrived[end].n == 0);
}

void
peersock_write(struct peersock *s)
{
	struct sim_wire *const w = s->fd < 0 ? NULL : wire_of(s->fd);
	const unsigned end = (unsigned)s->fd % 2;

	if (!w)
		return;
	buf_clear(&s->out);
	while (s->link.state != LINK_BROKEN && link_give(&s->link, &s->out))
		continue;
	if (s->link.role == HELLO_CALLER)
		links_saw(w->nodes[end], buf_slice(&s->out));
	if (!w->broken)
		buf_put(&w->bytes[end], s->out.p, s->out.n);
}

void
peersock_read(struct peersock *s)
{
	struct sim_wire *const w = s->fd < 0 ? NULL : wire_of(s->fd);
	const unsigned end = (unsigned)s->fd % 2;

	if (!w || s->link.state == LINK_BROKEN)
		return;
	if (w->arrived[end].n > 0)
		(void)link_take(&s->link, w->arrived[end].p, w->arrived[end].n, links_now());
	buf_clear(&w->arrived[end]);
	if (is_lost(w, end))
		link_lose(&s->link, "connection reset");
}

void
peersock_shut(int fd)
{
	if (fd >= 0)
		shut_end(fd);
}

void
peersock_close(struct peersock *s)
{
	peersock_shut(s->fd);
	s->fd = -1;
	link_release(&s->link);
	buf_release(&s->out);
}

slu_time
peernet_now(void)
{
	return links_now();
}

void
peernet_wake(const struct peernet *p)
{
	(void)p; /* the world turns all nodes */
}
