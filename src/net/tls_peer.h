/*
 * tls_peer.h - who is at the other end: the names in a certificate that was checked.
 *
 * Every name is printable ASCII without spaces (the subject may have those), so it is
 * fit for logs. A certificate with more, longer or other names is refused whole: half of
 * a name is another name.
 */
#ifndef NET_TLS_PEER_H
#define NET_TLS_PEER_H

#include <sluice/err.h>

enum {
	TLS_URIS_MAX = 64,
	TLS_DNS_MAX = 16,
	TLS_NAME_MAX = 512, /* bytes of one */
	TLS_TEXT_MAX = 8192 /* of all together */
};

struct tls_peer {
	const char *subject; /* RFC 2253: "CN=worker,O=Example" */
	const char *serial;  /* hex digits */
	unsigned n_uris;
	unsigned n_dns;
	const char *uris[TLS_URIS_MAX];
	const char *dns[TLS_DNS_MAX];
	char text[]; /* where they are */
};

struct x509_st;

/* SLU_EINVAL: which bound it breaks; SLU_ENOMEM. */
int tls_peer_new(struct tls_peer **out, const struct x509_st *cert, struct slu_err *err);
void tls_peer_free(struct tls_peer *p); /* NULL is fine */

#endif
