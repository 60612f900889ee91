#include "torture/victim_store.h"

#include "client/http.h"
#include "torture/times.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	START_TRIES = 3000, /* of 10 ms: it reads back what it has */
	NO_PROGRAM = 127
};

#define READY_TIME (30 * SLU_SEC) /* it tries again each 5 s at least */

static void
socket_path(const struct victim *v, char *out, size_t n)
{
	(void)snprintf(out, n, "%s/socket", v->store_folder);
}

static bool
answers(const struct victim *v)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char said[64] = "";
	bool fine;

	socket_path(v, to.sun_path, sizeof to.sun_path);
	fine = connect(fd, (struct sockaddr *)&to, sizeof to) == 0 &&
	       write(fd, "PING\r\n", 6) == 6 && read(fd, said, sizeof said - 1) > 0 &&
	       strncmp(said, "+PONG", 5) == 0; /* -LOADING: not yet */
	if (fd >= 0)
		close(fd);
	return fine;
}

static void
become(const struct victim *v)
{
	char path[300];
	int null;

	socket_path(v, path, sizeof path);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setpgid(0, 0); /* Ctrl-C is for the torture, which ends it */
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	(void)dup2(null, STDOUT_FILENO);
	(void)dup2(null, STDERR_FILENO);
	execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", path, "--dir",
	       v->store_folder, "--save", "", "--appendonly", "yes", "--appendfsync", "always",
	       (char *)NULL);
	_exit(NO_PROGRAM);
}

int
victim_store_start(struct victim *v, struct slu_err *err)
{
	int status;

	v->store = fork();
	if (v->store == 0)
		become(v);
	for (int i = 0; v->store > 0 && i < START_TRIES; i++) {
		if (answers(v))
			return 0;
		if (waitpid(v->store, &status, WNOHANG) == v->store) {
			v->store = 0;
			return slu_fail(err, SLU_EDOWN, "redis-server %s",
					WIFEXITED(status) && WEXITSTATUS(status) == NO_PROGRAM
						? "is not installed"
						: "ended as soon as it was started");
		}
		sleep_ms(10);
	}
	victim_store_kill(v);
	return slu_fail(err, SLU_EDOWN, "redis-server does not answer");
}

int
victim_store_open(struct victim *v, struct slu_err *err)
{
	(void)snprintf(v->store_folder, sizeof v->store_folder, "%.60s/sluice-store-XXXXXX",
		       v->conf.dir);
	if (!mkdtemp(v->store_folder)) {
		v->store_folder[0] = '\0';
		return slu_fail(err, SLU_EDOWN, "%s: %m; name another folder with --dir", v->conf.dir);
	}
	return victim_store_start(v, err);
}

void
victim_store_kill(struct victim *v)
{
	if (v->store <= 0)
		return;
	(void)kill(v->store, SIGKILL);
	(void)waitpid(v->store, NULL, 0);
	v->store = 0;
}

void
victim_store_close(struct victim *v)
{
	victim_store_kill(v);
	if (v->store_folder[0])
		served_remove(v->store_folder);
	v->store_folder[0] = '\0';
}

void
victim_store_pause(struct victim *v)
{
	(void)kill(v->store, SIGSTOP);
}

void
victim_store_resume(struct victim *v)
{
	(void)kill(v->store, SIGCONT);
}

int
victim_store_wait(struct victim *v, struct slu_err *err)
{
	const struct http_call call = {
		.method = "GET",
		.path = "/readyz",
		.repeatable = true,
		.until = { time_now() + READY_TIME, -1 },
	};
	struct address address;
	struct http h;
	int rc = SLU_EDOWN, status = 0;

	(void)victim_address(v, &address);
	http_init(&h, &address);
	while (status != 200 && time_now() < call.until.deadline) {
		rc = http_call(&h, &call, err);
		status = rc ? 0 : h.answer.status;
		sleep_ms(status == 200 ? 0 : 20);
	}
	http_release(&h);
	return status == 200 ? 0 : slu_fail(err, SLU_EDOWN, "its store is back, and it is not ready");
}

int
victim_store_tell(const struct victim *v)
{
	char address[320];

	if (!v->store_folder[0])
		return 0;
	(void)snprintf(address, sizeof address, "unix:%s/socket", v->store_folder);
	return setenv("SLUICE_REDIS_ADDRESS", address, 1) ||
	       setenv("SLUICE_REDIS_TIMEOUT", "1s", 1);
}
