/*
 * dice.h - random choices from a seed (splitmix64). The same seed makes the same choices on every
 * machine. Not for secrets.
 */
#ifndef TORTURE_DICE_H
#define TORTURE_DICE_H

#include <stdbool.h>
#include <stdint.h>

struct dice {
	uint64_t state;
};

static inline uint64_t
dice_next(struct dice *d)
{
	uint64_t z = d->state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* Separate dice for a run, a round and a client. */
static inline struct dice
dice_of(uint64_t seed, uint64_t round, uint64_t who)
{
	struct dice d = { seed };

	d.state = dice_next(&d) ^ round;
	d.state = dice_next(&d) ^ who;
	return d;
}

/* 0 .. n - 1 */
static inline uint64_t
dice_below(struct dice *d, uint64_t n)
{
	return dice_next(d) % n;
}

static inline bool
dice_chance(struct dice *d, unsigned percent)
{
	return dice_below(d, 100) < percent;
}

#endif
