/*
 * mint.h - makes tokens, and keys to sign them, for development and tests.
 */
#ifndef AUTH_MINT_H
#define AUTH_MINT_H

#include "auth/key.h"

/* The claims of a token. The token lacks a claim whose text is NULL. */
struct mint {
	const char *sub;
	const char *scope;    /* separated by spaces */
	const char *issuer;   /* iss */
	const char *audience; /* aud */
	slu_time now;         /* on the wall clock */
	slu_time ttl;
};

/* Appends the token to out. Returns SLU_EDOWN if the key cannot sign, or SLU_ENOMEM. */
int mint_token(const struct mint *m, const struct key *k, struct buf *out,
	       struct slu_err *err);

/* Appends a new key to out: a private key in PEM, or a secret as text with a newline. Returns
 * SLU_EDOWN. */
int mint_key(enum jwt_alg alg, struct buf *out, struct slu_err *err);

/* Appends the public key of a private key in PEM. */
int mint_public(const struct key *k, struct buf *out, struct slu_err *err);

#endif
