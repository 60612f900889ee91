/*
 * addresses.h - where a server listens, by its settings and by its service manager.
 *
 *      listen is set, or no sockets were passed ──> the addresses of `listen`
 *      else ──────────────────────────────────────> fd:3, fd:4, ...
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

/* Returns how many. */
unsigned addresses(const struct conf *conf, struct addresses *out);

/* Is every address a passed socket (fd:N, https://fd:N), by default or by `listen`? Then the sockets
 * live on when this process stops. */
bool addresses_are_passed(const struct addresses *list);

/* Can it listen there (net/listen.h), has it a certificate where it needs one, and is nobody
 * let in from other machines without a word? SLU_EINVAL. */
int addresses_check(const struct conf *conf, struct slu_err *err);

/* Warn if the service manager has passed sockets that no address names. */
void addresses_tell_unused(const struct addresses *list, struct slu_log *log);

#endif
