/*
 * addresses.h - the addresses of a server: from its settings or its service manager.
 *
 *      listen is set, or no sockets were passed ──> the addresses of `listen`
 *      otherwise ─────────────────────────────────> fd:3, fd:4, ...
 */
#ifndef SERVER_ADDRESSES_H
#define SERVER_ADDRESSES_H

#include "conf/options.h"

enum {
	ADDRESSES_MAX = 16
};

struct addresses {
	const char *items[ADDRESSES_MAX]; /* in conf, or in passed */
	unsigned n;
	char passed[ADDRESSES_MAX][16];
};

/* Returns out->n. */
unsigned addresses(const struct conf *conf, struct addresses *out);

/* True if every address is a passed socket (fd:N, https://fd:N), by default or by `listen`. Then
 * the sockets outlive this process. */
bool addresses_are_passed(const struct addresses *list);

/* SLU_EINVAL if an address is invalid (net/listen.h), is given twice, needs a certificate that is not set, or lets
 * other machines in without authentication. */
int addresses_check(const struct conf *conf, struct slu_err *err);

/* Warn if the service manager has passed sockets that no address names. */
void addresses_tell_unused(const struct addresses *list, struct slu_log *log);

#endif
