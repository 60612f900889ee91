#include "engine/redis/wire.h"

#include "base/clock.h"
#include "base/parse.h"
#include "engine/redis/tls.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	OUT_MAX = 1 << 30,
	HOST_MAX = 256,
	READ_SIZE = 64 << 10
};

bool
rwire_address(const char *list, unsigned i, char *out, size_t size)
{
	const char *end;

	for (; i > 0; i--) {
		list = strchr(list, ',');
		if (!list)
			return false;
		list++;
	}
	end = strchrnul(list, ',');
	(void)snprintf(out, size, "%.*s", (int)(end - list), list);
	return true;
}

void
rwire_init(struct rwire *w, const struct rwire_conf *conf)
{
	*w = (struct rwire){ .conf = *conf, .fd = -1 };
	if (!w->conf.timeout)
		w->conf.timeout = 5 * SLU_SEC;
	buf_init(&w->out, OUT_MAX);
}

void
rwire_close(struct rwire *w)
{
	rtls_close(w->tls);
	w->tls = NULL;
	if (w->fd >= 0)
		close(w->fd);
	if (w->reader)
		redisReaderFree(w->reader);
	w->fd = -1;
	w->reader = NULL;
	w->owed = 0;
	w->received = 0;
	buf_clear(&w->out);
}

void
rwire_release(struct rwire *w)
{
	rwire_close(w);
	buf_release(&w->out);
}

/* Why the server closed the connection: an unread TLS alert may say so. */
static const char *
last_words(struct rwire *w)
{
	char byte;

	if (!w->tls)
		return "";
	if (!*rtls_why(w->tls))
		(void)rtls_recv(w->tls, &byte, 1, &w->events); /* sets rtls_why */
	return rtls_why(w->tls);
}

/* REDISWIRE-1 */
static int
broke(struct rwire *w, struct slu_err *err, const char *what)
{
	const enum slu_code code = w->owed > 0 ? SLU_EUNKNOWN : SLU_EDOWN;
	const int why = errno;
	const char *tls = last_words(w);
	char text[200];

	(void)snprintf(text, sizeof text, "%s: %s", what, *tls ? tls : strerror(why)); /* may be cut */

	rwire_close(w); /* frees the reader, which may own `what` */
	return slu_fail(err, code, "redis %s: %s", w->conf.address, text);
}

/* ---- Sockets ---- */

static int
wait_for(struct rwire *w, short events, slu_time until)
{
	const slu_time left = until - clock_mono(&clock_system);
	struct pollfd p = { .fd = w->fd, .events = events };
	int n;

	if (left <= 0) {
		errno = ETIMEDOUT;
		return -1;
	}
	n = poll(&p, 1, (int)(left / SLU_MS) + 1);
	if (n == 0)
		errno = ETIMEDOUT;
	return n > 0 || (n < 0 && errno == EINTR) ? 0 : -1;
}

static int
finish_connect(struct rwire *w, const struct sockaddr *to, socklen_t size)
{
	const slu_time until = clock_mono(&clock_system) + w->conf.timeout;
	socklen_t n = sizeof(int);
	int why = 0;

	if (connect(w->fd, to, size) == 0)
		return 0;
	if (errno != EINPROGRESS || wait_for(w, POLLOUT, until))
		return -1;
	if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &why, &n))
		return -1;
	errno = why;
	return why ? -1 : 0;
}

static int
connect_to(struct rwire *w, int family, const struct sockaddr *to, socklen_t size)
{
	w->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (w->fd < 0)
		return -1;
	if (finish_connect(w, to, size)) {
		const int why = errno;

		close(w->fd);
		w->fd = -1;
		errno = why;
		return -1;
	}
	if (family != AF_UNIX) /* without it calls are slower */
		(void)setsockopt(w->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	return 0;
}

static const char unix_scheme[] = "unix:";

static bool
is_unix(const char *address)
{
	return strncmp(address, unix_scheme, sizeof unix_scheme - 1) == 0;
}

/* Checks the form of one address. */
static int
check_address(const struct rwire_conf *conf, const char *address, struct slu_err *err)
{
	const char *const colon = strrchr(address, ':');
	const size_t n = sizeof unix_scheme - 1;
	uint64_t port;

	if (is_unix(address) && conf->tls)
		return slu_fail(err, SLU_EINVAL, "invalid redis address: %s; expected host:port with TLS", address);
	if (is_unix(address) && strlen(address) - n >= sizeof((struct sockaddr_un *)0)->sun_path)
		return slu_fail(err, SLU_EINVAL, "invalid redis address: %s; expected a shorter path", address);
	if (is_unix(address))
		return 0;
	if (!colon || colon == address || colon - address >= HOST_MAX ||
	    parse_u64(slice_of(colon + 1), 1, 65535, &port, NULL))
		return slu_fail(err, SLU_EINVAL, "invalid redis address: %s; expected host:port or unix:PATH", address);
	return 0;
}

int
rwire_check(const struct rwire_conf *conf, struct slu_err *err)
{
	char address[HOST_MAX + 16];
	int rc = 0;

	for (unsigned i = 0; !rc && rwire_address(conf->address, i, address, sizeof address); i++)
		rc = check_address(conf, address, err);
	return rc || !conf->tls ? rc : rtls_check(conf, err);
}

static int
connect_unix(struct rwire *w, const char *path, struct slu_err *err)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	memcpy(to.sun_path, path, strlen(path) + 1);
	return connect_to(w, AF_UNIX, (struct sockaddr *)&to, sizeof to)
		       ? broke(w, err, "connect")
		       : 0;
}

static int
connect_tcp(struct rwire *w, struct slu_err *err)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	const char *colon = strrchr(w->conf.address, ':');
	struct addrinfo *found, *each;
	char host[HOST_MAX];
	int rc;

	(void)snprintf(host, sizeof host, "%.*s", (int)(colon - w->conf.address),
		       w->conf.address);
	rc = getaddrinfo(host, colon + 1, &hints, &found);
	if (rc)
		return slu_fail(err, SLU_EDOWN, "redis %s: %s", w->conf.address,
				gai_strerror(rc));
	for (each = found; each && w->fd < 0; each = each->ai_next)
		(void)connect_to(w, each->ai_family, each->ai_addr, each->ai_addrlen);
	freeaddrinfo(found);
	return w->fd < 0 ? broke(w, err, "connect") : 0;
}

/* ---- Commands and answers ---- */

void
rwire_begin(struct rwire *w, size_t n_args)
{
	buf_printf(&w->out, "*%zu\r\n", n_args);
	w->owed++;
}

void
rwire_arg(struct rwire *w, struct slice arg)
{
	buf_printf(&w->out, "$%zu\r\n", arg.n);
	buf_put(&w->out, arg.p, arg.n);
	buf_put(&w->out, "\r\n", 2);
}

void
rwire_number(struct rwire *w, int64_t n)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%" PRId64, n);
	rwire_arg(w, slice_of(text));
}

void
rwire_u64(struct rwire *w, uint64_t n)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%" PRIu64, n);
	rwire_arg(w, slice_of(text));
}

static ssize_t
put_bytes(struct rwire *w, const char *p, size_t n)
{
	w->events = POLLOUT;
	return w->tls ? rtls_send(w->tls, p, n, &w->events) : send(w->fd, p, n, MSG_NOSIGNAL);
}

static ssize_t
take_bytes(struct rwire *w, char *p, size_t n)
{
	w->events = POLLIN;
	return w->tls ? rtls_recv(w->tls, p, n, &w->events) : recv(w->fd, p, n, 0);
}

int
rwire_send(struct rwire *w, struct slu_err *err)
{
	const slu_time until = clock_mono(&clock_system) + w->conf.timeout;
	size_t sent = 0;

	if (w->out.failed) {
		rwire_close(w);
		return slu_fail(err, SLU_ENOMEM, "no memory for commands");
	}
	while (sent < w->out.n) {
		const ssize_t n = put_bytes(w, w->out.p + sent, w->out.n - sent);

		if (n > 0)
			sent += (size_t)n;
		else if (errno == EAGAIN ? wait_for(w, w->events, until) : errno != EINTR)
			return broke(w, err, "send");
	}
	buf_clear(&w->out);
	return 0;
}

int
rwire_fill(struct rwire *w, struct slu_err *err)
{
	char bytes[READ_SIZE];
	const ssize_t n = take_bytes(w, bytes, sizeof bytes);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	w->received += n > 0 ? (size_t)n : 0;
	if (w->received > REPLY_BYTES_MAX) {
		errno = EMSGSIZE;
		return broke(w, err, "receive");
	}
	if (n > 0 && redisReaderFeed(w->reader, bytes, (size_t)n) == REDIS_OK)
		return 0;
	if (n >= 0)
		errno = n ? ENOMEM : ECONNRESET;
	return broke(w, err, "receive");
}

/* REDISWIRE-2: whether the server sent bytes while it owes no answer. */
static bool
is_ahead(const struct rwire *w)
{
	return w->owed == 0 && w->reader && w->reader->pos < w->reader->len;
}

int
rwire_answer(struct rwire *w, redisReply **out, struct slu_err *err)
{
	const slu_time until = clock_mono(&clock_system) + w->conf.timeout;
	void *reply = NULL;
	int rc;

	w->events = POLLIN;
	for (;;) {
		if (redisReaderGetReply(w->reader, &reply) != REDIS_OK) {
			errno = EPROTO;
			return broke(w, err, w->reader->errstr);
		}
		if (reply)
			break;
		if (wait_for(w, w->events, until))
			return broke(w, err, "receive");
		rc = rwire_fill(w, err);
		if (rc)
			return rc;
	}
	w->owed--;
	w->received = 0;
	*out = reply;
	if (!is_ahead(w))
		return 0;
	freeReplyObject(reply);
	*out = NULL;
	w->owed++; /* SLU_EUNKNOWN: any of the answers may be the wrong one */
	errno = EPROTO;
	return broke(w, err, "an answer without a command");
}

int
rwire_ask(struct rwire *w, struct rwords words, redisReply **out, struct slu_err *err)
{
	int rc;

	*out = NULL;
	rwire_begin(w, words.n);
	for (size_t i = 0; i < words.n; i++)
		rwire_arg(w, words.at[i]);
	rc = rwire_send(w, err);
	return rc ? rc : rwire_answer(w, out, err);
}

/* ---- Opening ---- */

static int
shake_hands(struct rwire *w, struct slu_err *err)
{
	const slu_time until = clock_mono(&clock_system) + w->conf.timeout;
	int rc = rtls_open(&w->tls, &w->conf, w->fd, err);

	if (rc) {
		rwire_close(w);
		return rc;
	}
	while (!rc && rtls_shake(w->tls, &w->events) <= 0) {
		const bool silent = errno == EAGAIN || !*rtls_why(w->tls);

		if (errno == EAGAIN && !wait_for(w, w->events, until))
			continue;
		rc = broke(w, err, "connect");
		if (!silent) /* the server is there, and one side does not trust the other */
			rc = (int)(err->code = SLU_EAUTH);
	}
	return rc;
}

/* Sends one command before all others, and checks its answer. */
static int
greet(struct rwire *w, struct rwords words, enum slu_code code, struct slu_err *err)
{
	redisReply *reply = NULL;
	int rc = rwire_ask(w, words, &reply, err);

	assert(rc || reply);
	if (!rc && reply->type == REDIS_REPLY_ERROR) {
		rc = slu_fail(err, code, "redis %s: %s: %s", w->conf.address, words.at[0].p, reply->str);
		rwire_close(w);
	} else if (!rc && !reply_fits(reply, "t")) {
		rc = slu_fail(err, SLU_EDOWN, "redis %s: malformed reply to %s", w->conf.address, words.at[0].p);
		rwire_close(w);
	}
	freeReplyObject(reply); /* NULL is fine */
	return rc;
}

static int
log_in(struct rwire *w, struct slu_err *err)
{
	const char *const name = w->conf.username, *const word = w->conf.password;
	char db[16];
	int rc = 0;

	if (name)
		rc = greet(w, WORDS(SLICE("AUTH"), slice_of(name), slice_of(word ? word : "")), SLU_EAUTH,
			   err);
	else if (word)
		rc = greet(w, WORDS(SLICE("AUTH"), slice_of(word)), SLU_EAUTH, err);
	(void)snprintf(db, sizeof db, "%u", w->conf.db);
	if (!rc && w->conf.db)
		rc = greet(w, WORDS(SLICE("SELECT"), slice_of(db)), SLU_EDOWN, err);
	return rc;
}

int
rwire_open(struct rwire *w, struct slu_err *err)
{
	const char *const address = w->conf.address;
	int rc;

	rwire_close(w);
	rc = check_address(&w->conf, address, err);
	if (!rc)
		rc = is_unix(address) ? connect_unix(w, address + sizeof unix_scheme - 1, err)
				      : connect_tcp(w, err);
	if (!rc && w->conf.tls)
		rc = shake_hands(w, err);
	if (rc)
		return rc;
	w->reader = reply_reader();
	if (!w->reader) {
		rwire_close(w);
		return slu_fail(err, SLU_ENOMEM, "no memory for a connection");
	}
	return log_in(w, err);
}
