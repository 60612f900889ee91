/*
 * identity.h - the name of a caller, and its rights per namespace.
 *
 *      token, certificate ──> name, grants ──> identity ──> identity_may(namespace, right)
 *
 * A grant is a pattern of namespaces and some rights. A pattern is a name, the beginning of a
 * name and a star ("team-*"), or a star. `write` includes `consume`; no other right includes
 * another. A right without a grant is refused.
 *
 *  IDENTITY-1  An identity never changes. Threads may share it, and it lives until its last
 *              reference is dropped.
 *  IDENTITY-2  A NULL identity has no rights. If the server has no authorization, every caller
 *              is identity_anyone(), which has all rights.
 *  IDENTITY-3  An empty namespace means all namespaces: only the pattern * allows it.
 */
#ifndef AUTH_IDENTITY_H
#define AUTH_IDENTITY_H

#include "base/bytes.h"

#include <stdatomic.h>

enum right {
	RIGHT_READ = 1,
	RIGHT_WRITE = 2,
	RIGHT_ADMIN = 4,
	RIGHT_CONSUME = 8, /* claim and settle messages, hold locks; write includes it */
	RIGHT_ALL = RIGHT_READ | RIGHT_WRITE | RIGHT_ADMIN | RIGHT_CONSUME
};

enum {
	GRANTS_MAX = 64, /* of an identity */
	IDENTITY_NAME_MAX = 256
};

struct grant {
	struct slice pattern; /* in an identity: in small letters */
	unsigned rights;      /* enum right, or'ed */
};

struct codeq_token;

struct identity {
	_Atomic unsigned refs;     /* 0: not counted, never freed */
	struct slice name;         /* printable ASCII: safe for logs */
	struct identity *codeq;    /* the same caller in the codeQ dialect; NULL: it has no token of codeQ */
	struct codeq_token *token; /* of an identity in the codeQ dialect: auth/codeq_token.h; otherwise NULL */
	unsigned n_grants;
	struct grant grants[];
};

/* Grants before they are an identity: they point into the caller's text. */
struct grants {
	struct grant items[GRANTS_MAX];
	unsigned n;
	bool too_many; /* more than GRANTS_MAX: not a valid identity */
};

/* Copies name and grants. Bytes of the name that are not printable ASCII become '?', and it is
 * cut to IDENTITY_NAME_MAX. NULL: no memory. */
struct identity *identity_new(struct slice name, const struct grants *g);
struct identity *identity_ref(struct identity *id);
void identity_unref(struct identity *id); /* NULL is fine */

/* Has all rights: IDENTITY-2. */
struct identity *identity_anyone(void);

/* Returns true if id has the right in a folded namespace (core/names.h). IDENTITY-2,
 * IDENTITY-3. */
bool identity_may(const struct identity *id, struct slice namespace, enum right right);

/* The namespace of an identity that has rights in one only; otherwise `default`. Borrowed from id. */
struct slice identity_home(const struct identity *id);

/* Returns false, and adds nothing, if the pattern or the rights are invalid. */
bool grants_add(struct grants *g, struct slice pattern, unsigned rights);

/*
 * A scope is "namespace:right": "payments:read", "team-*:write", "*:admin", "*:*". Other text is
 * ignored: tokens have scopes of other services too. Returns true if it was a scope.
 */
bool grants_add_scope(struct grants *g, struct slice scope);

/* The same for scopes separated by spaces. */
void grants_add_scopes(struct grants *g, struct slice scopes);

/* The rights of "read", "write", "admin", "consume" or "*"; 0 for another word. */
unsigned right_of(struct slice word);
const char *right_name(enum right right);

#endif
