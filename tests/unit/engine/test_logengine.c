/*
 * The log engine is what its records say: however often it is opened, and whenever
 * it was stopped.
 */
#include "logkit.h"
#include "ledgerkit.h"

#include "core/ledger/check.h"

enum {
	SEGMENT = 64 << 10
};

static void
steps(struct logkit *k, int n)
{
	for (int i = 0; i < n; i++)
		if (logkit_step(k))
			test_fail(__FILE__, __LINE__, "run: %s", k->err.text);
}

/* The digest that the next open must give: leases get their grace there. */
static uint64_t
digest_before_close(struct logkit *k)
{
	struct ledger *l = logengine_ledger(k->e);
	struct change c;

	CHECK_EQ(0, logkit_settle(k));
	ledger_opened(l, k->now, &c);
	CHECK_EQ(0, ledger_apply(l, &c));
	locks_opened(logengine_locks(k->e), k->now + LEDGER_GRACE);
	return ledger_digest(l) ^ locks_digest(logengine_locks(k->e));
}

static void
check_scan(struct logkit *k)
{
	const char *wrong = ledger_scan_check(logengine_ledger(k->e));

	if (!wrong)
		wrong = locks_scan_check(logengine_locks(k->e));
	if (wrong)
		test_fail(__FILE__, __LINE__, "%s", wrong);
}

/* LOGENGINE-2: the same ledger after every open, cleaned or not. */
TEST_LIMIT(opening_gives_the_same_ledger_any_number_of_times, 300)
{
	struct logkit *k = logkit_new(SEGMENT, test_seed(), false);
	uint64_t want;
	size_t size;

	CHECK_EQ(0, logkit_open(k));
	for (int round = 0; round < 100; round++) {
		steps(k, (int)(test_random(&k->random) % 60));
		check_scan(k);
		for (int again = 0; again < 2; again++) {
			want = digest_before_close(k);
			logkit_close(k);
			CHECK_EQ(0, logkit_open(k));
			CHECK_EQ(want, k->digest, "digest");
			check_scan(k);
		}
	}
	CHECK(k->accepted > 1000 && k->settled > 100);
	CHECK(k->locked > 100 && k->committed > 20 && k->states > 20);
	CHECK(!simdisk_content(k->disk, "log/00000001.log", &size)); /* it was cleaned */
	logkit_free(k);
}

/* The same when the process is killed, which loses nothing that was written. */
TEST_LIMIT(a_killed_process_loses_nothing, 300)
{
	struct logkit *k = logkit_new(SEGMENT, test_seed() + 1, false);

	CHECK_EQ(0, logkit_open(k));
	for (int round = 0; round < 100; round++) {
		steps(k, (int)(test_random(&k->random) % 40));
		logkit_kill(k);
		CHECK_EQ(0, logkit_open(k));
		check_scan(k);
	}
	logkit_free(k);
}
