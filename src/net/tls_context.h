/*
 * tls_context.h - the certificates and rules of TLS sessions.
 *
 *      files ──> tls_context_server ──> slot ──┬─> session ─> session ...   net/tls.h
 *      other files, later: a second context ───┘   older sessions keep the first
 *
 * A context never changes and is counted. A session holds its context, so a slot may get
 * another one at any time.
 *
 *  TLSCONTEXT-1  TLS 1.2 or later; 1.2 only with forward secrecy and authenticated ciphers. No
 *                compression, no renegotiation, no early data. ALPN: http/1.1, or none; among
 *                peers sluice-peer.
 *  TLSCONTEXT-2  A client's certificate is checked against client_ca only, never against the
 *                authorities of the system. An invalid one is refused also if certificates are
 *                optional.
 *  TLSCONTEXT-3  With a ticket a client returns without the whole handshake, for
 *                TLS_TICKET_SECONDS and only to the context that gave the ticket. A new context
 *                checks every client again.
 *  TLSCONTEXT-4  A client always checks chain, date and name of the server.
 *  TLSCONTEXT-5  A context of peers accepts and connects, by TLS 1.3 alone and without tickets. With
 *                a CA both sides show a certificate, and its chain and dates are checked, not its
 *                name. Without a CA nothing is checked: the caller proves the other side itself, and
 *                binds the proof to the session (tls_binding).
 */
#ifndef NET_TLS_CONTEXT_H
#define NET_TLS_CONTEXT_H

#include <sluice/err.h>

#include <pthread.h>

enum {
	TLS_TICKET_SECONDS = 600
};

enum tls_client_auth {
	TLS_AUTH_OFF,
	TLS_AUTH_OPTIONAL, /* a client without a certificate is served */
	TLS_AUTH_REQUIRED
};

enum tls_version {
	TLS_1_2,
	TLS_1_3
};

struct tls_server_conf {
	const char *cert;      /* PEM file: the server's certificate, then the chain */
	const char *key;       /* PEM file */
	const char *client_ca; /* PEM file, or NULL */
	enum tls_client_auth client_auth;
	enum tls_version min_version;
};

struct tls_client_conf {
	const char *ca_file; /* PEM file; NULL: the authorities of the system */
	const char *cert;    /* PEM file, or NULL */
	const char *key;
};

struct tls_peers_conf {
	const char *cert; /* PEM file: the certificate of this node, then the chain */
	const char *key;  /* PEM file */
	const char *ca;   /* PEM file with the authorities of all nodes; NULL: no check */
};

struct tls_context;

/* Returns SLU_EINVAL with the file and its fault, or SLU_ENOMEM. */
int tls_context_server(struct tls_context **out, const struct tls_server_conf *conf,
		       struct slu_err *err);
int tls_context_client(struct tls_context **out, const struct tls_client_conf *conf,
		       struct slu_err *err);
int tls_context_peers(struct tls_context **out, const struct tls_peers_conf *conf,
		      struct slu_err *err);

struct tls_context *tls_context_ref(struct tls_context *x);
void tls_context_unref(struct tls_context *x); /* NULL is fine */

/* A warning for the operator, or NULL: a key that every user can read, a certificate that has
 * expired or expires within 14 days. */
const char *tls_context_warning(const struct tls_context *x);

/* --- the current one ------------------------------------------------------- */

/* Any thread. */
struct tls_slot {
	pthread_mutex_t mtx;
	struct tls_context *now; /* or NULL */
};

void tls_slot_init(struct tls_slot *s);
void tls_slot_release(struct tls_slot *s);
void tls_slot_set(struct tls_slot *s, struct tls_context *x); /* refs x */
struct tls_context *tls_slot_get(struct tls_slot *s);         /* a ref, or NULL */

#endif
