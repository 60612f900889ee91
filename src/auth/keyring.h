/*
 * keyring.h - the keys that verify tokens: several at once, for rotation.
 *
 * Keys come from
 *
 *      files       [KID@]ALG:FILE     HS256:/run/secrets/jwt, 2026@ES256:/etc/sluice/pub.pem
 *      a JWKS      {"keys":[{"kty":"RSA","kid":"a","n":"...","e":"AQAB"}, ...]}
 *
 * A token with a kid is verified with the keys of that name, or with the keys without a name if
 * no key has it. A token without a kid is verified with all keys. Only keys of its algorithm
 * count (KEY-1), and at most KEYRING_TRIES of them.
 *
 * One thread fills the keyring; then any thread reads it.
 */
#ifndef AUTH_KEYRING_H
#define AUTH_KEYRING_H

#include "auth/key.h"

enum {
	KEYRING_MAX = 64,
	KEYRING_TRIES = 8,
	KEYRING_JWKS_MAX = 256 * 1024
};

struct keyring {
	struct key keys[KEYRING_MAX];
	unsigned n;
};

struct keyring *keyring_new(void); /* NULL: no memory */
void keyring_free(struct keyring *r);

/* Add the key of a file, and the keys of a JWKS. Return SLU_EINVAL or SLU_EDOWN; the text names the
 * file and never shows its content. */
int keyring_add_file(struct keyring *r, const char *spec, struct slu_err *err);
int keyring_add_jwks_file(struct keyring *r, const char *path, struct slu_err *err);

/* Adds a secret for HS256 from a setting; name: the setting, for the error. */
int keyring_add_secret(struct keyring *r, const char *name, const char *secret,
		       struct slu_err *err);

/* Ignores keys of an unknown type or use. Returns SLU_EINVAL for an invalid key, and if no key
 * is left. */
int keyring_add_jwks(struct keyring *r, struct slice json, struct slu_err *err);

/* Returns SLU_EAUTH unless one of the keys signed t. */
int keyring_verify(const struct keyring *r, const struct jwt *t, struct slu_err *err);

/* The next free key, which the caller fills and then counts: r->n++. Returns NULL if the keyring is full. */
struct key *keyring_next(struct keyring *r, struct slu_err *err);

/* Reads a small file; secret_free wipes and frees it. "-" is stdin. */
int secret_read(const char *path, size_t max, struct buf *out, struct slu_err *err);
void secret_free(struct buf *b);

#endif
