/*
 * test.h - the test harness: TAP out, one forked child a test.
 *
 *         TEST(queue_keeps_order)
 *         {
 *                 CHECK_EQ(1, first(q), "the first one");
 *         }
 *
 * A test file is a program: it links the harness, which brings main(). Each test
 * runs in a child of its own with an empty temporary folder as its working
 * directory and a time limit, so a crash, a hang or a leak fails one test and no
 * other. `prog -l` lists the tests, `prog NAME...` runs those that contain NAME,
 * `prog -d NAME` runs one without forking, for a debugger.
 *
 * TORTURE(name) is a test that is run again and again, failing allocation 1, 2,
 * 3 ... until a run needs no more of them. Its body must treat SLU_ENOMEM as an
 * answer (free what it has, return); leaks are found by the sanitizer build.
 */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include <sluice/api.h>

#include <inttypes.h>
#include <string.h>

#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))
#define EACH(i, a) for (size_t i = 0; i < COUNT(a); i++)

struct test {
	const char *name;
	void (*run)(void);
	int seconds; /* time limit */
	bool torture;
	struct test *next;
};

enum {
	TEST_SKIPPED = 77 /* how a child ends that was */
};

void test_register(struct test *t);

#define TEST_ROW(fn, limit, tort)                                      \
	static void fn(void);                                          \
	__attribute__((constructor)) static void register_##fn(void)   \
	{                                                              \
		static struct test t = { #fn, fn, limit, tort, NULL }; \
		test_register(&t);                                     \
	}                                                              \
	static void fn(void)

#define TEST(fn)                TEST_ROW(fn, 60, false)
#define TEST_LIMIT(fn, seconds) TEST_ROW(fn, seconds, false)
#define TORTURE(fn)             TEST_ROW(fn, 120, true)

/* A failed check ends its test (threads of the test included). */
void test_fail(const char *file, int line, const char *fmt, ...)
	SLU_NORETURN SLU_PRINTF(3, 4);
void test_skip(const char *why) SLU_NORETURN;

#define CHECK(cond)                                                 \
	do {                                                        \
		if (!(cond))                                        \
			test_fail(__FILE__, __LINE__, "%s", #cond); \
	} while (0)

/* The label, or "" when there is none. */
#define TEST_LABEL(...) \
	((const char *const[]){ "" __VA_OPT__(, __VA_ARGS__) }[0 __VA_OPT__(+1)])

/* CHECK_EQ(want, got[, label]): integers, pointers cast by the caller. */
#define CHECK_EQ(want, got, ...)                                                 \
	do {                                                                     \
		const intmax_t want_ = (intmax_t)(want), got_ = (intmax_t)(got); \
		if (want_ != got_)                                               \
			test_fail(__FILE__, __LINE__,                            \
				  "%s: want %" PRIdMAX ", got %" PRIdMAX " %s",  \
				  #got, want_, got_, TEST_LABEL(__VA_ARGS__));   \
	} while (0)

#define CHECK_STR(want, got)                                                         \
	do {                                                                         \
		const char *want_ = (want), *got_ = (got);                           \
		if (strcmp(want_, got_) != 0)                                        \
			test_fail(__FILE__, __LINE__,                                \
				  "%s: want \"%s\", got \"%s\"", #got, want_, got_); \
	} while (0)

#define CHECK_CONTAINS(part, whole)                                      \
	do {                                                             \
		const char *part_ = (part), *whole_ = (whole);           \
		if (!strstr(whole_, part_))                              \
			test_fail(__FILE__, __LINE__,                    \
				  "no \"%s\" in \"%s\"", part_, whole_); \
	} while (0)

/* A seeded generator, the same everywhere: TEST_SEED in the environment replays. */
uint64_t test_seed(void);
uint64_t test_random(uint64_t *state);

/* Wait until cond holds, for things another thread will do soon; the test's time
 * limit is the only bound. */
#define WAIT_UNTIL(cond)              \
	do {                          \
		while (!(cond))       \
			test_yield(); \
	} while (0)
void test_yield(void);

#endif
