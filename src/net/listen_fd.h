/*
 * listen_fd.h - an inherited listening socket: for listen.c.
 */
#ifndef NET_LISTEN_FD_H
#define NET_LISTEN_FD_H

#include "net/listen.h"

/* "fd:3": fills l, whose l->n fds are -1; all of them share one backlog. The inherited socket
 * stays open. Sets name to "127.0.0.1:7171", unless it is a unix socket. Returns SLU_EINVAL if
 * the number is not a listening stream socket. */
int listen_adopt(struct listener *l, const char *address, char name[static LISTEN_NAME],
		 struct slu_err *err);

/* Checks that the number is a listening stream socket. Returns SLU_EINVAL otherwise. */
int listen_fd_check(const char *address, struct slu_err *err);

/* Returns true if only this machine can reach the socket of "fd:3". */
bool listen_fd_is_local(const char *address);

#endif
