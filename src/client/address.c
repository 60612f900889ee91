#include "client/address.h"

#include "base/clock.h"
#include "base/parse.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char https[] = "https://";

#define HOW_TO_START "; start one with `sluiced`, or set servers to another"

static int
parse_unix(struct address *a, const char *path, struct slu_err *err)
{
	const size_t n = strlen(path);

	if (n == 0 || n >= sizeof a->path)
		return slu_fail(err, SLU_EINVAL,
				"invalid address: unix:%s; expected a path of 1 to %zu bytes", path,
				sizeof a->path - 1);
	memcpy(a->path, path, n + 1);
	return 0;
}

/* Splits host, host:port, [v6] or [v6]:port into two slices. */
static bool
split_host(const char *text, struct slice *host, struct slice *port)
{
	const char *close = text[0] == '[' ? strchr(text, ']') : NULL;
	const char *colon = strrchr(close ? close : text, ':');

	*port = slice_of(colon ? colon + 1 : "7171");
	if (text[0] == '[') {
		if (!close || (close[1] && close + 1 != colon))
			return false;
		*host = (struct slice){ text + 1, (size_t)(close - text - 1) };
	} else {
		*host = slice_of(text);
		host->n = colon ? (size_t)(colon - text) : host->n;
		if (memchr(host->p, ':', host->n))
			return false; /* a bare IPv6 address: the port is ambiguous */
	}
	return host->n > 0 && host->n < ADDRESS_TEXT;
}

static int
parse_tcp(struct address *a, const char *text, struct slu_err *err)
{
	struct slice host, port;
	uint64_t number;

	if (!split_host(text, &host, &port) ||
	    parse_u64(port, 1, UINT16_MAX, &number, NULL))
		return slu_fail(err, SLU_EINVAL,
				"invalid address: %s; expected host:port, [ipv6]:port, "
				"https://host:port or unix:/path",
				text);
	snprintf(a->host, sizeof a->host, "%.*s", (int)host.n, host.p);
	snprintf(a->port, sizeof a->port, "%u", (unsigned)number);
	return 0;
}

int
address_parse(struct address *a, const char *text, struct slu_err *err)
{
	static const char http[] = "http://";
	size_t n = strlen(text);

	*a = (struct address){ 0 };
	if (n >= sizeof a->text)
		return slu_fail(err, SLU_EINVAL, "invalid address: %.40s...; expected at most %zu bytes",
				text, sizeof a->text - 1);
	memcpy(a->text, text, n + 1);
	if (strncmp(text, "unix:", 5) == 0)
		return parse_unix(a, text + 5, err);
	if (strncmp(text, http, sizeof http - 1) == 0) {
		n -= sizeof http - 1;
		memmove(a->text, text + sizeof http - 1, n + 1);
	}
	if (n > 0 && a->text[n - 1] == '/')
		a->text[n - 1] = '\0';
	a->tls = strncmp(a->text, https, sizeof https - 1) == 0;
	return parse_tcp(a, address_authority(a), err);
}

const char *
address_authority(const struct address *a)
{
	return a->tls ? a->text + sizeof https - 1 : a->text;
}

/* --- waiting --------------------------------------------------------------------- */

/* The timeout of poll in milliseconds, rounded up so that it never wakes too early. */
static int
poll_time(slu_time deadline)
{
	slu_time left;

	if (deadline == SLU_NEVER)
		return -1;
	left = deadline - clock_mono(&clock_system);
	if (left <= 0)
		return 0;
	left = (left + SLU_MS - 1) / SLU_MS;
	return left > INT32_MAX ? INT32_MAX : (int)left;
}

int
patience_wait(const struct patience *until, int fd, short events)
{
	struct pollfd fds[3] = {
		{ .fd = fd, .events = events },
		{ .fd = until->stop_fd, .events = POLLIN },
		{ .fd = until->client_fd ? until->client_fd : -1, .events = POLLIN },
	};

	for (;;) {
		const int n = poll(fds, 3, poll_time(until->deadline));

		if (n < 0 && errno != EINTR)
			return SLU_EDOWN;
		if (n > 0 && (fds[1].revents || fds[2].revents))
			return SLU_ECANCELED;
		if (n > 0)
			return 0;
		if (n == 0 && clock_mono(&clock_system) >= until->deadline)
			return SLU_ETIMEOUT;
	}
}

/* --- connecting ------------------------------------------------------------------ */

static int
connect_one(int family, const struct sockaddr *sa, socklen_t len,
	    const struct patience *until, int *out)
{
	const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc = 0, error = 0;

	if (fd < 0)
		return SLU_EDOWN;
	if (connect(fd, sa, len) != 0)
		error = errno;
	if (error == EINPROGRESS || error == EINTR) {
		socklen_t len_of_error = sizeof error;

		error = 0;
		rc = patience_wait(until, fd, POLLOUT);
		if (rc == SLU_EDOWN ||
		    (!rc && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len_of_error) != 0))
			error = errno;
	}
	if (!rc && !error) {
		*out = fd;
		return 0;
	}
	close(fd);
	errno = error;
	return rc ? rc : SLU_EDOWN;
}

/* Detects a vanished server within two minutes, even if a wait has no deadline. The connection works
 * without these options too. */
static void
set_options(int fd)
{
	const int on = 1, idle = 60, interval = 15, count = 4;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

static int
connect_tcp(const struct address *a, const struct patience *until, int *fd,
	    struct slu_err *err)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	int rc = SLU_EDOWN;
	const int why = getaddrinfo(a->host, a->port, &hints, &list);

	if (why)
		return slu_fail(err, SLU_EDOWN, "%s: %s; set servers to another", a->text,
				gai_strerror(why));
	for (const struct addrinfo *i = list; i && rc == SLU_EDOWN; i = i->ai_next)
		rc = connect_one(i->ai_family, i->ai_addr, i->ai_addrlen, until, fd);
	if (rc == SLU_EDOWN)
		slu_fail(err, rc, "no server at %s: %m" HOW_TO_START, a->text);
	freeaddrinfo(list);
	if (!rc)
		set_options(*fd);
	return rc;
}

static int
connect_unix(const struct address *a, const struct patience *until, int *fd,
	     struct slu_err *err)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int rc;

	memcpy(sa.sun_path, a->path, sizeof a->path);
	rc = connect_one(AF_UNIX, (const struct sockaddr *)&sa, sizeof sa, until, fd);
	if (rc == SLU_EDOWN)
		slu_fail(err, rc, "no server at %s: %m" HOW_TO_START, a->text);
	return rc;
}

int
address_connect(const struct address *a, const struct patience *until, int *fd,
		struct slu_err *err)
{
	const int rc = a->path[0] ? connect_unix(a, until, fd, err)
				  : connect_tcp(a, until, fd, err);

	if (rc == SLU_ETIMEOUT)
		return slu_fail(err, rc, "%s: no connection in time", a->text);
	if (rc == SLU_ECANCELED)
		return slu_fail(err, rc, "%s: stopped while connecting", a->text);
	return rc;
}
