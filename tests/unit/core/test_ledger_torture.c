/*
 * Memory runs out at each allocation in turn: what is refused has changed nothing
 * (LEDGER-11), and the same again, with memory, succeeds.
 */
#include "ledger_fixture.h"

static uint32_t queues[3];

/* Whatever was refused: the ledger is as it was, and sound. */
static bool
refused(int rc, uint64_t before)
{
	if (rc == 0)
		return false;
	CHECK_EQ(SLU_ENOMEM, rc);
	CHECK_EQ(before, ledger_digest(f.l));
	check_sound();
	return true;
}

static bool
open_all(void)
{
	static const char *const names[] = { "a", "b", "c" };
	static const struct ledger_conf conf = { .secret = { 1, 2 } };

	memset(&f, 0, sizeof f);
	f.now = 1000 * SLU_HOUR;
	if (ledger_new(&f.l, &conf))
		return false;
	EACH(i, names) {
		const uint64_t before = ledger_digest(f.l);
		int rc;

		do {
			rc = ledger_queue_open(f.l, slice_of(i ? "two" : "one"),
					       slice_of(names[i]), &queues[i]);
		} while (refused(rc, before));
	}
	f.queue = queues[1];
	f.space = ledger_space_find(f.l, SLICE("two"));
	return true;
}

static void
put_one(const char *key, slu_time due)
{
	const uint64_t id = ++f.last_id;
	const struct ledger_offer o = {
		.id = id,
		.key = key ? slice_of(key) : (struct slice){ 0 },
		.share = slice_of(id % 2 ? "s" : ""),
		.value = slice_of(id % 3 ? "v" : ""),
		.idem = { (const char *)&id, sizeof id },
		.due = due,
		.ttl = SLU_HOUR,
		.keep_result = SLU_MIN,
	};
	const uint64_t before = ledger_digest(f.l);
	struct change c;
	int rc;

	do {
		rc = ledger_accept(f.l, f.queue, &o, f.now, &c);
	} while (refused(rc, before));
	apply(&c); /* LEDGER-9: cannot fail */
}

static struct ledger_ref
claim_one(void)
{
	const uint64_t before = ledger_digest(f.l);
	struct change c;
	int rc;

	do {
		rc = ledger_claim(f.l, f.queue, 0, f.now, &c);
	} while (refused(rc, before));
	CHECK_EQ(CHANGE_CLAIM, c.kind);
	apply(&c);
	return ref_of(c.id, c.token);
}

static void
nack_one(const struct ledger_ref *ref)
{
	const struct ledger_nack nack = { .delay = SLU_SEC };
	const uint64_t before = ledger_digest(f.l);
	struct change c;
	int rc;

	do {
		rc = ledger_nack(f.l, ref, &nack, f.now, &c);
	} while (refused(rc, before));
	c.where = 5;
	apply(&c);
}

static void
ack_one(const struct ledger_ref *ref)
{
	const uint64_t before = ledger_digest(f.l);
	struct change c;
	int rc;

	do {
		rc = ledger_ack(f.l, ref, f.now, &c);
	} while (refused(rc, before));
	apply(&c);
}

static void
purge_one(void)
{
	const uint64_t before = ledger_digest(f.l);
	struct change c;
	int rc;

	do {
		rc = ledger_purge(f.l, f.queue, f.now, &c);
	} while (refused(rc, before));
	apply(&c);
}

TORTURE(a_refused_operation_changes_nothing)
{
	struct ledger_ref ref;

	if (!open_all())
		return;
	put_one("k", 0);
	for (int i = 0; i < 150; i++) /* beyond the first size of heaps and maps */
		put_one(i % 2 ? NULL : "k", i % 3 ? 0 : f.now + SLU_SEC);
	ref = claim_one();
	nack_one(&ref);
	pass(2 * SLU_SEC);
	ref = claim_one();
	ack_one(&ref);
	for (int i = 0; i < 90; i++) {
		put_one(NULL, 0);
		claim_one();
	}
	purge_one();
	pass(2 * SLU_HOUR);
	teardown();
}

/* A restart may run out of memory too: then it fails as a whole, cleanly. */
TORTURE(a_replay_without_memory_says_so)
{
	static const struct ledger_conf conf = { .secret = { 1, 2 } };
	struct change c = {
		.kind = CHANGE_RESTORE,
		.id = 1,
		.state = MSG_LEASED,
		.flags = MSG_HOLDS,
		.until = SLU_HOUR,
		.expires = SLU_HOUR,
		.key = 77,
		.idem = { 5, 5 },
		.error = 9,
		.at = 10,
	};
	struct ledger *l;

	if (ledger_new(&l, &conf))
		return;
	if (ledger_queue_open(l, SLICE("n"), SLICE("q"), &c.queue))
		goto out;
	for (; c.id < 100; c.id++, c.key++, c.idem.hash++) {
		const uint64_t before = ledger_digest(l);

		c.number = c.token = c.id;
		if (ledger_replay(l, &c) == 0)
			continue;
		CHECK_EQ(before, ledger_digest(l));
		CHECK(!ledger_scan_check(l));
		goto out;
	}
	CHECK(!ledger_scan_check(l));
out:
	ledger_free(l);
}
