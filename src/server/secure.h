/*
 * secure.h - TLS, and what certificates grant, as the settings say, also after a reload.
 *
 *      tls.cert, tls.key, tls.client_ca, ...   ──> net/tls_context.h
 *      tls.client_auth, auth.certificates      ──> auth/guard.h
 *
 * Connections that are open keep the certificate they began with; those that come after
 * a reload get the new one. Files that will not do are refused before anything changes
 * (conf/reload.h).
 */
#ifndef SERVER_SECURE_H
#define SERVER_SECURE_H

#include "auth/guard.h"
#include "conf/reload.h"
#include "http/server.h"

struct secure {
	struct server *server;
	struct guard *guard;
	struct slu_log *log;
	struct cert_map *map; /* the guard's, or NULL */
	bool used;            /* a certificate is in force */

	/* Between prepare and commit. */
	struct tls_context *next;
	struct cert_map *next_map;
};

/* Read certificate, key and CA, give them to the server, and follow reloads. Without
 * tls.cert nothing is done. SLU_EINVAL names the setting or the file, and the reason. */
int secure_open(struct secure *s, const struct conf *conf, struct reload *reload,
		struct slu_err *err);

/* The same settings and files, without a server. SLU_EINVAL. */
int secure_check(const struct conf *conf, struct slu_err *err);
void secure_close(struct secure *s); /* after the server; a zeroed one is fine */

#endif
