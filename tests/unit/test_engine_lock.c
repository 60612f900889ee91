/*
 * test_engine_lock.c - locks, and the documents beside keys and messages.
 *
 * Cites K1 to K8 of core/locks.h.
 */
#include "engine_rig.h"

#include "base/id.h"

#include <stdio.h>

/* ---- A key on the bench ---- */

/* What the last answer said; the document is in text. */
struct held {
	struct op op;
	struct op_put put;
	char holder[LOCK_OWNER_MAX + 1];
	char text[256];
};

static void
begin(struct held *h, enum op_verb verb, const char *key)
{
	const struct op_lock was = h->op.lock;

	rig_op(&h->op, verb, RIG_SPACE, LOCK_QUEUE);
	h->op.lock.key = slice_of(key);
	h->op.lock.token = was.token;
	memcpy(h->op.lock.txn, was.txn, LOCK_TXN);
}

static int
acquire(struct rig *r, struct held *h, const char *key, const char *owner, slu_time ttl)
{
	rig_op(&h->op, OP_ACQUIRE, RIG_SPACE, LOCK_QUEUE);
	h->op.lock.key = slice_of(key);
	h->op.lock.owner = slice_of(owner);
	h->op.lock.ttl = ttl;
	return rig_do(r, &h->op);
}

static int
keepalive(struct rig *r, struct held *h, const char *key, slu_time ttl)
{
	begin(h, OP_KEEPALIVE, key);
	h->op.lock.ttl = ttl;
	return rig_do(r, &h->op);
}

static int
end(struct rig *r, struct held *h, const char *key, bool rollback)
{
	begin(h, OP_RELEASE, key);
	h->op.lock.rollback = rollback;
	return rig_do(r, &h->op);
}

static void
prepare_put(struct held *h, const char *key, const char *name, const char *text)
{
	begin(h, OP_STATE_PUT, key);
	h->put = (struct op_put){ 0 };
	h->put.m.payload = slice_of(text);
	h->put.m.payload_size = strlen(text);
	h->op.puts = &h->put;
	h->op.n_puts = 1;
	h->op.lock.name = slice_of(name);
}

static int
put(struct rig *r, struct held *h, const char *key, const char *text)
{
	prepare_put(h, key, "", text);
	return rig_do(r, &h->op);
}

static int
attach(struct rig *r, struct held *h, const char *key, const char *name, const char *text)
{
	prepare_put(h, key, name, text);
	return rig_do(r, &h->op);
}

static int
take_away(struct rig *r, struct held *h, const char *key, const char *name)
{
	begin(h, OP_STATE_REMOVE, key);
	h->op.lock.name = slice_of(name);
	return rig_do(r, &h->op);
}

static void
read_document(struct rig *r, const struct op_ref *ref, struct held *h)
{
	struct message m;
	char bytes[1024];

	h->text[0] = 0;
	if (!ref->pin)
		return;
	CHECK(ref->size < sizeof bytes);
	CHECK_EQ(0, engine_read(r->e, ref, 0, ref->size, bytes, true, NULL));
	CHECK_EQ(0, message_decode((struct slice){ bytes, ref->size }, &m, NULL));
	CHECK(m.payload.n < sizeof h->text);
	snprintf(h->text, sizeof h->text, "%.*s", (int)m.payload.n, m.payload.p);
}

static const char *
get(struct rig *r, struct held *h, const char *key, const char *name)
{
	begin(h, OP_STATE_GET, key);
	h->op.lock.name = slice_of(name);
	if (rig_do(r, &h->op))
		return "refused";
	read_document(r, &h->op.lock.record, h);
	op_unpin(&h->op);
	return h->text;
}

/* As anybody sees it. */
static const char *
get_public(struct rig *r, const char *key)
{
	static struct held nobody;

	memset(&nobody, 0, sizeof nobody);
	return get(r, &nobody, key, "");
}

static void
describe(struct rig *r, struct held *out, const char *key)
{
	rig_op(&out->op, OP_DESCRIBE, RIG_SPACE, LOCK_QUEUE);
	out->op.lock.key = slice_of(key);
	out->op.lock.holder = out->holder;
	CHECK_EQ(0, rig_do(r, &out->op));
}

/* Take a key, put a state, commit it. */
static void
commit_state(struct rig *r, const char *key, const char *text)
{
	struct held h;

	CHECK_EQ(0, acquire(r, &h, key, "setup", 0));
	CHECK_EQ(0, put(r, &h, key, text));
	CHECK_EQ(0, end(r, &h, key, false));
}

/* ---- Leases ---- */

LEDGER_CASE(a_key_is_held_by_one_lease_at_a_time) /* K1 */
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

LEDGER_CASE(a_lease_ends_at_its_time_and_its_holder_is_told_so) /* K2 */
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

LEDGER_CASE(keepalive_moves_the_end_of_the_lease)
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

LEDGER_CASE(the_cases_of_a_lost_lease_are_told_apart) /* LQ-22 */
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

LEDGER_CASE(release_again_is_no_failure) /* K6 */
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

LEDGER_CASE(describe_tells_who_has_a_key)
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

LEDGER_CASE(if_absent_wants_a_key_that_nobody_knows) /* K8 */
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

LEDGER_CASE(a_lease_that_nobody_received_goes_back_as_if_it_had_not_been)
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

LEDGER_CASE(what_is_staged_is_seen_by_the_holder_until_it_is_committed) /* K3, K4 */
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
	CHECK(a.op.lock.etag > etag); /* K5 */
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

LEDGER_CASE(rollback_forgets_what_was_staged) /* K3 */
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

LEDGER_CASE(removal_is_staged_too)
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

LEDGER_CASE(of_two_updates_that_name_one_version_one_wins) /* LQ-31 */
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

LEDGER_CASE(attachments_are_staged_with_the_state)
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

LEDGER_CASE(a_key_has_room_for_its_state_and_64_attachments)
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

LEDGER_CASE(keys_are_listed_in_order_page_by_page)
{
	static const char *const keys[] = { "b", "a/1", "z", "a", "a/2" };
	struct op_key rows[2];
	struct held a;
	char all[64] = "", after[LOCK_KEY_MAX + 1] = "";

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
			snprintf(all + strlen(all), sizeof all - strlen(all), "%s ", rows[i].name);
			snprintf(after, sizeof after, "%s", rows[i].name);
		}
		op_unpin(&a.op);
	} while (a.op.lock.more);
	CHECK_STR("a a/1 a/2 z ", all);
}

LEDGER_CASE(namespaces_do_not_see_each_other)
{
	struct held a;

	commit_state(r, "k", "mine");
	rig_op(&a.op, OP_STATE_GET, "other", LOCK_QUEUE);
	a.op.lock.key = slice_of("k");
	CHECK_EQ(0, rig_do(r, &a.op));
	CHECK_EQ(0, a.op.lock.etag);
	CHECK(!a.op.lock.record.pin);
}

LEDGER_CASE(a_key_that_can_be_had_is_told) /* E5 */
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

/* ---- The state of a message: K7 ---- */

struct state {
	struct held h;
	uint64_t id;
	char key[128];
};

/* The key of the state of a message of queue q. */
static void
state_key(struct state *s, uint64_t id)
{
	char uuid[ID_UUID_TEXT];

	s->id = id;
	snprintf(s->key, sizeof s->key, "q/q/state/%s", id_to_uuid(id, uuid));
}

/* Ask of the state, with the lease that the last claim gave. */
static void
begin_state(struct rig *r, struct state *s, enum op_verb verb)
{
	rig_op(&s->h.op, verb, RIG_SPACE, "q");
	s->h.op.lock.key = slice_of(s->key);
	s->h.op.lock.token = r->n ? r->rows[0].token : 0;
	lock_txn(s->h.op.lock.token, s->h.op.lock.txn);
}

static int
put_state(struct rig *r, struct state *s, const char *text)
{
	begin_state(r, s, OP_STATE_PUT);
	s->h.put = (struct op_put){ 0 };
	s->h.put.m.payload = slice_of(text);
	s->h.put.m.payload_size = strlen(text);
	s->h.op.puts = &s->h.put;
	s->h.op.n_puts = 1;
	return rig_do(r, &s->h.op);
}

static const char *
get_state(struct rig *r, struct state *s, bool as_holder)
{
	begin_state(r, s, OP_STATE_GET);
	if (!as_holder)
		s->h.op.lock.token = 0;
	if (rig_do(r, &s->h.op))
		return "refused";
	read_document(r, &s->h.op.lock.record, &s->h);
	op_unpin(&s->h.op);
	return s->h.text;
}

static uint32_t
claim_stateful(struct rig *r)
{
	rig_unpin(r);
	rig_op(&r->op, OP_CLAIM, RIG_SPACE, "q");
	r->op.stateful = true;
	r->op.lease = 10 * SLU_SEC;
	r->op.rows = r->rows;
	r->op.max_rows = 1;
	CHECK_EQ(0, rig_do(r, &r->op));
	r->n = r->op.n_rows;
	return r->n;
}

static uint32_t
count_states(struct rig *r)
{
	struct op op;

	rig_op(&op, OP_SHARD, "", "");
	CHECK_EQ(0, rig_do(r, &op));
	return (uint32_t)op.on_shard.states;
}

LEDGER_CASE(who_holds_a_message_holds_its_state) /* LQ-05, LQ-20, LQ-27 */
{
	struct state s;

	state_key(&s, rig_put(r, "q", NULL));
	CHECK_EQ(SLU_ELEASE, put_state(r, &s, "nobody's"));
	CHECK_EQ(1, claim_stateful(r));
	CHECK_EQ(0, r->rows[0].state_etag, "a fresh message has none");
	CHECK_STR("", get_state(r, &s, true));
	CHECK_EQ(0, put_state(r, &s, "step 1"));
	CHECK_STR("step 1", get_state(r, &s, true));
	CHECK_STR("", get_state(r, &s, false)); /* not committed */
	r->rows[0].token++;
	CHECK_EQ(SLU_ELEASE, put_state(r, &s, "another's"));
	CHECK_STR("refused", get_state(r, &s, true));
}

LEDGER_CASE(a_nack_commits_the_state_and_an_ack_removes_it) /* LQ-05, LQ-27 */
{
	struct op_item nack = { 0 };
	struct state s;
	uint64_t etag;

	state_key(&s, rig_put(r, "q", NULL));
	CHECK_EQ(1, claim_stateful(r));
	CHECK_EQ(0, put_state(r, &s, "step 1"));
	etag = s.h.op.lock.etag;
	nack.id = s.id;
	nack.token = r->rows[0].token;
	CHECK_EQ(0, rig_item(r, OP_NACK, &nack));
	rig_reopen(r);
	CHECK_EQ(1, claim_stateful(r), "and the next one goes on from there");
	CHECK_EQ(etag, r->rows[0].state_etag);
	CHECK_EQ(1, r->rows[0].state_version);
	CHECK_STR("step 1", get_state(r, &s, true));
	CHECK_EQ(0, put_state(r, &s, "step 2"));
	CHECK_EQ(0, rig_settle_one(r, OP_ACK, s.id, r->rows[0].token));
	CHECK_EQ(0, count_states(r), "nothing of it is left");
	CHECK_STR("", get_state(r, &s, false));
	rig_reopen(r);
	CHECK_EQ(0, count_states(r));
}

LEDGER_CASE(what_is_staged_goes_with_the_lease_of_the_message)
{
	struct state s;
	uint64_t old;

	state_key(&s, rig_put(r, "q", NULL));
	CHECK_EQ(1, claim_stateful(r));
	CHECK_EQ(0, put_state(r, &s, "lost"));
	old = r->rows[0].token;
	rig_pass(r, 10 * SLU_SEC);
	rig_reopen(r);
	CHECK_EQ(1, claim_stateful(r));
	CHECK_EQ(0, r->rows[0].state_etag);
	CHECK_STR("", get_state(r, &s, true));
	r->rows[0].token = old;
	CHECK_EQ(SLU_ELEASE, put_state(r, &s, "of an older delivery")); /* LQ-22 */
}

LEDGER_CASE(a_claim_that_is_returned_leaves_the_state_as_it_was)
{
	struct state s;

	state_key(&s, rig_put(r, "q", NULL));
	CHECK_EQ(1, claim_stateful(r));
	CHECK_EQ(0, put_state(r, &s, "lost"));
	rig_return(r);
	CHECK_STR("", get_state(r, &s, false));
	CHECK_EQ(1, claim_stateful(r));
	CHECK_STR("", get_state(r, &s, true));
}

LEDGER_CASE(extending_the_message_extends_its_state)
{
	struct op_item item = { .time = 100 * SLU_SEC };
	struct state s;

	state_key(&s, rig_put(r, "q", NULL));
	CHECK_EQ(1, claim_stateful(r));
	CHECK_EQ(0, put_state(r, &s, "kept"));
	item.id = s.id;
	item.token = r->rows[0].token;
	CHECK_EQ(0, rig_item(r, OP_EXTEND, &item));
	rig_pass(r, 99 * SLU_SEC);
	CHECK_STR("kept", get_state(r, &s, true));
	begin_state(r, &s, OP_KEEPALIVE);
	CHECK_EQ(SLU_EINVAL, rig_do(r, &s.h.op));
	CHECK_EQ(LOCK_OF_MESSAGE, s.h.op.lock.why);
	begin_state(r, &s, OP_ACQUIRE);
	CHECK_EQ(SLU_EINVAL, rig_do(r, &s.h.op));
}

LEDGER_CASE(a_release_of_a_message_s_state_commits_and_the_message_stays_leased)
{
	struct state s;

	state_key(&s, rig_put(r, "q", NULL));
	CHECK_EQ(1, claim_stateful(r));
	CHECK_EQ(0, put_state(r, &s, "kept"));
	begin_state(r, &s, OP_RELEASE);
	CHECK_EQ(0, rig_do(r, &s.h.op));
	CHECK_STR("kept", get_state(r, &s, false));
	CHECK_EQ(0, put_state(r, &s, "more"));
	CHECK_EQ(0, rig_settle_one(r, OP_ACK, s.id, r->rows[0].token));
	CHECK_EQ(0, count_states(r));
}

LEDGER_CASE(a_dead_letter_keeps_its_state_and_takes_it_along_when_deleted)
{
	struct op_item nack = { .dead = true };
	struct state s;

	state_key(&s, rig_put(r, "q", NULL));
	CHECK_EQ(1, claim_stateful(r));
	CHECK_EQ(0, put_state(r, &s, "why it failed"));
	nack.id = s.id;
	nack.token = r->rows[0].token;
	CHECK_EQ(0, rig_item(r, OP_NACK, &nack));
	rig_reopen(r);
	CHECK_STR("why it failed", get_state(r, &s, false));
	CHECK_EQ(0, rig_settle_one(r, OP_DELETE, s.id, 0));
	CHECK_EQ(0, count_states(r));
}

LEDGER_CASE(a_purge_takes_the_states_along)
{
	struct op_item nack = { 0 };
	struct state s;

	state_key(&s, rig_put(r, "q", NULL));
	CHECK_EQ(1, claim_stateful(r));
	CHECK_EQ(0, put_state(r, &s, "x"));
	nack.id = s.id;
	nack.token = r->rows[0].token;
	CHECK_EQ(0, rig_item(r, OP_NACK, &nack));
	rig_op(&s.h.op, OP_PURGE, RIG_SPACE, "q");
	CHECK_EQ(0, rig_do(r, &s.h.op));
	CHECK_EQ(1, s.h.op.count);
	CHECK_STR("", get_state(r, &s, false));
	rig_pass(r, 0);
	CHECK_EQ(0, count_states(r));
	rig_reopen(r);
	CHECK_EQ(0, count_states(r));
}

LEDGER_CASE(the_state_of_a_message_is_its_queue_s_alone)
{
	struct state s;

	state_key(&s, rig_put(r, "other", NULL));
	rig_claim(r, "other", 1);
	CHECK_EQ(SLU_ELEASE, put_state(r, &s, "by another queue's name"));
	begin_state(r, &s, OP_STATE_GET);
	s.h.op.queue = slice_of("other");
	CHECK_EQ(SLU_EINVAL, rig_do(r, &s.h.op), "the key names queue q");
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
