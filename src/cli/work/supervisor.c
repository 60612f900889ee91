#include "cli/work/supervisor.h"

#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	/* The pause between two rounds of SIGKILL, the first and the longest. New processes may appear in
	 * between. */
	AGAIN_MS = 20,
	AGAIN_MAX_MS = 1000
};

struct supervisor {
	int socket;    /* -1 = the worker has ended or closed it */
	int children;  /* a signalfd of SIGCHLD; -1 = none, poll instead */
	pid_t command; /* 0 = the command has ended */
	int status;    /* wait status of the command */
	slu_time grace;
	slu_time kill_at; /* SLU_NEVER = nothing is being ended */
	int again;        /* milliseconds until the next round of SIGKILL */
};

/* ---- What runs below this process ---- */

/* Parses a number of /proc. Returns 0 if it is not a number. */
static pid_t
number(const char *text)
{
	pid_t n = 0;

	for (; *text >= '0' && *text <= '9' && n < INT32_MAX / 10; text++)
		n = n * 10 + (*text - '0');
	return *text ? 0 : n;
}

/* Writes "/proc/PID/stat" without snprintf, which may take locks. */
static void
stat_path(char out[static 32], pid_t pid)
{
	char digits[12];
	size_t n = 0, at = 6;

	memcpy(out, "/proc/", at);
	do
		digits[n++] = (char)('0' + pid % 10);
	while ((pid /= 10) > 0);
	while (n > 0)
		out[at++] = digits[--n];
	memcpy(out + at, "/stat", 6);
}

/* The parent of a process; 0 if the process has ended. The line is "PID (NAME) STATE PARENT ..."; NAME may contain anything. */
static pid_t
parent_of(pid_t pid)
{
	char path[32], line[512];
	const char *at;
	ssize_t n;
	pid_t parent = 0;
	int fd;

	stat_path(path, pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	line[n] = '\0';
	at = strrchr(line, ')');
	if (!at || strlen(at) < 5)
		return 0;
	for (at += 4; *at >= '0' && *at <= '9'; at++)
		parent = parent * 10 + (*at - '0');
	return parent;
}

static bool
is_below(pid_t pid)
{
	const pid_t self = getpid();

	for (pid = parent_of(pid); pid > 1; pid = parent_of(pid))
		if (pid == self)
			return true;
	return false;
}

/* Signals a child. The descriptor is opened before the parent is checked, so that a process that got the
 * same number meanwhile receives no signal. */
static void
signal_if_below(pid_t pid, int signo)
{
	const int fd = pidfd_open(pid, 0);

	if (fd < 0)
		return;
	if (is_below(pid))
		(void)pidfd_send_signal(fd, signo, NULL, 0); /* the process may have ended */
	close(fd);
}

/* Reads entries of a folder by the system call: readdir allocates. */
static void
signal_entries(const char *p, size_t n, int signo)
{
	for (size_t at = 0; at < n;) {
		const struct dirent64 *const entry = (const void *)(p + at);
		const pid_t pid = number(entry->d_name);

		if (pid > 0)
			signal_if_below(pid, signo);
		at += entry->d_reclen;
	}
}

static void
signal_all(const struct supervisor *s, int signo)
{
	_Alignas(struct dirent64) char room[8192];
	const int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ssize_t n;

	if (s->command)
		(void)kill(-s->command, signo); /* without /proc only the process group can be signalled */
	while (fd >= 0 && (n = getdents64(fd, room, sizeof room)) > 0)
		signal_entries(room, (size_t)n, signo);
	if (fd >= 0)
		close(fd);
}

/* ---- Events ---- */

static void
begin_end(struct supervisor *s)
{
	if (s->kill_at != SLU_NEVER)
		return;
	signal_all(s, SIGTERM);
	signal_all(s, SIGCONT); /* a stopped process must continue to end */
	s->kill_at = clock_mono(&clock_system) + s->grace;
}

static void
read_socket(struct supervisor *s)
{
	unsigned char signo;
	const ssize_t n = read(s->socket, &signo, 1);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		close(s->socket);
		s->socket = -1;
	}
	if (n <= 0 || signo == SUPERVISOR_END) {
		begin_end(s);
	} else if (signo == SIGKILL) {
		s->kill_at = 0;
	} else if (s->command) {
		(void)kill(-s->command, signo);
	}
}

/* Collects ended children. Returns false if no process is left. */
static bool
reap(struct supervisor *s)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	while (read(s->children, &info, sizeof info) > 0)
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != s->command)
			continue;
		s->command = 0;
		s->status = status;
	}
	return !(pid < 0 && errno == ECHILD);
}

/* Milliseconds until the next action without an event; -1 = none. */
static int
next_round(const struct supervisor *s)
{
	slu_time left;

	if (s->kill_at == SLU_NEVER)
		return s->children < 0 ? AGAIN_MS : -1;
	left = s->kill_at - clock_mono(&clock_system);
	return left > 0 ? (int)(left / SLU_MS) + 1 : s->again;
}

static void
step(struct supervisor *s)
{
	struct pollfd fds[] = {
		{ .fd = s->children, .events = POLLIN },
		{ .fd = s->socket, .events = POLLIN },
	};

	if (s->kill_at <= clock_mono(&clock_system)) {
		signal_all(s, SIGKILL);
		s->again = s->again * 2 < AGAIN_MAX_MS ? s->again * 2 : AGAIN_MAX_MS;
	}
	if (poll(fds, 2, next_round(s)) > 0 && fds[1].revents)
		read_socket(s);
}

/* ---- Begin and end ---- */

void
supervisor_prepare(void)
{
	sigset_t all;

	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)signal(SIGCHLD, SIG_DFL); /* if SIGCHLD were ignored, there would be nothing to wait for */
	(void)setpgid(0, 0);
	(void)prctl(PR_SET_NAME, "sluice-keeper");
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static int
watch_children(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* SUPERVISOR-3: ends like the command, without a second core dump. */
static _Noreturn void
end_as(int status)
{
	sigset_t none;

	if (WIFSIGNALED(status)) {
		(void)prctl(PR_SET_DUMPABLE, 0);
		(void)signal(WTERMSIG(status), SIG_DFL);
		sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		(void)kill(getpid(), WTERMSIG(status));
	}
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 127);
}

void
supervisor_run(int socket, pid_t command, slu_time grace)
{
	struct supervisor s = {
		.socket = dup3(socket, 0, O_CLOEXEC) == 0 ? 0 : socket,
		.command = command,
		.grace = grace,
		.kill_at = SLU_NEVER,
		.again = AGAIN_MS,
	};

	closefrom(s.socket + 1); /* a pipe that stays open here would not end for its reader */
	s.children = watch_children();
	while (reap(&s)) {
		if (!s.command)
			begin_end(&s); /* SUPERVISOR-2 */
		step(&s);
	}
	end_as(s.status);
}
