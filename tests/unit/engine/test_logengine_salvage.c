/*
 * What is saved of a damaged log: all that can be read, nothing else, and it opens.
 */
#include "logkit.h"

#include "core/ledger/check.h"

#include <stdio.h>

enum {
	SEGMENT = 64 << 10
};

static struct logkit *
make_log(uint64_t seed)
{
	struct logkit *k = logkit_new(SEGMENT, seed, false);

	CHECK_EQ(0, logkit_open(k));
	for (int i = 0; i < 200; i++)
		CHECK_EQ(0, logkit_step(k));
	logkit_close(k);
	return k;
}

static struct logengine_salvage
salvage(struct logkit *k)
{
	struct logengine_salvage s;

	if (logengine_salvage(&k->disk->disk, "log", "new", &s, &k->err))
		test_fail(__FILE__, __LINE__, "salvage: %s", k->err.text);
	k->folder = "new";
	k->live = 0;
	logkit_doubt(k);
	return s;
}

TEST_LIMIT(nothing_is_lost_of_a_sound_log, 120)
{
	struct logkit *k = make_log(test_seed());
	const struct logengine_salvage s = salvage(k);

	CHECK_EQ(0, s.found.missing);
	CHECK_EQ(0, s.found.broken);
	CHECK_EQ(0, s.n_left);
	CHECK_EQ(0, logkit_open(k)); /* and all is as the model says */
	for (int i = 0; i < 20; i++)
		CHECK_EQ(0, logkit_step(k));
	logkit_free(k);
}

static uint64_t
count_in(const struct logkit *k)
{
	uint64_t n = 0;

	for (uint64_t id = 1; id < k->next_id; id++)
		n += k->msgs[id].status == KIT_IN;
	return n;
}

/* A few sectors of a segment are garbage. */
static void
spoil(struct logkit *k, uint64_t *random)
{
	const char *name;
	unsigned n = 0;
	char *bytes;
	size_t size;

	for (unsigned i = 0; (name = simdisk_name(k->disk, i)); i++)
		if (strstr(name, ".log") && test_random(random) % ++n == 0) {
			bytes = simdisk_content(k->disk, name, &size);
			memset(bytes + test_random(random) % (size / 512) * 512, 0x5a, 512);
		}
}

TEST_LIMIT(most_is_saved_of_a_damaged_log, 300)
{
	uint64_t random = test_seed();

	for (int i = 0; i < 40; i++) {
		struct logkit *k = make_log(test_random(&random));
		const uint64_t before = count_in(k), token = k->top_token;
		const char *wrong;

		spoil(k, &random);
		(void)salvage(k);
		k->lossy = true;
		if (logkit_open(k)) /* every record's bytes are checked */
			test_fail(__FILE__, __LINE__, "open: %s", k->err.text);
		wrong = ledger_scan_check(logengine_ledger(k->e));
		if (wrong)
			test_fail(__FILE__, __LINE__, "%s", wrong);
		CHECK(count_in(k) >= before / 4);
		CHECK(ledger_counter(logengine_ledger(k->e)) >= token);
		logkit_free(k);
	}
}
