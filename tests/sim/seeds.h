/*
 * seeds.h - which schedules a simulator runs: NAME_SEEDS=200000 NAME_FROM=1 in the environment.
 *
 *         EACH_SEED(seed, seeds_of("LINE", 3000))
 *                 run(seed);
 */
#ifndef TESTS_SIM_SEEDS_H
#define TESTS_SIM_SEEDS_H

#include <inttypes.h>

struct seeds {
	uint64_t first, n;
};

/* n: how many without NAME_SEEDS. */
struct seeds seeds_of(const char *name, uint64_t n);

#define EACH_SEED(seed, seeds) for (uint64_t seed = (seeds).first; seed < (seeds).first + (seeds).n; seed++)

#endif
