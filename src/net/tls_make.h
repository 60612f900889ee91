/*
 * tls_make.h - makes certificates for development and tests: a CA, and certificates that it
 * signs.
 *
 *         tls_make("certs/ca", &(struct tls_recipe){ .subject = "my CA", .days = 365 }, &err);
 *         tls_make("certs/server", &(struct tls_recipe){ .subject = "queue", .days = 365,
 *                  .names = "DNS:localhost,IP:127.0.0.1", .ca = "certs/ca" }, &err);
 *
 * Writes certs/server.pem and certs/server.key. Keys are P-256, and only their owner can read
 * them. Existing files stay: SLU_EEXISTS.
 */
#ifndef NET_TLS_MAKE_H
#define NET_TLS_MAKE_H

#include <sluice/err.h>

struct tls_recipe {
	const char *subject; /* the common name */
	const char *names;   /* "DNS:localhost,IP:127.0.0.1,URI:lockd://ns/a?perm=r"; NULL: none */
	const char *ca;      /* its .pem and .key sign it; NULL: make a CA */
	int days;            /* of validity; 0 or less: expired so many days ago */
};

/* Returns SLU_EEXISTS, SLU_EDOWN or SLU_EINVAL with the file or the invalid value, or
 * SLU_ENOMEM. */
int tls_make(const char *path, const struct tls_recipe *r, struct slu_err *err);

#endif
