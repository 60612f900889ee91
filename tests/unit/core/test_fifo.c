#include "test.h"

#include "core/queue/fifo.h"
#include "base/mem.h"

static struct fifo f;

static void
teardown(void)
{
	fifo_release(&f);
}

FIXTURE(NULL, teardown);

static uint32_t
add(uint32_t handle)
{
	fifo_reserve(&f);
	CHECK(fifo_has_room(&f));
	return fifo_add(&f, handle);
}

TEST(handles_leave_from_both_ends_and_from_between)
{
	uint32_t places[5];

	CHECK_EQ(FIFO_NONE, fifo_first(&f));
	CHECK_EQ(FIFO_NONE, fifo_last(&f));
	EACH(i, places)
		places[i] = add((uint32_t)i);
	fifo_remove(&f, places[2]);
	CHECK(!fifo_has(&f, places[2], 2));
	CHECK_EQ(5, fifo_span(&f), "an empty slot between others");
	CHECK_EQ(4, f.n);
	CHECK_EQ(4, fifo_drop_last(&f));
	CHECK_EQ(3, fifo_last(&f));
	fifo_remove(&f, places[1]);
	fifo_remove(&f, places[0]);
	CHECK_EQ(3, fifo_first(&f), "empty slots behind the first go with it");
	CHECK_EQ(1, fifo_span(&f));
	fifo_remove(&f, places[3]);
	CHECK_EQ(0, fifo_span(&f));
	CHECK_EQ(FIFO_NONE, fifo_first(&f));
}

enum {
	HANDLES = 500
};

/* The handles in order, searched. */
struct model {
	uint32_t handles[HANDLES];
	uint32_t n;
};

static void
compare(const struct model *m, const uint32_t *places)
{
	uint32_t seen = 0;

	CHECK_EQ(m->n, f.n);
	for (uint32_t i = 0; i < fifo_span(&f); i++)
		if (fifo_slot(&f, i) != FIFO_NONE)
			CHECK_EQ(m->handles[seen++], fifo_slot(&f, i));
	CHECK_EQ(m->n, seen);
	CHECK_EQ(m->n ? m->handles[0] : FIFO_NONE, fifo_first(&f));
	CHECK_EQ(m->n ? m->handles[m->n - 1] : FIFO_NONE, fifo_last(&f));
	for (uint32_t i = 0; i < m->n; i++)
		CHECK(fifo_has(&f, places[m->handles[i]], m->handles[i]));
}

static void
leave(struct model *m, uint32_t i, const uint32_t *places)
{
	fifo_remove(&f, places[m->handles[i]]);
	m->n--;
	memmove(m->handles + i, m->handles + i + 1, (m->n - i) * sizeof m->handles[0]);
}

/* The share of each kind of step changes, so that the array grows, slides and is trimmed. Places wrap around. */
TEST(the_fifo_agrees_with_a_searched_array)
{
	static uint32_t places[HANDLES];
	static bool in[HANDLES];
	static struct model m;
	uint64_t seed = test_seed();
	unsigned full = 0;

	f.base = UINT32_MAX - 1000;
	for (uint32_t step = 0; step < 40000; step++) {
		const uint32_t h = (uint32_t)(test_random(&seed) % HANDLES);
		const uint32_t dice = (uint32_t)(test_random(&seed) % 16);
		const bool grows = step / 2000 % 2 == 0;

		fifo_reserve(&f);
		full += !fifo_has_room(&f);
		if (dice < (grows ? 12u : 4u) && !in[h] && fifo_has_room(&f)) {
			places[h] = fifo_add(&f, h);
			m.handles[m.n++] = h;
			in[h] = true;
		} else if (dice < 14 && m.n > 0) {
			const uint32_t i = dice % 2 ? 0 : (uint32_t)(test_random(&seed) % m.n);

			in[m.handles[i]] = false;
			leave(&m, i, places);
		} else if (dice == 14 && m.n > 0) {
			in[fifo_last(&f)] = false;
			CHECK_EQ(m.handles[m.n - 1], fifo_drop_last(&f));
			m.n--;
		} else if (dice == 15) {
			fifo_trim(&f, m.n);
		}
		if (step % 16 == 0)
			compare(&m, places);
	}
	CHECK(full < 20000);
}

/* The first handle stays, and others come and go behind it. */
TEST(empty_slots_do_not_grow_without_end)
{
	const uint32_t first = add(0);
	uint32_t last = add(1);

	for (uint32_t i = 2; i < 100000 && fifo_has_room(&f); i++) {
		const uint32_t next = fifo_add(&f, i);

		fifo_remove(&f, last);
		last = next;
		fifo_reserve(&f);
	}
	CHECK_EQ(2, f.n);
	CHECK(fifo_bytes(&f) < 100);
	CHECK_EQ(0, fifo_growth(&f));
	fifo_remove(&f, first);
	CHECK(fifo_has_room(&f));
}

TORTURE(a_fifo_without_memory_has_no_room)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < 1000; i++) {
		fifo_reserve(&f);
		if (!fifo_has_room(&f))
			continue;
		fifo_add(&f, i);
		n++;
	}
	CHECK_EQ(n, f.n);
	CHECK(n >= 1000 - 1);
	teardown();
}
