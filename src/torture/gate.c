#include "torture/gate.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	HELD_MAX = 256,  /* calls that wait for the end of a cut; more go on */
	NOTICE_MAX = 512 /* bytes of a question or an answer; the kernel says how many it uses */
};

struct gate {
	const char *folder;
	int sockets[2]; /* a new process sends its listener to the first */
	int wake;
	int listener; /* -1 = no process */
	atomic_int cut;
	atomic_bool ending;
	pthread_t thread;
	bool running;
	struct proxy *links;     /* to other nodes; the gates of it are their numbers */
	uint64_t held[HELD_MAX]; /* calls that wait, by the number of their question */
	unsigned n_held;
};

/* --- which calls -------------------------------------------------------------------- */

enum call_kind {
	CALL_OPEN,   /* opens to read or to write: the flags say */
	CALL_CHANGE, /* links, removes, makes a folder */
	CALL_SYNC,
	CALL_TIME, /* sets a file to the present time */
	CALL_CONNECT
};

/* Calls whose first argument is a descriptor. */
static const struct {
	int number;
	enum call_kind kind;
} calls[] = {
	{ __NR_openat, CALL_OPEN },
	{ __NR_linkat, CALL_CHANGE },
	{ __NR_unlinkat, CALL_CHANGE },
	{ __NR_mkdirat, CALL_CHANGE },
	{ __NR_fsync, CALL_SYNC },
	{ __NR_fdatasync, CALL_SYNC },
	{ __NR_utimensat, CALL_TIME },
	{ __NR_connect, CALL_CONNECT },
};

enum {
	CALLS = sizeof calls / sizeof calls[0]
};

static enum call_kind
kind_of(int number)
{
	for (unsigned i = 0; i < CALLS; i++)
		if (calls[i].number == number)
			return calls[i].kind;
	return CALL_OPEN;
}

/* --- in the process of the node ------------------------------------------------------- */

/* Sends a descriptor through a socket. */
static int
send_fd(int socket, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	char byte = 0;
	struct iovec one = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &one,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control,
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	return sendmsg(socket, &m, 0) == 1 ? 0 : -1;
}

/* Has the kernel ask about the calls of this process. Returns the listener, or -1. */
static int
listen_here(void)
{
	struct sock_filter steps[CALLS + 3];
	const struct sock_fprog program = { CALLS + 3, steps };

	steps[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < CALLS; i++)
		steps[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].number,
							    (uint8_t)(CALLS - i), 0);
	steps[CALLS + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	steps[CALLS + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return (int)syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

int
gate_enter(const struct gate *g)
{
	const int listener = listen_here();
	int rc;

	if (listener < 0)
		return -1;
	rc = send_fd(g->sockets[1], listener);
	close(listener);
	return rc;
}

/* --- the gate's thread ---------------------------------------------------------------- */

/* Takes the listener of a new process; the former process has ended. */
static void
take_listener(struct gate *g)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	char byte;
	struct iovec one = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &one,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control,
	};

	if (recvmsg(g->sockets[0], &m, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&m))
		return;
	if (g->listener >= 0)
		close(g->listener);
	memcpy(&g->listener, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof g->listener);
	g->n_held = 0;
}

/* error: 0 = the call goes on; below 0 = it fails; 1 = it has been executed. */
static void
answer(const struct gate *g, uint64_t id, int error)
{
	union {
		struct seccomp_notif_resp resp;
		char room[NOTICE_MAX];
	} a = { .resp = { .id = id } };

	a.resp.error = error < 0 ? error : 0;
	a.resp.flags = error == 0 ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
	(void)ioctl(g->listener, SECCOMP_IOCTL_NOTIF_SEND, &a.resp); /* the process may have ended */
}

/* Does the call use the folder of the gate? */
static bool
touches(const struct gate *g, const struct seccomp_notif *n)
{
	char link[64], path[512];
	ssize_t len;

	(void)snprintf(link, sizeof link, "/proc/%u/fd/%d", n->pid, (int)n->data.args[0]);
	len = readlink(link, path, sizeof path - 1);
	path[len > 0 ? len : 0] = '\0';
	return strncmp(path, g->folder, strlen(g->folder)) == 0;
}

/* Sets the file to the present time of this machine. */
static int
touch(const struct seccomp_notif *n)
{
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/%u/fd/%d", n->pid, (int)n->data.args[0]);
	return utimensat(AT_FDCWD, path, NULL, 0) == 0 ? 1 : -errno;
}

static bool
is_change(const struct seccomp_notif *n)
{
	const enum call_kind kind = kind_of(n->data.nr);

	return kind != CALL_OPEN || (n->data.args[2] & (O_WRONLY | O_RDWR | O_CREAT));
}

/* The answer to a call that touches the folder, as `answer` takes it. */
static int
decide(const struct gate *g, const struct seccomp_notif *n)
{
	const enum proxy_cut cut = (enum proxy_cut)atomic_load(&g->cut);
	const enum call_kind kind = kind_of(n->data.nr);

	if (cut == CUT_REQUESTS)
		return -EIO;
	if (cut == CUT_RESET)
		return -ESTALE;
	if (cut == CUT_HALF && is_change(n))
		return -EIO;
	if (cut == CUT_ANSWERS && kind == CALL_SYNC)
		return -EIO;
	return kind == CALL_TIME ? touch(n) : 0;
}

/* --- connections to other nodes ------------------------------------------------------ */

/* The address that the node connects to. Returns the number of the node that has it, or -1. */
static int
read_callee(const struct seccomp_notif *n, struct sockaddr_in *to)
{
	const struct iovec here = { to, sizeof *to };
	const struct iovec there = { (void *)(uintptr_t)n->data.args[1], sizeof *to };
	uint32_t number;

	if (n->data.args[2] < sizeof *to || process_vm_readv((pid_t)n->pid, &here, 1, &there, 1, 0) != sizeof *to ||
	    to->sin_family != AF_INET)
		return -1;
	number = ntohl(to->sin_addr.s_addr) - INADDR_LOOPBACK + 1 - GATE_HOST_FIRST;
	return number < PROXY_GATES ? (int)number : -1;
}

/* Replaces the socket of the node. */
static int
replace(const struct gate *g, const struct seccomp_notif *n, int by)
{
	struct seccomp_notif_addfd a = {
		.id = n->id,
		.flags = SECCOMP_ADDFD_FLAG_SETFD,
		.srcfd = (unsigned)by,
		.newfd = (unsigned)n->data.args[0],
		.newfd_flags = O_CLOEXEC,
	};

	return ioctl(g->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &a) < 0 ? -errno : 0;
}

/* Connects to the node instead of the process. Returns what `answer` takes. */
static int
join(const struct gate *g, const struct seccomp_notif *n)
{
	struct sockaddr_in to;
	const int callee = read_callee(n, &to);
	int pair[2], other, rc;

	if (callee < 0)
		return 0;
	other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (other < 0)
		return -errno;
	if ((connect(other, (struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
		rc = -errno;
		close(other);
		return rc;
	}
	rc = replace(g, n, pair[0]);
	close(pair[0]);
	proxy_join(g->links, (unsigned)callee, pair[1], other);
	return rc ? rc : 1;
}

void
gate_cut_link(struct gate *g, unsigned to, enum proxy_cut how)
{
	proxy_cut(g->links, to, how);
}

/* --- questions of the kernel ----------------------------------------------------------- */

static void
handle(struct gate *g)
{
	union {
		struct seccomp_notif notif;
		char room[NOTICE_MAX];
	} q = { .room = { 0 } };
	const struct seccomp_notif *n = &q.notif;
	enum proxy_cut cut;

	if (ioctl(g->listener, SECCOMP_IOCTL_NOTIF_RECV, &q.notif) != 0)
		return;
	cut = (enum proxy_cut)atomic_load(&g->cut);
	if (kind_of(n->data.nr) == CALL_CONNECT)
		answer(g, n->id, join(g, n));
	else if ((cut == CUT_NONE && kind_of(n->data.nr) != CALL_TIME) || !touches(g, n))
		answer(g, n->id, 0);
	else if (cut == CUT_SILENCE && g->n_held < HELD_MAX)
		g->held[g->n_held++] = n->id;
	else
		answer(g, n->id, decide(g, n));
}

static void
let_go(struct gate *g)
{
	while (g->n_held > 0)
		answer(g, g->held[--g->n_held], 0);
}

static void *
run(void *arg)
{
	struct gate *g = arg;
	uint64_t n;

	while (!atomic_load(&g->ending)) {
		struct pollfd fds[] = {
			{ g->wake, POLLIN, 0 },
			{ g->sockets[0], POLLIN, 0 },
			{ g->listener, POLLIN, 0 },
		};

		if (poll(fds, 3, -1) < 0)
			continue;
		if (fds[0].revents && read(g->wake, &n, sizeof n) == sizeof n &&
		    atomic_load(&g->cut) != CUT_SILENCE)
			let_go(g);
		if (fds[1].revents) {
			take_listener(g);
		} else if (fds[2].revents & POLLIN) {
			handle(g);
		} else if (fds[2].revents) { /* the process has ended */
			close(g->listener);
			g->listener = -1;
			g->n_held = 0;
		}
	}
	return NULL;
}

static void
wake_up(struct gate *g)
{
	const uint64_t one = 1;

	if (write(g->wake, &one, sizeof one) != sizeof one)
		return; /* the counter is full: the thread wakes anyway */
}

void
gate_cut(struct gate *g, enum proxy_cut how)
{
	atomic_store(&g->cut, how);
	wake_up(g);
}

/* --- open and close ------------------------------------------------------------------- */

/* Tries it in a process of its own: a filter cannot be removed. */
static int
probe(struct slu_err *err)
{
	const pid_t pid = fork();
	int status = 1;

	if (pid == 0)
		_exit(listen_here() < 0 ? 1 : 0);
	if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
		return 0;
	return slu_fail(err, SLU_EDOWN, "the kernel does not allow seccomp to supervise system calls");
}

int
gate_open(struct gate **out, const char *folder, struct slu_err *err)
{
	struct gate *g;
	int rc = probe(err);

	if (rc)
		return rc;
	g = mem_zalloc(sizeof *g);
	if (!g)
		return slu_fail(err, SLU_ENOMEM, "no memory");
	g->folder = folder;
	g->listener = g->sockets[0] = g->sockets[1] = -1;
	g->wake = eventfd(0, EFD_CLOEXEC);
	if (g->wake < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, g->sockets) != 0)
		rc = slu_fail(err, SLU_EDOWN, "socketpair: %m");
	if (!rc)
		rc = proxy_open(&g->links, NULL, 0, err);
	if (!rc && pthread_create(&g->thread, NULL, run, g) != 0)
		rc = slu_fail(err, SLU_ENOMEM, "cannot start a thread: %m");
	g->running = !rc;
	if (rc)
		gate_close(g);
	else
		*out = g;
	return rc;
}

void
gate_close(struct gate *g)
{
	if (!g)
		return;
	atomic_store(&g->ending, true);
	wake_up(g);
	if (g->running)
		pthread_join(g->thread, NULL);
	proxy_close(g->links);
	const int fds[] = { g->wake, g->listener, g->sockets[0], g->sockets[1] };

	for (unsigned i = 0; i < sizeof fds / sizeof fds[0]; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	mem_free(g);
}
