/*
 * secure.h - TLS as the settings say.
 */
#ifndef SERVER_SECURE_H
#define SERVER_SECURE_H

#include "conf/options.h"
#include "http/server.h"

/* Read certificate, key and CA, and give them to connections from now on; those that
 * are open keep what they have. Without tls.cert nothing is done. SLU_EINVAL names file and
 * reason, and what was in force stays so. */
int secure_load(struct server *s, const struct conf *conf, struct slu_log *log,
		struct slu_err *err);

/* Is every client known by its certificate, at this address? */
bool secure_knows_clients(const struct conf *conf, const char *address);

#endif
