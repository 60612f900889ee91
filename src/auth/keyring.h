/*
 * keyring.h - the keys that tokens are checked with: several at once, for rotation.
 *
 * They come from
 *
 *      files       [KID@]ALG:FILE     HS256:/run/secrets/jwt, 2026@ES256:/etc/sluice/pub.pem
 *      a JWKS      {"keys":[{"kty":"RSA","kid":"a","n":"...","e":"AQAB"}, ...]}
 *
 * A token that names a key (kid) is checked with the keys of that name, or when there is
 * none of that name, with those that have no name; a token that names none with all. In
 * each case with those of its algorithm alone (key.h, K1), and at most KEYRING_TRIES.
 *
 * Filled by one thread, then read by any.
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

/* SLU_EINVAL and SLU_EDOWN name the file; what is in it is never shown. */
int keyring_add_file(struct keyring *r, const char *spec, struct slu_err *err);
int keyring_add_jwks_file(struct keyring *r, const char *path, struct slu_err *err);

/* HS256, out of a setting. name: of the setting, for the sentence. */
int keyring_add_secret(struct keyring *r, const char *name, const char *secret,
		       struct slu_err *err);

/* Keys that are of a type or for a use that is not ours are passed over; a broken one is
 * not. SLU_EINVAL also when none is left. */
int keyring_add_jwks(struct keyring *r, struct slice json, struct slu_err *err);

/* Was it signed by one of ours? SLU_EAUTH. */
int keyring_verify(const struct keyring *r, const struct jwt *t, struct slu_err *err);

/* The next free place, to be filled and then counted: r->n++. NULL: there are too many. */
struct key *keyring_next(struct keyring *r, struct slu_err *err);

/* Split [KID@]ALG:FILE, of which file is the rest of spec. SLU_EINVAL. */
int keyring_spec(const char *spec, struct slice *kid, enum jwt_alg *alg, const char **file,
		 struct slu_err *err);

/* The whole of a small file, to be wiped and freed by secret_free. "-" is stdin. */
int secret_read(const char *path, size_t max, struct buf *out, struct slu_err *err);
void secret_free(struct buf *b);

#endif
