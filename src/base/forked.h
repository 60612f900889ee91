/*
 * forked.h - does a handle belong to this process?
 *
 * fork() copies memory but no threads, and whatever lock another thread held stays locked in
 * the child. So a handle (executor, queue, worker, broker, client) notes forked_now() when it
 * is made and its functions compare: in a child they fail at once instead of waiting for
 * threads that are not there, or writing into connections that the parent uses.
 */
#ifndef BASE_FORKED_H
#define BASE_FORKED_H

#include <sluice/err.h>

/* How often this process, and those before it, were forked. Any thread. */
uint32_t forked_now(void);

/* Return SLU_EINVAL from the calling function if the handle came here by a fork. */
#define NEED_OURS(handle, err)                                                                       \
	do {                                                                                         \
		if ((handle)->born != forked_now())                                                  \
			return slu_fail((err), SLU_EINVAL,                                           \
					"%s: it was opened before fork(); open one in this process", \
					__func__);                                                   \
	} while (0)

#endif
