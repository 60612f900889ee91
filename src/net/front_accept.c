/*
 * front_accept.c - listeners, and which connections are accepted (SERVER-5).
 */
#include "net/front.h"

#include "base/log.h"
#include "base/mem.h"
#include "net/protocol.h"

#include <sys/socket.h>
#include <unistd.h>

enum {
	BACKLOG = 4096 /* the kernel cuts it to net.core.somaxconn */
};

static void
init_handle(const struct front *f, union net_handle *uv, bool is_unix, void *owner)
{
	if (is_unix)
		(void)uv_pipe_init(loop_uv(f->loop), &uv->pipe, 0); /* always 0 */
	else
		(void)uv_tcp_init(loop_uv(f->loop), &uv->tcp); /* always 0 */
	uv->handle.data = owner;
}

static struct conn *
new_conn(struct front *f, const struct front_listener *l)
{
	const uint32_t slot = slab_new(&f->slab);
	struct conn *c;

	if (slot == SLAB_NONE)
		return NULL;
	c = slab_at(&f->slab, slot);
	c->front = f;
	c->protocol = l->protocol;
	c->slot = slot;
	c->generation = ++f->last_generation ? f->last_generation : ++f->last_generation;
	c->listener = l->index;
	list_init(&c->node);
	list_init(&c->dirty);
	list_init(&c->exchanges);
	init_handle(f, &c->uv, l->uv.handle.type != UV_TCP, c);
	return c;
}

static void
free_turned_away(uv_handle_t *handle)
{
	mem_free(handle->data);
}

/* One attempt to send why. The bytes that the client has sent are read first: a close
 * with unread bytes is a reset, and the client would lose the answer. */
static void
send_busy(struct front *f, uv_stream_t *stream, struct slice text)
{
	uv_buf_t buf = uv_buf_init((char *)text.p, (unsigned)text.n);
	uv_os_fd_t fd;

	if (uv_fileno((uv_handle_t *)stream, &fd))
		return;
	(void)recv(fd, f->read, FRONT_READ, MSG_DONTWAIT); /* thrown away */
	(void)uv_try_write(stream, &buf, 1);               /* if it fails, the client gets no reason */
	(void)shutdown(fd, SHUT_WR);                       /* closed at once anyway */
}

static void
turn_away(struct front_listener *l)
{
	struct front *f = l->front;
	union net_handle *uv = mem_zalloc(sizeof *uv);

	if (!uv) {
		l->owed = true; /* libuv accepts no more until this one is taken */
		f->owed = true;
		return;
	}
	front_count(f, SERVER_TURNED_AWAY, 1);
	init_handle(f, uv, l->uv.handle.type != UV_TCP, uv);
	if (uv_accept(&l->uv.stream, &uv->stream) == 0 && !l->tls && l->protocol->ops->busy)
		send_busy(f, &uv->stream, l->protocol->ops->busy(l->protocol->shared));
	uv_close(&uv->handle, free_turned_away);
}

static bool
has_room(const struct front_listener *l, bool *reserved)
{
	struct front_shared *s = l->front->shared;
	const unsigned max = atomic_load_explicit(&s->max_connections, memory_order_relaxed);
	const unsigned n = atomic_fetch_add(&s->connections, 1);

	*reserved = n >= max && !(l->flags & LISTEN_RESERVE);
	return n < max + s->conf.reserve;
}

static void
accept_one(struct front_listener *l, struct conn *c)
{
	struct front *f = l->front;

	front_count(f, SERVER_ACCEPTED, 1);
	front_count(f, SERVER_CONNECTIONS, 1);
	if (uv_accept(&l->uv.stream, &c->uv.stream) || (l->tls && conn_tls_open(c)) ||
	    conn_open(c))
		conn_close(c);
}

static void
take_connection(struct front_listener *l)
{
	struct conn *c = NULL;
	bool reserved;

	l->owed = false;
	if (has_room(l, &reserved))
		c = new_conn(l->front, l);
	if (c) {
		c->reserved = reserved;
		accept_one(l, c);
		return;
	}
	atomic_fetch_sub(&l->front->shared->connections, 1);
	turn_away(l);
}

static void
on_connection(uv_stream_t *stream, int status)
{
	struct front_listener *l = stream->data;

	if (status < 0)
		log_warn(l->front->shared->conf.log, "accept failed",
			 F_STR("reason", uv_strerror(status)));
	else
		take_connection(l);
}

/* Try again, until there is memory. */
void
front_take_owed(struct front *f)
{
	f->owed = false;
	LIST_EACH(n, &f->listeners)
		if (CONTAINER(n, struct front_listener, node)->owed)
			take_connection(CONTAINER(n, struct front_listener, node));
	if (f->owed)
		front_watch(f, loop_now(f->loop));
}

int
front_listen(struct front *f, int fd, const struct listener *from, unsigned protocol,
	     unsigned index, unsigned flags, struct slu_err *err)
{
	struct front_listener *l = mem_zalloc(sizeof *l);
	const bool is_unix = from->port == 0;
	int rc;

	if (from->tls && !f->tls_room)
		f->tls_room = tls_room_new();
	if (!l || (from->tls && !f->tls_room)) {
		mem_free(l);
		close(fd);
		return slu_fail(err, SLU_ENOMEM, "no memory to listen");
	}
	l->front = f;
	l->protocol = &f->protocols[protocol];
	l->index = index;
	l->flags = flags;
	l->tls = from->tls;
	init_handle(f, &l->uv, is_unix, l);
	list_append(&f->listeners, &l->node);
	rc = is_unix ? uv_pipe_open(&l->uv.pipe, fd) : uv_tcp_open(&l->uv.tcp, fd);
	if (rc)
		close(fd);
	else
		rc = uv_listen(&l->uv.stream, BACKLOG, on_connection);
	return rc ? slu_fail(err, rc == UV_EADDRINUSE ? SLU_EEXISTS : SLU_EDOWN,
			     "listen: %s", uv_strerror(rc))
		  : 0;
}

static void
free_listener(uv_handle_t *handle)
{
	mem_free(handle->data);
}

void
front_close_listeners(struct front *f)
{
	while (!list_is_empty(&f->listeners)) {
		struct front_listener *l = CONTAINER(f->listeners.next,
						     struct front_listener, node);

		list_remove(&l->node);
		uv_close(&l->uv.handle, free_listener);
	}
}
