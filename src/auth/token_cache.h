/*
 * token_cache.h - the tokens that were found good, and whose they are.
 *
 * Sets of a few places each; a keyed hash of the token says which set, so that nobody
 * can choose tokens that push out others'. The whole token is compared. In a full set
 * the one that was not asked for longest goes.
 *
 * One thread's. Zeroed, with a hash key, is empty.
 */
#ifndef AUTH_TOKEN_CACHE_H
#define AUTH_TOKEN_CACHE_H

#include "auth/auth.h"
#include "base/hash.h"

enum {
	CACHE_WAYS = 4,
	CACHE_SETS = AUTH_CACHE / CACHE_WAYS
};

struct cached_token {
	char *text; /* NULL: none */
	size_t n;
	struct identity *id;
	slu_time until; /* on the wall clock */
	uint64_t used;
};

struct token_cache {
	struct hash_key key;
	uint64_t generation; /* of the rules that these were good by */
	uint64_t clock;      /* one more at each use */
	struct cached_token tokens[CACHE_SETS][CACHE_WAYS];
};

void token_cache_flush(struct token_cache *c);

/* A new reference, or NULL: not there, or at its end. */
struct identity *token_cache_find(struct token_cache *c, struct slice token, slu_time now);

/* Takes a reference of its own; without memory nothing is kept. */
void token_cache_put(struct token_cache *c, struct slice token, struct identity *id,
		     slu_time until);

#endif
