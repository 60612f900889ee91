/*
 * need.h - checks of the arguments of public functions.
 */
#ifndef BASE_NEED_H
#define BASE_NEED_H

#include <sluice/err.h>

/* Returns SLU_EINVAL from the calling function if arg is NULL; the text names function and
 * argument. Stands first in a function, before declarations that read the argument. */
#define NEED(arg, err) NEED_AS(arg, #arg, err)

/* The same for several arguments, from left to right. */
/* clang-format off */
#define NEED2(a, b, err)       do { NEED(a, err); NEED(b, err); } while (0)
#define NEED3(a, b, c, err)    do { NEED(a, err); NEED2(b, c, err); } while (0)
#define NEED4(a, b, c, d, err) do { NEED(a, err); NEED3(b, c, d, err); } while (0)
/* clang-format on */

/* The same for an argument that has another name in the public header. */
#define NEED_AS(arg, name, err)                                                               \
	do {                                                                                  \
		if (!(arg))                                                                   \
			return slu_fail((err), SLU_EINVAL, "%s: %s is NULL", __func__, name); \
	} while (0)

/* A duration of 0 or more; SLU_NEVER is allowed. */
int need_time(slu_time t, const char *what, struct slu_err *err);

/* A lease of 0 (the default) or more. SLU_NEVER is refused: the lease of a dead holder must end. */
int need_lease(slu_time t, const char *what, struct slu_err *err);

/* Bytes: p may be NULL only if n is 0. */
int need_bytes(const void *p, size_t n, const char *what, struct slu_err *err);

#endif
