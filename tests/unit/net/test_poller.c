#include "test.h"

#include "net/poller.h"

#define NOW (100 * SLU_SEC)

/* A loop that polls each microsecond; the wait ends after `took`. Returns how long it polled. */
static slu_time
wait_for(struct poller *p, enum poller_kind kind, slu_time took)
{
	slu_time polled = 0;

	if (poller_begin(p, kind, NOW))
		for (polled = SLU_US; polled < took && poller_again(p, NOW + polled);)
			polled += SLU_US;
	poller_end(p, NOW + took);
	return polled;
}

static struct poller
new_poller(unsigned processors)
{
	struct poller p;

	poller_init(&p, processors);
	return p;
}

TEST(a_loop_polls_for_what_usually_comes_soon)
{
	struct poller p = new_poller(2);

	CHECK_EQ(0, wait_for(&p, POLLER_ANSWER, 100 * SLU_US));
	for (int i = 0; i < 20; i++)
		wait_for(&p, POLLER_ANSWER, 100 * SLU_US);
	CHECK_EQ(100 * SLU_US, wait_for(&p, POLLER_ANSWER, 100 * SLU_US));
	CHECK_EQ(0, wait_for(&p, POLLER_REQUEST, 100 * SLU_US), "each kind has its own usual time");
}

TEST(a_loop_that_waits_longer_than_usual_sleeps)
{
	struct poller p = new_poller(2);

	for (int i = 0; i < 50; i++)
		wait_for(&p, POLLER_REQUEST, 20 * SLU_US);
	CHECK(wait_for(&p, POLLER_REQUEST, SLU_SEC) <= POLLER_PATIENCE * 25 * SLU_US);
}

TEST(a_loop_that_usually_waits_long_does_not_poll)
{
	struct poller p = new_poller(2);
	slu_time polled = 0;

	for (int i = 0; i < 20; i++)
		wait_for(&p, POLLER_REQUEST, 20 * SLU_US);
	for (int i = 0; i < 1000; i++)
		polled += wait_for(&p, POLLER_REQUEST, SLU_MS);
	CHECK(polled < SLU_MS); /* of a second */
	CHECK_EQ(0, wait_for(&p, POLLER_REQUEST, SLU_MS));
}

TEST(a_loop_that_is_kept_from_its_processor_stops_polling)
{
	struct poller p = new_poller(2);

	for (int i = 0; i < 20; i++)
		wait_for(&p, POLLER_ANSWER, 100 * SLU_US);
	CHECK(poller_begin(&p, POLLER_ANSWER, NOW));
	CHECK(poller_again(&p, NOW + POLLER_LATE));
	CHECK(!poller_again(&p, NOW + 2 * POLLER_LATE + 1));
	poller_end(&p, NOW + 2 * POLLER_LATE + 1);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(0, wait_for(&p, POLLER_ANSWER, 100 * SLU_US));
}

TEST(a_loop_with_one_processor_never_polls)
{
	struct poller p = new_poller(1);

	for (int i = 0; i < 100; i++)
		CHECK_EQ(0, wait_for(&p, POLLER_ANSWER, 10 * SLU_US));
}

TEST(the_end_without_a_wait_changes_nothing)
{
	struct poller p = new_poller(2);
	const struct poller before = p;

	poller_end(&p, NOW);
	CHECK_EQ(before.usual[POLLER_ANSWER], p.usual[POLLER_ANSWER]);
	CHECK_EQ(before.usual[POLLER_REQUEST], p.usual[POLLER_REQUEST]);
}
