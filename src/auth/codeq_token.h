/*
 * codeq_token.h - what a token of codeQ says: its tenant, and what its bearer may do there.
 *
 *      {"sub":"w1", "tid":"acme", "eventTypes":["MAIL"], "scope":"codeq:claim codeq:result"}      a worker
 *      {"sub":"web", "tid":"acme"}                                                               a producer
 *      {"sub":"ops", "tid":"acme", "role":"ADMIN"}                                               an admin
 *
 * The codeQ dialect (api/codeq/) alone uses it. The rights are in an identity of their own, identity.codeq: other
 * dialects see the identity of the token, which has the scopes of Sluice and nothing of this.
 *
 *  CODEQ-TOKEN-1  The tenant is the claim tid, or tenantId, tenant_id, organizationId, organization_id; all that are
 *                 there agree. Without any of them it is the subject. It has the form [a-z][a-z0-9-]{1,62}.
 *  CODEQ-TOKEN-2  A token with eventTypes is a worker's, and has the rights of its codeq: scopes for these commands. A
 *                 token without them is a producer's. codeq:admin, or role ADMIN, adds the rights of an admin.
 */
#ifndef AUTH_CODEQ_TOKEN_H
#define AUTH_CODEQ_TOKEN_H

#include "auth/identity.h"
#include "core/names.h"

enum {
	CODEQ_TYPES = 64,       /* most commands of a token */
	CODEQ_TENANT_CLAIMS = 5 /* names of the claim of the tenant */
};

enum codeq_scope {
	CODEQ_CLAIM = 1,
	CODEQ_HEARTBEAT = 2,
	CODEQ_ABANDON = 4,
	CODEQ_NACK = 8,
	CODEQ_RESULT = 16,
	CODEQ_SUBSCRIBE = 32,
	CODEQ_ADMIN = 64
};

/* The claims; they point into the text of the token. */
struct codeq_claims {
	struct slice tenants[CODEQ_TENANT_CLAIMS]; /* n 0: missing */
	struct slice role;
	struct slice types[CODEQ_TYPES];
	unsigned n_types;
	bool has_types;
	unsigned scopes; /* enum codeq_scope, or'ed */
};

struct codeq_token {
	char tenant[NAME_TEXT]; /* empty: CODEQ-TOKEN-1 does not hold */
	unsigned scopes;        /* enum codeq_scope, or'ed */
	bool works;             /* a worker's token */
	bool any_type;          /* eventTypes has a star */
	unsigned n_types;
	struct slice types[]; /* folded */
};

/* Adds a scope "codeq:claim"; ignores any other text. */
void codeq_claims_scope(struct codeq_claims *c, struct slice scope);

/* The name of a scope: "codeq:claim". */
const char *codeq_scope_name(enum codeq_scope scope);

/* The identity of the subject in the codeQ dialect: its rights in the tenant, and its token. NULL: no memory. */
struct identity *codeq_identity_new(struct slice subject, const struct codeq_claims *c);

/* Returns whether the token may work on a command, folded. */
bool codeq_token_has_type(const struct codeq_token *t, struct slice command);

#endif
