#include "conf/slurp.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int
read_all(int fd, const char *file, struct buf *out, struct slu_err *err)
{
	char part[4096];

	for (;;) {
		const ssize_t n = read(fd, part, sizeof part);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return slu_fail(err, SLU_EINVAL, "%s: %m", file);
		if (n == 0)
			return 0;
		buf_put(out, part, (size_t)n);
		if (out->failed)
			return slu_fail(err, SLU_EINVAL, "%s: file too large; expected at most %zu bytes", file,
					out->max);
	}
}

int
slurp(const char *file, struct buf *out, struct slu_err *err)
{
	const int fd = open(file, O_RDONLY | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return slu_fail(err, SLU_EINVAL, "%s: %m", file);
	rc = read_all(fd, file, out, err);
	close(fd);
	return rc;
}
