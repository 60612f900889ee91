/*
 * test.h - the test harness: TAP out, one forked child a test.
 *
 *         TEST(queue_keeps_order)
 *         {
 *                 CHECK_EQ(1, first(q), "the first one");
 *         }
 *
 * A test file is a program: it links the harness, which has main(). Each test runs in a
 * child process with a time limit and an empty temporary folder as its working directory,
 * so a crash, a hang or a leak fails one test and no other. `prog -l` lists the tests,
 * `prog NAME...` runs the tests that contain NAME, `prog -d NAME` runs one without a fork,
 * for a debugger.
 *
 * FIXTURE(before, after) runs the two functions around every TEST of the program. TEST_BARE
 * runs without them.
 *
 * TORTURE(name) runs its body again and again and lets allocation 1, 2, 3 ... fail, until a
 * run makes fewer allocations. The body must handle SLU_ENOMEM as an answer: free what it
 * has, return. The sanitizer build finds leaks.
 */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include <sluice/api.h>

#include <inttypes.h>
#include <string.h>

#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))
#define EACH(i, a) for (size_t i = 0; i < COUNT(a); i++)

enum test_kind {
	TEST_IN_FIXTURE, /* between the two functions of FIXTURE, if the program has one */
	TEST_WITHOUT,    /* without them */
	TEST_TORTURE     /* without them, and again for each allocation that can fail */
};

struct test {
	const char *name;
	void (*run)(void);
	int seconds; /* time limit */
	enum test_kind kind;
	struct test *next;
};

enum {
	TEST_SKIPPED = 77 /* exit status of a test that was skipped */
};

void test_register(struct test *t);
void test_fixture(void (*before)(void), void (*after)(void));

#define TEST_ROW(fn, limit, kind)                                      \
	static void fn(void);                                          \
	__attribute__((constructor)) static void register_##fn(void)   \
	{                                                              \
		static struct test t = { #fn, fn, limit, kind, NULL }; \
		test_register(&t);                                     \
	}                                                              \
	static void fn(void)

#define TEST(fn)                     TEST_ROW(fn, 60, TEST_IN_FIXTURE)
#define TEST_LIMIT(fn, seconds)      TEST_ROW(fn, seconds, TEST_IN_FIXTURE)
#define TEST_BARE(fn)                TEST_ROW(fn, 60, TEST_WITHOUT)
#define TEST_BARE_LIMIT(fn, seconds) TEST_ROW(fn, seconds, TEST_WITHOUT)
#define TORTURE(fn)                  TEST_ROW(fn, 120, TEST_TORTURE)

/* Every TEST of the program runs between before() and after(), TEST_BARE without. Either may
 * be NULL. */
#define FIXTURE(before, after)                                        \
	__attribute__((constructor)) static void set_up_fixture(void) \
	{                                                             \
		test_fixture(before, after);                          \
	}                                                             \
	struct test

/* A failed check ends its test, also the threads of the test. */
void test_fail(const char *file, int line, const char *fmt, ...)
	SLU_NORETURN SLU_PRINTF(3, 4);
void test_skip(const char *why) SLU_NORETURN;

/* The text of docs/NAME; ends the test as skipped if it runs without the sources. The next call replaces it. */
const char *test_document(const char *name);

/* Lines of 16 bytes with their offset, as hexdump writes them. The next call replaces the text. */
const char *test_dump(const char *p, size_t from, size_t to);

#define CHECK(cond)                                                 \
	do {                                                        \
		if (!(cond))                                        \
			test_fail(__FILE__, __LINE__, "%s", #cond); \
	} while (0)

/* The label, or "" without one. */
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

/* Waits until cond holds, for something that another thread does soon. Only the time limit of the
 * test bounds it. */
#define WAIT_UNTIL(cond)              \
	do {                          \
		while (!(cond))       \
			test_yield(); \
	} while (0)
void test_yield(void);

#endif
