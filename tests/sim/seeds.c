#include "seeds.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t
number_of(const char *name, const char *end, uint64_t otherwise)
{
	char variable[64];
	const char *text;

	snprintf(variable, sizeof variable, "%s_%s", name, end);
	text = getenv(variable);
	return text ? strtoull(text, NULL, 10) : otherwise;
}

struct seeds
seeds_of(const char *name, uint64_t n)
{
	return (struct seeds){ number_of(name, "FROM", 1), number_of(name, "SEEDS", n) };
}
