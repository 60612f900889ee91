#include "server/systemd.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/parse.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A number of the environment, or 0. */
static uint64_t
number(const char *name)
{
	const char *const text = getenv(name);
	uint64_t n = 0;

	if (text)
		(void)parse_u64(slice_of(text), 0, INT64_MAX, &n, NULL); /* else it stays 0 */
	return n;
}

unsigned
systemd_sockets(void)
{
	const uint64_t n = number("LISTEN_FDS");

	if (number("LISTEN_PID") != (uint64_t)getpid())
		return 0;
	return n < SYSTEMD_FDS_MAX ? (unsigned)n : SYSTEMD_FDS_MAX;
}

/* A path, or with @ before it a name that is no file. */
static bool
find_socket(struct sockaddr_un *sa, socklen_t *len)
{
	const char *const path = getenv("NOTIFY_SOCKET");
	const size_t n = path ? strlen(path) : 0;

	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (n < 2 || n >= sizeof sa->sun_path || !strchr("/@", *path))
		return false;
	memcpy(sa->sun_path, path, n);
	if (*path == '@')
		sa->sun_path[0] = '\0';
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	return true;
}

void
systemd_notify(const char *text)
{
	struct sockaddr_un sa;
	socklen_t len;
	int fd;

	if (!find_socket(&sa, &len))
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&sa, len);
	close(fd);
}

void
systemd_ready(const char *status)
{
	char text[256];

	(void)snprintf(text, sizeof text, "READY=1\nSTATUS=%s", status); /* cut when long */
	systemd_notify(text);
}

/* The moment tells the manager which READY belongs to it. */
void
systemd_reloading(void)
{
	char text[64];

	(void)snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
		       clock_mono(&clock_system) / SLU_US);
	systemd_notify(text);
}

slu_time
systemd_watchdog(void)
{
	const uint64_t pid = number("WATCHDOG_PID");
	const uint64_t us = number("WATCHDOG_USEC");

	if (us == 0 || us > INT64_MAX / SLU_US || (pid && pid != (uint64_t)getpid()))
		return SLU_NEVER;
	return (slu_time)us * SLU_US / 2;
}
