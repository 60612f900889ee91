/*
 * auth.h - whether a bearer token is good, and whose it is.
 *
 *      auth_open, auth_commit ──> rules: keys, audience, issuer, leeway
 *                                   │
 *      auth_check(token) ──> cache of this thread ──> else verify with the rules
 *
 *  V1  Rules are swapped whole, by any thread. When new ones cannot be loaded the old
 *      ones stay.
 *  V2  A token that was found good is remembered by the thread that asked, until it
 *      ends, or until the rules change: a public-key signature takes longer to verify
 *      than a message takes to be written. At most AUTH_CACHE tokens a thread.
 *  V3  Neither a token nor a secret is ever part of a sentence.
 */
#ifndef AUTH_AUTH_H
#define AUTH_AUTH_H

#include "auth/identity.h"
#include "auth/refusal.h"

#include <sluice/err.h>

struct auth;
struct clock;

enum {
	AUTH_CACHE = 256
};

/* All may be NULL or 0; without a key no token is good. */
struct auth_conf {
	char *const *keys; /* [KID@]ALG:FILE, keyring.h */
	unsigned n_keys;
	const char *jwks;   /* a file */
	const char *secret; /* itself, for HS256 */
	const char *audience;
	const char *issuer;
	slu_time leeway;
	slu_time max_age; /* the longest lifetime of a token; 0: any */
};

/* threads: how many may ask, each with its number. SLU_EINVAL and SLU_EDOWN name the
 * file; SLU_ENOMEM. */
int auth_open(struct auth **out, const struct auth_conf *conf, unsigned threads,
	      struct clock *clock, struct slu_err *err);
void auth_close(struct auth *a); /* NULL is fine */

/* V1, in two steps: load what is new, then use it, or do not. One thread at a time.
 * Keys may be added where there were none; SLU_EINVAL when the last would go: nobody
 * means to open a server to everyone by the way. */
int auth_prepare(struct auth *a, const struct auth_conf *conf, struct slu_err *err);
void auth_commit(struct auth *a);
void auth_abandon(struct auth *a);

/* Both steps. */
int auth_reload(struct auth *a, const struct auth_conf *conf, struct slu_err *err);

/* Are there keys, so that a token is needed? Any thread. */
bool auth_is_on(const struct auth *a);
bool auth_conf_has_keys(const struct auth_conf *conf);

/* Would auth_open take it? Codes as there. */
int auth_conf_check(const struct auth_conf *conf, struct slu_err *err);

/* Whose token this is: a reference, to be given back. SLU_EAUTH, with a sentence for
 * who sent it, and *why; SLU_ENOMEM. */
int auth_check(struct auth *a, unsigned thread, struct slice token,
	       struct identity **out, enum refusal *why, struct slu_err *err);

#endif
