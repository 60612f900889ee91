#include "test.h"

#include "api/ratelimit.h"
#include "engine/op.h"

#include <pthread.h>
#include <stdio.h>

static struct ratelimit g;

static void
start(uint32_t rate, uint32_t burst)
{
	struct slu_err err;

	CHECK_EQ(0, ratelimit_init(&g, &err));
	atomic_store(&g.rate, rate);
	atomic_store(&g.burst, burst);
}

static int
take(const char *space, uint32_t n, slu_time now)
{
	struct slu_err err = { 0 };
	const int rc = ratelimit_take(&g, slice_of(space), n, now, &err);

	if (rc) {
		CHECK_STR("rate", err.limit);
		CHECK(err.retry_after > 0);
	}
	return rc;
}

TEST(without_a_rate_everything_passes)
{
	start(0, 0);
	for (int i = 0; i < 1000; i++)
		CHECK_EQ(0, take("a", UINT32_MAX, 0));
}

/* MQ-43 */
TEST(every_namespace_has_a_bucket_of_its_own)
{
	char name[16];

	start(1, 2);
	for (int i = 0; i < 500; i++) {
		(void)snprintf(name, sizeof name, "n%d", i);
		CHECK_EQ(0, take(name, 2, SLU_SEC), name);
		CHECK_EQ(SLU_EBUSY, take(name, 1, SLU_SEC), name);
	}
	CHECK_EQ(0, take("n7", 2, 3 * SLU_SEC));
}

/* RATELIMIT-2 */
TEST(a_flood_of_namespaces_gets_no_more_than_there_are_buckets)
{
	enum {
		NAMES = 20 * RATELIMIT_SLOTS
	};
	char name[16];
	int taken = 0;

	start(1, 1);
	for (int i = 0; i < NAMES; i++) {
		(void)snprintf(name, sizeof name, "n%d", i);
		taken += take(name, 1, SLU_SEC) == 0;
	}
	CHECK(taken <= RATELIMIT_SLOTS + 1);
	CHECK(taken > RATELIMIT_SLOTS / 2);
}

/* RATELIMIT-1 */
TEST(a_bucket_that_is_full_again_is_free_for_another_namespace)
{
	char name[16];

	start(1, 1);
	for (int round = 0; round < 40; round++)
		for (int i = 0; i < RATELIMIT_SLOTS / 8; i++) {
			(void)snprintf(name, sizeof name, "r%d.%d", round, i);
			CHECK_EQ(0, take(name, 1, (slu_time)round * 2 * SLU_SEC), name);
		}
}

static void *
hammer(void *arg)
{
	_Atomic int *const taken = arg;
	char name[16];

	for (int i = 0; i < 4000; i++) {
		(void)snprintf(name, sizeof name, "n%d", i % 4);
		if (ratelimit_take(&g, slice_of(name), 1, SLU_SEC, NULL) == 0)
			atomic_fetch_add(taken, 1);
	}
	return NULL;
}

TEST(threads_that_share_a_bucket_take_no_more_than_it_has)
{
	enum {
		THREADS = 4
	};
	pthread_t threads[THREADS];
	_Atomic int taken = 0;

	start(1, 1000);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(0, pthread_create(&threads[i], NULL, hammer, &taken));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(4 * 1000, taken);
}

/* A call of puts into these namespaces, a letter each, over two shards. */
static int
pass(const char *first, const char *second, const struct op **failed)
{
	static struct op_put puts[2][8];
	static struct op ops[2];
	const char *const spaces[] = { first, second };
	struct slu_err err = { 0 };
	struct op *found;
	int rc;

	for (int k = 0; k < 2; k++) {
		op_init(&ops[k], OP_ENQUEUE, (struct slice){ 0 }, SLICE("q"), NULL, NULL);
		ops[k].puts = puts[k];
		ops[k].n_puts = (uint32_t)strlen(spaces[k]);
		for (uint32_t i = 0; i < ops[k].n_puts; i++)
			puts[k][i] = (struct op_put){
				.m = { .space = { &spaces[k][i], 1 }, .payload_size = i }
			};
	}
	rc = ratelimit_pass(&g, ops, 2, SLU_SEC, &found, &err);
	*failed = found;
	return rc;
}

TEST(a_call_is_taken_whole_or_costs_nothing)
{
	const struct op *failed;

	start(1, 4);
	CHECK_EQ(0, take("c", 4, SLU_SEC));
	CHECK_EQ(SLU_EBUSY, pass("aabb", "aac", &failed));
	CHECK_EQ(2, failed->failed);
	CHECK_EQ(0, pass("aabb", "aabb", &failed));
	CHECK_EQ(SLU_EBUSY, pass("a", "", &failed));
}

TEST(batch_and_payload_have_a_bound)
{
	const struct op *failed;

	start(0, 0);
	atomic_store(&g.batch, 5);
	CHECK_EQ(0, pass("aaa", "bb", &failed));
	CHECK_EQ(SLU_ETOOBIG, pass("aaa", "bbb", &failed));
	CHECK(failed == NULL);
	atomic_store(&g.batch, 0);
	atomic_store(&g.payload, 3);
	CHECK_EQ(0, pass("aaaa", "aaaa", &failed));
	CHECK_EQ(SLU_ETOOBIG, pass("a", "aaaaa", &failed));
	CHECK_EQ(4, failed->failed);
}
