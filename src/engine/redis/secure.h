/*
 * secure.h - TLS on the socket of a connection to Redis.
 *
 *         rc = rtls_open(&t, &w->conf, fd, err);
 *         while (rtls_shake(t, &events) < 0 && errno == EAGAIN)
 *                 wait for events;
 *         n = rtls_send(t, p, n, &events);        as send and recv on a socket that does
 *         n = rtls_recv(t, p, n, &events);        not block, but for the events
 *
 *  S1  TLS 1.2 or later. Chain, date and name of the server are checked, always: against the
 *      authorities of one file, or of the system; the name is the host of the address, unless
 *      another is given.
 *  S2  Files are read for each connection, so new ones are used from the next on.
 *
 * Whoever uses it ignores SIGPIPE.
 */
#ifndef ENGINE_REDIS_SECURE_H
#define ENGINE_REDIS_SECURE_H

#include "engine/redis/wire.h"

#include <sys/types.h>

struct rtls;

/* Says nothing yet. SLU_EINVAL names the file and what is wrong with it; SLU_ENOMEM. */
int rtls_open(struct rtls **out, const struct rwire_conf *conf, int fd, struct slu_err *err);
/* Are its files good? SLU_EINVAL, SLU_ENOMEM. */
int rtls_check(const struct rwire_conf *conf, struct slu_err *err);
void rtls_close(struct rtls *t); /* NULL is fine; the socket stays */

/* -1 and EAGAIN: wait for *events. -1 and EPROTO: see rtls_why. */
int rtls_shake(struct rtls *t, short *events);
ssize_t rtls_send(struct rtls *t, const char *p, size_t n, short *events);
ssize_t rtls_recv(struct rtls *t, char *p, size_t n, short *events);

const char *rtls_why(const struct rtls *t); /* "": it was not TLS */

#endif
