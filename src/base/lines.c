#include "base/lines.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

struct lines {
	struct slu_log *log;
	pthread_t thread;
	_Atomic uint64_t written;
	_Atomic uint64_t dropped;

	/* Shared, under mtx. */
	pthread_mutex_t mtx;
	pthread_cond_t news;
	struct buf in;
	bool reopen;
	bool stop;

	/* The thread's. */
	struct buf out;
	int fd;
	bool torn; /* the last line of the file has no newline */
	slu_time told;
	char path[]; /* fixed */
};

static int
open_file(const char *path)
{
	return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

/* The number of newlines. */
static uint64_t
count_ends(const char *p, size_t n)
{
	uint64_t ends = 0;

	for (size_t i = 0; i < n; i++)
		ends += p[i] == '\n';
	return ends;
}

static void
tell(struct lines *l, const char *event, int why)
{
	const slu_time now = clock_mono(&clock_system);

	if (l->told && now - l->told < LINES_TELL)
		return;
	l->told = now;
	log_error(l->log, event, F_STR("file", l->path), F_STR("why", strerror(why)),
		  F_U64("dropped", lines_dropped(l)));
}

/* Returns how many of n bytes were written; less than n on a failure, with errno. */
static size_t
write_bytes(int fd, const char *p, size_t n)
{
	size_t done = 0;

	while (done < n) {
		const ssize_t some = write(fd, p + done, n - done);

		if (some > 0)
			done += (size_t)some;
		else if (some == 0 || errno != EINTR)
			break;
	}
	return done;
}

/* LINES-2 */
static void
write_out(struct lines *l)
{
	const char *const p = l->out.p;
	size_t done;

	if (l->torn && write_bytes(l->fd, "\n", 1) == 1)
		l->torn = false;
	done = l->torn ? 0 : write_bytes(l->fd, p, l->out.n);
	if (done > 0)
		l->torn = p[done - 1] != '\n';
	atomic_fetch_add(&l->written, count_ends(p, done));
	if (done == l->out.n)
		return;
	atomic_fetch_add(&l->dropped, count_ends(p + done, l->out.n - done));
	tell(l, "lines cannot be written and are dropped", errno);
}

/* LINES-3 */
static void
open_again(struct lines *l)
{
	const int fd = open_file(l->path);

	if (fd < 0) {
		tell(l, "file cannot be opened again, the old one is kept", errno);
		return;
	}
	close(l->fd);
	l->fd = fd;
	l->torn = false;
}

/* Waits for something to do. Returns false at the end. */
static bool
take(struct lines *l, bool *reopen)
{
	bool goes_on;
	struct buf empty;

	pthread_mutex_lock(&l->mtx);
	while (l->in.n == 0 && !l->reopen && !l->stop)
		pthread_cond_wait(&l->news, &l->mtx);
	empty = l->out;
	l->out = l->in;
	l->in = empty;
	*reopen = l->reopen;
	l->reopen = false;
	goes_on = !l->stop || l->out.n > 0;
	pthread_mutex_unlock(&l->mtx);
	return goes_on;
}

/* What was added before a reopen may go to either file. */
static void *
work(void *arg)
{
	struct lines *const l = arg;
	bool reopen;

	while (take(l, &reopen)) {
		if (reopen)
			open_again(l);
		if (l->out.n > 0)
			write_out(l);
		buf_clear(&l->out);
	}
	return NULL;
}

int
lines_open(struct lines **out, const char *path, struct slu_log *log, struct slu_err *err)
{
	const size_t size = strlen(path) + 1;
	struct lines *const l = mem_zalloc(sizeof *l + size);

	if (!l)
		return slu_fail(err, SLU_ENOMEM, "no memory for %s", path);
	memcpy(l->path, path, size);
	l->log = log;
	l->fd = open_file(path);
	if (l->fd < 0) {
		mem_free(l);
		return slu_fail(err, SLU_EDOWN, "%s: %m", path);
	}
	buf_init(&l->in, LINES_ROOM);
	buf_init(&l->out, LINES_ROOM);
	pthread_mutex_init(&l->mtx, NULL); /* neither can fail with these attributes */
	pthread_cond_init(&l->news, NULL);
	if (pthread_create(&l->thread, NULL, work, l)) {
		close(l->fd);
		mem_free(l);
		return slu_fail(err, SLU_EDOWN, "%s: no thread to write it", path);
	}
	(void)pthread_setname_np(l->thread, "lines"); /* only for debuggers */
	*out = l;
	return 0;
}

static void
set(struct lines *l, bool *what)
{
	pthread_mutex_lock(&l->mtx);
	*what = true;
	pthread_cond_signal(&l->news);
	pthread_mutex_unlock(&l->mtx);
}

void
lines_close(struct lines *l)
{
	if (!l)
		return;
	set(l, &l->stop);
	pthread_join(l->thread, NULL);
	close(l->fd);
	buf_release(&l->in);
	buf_release(&l->out);
	pthread_cond_destroy(&l->news);
	pthread_mutex_destroy(&l->mtx);
	mem_free(l);
}

/* LINES-1 */
void
lines_add(struct lines *l, struct slice line)
{
	bool fits;

	pthread_mutex_lock(&l->mtx);
	fits = line.n <= LINES_ROOM - l->in.n;
	if (fits)
		buf_put(&l->in, line.p, line.n);
	if (l->in.failed) { /* memory is out: earlier lines are complete */
		l->in.failed = false;
		fits = false;
	}
	pthread_cond_signal(&l->news);
	pthread_mutex_unlock(&l->mtx);
	if (!fits)
		lines_drop(l);
}

void
lines_drop(struct lines *l)
{
	atomic_fetch_add(&l->dropped, 1);
}

void
lines_reopen(struct lines *l)
{
	set(l, &l->reopen);
}

/* Reads the bytes of the file from `at` on. */
static int
read_from(int fd, off_t at, size_t n, struct buf *out)
{
	size_t have = 0;

	if (!buf_reserve(out, out->n + n))
		return SLU_ENOMEM;
	while (have < n) {
		const ssize_t got = pread(fd, out->p + out->n + have, n - have, at + (off_t)have);

		if (got < 0 && errno != EINTR)
			return SLU_EDOWN;
		if (got == 0)
			break;
		have += got > 0 ? (size_t)got : 0;
	}
	out->n += have;
	return 0;
}

/* Leaves complete lines; first_too: the first one is complete. */
static void
cut_lines(struct buf *b, bool first_too)
{
	const char *const first = first_too ? b->p : memchr(b->p, '\n', b->n);
	const char *const last = memrchr(b->p, '\n', b->n);
	const size_t skip = first_too ? 0 : first ? (size_t)(first - b->p) + 1
						  : b->n;
	const size_t end = last ? (size_t)(last - b->p) + 1 : 0;

	b->n = end > skip ? end - skip : 0;
	memmove(b->p, b->p + skip, b->n);
}

int
lines_tail(const struct lines *l, size_t max, struct buf *out, bool *whole, struct slu_err *err)
{
	const int fd = open(l->path, O_RDONLY | O_CLOEXEC);
	const off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	int rc = size < 0 ? SLU_EDOWN : 0;

	*whole = size <= (off_t)max;
	if (!rc && size > 0)
		rc = read_from(fd, *whole ? 0 : size - (off_t)max, *whole ? (size_t)size : max, out);
	if (rc)
		rc = slu_fail(err, rc, "%s: %m", l->path);
	else if (size > 0)
		cut_lines(out, *whole);
	if (fd >= 0)
		close(fd);
	return rc;
}

uint64_t
lines_written(const struct lines *l)
{
	return atomic_load(&l->written);
}

uint64_t
lines_dropped(const struct lines *l)
{
	return atomic_load(&l->dropped);
}
