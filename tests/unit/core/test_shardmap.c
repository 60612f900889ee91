#include "supplier_contract.h"

#include "core/shardmap.h"

#include <malloc.h>

static const char *const shards[] = { "primary", "workload-heavy", "notification",
				      "premium-shard" };

static const struct supplier_rule rules[] = {
	{ SUPPLIER_COMMAND, "generate_master", "workload-heavy" },
	{ SUPPLIER_COMMAND, "send_email", "notification" },
	{ SUPPLIER_TENANT, "tenant-premium", "premium-shard" },
};

static const struct supplier_rule ranges[] = {
	{ SUPPLIER_FROM, "n", "notification" },
	{ SUPPLIER_FROM, "b", "workload-heavy" },
};

static const struct supplier_conf confs[] = {
	{ .standard = "primary" },
	{ .kind = "static", .standard = "primary", .rules = rules, .n_rules = COUNT(rules) },
	{ .kind = "hash", .shards = shards, .n_shards = COUNT(shards) },
	{ .kind = "ring", .shards = shards, .n_shards = COUNT(shards) },
	{ .kind = "range", .standard = "primary", .rules = ranges, .n_rules = COUNT(ranges) },
};

enum {
	BY_DEFAULT,
	BY_RULES,
	BY_HASH,
	BY_RING,
	BY_RANGE
};

static struct supplier *
made(const struct supplier_conf *conf)
{
	struct supplier *s = NULL;

	CHECK_EQ(0, supplier_new(&s, conf, NULL));
	return s;
}

static struct shardmap *
map_of(struct supplier *now, struct supplier *before, uint64_t version)
{
	const struct shardmap_conf conf = { shards, COUNT(shards), now, before, version };
	struct shardmap *m = NULL;

	CHECK_EQ(0, shardmap_new(&m, &conf, NULL));
	return m;
}

/* "workload-heavy by command". */
static const char *
current(const struct shardmap *m, const char *space, const char *queue)
{
	static char text[256];
	struct shard_choice one;
	struct slu_err err;

	if (shardmap_current(m, slice_of(space), slice_of(queue), &one, &err))
		(void)snprintf(text, sizeof text, "%s", err.text);
	else
		(void)snprintf(text, sizeof text, "%s by %s", shardmap_name(m, one.shard),
			       one.rule);
	return text;
}

/* ---- The contract, for each of ours ---- */

static const struct supplier_conf *making;

static int
make(struct supplier **out, struct slu_err *err)
{
	return supplier_new(out, making, err);
}

/* SH-13, SH-14, SH-15, SH-104 */
TEST(every_supplier_keeps_the_contract)
{
	EACH(i, confs) {
		making = &confs[i];
		supplier_contract(make);
	}
}

/* One that others bring. It knows two regions, and refuses what is in neither. */
static int
region_current(const struct supplier *s, struct slice space, struct slice queue,
	       struct supplied *out, struct slu_err *err)
{
	(void)s, (void)queue;
	if (space.p[space.n - 1] == '9')
		return slu_fail(err, SLU_EDOWN, "tenant %.*s has no region", (int)space.n,
				space.p);
	*out = (struct supplied){ space.n % 2 ? "primary" : "elsewhere", "region" };
	return 0;
}

/* SH-16: none at all is the default. */
static int
region_all(const struct supplier *s, struct slice space, struct slice queue,
	   struct supplied out[SUPPLIED_MAX], unsigned *n, struct slu_err *err)
{
	(void)s, (void)space, (void)queue, (void)out, (void)err;
	*n = 0;
	return 0;
}

static void
region_describe(const struct supplier *s, struct buf *out)
{
	(void)s;
	buf_puts(out, "region 1\n");
}

static void
region_free(struct supplier *s)
{
	(void)s;
}

static const struct supplier_ops region_ops = { "region", region_current, region_all,
						region_describe, region_free };

static int
make_region(struct supplier **out, struct slu_err *err)
{
	static struct supplier region = { &region_ops };

	(void)err;
	*out = &region;
	return 0;
}

/* SH-13, SH-104, SH-F3 */
TEST(another_supplier_can_be_plugged_in)
{
	supplier_contract(make_region);
}

/* SH-31, SH-32 */
TEST(what_a_supplier_cannot_say_is_refused_and_never_the_default)
{
	struct supplier *s = NULL;
	struct shardmap *m;
	struct shard_choice all[SUPPLIED_MAX];
	struct slu_err err;
	unsigned n;

	(void)make_region(&s, NULL);
	m = map_of(s, NULL, 1);
	CHECK_STR("primary by region", current(m, "abc", "q"));
	CHECK_STR("unknown shard: elsewhere", current(m, "ab", "q"));
	CHECK_STR("shard resolution: tenant t9 has no region", current(m, "t9", "q"));
	CHECK_EQ(SLU_EDOWN, shardmap_all(m, SLICE("t9"), SLICE("q"), all, &n, &err));
	CHECK_EQ(0, n);
	CHECK_EQ(0, shardmap_all(m, SLICE("abc"), SLICE("q"), all, &n, &err));
	CHECK_EQ(1, n);
	shardmap_free(m);
}

/* ---- Which rule wins ---- */

/* SH-16, SH-23, SH-24, SH-25 */
TEST(a_tenant_goes_before_a_command_and_a_command_before_the_default)
{
	static const struct {
		const char *space, *queue, *want;
	} rows[] = {
		{ "other", "unknown", "primary by default" },
		{ "other", "send_email", "notification by command" },
		{ "other", "generate_master", "workload-heavy by command" },
		{ "tenant-premium", "unknown", "premium-shard by tenant" },
		{ "tenant-premium", "send_email", "premium-shard by tenant" },
		{ "send_email", "tenant-premium", "primary by default" },
		{ "tenant-premiu", "send_emai", "primary by default" },
		{ "tenant-premium2", "send_email2", "primary by default" },
	};
	struct shardmap *m = map_of(made(&confs[BY_RULES]), NULL, 1);

	EACH(i, rows)
		CHECK_STR(rows[i].want, current(m, rows[i].space, rows[i].queue));
	shardmap_free(m);
}

/* SH-33 */
TEST(without_a_supplier_there_is_one_shard)
{
	struct shardmap *m = map_of(made(&confs[BY_DEFAULT]), NULL, 0);

	CHECK_STR("primary by default", current(m, "tenant-premium", "send_email"));
	shardmap_free(m);
}

/* SH-F2 */
TEST(a_range_begins_at_its_name_and_ends_at_the_next)
{
	static const struct {
		const char *queue, *want;
	} rows[] = {
		{ "a", "primary by default" },
		{ "azzz", "primary by default" },
		{ "b", "workload-heavy by range" },
		{ "mzz", "workload-heavy by range" },
		{ "n", "notification by range" },
		{ "z", "notification by range" },
	};
	struct supplier_conf by_tenant = confs[BY_RANGE];
	struct shardmap *m = map_of(made(&confs[BY_RANGE]), NULL, 1);

	EACH(i, rows)
		CHECK_STR(rows[i].want, current(m, "zzz", rows[i].queue));
	shardmap_free(m);
	by_tenant.by_tenant = true;
	m = map_of(made(&by_tenant), NULL, 1);
	CHECK_STR("primary by default", current(m, "acme", "zzz"));
	CHECK_STR("notification by range", current(m, "zzz", "acme"));
	shardmap_free(m);
}

/* The parts are hashed with a separator, and the bytes are those of every release. */
TEST(a_hash_chooses_by_namespace_and_queue)
{
	struct shardmap *m = map_of(made(&confs[BY_HASH]), NULL, 1);
	unsigned seen[COUNT(shards)] = { 0 };
	char queue[32];

	for (unsigned i = 0; i < 4000; i++) {
		struct shard_choice one;

		(void)snprintf(queue, sizeof queue, "q%u", i);
		CHECK_EQ(0, shardmap_current(m, SLICE("a"), slice_of(queue), &one, NULL));
		seen[one.shard]++;
	}
	EACH(i, seen)
		CHECK(seen[i] > 700 && seen[i] < 1300);
	shardmap_free(m);
}

/* SH-F1: of n queues, how many live elsewhere once there is a fourth shard? */
static unsigned
moved(const char *kind, unsigned n)
{
	struct supplier_conf conf = { .kind = kind, .shards = shards, .n_shards = 3 };
	struct shardmap *three = map_of(made(&conf), NULL, 1), *four;
	unsigned differ = 0;
	char queue[32];

	conf.n_shards = 4;
	four = map_of(made(&conf), NULL, 2);
	for (unsigned i = 0; i < n; i++) {
		struct shard_choice before, after;

		(void)snprintf(queue, sizeof queue, "queue-%u", i);
		CHECK_EQ(0, shardmap_current(three, SLICE("t"), slice_of(queue), &before, NULL));
		CHECK_EQ(0, shardmap_current(four, SLICE("t"), slice_of(queue), &after, NULL));
		differ += before.shard != after.shard;
	}
	shardmap_free(three);
	shardmap_free(four);
	return differ;
}

TEST(one_shard_more_moves_a_share_of_a_ring_and_most_of_a_hash)
{
	const unsigned by_ring = moved("ring", 10000), by_hash = moved("hash", 10000);

	CHECK(by_ring > 1500 && by_ring < 3500); /* a quarter, more or less */
	CHECK(by_hash > 6000);
}

/* ---- A move ---- */

/* SH-19, SH-51: between two shards. Neither is the default. */
TEST(while_a_queue_moves_it_is_found_on_both_shards)
{
	static const struct supplier_rule old[] = {
		{ SUPPLIER_COMMAND, "send_email", "workload-heavy" },
		{ SUPPLIER_COMMAND, "generate_master", "workload-heavy" },
	};
	const struct supplier_conf before = { .kind = "static", .standard = "primary", .rules = old, .n_rules = COUNT(old) };
	struct shardmap *m = map_of(made(&confs[BY_RULES]), made(&before), 2);
	struct shard_choice all[SUPPLIED_MAX];
	unsigned n;

	CHECK_EQ(0, shardmap_all(m, SLICE("t"), SLICE("send_email"), all, &n, NULL));
	CHECK_EQ(2, n);
	CHECK_STR("notification", shardmap_name(m, all[0].shard));
	CHECK_STR("workload-heavy", shardmap_name(m, all[1].shard));
	CHECK_STR("previous", all[1].rule);
	CHECK_EQ(0, shardmap_all(m, SLICE("t"), SLICE("generate_master"), all, &n, NULL));
	CHECK_EQ(1, n);
	shardmap_free(m);
}

/* SH-61 */
TEST(maps_differ_in_their_hash)
{
	static const struct supplier_rule turned[] = {
		{ SUPPLIER_TENANT, "tenant-premium", "premium-shard" },
		{ SUPPLIER_COMMAND, "send_email", "notification" },
		{ SUPPLIER_COMMAND, "generate_master", "workload-heavy" },
	};
	struct supplier_conf same = confs[BY_RULES], other = confs[BY_RULES];
	struct shardmap *maps[5];

	same.rules = turned;
	other.standard = "notification";
	maps[0] = map_of(made(&confs[BY_RULES]), NULL, 7);
	maps[1] = map_of(made(&same), NULL, 7);
	maps[2] = map_of(made(&other), NULL, 7);
	maps[3] = map_of(made(&same), NULL, 8);
	maps[4] = map_of(made(&same), made(&other), 7);
	CHECK(shardmap_hash(maps[0]) == shardmap_hash(maps[1]));
	for (int i = 2; i < 5; i++)
		CHECK(shardmap_hash(maps[0]) != shardmap_hash(maps[i]));
	CHECK_EQ(8, shardmap_version(maps[3]));
	EACH(i, maps)
		shardmap_free(maps[i]);
}

/* ---- What is refused ---- */

TEST(rules_that_contradict_each_other_are_named)
{
	static const struct supplier_rule twice[] = {
		{ SUPPLIER_COMMAND, "mail", "primary" },
		{ SUPPLIER_TENANT, "mail", "primary" },
		{ SUPPLIER_COMMAND, "mail", "notification" },
	};
	const struct supplier_conf bad[] = {
		{ .kind = "static", .standard = "primary", .rules = twice, .n_rules = 3 },
		{ .kind = "static" },
		{ .kind = "hash" },
		{ .kind = "magic", .standard = "primary" },
	};
	static const char *const why[] = { "invalid command mail; expected one shard", "without a shard",
					   "without a shard", "invalid supplier magic" };

	EACH(i, bad) {
		struct supplier *s = NULL;
		struct slu_err err;

		CHECK_EQ(SLU_EINVAL, supplier_new(&s, &bad[i], &err), why[i]);
		CHECK_CONTAINS(why[i], err.text);
	}
}

TEST(names_of_shards_are_sound_and_differ)
{
	static const char *const bad[][2] = { { "a", "a" }, { "a", "" }, { "a", "b/c" } };

	EACH(i, bad) {
		struct shardmap_conf conf = { bad[i], 2, made(&confs[BY_DEFAULT]), NULL, 1 };
		struct shardmap *m = NULL;
		struct slu_err err;

		CHECK_EQ(SLU_EINVAL, shardmap_new(&m, &conf, &err));
		CHECK_CONTAINS("shard", err.text);
	}
}

/* SH-98 */
TEST(a_thousand_mappings_take_less_than_a_megabyte)
{
	static struct supplier_rule many[1000];
	static char names[COUNT(many)][32];
	const struct supplier_conf conf = { .kind = "static", .standard = "primary", .rules = many, .n_rules = COUNT(many) };
	struct shardmap *m;
	size_t before;

	EACH(i, many) {
		(void)snprintf(names[i], sizeof names[i], "command-number-%zu", i);
		many[i] = (struct supplier_rule){ SUPPLIER_COMMAND, names[i], shards[i % 4] };
	}
	before = mallinfo2().uordblks;
	m = map_of(made(&conf), NULL, 1);
	CHECK(mallinfo2().uordblks - before < 1 << 20);
	EACH(i, many)
		CHECK_CONTAINS("by command", current(m, "t", names[i]));
	shardmap_free(m);
}

TORTURE(a_map_without_memory)
{
	struct supplier *now = NULL, *before = NULL;
	struct shardmap *m = NULL;

	if (supplier_new(&now, &confs[BY_RING], NULL))
		return;
	if (supplier_new(&before, &confs[BY_RULES], NULL)) {
		supplier_free(now);
		return;
	}
	if (shardmap_new(&m, &(struct shardmap_conf){ shards, COUNT(shards), now, before, 1 },
			 NULL) == 0)
		shardmap_free(m);
}
