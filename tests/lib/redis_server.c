#include "redis_server.h"

#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t server;

static bool
answers(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool fine;

	CHECK(strlen(path) < sizeof to.sun_path);
	memcpy(to.sun_path, path, strlen(path) + 1);
	fine = connect(fd, (struct sockaddr *)&to, sizeof to) == 0;
	close(fd);
	return fine;
}

static void
end(void)
{
	if (server > 0) {
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
	}
	server = 0;
}

void
redis_server_start(const char *path)
{
	int status;

	if (server > 0)
		return;
	server = fork();
	if (server == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)dup2(open("redis.log", O_CREAT | O_WRONLY, 0600), STDOUT_FILENO);
		execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", path,
		       "--save", "", "--appendonly", "no", (char *)NULL);
		_exit(TEST_SKIPPED);
	}
	CHECK(server > 0);
	atexit(end);
	while (!answers(path)) {
		if (waitpid(server, &status, WNOHANG) == server) {
			server = 0;
			test_skip("there is no redis-server");
		}
		test_yield();
	}
}
