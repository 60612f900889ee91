/*
 * test_locks.c - the keys of a shard by themselves: memory that runs out, changes that are
 * read back, places that are dropped. What the verbs mean is in test_engine_lock.c.
 */
#include "test.h"
#include "ledgerkit.h"

#include "base/mem.h"
#include "core/locks/locks.h"

#include <stdio.h>

enum {
	KEYS = 5,
	PLACES = 4096
};

/* Keys, a counter, and what became of each place: 0 none, 1 named, 2 dropped. */
struct bench {
	struct locks *l;
	slu_time now;
	uint64_t counter;
	uint64_t places;
	uint8_t place[PLACES];
	uint64_t random;
};

static void
on_drop(void *arg, uint64_t where)
{
	struct bench *b = arg;

	CHECK(where < PLACES);
	CHECK_EQ(1, b->place[where], "K10: once, and only what was given");
	b->place[where] = 2;
}

static int
open_bench(struct bench *b)
{
	const struct locks_conf conf = { .secret = { 3, 4 }, .drop = on_drop, .drop_arg = b };

	return locks_new(&b->l, &conf);
}

static uint64_t
new_place(struct bench *b)
{
	CHECK(b->places + 1 < PLACES);
	b->place[++b->places] = 1;
	return b->places;
}

static uint64_t
dice(struct bench *b, uint64_t n)
{
	return test_random(&b->random) % n;
}

static void
carry_out(struct bench *b, struct lock_change *c)
{
	c->where = new_place(b);
	locks_apply(b->l, c);
	b->counter = c->number > b->counter ? c->number : b->counter;
	CHECK(locks_scan_check(b->l) == NULL);
}

static const char *const keys[KEYS] = { "a", "a/b", "b", "c", "z" };

static struct lock_ref
ref_of(const struct bench *b, const char *key)
{
	const struct lock *lock = locks_find(b->l, SLICE("ns"), slice_of(key));
	struct lock_ref ref = { .space = SLICE("ns"), .key = slice_of(key), .if_version = -1 };

	if (lock) {
		ref.token = lock->token;
		memcpy(ref.txn, lock->txn, LOCK_TXN);
	}
	return ref;
}

static int
acquire(struct bench *b, const char *key, struct lock_change *c)
{
	const struct lock_want want = {
		.space = SLICE("ns"),
		.key = slice_of(key),
		.holder = SLICE("me"),
		.token = b->counter + 1,
		.ttl = 10 * SLU_SEC,
	};
	enum lock_why why;

	return locks_acquire(b->l, &want, b->now, c, &why);
}

static int
put(struct bench *b, const char *key, const char *name, struct lock_change *c)
{
	const struct lock_ref ref = ref_of(b, key);
	enum lock_why why;
	const int rc = locks_put(b->l, &ref, slice_of(name), b->counter + 1, false, b->now, c, &why);

	if (!rc)
		lock_doc(c->next, slice_of(name))->staged_where = new_place(b);
	return rc;
}

static int
end(struct bench *b, const char *key, bool commit, struct lock_change *c)
{
	const struct lock_ref ref = ref_of(b, key);
	enum lock_why why;

	return locks_release(b->l, &ref, (struct lock_end){ .commit = commit }, b->now, c, &why);
}

/* ---- Memory ---- */

/* LOCK-9: what is refused has changed nothing; and, with memory, it succeeds. */
#define INSIST(b, step)                                          \
	do {                                                     \
		const uint64_t before = locks_digest((b)->l);    \
		int rc = (step);                                 \
		if (rc) {                                        \
			CHECK_EQ(SLU_ENOMEM, rc);                \
			CHECK_EQ(before, locks_digest((b)->l));  \
			CHECK(locks_scan_check((b)->l) == NULL); \
			rc = (step);                             \
		}                                                \
		CHECK_EQ(0, rc);                                 \
		carry_out((b), &c);                              \
	} while (0)

TORTURE(without_memory_nothing_changes)
{
	static struct bench b;
	struct lock_change c;
	uint32_t budget = 100;

	b = (struct bench){ .now = SLU_HOUR };
	if (open_bench(&b))
		return;
	INSIST(&b, acquire(&b, "a", &c));
	INSIST(&b, put(&b, "a", "", &c));
	INSIST(&b, put(&b, "a", "pic", &c));
	INSIST(&b, end(&b, "a", true, &c));
	INSIST(&b, acquire(&b, "b", &c));
	b.now += 10 * SLU_SEC;
	if (!locks_tick(b.l, b.now, &budget, &c)) /* later, then */
		CHECK(locks_tick(b.l, b.now, &budget, &c));
	carry_out(&b, &c);
	CHECK(locks_next_due(b.l) > b.now); /* it was noted */
	locks_free(b.l);
}

/* ---- Changes that are read back ---- */

/* The last change of each key, and every document; as a log has them. */
struct book {
	struct lock *last[KEYS];
	struct {
		int key;
		uint64_t etag;
	} docs[PLACES];
	uint32_t n_docs;
};

static void
write_down(struct book *book, int key, const struct lock_change *c, bool doc)
{
	mem_free(book->last[key]);
	book->last[key] = lock_new(c->next);
	CHECK(book->last[key]);
	if (doc) {
		book->docs[book->n_docs].key = key;
		book->docs[book->n_docs++].etag = c->number;
	}
}

static void
random_step(struct bench *b, struct book *book)
{
	static const char *const names[] = { "", "one", "two" };
	const int i = (int)dice(b, KEYS);
	const char *key = keys[i];
	struct lock_change c = { 0 };
	bool doc = false;
	int rc;

	b->now += (slu_time)dice(b, 3) * SLU_SEC;
	switch (dice(b, 6)) {
	case 0:
	case 1:
		rc = acquire(b, key, &c);
		break;
	case 2:
	case 3:
		rc = put(b, key, names[dice(b, COUNT(names))], &c);
		doc = true;
		break;
	default:
		rc = end(b, key, dice(b, 3) > 0, &c);
	}
	if (rc || !c.next)
		return;
	write_down(book, i, &c, doc);
	carry_out(b, &c);
}

static void
read_docs(struct bench *b, const struct book *book)
{
	for (uint32_t i = 0; i < book->n_docs; i++) {
		const struct lock_ref ref = { .space = SLICE("ns"), .key = slice_of(keys[book->docs[i].key]) };

		CHECK_EQ(0, locks_replay_doc(b->l, &ref, book->docs[i].etag, new_place(b)));
	}
}

static bool
none_lives(void *arg, uint64_t id)
{
	(void)arg;
	(void)id;
	return false;
}

/* What is named is exactly what the keys have. */
static void
check_places(const struct bench *b)
{
	uint32_t named = 0, cursor = 0;
	const struct lock *lock;

	while ((lock = locks_scan(b->l, &cursor)) != NULL) {
		named += locks_where(b->l, lock) != 0;
		for (uint32_t i = 0; i < lock->n; i++)
			named += (lock->docs[i].where != 0) + (lock->docs[i].staged_where != 0);
	}
	for (uint64_t i = 1; i <= b->places; i++)
		named -= b->place[i] == 1;
	CHECK_EQ(0, named);
}

/* LOGLOCK-2 of the log: documents before the keys, or behind them. */
TEST(what_was_written_down_gives_the_same_keys_in_whatever_order)
{
	static struct bench b, again;
	static struct book book;
	uint32_t budget = UINT32_MAX;
	struct lock_change c;

	b = (struct bench){ .now = SLU_HOUR, .random = test_seed() };
	CHECK_EQ(0, open_bench(&b));
	for (int i = 0; i < 1000; i++)
		random_step(&b, &book);
	while (locks_tick(b.l, b.now, &budget, &c))
		carry_out(&b, &c);
	check_places(&b);
	for (int before = 0; before < 2; before++) {
		again = (struct bench){ .now = b.now };
		CHECK_EQ(0, open_bench(&again));
		if (before)
			read_docs(&again, &book);
		for (int i = 0; i < KEYS; i++)
			CHECK_EQ(0, locks_replay(again.l, book.last[i], new_place(&again)));
		if (!before)
			read_docs(&again, &book);
		CHECK_EQ(0, locks_replayed(again.l, none_lives, NULL));
		while (locks_tick(again.l, again.now, &budget, &c))
			carry_out(&again, &c);
		CHECK_EQ(locks_digest(b.l), locks_digest(again.l));
		check_places(&again);
		locks_free(again.l);
	}
	for (int i = 0; i < KEYS; i++)
		mem_free(book.last[i]);
	locks_free(b.l);
}

TEST(a_document_that_was_never_found_is_counted)
{
	struct lock_doc doc = { .etag = 7 };
	const struct lock lock = { .space = SLICE("ns"), .key = SLICE("k"), .version = 1, .n = 1, .docs = &doc };
	static struct bench b;

	b = (struct bench){ .now = SLU_HOUR };
	CHECK_EQ(0, open_bench(&b));
	CHECK_EQ(0, locks_replay(b.l, &lock, new_place(&b)));
	CHECK_EQ(1, locks_replayed(b.l, none_lives, NULL));
	locks_free(b.l);
}

TEST(the_state_of_a_message_that_is_not_there_is_dropped)
{
	struct lock_doc doc = { .etag = 7 };
	const struct lock lock = { .id = 99, .version = 1, .n = 1, .docs = &doc };
	static struct bench b;

	b = (struct bench){ .now = SLU_HOUR };
	CHECK_EQ(0, open_bench(&b));
	CHECK_EQ(0, locks_replay(b.l, &lock, new_place(&b)));
	CHECK(locks_of_message(b.l, 99));
	CHECK_EQ(0, locks_replayed(b.l, none_lives, NULL));
	CHECK(!locks_of_message(b.l, 99));
	check_places(&b);
	locks_free(b.l);
}

/* ---- Names ---- */

TEST(which_keys_are_states_of_messages)
{
	static const struct {
		const char *key;
		bool is;
	} cases[] = {
		{ "q/mail/state/0190163d-8694-7001-8010-000000000000", true },
		{ "q/mail/state/0190163d-8694-7001-8010-00000000000", false },
		{ "q/mail/state/not-an-id", false },
		{ "q/mail/msg/0190163d-8694-7001-8010-000000000000", false },
		{ "q//state/0190163d-8694-7001-8010-000000000000", false },
		{ "q/a/b/state/0190163d-8694-7001-8010-000000000000", false },
		{ "x/mail/state/0190163d-8694-7001-8010-000000000000", false },
		{ "q", false },
	};
	struct slice queue;
	uint64_t id;

	EACH(i, cases)
		CHECK_EQ(cases[i].is, lock_key_of_message(slice_of(cases[i].key), &queue, &id),
			 cases[i].key);
	CHECK(lock_key_of_message(slice_of(cases[0].key), &queue, &id));
	CHECK(slice_eq(SLICE("mail"), queue));
}
