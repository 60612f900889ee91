/*
 * guard.h - decides whether a request is allowed, and finds its identity.
 *
 *      request ── needs nothing ─────────────────────────────────> in, without an identity
 *         │
 *         ├─ a place with a secret ──┬─ Bearer SECRET ───────────> in, as anyone
 *         │                          └───────────────────────────> 401
 *         ├─ no keys, no certificates: auth is off ── web.h ─────> in, as anyone
 *         │  /metrics where it is open                 └─────────> 403
 *         ├─ no keys, and the owner by a private unix socket ────> in, as anyone
 *         ├─ Authorization: AWS4-HMAC-SHA256 ..., where signatures are checked behind the body
 *         │       ── a known access key ───────────────────────────> in, without an identity
 *         ├─ Authorization: Bearer ... ── auth.h ──┬─────────────> in, as its subject
 *         │                                        └─────────────> 401
 *         ├─ a client certificate ── web.h ── cert.h ────────────> in, as its name
 *         │                             └────────────────────────> 403
 *         └─ otherwise ──────────────────────────────────────────> 401
 *
 * A request that needs a right over all namespaces, and whose identity does not have it, is
 * refused here with 403. The namespace of other rights is not known yet: each op checks it
 * (api/apicall.h).
 *
 * Pure, except for the clock and the keys of auth.h. A token comes from the Authorization field
 * only: URLs are logged and stored.
 */
#ifndef AUTH_GUARD_H
#define AUTH_GUARD_H

#include "auth/auth.h"
#include "auth/cert.h"
#include "auth/web.h"

/* What a route needs: rights of identity.h, or one of these. Never 0. */
enum {
	NEEDS_NOTHING = 16, /* no identity */
	NEEDS_METRICS = 32, /* *:read, unless guard.metrics opens them */
	NEEDS_SERVER = 64,  /* *:admin: it concerns the whole server */
	NEEDS_HOLDER = 128, /* consume or write */
	NEEDS_ANY = 256,    /* read, consume or write */
	NEEDS_VIEW = 512,   /* read or admin */
	NEEDS_SOME = 1024   /* any right */
};

/* One of these rights is enough; 0: the route needs all of its rights. */
static inline unsigned
needs_one_of(unsigned needs)
{
	if (needs == NEEDS_HOLDER)
		return RIGHT_CONSUME | RIGHT_WRITE;
	if (needs == NEEDS_SOME)
		return RIGHT_ALL;
	if (needs == NEEDS_VIEW)
		return RIGHT_READ | RIGHT_ADMIN;
	return needs == NEEDS_ANY ? RIGHT_READ | RIGHT_CONSUME | RIGHT_WRITE : 0;
}

enum guard_metrics {
	METRICS_LOCAL, /* no token on addresses that only this machine reaches */
	METRICS_OPEN,  /* no token anywhere */
	METRICS_TOKEN  /* a token everywhere */
};

/* An address that the server listens on. */
struct guard_place {
	bool local; /* only this machine can reach it */
	bool is_unix;
	bool is_private;    /* a unix socket that only its owner may use */
	const char *secret; /* only a caller with this token is served here, as anyone; NULL: no such place */
};

struct guard {
	struct auth *auth;
	_Atomic bool certificates;          /* client certificates have identities */
	const struct cert_map *_Atomic map; /* or NULL */
	char *const *hosts;                 /* web.h */
	unsigned n_hosts;
	enum guard_metrics metrics;
	const struct guard_place *places; /* by listener */
};

struct guard_request {
	unsigned needs;
	unsigned thread;
	unsigned listener;
	bool is_owner;              /* exchange_is_owner */
	struct slice authorization; /* as sent; .p NULL: not sent */
	bool signs;                 /* the handler checks signatures by guard_check_signature: until then the
				     * request has no identity, and so no rights */
	struct web_request web;     /* guard_check sets the fields of the listener */
	struct slice subject;       /* of a checked certificate; .p NULL: none */
	const struct slice *uris;
	unsigned n_uris;
	enum refusal refusal; /* set by guard_check if it refuses */
};

bool guard_is_on(const struct guard *g);

/* web_is_own_host, for a request on that listener. */
bool guard_is_own_host(const struct guard *g, unsigned listener, const struct web_request *q);

/* Sets *who to a reference that the caller drops, or to NULL if the route needs no identity. Returns
 * SLU_EAUTH or SLU_EFORBIDDEN with a text for the client and sets q->refusal, or SLU_ENOMEM. */
int guard_check(const struct guard *g, struct guard_request *q,
		struct identity **who, struct slu_err *err);

/* For a handler of a request whose Authorization is a signature (auth/sigv4.h). Returns SLU_EAUTH with a text for the
 * client. rc 0 and *who NULL: the server does not ask for signatures. */
int guard_check_signature(const struct guard *g, unsigned thread, struct slice authorization,
			  const struct sigv4_request *q, struct identity **who, struct slu_err *err);

#endif
