#include "torture/migrate.h"

#include "torture/times.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void
become(const struct migrate *c, const char *server, const char *space, const char *queue,
       unsigned home)
{
	const char *const shards[] = { "s0", "s1" };
	const int log = open(c->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setpgid(0, 0); /* Ctrl-C goes to the torture, which ends this process */
	(void)dup2(log, STDOUT_FILENO);
	(void)dup2(log, STDERR_FILENO);
	execl("/proc/self/exe", "sluice", "admin", "migrate-shard", "--command", queue, "--tenant",
	      space, "--from-shard", shards[!home], "--to-shard", shards[home], "--batch-size", "50",
	      "--server", server, (char *)NULL);
	_exit(1);
}

int
migrate_start(struct migrate *c, struct target *v, const char *space, struct slu_err *err)
{
	const struct stores *s = v->conf.stores;
	struct address address;

	(void)target_address(v, &address);
	(void)snprintf(c->log, sizeof c->log, "%s/migrate", s->all[0].folder);
	c->pid = fork();
	if (c->pid == 0)
		become(c, address.text, space, s->conf.queue, s->home);
	return c->pid > 0 ? 0 : slu_fail(err, SLU_EDOWN, "fork: %m");
}

/* The last line of its output. */
static int
say_why(const struct migrate *c, struct slu_err *err)
{
	char said[200] = "nothing";
	FILE *f = fopen(c->log, "re");

	while (f && fgets(said, sizeof said, f))
		;
	if (f)
		(void)fclose(f);
	return slu_fail(err, SLU_EDOWN, "migrate-shard failed: %s", said);
}

int
migrate_wait(struct migrate *c, slu_time patience, struct slu_err *err)
{
	const slu_time end = time_now() + patience;
	int status;

	while (waitpid(c->pid, &status, WNOHANG) == 0) {
		if (time_now() >= end) {
			(void)kill(c->pid, SIGKILL);
			(void)waitpid(c->pid, &status, 0);
			return slu_fail(err, SLU_ETIMEOUT, "migrate-shard did not end in time");
		}
		sleep_ms(5);
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : say_why(c, err);
}
