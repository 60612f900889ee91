#include "base/mem.h"
#include "bench/bench.h"
#include "core/shardmap.h"
#include "shards/shardload.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

enum {
	SHARDS = 8,
	NAME = 40,
	ASKED = 2000000
};

struct map_names {
	char (*name)[NAME]; /* of tenants and commands */
	struct supplier_rule *rules;
	size_t n;
};

static int
names_make(struct map_names *s, size_t n, const char *const *shards, struct slu_err *err)
{
	*s = (struct map_names){ .n = n };
	s->name = mem_array(n, NAME);
	s->rules = mem_array(n, sizeof *s->rules);
	if (!s->name || !s->rules)
		return slu_fail(err, SLU_ENOMEM, "no memory");
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(s->name[i], NAME, "%s-%zu", i % 2 ? "command" : "tenant", i);
		s->rules[i] = (struct supplier_rule){ i % 2 ? SUPPLIER_COMMAND : SUPPLIER_TENANT,
						      s->name[i], shards[i % SHARDS] };
	}
	return 0;
}

static void
names_release(struct map_names *s)
{
	mem_free(s->name);
	mem_free(s->rules);
}

/* Nanoseconds each: half of them are mapped, half go to the default. */
static double
ask(const struct shardmap *m, const struct map_names *s)
{
	const slu_time began = bench_now();
	uint64_t sum = 0;

	for (size_t i = 0; i < ASKED; i++) {
		const char *const name = s->name[(i * 7919) % s->n];
		struct shard_choice c = { 0 };

		(void)shardmap_current(m, SLICE("somebody-else"), slice_of(name), &c, NULL);
		sum += c.shard;
	}
	return sum == UINT64_MAX ? 0 : (double)(bench_now() - began) / ASKED;
}

int
shardload_map(const struct shardload *o, struct slu_err *err)
{
	static const char *const shards[SHARDS] = { "default", "s1", "s2", "s3", "s4", "s5", "s6", "s7" };
	struct map_names names;
	struct supplier *now = NULL;
	struct shardmap *map = NULL;
	size_t before;
	int rc = names_make(&names, o->rules ? o->rules : 1, shards, err);

	before = mallinfo2().uordblks;
	if (!rc)
		rc = supplier_new(&now,
				  &(struct supplier_conf){ .kind = "static",
							   .standard = "default",
							   .rules = names.rules,
							   .n_rules = (unsigned)names.n },
				  err);
	if (!rc)
		rc = shardmap_new(&map, &(struct shardmap_conf){ shards, SHARDS, now, NULL, 1 }, err);
	if (!rc)
		printf("{\"rules\":%zu,\"bytes\":%zu,\"ns\":%.1f}\n", names.n,
		       mallinfo2().uordblks - before, ask(map, &names));
	shardmap_free(map);
	names_release(&names);
	return rc;
}
