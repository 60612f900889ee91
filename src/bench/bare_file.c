#include "bench/bare_file.h"

#include "base/mem.h"
#include "bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	FILE_SIZE = 64 << 20,
	RECORD = 512 /* bytes of a write of bare_file_measure */
};

static int
fill(int fd)
{
	char *zeros = mem_zalloc(BARE_FILE_PIECE);
	int rc = zeros ? 0 : ENOMEM;

	for (off_t at = 0; at < FILE_SIZE && !rc; at += BARE_FILE_PIECE)
		if (pwrite(fd, zeros, BARE_FILE_PIECE, at) != BARE_FILE_PIECE)
			rc = errno ? errno : EIO;
	mem_free(zeros);
	if (!rc && fsync(fd) != 0)
		rc = errno;
	return rc;
}

int
bare_file_open(struct bare_file *f, const char *dir, struct slu_err *err)
{
	char path[256];
	int rc;

	(void)snprintf(path, sizeof path, "%.200s/sluice-bare-XXXXXX", dir);
	*f = (struct bare_file){ .fd = mkostemp(path, O_CLOEXEC) };
	rc = f->fd < 0 ? errno : 0;
	if (!rc) {
		(void)unlink(path); /* removed when it is closed */
		rc = fill(f->fd);
	}
	if (!rc)
		return 0;
	bare_file_close(f);
	errno = rc;
	return slu_fail(err, SLU_EDOWN, "%s: %m; name another folder with --dir", dir);
}

void
bare_file_close(struct bare_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

int
bare_file_put(struct bare_file *f, const char *bytes, size_t n, slu_time *synced)
{
	slu_time written;

	if (f->at + n > FILE_SIZE)
		f->at = 0;
	if (pwrite(f->fd, bytes, n, (off_t)f->at) != (ssize_t)n)
		return errno ? errno : EIO;
	written = bench_now();
	if (fdatasync(f->fd) != 0)
		return errno;
	if (synced)
		*synced = bench_now() - written;
	f->at += n;
	return 0;
}

int
bare_file_measure(struct bare_file *f, slu_time duration, struct hist *out,
		  struct slu_err *err)
{
	const slu_time until = bench_now() + duration;
	char bytes[RECORD];
	int rc = 0;

	memset(bytes, 'r', sizeof bytes);
	while (!rc && bench_now() < until) {
		slu_time took = 0;

		rc = bare_file_put(f, bytes, sizeof bytes, &took);
		if (!rc)
			hist_add(out, took);
	}
	errno = rc;
	return rc ? slu_fail(err, SLU_EDOWN, "bare file: %m") : 0;
}
