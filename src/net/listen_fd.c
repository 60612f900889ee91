#include "net/listen_fd.h"

#include "base/bytes.h"
#include "base/parse.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>

enum {
	FIRST_FD = 3, /* 0 to 2 are the standard streams */
	MAX_FD = 1 << 20
};

static int
fd_of(const char *address, int *fd, struct slu_err *err)
{
	uint64_t n;

	if (parse_u64(slice_of(address + 3), FIRST_FD, MAX_FD, &n, NULL))
		return slu_fail(err, SLU_EINVAL,
				"invalid listen address \"%s\"; expected the number of a socket, 3 or more",
				address);
	*fd = (int)n;
	return 0;
}

static bool
has_option(int fd, int option, int value)
{
	int found = 0;
	socklen_t len = sizeof found;

	return getsockopt(fd, SOL_SOCKET, option, &found, &len) == 0 && found == value;
}

static int
address_of(const char *address, int *fd, struct sockaddr_storage *sa, struct slu_err *err)
{
	socklen_t len = sizeof *sa;
	const int rc = fd_of(address, fd, err);

	if (rc)
		return rc;
	if (!has_option(*fd, SO_TYPE, SOCK_STREAM) || !has_option(*fd, SO_ACCEPTCONN, 1) ||
	    getsockname(*fd, (struct sockaddr *)sa, &len))
		return slu_fail(err, SLU_EINVAL,
				"invalid listen address \"%s\"; expected the number of a "
				"listening stream socket",
				address);
	return 0;
}

int
listen_fd_check(const char *address, struct slu_err *err)
{
	struct sockaddr_storage sa;
	int fd = -1;

	return address_of(address, &fd, &sa, err);
}

static int
name_it(struct listener *l, const struct sockaddr_storage *sa,
	char name[static LISTEN_NAME])
{
	const struct sockaddr_in *const v4 = (const void *)sa;
	const struct sockaddr_in6 *const v6 = (const void *)sa;
	char host[INET6_ADDRSTRLEN];

	switch (sa->ss_family) {
	case AF_UNIX:
		(void)snprintf(l->name, sizeof l->name, "unix:%s",
			       ((const struct sockaddr_un *)(const void *)sa)->sun_path);
		return 0;
	case AF_INET:
		l->port = ntohs(v4->sin_port);
		(void)snprintf(name, LISTEN_NAME, "%s:%u",
			       inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host), l->port);
		return 0;
	case AF_INET6:
		l->port = ntohs(v6->sin6_port);
		(void)snprintf(name, LISTEN_NAME, "[%s]:%u",
			       inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host), l->port);
		return 0;
	default:
		return SLU_EINVAL;
	}
}

/* Copies: the socket itself stays open, so that a client is never refused while we
 * restart our threads, and the number stays taken. */
static int
share(struct listener *l, int fd, const char *address, struct slu_err *err)
{
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) || fcntl(fd, F_SETFL, O_NONBLOCK))
		return slu_fail(err, SLU_EDOWN, "%s: %m", address);
	for (unsigned i = 0; i < l->n; i++) {
		l->fds[i] = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);
		if (l->fds[i] < 0)
			return slu_fail(err, SLU_EDOWN, "share %s: %m", address);
	}
	return 0;
}

int
listen_adopt(struct listener *l, const char *address, char name[static LISTEN_NAME],
	     struct slu_err *err)
{
	struct sockaddr_storage sa = { 0 };
	int fd = -1;
	int rc = address_of(address, &fd, &sa, err);

	if (rc)
		return rc;
	if (name_it(l, &sa, name))
		return slu_fail(err, SLU_EINVAL, "%s: neither TCP nor a unix socket", address);
	return share(l, fd, address, err);
}

bool
listen_fd_is_local(const char *address)
{
	struct sockaddr_storage sa = { 0 };
	int fd = -1;

	if (address_of(address, &fd, &sa, NULL))
		return false;
	if (sa.ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)(void *)&sa)->sin6_addr);
	if (sa.ss_family == AF_INET)
		return ntohl(((struct sockaddr_in *)(void *)&sa)->sin_addr.s_addr) >> 24 == 127;
	return sa.ss_family == AF_UNIX;
}
