/*
 * need.h - what public functions refuse before they look further: NULL where something is
 * required, times that make no sense.
 */
#ifndef BASE_NEED_H
#define BASE_NEED_H

#include <sluice/err.h>

/* Return SLU_EINVAL from the calling function if arg is NULL; the text names both. First
 * thing in a function: even its declarations may look into its arguments. */
#define NEED(arg, err) NEED_AS(arg, #arg, err)

/* The same for an argument that the header calls otherwise. */
#define NEED_AS(arg, name, err)                                                               \
	do {                                                                                  \
		if (!(arg))                                                                   \
			return slu_fail((err), SLU_EINVAL, "%s: %s is NULL", __func__, name); \
	} while (0)

/* A length of time that may be 0 (a default, or none) and SLU_NEVER. */
int need_time(slu_time t, const char *what, struct slu_err *err);

/* A lease: 0 for the default, but not SLU_NEVER, as a holder that is gone must lose it. */
int need_lease(slu_time t, const char *what, struct slu_err *err);

/* Bytes that are there if there are any. */
int need_bytes(const void *p, size_t n, const char *what, struct slu_err *err);

#endif
