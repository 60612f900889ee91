/*
 * tls_make.h - certificates for development and tests: a CA of one's own, and what it
 * signs.
 *
 *         tls_make("certs/ca", &(struct tls_recipe){ .subject = "my CA", .days = 365 }, &err);
 *         tls_make("certs/server", &(struct tls_recipe){ .subject = "queue", .days = 365,
 *                  .names = "DNS:localhost,IP:127.0.0.1", .ca = "certs/ca" }, &err);
 *
 * Writes certs/server.pem and certs/server.key. Keys are P-256, readable by their owner
 * alone. Files that are there are left alone: SLU_EEXISTS.
 */
#ifndef NET_TLS_MAKE_H
#define NET_TLS_MAKE_H

#include <sluice/err.h>

struct tls_recipe {
	const char *subject; /* its common name */
	const char *names;   /* "DNS:localhost,IP:127.0.0.1,URI:lockd://ns/a?perm=r"; NULL: none */
	const char *ca;      /* whose .pem and .key sign it; NULL: it is a CA */
	int days;            /* that it is good for; 0 or less: it expired that long ago */
};

/* SLU_EEXISTS, SLU_EDOWN and SLU_EINVAL name the file, or what is wrong with the recipe;
 * SLU_ENOMEM. */
int tls_make(const char *path, const struct tls_recipe *r, struct slu_err *err);

#endif
