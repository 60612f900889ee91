/*
 * hash.h - three hashes, random bytes and random numbers.
 *
 *   fnv1a32      the same on every machine, in every release and in every language: it
 *                chooses the shard of a key. It is easy to find keys that collide, so
 *                no hash table uses it.
 *   hash_keyed   SipHash-1-3 with a secret key: for maps whose keys come from
 *                outside. It differs between processes, so it is never stored.
 *   hash_number  one multiplication: for maps whose keys the server makes.
 *
 * A separator goes between parts, so that ("ab", "c") differs from ("a", "bc"):
 *
 *         h = fnv1a32_more(FNV1A32_START, ns.p, ns.n);
 *         h = fnv1a32_more(h, "/", 1);
 *         h = fnv1a32_more(h, queue.p, queue.n);
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <sluice/err.h>

#define FNV1A32_START 2166136261u

static inline uint32_t
fnv1a32_more(uint32_t h, const void *p, size_t n)
{
	const unsigned char *bytes = p;

	for (size_t i = 0; i < n; i++)
		h = (h ^ bytes[i]) * 16777619u;
	return h;
}

static inline uint32_t
fnv1a32(const void *p, size_t n)
{
	return fnv1a32_more(FNV1A32_START, p, n);
}

/* Spreads the bits of a number that an outsider cannot choose, as an id that the server made. */
static inline uint64_t
hash_number(uint64_t n)
{
	n *= 0x9e3779b97f4a7c15u;
	return n ^ n >> 32;
}

/* The next number of a cheap sequence (xorshift64), for choices that are no secret. The state begins
 * with any number but 0. */
static inline uint64_t
hash_next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

struct hash_key {
	uint64_t k0, k1;
};

/* Makes a new secret. Returns SLU_EDOWN if the kernel gives no random bytes. */
int hash_key_init(struct hash_key *key, struct slu_err *err);

uint64_t hash_keyed(const struct hash_key *key, const void *data, size_t n);

/* The same, of bytes that arrive piece by piece: hash_begin, hash_more for each piece, hash_end. */
struct hash_stream {
	uint64_t v[4];
	uint64_t n; /* bytes so far */
	unsigned char rest[8];
};

void hash_begin(struct hash_stream *s, const struct hash_key *key);
void hash_more(struct hash_stream *s, const void *data, size_t n);
uint64_t hash_end(const struct hash_stream *s);

/* Fills out with n random bytes of the kernel. Returns SLU_EDOWN as above. */
int hash_random(void *out, size_t n, struct slu_err *err);

#endif
