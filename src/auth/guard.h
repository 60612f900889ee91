/*
 * guard.h - is this request let in, and as whom?
 *
 *      request ── needs nothing ─────────────────────────────────> in, as nobody
 *         │
 *         ├─ no keys, no certificates: auth is off ── web.h ─────> in, as anyone
 *         │  /metrics where it is open                 └─────────> 403
 *         ├─ no keys, and the owner by a private unix socket ────> in, as anyone
 *         ├─ Authorization: Bearer ... ── auth.h ──┬─────────────> in, as its subject
 *         │                                        └─────────────> 401
 *         ├─ a client certificate ── web.h ── cert.h ────────────> in, as its name
 *         │                             └────────────────────────> 403
 *         └─ else ───────────────────────────────────────────────> 401
 *
 * What needs a right over all namespaces is refused here, 403. In which namespace another right
 * is needed is not known yet, and so is checked for each op (api/ask.h).
 *
 * Pure but for the clock and the keys of auth.h. A token is taken from the
 * Authorization field and from nowhere else: addresses are logged and kept.
 */
#ifndef AUTH_GUARD_H
#define AUTH_GUARD_H

#include "auth/auth.h"
#include "auth/cert.h"
#include "auth/web.h"

/* What a route needs: a right of identity.h, or one of these. 0 is an oversight. */
enum {
	NEEDS_NOTHING = 16, /* not even a name */
	NEEDS_METRICS = 32, /* *:read, unless the guard has them open */
	NEEDS_SERVER = 64,  /* *:admin: it is about more than namespaces */
	NEEDS_HOLDER = 128, /* consume or write */
	NEEDS_ANY = 256,    /* read, consume or write */
	NEEDS_VIEW = 512    /* read or admin */
};

/* The rights of which one is enough; 0: it needs all that it names. */
static inline unsigned
needs_one_of(unsigned needs)
{
	if (needs == NEEDS_HOLDER)
		return RIGHT_CONSUME | RIGHT_WRITE;
	if (needs == NEEDS_VIEW)
		return RIGHT_READ | RIGHT_ADMIN;
	return needs == NEEDS_ANY ? RIGHT_READ | RIGHT_CONSUME | RIGHT_WRITE : 0;
}

enum guard_metrics {
	METRICS_LOCAL, /* no token where only this machine reaches */
	METRICS_OPEN,  /* no token anywhere */
	METRICS_TOKEN  /* a token everywhere */
};

/* What is known of an address that is listened on. */
struct guard_place {
	bool local; /* only this machine reaches it */
	bool is_unix;
	bool is_private; /* a unix socket that only its owner may use */
};

struct guard {
	struct auth *auth;
	_Atomic bool certificates;          /* client certificates stand for somebody */
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
	bool is_owner;              /* by a unix socket, and the system says: the owner of the server */
	struct slice authorization; /* as sent; .p NULL: not sent */
	struct web_request web;     /* the guard itself fills in what it knows of the listener */
	struct slice subject;       /* of a certificate that was checked; .p NULL: none */
	const struct slice *uris;
	unsigned n_uris;
	enum refusal refusal; /* set by guard_check, if it refuses */
};

bool guard_is_on(const struct guard *g);

/* web_is_own_host, for a request by that listener. */
bool guard_is_own_host(const struct guard *g, unsigned listener, const struct web_request *q);

/* *who: a reference to be given back, NULL for who needs nothing. SLU_EAUTH or
 * SLU_EFORBIDDEN, with a sentence for the caller, and q->refusal; SLU_ENOMEM. */
int guard_check(const struct guard *g, struct guard_request *q,
		struct identity **who, struct slu_err *err);

#endif
