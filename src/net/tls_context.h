/*
 * tls_context.h - certificates and rules, from which TLS sessions are made.
 *
 *      files ──> tls_context_server ──> slot ──┬─> session ─> session ...   net/tls.h
 *      other files, later: a second context ───┘   older sessions keep the first
 *
 * A context never changes once made and is counted: a session holds its own, so a slot
 * may be given another at any time.
 *
 *  X1  TLS 1.2 or later; 1.2 with forward secrecy and authenticated ciphers alone. No
 *      compression, no renegotiation, no early data. ALPN: http/1.1, or none.
 *  X2  A client's certificate is checked against client_ca alone, never against the
 *      authorities of the system. A wrong one is refused also where none is asked for
 *      by `required`.
 *  X3  Tickets let a client come back without the whole handshake, for TLS_TICKET_SECONDS
 *      and only to the context that gave them: who was trusted by an old one is checked
 *      anew.
 *  X4  A client checks chain, date and name of the server, always.
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
	TLS_AUTH_OPTIONAL, /* asked for; a client without one is served */
	TLS_AUTH_REQUIRED
};

enum tls_version {
	TLS_1_2,
	TLS_1_3
};

struct tls_server_conf {
	const char *cert;      /* PEM file: the server's, then those that lead to its root */
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

struct tls_context;

/* SLU_EINVAL names the file and what is wrong with it; SLU_ENOMEM. */
int tls_context_server(struct tls_context **out, const struct tls_server_conf *conf,
		       struct slu_err *err);
int tls_context_client(struct tls_context **out, const struct tls_client_conf *conf,
		       struct slu_err *err);

struct tls_context *tls_context_ref(struct tls_context *x);
void tls_context_unref(struct tls_context *x); /* NULL is fine */

/* What an operator should know and do, or NULL: a key that everybody can read, a
 * certificate that has expired or will within 14 days. */
const char *tls_context_warning(const struct tls_context *x);

/* --- the one in force ------------------------------------------------------- */

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
