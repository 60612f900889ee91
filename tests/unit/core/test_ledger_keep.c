/*
 * What is kept, and for how long: idempotency keys, results, dead letters,
 * times to live, limits, namespaces, purges.
 */
#include "ledger_fixture.h"

static int
put_idem(const char *key, uint64_t *id)
{
	const struct ledger_offer o = { .id = ++f.last_id, .idem = slice_of(key) };
	struct change c = { 0 };
	const int rc = ledger_accept(f.l, f.queue, &o, f.now, &c);

	*id = c.id;
	if (!rc)
		apply(&c);
	return rc;
}

static void
finish(uint64_t id)
{
	CHECK_EQ(id, claim());
	CHECK_EQ(0, ack_as(id, f.token));
}

TEST(the_first_of_an_idempotency_key_wins)
{
	uint64_t first, second, other;

	CHECK_EQ(0, put_idem("k", &first));
	CHECK_EQ(SLU_EEXISTS, put_idem("k", &second));
	CHECK_EQ(first, second, "MQ-41: one item, same id");
	CHECK_EQ(1, count(MSG_READY));
	CHECK_EQ(0, put_idem("l", &other));
	finish(first);
	CHECK_EQ(SLU_EEXISTS, put_idem("k", &second), "also when it is done");
	CHECK_EQ(first, second);
	CHECK_EQ(0, ledger_queue_open(f.l, SLICE("shop"), SLICE("print"), &f.queue));
	CHECK_EQ(0, put_idem("k", &second), "another queue, another key");
}

TEST(an_idempotency_key_is_remembered_at_least_for_its_window)
{
	struct ledger_size size;
	uint64_t first, second;

	f.now += 17 * SLU_MIN;
	CHECK_EQ(0, put_idem("k", &first));
	pass(100 * 24 * SLU_HOUR);
	CHECK_EQ(SLU_EEXISTS, put_idem("k", &second), "while the message lives");
	finish(first);
	pass(24 * SLU_HOUR);
	CHECK_EQ(SLU_EEXISTS, put_idem("k", &second), "never forgotten early");
	CHECK(ledger_next_due(f.l) > f.now && ledger_next_due(f.l) <= f.now + SLU_HOUR);
	f.now += SLU_HOUR; /* not swept yet, and over all the same */
	CHECK_EQ(0, put_idem("k", &second));
	finish(second);
	pass(26 * SLU_HOUR);
	ledger_size(f.l, &size);
	CHECK_EQ(0, size.idem, "swept");
}

/* IDEM-1, IDEM-2 */
TEST(a_short_window_ends_at_its_second)
{
	static const slu_time windows[] = { 1, SLU_SEC, 10 * SLU_SEC, SLU_HOUR + 1, 2 * SLU_HOUR };

	f.now += 17 * SLU_MIN;
	for (size_t i = 0; i < COUNT(windows); i++) {
		uint64_t first, second;

		f.policy.window = windows[i];
		set_policy();
		CHECK_EQ(0, put_idem("k", &first));
		finish(first);
		f.now += windows[i] - 1;
		CHECK_EQ(SLU_EEXISTS, put_idem("k", &second), "a window of this length");
		f.now += 2 * SLU_SEC; /* not swept, and over all the same */
		CHECK_EQ(0, put_idem("k", &second), "a window of this length");
		finish(second);
		pass(windows[i] + SLU_MIN);
	}
}

/* IDEM-3: 15 bits of seconds are 9.1 hours. */
TEST(a_key_that_is_over_does_not_come_back_when_its_number_does)
{
	f.policy.window = 10 * SLU_SEC;
	set_policy();
	for (slu_time later = SLU_MIN; later < 40 * SLU_HOUR; later += 37 * SLU_MIN) {
		uint64_t first, second, other;

		CHECK_EQ(0, put_idem("k", &first));
		finish(first);
		f.now += later; /* without a sweep: a machine that slept, a log that is read back */
		CHECK_EQ(0, put_idem("l", &other));
		finish(other);
		CHECK_EQ(SLU_EEXISTS, put_idem("l", &second), "its number is new");
		CHECK_EQ(0, put_idem("k", &second), "this one is over");
		finish(second);
		f.now += 11 * SLU_SEC;
	}
}

TEST(keys_of_short_windows_are_swept_every_minute)
{
	struct ledger_size size;
	uint64_t id;

	f.now += 17 * SLU_MIN;
	f.policy.window = SLU_SEC;
	set_policy();
	CHECK_EQ(0, put_idem("k", &id));
	finish(id);
	CHECK(ledger_next_due(f.l) <= f.now + SLU_MIN);
	pass(SLU_MIN);
	ledger_size(f.l, &size);
	CHECK_EQ(0, size.idem);
	CHECK_EQ(SLU_NEVER, ledger_next_due(f.l), "and nothing is left to do");
}

TEST(too_many_idempotency_keys_are_refused_not_forgotten)
{
	uint64_t id;
	char key[] = "k0";

	for (int i = 0; i < 8; i++, key[1]++)
		CHECK_EQ(0, put_idem(key, &id));
	CHECK_EQ(SLU_EBUSY, put_idem(key, &id));
	CHECK_EQ(SLU_EEXISTS, put_idem("k0", &id));
	put(5); /* one without a key is taken */
}

TEST(a_result_is_kept_as_long_as_was_asked)
{
	struct ledger_result r;
	struct change c;

	const uint64_t id = put_offer((struct ledger_offer){ .keep_result = SLU_MIN });

	CHECK_EQ(id, claim());
	const struct ledger_ref ref = ref_of(id, f.token);

	CHECK_EQ(SLU_ENOTFOUND, ledger_result(f.l, f.space, id, &r));
	CHECK_EQ(0, ledger_ack(f.l, &ref, f.now, &c));
	c.where = 99;
	apply(&c);
	pass(SLU_MIN - 1);
	CHECK_EQ(0, ledger_result(f.l, f.space, id, &r));
	CHECK_EQ(99, r.where);
	CHECK_EQ(f.now + 1, r.until);
	CHECK_EQ(f.now + 1, ledger_next_due(f.l));
	pass(1);
	CHECK_EQ(SLU_ENOTFOUND, ledger_result(f.l, f.space, id, &r));
}

/* Invariant 8 */
TEST(a_guess_from_another_namespace_finds_nothing)
{
	uint32_t foreign;
	struct change c;

	CHECK_EQ(0, ledger_queue_open(f.l, SLICE("evil"), SLICE("mail"), &foreign));
	const uint64_t id = put(5);

	CHECK_EQ(id, claim());
	struct ledger_ref ref = ref_of(id, f.token);

	ref.space = ledger_space_find(f.l, SLICE("evil"));
	ref.queue = SLAB_NONE;
	CHECK_EQ(SLU_ENOTFOUND, ledger_ack(f.l, &ref, f.now, &c));
	CHECK_EQ(SLU_ENOTFOUND, ledger_return(f.l, &ref, f.now, &c));
	CHECK_EQ(SLU_ENOTFOUND, ledger_delete(f.l, &ref, f.now, &c));
	CHECK_EQ(SLU_ENOTFOUND, ledger_redrive(f.l, &ref, f.now, &c));
	CHECK_EQ(SLAB_NONE, ledger_find(f.l, ref.space, id));
	ref.space = f.space;
	ref.queue = foreign;
	CHECK_EQ(SLU_ENOTFOUND, ledger_ack(f.l, &ref, f.now, &c), "the wrong queue");
}

TEST(queues_are_known_by_namespace_and_name)
{
	struct ledger_queue_view v;
	uint32_t a, b;

	CHECK_EQ(SLAB_NONE, ledger_queue_find(f.l, SLICE("shop"), SLICE("none")));
	CHECK_EQ(SLAB_NONE, ledger_queue_find(f.l, SLICE("none"), SLICE("mail")));
	CHECK_EQ(f.queue, ledger_queue_find(f.l, SLICE("shop"), SLICE("mail")));
	CHECK_EQ(0, ledger_queue_open(f.l, SLICE("sho"), SLICE("pmail"), &a));
	CHECK_EQ(0, ledger_queue_open(f.l, SLICE("sho"), SLICE("pmail"), &b));
	CHECK_EQ(a, b);
	CHECK(a != f.queue);
	ledger_queue_get(f.l, a, &v);
	CHECK_STR("sho", v.space_name);
	CHECK_STR("pmail", v.name);
	CHECK_EQ(f.queue, ledger_queue_next(f.l, SLAB_NONE));
	CHECK_EQ(a, ledger_queue_next(f.l, f.queue));
	CHECK_EQ(SLAB_NONE, ledger_queue_next(f.l, a));
}

TEST_BARE(there_are_no_more_queues_than_allowed)
{
	const struct ledger_conf conf = { .max_queues = 1 };
	struct ledger *l;
	uint32_t a, b;

	CHECK_EQ(0, ledger_new(&l, &conf));
	CHECK_EQ(0, ledger_queue_open(l, SLICE("n"), SLICE("a"), &a));
	CHECK_EQ(SLU_EBUSY, ledger_queue_open(l, SLICE("n"), SLICE("b"), &b));
	CHECK_EQ(0, ledger_queue_open(l, SLICE("n"), SLICE("a"), &b));
	CHECK_EQ(a, b);
	ledger_free(l);
}

TEST(a_ttl_ends_in_the_dead_letters_and_never_ends_a_lease)
{
	const uint64_t waits = put_offer((struct ledger_offer){ .prio = 9, .ttl = SLU_SEC });
	const uint64_t works = put_offer((struct ledger_offer){ .prio = 1, .ttl = SLU_SEC });

	CHECK_EQ(works, claim_for(SLU_MIN));
	pass(SLU_SEC - 1);
	CHECK_EQ(MSG_READY, state(waits));
	pass(1);
	CHECK_EQ(DEAD_EXPIRED, view(waits).reason);
	CHECK_EQ(MSG_LEASED, state(works));
	fail(works);
	CHECK_EQ(0, claim(), "LQ-34: not handed out any more");
	CHECK_EQ(DEAD_EXPIRED, view(works).reason);
	CHECK_EQ(0, act(ledger_redrive, works));
	CHECK_EQ(SLU_NEVER, view(works).expires);
	CHECK_EQ(works, claim());
}

TEST(the_queue_gives_a_ttl_to_those_without)
{
	f.policy.ttl = SLU_MIN;
	set_policy();
	CHECK_EQ(f.now + SLU_MIN, view(put(5)).expires);
	const uint64_t own = put_offer((struct ledger_offer){ .ttl = SLU_SEC });

	CHECK_EQ(f.now + SLU_SEC, view(own).expires);
}

TEST(a_full_queue_refuses_until_something_leaves)
{
	struct change c;
	const struct ledger_offer o = { .id = 1000 };

	f.policy.max_depth = 2;
	set_policy();
	const uint64_t id = put(5);

	put_offer((struct ledger_offer){ .due = f.now + SLU_HOUR });
	CHECK_EQ(SLU_EQFULL, ledger_accept(f.l, f.queue, &o, f.now, &c));
	CHECK_EQ(id, claim());
	CHECK_EQ(SLU_EQFULL, ledger_accept(f.l, f.queue, &o, f.now, &c));
	CHECK_EQ(0, nack_as(id, f.token, (struct ledger_nack){ .dead = true }));
	CHECK_EQ(0, ledger_accept(f.l, f.queue, &o, f.now, &c), "dead letters do not count");
}

TEST(a_queue_that_is_drained_refuses_what_is_new_and_delivers_what_it_has)
{
	struct ledger_offer o = { .id = 1000 };
	const uint64_t known = put_offer((struct ledger_offer){ .idem = SLICE("k") });
	struct change c;

	f.policy.draining = true;
	set_policy();
	CHECK_EQ(SLU_EDRAINING, ledger_accept(f.l, f.queue, &o, f.now, &c));
	o.idem = SLICE("k");
	CHECK_EQ(SLU_EEXISTS, ledger_accept(f.l, f.queue, &o, f.now, &c), "a repeated call gets its answer");
	CHECK_EQ(known, c.id);
	o.idem = SLICE("other");
	o.owed = true;
	CHECK_EQ(0, ledger_accept(f.l, f.queue, &o, f.now, &c), "what the server owes is accepted");
	o.owed = false;
	o.instead = true;
	CHECK_EQ(0, ledger_accept(f.l, f.queue, &o, f.now, &c), "and what takes the place of another message");
	CHECK_EQ(known, claim());
	CHECK_EQ(0, nack_as(known, f.token, (struct ledger_nack){ .dead = true }));
	CHECK_EQ(0, act(ledger_redrive, known));
	CHECK_EQ(known, claim(), "its own dead letter is not new");
}

static uint64_t
put_dead(void)
{
	const uint64_t id = put(5);

	CHECK_EQ(id, claim());
	CHECK_EQ(0, nack_as(id, f.token, (struct ledger_nack){ .dead = true }));
	return id;
}

TEST(dead_letters_are_listed_oldest_first)
{
	uint64_t ids[5];
	uint32_t h = SLAB_NONE;
	struct ledger_view v;

	EACH(i, ids) {
		ids[i] = put_dead();
		f.now += SLU_SEC;
	}
	CHECK_EQ(0, act(ledger_delete, ids[1]));
	CHECK_EQ(0, act(ledger_redrive, ids[3]));
	ids[1] = ids[2];
	ids[2] = ids[4];
	for (int i = 0; i < 3; i++) {
		h = ledger_dead_next(f.l, f.queue, h);
		CHECK(h != SLAB_NONE);
		ledger_get(f.l, h, &v);
		CHECK_EQ(ids[i], v.id);
	}
	CHECK_EQ(SLAB_NONE, ledger_dead_next(f.l, f.queue, h));
}

TEST(dead_letters_go_by_number_and_by_age)
{
	f.policy.dlq_max = 3;
	f.policy.dlq_retention = SLU_MIN;
	set_policy();
	const uint64_t oldest = put_dead();

	for (int i = 0; i < 3; i++)
		put_dead();
	CHECK_EQ(4, count(MSG_DEAD));
	tick();
	CHECK_EQ(3, count(MSG_DEAD));
	CHECK_EQ(MSG_NONE, state(oldest));
	CHECK_EQ(f.now + SLU_MIN, ledger_next_due(f.l));
	pass(SLU_MIN - 1);
	CHECK_EQ(3, count(MSG_DEAD));
	pass(1);
	CHECK_EQ(0, count(MSG_DEAD));
}

/* ENGINE-3 of engine.h: what fell due happens as of op->route.before, and the op itself is judged by the
 * moment of the run. */
TEST(a_dead_letter_and_its_key_may_be_over_in_one_run)
{
	uint64_t first, second;

	f.policy.dlq_retention = SLU_SEC;
	f.policy.window = 49 * SLU_MIN;
	set_policy();
	CHECK_EQ(0, put_idem("k", &first));
	CHECK_EQ(first, claim());
	CHECK_EQ(0, nack_as(first, f.token, (struct ledger_nack){ .dead = true }));
	CHECK_EQ(SLU_EEXISTS, put_idem("k", &second), "as long as it is there");
	pass(30 * SLU_SEC);
	CHECK_EQ(MSG_NONE, state(first));
	f.now += 49 * SLU_MIN - 1;
	CHECK_EQ(SLU_EEXISTS, put_idem("k", &second), "its window has begun when it went");
	CHECK_EQ(first, second);
	f.now += SLU_HOUR + 1;
	CHECK_EQ(0, put_idem("k", &second), "and is over");
	CHECK(first != second);
}

/* Purges */

static void
purge(void)
{
	struct change c;

	CHECK_EQ(0, ledger_purge(f.l, f.queue, f.now, &c));
	apply(&c);
}

TEST(a_purge_takes_all_but_what_is_leased_or_dead)
{
	const uint64_t dead = put_dead();
	const uint64_t leased = put_keyed("k", 1, 0);
	const uint64_t held = put_keyed("k", 1, 0);
	const uint64_t ready = put(5);
	const uint64_t delayed = put_keyed("k", 5, f.now + SLU_HOUR);

	CHECK_EQ(leased, claim_for(SLU_MIN));
	purge();
	CHECK_EQ(MSG_NONE, state(held));
	CHECK_EQ(MSG_NONE, state(ready));
	CHECK_EQ(MSG_NONE, state(delayed));
	CHECK_EQ(MSG_DEAD, state(dead));
	check_sound(); /* counters do not wait for the memory */
	CHECK_EQ(0, count(MSG_HELD) + count(MSG_READY) + count(MSG_DELAYED));
	fail(leased);
	CHECK_EQ(leased, claim());
	CHECK_EQ(0, ack_as(leased, f.token));
	tick();
	CHECK_EQ(0, claim());
}

TEST(a_line_may_end_before_a_purge_comes_to_it)
{
	struct ledger_size size;

	const uint64_t leased = put_keyed("k", 1, 0);

	put_keyed("k", 1, 0);
	put_keyed("l", 5, 0);
	CHECK_EQ(leased, claim());
	purge();
	CHECK_EQ(0, ack_as(leased, f.token));
	CHECK_EQ(0, claim(), "what was behind it is purged");
	tick();
	ledger_size(f.l, &size);
	CHECK_EQ(0, size.messages);
	CHECK_EQ(0, size.keys);
}

TEST(a_purge_is_freed_in_slices_and_new_work_goes_on)
{
	struct ledger_size size;
	struct change c;
	uint32_t budget = 5;

	for (int i = 0; i < 40; i++)
		put_keyed(i % 4 ? "a" : "b", 5, i % 3 ? 0 : f.now + SLU_HOUR);
	purge();
	CHECK_EQ(0, ledger_next_due(f.l));
	CHECK(!ledger_tick(f.l, f.now, &budget, &c));
	CHECK_EQ(0, budget);
	ledger_size(f.l, &size);
	CHECK(size.messages >= 35);
	CHECK_EQ(SLU_EBUSY, ledger_purge(f.l, f.queue, f.now, &c));
	const uint64_t plain = put(9), keyed = put_keyed("a", 9, 0);

	CHECK_EQ(plain, claim(), "at once");
	tick();
	ledger_size(f.l, &size);
	CHECK_EQ(2, size.messages);
	CHECK_EQ(1, size.keys);
	CHECK_EQ(keyed, claim(), "its sequence was freed");
	purge();
}

TEST(a_call_that_is_not_accepted_whole_leaves_nothing)
{
	struct change c[3];
	struct ledger_size size;

	put_keyed("k", 5, 0);
	for (unsigned i = 0; i < 3; i++) {
		const struct ledger_offer o = {
			.id = 100 + i,
			.key = i < 2 ? SLICE("k") : SLICE("new"),
			.idem = i ? SLICE("x") : SLICE("y"),
			.ttl = SLU_SEC,
		};

		if (ledger_accept(f.l, f.queue, &o, f.now, &c[i]) == SLU_EEXISTS)
			break;
		apply(&c[i]);
	}
	CHECK_EQ(3, count(MSG_READY) + count(MSG_HELD));
	ledger_undo(f.l, &c[1]);
	ledger_undo(f.l, &c[0]);
	CHECK_EQ(1, count(MSG_READY) + count(MSG_HELD));
	ledger_size(f.l, &size);
	CHECK_EQ(0, size.idem);
	CHECK_EQ(1, size.messages);
	CHECK_EQ(SLU_NEVER, ledger_next_due(f.l));
}

/* WAL-5 at its smallest; the model test has the rest. */
TEST(changes_of_messages_that_are_gone_are_passed_over)
{
	struct change c, gone;

	const uint64_t id = put(5);

	CHECK_EQ(id, claim());
	const struct ledger_ref ref = ref_of(id, f.token);

	CHECK_EQ(0, ledger_extend(f.l, &ref, SLU_MIN, f.now, &gone));
	CHECK_EQ(0, ledger_ack(f.l, &ref, f.now, &c));
	apply(&c);
	const uint64_t before = ledger_digest(f.l);

	CHECK_EQ(0, ledger_replay(f.l, &gone));
	CHECK_EQ(0, ledger_replay(f.l, &c), "MQ-51: and it stays gone");
	CHECK_EQ(before, ledger_digest(f.l));
}

TEST(changes_that_no_ledger_decided_are_refused)
{
	const uint64_t id = put(5);
	const struct change cases[] = {
		{ .kind = CHANGE_KINDS },
		{ .kind = CHANGE_ACCEPT, .queue = 7, .id = 9 },
		{ .kind = CHANGE_ACCEPT, .queue = f.queue, .id = 0 },
		{ .kind = CHANGE_EXTEND, .id = id, .until = 5 },
		{ .kind = CHANGE_REDRIVE, .id = id },
		{ .kind = CHANGE_PURGE, .queue = 99 },
		{ .kind = CHANGE_POLICY, .queue = f.queue },
		{ .kind = CHANGE_POLICY, .queue = f.queue, .policy = &(struct policy){ .lease = 0 } },
		{ .kind = CHANGE_RESTORE, .queue = f.queue, .id = 9, .state = MSG_STATES },
		{ .kind = CHANGE_RESTORE, .queue = f.queue, .id = 9, .state = MSG_LEASED },
		{ .kind = CHANGE_RESTORE, .queue = f.queue, .id = 9, .state = MSG_DEAD, .flags = MSG_HOLDS },
	};
	const uint64_t before = ledger_digest(f.l);

	EACH(i, cases)
		CHECK_EQ(SLU_EINVAL, ledger_replay(f.l, &cases[i]));
	CHECK_EQ(before, ledger_digest(f.l));
}

TEST_BARE(policies_are_checked)
{
	static const struct {
		struct policy change; /* the default, but for what is not 0 */
		const char *says;
	} cases[] = {
		{ { .lease = POLICY_LEASE_MAX + 1 }, "lease" },
		{ { .lease = -1 }, "lease" },
		{ { .max_attempts = 65536 }, "max_attempts" },
		{ { .ttl = -1 }, "ttl" },
		{ { .window = POLICY_WINDOW_MAX + 1 }, "window" },
		{ { .dlq_retention = -1 }, "retention" },
		{ { .retry = { .kind = SLU_BACKOFF_FUNCTION } }, "retry" },
		{ { .retry = { .base = -1 } }, "retry" },
	};

	EACH(i, cases) {
		const struct policy *x = &cases[i].change;
		struct policy p = policy_default;
		struct slu_err err = { 0 };

		p.lease = x->lease ? x->lease : p.lease;
		p.max_attempts = x->max_attempts ? x->max_attempts : p.max_attempts;
		p.ttl = x->ttl;
		p.window = x->window ? x->window : p.window;
		p.dlq_retention = x->dlq_retention;
		if (x->retry.kind || x->retry.base)
			p.retry = x->retry;
		CHECK_EQ(SLU_EINVAL, policy_check(&p, &err), cases[i].says);
		CHECK_CONTAINS(cases[i].says, err.text);
	}
	CHECK_EQ(0, policy_check(&policy_default, NULL));
}
