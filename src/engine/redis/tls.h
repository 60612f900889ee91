/*
 * tls.h - TLS on the socket of a connection to Redis.
 *
 *         rc = rtls_open(&t, &w->conf, fd, err);
 *         while (rtls_shake(t, &events) < 0 && errno == EAGAIN)
 *                 wait for events;
 *         n = rtls_send(t, p, n, &events);        as send and recv on a non-blocking socket;
 *         n = rtls_recv(t, p, n, &events);        *events says what to wait for
 *
 *  REDISTLS-1  TLS 1.2 or later. Chain, date and name of the server are always checked,
 *      against the authorities of a file or of the system. The name is the host of the
 *      address, unless tls_name is set.
 *  REDISTLS-2  Files are read for each connection: a new file counts from the next one on.
 *
 * The process ignores SIGPIPE.
 */
#ifndef ENGINE_REDIS_TLS_H
#define ENGINE_REDIS_TLS_H

#include "engine/redis/wire.h"

#include <sys/types.h>

struct rtls;

/* Prepares TLS without sending. Returns SLU_EINVAL and names the file if it is invalid,
 * SLU_ENOMEM. */
int rtls_open(struct rtls **out, const struct rwire_conf *conf, int fd, struct slu_err *err);

/* Checks the files. Returns SLU_EINVAL, SLU_ENOMEM. */
int rtls_check(const struct rwire_conf *conf, struct slu_err *err);
void rtls_close(struct rtls *t); /* NULL is fine; the socket stays open */

/* Each returns -1 with EAGAIN to wait for *events, -1 with EPROTO if TLS failed (rtls_why). */
int rtls_shake(struct rtls *t, short *events);
ssize_t rtls_send(struct rtls *t, const char *p, size_t n, short *events);
ssize_t rtls_recv(struct rtls *t, char *p, size_t n, short *events);

const char *rtls_why(const struct rtls *t); /* why TLS failed; "" = it did not */

#endif
