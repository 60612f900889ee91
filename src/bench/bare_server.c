#include "bench/bare_server.h"

#include "base/bytes.h"
#include "base/mem.h"
#include "exec/mailbox.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	EVENTS = 256,
	READ_SIZE = 64 * 1024
};

struct bare_conn {
	struct list node; /* in the mailbox, then in the list of answered requests */
	int fd;
	size_t got; /* bytes of the current request that have come */
};

/* All members belong to the front thread unless marked as shared. */
struct bare_front {
	const struct bare_server_conf *conf;
	struct slice answer;
	int epoll, listener;
	struct mailbox mailbox;

	/* Answered requests: shared, under mtx. */
	pthread_mutex_t mtx;
	struct list answered;
	int wake;
};

/* --- the disk thread ------------------------------------------------------------ */

static void
hand_back(struct bare_front *f, struct list *batch)
{
	const uint64_t one = 1;
	bool was_empty;

	pthread_mutex_lock(&f->mtx);
	was_empty = list_is_empty(&f->answered);
	LIST_EACH_SAFE(n, batch) {
		list_remove(n);
		list_append(&f->answered, n);
	}
	pthread_mutex_unlock(&f->mtx);
	if (was_empty)
		(void)!write(f->wake, &one, sizeof one); /* an eventfd takes it */
}

/* Ends with the process. */
static void *
disk_main(void *arg)
{
	struct bare_front *f = arg;
	const size_t record = f->conf->record;
	char *group = mem_alloc(BARE_FILE_PIECE);
	bool closed = false;

	while (group && !closed) {
		struct list batch;
		size_t n = 0;

		list_init(&batch);
		(void)mailbox_take(&f->mailbox, SLU_NEVER, 1, &batch, &closed);
		LIST_EACH(i, &batch) {
			if (n + record <= BARE_FILE_PIECE)
				memset(group + n, 'r', record);
			n += n + record <= BARE_FILE_PIECE ? record : 0;
		}
		if (n > 0 && bare_file_put(f->conf->file, group, n, NULL))
			_exit(1); /* the load generator sees its connections close */
		hand_back(f, &batch);
	}
	_exit(1);
}

/* --- the front thread ----------------------------------------------------------- */

static void
watch(struct bare_front *f, int fd, void *what)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = what };

	(void)epoll_ctl(f->epoll, EPOLL_CTL_ADD, fd, &e); /* both are open */
}

static void
greet(struct bare_front *f)
{
	const int fd = accept(f->listener, NULL, NULL);
	struct bare_conn *c = mem_zalloc(sizeof *c);
	const int on = 1;

	if (fd < 0 || !c)
		_exit(1);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	list_init(&c->node);
	c->fd = fd;
	watch(f, fd, c);
}

static void
send_answer(struct bare_front *f, struct bare_conn *c)
{
	(void)!send(c->fd, f->answer.p, f->answer.n, MSG_NOSIGNAL); /* it fits the socket */
}

static void
serve(struct bare_front *f, struct bare_conn *c)
{
	char room[READ_SIZE];
	const ssize_t n = recv(c->fd, room, sizeof room, 0);

	if (n <= 0) {
		close(c->fd); /* nothing is in flight: the load generator has its answers */
		mem_free(c);
		return;
	}
	c->got += (size_t)n;
	if (c->got < f->conf->request)
		return;
	c->got -= f->conf->request;
	if (f->conf->file)
		(void)mailbox_post(&f->mailbox, &c->node, NULL); /* it is open */
	else
		send_answer(f, c);
}

static void
send_answers(struct bare_front *f)
{
	struct list batch;
	uint64_t n;

	(void)!read(f->wake, &n, sizeof n); /* only signals that there are some */
	list_init(&batch);
	pthread_mutex_lock(&f->mtx);
	LIST_EACH_SAFE(i, &f->answered) {
		list_remove(i);
		list_append(&batch, i);
	}
	pthread_mutex_unlock(&f->mtx);
	LIST_EACH_SAFE(i, &batch) {
		list_remove(i);
		send_answer(f, CONTAINER(i, struct bare_conn, node));
	}
}

static void
run(struct bare_front *f)
{
	struct epoll_event events[EVENTS];

	for (;;) {
		const int n = epoll_wait(f->epoll, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr == &f->listener)
				greet(f);
			else if (events[i].data.ptr == &f->wake)
				send_answers(f);
			else
				serve(f, events[i].data.ptr);
		}
	}
}

/* Runs the child process; does not return. */
static void
become(int listener, const struct bare_server_conf *conf)
{
	struct bare_front f = {
		.conf = conf,
		.answer = slice_of(conf->answer),
		.listener = listener,
		.epoll = epoll_create1(0),
		.wake = eventfd(0, 0),
	};
	struct slu_err err;
	pthread_t disk;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	list_init(&f.answered);
	pthread_mutex_init(&f.mtx, NULL);
	if (f.epoll < 0 || f.wake < 0 || mailbox_init(&f.mailbox, &clock_system, &err))
		_exit(1);
	if (conf->file && pthread_create(&disk, NULL, disk_main, &f) != 0)
		_exit(1);
	watch(&f, f.listener, &f.listener);
	watch(&f, f.wake, &f.wake);
	run(&f);
}

/* --- open and close --------------------------------------------------------------- */

int
bare_server_open(struct bare_server *b, const struct bare_server_conf *conf,
		 struct slu_err *err)
{
	struct sockaddr_in sa = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof sa;
	char text[32];

	*b = (struct bare_server){ 0 };
	if (fd < 0)
		return slu_fail(err, SLU_EDOWN, "bare server: %m");
	if (bind(fd, (struct sockaddr *)&sa, sizeof sa) != 0 || listen(fd, 1024) != 0 ||
	    getsockname(fd, (struct sockaddr *)&sa, &len) != 0) {
		close(fd);
		return slu_fail(err, SLU_EDOWN, "bare server: %m");
	}
	b->pid = fork();
	if (b->pid == 0)
		become(fd, conf);
	close(fd);
	if (b->pid < 0)
		return slu_fail(err, SLU_EDOWN, "fork: %m");
	(void)snprintf(text, sizeof text, "127.0.0.1:%u", ntohs(sa.sin_port));
	return address_parse(&b->address, text, err);
}

void
bare_server_close(struct bare_server *b)
{
	if (b->pid > 0) {
		(void)kill(b->pid, SIGKILL);
		(void)waitpid(b->pid, NULL, 0);
	}
	b->pid = 0;
}
