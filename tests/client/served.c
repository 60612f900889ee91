#include "served.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <test.h>
#include <unistd.h>

static void
become(struct test_server *s, int err_fd)
{
	const char *program = getenv("SLUICED");
	const char *argv[16] = { program, "--listen", s->address };
	int n = 3;

	for (unsigned i = 0; i < s->n_options; i++)
		argv[n++] = s->options[i];
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (program && dup2(err_fd, STDERR_FILENO) >= 0)
		execv(program, (char **)argv);
	dprintf(STDERR_FILENO, "SLUICED: %m\n");
	_exit(127);
}

void
served_again(struct test_server *s)
{
	char line[512];
	bool listens = false;
	int fds[2];
	FILE *said;

	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	s->pid = fork();
	CHECK(s->pid >= 0);
	if (s->pid == 0)
		become(s, fds[1]);
	close(fds[1]);
	said = fdopen(fds[0], "r");
	CHECK(said);
	while (!listens && fgets(line, sizeof line, said))
		listens = strstr(line, "listening on ") != NULL;
	if (!listens)
		test_fail(__FILE__, __LINE__, "no server: %s", line);
	/* said stays open: what it says later must not end it */
}

void
served_start(struct test_server *s, int n, const char *engine)
{
	char cwd[64];

	*s = (struct test_server){ .n_options = 4 };
	CHECK(getcwd(cwd, sizeof cwd));
	(void)snprintf(s->address, sizeof s->address, "unix:%s/%d.sock", cwd, n);
	(void)snprintf(s->options[0], sizeof s->options[0], "--engine");
	(void)snprintf(s->options[1], sizeof s->options[1], "%s", engine);
	(void)snprintf(s->options[2], sizeof s->options[2], "--data");
	(void)snprintf(s->options[3], sizeof s->options[3], "data%d", n);
	served_again(s);
}

static void
end(struct test_server *s, int sig)
{
	(void)kill(s->pid, sig);
	(void)waitpid(s->pid, NULL, 0);
	s->pid = 0;
}

void
served_kill(struct test_server *s)
{
	end(s, SIGKILL);
}

void
served_stop(struct test_server *s)
{
	end(s, SIGTERM);
}

void
served_freeze(struct test_server *s)
{
	(void)kill(s->pid, SIGSTOP);
}

void
served_thaw(struct test_server *s)
{
	(void)kill(s->pid, SIGCONT);
}

struct slu_client *
served_client(const struct test_server *s)
{
	const struct slu_client_config config = { SLU_OPTIONS_INIT(struct slu_client_config), .servers = s->address, .space = "test" };
	struct slu_client *c;
	struct slu_err err;

	if (slu_client_new(&c, &config, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
	return c;
}
