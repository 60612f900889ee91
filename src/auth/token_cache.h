/*
 * token_cache.h - the valid tokens that a thread has seen, with their identities.
 *
 * The cache has sets of a few tokens. A keyed hash of the token chooses the set, so that a
 * client cannot choose tokens that evict others. The whole token is compared. A full set drops
 * the token that was not used for the longest time.
 *
 * For one thread. Zeroed, with a hash key, it is empty.
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
	uint64_t generation; /* of the rules that made these valid */
	uint64_t clock;      /* counts uses */
	struct cached_token tokens[CACHE_SETS][CACHE_WAYS];
};

void token_cache_flush(struct token_cache *c);

/* A new reference. NULL: not cached, or expired. */
struct identity *token_cache_find(struct token_cache *c, struct slice token, slu_time now);

/* Takes a reference. Without memory it caches nothing. */
void token_cache_put(struct token_cache *c, struct slice token, struct identity *id,
		     slu_time until);

#endif
