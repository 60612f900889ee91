/*
 * mint.h - make a token, and a key to make tokens with: for development and tests.
 */
#ifndef AUTH_MINT_H
#define AUTH_MINT_H

#include "auth/key.h"

struct mint {
	const char *sub;      /* NULL, as all: not said */
	const char *scope;    /* with spaces between */
	const char *issuer;   /* iss */
	const char *audience; /* aud */
	slu_time now;         /* on the wall clock */
	slu_time ttl;
};

/* Append the token to out. SLU_EDOWN: the key cannot sign; SLU_ENOMEM. */
int mint_token(const struct mint *m, const struct key *k, struct buf *out,
	       struct slu_err *err);

/* Append a fresh key to out: a private key as PEM, or a secret as text with a newline.
 * SLU_EDOWN. */
int mint_key(enum jwt_alg alg, struct buf *out, struct slu_err *err);

/* The public half of a private key, as PEM. */
int mint_public(const struct key *k, struct buf *out, struct slu_err *err);

#endif
