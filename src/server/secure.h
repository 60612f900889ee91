/*
 * secure.h - TLS as the settings say, also after a reload.
 *
 * Connections that are open keep the certificate they began with; those that come after
 * a reload get the new one. Files that will not do are refused before anything changes
 * (conf/reload.h).
 */
#ifndef SERVER_SECURE_H
#define SERVER_SECURE_H

#include "conf/reload.h"
#include "http/server.h"

struct secure {
	struct server *server;
	struct slu_log *log;
	struct tls_context *next; /* between prepare and commit */
	bool used;                /* a certificate is in force */
};

/* Read certificate, key and CA, give them to the server, and follow reloads. Without
 * tls.cert nothing is done. SLU_EINVAL names the setting or the file, and the reason. */
int secure_open(struct secure *s, const struct conf *conf, struct reload *reload,
		struct slu_err *err);

/* Is every client known by its certificate, at this address? */
bool secure_knows_clients(const struct conf *conf, const char *address);

#endif
