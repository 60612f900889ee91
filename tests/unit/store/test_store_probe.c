/*
 * The probe of a store (store/probe.h): its verdict tells a store that is away from one that says no.
 */
#include "test.h"

#include "memstore.h"
#include "store/probe.h"

static struct store *store;
static struct store_ops probed;

static void
before(void)
{
	const struct store_ops *const rows[] = { &store_memory, NULL };
	const struct store_conf conf = { .url = "memory://probe" };
	struct slu_err err = { 0 };

	CHECK_EQ(STORE_OK, store_open(&store, rows, &conf, &err));
	probed = *store->ops;
	probed.probed = true;
	store->ops = &probed;
}

static void
after(void)
{
	store_close(store);
}

FIXTURE(before, after);

TEST(a_probe_says_whether_a_repetition_may_help)
{
	enum {
		ALL = PROBE_THREADS * PROBE_PUTS
	};
	static const struct {
		const char *label;
		enum memstore_fault fault;
		unsigned puts;
		enum store_result want;
	} cases[] = {
		{ "a store that keeps conditions", MEMSTORE_NONE, 0, STORE_OK },
		{ "a few puts were lost", MEMSTORE_LOSE_REQUEST, ALL - 1, STORE_OK },
		{ "no put arrived: the store is away", MEMSTORE_LOSE_REQUEST, ALL, STORE_FAILED },
		{ "all puts were refused: a wrong key", MEMSTORE_REFUSE, ALL, STORE_REFUSED },
	};

	EACH(i, cases) {
		struct slu_err err = { 0 };

		memstore_fault(store, STORE_PUT, cases[i].fault, cases[i].puts);
		CHECK_EQ(cases[i].want, store_probe(store, &err), cases[i].label);
		CHECK_EQ(cases[i].want != STORE_OK, err.code != 0, cases[i].label);
	}
}
