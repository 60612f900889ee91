/*
 * listen.c - bind first alone, then once a thread.
 */
#include "net/listen.h"

#include "base/bytes.h"
#include "base/mem.h"
#include "base/parse.h"
#include "net/listen_fd.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	UNIX_MODE = 0660,
	PORT_TRIES = 16
};

static int
new_socket(int family, struct slu_err *err)
{
	const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		(void)slu_fail(err, SLU_EDOWN, "open a socket: %m");
	return fd;
}

/* --- TCP ------------------------------------------------------------------- */

/* "host:port"; brackets around an IPv6 address. host is empty for every address. */
static int
split_tcp(const char *address, char host[static LISTEN_NAME], const char **port,
	  struct slu_err *err)
{
	const char *colon = strrchr(address, ':');
	struct slice s = { address, colon ? (size_t)(colon - address) : 0 };
	const bool bracketed = s.n >= 2 && s.p[0] == '[' && s.p[s.n - 1] == ']';
	uint64_t number;

	if (bracketed)
		s = (struct slice){ s.p + 1, s.n - 2 };
	if (!colon || s.n >= LISTEN_NAME || (!bracketed && memchr(s.p, ':', s.n)))
		return slu_fail(err, SLU_EINVAL,
				"invalid listen address \"%s\"; expected host:port, [ipv6]:port, "
				"https://host:port or unix:/path",
				address);
	if (parse_u64(slice_of(colon + 1), 0, 65535, &number, NULL))
		return slu_fail(err, SLU_EINVAL,
				"invalid listen address \"%s\"; expected a port of 0 to 65535",
				address);
	memcpy(host, s.p, s.n);
	host[s.n] = '\0';
	*port = colon + 1;
	return 0;
}

static int
resolve(const char *address, struct sockaddr_storage *sa, socklen_t *len,
	struct slu_err *err)
{
	const struct addrinfo hints = {
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
		.ai_socktype = SOCK_STREAM,
	};
	char host[LISTEN_NAME] = "";
	struct addrinfo *found;
	const char *port = NULL;
	int rc;

	rc = split_tcp(address, host, &port, err);
	if (rc)
		return rc;
	rc = getaddrinfo(host[0] ? host : NULL, port, &hints, &found);
	if (rc)
		return slu_fail(err, rc == EAI_AGAIN ? SLU_EDOWN : SLU_EINVAL,
				"listen address \"%s\": %s", address, gai_strerror(rc));
	*len = found->ai_addrlen;
	memcpy(sa, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return 0;
}

static in_port_t *
port_of(struct sockaddr_storage *sa)
{
	return sa->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)(void *)sa)->sin6_port : &((struct sockaddr_in *)(void *)sa)->sin_port;
}

static int
bind_failed(const char *address, struct slu_err *err)
{
	switch (errno) {
	case EADDRINUSE:
		return slu_fail(err, SLU_EEXISTS,
				"%s is in use: stop what listens there (ss -ltnp shows "
				"it) or choose another address",
				address);
	case EACCES:
		return slu_fail(err, SLU_EINVAL,
				"%s: not allowed: choose a port above 1023", address);
	case EADDRNOTAVAIL: /* the network may come up later */
		return slu_fail(err, SLU_EDOWN, "%s is not an address of this machine", address);
	default:
		return slu_fail(err, SLU_EDOWN, "bind %s: %m", address);
	}
}

/* LISTEN-5. Without them it is slower or later, not wrong. */
static void
set_options(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		/* Without it a restart would fail while the kernel remembers old connections. */
		{ SOL_SOCKET, SO_REUSEADDR, 1 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 60 },
		{ IPPROTO_TCP, TCP_KEEPINTVL, 15 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 4 },
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
	};

	for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
		(void)setsockopt(fd, options[i].level, options[i].name,
				 &options[i].value, sizeof options[i].value);
}

/* A bound socket at *out; the port that was chosen is in sa. */
static int
bind_tcp(const char *address, struct sockaddr_storage *sa, socklen_t len, bool shared,
	 int *out, struct slu_err *err)
{
	const int fd = new_socket(sa->ss_family, err);
	const int on = 1;
	int rc = 0;

	if (fd < 0)
		return SLU_EDOWN;
	set_options(fd);
	if (shared && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on))
		rc = slu_fail(err, SLU_EDOWN, "SO_REUSEPORT for %s: %m", address);
	else if (bind(fd, (struct sockaddr *)sa, len) ||
		 getsockname(fd, (struct sockaddr *)sa, &len))
		rc = bind_failed(address, err);
	if (rc)
		close(fd);
	else
		*out = fd;
	return rc;
}

/* Two sockets may be bound to one port as long as they do not listen: so it listens, too. */
static int
probe(const char *address, struct sockaddr_storage *sa, socklen_t len, int *out,
      struct slu_err *err)
{
	int rc = bind_tcp(address, sa, len, false, out, err);

	if (rc == 0 && listen(*out, 0)) {
		rc = bind_failed(address, err);
		close(*out);
	}
	return rc;
}

static int
bind_shared(struct listener *l, const char *address, struct sockaddr_storage *sa,
	    socklen_t len, struct slu_err *err)
{
	for (unsigned i = 0; i < l->n; i++) {
		const int rc = bind_tcp(address, sa, len, true, &l->fds[i], err);

		if (rc)
			return rc;
	}
	return 0;
}

static void
drop(struct listener *l)
{
	for (unsigned i = 0; i < l->n; i++) {
		if (l->fds[i] >= 0)
			close(l->fds[i]);
		l->fds[i] = -1;
	}
}

/* LISTEN-1. */
static int
try_tcp(struct listener *l, const char *address, struct sockaddr_storage *sa,
	socklen_t len, struct slu_err *err)
{
	int first = -1;
	int rc = probe(address, sa, len, &first, err);

	if (rc)
		return rc;
	if (l->n == 1) {
		l->fds[0] = first;
		return 0;
	}
	close(first);
	rc = bind_shared(l, address, sa, len, err);
	if (rc)
		drop(l);
	return rc;
}

/* Another process may take the chosen port between the first bind and the others: then choose
 * another one. */
static int
open_tcp(struct listener *l, const char *address, struct slu_err *err)
{
	struct sockaddr_storage wanted = { 0 }, sa = { 0 };
	socklen_t len = 0;
	int rc = resolve(address, &wanted, &len, err);

	if (rc)
		return rc;
	const bool any = strcmp(strrchr(address, ':'), ":0") == 0;

	for (int tries = 0; tries < PORT_TRIES; tries++) {
		sa = wanted;
		rc = try_tcp(l, address, &sa, len, err);
		if (rc != SLU_EEXISTS || !any)
			break;
	}
	l->port = ntohs(*port_of(&sa));
	return rc;
}

static void
name_tcp(struct listener *l, const char *protocol, const char *address)
{
	const char *colon = strrchr(address, ':');
	const int n = (int)(colon - address);

	(void)snprintf(l->name, sizeof l->name, "%s%s://%.*s:%u", protocol,
		       l->tls ? "s" : "", n ? n : 7, n ? address : "0.0.0.0", l->port);
}

/* --- unix sockets ---------------------------------------------------------- */

/* "/path" or "/path?mode=0600" */
static int
split_unix(const char *rest, struct sockaddr_un *sa, mode_t *mode, struct slu_err *err)
{
	const char *mark = strstr(rest, "?mode=");
	const size_t n = mark ? (size_t)(mark - rest) : strlen(rest);
	char *end = NULL;

	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	*mode = UNIX_MODE;
	if (n == 0 || n >= sizeof sa->sun_path)
		return slu_fail(err, SLU_EINVAL,
				"invalid listen address \"unix:%s\"; expected a path of 1 to %zu bytes",
				rest, sizeof sa->sun_path - 1);
	memcpy(sa->sun_path, rest, n);
	if (!mark)
		return 0;
	*mode = (mode_t)strtoul(mark + 6, &end, 8);
	if (end == mark + 6 || *end || *mode > 0777)
		return slu_fail(err, SLU_EINVAL,
				"invalid listen address \"unix:%s\"; expected a mode like 0660", rest);
	return 0;
}

/* True if no process listens on the path: a killed server leaves the file. */
static bool
is_left_over(const struct sockaddr_un *sa)
{
	const int fd = new_socket(AF_UNIX, NULL);
	int rc;

	if (fd < 0)
		return false;
	rc = connect(fd, (const struct sockaddr *)sa, sizeof *sa) ? errno : 0;
	close(fd);
	return rc == ECONNREFUSED;
}

/* LISTEN-2: 0 when the path is free now. */
static int
clear_path(const struct sockaddr_un *sa, struct slu_err *err)
{
	struct stat st;

	if (lstat(sa->sun_path, &st))
		return errno == ENOENT ? 0 : slu_fail(err, SLU_EDOWN, "%s: %m", sa->sun_path);
	if (!S_ISSOCK(st.st_mode))
		return slu_fail(err, SLU_EEXISTS,
				"%s exists and is not a socket: move it away or choose "
				"another path",
				sa->sun_path);
	if (!is_left_over(sa))
		return slu_fail(err, SLU_EEXISTS,
				"%s is in use: stop what listens there or choose another "
				"path",
				sa->sun_path);
	if (unlink(sa->sun_path) && errno != ENOENT)
		return slu_fail(err, SLU_EDOWN, "remove %s: %m", sa->sun_path);
	return 0;
}

/* LISTEN-3: no client can connect before listen. */
static int
bind_unix(struct listener *l, const struct sockaddr_un *sa, mode_t mode,
	  struct slu_err *err)
{
	l->fds[0] = new_socket(AF_UNIX, err);
	if (l->fds[0] < 0)
		return SLU_EDOWN;
	if (bind(l->fds[0], (const struct sockaddr *)sa, sizeof *sa))
		return bind_failed(sa->sun_path, err);
	(void)snprintf(l->name, sizeof l->name, "unix:%s", sa->sun_path);
	l->unix_path = *sa;
	if (chmod(sa->sun_path, mode))
		return slu_fail(err, SLU_EDOWN, "set the mode of %s: %m", sa->sun_path);
	return 0;
}

/* The threads share one backlog: a thread that is awake accepts the next client. */
static int
open_unix(struct listener *l, const char *rest, struct slu_err *err)
{
	struct sockaddr_un sa;
	mode_t mode;
	int rc;

	rc = split_unix(rest, &sa, &mode, err);
	if (rc == 0)
		rc = clear_path(&sa, err);
	if (rc == 0)
		rc = bind_unix(l, &sa, mode, err);
	for (unsigned i = 1; rc == 0 && i < l->n; i++) {
		l->fds[i] = fcntl(l->fds[0], F_DUPFD_CLOEXEC, 0);
		if (l->fds[i] < 0)
			rc = slu_fail(err, SLU_EDOWN, "share %s: %m", l->name);
	}
	return rc;
}

/* --- check ----------------------------------------------------------------- */

/* A bind without listen disturbs no one. An address in use may be free at the start. */
static int
check_tcp(const char *address, struct slu_err *err)
{
	struct sockaddr_storage sa = { 0 };
	socklen_t len = 0;
	int fd = -1, rc = resolve(address, &sa, &len, err);

	if (rc)
		return rc;
	rc = bind_tcp(address, &sa, len, false, &fd, err);
	if (fd >= 0)
		close(fd);
	return rc == SLU_EINVAL ? rc : 0;
}

static int
check_unix(const char *rest, struct slu_err *err)
{
	struct sockaddr_un sa;
	mode_t mode;
	int rc = split_unix(rest, &sa, &mode, err);
	char *slash = rc ? NULL : strrchr(sa.sun_path, '/');

	if (!slash || slash == sa.sun_path)
		return rc;
	*slash = '\0';
	if (access(sa.sun_path, W_OK | X_OK))
		return slu_fail(err, SLU_EINVAL, "listen address \"unix:%s\": folder %s: %m", rest,
				sa.sun_path);
	return 0;
}

int
listen_check(const char *address, struct slu_err *err)
{
	bool tls;
	const char *const target = listen_target(address, &tls);

	if (strncmp(target, "unix:", 5) == 0 && !tls)
		return check_unix(target + 5, err);
	if (strncmp(target, "fd:", 3) == 0)
		return listen_fd_check(target, err);
	return check_tcp(target, err);
}

/* --- all ------------------------------------------------------------------- */

static int
adopt(struct listener *l, const char *address, char name[static LISTEN_NAME],
      struct slu_err *err)
{
	const int rc = listen_adopt(l, address, name, err);

	if (!rc && l->port)
		set_options(l->fds[0]); /* all descriptors are one socket */
	return rc;
}

/* The letters before "://", or empty. */
static struct slice
scheme_of(const char *address)
{
	size_t n = 0;

	while (address[n] >= 'a' && address[n] <= 'z')
		n++;
	return (struct slice){ address, strncmp(address + n, "://", 3) == 0 ? n : 0 };
}

struct slice
listen_scheme(const char *address)
{
	const struct slice s = scheme_of(address);

	if (s.n == 0 || slice_eq(s, SLICE("tls")))
		return (struct slice){ 0 };
	return (struct slice){ s.p, s.p[s.n - 1] == 's' ? s.n - 1 : s.n };
}

const char *
listen_target(const char *address, bool *tls)
{
	const struct slice s = scheme_of(address);

	*tls = s.n > 0 && s.p[s.n - 1] == 's';
	return s.n > 0 ? address + s.n + 3 : address;
}

bool
listen_is_local(const char *address)
{
	bool tls;
	const char *const target = listen_target(address, &tls);
	const char *const colon = strrchr(target, ':');
	const size_t n = colon ? (size_t)(colon - target) : 0;
	char host[64] = "";
	struct in_addr v4;

	if (strncmp(target, "unix:", 5) == 0)
		return true;
	if (strncmp(target, "fd:", 3) == 0)
		return listen_fd_is_local(target);
	if (n >= sizeof host)
		return false;
	memcpy(host, target, n);
	if (strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0)
		return true;
	return inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
}

bool
listen_is_private(const char *address)
{
	struct sockaddr_un sa;
	mode_t mode;
	bool tls;
	const char *const target = listen_target(address, &tls);

	return strncmp(target, "unix:", 5) == 0 && split_unix(target + 5, &sa, &mode, NULL) == 0 &&
	       (mode & 077) == 0;
}

int
listener_open(struct listener *l, const char *protocol, const char *address, unsigned threads,
	      struct slu_err *err)
{
	bool is_unix, is_passed;
	char passed[LISTEN_NAME];
	int rc;

	assert(threads > 0);
	*l = (struct listener){ .n = threads };
	address = listen_target(address, &l->tls);
	l->fds = mem_array(threads, sizeof *l->fds);
	if (!l->fds)
		return slu_fail(err, SLU_ENOMEM, "no memory to listen on %s", address);
	for (unsigned i = 0; i < threads; i++)
		l->fds[i] = -1;
	is_unix = strncmp(address, "unix:", 5) == 0 && !l->tls;
	is_passed = strncmp(address, "fd:", 3) == 0;
	if (is_unix)
		rc = open_unix(l, address + 5, err);
	else if (is_passed)
		rc = adopt(l, address, passed, err);
	else
		rc = open_tcp(l, address, err);
	if (rc)
		listener_close(l);
	else if (l->port)
		name_tcp(l, protocol, is_passed ? passed : address);
	return rc;
}

void
listener_close(struct listener *l)
{
	if (l->fds)
		drop(l);
	mem_free(l->fds);
	if (l->unix_path.sun_path[0] && is_left_over(&l->unix_path))
		(void)unlink(l->unix_path.sun_path); /* if it fails, the next start replaces the file */
	*l = (struct listener){ 0 };
}

int
listener_take(struct listener *l, unsigned i)
{
	const int fd = l->fds[i];

	assert(i < l->n && fd >= 0);
	l->fds[i] = -1;
	return fd;
}
