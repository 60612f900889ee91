/*
 * Memory runs out at each allocation in turn: what is refused has changed nothing
 * (L11), and the same again, with memory, succeeds.
 */
#include "ledger_fixture.h"

struct torture {
	struct fixture f;
	uint32_t queues[3];
};

/* Whatever was refused: the ledger is as it was, and sound. */
static bool
refused(struct torture *t, int rc, uint64_t before)
{
	if (rc == 0)
		return false;
	CHECK_EQ(SLU_ENOMEM, rc);
	CHECK_EQ(before, ledger_digest(t->f.l));
	check_sound(&t->f);
	return true;
}

static bool
open_all(struct torture *t)
{
	static const char *const names[] = { "a", "b", "c" };
	static const struct ledger_conf conf = { .secret = { 1, 2 } };

	*t = (struct torture){ .f = { .now = 1000 * SLU_HOUR } };
	if (ledger_new(&t->f.l, &conf))
		return false;
	EACH(i, names) {
		const uint64_t before = ledger_digest(t->f.l);
		int rc;

		do {
			rc = ledger_queue_open(t->f.l, slice_of(i ? "two" : "one"),
					       slice_of(names[i]), &t->queues[i]);
		} while (refused(t, rc, before));
	}
	t->f.queue = t->queues[1];
	t->f.space = ledger_space_find(t->f.l, SLICE("two"));
	return true;
}

static void
put_one(struct torture *t, const char *key, slu_time due)
{
	const uint64_t id = ++t->f.last_id;
	const struct ledger_offer o = {
		.id = id,
		.key = key ? slice_of(key) : (struct slice){ 0 },
		.idem = { (const char *)&id, sizeof id },
		.due = due,
		.ttl = SLU_HOUR,
		.keep_result = SLU_MIN,
	};
	const uint64_t before = ledger_digest(t->f.l);
	struct change c;
	int rc;

	do {
		rc = ledger_accept(t->f.l, t->f.queue, &o, t->f.now, &c);
	} while (refused(t, rc, before));
	apply(&t->f, &c); /* L9: cannot fail */
}

static struct ledger_ref
claim_one(struct torture *t)
{
	const uint64_t before = ledger_digest(t->f.l);
	struct change c;
	int rc;

	do {
		rc = ledger_claim(t->f.l, t->f.queue, 0, t->f.now, &c);
	} while (refused(t, rc, before));
	CHECK_EQ(CHANGE_CLAIM, c.kind);
	apply(&t->f, &c);
	return ref_of(&t->f, c.id, c.token);
}

static void
nack_one(struct torture *t, const struct ledger_ref *ref)
{
	const struct ledger_nack nack = { .delay = SLU_SEC };
	const uint64_t before = ledger_digest(t->f.l);
	struct change c;
	int rc;

	do {
		rc = ledger_nack(t->f.l, ref, &nack, t->f.now, &c);
	} while (refused(t, rc, before));
	c.where = 5;
	apply(&t->f, &c);
}

static void
ack_one(struct torture *t, const struct ledger_ref *ref)
{
	const uint64_t before = ledger_digest(t->f.l);
	struct change c;
	int rc;

	do {
		rc = ledger_ack(t->f.l, ref, t->f.now, &c);
	} while (refused(t, rc, before));
	apply(&t->f, &c);
}

static void
purge_one(struct torture *t)
{
	const uint64_t before = ledger_digest(t->f.l);
	struct change c;
	int rc;

	do {
		rc = ledger_purge(t->f.l, t->f.queue, t->f.now, &c);
	} while (refused(t, rc, before));
	apply(&t->f, &c);
}

TORTURE(a_refused_operation_changes_nothing)
{
	struct torture t;
	struct ledger_ref ref;

	if (!open_all(&t))
		return;
	put_one(&t, "k", 0);
	for (int i = 0; i < 150; i++) /* beyond the first size of heaps and maps */
		put_one(&t, i % 2 ? NULL : "k", i % 3 ? 0 : t.f.now + SLU_SEC);
	ref = claim_one(&t);
	nack_one(&t, &ref);
	pass(&t.f, 2 * SLU_SEC);
	ref = claim_one(&t);
	ack_one(&t, &ref);
	for (int i = 0; i < 90; i++) {
		put_one(&t, NULL, 0);
		claim_one(&t);
	}
	purge_one(&t);
	pass(&t.f, 2 * SLU_HOUR);
	teardown(&t.f);
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
