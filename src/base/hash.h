/*
 * hash.h - two hashes, and where randomness comes from.
 *
 *   fnv1a32      the same on every machine, in every release and in every language:
 *                which shard a key belongs to is decided by it. Anybody can find keys
 *                that collide, so it never guards a table.
 *   hash_keyed   SipHash-1-3 with a secret key: for maps whose keys come from
 *                outside. Differs between processes, so it is never stored.
 *
 * Parts are hashed with a separator, so that ("ab", "c") is not ("a", "bc"):
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

struct hash_key {
	uint64_t k0, k1;
};

/* A fresh secret. SLU_EDOWN when the kernel gives no random bytes. */
int hash_key_init(struct hash_key *key, struct slu_err *err);

uint64_t hash_keyed(const struct hash_key *key, const void *data, size_t n);

/* Fill out with n random bytes of the kernel's. SLU_EDOWN as above. */
int hash_random(void *out, size_t n, struct slu_err *err);

#endif
