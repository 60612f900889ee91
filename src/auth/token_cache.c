#include "auth/token_cache.h"

#include "base/mem.h"

static void
forget(struct cached_token *t)
{
	identity_unref(t->id);
	mem_free(t->text);
	*t = (struct cached_token){ 0 };
}

void
token_cache_flush(struct token_cache *c)
{
	for (unsigned set = 0; set < CACHE_SETS; set++)
		for (unsigned i = 0; i < CACHE_WAYS; i++)
			forget(&c->tokens[set][i]);
}

static struct cached_token *
set_of(struct token_cache *c, struct slice token)
{
	return c->tokens[hash_keyed(&c->key, token.p, token.n) % CACHE_SETS];
}

/* In a time that does not depend on where they differ, as CRYPTO_memcmp, but eight bytes
 * at a time: this is done for every request. */
static bool
same_bytes(const char *a, const char *b, size_t n)
{
	uint64_t differ = 0;

	for (; n >= 8; n -= 8, a += 8, b += 8) {
		uint64_t x, y;

		memcpy(&x, a, 8);
		memcpy(&y, b, 8);
		differ |= x ^ y;
	}
	for (; n > 0; n--)
		differ |= (uint64_t)(*a++ ^ *b++);
	return differ == 0;
}

static bool
is_it(const struct cached_token *t, struct slice token)
{
	return t->text && t->n == token.n && same_bytes(t->text, token.p, token.n);
}

struct identity *
token_cache_find(struct token_cache *c, struct slice token, slu_time now)
{
	struct cached_token *const set = set_of(c, token);

	for (unsigned i = 0; i < CACHE_WAYS; i++) {
		if (!is_it(&set[i], token))
			continue;
		if (now >= set[i].until) {
			forget(&set[i]);
			return NULL;
		}
		set[i].used = ++c->clock;
		return identity_ref(set[i].id);
	}
	return NULL;
}

void
token_cache_put(struct token_cache *c, struct slice token, struct identity *id,
		slu_time until)
{
	struct cached_token *const set = set_of(c, token);
	struct cached_token *oldest = set;
	char *const text = mem_alloc(token.n);

	if (!text)
		return;
	memcpy(text, token.p, token.n);
	for (unsigned i = 1; i < CACHE_WAYS; i++)
		if (set[i].used < oldest->used) /* 0: a free place */
			oldest = &set[i];
	forget(oldest);
	*oldest = (struct cached_token){ .text = text,
					 .n = token.n,
					 .id = identity_ref(id),
					 .until = until,
					 .used = ++c->clock };
}
