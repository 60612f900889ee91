/*
 * token_fixture.h - keys, and tokens signed with them, also invalid ones.
 */
#ifndef TESTS_TOKEN_FIXTURE_H
#define TESTS_TOKEN_FIXTURE_H

#include "test.h"

#include "auth/keyring.h"
#include "auth/mint.h"
#include "base/base64.h"

#include <stdio.h>

#define NOW (1800000000 * SLU_SEC)

enum {
	TOKEN_TEXT = 3 * JWT_MAX
};

static struct keyring *ring;
static struct key *fx_keys[64]; /* those that fx_key made */
static unsigned fx_n_keys;

static inline void
fx_start(void)
{
	ring = keyring_new();
}

static inline void
fx_end(void)
{
	while (fx_n_keys > 0)
		key_release(fx_keys[--fx_n_keys]);
	keyring_free(ring);
	ring = NULL;
}

static inline void
fx_own(struct key *k)
{
	key_release(k); /* of an earlier call */
	*k = (struct key){ 0 };
	for (unsigned i = 0; i < fx_n_keys; i++)
		if (fx_keys[i] == k)
			return;
	CHECK(fx_n_keys < COUNT(fx_keys));
	fx_keys[fx_n_keys++] = k;
}

/* A fresh key to sign with; its public half, or the secret, goes into r. It is static: it is
 * released after the test. */
static inline void
fx_key(struct key *k, struct keyring *r, enum jwt_alg alg, const char *kid)
{
	struct buf text, public;
	struct key *mine;

	buf_init(&text, KEY_FILE_MAX);
	buf_init(&public, KEY_FILE_MAX);
	fx_own(k);
	CHECK_EQ(0, mint_key(alg, &text, NULL));
	CHECK_EQ(0, key_name(k, slice_of(kid), NULL));
	if (key_is_secret(alg)) {
		CHECK_EQ(0, key_secret(k, alg, buf_slice(&text), NULL));
	} else {
		CHECK_EQ(0, key_pem(k, alg, buf_slice(&text), true, NULL));
		CHECK_EQ(0, mint_public(k, &public, NULL));
	}
	mine = r ? keyring_next(r, NULL) : NULL;
	if (mine) {
		CHECK_EQ(0, key_name(mine, slice_of(kid), NULL));
		CHECK_EQ(0, key_is_secret(alg) ? key_secret(mine, alg, buf_slice(&text), NULL)
					       : key_pem(mine, alg, buf_slice(&public), false, NULL));
		r->n++;
	}
	buf_release(&text);
	buf_release(&public);
}

static inline size_t
fx_encode(char *out, struct slice bytes)
{
	base64url_encode(bytes, out);
	return base64url_text(bytes.n);
}

/* Any header and claims, signed by k; NULL: with no signature. */
static inline struct slice
fx_token(const struct key *k, const char *header, const char *claims)
{
	static char tokens[4][TOKEN_TEXT];
	static unsigned next;
	char *const out = tokens[next++ % 4];
	struct buf sig;
	size_t n;

	CHECK(base64url_text(strlen(header)) + base64url_text(strlen(claims)) + 4096 < TOKEN_TEXT);
	n = fx_encode(out, slice_of(header));
	out[n++] = '.';
	n += fx_encode(out + n, slice_of(claims));
	buf_init(&sig, KEY_SIGNATURE_MAX);
	if (k)
		CHECK_EQ(0, key_sign(k, (struct slice){ out, n }, &sig, NULL));
	out[n++] = '.';
	n += fx_encode(out + n, buf_slice(&sig));
	buf_release(&sig);
	out[n] = '\0';
	return (struct slice){ out, n };
}

/* All the steps. */
static inline int
fx_verify(const struct keyring *r, struct slice token, const struct jwt_rules *rules,
	  struct jwt_claims *claims, struct slu_err *err)
{
	static char room[JWT_ROOM];
	struct jwt t;
	int rc;

	rc = jwt_split(&t, token, room, err);
	if (!rc)
		rc = keyring_verify(r, &t, err);
	if (!rc)
		rc = jwt_claims(claims, &t, err);
	if (!rc)
		rc = jwt_check(claims, rules, NOW, err);
	return rc;
}

#endif
