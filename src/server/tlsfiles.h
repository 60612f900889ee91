/*
 * tlsfiles.h - the certificates of the server, and the rights of client certificates.
 *
 *      tls.cert, tls.key, tls.client_ca, ...   ──> net/tls_context.h
 *      tls.cert, tls.key, tls.peer_ca          ──> peers: a context of the links to other nodes
 *      tls.client_auth, auth.certificates      ──> auth/guard.h
 *
 * A connection keeps the certificate that it began with; new connections get the newest one. A
 * reload refuses invalid files before it changes anything (conf/reload.h).
 */
#ifndef SERVER_TLSFILES_H
#define SERVER_TLSFILES_H

#include "auth/guard.h"
#include "conf/reload.h"
#include "net/server.h"
#include "net/tls_context.h"

struct tlsfiles {
	struct server *server;
	struct guard *guard;
	struct slu_log *log;
	struct cert_map *map;  /* the guard's, or NULL */
	struct tls_slot peers; /* empty if links do not use TLS */
	bool used;             /* a certificate is in force */

	/* Between prepare and commit. */
	struct tls_context *next, *next_peers;
	struct cert_map *next_map;
};

/* Read certificate, key and CA, give them to the server, and add a part to reload. Does nothing
 * without tls.cert. SLU_EINVAL; the error names the setting or the file, and the reason. */
int tlsfiles_open(struct tlsfiles *s, const struct conf *conf, struct reload *reload,
		  struct slu_err *err);

/* The same settings and files, without a server. Returns SLU_EINVAL. */
int tlsfiles_check(const struct conf *conf, struct slu_err *err);
void tlsfiles_close(struct tlsfiles *s); /* after the server; zeroed is fine */

#endif
