/*
 * tls_peer.h - the names in a checked certificate of the other side.
 *
 * Every name is printable ASCII without spaces (the subject may have spaces), so it is safe
 * for logs. A certificate with more, longer or other names is refused: a part of a name would
 * be another name.
 */
#ifndef NET_TLS_PEER_H
#define NET_TLS_PEER_H

#include <sluice/err.h>

enum {
	TLS_URIS_MAX = 64,
	TLS_DNS_MAX = 16,
	TLS_NAME_MAX = 512, /* bytes of a name */
	TLS_TEXT_MAX = 8192 /* bytes of all names */
};

struct tls_peer {
	const char *subject; /* RFC 2253: "CN=worker,O=Example" */
	const char *serial;  /* hex digits */
	unsigned n_uris;
	unsigned n_dns;
	const char *uris[TLS_URIS_MAX];
	const char *dns[TLS_DNS_MAX];
	char text[]; /* the bytes of all names */
};

struct x509_st;

/* Returns SLU_EINVAL with the limit that the certificate exceeds, or SLU_ENOMEM. */
int tls_peer_new(struct tls_peer **out, const struct x509_st *cert, struct slu_err *err);
void tls_peer_free(struct tls_peer *p); /* NULL is fine */

#endif
