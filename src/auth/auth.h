/*
 * auth.h - checks a bearer token and finds its identity.
 *
 *      auth_open, auth_commit ──> rules: keys, audience, issuer, leeway
 *                                   │
 *      auth_check(token) ──> cache of this thread ──> or verify with the rules
 *
 *  AUTH-1  Any thread may replace the rules, as a whole. If new rules cannot be loaded, the old
 *          ones stay.
 *  AUTH-2  A thread caches a valid token until the token expires or the rules change: to verify
 *          a public-key signature takes longer than to write a message. At most AUTH_CACHE
 *          tokens per thread.
 *  AUTH-3  No text contains a token or a secret.
 */
#ifndef AUTH_AUTH_H
#define AUTH_AUTH_H

#include "auth/identity.h"
#include "auth/refusal.h"

#include <sluice/err.h>

struct auth;
struct clock;
struct sigv4_request;

enum {
	AUTH_CACHE = 256
};

/* All may be NULL or 0. Without a key no token is valid. */
struct auth_conf {
	char *const *keys; /* [KID@]ALG:FILE, keyring.h */
	unsigned n_keys;
	const char *jwks;     /* a file */
	const char *secret;   /* the secret itself, for HS256 */
	const char *aws_keys; /* a file: auth/aws_keys.h */
	const char *audience;
	const char *issuer;
	slu_time leeway;
	slu_time max_age; /* the longest lifetime of a token; 0: any */
	bool codeq;       /* tokens may have the claims of codeQ: auth/codeq_token.h */
};

/* threads: how many call auth_check, each with its number. Returns SLU_EINVAL or SLU_EDOWN with
 * the file, or SLU_ENOMEM. */
int auth_open(struct auth **out, const struct auth_conf *conf, unsigned threads,
	      struct clock *clock, struct slu_err *err);
void auth_close(struct auth *a); /* NULL is fine */

/* AUTH-1, in two steps: load the new rules, then use or drop them. One thread at a time. Keys
 * may be added if there were none. Returns SLU_EINVAL if the last key would go: that would open
 * the server to everyone. */
int auth_prepare(struct auth *a, const struct auth_conf *conf, struct slu_err *err);
void auth_commit(struct auth *a);
void auth_abandon(struct auth *a);

/* Returns true if there are keys, so that requests need a token. Any thread. */
bool auth_is_on(const struct auth *a);
bool auth_conf_has_keys(const struct auth_conf *conf);

/* Returns what auth_open would return. */
int auth_conf_check(const struct auth_conf *conf, struct slu_err *err);

/* The identity of a token: a reference, which the caller drops. Returns SLU_EAUTH with a text
 * for the client and *why, or SLU_ENOMEM. */
int auth_check(struct auth *a, unsigned thread, struct slice token,
	       struct identity **out, enum refusal *why, struct slu_err *err);

/* Returns SLU_EAUTH unless the Authorization of a signed request (auth/sigv4.h) names a known access key. Says
 * nothing about the signature. */
int auth_knows_key(struct auth *a, struct slice authorization, struct slu_err *err);

/* The identity of the access key of a signed request, as auth_check. */
int auth_check_signature(struct auth *a, unsigned thread, struct slice authorization, const struct sigv4_request *q,
			 struct identity **out, struct slu_err *err);

#endif
