/*
 * exchange.c - the pool of exchanges, and their answers.
 */
#include "net/exchange.h"

#include "base/mem.h"
#include "net/front.h"
#include "net/protocol.h"

#include <assert.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	SPARES = 256,          /* of a protocol and a thread; more are freed */
	SPARE_BYTES = 8 << 20, /* of their buffers; more are freed */
	KEPT_BUFFER = 256 << 10,
	HEAD_RESERVE = 1024,     /* every exchange has room for a refusal from the start: */
	OUT_RESERVE = 767,       /* its head, and its body */
	SMALL_ANSWER = 16 * 1024 /* not counted: SERVER-8 */
};

/* --- pool ---------------------------------------------------------------------- */

static void
trim(struct buf *b)
{
	if (b->size > KEPT_BUFFER)
		buf_release(b);
	buf_clear(b);
}

static void
release_buffers(const struct front_protocol *p, struct exchange *x)
{
	buf_release(&x->out);
	buf_release(&x->head);
	if (p->ops->release)
		p->ops->release(x);
}

static struct exchange *
alloc(const struct front *f, const struct front_protocol *p)
{
	struct exchange *x = mem_zalloc(p->ops->exchange_size);

	if (!x)
		return NULL;
	buf_init(&x->out, f->shared->conf.max_output);
	buf_init(&x->head, f->shared->conf.max_output);
	if (p->ops->init)
		p->ops->init(x);
	return x;
}

static void
free_exchange(const struct front_protocol *p, struct exchange *x)
{
	release_buffers(p, x);
	mem_free(x);
}

static struct exchange *
take_spare(struct front_protocol *p)
{
	struct exchange *const x = p->spare;

	p->spare = x->next_spare;
	p->n_spare--;
	p->spare_bytes -= x->held;
	x->held = 0;
	return x;
}

struct exchange *
exchange_new(struct conn *c)
{
	struct front *const f = c->front;
	struct front_protocol *const p = c->protocol;
	struct exchange *const x = p->spare ? take_spare(p) : alloc(f, p);

	if (!x)
		return NULL;
	if (!buf_reserve(&x->out, OUT_RESERVE) || !buf_reserve(&x->head, HEAD_RESERVE)) {
		free_exchange(p, x);
		return NULL;
	}
	x->front = f;
	x->protocol = p;
	x->slot = c->slot;
	x->generation = c->generation;
	x->listener = c->listener;
	x->began = loop_now(f->loop);
	list_init(&x->node);
	f->n_exchanges++;
	f->events++;
	front_count(f, SERVER_CALLS, 1);
	return x;
}

void
exchange_free_spares(struct front_protocol *p)
{
	while (p->spare)
		free_exchange(p, take_spare(p));
}

static void
recycle(struct front *f, struct front_protocol *p, struct exchange *x)
{
	size_t bytes = p->ops->reset ? p->ops->reset(x, KEPT_BUFFER) : 0;

	trim(&x->out);
	trim(&x->head);
	bytes += x->out.size + x->head.size;
	if (p->spare_bytes + bytes > SPARE_BYTES) {
		release_buffers(p, x);
		bytes = 0;
	}
	memset(x, 0, offsetof(struct exchange, out)); /* the buffers stay */
	x->out.max = f->shared->conf.max_output;      /* the buffer may be another one */
	x->held = bytes;
	x->next_spare = p->spare;
	p->spare = x;
	p->n_spare++;
	p->spare_bytes += bytes;
}

void
exchange_end(struct exchange *x, bool sent)
{
	struct front *const f = x->front;
	struct front_protocol *const p = x->protocol;

	assert(list_is_empty(&x->node));
	if (p->ops->ended)
		p->ops->ended(x, sent);
	if (x->ended)
		x->ended(x, sent);
	if (x->who)
		f->shared->conf.dismiss(x->who);
	f->n_exchanges--;
	f->events++;
	f->bodies -= x->charged + x->held;
	front_count(f, SERVER_BODIES, -(uint64_t)x->charged);
	front_count(f, SERVER_ANSWERS, -(uint64_t)x->held);
	front_count(f, SERVER_CALLS, (uint64_t)-1);
	front_count(f, SERVER_UNSENT, !sent);
	if (p->n_spare < SPARES)
		recycle(f, p, x);
	else
		free_exchange(p, x);
	front_check_end(f);
}

struct exchange *
exchange_part(const struct exchange *x, void (*answered)(struct exchange *part), void *arg)
{
	struct conn *const c = exchange_conn(x);
	struct exchange *const part = c ? exchange_new(c) : NULL;

	if (!part)
		return NULL;
	part->part = answered;
	part->part_of = arg;
	return part;
}

void
exchange_part_end(struct exchange *part, bool sent)
{
	assert(part->part && !part->asks);
	exchange_end(part, sent);
}

/* --- what a handler asks ------------------------------------------------------- */

/* In a handler the connection is there. */
static const struct conn *
conn_here(const struct exchange *x)
{
	const struct conn *const c = exchange_conn(x);

	assert(loop_is_here(x->front->loop) && c);
	return c;
}

const struct tls_peer *
exchange_peer(const struct exchange *x)
{
	const struct conn *const c = conn_here(x);

	return c->tls ? tls_peer(c->tls) : NULL;
}

bool
exchange_is_tls(const struct exchange *x)
{
	return conn_here(x)->tls;
}

bool
exchange_is_named(const struct exchange *x, struct slice host)
{
	const struct conn *const c = conn_here(x);

	return c->tls && tls_is_named(c->tls, host);
}

void
exchange_address(const struct exchange *x, char out[static EXCHANGE_ADDRESS])
{
	const struct conn *const c = exchange_conn(x);
	struct sockaddr_storage sa;
	int n = sizeof sa;

	out[0] = '\0';
	if (c && c->uv.handle.type != UV_TCP)
		(void)snprintf(out, EXCHANGE_ADDRESS, "unix");
	else if (c && !uv_tcp_getpeername(&c->uv.tcp, (struct sockaddr *)&sa, &n))
		(void)uv_ip_name((struct sockaddr *)&sa, out, EXCHANGE_ADDRESS); /* or it stays empty */
}

bool
exchange_is_owner(const struct exchange *x)
{
	const struct conn *const c = exchange_conn(x);
	struct ucred peer;
	socklen_t n = sizeof peer;
	uv_os_fd_t fd;

	if (!c || c->uv.handle.type == UV_TCP || uv_fileno(&c->uv.handle, &fd) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n))
		return false;
	return peer.uid == geteuid() || peer.uid == 0;
}

struct loop *
exchange_loop(const struct exchange *x)
{
	return x->front->loop;
}

unsigned
exchange_thread(const struct exchange *x)
{
	return x->front->number;
}

void *
exchange_arg(const struct exchange *x)
{
	return x->front->shared->conf.arg;
}

void
exchange_hold(struct exchange *x)
{
	struct conn *const c = exchange_conn(x);

	assert(loop_is_here(x->front->loop) && !x->answered);
	if (!c || x->holds || x->part)
		return;
	x->holds = true;
	c->n_held++;
}

/* --- answers ------------------------------------------------------------------- */

/* The connection may be gone: then the exchange ends here. */
static void
to_conn(struct exchange *x, void (*take)(struct conn *c, struct exchange *x))
{
	struct conn *const c = exchange_conn(x);

	if (c)
		take(c, x);
	else
		exchange_end(x, false);
}

static void
deliver(struct loop_work *w)
{
	struct exchange *const x = CONTAINER(w, struct exchange, work);

	if (x->part)
		x->part(x);
	else
		to_conn(x, conn_answer);
}

static void
deliver_piece(struct loop_work *w)
{
	struct exchange *const x = CONTAINER(w, struct exchange, work);

	if (x->part)
		x->part(x);
	else
		to_conn(x, conn_piece);
}

void
exchange_on_loop(struct exchange *x, void (*run)(struct loop_work *w))
{
	x->work.run = run;
	if (loop_is_here(x->front->loop))
		run(&x->work);
	else
		loop_post(x->front->loop, &x->work);
}

void
exchange_answer(struct exchange *x)
{
	assert(!x->answered); /* EXCHANGE-2 */
	x->answered = true;
	exchange_on_loop(x, deliver);
}

static void
give_piece(struct exchange *x)
{
	assert(x->streams && !x->answered);
	x->answered = true;
	exchange_on_loop(x, deliver_piece);
}

void
exchange_piece(struct exchange *x, bool last)
{
	assert(x->out.n > 0 || last || x->out.failed);
	x->whole = last;
	x->broke = x->out.failed;
	give_piece(x);
}

void
exchange_break(struct exchange *x)
{
	x->broke = true;
	give_piece(x);
}

static void
ask_more(struct conn *c, struct exchange *x)
{
	(void)c;
	x->touched = false;
	x->more(x);
}

/* The client may have gone since. */
static void
want_more(struct loop_work *w)
{
	struct exchange *const x = CONTAINER(w, struct exchange, work);

	x->asks = false;
	if (x->part && !exchange_conn(x))
		x->part(x);
	else
		to_conn(x, ask_more);
}

/* Not at once: other connections have their turn first. */
void
exchange_want_more(struct exchange *x)
{
	buf_clear(&x->head);
	buf_clear(&x->out);
	x->written = 0;
	x->has_body = false;
	x->answered = false;
	x->state = EXCHANGE_RUNNING;
	x->asks = true;
	x->work.run = want_more;
	loop_post(x->front->loop, &x->work);
}

/* SERVER-8: the memory of the answer, as it is now. */
void
exchange_charge(struct exchange *x)
{
	const bool small = x->out.n + x->head.n < SMALL_ANSWER;
	const size_t held = small ? 0 : x->out.size + x->head.size;

	x->front->bodies += held - x->held;
	front_count(x->front, SERVER_ANSWERS, held - x->held);
	x->held = held;
}

size_t
exchange_unsent(const struct exchange *x)
{
	return x->head.n + (x->has_body ? x->out.n : 0) - x->written;
}
