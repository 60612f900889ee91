#include "test.h"

#include "core/queue/queue.h"

#include <sluice/err.h>

#include <stdlib.h>

static struct {
	struct slab slab;
	struct queue queue;
	uint64_t seq;
} f;

static void
teardown(void)
{
	queue_release(&f.queue);
	slab_release(&f.slab);
}

static void
setup(slu_time age, bool indexed)
{
	teardown();
	memset(&f, 0, sizeof f);
	slab_init(&f.slab, sizeof(struct queue_item));
	queue_init(&f.queue, &f.slab, age, indexed);
}

FIXTURE(NULL, teardown);

static struct queue_item *
item_at(uint32_t item)
{
	return slab_at(&f.slab, item);
}

/* SLAB_NONE when memory is out. */
static uint32_t
try_put(int32_t prio, slu_time due, slu_time now)
{
	const uint32_t item = slab_new(&f.slab);

	if (item == SLAB_NONE)
		return SLAB_NONE;
	item_at(item)->prio = prio;
	item_at(item)->due = due;
	item_at(item)->seq = ++f.seq;
	if (queue_put(&f.queue, item, now) == 0)
		return item;
	CHECK_EQ(QUEUE_OUT, item_at(item)->place);
	slab_free(&f.slab, item);
	return SLAB_NONE;
}

static uint32_t
put(int32_t prio, slu_time due, slu_time now)
{
	const uint32_t item = try_put(prio, due, now);

	CHECK(item != SLAB_NONE);
	return item;
}

/* Take the best out for good and return its seq. */
static uint64_t
pull(void)
{
	const uint32_t item = queue_best(&f.queue);
	uint64_t seq;

	CHECK(item != SLAB_NONE);
	seq = item_at(item)->seq;
	queue_take(&f.queue, item);
	queue_drop(&f.queue, item);
	slab_free(&f.slab, item);
	return seq;
}

TEST(ready_items_come_by_priority_then_due_then_arrival)
{
	setup(QUEUE_STRICT, true);
	put(10, 1, 100);  /* 1 */
	put(5, 90, 100);  /* 2 */
	put(5, 20, 100);  /* 3 */
	put(-7, 99, 100); /* 4 */
	put(5, 20, 100);  /* 5 */
	/* PW-05, PW-16: value, then due, then sequence. PW-20: lower goes first. */
	CHECK_EQ(4, pull(), "the lowest value, though due last");
	CHECK_EQ(3, pull(), "of one value, the earliest due");
	CHECK_EQ(5, pull(), "PW-07: of one value and time, the first that came");
	CHECK_EQ(2, pull());
	CHECK_EQ(1, pull());
	CHECK_EQ(SLAB_NONE, queue_best(&f.queue));
}

TEST(timed_items_fall_due_by_time_then_priority_then_arrival)
{
	static const uint64_t want[] = { 3, 4, 5, 1, 2 };

	setup(0, true); /* age 0: ready ones come by due, then arrival alone */
	put(5, 300, 0);
	put(0, (slu_time)1 << 40, 0);
	put(-1, 200, 0);
	put(9, 200, 0);
	put(9, 200, 0);
	/* PW-06: same ready time, by priority. */
	EACH(i, want) {
		const uint32_t item = queue_first_timed(&f.queue);

		CHECK_EQ(item_at(item)->due, queue_next_due(&f.queue));
		CHECK_EQ(want[i], item_at(item)->seq);
		CHECK_EQ(1, queue_tick(&f.queue, SLU_NEVER, 1));
		CHECK(queue_has_ready(&f.queue, item));
	}
	CHECK_EQ(SLU_NEVER, queue_next_due(&f.queue));
}

TEST(an_urgent_item_of_the_future_delays_no_other_item)
{
	setup(QUEUE_STRICT, false);
	put(0, 1000, 10); /* 1: urgent, later */
	put(5, 10, 10);   /* 2 */
	put(10, 10, 10);  /* 3 */
	/* PW-04 */
	CHECK_EQ(0, queue_tick(&f.queue, 999, UINT32_MAX));
	CHECK_EQ(2, pull());
	CHECK_EQ(1, queue_tick(&f.queue, 1000, UINT32_MAX), "due at its very moment");
	CHECK_EQ(1, pull(), "and then it goes first");
	CHECK_EQ(3, pull());
}

TEST(tick_moves_all_that_is_due_and_no_more_than_asked)
{
	setup(QUEUE_STRICT, false);
	for (int i = 0; i < 12; i++)
		put(5, 100 + i, 0);
	CHECK_EQ(3, queue_tick(&f.queue, 109, 3));
	CHECK_EQ(7, queue_tick(&f.queue, 109, UINT32_MAX)); /* PW-15: ten in all */
	CHECK_EQ(10, queue_ready(&f.queue));
	CHECK_EQ(2, f.queue.timed.n);
	CHECK_EQ(110, queue_next_due(&f.queue));
}

TEST(an_item_that_is_out_keeps_its_room)
{
	uint32_t items[200];

	setup(QUEUE_STRICT, true);
	EACH(i, items)
		items[i] = put(5, 1, 10);
	EACH(i, items)
		queue_take(&f.queue, items[i]);
	CHECK_EQ(200, f.queue.held);
	EACH(i, items) /* more than a fresh heap has room for; heap_push asserts */
		queue_wait(&f.queue, items[i], 20, 10);
	CHECK_EQ(200, f.queue.timed.n);
	CHECK_EQ(200, queue_tick(&f.queue, 20, UINT32_MAX));
}

TEST(room_may_be_kept_for_an_item_that_is_out)
{
	const slu_time now = 10;

	setup(QUEUE_STRICT, true);
	const uint32_t item = slab_new(&f.slab);

	CHECK_EQ(0, queue_hold(&f.queue));
	CHECK_EQ(1, f.queue.held);
	CHECK_EQ(SLAB_NONE, queue_best(&f.queue));
	queue_wait(&f.queue, item, now, now);
	CHECK_EQ(item, queue_best(&f.queue));
	queue_drop(&f.queue, item);
	CHECK_EQ(0, f.queue.held);
}

TEST(timed_items_may_fall_due_by_arrival_alone)
{
	static const uint64_t want[] = { 3, 1, 2 };

	setup(QUEUE_STRICT, true);
	queue_time_by_arrival(&f.queue);
	put(5, 300, 0);
	put(0, 300, 0);
	put(9, 299, 0);
	EACH(i, want) {
		CHECK_EQ(want[i], item_at(queue_first_timed(&f.queue))->seq);
		CHECK_EQ(1, queue_tick(&f.queue, SLU_NEVER, 1));
	}
}

TEST(ageing_bounds_how_long_an_item_yields)
{
	static const struct {
		const char *label;
		slu_time age, low_due, high_due; /* of priorities 10 and 0 */
		bool high_first;
	} cases[] = {
		{ "strict: however late", QUEUE_STRICT, 1, SLU_NEVER - 1, true },
		{ "just inside", 100, 1000, 1999, true },
		{ "at the bound the first that came goes", 100, 1000, 2000, false },
		{ "just outside", 100, 1000, 2001, false },
		{ "age 0 is no priority", 0, 1000, 1001, false },
		{ "large ages are exact", SLU_NEVER / 16, 0, SLU_NEVER / 16 * 10 - 1, true },
		{ "and so is their bound", SLU_NEVER / 16, 0, SLU_NEVER / 16 * 10 + 1, false },
	};

	EACH(i, cases) {
		setup(cases[i].age, false);
		put(10, cases[i].low_due, SLU_NEVER);
		put(0, cases[i].high_due, SLU_NEVER);
		if ((pull() == 2) != cases[i].high_first)
			test_fail(__FILE__, __LINE__, "%s", cases[i].label);
	}
}

TEST(extreme_priorities_and_ages_keep_their_order)
{
	static const int32_t prios[] = { INT32_MIN, -1, 0, 1, INT32_MAX - 1, INT32_MAX };
	static const slu_time ages[] = { 1, SLU_HOUR, SLU_NEVER - 1 };

	EACH(a, ages) {
		setup(ages[a], false);
		EACH(i, prios) /* the least urgent comes first */
			put(prios[COUNT(prios) - 1 - i], SLU_SEC, SLU_SEC);
		EACH(i, prios)
			CHECK_EQ(COUNT(prios) - i, pull());
	}
}

static void
count_dropped(void *arg, uint32_t item)
{
	(void)item;
	++*(unsigned *)arg;
}

TEST(clear_leaves_what_is_out)
{
	unsigned dropped = 0;
	uint32_t out;

	setup(QUEUE_STRICT, false);
	out = put(0, 1, 1);
	queue_take(&f.queue, out);
	for (int i = 0; i < 100; i++)
		put(i, i % 2, 0);
	queue_clear(&f.queue, count_dropped, &dropped);
	CHECK_EQ(100, dropped);
	CHECK_EQ(1, f.queue.held);
	CHECK_EQ(0, queue_ready(&f.queue) + f.queue.timed.n);
	queue_wait(&f.queue, out, 5, 5);
	CHECK_EQ(out, queue_best(&f.queue));
}

/*
 * The model: an array that is searched. Whatever the queue names as best, as first
 * timed or as next due must be what the search finds.
 */
enum {
	MODEL_ITEMS = 64,
	MODEL_STEPS = 60000
};

struct model_item {
	bool held;
	enum queue_place place;
	slu_time due;
	int32_t prio;
	uint64_t seq;
	uint32_t handle;
};

struct model {
	struct model_item items[MODEL_ITEMS];
	slu_time now;
	uint64_t dice;
};

static uint64_t
dice(struct model *m, uint64_t sides)
{
	return test_random(&m->dice) % sides;
}

static bool
goes_before(const struct model_item *x, const struct model_item *y)
{
	const slu_time age = f.queue.age;

	if (x->place == QUEUE_READY && age != QUEUE_STRICT) {
		const __int128 wx = (__int128)x->prio * age + x->due;
		const __int128 wy = (__int128)y->prio * age + y->due;

		return wx != wy ? wx < wy : x->seq < y->seq;
	}
	if (x->place == QUEUE_READY && x->prio != y->prio)
		return x->prio < y->prio;
	if (x->due != y->due)
		return x->due < y->due;
	return x->prio != y->prio ? x->prio < y->prio : x->seq < y->seq;
}

static struct model_item *
search(struct model *m, enum queue_place place)
{
	struct model_item *best = NULL;

	EACH(i, m->items) {
		struct model_item *it = &m->items[i];

		if (it->held && it->place == place && (!best || goes_before(it, best)))
			best = it;
	}
	return best;
}

static int
by_order(const void *a, const void *b)
{
	const struct model_item *const x = *(struct model_item *const *)a, *const y = *(struct model_item *const *)b;

	return goes_before(x, y) ? -1 : goes_before(y, x);
}

static bool
count_item(void *arg, uint32_t item)
{
	CHECK(queue_has_ready(&f.queue, item) || !f.queue.indexed); /* without an index items do not know their place */
	return --*(uint32_t *)arg > 0;
}

/* All ready items, and the first of them in order. */
static void
compare_ready(struct model *m)
{
	struct model_item *ready[MODEL_ITEMS];
	uint32_t found[MODEL_ITEMS / 2], n = 0, all, some;

	EACH(i, m->items)
		if (m->items[i].held && m->items[i].place == QUEUE_READY)
			ready[n++] = &m->items[i];
		else if (m->items[i].held)
			CHECK(!queue_has_ready(&f.queue, m->items[i].handle));
	qsort(ready, n, sizeof ready[0], by_order);
	all = n;
	queue_look(&f.queue, count_item, &all);
	CHECK_EQ(0, all);
	CHECK_EQ(0, queue_peek(&f.queue, found, COUNT(found), &some));
	CHECK_EQ(n < COUNT(found) ? n : COUNT(found), some);
	for (uint32_t i = 0; i < some; i++)
		CHECK_EQ(ready[i]->handle, found[i]);
}

static void
compare(struct model *m)
{
	const struct model_item *best = search(m, QUEUE_READY);
	const struct model_item *first = search(m, QUEUE_TIMED);

	CHECK_EQ(best ? best->handle : SLAB_NONE, queue_best(&f.queue));
	compare_ready(m);
	CHECK_EQ(first ? first->handle : SLAB_NONE, queue_first_timed(&f.queue));
	CHECK_EQ(first ? first->due : SLU_NEVER, queue_next_due(&f.queue));
}

static slu_time
random_due(struct model *m)
{
	return m->now - 40 + (slu_time)dice(m, 100);
}

static void
settle(struct model *m, struct model_item *it, slu_time due)
{
	it->due = due;
	it->place = due <= m->now ? QUEUE_READY : QUEUE_TIMED;
}

static void
step_new(struct model *m, struct model_item *it)
{
	it->held = true;
	it->prio = (int32_t)dice(m, 7) - 3;
	settle(m, it, random_due(m));
	it->handle = put(it->prio, it->due, m->now);
	it->seq = f.seq;
}

static void
step_drop(struct model_item *it)
{
	queue_drop(&f.queue, it->handle);
	slab_free(&f.slab, it->handle);
	it->held = false;
}

static void
step_take(struct model_item *it)
{
	queue_take(&f.queue, it->handle);
	it->place = QUEUE_OUT;
}

/* Without an index only the first of a heap can be reached. */
static struct model_item *
reachable(struct model *m, struct model_item *it)
{
	if (!it->held || it->place == QUEUE_OUT || f.queue.indexed)
		return it;
	return search(m, it->place);
}

static void
step_item(struct model *m, struct model_item *it)
{
	it = reachable(m, it);
	if (!it->held)
		step_new(m, it);
	else if (dice(m, 3) == 0)
		step_drop(it);
	else if (it->place != QUEUE_OUT)
		step_take(it);
	else {
		settle(m, it, random_due(m));
		queue_wait(&f.queue, it->handle, it->due, m->now);
	}
}

static void
step_tick(struct model *m)
{
	const uint32_t max = (uint32_t)dice(m, 5);
	uint32_t moved = 0;
	struct model_item *it = search(m, QUEUE_TIMED);

	m->now += (slu_time)dice(m, 20);
	while (it && it->due <= m->now && moved < max) {
		it->place = QUEUE_READY;
		moved++;
		it = search(m, QUEUE_TIMED);
	}
	CHECK_EQ(moved, queue_tick(&f.queue, m->now, max));
}

TEST(the_queue_agrees_with_a_searched_array)
{
	static const struct {
		slu_time age;
		bool indexed;
	} kinds[] = {
		{ QUEUE_STRICT, true }, { QUEUE_STRICT, false }, { 13, true }, { 13, false }
	};

	EACH(k, kinds) {
		struct model m = { .now = 1000, .dice = test_seed() + k };

		setup(kinds[k].age, kinds[k].indexed);
		for (int i = 0; i < MODEL_STEPS; i++) {
			if (dice(&m, 8) == 0)
				step_tick(&m);
			else
				step_item(&m, &m.items[dice(&m, MODEL_ITEMS)]);
			compare(&m);
		}
		CHECK_EQ(f.slab.used, f.queue.held);
	}
}

TORTURE(a_put_without_memory_changes_nothing)
{
	uint32_t n = 0;

	setup(QUEUE_STRICT, true);
	for (int i = 0; i < 300; i++) {
		if (try_put(5, i % 2 ? 1 : 1000, 10) != SLAB_NONE)
			n++;
		CHECK_EQ(n, f.queue.held);
		CHECK_EQ(n, queue_ready(&f.queue) + f.queue.timed.n);
	}
	CHECK(n >= 299);
	queue_tick(&f.queue, SLU_NEVER, UINT32_MAX);
	while (n-- > 0)
		pull();
	teardown();
}
