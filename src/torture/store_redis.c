/*
 * store_redis.c - Redis servers that the nodes share.
 */
#include "torture/store.h"

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
	START_TRIES = 3000, /* pauses of 10 ms: a restarted store loads its data */
	NO_PROGRAM = 127,
	PATH_TEXT = STORE_PATH + 32
};

/* --- one store -------------------------------------------------------------------- */

static void
socket_path(const struct torture_store *s, char *out, size_t n)
{
	(void)snprintf(out, n, "%.90s/socket", s->folder); /* dir_max is shorter */
}

static bool
answers(const struct torture_store *s)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char said[64] = "";
	bool fine;

	socket_path(s, to.sun_path, sizeof to.sun_path);
	fine = fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0 &&
	       write(fd, "PING\r\n", 6) == 6 && read(fd, said, sizeof said - 1) > 0 &&
	       strncmp(said, "+PONG", 5) == 0; /* -LOADING = not ready yet */
	if (fd >= 0)
		close(fd);
	return fine;
}

static void
become(const struct torture_store *s)
{
	char path[PATH_TEXT];
	int null;

	socket_path(s, path, sizeof path);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setpgid(0, 0); /* Ctrl-C goes to the torture, which ends this process */
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	(void)dup2(null, STDOUT_FILENO);
	(void)dup2(null, STDERR_FILENO);
	execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", path, "--dir",
	       s->folder, "--save", "", "--appendonly", "yes", "--appendfsync", "always",
	       (char *)NULL);
	_exit(NO_PROGRAM);
}

static void
kill_redis(struct torture_store *s)
{
	if (s->pid <= 0)
		return;
	(void)kill(s->pid, SIGKILL);
	(void)waitpid(s->pid, NULL, 0);
	s->pid = 0;
}

/* Waits until the store answers. Returns SLU_EDOWN if it does not; *ended: it ended by itself. */
static int
try_start(struct torture_store *s, bool *ended, struct slu_err *err)
{
	int status;

	*ended = false;
	s->pid = fork();
	if (s->pid == 0)
		become(s);
	for (int i = 0; s->pid > 0 && i < START_TRIES; i++) {
		if (answers(s))
			return 0;
		if (waitpid(s->pid, &status, WNOHANG) == s->pid) {
			*ended = true;
			s->pid = 0;
			return slu_fail(err, SLU_EDOWN, "redis-server %s",
					WIFEXITED(status) && WEXITSTATUS(status) == NO_PROGRAM
						? "is not installed"
						: "ended right after the start");
		}
		sleep_ms(10);
	}
	kill_redis(s);
	return slu_fail(err, SLU_EDOWN, "redis-server does not answer");
}

/* Starts Redis, twice if needed: Redis repairs a file that ends inside a transaction, but ends then if it
 * is not the last file. */
static int
start_redis(struct torture_store *s, struct slu_err *err)
{
	bool ended;
	int rc = try_start(s, &ended, err);

	return rc && ended ? try_start(s, &ended, err) : rc;
}

static void
pause_redis(const struct torture_store *s)
{
	(void)kill(s->pid, SIGSTOP);
}

static void
resume_redis(const struct torture_store *s)
{
	(void)kill(s->pid, SIGCONT);
}

static void
cut_redis(const struct torture_store *s, unsigned node, enum proxy_cut how)
{
	proxy_cut(s->proxy, node, how);
}

/* --- where they are ----------------------------------------------------------------- */

static void
address_of(const struct torture_store *s, unsigned node, char *out, size_t n)
{
	if (s->proxy)
		(void)snprintf(out, n, "127.0.0.1:%u", proxy_port(s->proxy, node));
	else
		(void)snprintf(out, n, "unix:%s/socket", s->folder);
}

static void
file_of(const struct stores *s, unsigned node, char *out, size_t n)
{
	(void)snprintf(out, n, "%s/node-%u.yaml", s->all[0].folder, node);
}

static bool
write_map(const struct stores *s, unsigned node, FILE *f)
{
	char address[PATH_TEXT];
	bool fine;

	fine = fprintf(f,
		       "sharding:\n"
		       "  enabled: true\n"
		       "  version: %u\n"
		       "  defaultShard: s0\n"
		       "  commandMappings: {%s: s%u, .locks: s1}\n",
		       s->version, s->conf.queue, s->home) > 0;
	if (s->version > 1)
		fine &= fprintf(f, "  previousShards: {commandMappings: {%s: s%u}}\n", s->conf.queue,
				!s->home) > 0;
	fine &= fputs("redis.shards:\n", f) >= 0;
	for (unsigned i = 0; i < s->n; i++) {
		address_of(&s->all[i], node, address, sizeof address);
		fine &= fprintf(f, "  s%u: {address: '%s', timeout: 1s}\n", i, address) > 0;
	}
	return fine;
}

/* Writes a new file and renames it, so that a starting node never reads half of it. */
static int
write_file(const struct stores *s, unsigned node, struct slu_err *err)
{
	char path[PATH_TEXT], fresh[PATH_TEXT + 8];
	bool fine;
	FILE *f;

	file_of(s, node, path, sizeof path);
	(void)snprintf(fresh, sizeof fresh, "%s.new", path);
	f = fopen(fresh, "we");
	if (!f)
		return slu_fail(err, SLU_EDOWN, "%s: %m", fresh);
	fine = write_map(s, node, f);
	fine &= fclose(f) == 0;
	return fine && rename(fresh, path) == 0 ? 0 : slu_fail(err, SLU_EDOWN, "%s: %m", path);
}

static int
write_files(const struct stores *s, struct slu_err *err)
{
	int rc = 0;

	for (unsigned i = 0; s->n > 1 && i < s->conf.nodes && !rc; i++)
		rc = write_file(s, i, err);
	return rc;
}

static int
move_redis(struct stores *s, struct slu_err *err)
{
	s->home = !s->home;
	s->version++;
	return write_files(s, err);
}

static int
tell_redis(const struct stores *s, unsigned node)
{
	char text[PATH_TEXT];

	(void)snprintf(text, sizeof text, "%u", node);
	if (setenv("SLUICE_NODE_ID", text, 1))
		return -1;
	if (s->n > 1) {
		file_of(s, node, text, sizeof text);
		return setenv("SLUICE_CONFIG", text, 1);
	}
	address_of(&s->all[0], node, text, sizeof text);
	return setenv("SLUICE_REDIS_ADDRESS", text, 1) || setenv("SLUICE_REDIS_TIMEOUT", "1s", 1);
}

/* --- open and close ----------------------------------------------------------------- */

/* The map names all stores, so the last one writes it. */
static int
open_redis(struct stores *s, struct torture_store *one, struct slu_err *err)
{
	char path[PATH_TEXT];
	int rc = start_redis(one, err);

	socket_path(one, path, sizeof path);
	if (!rc && s->conf.cuts)
		rc = proxy_open(&one->proxy, path, s->conf.nodes, err);
	return !rc && s->n == s->conf.n ? write_files(s, err) : rc;
}

static void
close_redis(struct torture_store *one)
{
	proxy_close(one->proxy);
	kill_redis(one);
}

const struct stores_kind stores_redis = {
	.name = "redis",
	.max = STORES_MAX,
	.dir_max = 60, /* the path of a unix socket has 108 bytes */
	.no_disk = "the engine keeps no messages on the disk",
	.open = open_redis,
	.close = close_redis,
	.tell = tell_redis,
	.kill = kill_redis,
	.start = start_redis,
	.pause = pause_redis,
	.resume = resume_redis,
	.cut = cut_redis,
	.move = move_redis,
};
