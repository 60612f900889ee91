/*
 * cert.h - the identity of a client certificate.
 *
 * A certificate has a subject ("CN=worker-1,O=Acme", RFC 2253) and URI names. Its grants come
 * from:
 *
 *      its URI names      lockd://ns/<namespace>?perm=r|w|rw     ALL: every namespace
 *      a file of names    payments:read,payments:write  CN=worker-1,O=Acme
 *                         *:*                           spiffe://acme/operator
 *
 * A line of the file has scopes, white space, and a name: the whole subject, or one of the URI
 * names, byte by byte. # begins a comment; empty lines are ignored.
 *
 * The name of the identity is the first URI name that is not a lockd:// claim (spiffe://...), or
 * the subject. A certificate without grants has an identity without rights.
 *
 * Pure: the caller has checked the certificate and passes its names.
 */
#ifndef AUTH_CERT_H
#define AUTH_CERT_H

#include "auth/identity.h"

#include <sluice/err.h>

enum {
	CERT_RULES_MAX = 1024,
	CERT_FILE_MAX = 1 << 20
};

struct cert_rule {
	struct slice name;
	struct slice scopes; /* separated by commas */
};

struct cert_map {
	char *text;
	struct cert_rule *rules;
	unsigned n_rules;
};

/* Copies text. Returns SLU_EINVAL with the line and its fault, or SLU_ENOMEM; then *map is
 * empty. */
int cert_map_parse(struct cert_map *map, struct slice text, struct slu_err *err);
void cert_map_release(struct cert_map *map); /* a zeroed map is fine */

/* map NULL: no file. Returns SLU_EINVAL for an invalid lockd:// claim or more than GRANTS_MAX
 * grants, or SLU_ENOMEM. */
int cert_identity(struct identity **out, struct slice subject, const struct slice *uris,
		  unsigned n_uris, const struct cert_map *map, struct slu_err *err);

#endif
