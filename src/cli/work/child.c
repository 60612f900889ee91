#include "cli/work/child.h"

#include "base/clock.h"
#include "cli/work/supervisor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_MAX (2 * SLU_SEC)

enum {
	CHILDREN_FD = 3
};

int
child_check(const char *program, struct slu_err *err)
{
	const char *path = getenv("PATH");
	char file[4096];

	if (strchr(program, '/'))
		return access(program, X_OK) == 0
			       ? 0
			       : slu_fail(err, SLU_EFAILED, "cannot run %s: %m", program);
	for (path = path ? path : "/usr/bin:/bin"; *path; path += strspn(path, ":")) {
		const size_t n = strcspn(path, ":");

		if (snprintf(file, sizeof file, "%.*s/%s", (int)n, path, program) <
			    (int)sizeof file &&
		    access(file, X_OK) == 0)
			return 0;
		path += n;
	}
	return slu_fail(err, SLU_EFAILED, "cannot run %s: not in PATH", program);
}

/* --- start ---------------------------------------------------------------------- */

/* Both ends of every pipe; [0] is the reading end. */
struct pipes {
	int in[2], out[2], err[2];
	int three[2];
	int failed[2]; /* closes when the program runs; otherwise transfers errno */
	int socket[2]; /* [0] is the supervisor's end */
};

static bool
open_pipes(struct pipes *p, bool reads, bool children)
{
	*p = (struct pipes){ { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } };
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p->socket) == 0 &&
	       pipe2(p->in, O_CLOEXEC) == 0 && pipe2(p->err, O_CLOEXEC) == 0 &&
	       pipe2(p->failed, O_CLOEXEC) == 0 && (!reads || pipe2(p->out, O_CLOEXEC) == 0) &&
	       (!children || pipe2(p->three, O_CLOEXEC) == 0);
}

static void
shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void
close_pipes(struct pipes *p)
{
	int *const all[] = { p->in, p->out, p->err, p->three, p->failed, p->socket };

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		shut(&all[i][0]);
		shut(&all[i][1]);
	}
}

/* Runs between fork and exec in a program with threads: makes system calls only. */
static _Noreturn void
fail(const struct pipes *p)
{
	const int why = errno;

	(void)!write(p->failed[1], &why, sizeof why); /* nobody else could report it */
	_exit(127);
}

/* Makes the pipe descriptor 3. `failed` may be there. */
static bool
take_three(struct pipes *p)
{
	if (p->three[1] < 0)
		return true;
	if (p->failed[1] == CHILDREN_FD)
		p->failed[1] = fcntl(p->failed[1], F_DUPFD_CLOEXEC, CHILDREN_FD + 1);
	return p->three[1] == CHILDREN_FD ? fcntl(CHILDREN_FD, F_SETFD, 0) == 0
					  : dup2(p->three[1], CHILDREN_FD) >= 0;
}

static _Noreturn void
become(struct pipes *p, pid_t supervisor, const struct child_start *how)
{
	sigset_t none;

	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* in the supervisor */
	if (getppid() != supervisor)
		_exit(127);
	(void)signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(p->in[0], STDIN_FILENO) >= 0 && dup2(p->err[1], STDERR_FILENO) >= 0 &&
	    (p->out[1] < 0 || dup2(p->out[1], STDOUT_FILENO) >= 0) && take_three(p))
		execvpe(how->argv[0], how->argv, how->env);
	fail(p);
}

static _Noreturn void
supervise(struct pipes *p, const struct child_start *how)
{
	pid_t self, command;

	supervisor_prepare();
	self = getpid();
	command = fork();
	if (command < 0)
		fail(p);
	if (command == 0)
		become(p, self, how);
	(void)setpgid(command, command); /* both processes set the group, so that a signal finds it */
	supervisor_run(p->socket[0], command, how->grace);
}

/* Waits for exec. Returns 0 if the program runs, or errno. */
static int
exec_failure(struct pipes *p)
{
	int why = 0;
	ssize_t n;

	shut(&p->failed[1]);
	do
		n = read(p->failed[0], &why, sizeof why);
	while (n < 0 && errno == EINTR);
	return n == sizeof why ? why : 0;
}

static void
keep_ends(struct child *c, struct pipes *p)
{
	c->in = p->in[1];
	c->out = p->out[0];
	c->err = p->err[0];
	c->three = p->three[0];
	c->socket = p->socket[1];
	p->in[1] = p->out[0] = p->err[0] = p->three[0] = p->socket[1] = -1;
	(void)fcntl(c->in, F_SETFL, O_NONBLOCK);
	(void)fcntl(c->err, F_SETFL, O_NONBLOCK);
	if (c->out >= 0)
		(void)fcntl(c->out, F_SETFL, O_NONBLOCK);
	if (c->three >= 0)
		(void)fcntl(c->three, F_SETFL, O_NONBLOCK);
}

void
child_init(struct child *c)
{
	*c = (struct child){ .in = -1, .out = -1, .err = -1, .three = -1, .pidfd = -1, .socket = -1 };
	buf_init(&c->lines, CHILD_LINE_MAX);
	buf_init(&c->written, CHILD_LINE_MAX);
}

slu_time
child_grace(slu_time lease)
{
	return lease / 4 < GRACE_MAX ? lease / 4 : GRACE_MAX;
}

int
child_start(struct child *c, const struct child_start *how, struct slu_err *err)
{
	struct pipes p;
	int why;

	child_init(c);
	c->more_input = how->lines;
	c->whole = how->whole;
	if (!open_pipes(&p, how->lines || how->whole, how->children)) {
		close_pipes(&p);
		return slu_fail(err, SLU_EFAILED, "cannot open a pipe: %m");
	}
	c->pid = fork();
	if (c->pid == 0)
		supervise(&p, how);
	why = c->pid < 0 ? errno : exec_failure(&p);
	keep_ends(c, &p);
	close_pipes(&p);
	if (c->pid > 0)
		c->pidfd = pidfd_open(c->pid, 0);
	if (c->pid > 0 && c->pidfd < 0 && !why)
		why = errno;
	if (!why)
		return 0;
	c->pid = c->pid > 0 ? c->pid : 0;
	child_release(c);
	errno = why;
	return slu_fail(err, SLU_EFAILED, "cannot run %s: %m", how->argv[0]);
}

/* --- bytes ---------------------------------------------------------------------- */

void
child_close_input(struct child *c)
{
	c->input.n = 0;
	shut(&c->in);
}

static void
write_input(struct child *c)
{
	const ssize_t n = write(c->in, c->input.p, c->input.n);
	const bool refused = n < 0 && errno != EAGAIN && errno != EINTR;

	if (n > 0)
		slice_skip(&c->input, (size_t)n);
	if (refused || (c->input.n == 0 && !c->more_input))
		child_close_input(c);
}

void
child_feed(struct child *c, struct slice input)
{
	assert(c->input.n == 0);
	c->input = input;
	if (c->in >= 0)
		write_input(c);
}

static void
keep_tail(struct child *c, const char *p, size_t n)
{
	if (n >= CHILD_TAIL) {
		memcpy(c->tail, p + n - CHILD_TAIL, CHILD_TAIL);
		c->tail_n = CHILD_TAIL;
		return;
	}
	if (c->tail_n + n > CHILD_TAIL) {
		const size_t drop = c->tail_n + n - CHILD_TAIL;

		memmove(c->tail, c->tail + drop, c->tail_n - drop);
		c->tail_n -= drop;
	}
	memcpy(c->tail + c->tail_n, p, n);
	c->tail_n += n;
}

/* Reads from a pipe, and closes it at its end. Returns 0 if there is no more for now. */
static size_t
read_pipe(int *fd, char *room, size_t size)
{
	const ssize_t n = read(*fd, room, size);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		shut(fd);
	return n > 0 ? (size_t)n : 0;
}

static bool
read_err(struct child *c)
{
	char room[4096];
	const size_t n = read_pipe(&c->err, room, sizeof room);

	if (n == 0)
		return false;
	(void)!write(STDERR_FILENO, room, n); /* an unreadable stderr is ignored */
	keep_tail(c, room, n);
	return true;
}

static bool
read_out(struct child *c)
{
	char room[64 * 1024];
	const size_t n = read_pipe(&c->out, room, sizeof room);

	if (n == 0)
		return false;
	buf_put(&c->lines, room, n);
	if (c->lines.failed)
		child_kill(c); /* a line that is too long: the child is killed, and the message fails */
	return true;
}

static bool
read_three(struct child *c)
{
	char room[64 * 1024];
	const size_t n = read_pipe(&c->three, room, sizeof room);

	if (n == 0)
		return false;
	buf_put(&c->written, room, n);
	c->wrote = c->wrote || memchr(room, '\n', n);
	if (c->written.failed)
		child_kill(c); /* too many messages: the child is killed, and its message fails */
	return true;
}

static void
drop_taken(struct child *c)
{
	if (c->taken == 0)
		return;
	memmove(c->lines.p, c->lines.p + c->taken, c->lines.n - c->taken);
	c->lines.n -= c->taken;
	c->taken = 0;
}

static bool
has_line(const struct child *c)
{
	return !c->whole && c->lines.n > 0 && memchr(c->lines.p, '\n', c->lines.n);
}

bool
child_is_quiet(const struct child *c)
{
	return c->input.n == 0 && c->lines.n == c->taken;
}

struct slice
child_output(const struct child *c)
{
	return buf_slice(&c->lines);
}

struct slice
child_line(struct child *c)
{
	const char *lf = memchr(c->lines.p, '\n', c->lines.n);

	assert(lf && c->taken == 0);
	c->taken = (size_t)(lf - c->lines.p) + 1;
	return (struct slice){ c->lines.p, c->taken - 1 };
}

/* --- waiting -------------------------------------------------------------------- */

static void
shut_all(struct child *c)
{
	shut(&c->in);
	shut(&c->out);
	shut(&c->err);
	shut(&c->three);
	shut(&c->pidfd);
	shut(&c->socket);
}

static void
reap(struct child *c)
{
	while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
		;
	while (c->err >= 0 && read_err(c))
		;
	while (c->out >= 0 && read_out(c))
		;
	while (c->three >= 0 && read_three(c))
		;
	c->pid = 0;
	shut_all(c);
}

static int
poll_time(slu_time until)
{
	slu_time left;

	if (until == SLU_NEVER)
		return -1;
	left = until - clock_mono(&clock_system);
	left = left < 0 ? 0 : (left + SLU_MS - 1) / SLU_MS;
	return left > INT32_MAX ? INT32_MAX : (int)left;
}

enum child_event
child_wait(struct child *c, slu_time until, int stop_fd)
{
	drop_taken(c);
	if (c->pid == 0 && !has_line(c))
		return CHILD_ENDED;
	while (!has_line(c)) {
		struct pollfd fds[] = {
			{ .fd = c->pidfd, .events = POLLIN },
			{ .fd = c->input.n > 0 || !c->more_input ? c->in : -1, .events = POLLOUT },
			{ .fd = c->err, .events = POLLIN },
			{ .fd = c->out, .events = POLLIN },
			{ .fd = stop_fd, .events = POLLIN },
			{ .fd = c->three, .events = POLLIN },
		};
		const int n = poll(fds, sizeof fds / sizeof fds[0], poll_time(until));

		if (n < 0)
			continue; /* a signal */
		if (fds[1].revents)
			write_input(c);
		if (fds[2].revents)
			(void)read_err(c);
		if (fds[5].revents)
			(void)read_three(c);
		if (c->wrote) {
			c->wrote = false;
			return CHILD_WROTE;
		}
		if (fds[3].revents && read_out(c))
			continue;
		if (fds[0].revents) {
			reap(c);
			return has_line(c) ? CHILD_LINE : CHILD_ENDED;
		}
		if (fds[4].revents)
			return CHILD_STOP;
		if (clock_mono(&clock_system) >= until)
			return CHILD_TIME;
	}
	return CHILD_LINE;
}

void
child_signal(struct child *c, int signo)
{
	const unsigned char byte = (unsigned char)signo;

	if (c->socket >= 0)
		(void)send(c->socket, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT); /* the process may have ended */
}

void
child_kill(struct child *c)
{
	child_signal(c, SIGKILL);
}

void
child_end(struct child *c)
{
	child_signal(c, SUPERVISOR_END);
}

void
child_release(struct child *c)
{
	if (c->pid > 0) {
		child_kill(c);
		reap(c);
	}
	shut_all(c);
	buf_release(&c->lines);
	buf_release(&c->written);
	child_init(c);
}

const char *
child_death(const struct child *c, char out[static CHILD_DEATH_TEXT])
{
	if (WIFSIGNALED(c->status))
		(void)snprintf(out, CHILD_DEATH_TEXT, "killed by signal %d (%s)",
			       WTERMSIG(c->status), sigdescr_np(WTERMSIG(c->status)));
	else
		(void)snprintf(out, CHILD_DEATH_TEXT, "exit status %d", WEXITSTATUS(c->status));
	return out;
}
