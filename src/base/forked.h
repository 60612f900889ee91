/*
 * forked.h - whether a handle belongs to this process.
 *
 * fork() copies memory but no threads, and a lock that another thread held stays locked in
 * the child. So a handle (executor, queue, worker, broker, client) stores forked_now() when it
 * is made, and its functions compare: in a child they fail at once instead of waiting for
 * missing threads, or writing to connections of the parent.
 */
#ifndef BASE_FORKED_H
#define BASE_FORKED_H

#include <sluice/err.h>

/* How many forks led to this process. Any thread. */
uint32_t forked_now(void);

/* Returns SLU_EINVAL from the calling function if the handle was made before a fork. */
#define NEED_OURS(handle, err)                                                                               \
	do {                                                                                                 \
		if ((handle)->born != forked_now())                                                          \
			return slu_fail((err), SLU_EINVAL,                                                   \
					"%s: the handle was opened before fork(); open one in this process", \
					__func__);                                                           \
	} while (0)

#endif
