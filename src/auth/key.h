/*
 * key.h - one key, and the one algorithm it is for.
 *
 *      secret     HS256 HS384 HS512    the bytes of a file, without a newline at its end
 *      RSA        RS256                2048 bits or more
 *      EC P-256   ES256                the signature is r and s, 32 bytes each
 *      Ed25519    EdDSA
 *
 *  KEY-1  A key has one algorithm, which the operator has configured. The algorithm of a token
 *         is compared with it, so a public key is never used as a secret.
 *  KEY-2  A secret has at least as many bytes as its digest (RFC 7518, 3.2).
 *
 * Any thread may read a finished key.
 */
#ifndef AUTH_KEY_H
#define AUTH_KEY_H

#include "auth/jwt.h"

#include <openssl/types.h>

enum {
	KEY_FILE_MAX = 64 * 1024,
	KEY_SIGNATURE_MAX = 2048 /* bytes: an RSA key of 16384 bits */
};

struct key {
	enum jwt_alg alg;
	char kid[JWT_KID_MAX + 1]; /* "": none */
	EVP_PKEY *pkey;            /* NULL: a secret */
	unsigned char *secret;
	size_t n_secret;
};

void key_release(struct key *k); /* wipes the secret; a zeroed key is fine */

/* Returns SLU_EINVAL if kid is too long. */
int key_name(struct key *k, struct slice kid, struct slu_err *err);

/* KEY-2. key_secret removes a newline at the end. Return SLU_EINVAL or SLU_ENOMEM. */
int key_secret(struct key *k, enum jwt_alg alg, struct slice secret, struct slu_err *err);
int key_secret_bytes(struct key *k, enum jwt_alg alg, struct slice secret,
		     struct slu_err *err);

/* Reads a key in PEM: a public key or a certificate or, with `private_key`, a private key to sign
 * with. Returns SLU_EINVAL if the key is invalid or for another algorithm. */
int key_pem(struct key *k, enum jwt_alg alg, struct slice pem, bool private_key,
	    struct slu_err *err);

/* Takes pkey, even if it fails. Returns SLU_EINVAL if the key is for another algorithm. */
int key_take(struct key *k, enum jwt_alg alg, EVP_PKEY *pkey, struct slu_err *err);

bool key_is_secret(enum jwt_alg alg); /* HS256, HS384, HS512 */

bool key_verify(const struct key *k, struct slice text, struct slice signature);

/* Appends the bytes of the signature to out. Returns SLU_EDOWN if the key cannot sign. */
int key_sign(const struct key *k, struct slice text, struct buf *out, struct slu_err *err);

#endif
