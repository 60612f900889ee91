/*
 * key.h - one key, and the one algorithm it is for.
 *
 *      secret     HS256 HS384 HS512    a file's bytes, without a newline at its end
 *      RSA        RS256                2048 bits or more
 *      EC P-256   ES256                the signature is r and s, 32 bytes each
 *      Ed25519    EdDSA
 *
 *  K1  A key is for one algorithm, which whoever configured it has named. What a token
 *      says is compared with that; so a public key is never taken for a secret.
 *  K2  A secret has as many bytes as its digest at least (RFC 7518, 3.2).
 *
 * A key is read by any thread once it is made.
 */
#ifndef AUTH_KEY_H
#define AUTH_KEY_H

#include "auth/jwt.h"

#include <openssl/types.h>

enum {
	KEY_FILE_MAX = 64 * 1024,
	KEY_SIGNATURE_MAX = 2048 /* bytes, of an RSA key of 16384 bits */
};

struct key {
	enum jwt_alg alg;
	char kid[JWT_KID_MAX + 1]; /* "": none */
	EVP_PKEY *pkey;            /* NULL: a secret */
	unsigned char *secret;
	size_t n_secret;
};

void key_release(struct key *k); /* of a zeroed one: fine. Wipes the secret */

/* SLU_EINVAL: too long. */
int key_name(struct key *k, struct slice kid, struct slu_err *err);

/* K2. SLU_EINVAL, SLU_ENOMEM. Out of a file a newline at the end is no part of it. */
int key_secret(struct key *k, enum jwt_alg alg, struct slice secret, struct slu_err *err);
int key_secret_bytes(struct key *k, enum jwt_alg alg, struct slice secret,
		     struct slu_err *err);

/* A public key or a certificate as PEM; private_key: a private one, to sign with. SLU_EINVAL:
 * it is none, or one for another algorithm. */
int key_pem(struct key *k, enum jwt_alg alg, struct slice pem, bool private_key,
	    struct slu_err *err);

/* Takes pkey, also when it fails. SLU_EINVAL: it is not for this algorithm. */
int key_take(struct key *k, enum jwt_alg alg, EVP_PKEY *pkey, struct slu_err *err);

bool key_is_secret(enum jwt_alg alg); /* HS256 and the like */

bool key_verify(const struct key *k, struct slice text, struct slice signature);

/* Appends the signature's bytes to out. SLU_EDOWN: it cannot sign. */
int key_sign(const struct key *k, struct slice text, struct buf *out, struct slu_err *err);

#endif
