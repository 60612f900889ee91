/*
 * jwt.h - a token taken apart: RFC 7519 in the compact form of RFC 7515.
 *
 *      eyJhbGciOi... . eyJzdWIiOi... . SflKxwRJSM...
 *        header          claims         signature       of "header.claims" as sent
 *
 * Reading is not believing. The steps are apart so that nothing of the claims is looked
 * at before the signature is known to be right:
 *
 *         jwt_split    what was sent, and its header
 *         keyring_verify                                          keyring.h
 *         jwt_claims   who, until when, for whom, what
 *
 * Of the header, `alg` is compared with the key's and chooses nothing, and `kid` is a
 * name in our own list. Keys, and addresses of keys, in a header (jwk, jku, x5c, x5u)
 * are not looked at. A header with `crit` asks for something that we do not know.
 *
 *  J1  At most JWT_MAX bytes; JSON at most JWT_DEPTH deep; a name that we read stands
 *      there once. Base64 has no second spelling.
 *  J2  A refusal before the signature is verified says what is wrong with the form, and
 *      never what a right one would be.
 */
#ifndef AUTH_JWT_H
#define AUTH_JWT_H

#include "auth/identity.h"
#include "auth/refusal.h"

#include <sluice/err.h>

enum {
	JWT_MAX = 8 * 1024,
	JWT_ROOM = 2 * JWT_MAX + 64, /* to take one apart in */
	JWT_DEPTH = 16,
	JWT_KID_MAX = 256,
	JWT_AUDIENCES = 16
};

/* The algorithms we know: a row each. Kind and digest are for key.c. */
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
	struct slice signing;   /* what is signed */
	struct slice signature; /* decoded */
	struct slice claims;    /* still encoded */
	enum jwt_alg alg;
	struct slice kid; /* n 0: none */

	char *room; /* what is left of it */
	size_t room_left;
};

/* Points into token and room. SLU_EAUTH: J1, J2. */
int jwt_split(struct jwt *t, struct slice token, char room[static JWT_ROOM],
	      struct slu_err *err);

struct jwt_claims {
	struct slice sub;                /* n 0: not said */
	struct slice iss;                /* the same */
	struct slice aud[JWT_AUDIENCES]; /* one text, or an array of them */
	unsigned n_aud;
	slu_time exp; /* SLU_NEVER: not said */
	slu_time nbf; /* 0: not said */
	slu_time iat; /* when it was issued; 0: not said */
	struct grants grants;
};

/* After the signature. Points into the room of t. SLU_EAUTH. */
int jwt_claims(struct jwt_claims *c, struct jwt *t, struct slu_err *err);

/* What a token must be, beside signed. */
struct jwt_rules {
	struct slice audience; /* n 0: any */
	struct slice issuer;   /* the same */
	slu_time leeway;       /* clocks differ */
	slu_time max_age;      /* of exp - iat, or without iat of exp - now; 0: any */
};

/* At this moment of the wall clock. REFUSAL_NONE: it will do. A token without an end is
 * refused. */
enum refusal jwt_judge(const struct jwt_claims *c, const struct jwt_rules *rules, slu_time now);

/* The same as SLU_EAUTH and a sentence. */
int jwt_check(const struct jwt_claims *c, const struct jwt_rules *rules, slu_time now,
	      struct slu_err *err);

#endif
