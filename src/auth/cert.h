/*
 * cert.h - who a client certificate stands for.
 *
 * A certificate has a subject ("CN=worker-1,O=Acme", RFC 2253) and URI names. Two things
 * grant it something:
 *
 *      its URI names      lockd://ns/<namespace>?perm=r|w|rw     as lockd's; ALL: every one
 *      a file of names    payments:read,payments:write  CN=worker-1,O=Acme
 *                         *:*                           spiffe://acme/operator
 *
 * A line of the file is scopes, white space, and a name: the whole subject, or one of
 * the URI names, letter by letter. # begins a comment, empty lines are passed over.
 *
 * The identity's name is the first URI name that is no claim (spiffe://...), or else the
 * subject. A certificate that nothing is granted to is known, and may do nothing.
 *
 * Pure: whoever has the connection brings the strings, and has checked the certificate.
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
	struct slice scopes; /* commas between */
};

struct cert_map {
	char *text;
	struct cert_rule *rules;
	unsigned n_rules;
};

/* Copies text. SLU_EINVAL names the line and what is wrong with it; SLU_ENOMEM. On
 * both *map is empty. */
int cert_map_parse(struct cert_map *map, struct slice text, struct slu_err *err);
void cert_map_release(struct cert_map *map); /* of a zeroed one: fine */

/* map may be NULL: no file. SLU_EINVAL: a lockd:// claim that cannot be read, or more
 * than GRANTS_MAX grants; the sentence names it. SLU_ENOMEM. */
int cert_identity(struct identity **out, struct slice subject, const struct slice *uris,
		  unsigned n_uris, const struct cert_map *map, struct slu_err *err);

#endif
