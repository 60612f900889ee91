/*
 * jwt.h - parses a token: RFC 7519 in the compact form of RFC 7515.
 *
 *      eyJhbGciOi... . eyJzdWIiOi... . SflKxwRJSM...
 *        header          claims         signature       of "header.claims" as sent
 *
 * The steps are separate, so that no claim is read before the signature is verified:
 *
 *         jwt_split         the parts and the header
 *         keyring_verify    the signature: keyring.h
 *         jwt_claims        subject, expiry, audience, scopes
 *
 * `alg` of the header is compared with the algorithm of the key and chooses nothing; `kid` is a
 * name in the keyring. Keys and URLs of keys in a header (jwk, jku, x5c, x5u) are ignored. A
 * header with `crit` is refused.
 *
 *  JWT-1  At most JWT_MAX bytes; JSON at most JWT_DEPTH deep; a name that is read may occur
 *         once. Base64 has one valid form.
 *  JWT-2  A refusal before the signature is verified names the fault of the form, and never the
 *         right value.
 */
#ifndef AUTH_JWT_H
#define AUTH_JWT_H

#include "auth/codeq_token.h"
#include "auth/refusal.h"

#include <sluice/err.h>

enum {
	JWT_MAX = 8 * 1024,
	JWT_ROOM = 2 * JWT_MAX + 64, /* bytes to parse a token in */
	JWT_DEPTH = 16,
	JWT_KID_MAX = 256,
	JWT_AUDIENCES = 16
};

/* The known algorithms: a row each. Kind and digest are for key.c. */
/* clang-format off */
#define JWT_ALGS(X) \
	X(HS256, "HS256", HMAC, "SHA256", 32) \
	X(HS384, "HS384", HMAC, "SHA384", 48) \
	X(HS512, "HS512", HMAC, "SHA512", 64) \
	X(RS256, "RS256", RSA,  "SHA256", 256) \
	X(ES256, "ES256", EC,   "SHA256", 32) \
	X(EDDSA, "EdDSA", ED,   NULL,     32)
/* clang-format on */

enum jwt_alg {
	JWT_NO_ALG, /* unknown, and "none" */
#define X(name, ...) JWT_##name,
	JWT_ALGS(X)
#undef X
	JWT_N_ALGS
};

enum jwt_alg jwt_alg_of(struct slice name);
const char *jwt_alg_name(enum jwt_alg alg);

struct jwt {
	struct slice signing;   /* the signed text */
	struct slice signature; /* decoded */
	struct slice claims;    /* still encoded */
	enum jwt_alg alg;
	struct slice kid; /* n 0: none */

	char *room; /* the free part */
	size_t room_left;
};

/* t points into token and room. Returns SLU_EAUTH: JWT-1, JWT-2. */
int jwt_split(struct jwt *t, struct slice token, char room[static JWT_ROOM],
	      struct slu_err *err);

struct jwt_claims {
	struct slice sub;                /* n 0: missing */
	struct slice iss;                /* the same */
	struct slice aud[JWT_AUDIENCES]; /* a string, or an array of strings */
	unsigned n_aud;
	slu_time exp; /* SLU_NEVER: missing */
	slu_time nbf; /* 0: missing */
	slu_time iat; /* when it was issued; 0: missing */
	struct grants grants;
	struct codeq_claims codeq;
};

/* After the signature is verified. c points into the room of t. Returns SLU_EAUTH. */
int jwt_claims(struct jwt_claims *c, struct jwt *t, struct slu_err *err);

/* The rules of a token, besides its signature. */
struct jwt_rules {
	struct slice audience; /* n 0: any */
	struct slice issuer;   /* the same */
	slu_time leeway;       /* for clocks that differ */
	slu_time max_age;      /* most of exp - iat, or of exp - now without iat; 0: any */
};

/* now: on the wall clock. Returns REFUSAL_NONE if the token is valid. A token without `exp` is
 * refused. */
enum refusal jwt_judge(const struct jwt_claims *c, const struct jwt_rules *rules, slu_time now);

/* The same, as SLU_EAUTH with a text. */
int jwt_check(const struct jwt_claims *c, const struct jwt_rules *rules, slu_time now,
	      struct slu_err *err);

#endif
