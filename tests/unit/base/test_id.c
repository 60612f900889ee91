#include "test.h"

#include "base/id.h"
#include "fakeclock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define START (ID_EPOCH + 1000 * 24 * SLU_HOUR) /* 2026-09-27 */

enum {
	MILLION = 1000000,
	NODES = 4,
	THREADS = 4
};

static struct fakeclock f;

static void
begin(void)
{
	fakeclock_init(&f, 0, START);
}

static void
end(void)
{
	fakeclock_release(&f);
}

FIXTURE(begin, end);

static void
start(struct idgen *g, unsigned node, uint64_t highest)
{
	CHECK_EQ(0, idgen_init(g, &f.clock, node, highest, NULL));
}

/* MQ-04: 41 bits of time, 10 of node, 12 of sequence. */
TEST(an_id_holds_time_node_and_sequence)
{
	struct idgen g;
	uint64_t id;

	fakeclock_init(&f, 0, START + 7 * SLU_MS + 999);
	start(&g, 1023, 0);
	id = idgen_next(&g);
	CHECK_EQ((uint64_t)(1000LL * 86400000 + 7) << 22 | 1023 << 12 | 1, id, "0 is skipped");
	CHECK_EQ(START + 7 * SLU_MS, id_time(id), "to the ms");
	CHECK_EQ(1023, id_node(id));
	CHECK_EQ(0, id >> 63, "63 bits");
}

/* MQ-04: within a second of the system's clock. */
TEST(an_id_tells_when_it_was_made)
{
	struct idgen g;
	slu_time before, made;

	CHECK_EQ(0, idgen_init(&g, &clock_system, 3, 0, NULL));
	before = clock_wall(&clock_system);
	made = id_time(idgen_next(&g));
	CHECK(made > before - SLU_SEC && made <= clock_wall(&clock_system));
}

TEST(what_is_out_of_range_is_refused)
{
	struct slu_err err;
	struct idgen g;

	CHECK_EQ(SLU_EINVAL, idgen_init(&g, &clock_system, 1024, 0, &err));
	CHECK_STR("invalid node 1024; expected 0 to 1023", err.text);
	CHECK_EQ(SLU_EINVAL, idgen_init(&g, &clock_system, 0, ID_MAX + 1, &err));
	CHECK_STR("invalid id 9223372036854775808; expected at most 63 bits", err.text);
}

/* MQ-06: ids of one node strictly rise, whatever the clock does. */
TEST(ids_rise_while_the_clock_jumps_about)
{
	uint64_t state = test_seed();
	struct idgen g;
	uint64_t last = 0;

	start(&g, 5, 0);
	for (int i = 0; i < MILLION; i++) {
		const uint64_t id = idgen_next(&g);

		CHECK(id > last);
		last = id;
		if (i % 1000 == 0)
			fakeclock_set_wall(&f, START + (slu_time)(test_random(&state) %
								  SLU_HOUR));
	}
	CHECK(id_time(last) <= START + SLU_HOUR + SLU_SEC);
}

/* MQ-06 */
TEST(a_ms_that_is_used_up_goes_on_in_the_next)
{
	struct idgen g;
	uint64_t id = 0;

	start(&g, 1, 0);
	for (int i = 0; i < 3600; i++)
		id = idgen_next(&g);
	CHECK_EQ(START, id_time(id), "3600 fit into one, with those that are skipped");
	for (int i = 3600; i < 4096; i++)
		id = idgen_next(&g);
	CHECK_EQ(START + SLU_MS, id_time(id));
	CHECK_EQ(1, id_node(id), "the node is not touched");

	fakeclock_advance(&f, SLU_MS);
	CHECK(idgen_next(&g) > id); /* the clock catches up */
	fakeclock_advance(&f, SLU_MS);
	CHECK_EQ(START + 2 * SLU_MS, id_time(idgen_next(&g)));
}

/* MQ-06 */
TEST(a_clock_that_steps_back_is_harmless)
{
	struct idgen g;
	uint64_t id;

	start(&g, 1, 0);
	id = idgen_next(&g);
	fakeclock_set_wall(&f, START - SLU_HOUR);
	CHECK_EQ(id + 1, idgen_next(&g));
	fakeclock_set_wall(&f, -SLU_HOUR);
	CHECK_EQ(id + 2, idgen_next(&g), "even before 1970");
}

/* MQ-05, MQ-06: what the shards know counts, also when another node made it. */
TEST(a_new_start_goes_on_above_the_highest_id_known)
{
	struct idgen g;
	uint64_t highest, id;

	start(&g, 900, 0);
	highest = idgen_next(&g);
	fakeclock_set_wall(&f, START - 24 * SLU_HOUR);
	start(&g, 2, highest);
	id = idgen_next(&g);
	CHECK_EQ(START, id_time(id));
	CHECK_EQ(2, id_node(id));
	CHECK_EQ((highest & 4095) + 1, id & 4095, "one more than the sequence known");

	fakeclock_set_wall(&f, START + SLU_MS);
	start(&g, 2, highest);
	CHECK_EQ(START + SLU_MS, id_time(idgen_next(&g)), "the clock is later");
}

TEST(zero_is_never_an_id)
{
	struct idgen g;

	fakeclock_init(&f, 0, 0); /* a clock never set */
	start(&g, 0, 0);
	CHECK_EQ(1, idgen_next(&g));
}

/* The generator never gives what a JSON parser makes of another id. */
TEST(a_rounded_id_is_never_an_id)
{
	struct idgen g;

	start(&g, 3, 0);
	for (int i = 0; i < MILLION; i++) {
		const uint64_t id = idgen_next(&g);

		CHECK(id % 10 != 0 && id % 64 != 0 && !id_is_rounded(id));
		CHECK(id_is_rounded((uint64_t)(double)id));
		if (i % 4000 == 0)
			fakeclock_advance(&f, SLU_MS);
	}
}

TEST(a_rounded_id_is_known_by_its_form)
{
	static const struct {
		const char *label;
		uint64_t id;
		bool rounded;
	} cases[] = {
		{ "JavaScript, jq and Go print 17 digits", 362387865600004100, true },
		{ "a cast of a double", 362387865600004096, true },
		{ "as it was given", 362387865600004097, false },
		{ "a double has it exactly", (uint64_t)1 << 53, false },
		{ "beyond it", ((uint64_t)1 << 53) + 64, true },
		{ "small", 640, false },
	};

	EACH(i, cases)
		CHECK_EQ(cases[i].rounded, id_is_rounded(cases[i].id), cases[i].label);
}

static int
compare_ids(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void
check_no_duplicate(uint64_t *ids, size_t n)
{
	qsort(ids, n, sizeof *ids, compare_ids);
	for (size_t i = 1; i < n; i++)
		CHECK(ids[i - 1] != ids[i]);
}

/* n ids of a node that is started again half way, with the clock set back. */
static void
make_ids(unsigned node, uint64_t *ids, size_t n)
{
	struct idgen g;

	begin();
	start(&g, node, 0);
	for (size_t i = 0; i < n; i++) {
		if (i == n / 2) {
			fakeclock_set_wall(&f, START - SLU_SEC);
			start(&g, node, ids[i - 1]);
		}
		if (i % 5000 == 0)
			fakeclock_advance(&f, SLU_MS);
		ids[i] = idgen_next(&g);
		CHECK(i == 0 || ids[i] > ids[i - 1]); /* MQ-06 */
	}
}

/* MQ-05: 4 nodes, a million ids each, the same ms for all of them, a restart and a
 * clock step: no duplicate. */
TEST(four_nodes_make_four_million_different_ids)
{
	uint64_t *ids = malloc(sizeof *ids * NODES * MILLION);

	CHECK(ids);
	for (unsigned node = 0; node < NODES; node++)
		make_ids(node, ids + (size_t)node * MILLION, MILLION);
	check_no_duplicate(ids, (size_t)NODES * MILLION);
	free(ids);
}

struct maker {
	struct idgen *g;
	uint64_t *ids;
	size_t n;
};

static void *
make_in_thread(void *arg)
{
	struct maker *m = arg;

	for (size_t i = 0; i < m->n; i++) {
		m->ids[i] = idgen_next(m->g);
		CHECK(i == 0 || m->ids[i] > m->ids[i - 1]); /* MQ-06 */
	}
	return NULL;
}

/* MQ-05 */
TEST(threads_share_a_generator)
{
	const size_t each = MILLION / 4;
	uint64_t *ids = malloc(sizeof *ids * THREADS * each);
	struct maker makers[THREADS];
	pthread_t threads[THREADS];
	struct idgen g;

	CHECK(ids);
	CHECK_EQ(0, idgen_init(&g, &clock_system, 7, 0, NULL));
	EACH(i, threads) {
		makers[i] = (struct maker){ &g, ids + i * each, each };
		CHECK_EQ(0, pthread_create(&threads[i], NULL, make_in_thread, &makers[i]));
	}
	EACH(i, threads)
		pthread_join(threads[i], NULL);
	check_no_duplicate(ids, THREADS * each);
	free(ids);
}

/* LQ-29: version 7, variant 10, unix ms in front, the low 22 bits next. */
TEST(the_uuid_is_version_7_and_holds_the_id)
{
	char uuid[ID_UUID_TEXT];

	CHECK_STR("018cc251-f400-7000-8000-000000000000", id_to_uuid(0, uuid));
	CHECK_STR("018cc251-f400-7000-8010-000000000000", id_to_uuid(1, uuid));
	CHECK_STR("018cc251-f401-7fff-bff0-000000000000",
		  id_to_uuid(((uint64_t)2 << 22) - 1, uuid));
	CHECK_STR("038cc251-f3ff-7fff-bff0-000000000000", id_to_uuid(ID_MAX, uuid));
}

/* LQ-29: UUIDs sort as their ids do, and ids sort by time. */
TEST(uuids_sort_by_time)
{
	uint64_t state = test_seed();

	for (int i = 0; i < 100000; i++) {
		const uint64_t a = test_random(&state) >> 1;
		const uint64_t b = i % 2 ? test_random(&state) >> 1
					 : a ^ (uint64_t)1 << test_random(&state) % 63;
		char ua[ID_UUID_TEXT], ub[ID_UUID_TEXT];

		id_to_uuid(a, ua);
		id_to_uuid(b, ub);
		CHECK_EQ('7', ua[14]);
		CHECK_EQ(compare_ids(&a, &b), (strcmp(ua, ub) > 0) - (strcmp(ua, ub) < 0));
		CHECK(id_time(a) <= id_time(b) || a > b);
	}
}

TEST(a_uuid_and_a_number_give_the_id_back)
{
	uint64_t state = test_seed();

	for (int i = 0; i < 100000; i++) {
		const uint64_t id = (test_random(&state) >> 1 >> test_random(&state) % 63) + 1;
		char text[ID_UUID_TEXT];
		uint64_t got = 0;

		if (id > ID_MAX)
			continue;
		CHECK_EQ(0, id_from_uuid(slice_of(id_to_uuid(id, text)), &got, NULL));
		CHECK_EQ(id, got);
		for (char *p = text; *p; p++)
			*p = (char)(*p >= 'a' ? *p - 32 : *p);
		CHECK_EQ(0, id_parse(slice_of(text), &got, NULL));
		CHECK_EQ(id, got, "in capitals");
		snprintf(text, sizeof text, "%" PRIu64, id);
		CHECK_EQ(0, id_parse(slice_of(text), &got, NULL));
		CHECK_EQ(id, got);
	}
}

TEST(what_is_not_one_of_our_ids_is_refused)
{
	static const struct {
		const char *label;
		const char *text;
	} cases[] = {
		{ "nothing", "" },
		{ "zero", "0" },
		{ "zero as UUID", "018cc251-f400-7000-8000-000000000000" },
		{ "64 bits", "9223372036854775808" },
		{ "negative", "-1" },
		{ "leading zero", "01" },
		{ "hex", "0x1f" },
		{ "a word", "latest" },
		{ "before 2024", "018cc251-f3ff-7000-8010-000000000000" },
		{ "beyond 41 bits of ms", "038cc251-f400-7000-8010-000000000000" },
		{ "version 4", "0190163d-8694-4001-8010-000000000000" },
		{ "version 8", "0190163d-8694-8001-8010-000000000000" },
		{ "variant 0", "0190163d-8694-7001-0010-000000000000" },
		{ "variant 3", "0190163d-8694-7001-c010-000000000000" },
		{ "a bit after the id", "0190163d-8694-7001-8011-000000000000" },
		{ "a bit at the end", "0190163d-8694-7001-8010-000000000001" },
		{ "somebody's random bits", "0190163d-8694-739b-9b14-f2b0e9d7a1c3" },
		{ "too short", "0190163d-8694-7001-8010-00000000000" },
		{ "too long", "0190163d-8694-7001-8010-0000000000000" },
		{ "no dashes", "0190163d869470018010000000000000" },
		{ "dash moved", "0190163d8-694-7001-8010-000000000000" },
		{ "dash for a digit", "0190163d-8694-7001-8010--00000000000" },
		{ "not hex", "0190163g-8694-7001-8010-000000000000" },
		{ "braces", "{190163d-8694-7001-8010-00000000000}" },
		{ "space", " 190163d-8694-7001-8010-000000000000" },
	};

	EACH(i, cases) {
		struct slu_err err = { 0 };
		uint64_t got = 7;

		if (id_parse(slice_of(cases[i].text), &got, &err) != SLU_EINVAL)
			test_fail(__FILE__, __LINE__, "took %s", cases[i].label);
		CHECK_EQ(SLU_EINVAL, id_from_uuid(slice_of(cases[i].text), &got, NULL));
		CHECK_EQ(7, got, "left as it was");
		CHECK_CONTAINS("expected a decimal number or a UUID", err.text);
	}
}

TEST(a_refusal_names_the_id)
{
	struct slu_err err;
	uint64_t id;

	CHECK_EQ(SLU_EINVAL, id_parse(SLICE("x1"), &id, &err));
	CHECK_STR("invalid id \"x1\"; expected a decimal number or a UUID", err.text);
	CHECK_EQ(SLU_EINVAL, id_from_uuid(SLICE("17"), &id, &err));
	CHECK_STR("invalid id \"17\"; expected the UUID of a message", err.text);
}
