/*
 * listen_fd.h - a listening socket that was passed to us: for listen.c.
 */
#ifndef NET_LISTEN_FD_H
#define NET_LISTEN_FD_H

#include "net/listen.h"

/* "fd:3": fill in l, whose l->n places in fds are -1; all of them share one queue of
 * clients. The socket stays with us. name gets "127.0.0.1:7171" unless it is a unix
 * socket. SLU_EINVAL: it is no listening stream socket. */
int listen_adopt(struct listener *l, const char *address, char name[static LISTEN_NAME],
		 struct slu_err *err);

/* Is it spelled right? SLU_EINVAL. */
int listen_fd_check(const char *address, struct slu_err *err);

/* Is the socket behind "fd:3" one that only this machine can reach? */
bool listen_fd_is_local(const char *address);

#endif
