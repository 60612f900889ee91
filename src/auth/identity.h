/*
 * identity.h - who a caller is, and what it may do in which namespace.
 *
 *      token, certificate ──> name, grants ──> identity ──> identity_may(namespace, right)
 *
 * A grant is a pattern of namespaces and some rights. A pattern is a name, the
 * beginning of one and a star ("team-*"), or a star alone. Nothing is implied but that
 * `write` includes `consume`: it does not include read, nor admin any of them. What no
 * grant allows is refused.
 *
 *  A1  An identity never changes once made. It may be shared between threads, and lives
 *      until its last reference is given back.
 *  A2  No identity (NULL) may do nothing. That everything is allowed, because no one
 *      has set up who may do what, is an identity too: identity_anyone().
 *  A3  An empty namespace stands for all of them: only the pattern * allows it.
 */
#ifndef AUTH_IDENTITY_H
#define AUTH_IDENTITY_H

#include "base/bytes.h"

#include <stdatomic.h>

enum right {
	RIGHT_READ = 1,
	RIGHT_WRITE = 2,
	RIGHT_ADMIN = 4,
	RIGHT_CONSUME = 8, /* take messages and settle them, hold locks; write has it, too */
	RIGHT_ALL = RIGHT_READ | RIGHT_WRITE | RIGHT_ADMIN | RIGHT_CONSUME
};

enum {
	GRANTS_MAX = 64, /* of one identity */
	IDENTITY_NAME_MAX = 256
};

struct grant {
	struct slice pattern; /* in small letters, in an identity */
	unsigned rights;      /* enum right, or'ed */
};

struct identity {
	_Atomic unsigned refs; /* 0: not counted, lives for ever */
	struct slice name;     /* printable: fit for logs */
	unsigned n_grants;
	struct grant grants[];
};

/* Grants while they are gathered: they point into the caller's text. */
struct grants {
	struct grant items[GRANTS_MAX];
	unsigned n;
	bool too_many; /* one had no room: make no identity of these */
};

/* A copy of all; other than printable ASCII in the name becomes '?', and beyond
 * IDENTITY_NAME_MAX it is cut. NULL: no memory. */
struct identity *identity_new(struct slice name, const struct grants *g);
struct identity *identity_ref(struct identity *id);
void identity_unref(struct identity *id); /* NULL is fine */

/* May do everything; A2. */
struct identity *identity_anyone(void);

/* In a folded namespace (core/names.h). A2, A3. */
bool identity_may(const struct identity *id, struct slice namespace, enum right right);

/* False, and nothing is added: no pattern, or no rights. */
bool grants_add(struct grants *g, struct slice pattern, unsigned rights);

/*
 * A scope is "namespace:right": "payments:read", "team-*:write", "*:admin", "*:*". What
 * is none is passed over, as tokens carry scopes of other services too. True: it was
 * one of ours.
 */
bool grants_add_scope(struct grants *g, struct slice scope);

/* Scopes with spaces between. */
void grants_add_scopes(struct grants *g, struct slice scopes);

/* One row: "read", "write", "admin" or "*"; 0 for any other word. */
unsigned right_of(struct slice word);
const char *right_name(enum right right);

#endif
