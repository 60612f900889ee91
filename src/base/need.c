#include "base/need.h"

#include <inttypes.h>

int
need_time(slu_time t, const char *what, struct slu_err *err)
{
	if (t >= 0)
		return 0;
	return slu_fail(err, SLU_EINVAL, "invalid %s: %" PRId64 " ns; expected 0 or more", what, t);
}

int
need_lease(slu_time t, const char *what, struct slu_err *err)
{
	if (t == SLU_NEVER)
		return slu_fail(err, SLU_EINVAL, "invalid %s: SLU_NEVER; expected a time that ends, or 0 for the default",
				what);
	return need_time(t, what, err);
}

int
need_bytes(const void *p, size_t n, const char *what, struct slu_err *err)
{
	if (p || n == 0)
		return 0;
	return slu_fail(err, SLU_EINVAL, "invalid %s: NULL with a size of %zu", what, n);
}
