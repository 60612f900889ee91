/*
 * ledger_fixture.h - a ledger with one queue, and its verbs in a word each.
 */
#ifndef TESTS_LEDGER_FIXTURE_H
#define TESTS_LEDGER_FIXTURE_H

#include "test.h"
#include "ledgerkit.h"

#include "core/ledger/ledger.h"
#include "core/ledger/check.h"

static struct {
	struct ledger *l;
	uint32_t space, queue;
	slu_time now;
	uint64_t last_id;
	uint64_t token; /* of the last claim */
	struct policy policy;
} f;

static inline void
setup(void)
{
	const struct ledger_conf conf = { .secret = { 1, 2 }, .max_idem = 8 };

	memset(&f, 0, sizeof f);
	f.now = 1000 * SLU_HOUR;
	f.policy = policy_default;
	CHECK_EQ(0, ledger_new(&f.l, &conf));
	CHECK_EQ(0, ledger_queue_open(f.l, SLICE("shop"), SLICE("mail"), &f.queue));
	f.space = ledger_space_find(f.l, SLICE("shop"));
}

static inline void
check_sound(void)
{
	const char *wrong = ledger_scan_check(f.l);

	if (wrong)
		test_fail(__FILE__, __LINE__, "%s", wrong);
}

static inline void
teardown(void)
{
	check_sound();
	ledger_free(f.l);
}

FIXTURE(setup, teardown);

static inline void
apply(const struct change *c)
{
	CHECK_EQ(0, ledger_apply(f.l, c));
}

/* Accept o, whose id is given here; returns the id. */
static inline uint64_t
put_offer(struct ledger_offer o)
{
	struct change c;

	o.id = ++f.last_id;
	CHECK_EQ(0, ledger_accept(f.l, f.queue, &o, f.now, &c));
	apply(&c);
	return o.id;
}

static inline uint64_t
put(int32_t prio)
{
	return put_offer((struct ledger_offer){ .prio = prio });
}

static inline uint64_t
put_keyed(const char *key, int32_t prio, slu_time due)
{
	return put_offer((struct ledger_offer){ .key = slice_of(key), .prio = prio, .due = due });
}

/* The id of what is handed out, or 0. */
static inline uint64_t
claim_for(slu_time lease)
{
	struct change c;

	do {
		CHECK_EQ(0, ledger_claim(f.l, f.queue, lease, f.now, &c));
		if (c.kind == CHANGE_NONE)
			return 0;
		apply(&c);
	} while (c.kind != CHANGE_CLAIM);
	f.token = c.token;
	return c.id;
}

static inline uint64_t
claim(void)
{
	return claim_for(0);
}

static inline struct ledger_ref
ref_of(uint64_t id, uint64_t token)
{
	return (struct ledger_ref){ .space = f.space, .queue = f.queue, .id = id, .token = token };
}

static inline int
ack_as(uint64_t id, uint64_t token)
{
	const struct ledger_ref ref = ref_of(id, token);
	struct change c;
	const int rc = ledger_ack(f.l, &ref, f.now, &c);

	if (!rc)
		apply(&c);
	return rc;
}

static inline int
nack_as(uint64_t id, uint64_t token, struct ledger_nack nack)
{
	const struct ledger_ref ref = ref_of(id, token);
	struct change c;
	const int rc = ledger_nack(f.l, &ref, &nack, f.now, &c);

	if (!rc)
		apply(&c);
	return rc;
}

/* A failing nack, ready again at once. */
static inline void
fail(uint64_t id)
{
	CHECK_EQ(0, nack_as(id, f.token, (struct ledger_nack){ .delay = 0 }));
}

typedef int one_fn(struct ledger *l, const struct ledger_ref *ref, slu_time now,
		   struct change *out);

/* ledger_return, ledger_redrive or ledger_delete. */
static inline int
act(one_fn *fn, uint64_t id)
{
	const struct ledger_ref ref = ref_of(id, f.token);
	struct change c;
	const int rc = fn(f.l, &ref, f.now, &c);

	if (!rc)
		apply(&c);
	return rc;
}

static inline void
tick(void)
{
	uint32_t budget = UINT32_MAX;
	struct change c;

	while (ledger_tick(f.l, f.now, &budget, &c))
		apply(&c);
}

static inline void
pass(slu_time time)
{
	f.now += time;
	tick();
}

static inline void
set_policy(void)
{
	struct change c;

	CHECK_EQ(0, ledger_set_policy(f.l, f.queue, &f.policy, f.now, &c));
	apply(&c);
}

static inline struct ledger_view
view(uint64_t id)
{
	const uint32_t h = ledger_find(f.l, f.space, id);
	struct ledger_view v = { .state = MSG_NONE };

	if (h != SLAB_NONE)
		ledger_get(f.l, h, &v);
	return v;
}

static inline enum msg_state
state(uint64_t id)
{
	return view(id).state;
}

static inline uint32_t
count(enum msg_state s)
{
	struct ledger_queue_view v;

	ledger_queue_get(f.l, f.queue, &v);
	return v.count[s];
}

#endif
