/*
 * The bounds of shares (core/queue/shares.h, docs/scheduling.md) on a whole ledger, at the size of a flood. BOUNDS_MESSAGES sets the
 * size; the long suite runs with a million.
 */
#include "ledger_fixture.h"

#include "core/ledger/ledger_private.h"
#include "core/queue/shares_private.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	SHARES = 20,
	SHORT = 100000
};

static long
size_of_the_flood(void)
{
	const char *n = getenv("BOUNDS_MESSAGES");

	return n ? atol(n) : SHORT;
}

static void
put_in_share(const char *share)
{
	put_offer((struct ledger_offer){ .share = slice_of(share) });
}

/* Claims and acks. Returns how many deliveries there were before that of the message, at most max. */
static long
deliveries_before(uint64_t id, long max)
{
	uint64_t got;

	for (long n = 0; n < max; n++) {
		got = claim();
		CHECK(got);
		CHECK_EQ(0, ack_as(got, f.token));
		if (got == id)
			return n;
	}
	return max;
}

/* Bound 1, fault 22: a flood of one tenant, one message of another. */
TEST_LIMIT(one_message_behind_a_flood_of_another_share_waits_for_one_delivery, 600)
{
	const long n = size_of_the_flood();
	uint64_t id;

	for (long i = 0; i < n; i++)
		put_in_share("a");
	for (int i = 0; i < 1000; i++) {
		put_in_share("b");
		id = f.last_id;
		CHECK(deliveries_before(id, 10) <= 1);
		CHECK(deliveries_before(0, i % 7) == i % 7); /* a goes on alone */
	}
}

/* Bound 1. */
TEST_LIMIT(one_message_behind_many_floods_waits_for_one_of_each, 600)
{
	const long n = size_of_the_flood();
	char share[16];
	uint64_t id;

	for (long i = 0; i < n; i++) {
		(void)snprintf(share, sizeof share, "s%ld", i % 1000);
		put_in_share(share);
	}
	CHECK_EQ(50, deliveries_before(0, 50));
	for (int i = 0; i < 10; i++) {
		put_in_share("b");
		id = f.last_id;
		CHECK(deliveries_before(id, 2000) <= 1000);
	}
}

/* ---- Costs ---- */

/* The changes of heaps do not depend on the number of shares, apart from what they cost: O(log n). */
TEST(a_cycle_beside_10000_shares_touches_its_own_alone)
{
	uint64_t before;
	char share[16];

	for (int i = 0; i < 10000; i++) {
		(void)snprintf(share, sizeof share, "s%d", i);
		put_in_share(share);
	}
	before = ledger_queue(f.l, f.queue)->shares->steps;
	for (int i = 0; i < 100; i++) {
		(void)snprintf(share, sizeof share, "s%d", i * 37);
		put_in_share(share);
		CHECK_EQ(1, deliveries_before(0, 1));
	}
	CHECK(ledger_queue(f.l, f.queue)->shares->steps - before <= 1000);
}

/* ---- Bound 2 ---- */

/* The lowest and the highest difference between the deliveries of two shares by their weights. */
struct pair {
	double low, high;
};

static const unsigned weights[SHARES] = { 1, 2, 3, 5, 7, 1, 11, 13, 1, 17, 2, 19, 23, 1, 29, 31, 4, 100, 250, 1000 };

static void
set_weights(void)
{
	char *p = f.policy.share_weights;

	for (unsigned i = 0; i < SHARES; i++)
		p += sprintf(p, "%s%c=%u", i ? "," : "", 'a' + (char)i, weights[i]);
	set_policy();
}

static void
note_pairs(struct pair pairs[SHARES][SHARES], const uint64_t done[SHARES], unsigned of)
{
	for (unsigned g = 0; g < SHARES; g++) {
		const unsigned a = g < of ? g : of, b = g < of ? of : g;
		const double differ = (double)done[a] / weights[a] - (double)done[b] / weights[b];
		struct pair *p = &pairs[a][b];

		p->low = differ < p->low ? differ : p->low;
		p->high = differ > p->high ? differ : p->high;
		CHECK(p->high - p->low <= 1.0 / weights[a] + 1.0 / weights[b] + 1e-6);
	}
}

/* All shares have messages all the time. The difference over an interval is that between two moments. */
TEST_LIMIT(deliveries_by_weight_keep_the_bound_over_every_interval, 600)
{
	static struct pair pairs[SHARES][SHARES];
	static uint64_t done[SHARES];
	static unsigned char share_of[SHORT * 20];
	const long n = size_of_the_flood();
	char name[2] = "a";

	CHECK(n < (long)sizeof share_of - 2 * SHARES);
	set_weights();
	for (unsigned i = 0; i < 2 * SHARES; i++) {
		*name = (char)('a' + i % SHARES);
		put_in_share(name);
		share_of[f.last_id] = (unsigned char)(i % SHARES);
	}
	for (long i = 0; i < n; i++) {
		const uint64_t id = claim();
		const unsigned of = share_of[id];

		*name = (char)('a' + (char)of);
		put_in_share(name);
		share_of[f.last_id] = (unsigned char)of;
		CHECK_EQ(0, ack_as(id, f.token));
		done[of]++;
		note_pairs(pairs, done, of);
	}
}
