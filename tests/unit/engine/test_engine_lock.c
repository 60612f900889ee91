/*
 * test_engine_lock.c - lock keys and the documents beside them.
 *
 * Cites LOCK-1 to LOCK-8 of core/locks/locks.h.
 */
#include "lock_fixture.h"

/* ---- Leases ---- */

CASE(a_key_is_held_by_one_lease_at_a_time) /* LOCK-1 */
{
	struct held a, b;
	uint64_t first;

	CHECK_EQ(0, acquire(r, &a, "orders/7", "a", 0));
	first = a.op.lock.token;
	CHECK_EQ(r->now + LOCK_TTL, a.op.lock.until);
	CHECK_EQ(SLU_ELEASE, acquire(r, &b, "orders/7", "b", 0));
	CHECK_EQ(LOCK_HELD, b.op.lock.why);
	CHECK_EQ(a.op.lock.until, b.op.lock.until, "when it can be had is told");
	CHECK_EQ(0, acquire(r, &b, "orders/8", "b", 0), "another key is another lock");
	CHECK_EQ(0, end(r, &a, "orders/7", false));
	CHECK_EQ(0, acquire(r, &b, "orders/7", "b", 0));
	CHECK(b.op.lock.token > first);
}

CASE(a_lease_ends_at_its_time_and_its_holder_is_refused_as_expired) /* LOCK-2 */
{
	struct held a, b;

	CHECK_EQ(0, acquire(r, &a, "k", "a", SLU_SEC));
	CHECK_EQ(0, put(r, &a, "k", "staged"));
	rig_pass(r, SLU_SEC);
	CHECK_EQ(SLU_ELEASE, keepalive(r, &a, "k", SLU_SEC));
	CHECK_EQ(LOCK_EXPIRED, a.op.lock.why);
	CHECK_EQ(0, acquire(r, &b, "k", "b", SLU_SEC));
	CHECK_STR("", get(r, &b, "k", "")); /* what was staged is gone with the lease */
	CHECK_EQ(SLU_ELEASE, put(r, &a, "k", "late"));
	CHECK_EQ(LOCK_NONE, a.op.lock.why, "it is somebody else's now"); /* LQ-22 */
	CHECK_EQ(0, end(r, &b, "k", false));
	CHECK_STR("", get_public(r, "k"));
}

CASE(keepalive_moves_the_end_of_the_lease)
{
	struct held a, b;

	CHECK_EQ(0, acquire(r, &a, "k", "a", 10 * SLU_SEC));
	rig_pass(r, 9 * SLU_SEC);
	CHECK_EQ(0, keepalive(r, &a, "k", 10 * SLU_SEC));
	CHECK_EQ(r->now + 10 * SLU_SEC, a.op.lock.until);
	rig_pass(r, 9 * SLU_SEC);
	CHECK_EQ(SLU_ELEASE, acquire(r, &b, "k", "b", 0));
	rig_pass(r, SLU_SEC);
	CHECK_EQ(0, acquire(r, &b, "k", "b", 0));
}

CASE(the_cases_of_a_lost_lease_have_different_reasons) /* LQ-22 */
{
	struct held a, other;
	struct op_lock sound;

	CHECK_EQ(0, acquire(r, &a, "k", "a", 0));
	sound = a.op.lock;

	const struct {
		const char *label;
		uint64_t token, fence;
		bool txn, other_txn;
		int rc;
		enum lock_why why;
	} cases[] = {
		{ "no lease", 0, 0, true, false, SLU_ELEASE, LOCK_NONE },
		{ "another lease", sound.token + 1, 0, true, false, SLU_ELEASE, LOCK_NONE },
		{ "another fence", sound.token, sound.token + 7, true, false, SLU_ELEASE, LOCK_FENCE },
		{ "no transaction", sound.token, 0, false, false, SLU_EINVAL, LOCK_TXN_MISSING },
		{ "another one", sound.token, 0, true, true, SLU_ECONFLICT, LOCK_TXN_OTHER },
		{ "sound", sound.token, sound.token, true, false, 0, LOCK_OK },
	};

	EACH(i, cases) {
		prepare_put(&a, "k", "", "text");
		a.op.lock.token = cases[i].token;
		a.op.lock.fence = cases[i].fence;
		memcpy(a.op.lock.txn, sound.txn, LOCK_TXN);
		if (!cases[i].txn)
			memset(a.op.lock.txn, 0, LOCK_TXN);
		a.op.lock.txn[0] ^= cases[i].other_txn;
		CHECK_EQ(cases[i].rc, rig_do(r, &a.op), cases[i].label);
		CHECK_EQ(cases[i].why, a.op.lock.why, cases[i].label);
	}
	describe(r, &other, "k");
	CHECK_EQ(0, other.op.lock.version);
}

CASE(release_again_is_no_failure) /* LOCK-6 */
{
	struct held a, b;

	CHECK_EQ(0, acquire(r, &a, "k", "a", 0));
	CHECK_EQ(0, end(r, &a, "k", false));
	CHECK_EQ(LOCK_OK, a.op.lock.why);
	CHECK_EQ(0, end(r, &a, "k", false));
	CHECK_EQ(LOCK_NONE, a.op.lock.why);
	CHECK_EQ(0, acquire(r, &b, "k", "b", 0));
	CHECK_EQ(0, end(r, &a, "k", true), "and takes nothing from the next holder");
	CHECK_EQ(0, keepalive(r, &b, "k", 0));
	b.op.lock.txn[3] ^= 1;
	CHECK_EQ(SLU_ECONFLICT, end(r, &b, "k", false), "but another transaction is one");
}

CASE(describe_shows_the_owner_of_a_key)
{
	struct held a, seen;

	describe(r, &seen, "k");
	CHECK_EQ(0, seen.op.lock.token, "nobody knows it");
	CHECK_EQ(0, acquire(r, &a, "k", "worker-1", 10 * SLU_SEC));
	describe(r, &seen, "k");
	CHECK_EQ(a.op.lock.token, seen.op.lock.token);
	CHECK_EQ(a.op.lock.until, seen.op.lock.until);
	CHECK_STR("worker-1", seen.holder);
	CHECK_EQ(0, memcmp(a.op.lock.txn, seen.op.lock.txn, LOCK_TXN));
	rig_pass(r, 10 * SLU_SEC);
	describe(r, &seen, "k");
	CHECK_EQ(0, seen.op.lock.token);
	CHECK_STR("", seen.holder);
}

CASE(if_absent_is_refused_for_a_key_that_exists) /* LOCK-8 */
{
	struct held a, b;

	CHECK_EQ(0, acquire(r, &a, "k", "a", SLU_SEC));
	CHECK_EQ(0, end(r, &a, "k", false));
	rig_reopen(r);
	rig_op(&b.op, OP_ACQUIRE, RIG_SPACE, LOCK_QUEUE);
	b.op.lock.key = slice_of("k");
	b.op.lock.if_absent = true;
	CHECK_EQ(SLU_EEXISTS, rig_do(r, &b.op), "it is remembered");
	CHECK_EQ(LOCK_KNOWN_KEY, b.op.lock.why);
	rig_pass(r, LOCK_KNOWN - 1);
	CHECK_EQ(SLU_EEXISTS, rig_do(r, &b.op));
	rig_pass(r, 1);
	CHECK_EQ(0, rig_do(r, &b.op), "a day after its last lease it is not");
}

CASE(a_lease_that_was_not_delivered_leaves_no_trace)
{
	struct held a;

	for (int i = 0; i < 2; i++) {
		rig_op(&a.op, OP_ACQUIRE, RIG_SPACE, LOCK_QUEUE);
		a.op.lock.key = slice_of("k");
		a.op.lock.if_absent = true;
		CHECK_EQ(0, rig_do(r, &a.op), "the key is not known after the return");
		a.op.verb = OP_RELEASE;
		a.op.lock.rollback = a.op.lock.undo = true;
		CHECK_EQ(0, rig_do(r, &a.op));
	}
}

/* ---- Documents ---- */

CASE(what_is_staged_is_seen_by_the_holder_until_it_is_committed) /* LOCK-3, LOCK-4 */
{
	struct held a;
	uint64_t etag;

	CHECK_EQ(0, acquire(r, &a, "k", "a", 0));
	CHECK_EQ(0, a.op.lock.version);
	CHECK_EQ(0, put(r, &a, "k", "one"));
	CHECK_EQ(1, a.op.lock.version);
	etag = a.op.lock.etag;
	CHECK_EQ(0, put(r, &a, "k", "two"));
	CHECK_EQ(1, a.op.lock.version, "however many updates");
	CHECK(a.op.lock.etag > etag); /* LOCK-5 */
	etag = a.op.lock.etag;
	CHECK_STR("two", get(r, &a, "k", ""));
	CHECK_STR("", get_public(r, "k"));
	CHECK_EQ(0, end(r, &a, "k", false));
	CHECK_EQ(1, a.op.lock.version);
	CHECK_EQ(etag, a.op.lock.etag);
	CHECK_STR("two", get_public(r, "k"));
	rig_reopen(r);
	CHECK_STR("two", get_public(r, "k"));
	CHECK_EQ(0, acquire(r, &a, "k", "a", 0));
	CHECK_EQ(1, a.op.lock.version);
	CHECK_EQ(etag, a.op.lock.etag);
	CHECK_EQ(0, end(r, &a, "k", false));
	CHECK_EQ(1, a.op.lock.version, "nothing staged, no version");
}

CASE(rollback_forgets_what_was_staged) /* LOCK-3 */
{
	struct held a;

	commit_state(r, "k", "old");
	CHECK_EQ(0, acquire(r, &a, "k", "a", 0));
	CHECK_EQ(0, put(r, &a, "k", "new"));
	CHECK_EQ(0, attach(r, &a, "k", "file", "bytes"));
	CHECK_EQ(0, end(r, &a, "k", true));
	CHECK_STR("old", get_public(r, "k"));
	CHECK_EQ(0, acquire(r, &a, "k", "a", 0));
	CHECK_EQ(1, a.op.lock.version);
	CHECK_STR("old", get(r, &a, "k", ""));
	CHECK_STR("", get(r, &a, "k", "file"));
	rig_reopen(r);
	CHECK_STR("old", get(r, &a, "k", "")); /* the lease is still there */
}

CASE(removal_is_staged_too)
{
	struct held a;

	commit_state(r, "k", "text");
	CHECK_EQ(0, acquire(r, &a, "k", "a", 0));
	CHECK_EQ(0, take_away(r, &a, "k", ""));
	CHECK_EQ(1, a.op.count);
	CHECK_EQ(2, a.op.lock.version);
	CHECK_STR("", get(r, &a, "k", ""));
	CHECK_STR("text", get_public(r, "k"));
	CHECK_EQ(0, take_away(r, &a, "k", ""));
	CHECK_EQ(0, a.op.count, "there is nothing any more");
	CHECK_EQ(0, end(r, &a, "k", false));
	CHECK_STR("", get_public(r, "k"));
	rig_reopen(r);
	describe(r, &a, "k");
	CHECK_EQ(2, a.op.lock.version);
	CHECK_EQ(0, a.op.lock.etag);
}

CASE(of_two_updates_that_name_one_version_one_wins) /* LQ-31 */
{
	struct held a;
	uint64_t etag;

	commit_state(r, "k", "one");
	CHECK_EQ(0, acquire(r, &a, "k", "a", 0));
	etag = a.op.lock.etag;
	prepare_put(&a, "k", "", "first");
	a.op.lock.if_version = 1;
	a.op.lock.if_etag = etag;
	CHECK_EQ(0, rig_do(r, &a.op));
	prepare_put(&a, "k", "", "second");
	a.op.lock.if_version = 1;
	CHECK_EQ(SLU_ECONFLICT, rig_do(r, &a.op));
	CHECK_EQ(LOCK_VERSION, a.op.lock.why);
	CHECK_EQ(1, a.op.lock.version, "which one it is");
	prepare_put(&a, "k", "", "third");
	a.op.lock.if_etag = etag;
	CHECK_EQ(SLU_ECONFLICT, rig_do(r, &a.op));
	CHECK_EQ(LOCK_ETAG, a.op.lock.why);
	CHECK_EQ(0, end(r, &a, "k", false));
	CHECK_STR("first", get_public(r, "k"));
}

CASE(attachments_are_staged_with_the_state)
{
	static struct op_key rows[LOCK_DOCS_MAX];
	struct held a;

	CHECK_EQ(0, acquire(r, &a, "k", "a", 0));
	CHECK_EQ(0, put(r, &a, "k", "state"));
	CHECK_EQ(0, attach(r, &a, "k", "one.txt", "1"));
	CHECK_EQ(0, attach(r, &a, "k", "two.txt", "2"));
	prepare_put(&a, "k", "two.txt", "other");
	a.op.lock.if_absent = true;
	CHECK_EQ(SLU_EEXISTS, rig_do(r, &a.op));
	CHECK_EQ(0, end(r, &a, "k", false));
	rig_reopen(r);
	rig_op(&a.op, OP_ATTACHMENTS, RIG_SPACE, LOCK_QUEUE);
	a.op.lock.key = slice_of("k");
	a.op.keys = rows;
	a.op.max_keys = LOCK_DOCS_MAX;
	CHECK_EQ(0, rig_do(r, &a.op));
	CHECK_EQ(2, a.op.n_keys);
	CHECK_STR("one.txt", rows[0].name);
	read_document(r, &rows[1].record, &a);
	CHECK_STR("2", a.text);
	op_unpin(&a.op);
	a.op.lock.token = 0;
	CHECK_STR("1", get(r, &a, "k", "one.txt"));
	CHECK_EQ(0, acquire(r, &a, "k", "a", 0));
	begin(&a, OP_STATE_REMOVE, "k");
	a.op.lock.all = true;
	CHECK_EQ(0, rig_do(r, &a.op));
	CHECK_EQ(2, a.op.count);
	CHECK_EQ(0, end(r, &a, "k", false));
	CHECK_STR("state", get_public(r, "k")); /* attachments alone went */
	a.op.lock.token = 0;
	CHECK_STR("", get(r, &a, "k", "one.txt"));
}

CASE(a_key_has_room_for_its_state_and_64_attachments)
{
	struct held a;
	char name[16];

	CHECK_EQ(0, acquire(r, &a, "k", "a", 0));
	for (int i = 0; i < LOCK_DOCS_MAX - 1; i++) {
		snprintf(name, sizeof name, "a%d", i);
		CHECK_EQ(0, attach(r, &a, "k", name, "x"));
	}
	CHECK_EQ(SLU_ETOOBIG, attach(r, &a, "k", "more", "x"));
	CHECK_EQ(0, put(r, &a, "k", "state"));
	CHECK_EQ(0, attach(r, &a, "k", "a3", "y"), "one that is there is replaced");
	CHECK_EQ(0, end(r, &a, "k", false));
	rig_reopen(r);
	a.op.lock.token = 0;
	CHECK_STR("y", get(r, &a, "k", "a3"));
}

CASE(keys_are_listed_in_order_page_by_page)
{
	static const char *const keys[] = { "b", "a/1", "z", "a", "a/2" };
	struct op_key rows[2];
	struct held a;
	char all[512] = "", after[LOCK_KEY_MAX + 1] = "";

	EACH(i, keys)
		commit_state(r, keys[i], keys[i]);
	CHECK_EQ(0, acquire(r, &a, "b", "a", 0));
	begin(&a, OP_STATE_META, "b");
	a.op.lock.hidden = true;
	CHECK_EQ(0, rig_do(r, &a.op));
	CHECK_EQ(0, end(r, &a, "b", false));
	CHECK_EQ(0, acquire(r, &a, "c", "a", 0), "a key without state");
	rig_reopen(r);
	do {
		rig_op(&a.op, OP_KEYS, RIG_SPACE, LOCK_QUEUE);
		a.op.lock.key = slice_of(after);
		a.op.keys = rows;
		a.op.max_keys = 2;
		CHECK_EQ(0, rig_do(r, &a.op));
		for (uint32_t i = 0; i < a.op.n_keys; i++) {
			read_document(r, &rows[i].record, &a);
			CHECK_STR(rows[i].name, a.text);
			snprintf(all + strlen(all), sizeof all - strlen(all), "%.9s ", rows[i].name);
			memcpy(after, rows[i].name, sizeof after);
		}
		op_unpin(&a.op);
	} while (a.op.lock.more);
	CHECK_STR("a a/1 a/2 z ", all);
}

/* The mover asks for LOCK_QUEUE (SH-65). No other list shows it. */
CASE(namespaces_that_have_keys_are_listed)
{
	static const char *const spaces[] = { "b", "a", "ab", "b" };
	char all[64] = "";
	struct held a;

	rig_put(r, "q", NULL);
	EACH(i, spaces) {
		rig_op(&a.op, OP_ACQUIRE, spaces[i], LOCK_QUEUE);
		a.op.lock.key = slice_of(i ? "k" : "other");
		a.op.lock.holder = slice_of("me");
		CHECK_EQ(0, rig_do(r, &a.op));
	}
	rig_reopen(r);
	rig_op(&a.op, OP_QUEUES, "", LOCK_QUEUE);
	a.op.queues = r->queues;
	a.op.max_queues = 2;
	do {
		CHECK_EQ(0, rig_do(r, &a.op));
		for (uint32_t i = 0; i < a.op.n_queues; i++) {
			CHECK_STR(LOCK_QUEUE, r->queues[i].name);
			snprintf(all + strlen(all), sizeof all - strlen(all), "%.9s ", r->queues[i].space);
		}
	} while (a.op.cursor);
	CHECK_EQ(strlen("a ab b "), strlen(all), "each once");
	CHECK(strstr(all, "a ") && strstr(all, "ab ") && strstr(all, "b "));
	rig_op(&a.op, OP_QUEUES, "", "");
	a.op.queues = r->queues;
	a.op.max_queues = 9;
	CHECK_EQ(0, rig_do(r, &a.op));
	CHECK_EQ(1, a.op.n_queues);
	CHECK_STR("q", r->queues[0].name);
}

CASE(namespaces_do_not_see_each_other)
{
	struct held a;

	commit_state(r, "k", "mine");
	rig_op(&a.op, OP_STATE_GET, "other", LOCK_QUEUE);
	a.op.lock.key = slice_of("k");
	CHECK_EQ(0, rig_do(r, &a.op));
	CHECK_EQ(0, a.op.lock.etag);
	CHECK(!a.op.lock.record.pin);
}

CASE(what_is_no_key_is_refused)
{
	static const enum op_verb verbs[] = {
		OP_ACQUIRE,
		OP_KEEPALIVE,
		OP_RELEASE,
		OP_STATE_GET,
		OP_STATE_PUT,
		OP_STATE_REMOVE,
		OP_STATE_META,
		OP_DESCRIBE,
		OP_ATTACHMENTS,
	};
	char longest[LOCK_KEY_MAX + 2], name[LOCK_NAME_MAX + 2];
	struct held a;

	memset(longest, 'k', sizeof longest - 1);
	memset(name, 'n', sizeof name - 1);
	longest[sizeof longest - 1] = name[sizeof name - 1] = 0;
	commit_state(r, longest + 1, "the longest that is one");
	CHECK_EQ(0, acquire(r, &a, longest + 1, "me", 0));
	EACH(i, verbs) {
		prepare_put(&a, "", "", "x");
		a.op.verb = verbs[i];
		CHECK_EQ(SLU_EINVAL, rig_do(r, &a.op), op_verb_name(verbs[i]));
		a.op.lock.key = slice_of(longest);
		CHECK_EQ(SLU_EINVAL, rig_do(r, &a.op), op_verb_name(verbs[i]));
	}
	CHECK_EQ(SLU_EINVAL, attach(r, &a, longest + 1, name, "x"));
	CHECK_STR("the longest that is one", get_public(r, longest + 1));
}

CASE(a_key_that_is_free_is_reported) /* ENGINE-5 */
{
	struct held a;

	CHECK_EQ(0, acquire(r, &a, "k", "a", SLU_SEC));
	rig_woken(r);
	rig_pass(r, SLU_SEC - 1);
	CHECK_STR("", rig_woken(r));
	rig_pass(r, 1);
	CHECK_STR("k", rig_woken(r));
	CHECK_EQ(0, acquire(r, &a, "k", "a", SLU_SEC));
	CHECK_STR("", rig_woken(r));
	CHECK_EQ(0, end(r, &a, "k", false));
	CHECK_STR("k", rig_woken(r));
}

/* ---- Memory runs out ---- */

/* Every answer is SLU_ENOMEM or right; what was refused has not happened. */
static void
torture(enum rig_engine row)
{
	static struct rig r;
	struct held a, seen;
	bool staged;
	int rc;

	memset(&a, 0, sizeof a);
	r = (struct rig){ .row = &rig_rows[row], .now = RIG_START, .may_fail = true };
	rig_open(&r);
	if (!r.e)
		return;
	rc = acquire(&r, &a, "k", "me", 0);
	CHECK(rc == 0 || rc == SLU_ENOMEM);
	describe(&r, &seen, "k");
	CHECK_EQ(rc ? 0 : a.op.lock.token, seen.op.lock.token);
	if (rc)
		CHECK_EQ(0, acquire(&r, &a, "k", "me", 0), "there is memory again");
	rc = put(&r, &a, "k", "text");
	CHECK(rc == 0 || rc == SLU_ENOMEM);
	staged = rc == 0;
	CHECK_STR(staged ? "text" : "", get(&r, &a, "k", ""));
	rc = end(&r, &a, "k", false);
	CHECK(rc == 0 || rc == SLU_ENOMEM);
	CHECK_STR(rc == 0 && staged ? "text" : "", get_public(&r, "k"));
	rig_pass(&r, SLU_HOUR);
	describe(&r, &seen, "k");
	CHECK_EQ(0, seen.op.lock.token);
	rig_check(&r);
	rig_close(&r);
}

TORTURE(memory_survives_every_failed_allocation)
{
	torture(RIG_MEMORY);
}

TORTURE(log_survives_every_failed_allocation)
{
	torture(RIG_LOG);
}
