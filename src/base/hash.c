/*
 * hash.c - SipHash-1-3, after "SipHash: a fast short-input PRF" (Aumasson and
 * Bernstein, 2012) with one round a word and three at the end.
 */
#include "base/hash.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

struct sip {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t
rotate(uint64_t v, unsigned bits)
{
	return v << bits | v >> (64 - bits);
}

static inline void
sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v2 += s->v3;
	s->v1 = rotate(s->v1, 13) ^ s->v0;
	s->v3 = rotate(s->v3, 16) ^ s->v2;
	s->v0 = rotate(s->v0, 32);

	s->v2 += s->v1;
	s->v0 += s->v3;
	s->v1 = rotate(s->v1, 17) ^ s->v2;
	s->v3 = rotate(s->v3, 21) ^ s->v0;
	s->v2 = rotate(s->v2, 32);
}

static inline void
sip_word(struct sip *s, uint64_t word)
{
	s->v3 ^= word;
	sip_round(s);
	s->v0 ^= word;
}

static inline uint64_t
load_le64(const unsigned char *p, size_t n)
{
	uint64_t word = 0;

	memcpy(&word, p, n);
	return le64toh(word);
}

static inline struct sip
sip_begin(const struct hash_key *key)
{
	return (struct sip){
		.v0 = key->k0 ^ 0x736f6d6570736575u,
		.v1 = key->k1 ^ 0x646f72616e646f6du,
		.v2 = key->k0 ^ 0x6c7967656e657261u,
		.v3 = key->k1 ^ 0x7465646279746573u,
	};
}

static inline uint64_t
sip_end(struct sip s, uint64_t last)
{
	sip_word(&s, last);
	s.v2 ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

uint64_t
hash_keyed(const struct hash_key *key, const void *data, size_t n)
{
	const unsigned char *p = data;
	struct sip s = sip_begin(key);
	uint64_t last = (uint64_t)n << 56;

	for (size_t left = n; left >= 8; left -= 8, p += 8)
		sip_word(&s, load_le64(p, 8));
	if (n % 8 > 0) /* p may be NULL when there is nothing */
		last |= load_le64(p, n % 8);
	return sip_end(s, last);
}

void
hash_begin(struct hash_stream *s, const struct hash_key *key)
{
	const struct sip sip = sip_begin(key);

	*s = (struct hash_stream){ .v = { sip.v0, sip.v1, sip.v2, sip.v3 } };
}

void
hash_more(struct hash_stream *s, const void *data, size_t n)
{
	struct sip sip = { s->v[0], s->v[1], s->v[2], s->v[3] };
	const unsigned char *p = data;

	for (; n > 0; s->n++, n--) {
		if (s->n % 8 == 0 && n >= 8) {
			sip_word(&sip, load_le64(p, 8));
			p += 8;
			s->n += 7;
			n -= 7;
			continue;
		}
		s->rest[s->n % 8] = *p++;
		if (s->n % 8 == 7)
			sip_word(&sip, load_le64(s->rest, 8));
	}
	memcpy(s->v, (uint64_t[]){ sip.v0, sip.v1, sip.v2, sip.v3 }, sizeof s->v);
}

uint64_t
hash_end(const struct hash_stream *s)
{
	const struct sip sip = { s->v[0], s->v[1], s->v[2], s->v[3] };

	return sip_end(sip, s->n << 56 | load_le64(s->rest, s->n % 8));
}

int
hash_random(void *out, size_t n, struct slu_err *err)
{
	char *p = out;

	while (n > 0) {
		const ssize_t got = getrandom(p, n, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return slu_fail(err, SLU_EDOWN, "getrandom: %m");
		p += got;
		n -= (size_t)got;
	}
	return 0;
}

int
hash_key_init(struct hash_key *key, struct slu_err *err)
{
	return hash_random(key, sizeof *key, err);
}
