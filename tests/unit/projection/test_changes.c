#include "test.h"

#include "projection/changes.h"

static struct changes c;

static void
start(void)
{
	changes_init(&c, 4);
	changes_begin(&c);
}

static void
end(void)
{
	changes_release(&c);
}

FIXTURE(start, end);

/* How many ids are taken until then; the first of them is *id. */
static uint32_t
take(slu_time until, uint64_t *id)
{
	uint64_t ids[8] = { 0 };
	const uint32_t n = changes_take(&c, until, ids, 8);

	*id = ids[0];
	return n;
}

TEST(ids_are_taken_oldest_first_when_they_are_old_enough)
{
	uint64_t ids[2], id;

	changes_note(&c, 30, CHANGES_ACCEPTED, 1);
	changes_note(&c, 10, CHANGES_CHANGED, 2);
	changes_note(&c, 20, CHANGES_ENDED, 3);
	CHECK_EQ(1, changes_oldest(&c));
	CHECK_EQ(0, take(0, &id));
	CHECK_EQ(2, changes_take(&c, 9, ids, 2));
	CHECK_EQ(30, ids[0]);
	CHECK_EQ(10, ids[1]);
	CHECK_EQ(1, changes_count(&c));
	CHECK_EQ(1, take(3, &id));
	CHECK_EQ(20, id);
	CHECK(changes_oldest(&c) == SLU_NEVER);
}

TEST(a_message_that_changes_again_keeps_its_time)
{
	uint64_t id;

	changes_note(&c, 1, CHANGES_CHANGED, 1);
	changes_note(&c, 1, CHANGES_CHANGED, 8);
	changes_note(&c, 1, CHANGES_ENDED, 9);
	CHECK_EQ(1, changes_count(&c));
	CHECK_EQ(1, take(1, &id));
}

TEST(a_message_that_is_accepted_and_ends_leaves_no_trace) /* CHANGES-1 */
{
	uint64_t id;

	changes_note(&c, 1, CHANGES_ACCEPTED, 1);
	changes_note(&c, 2, CHANGES_ACCEPTED, 1);
	changes_note(&c, 2, CHANGES_CHANGED, 2);
	CHECK(changes_is_new(&c, 2));
	changes_note(&c, 2, CHANGES_ENDED, 3);
	changes_note(&c, 1, CHANGES_ENDED, 3);
	CHECK_EQ(0, changes_count(&c));
	CHECK_EQ(0, take(9, &id));
}

TEST(a_message_that_was_taken_and_ends_is_noted)
{
	uint64_t id;

	changes_note(&c, 1, CHANGES_ACCEPTED, 1);
	CHECK_EQ(1, take(1, &id));
	changes_note(&c, 1, CHANGES_ENDED, 2);
	CHECK(!changes_is_new(&c, 1));
	CHECK_EQ(1, take(2, &id));
	CHECK_EQ(1, id);
}

TEST(beyond_the_limit_all_is_forgotten_until_a_new_begin) /* CHANGES-2 */
{
	uint64_t id;

	for (uint64_t i = 1; i <= 4; i++)
		changes_note(&c, i, CHANGES_CHANGED, 1);
	changes_note(&c, 4, CHANGES_CHANGED, 1);
	CHECK(!c.lost);
	changes_note(&c, 5, CHANGES_CHANGED, 1);
	CHECK(c.lost);
	changes_note(&c, 6, CHANGES_CHANGED, 1);
	CHECK_EQ(0, take(9, &id));
	changes_begin(&c);
	changes_note(&c, 7, CHANGES_CHANGED, 1);
	CHECK_EQ(1, take(9, &id));
	CHECK_EQ(7, id);
}

TEST_BARE(a_module_that_did_not_begin_notes_nothing)
{
	changes_init(&c, 4);
	changes_note(&c, 1, CHANGES_CHANGED, 1);
	CHECK(c.lost);
	CHECK_EQ(0, changes_count(&c));
	changes_release(&c);
}

/* Fails at each allocation in turn: what is not noted is lost, and says so. */
TORTURE(memory_that_is_out_loses_the_changes)
{
	uint32_t n;

	changes_init(&c, 100000);
	changes_begin(&c);
	for (uint64_t i = 1; i <= 5000; i++)
		changes_note(&c, i, CHANGES_CHANGED, 1);
	n = changes_count(&c);
	CHECK(c.lost ? n == 0 : n == 5000);
	changes_release(&c);
}
