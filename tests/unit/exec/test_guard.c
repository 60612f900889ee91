#include "test.h"

#include "exec/guard.h"

#include <sluice/panic.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int bottom; /* volatile, or fall() is seen never to return */

static void
fall(int depth)
{
	if (depth > bottom)
		fall(depth - 1);
	else if (bottom == 0)
		slu_panic("fell %d deep", 3);
}

static void
rise(int depth)
{
	(void)depth;
}

/* What a task does: call fn guarded; returns whether it panicked. */
static bool
call(void (*fn)(int), int arg, char text[GUARD_TEXT_MAX])
{
	struct panic_guard g;
	volatile bool panicked = true;

	if (!GUARD_ENTER(&g)) {
		fn(arg);
		panicked = false;
	}
	memcpy(text, g.text, sizeof g.text);
	guard_leave(&g);
	return panicked;
}

TEST(a_panic_comes_back_to_the_guard_from_any_depth)
{
	char text[GUARD_TEXT_MAX];

	CHECK(call(fall, 50, text));
	CHECK_STR("fell 3 deep", text);
}

TEST(a_function_that_returns_leaves_no_text)
{
	char text[GUARD_TEXT_MAX];

	CHECK(!call(rise, 0, text));
	CHECK_STR("", text);
}

TEST(a_guard_can_be_used_again_and_again)
{
	char text[GUARD_TEXT_MAX];

	for (int i = 0; i < 1000; i++) {
		CHECK(call(fall, i % 7, text));
		CHECK(!call(rise, 0, text));
	}
}

static void
panic_long(int unused)
{
	char text[GUARD_TEXT_MAX * 3];

	(void)unused;
	memset(text, 'x', sizeof text);
	text[sizeof text - 1] = 0;
	slu_panic("%s", text);
}

TEST(a_long_text_is_cut)
{
	char text[GUARD_TEXT_MAX];

	CHECK(call(panic_long, 0, text));
	CHECK_EQ(GUARD_TEXT_MAX - 1, strlen(text));
}

static void
nest(int how)
{
	char text[GUARD_TEXT_MAX];

	CHECK(call(fall, 2, text));
	CHECK_STR("fell 3 deep", text);
	if (how)
		slu_panic("outer");
}

TEST(an_inner_panic_stops_at_the_inner_guard)
{
	char text[GUARD_TEXT_MAX];

	CHECK(!call(nest, 0, text));
	CHECK_STR("", text);
}

TEST(a_panic_after_an_inner_one_goes_to_the_outer_guard)
{
	char text[GUARD_TEXT_MAX];

	CHECK(call(nest, 1, text));
	CHECK_STR("outer", text);
}

/* Runs fn in a child whose stderr goes to text; returns its wait status. */
static int
die(void (*fn)(void), char *text, size_t size)
{
	int ends[2], status;
	ssize_t n;
	pid_t pid;

	CHECK(pipe(ends) == 0);
	pid = fork();
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
		dup2(ends[1], STDERR_FILENO);
		fn();
		_exit(0);
	}
	close(ends[1]);
	n = read(ends[0], text, size - 1);
	CHECK(n >= 0);
	text[n] = 0;
	close(ends[0]);
	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

static void
panic_unguarded(void)
{
	slu_panic("lost %s", "way");
}

static void
panic_after_guard(void)
{
	char text[GUARD_TEXT_MAX];

	(void)call(fall, 1, text);
	(void)call(rise, 1, text);
	slu_panic("too late");
}

TEST(a_panic_outside_a_guard_says_so_and_aborts)
{
	char text[1000];
	int status = die(panic_unguarded, text, sizeof text);

	CHECK(WIFSIGNALED(status));
	CHECK_EQ(SIGABRT, WTERMSIG(status));
	CHECK_STR("sluice: panic outside a task: lost way\n", text);
}

TEST(a_guard_that_was_left_catches_nothing)
{
	char text[1000];
	int status = die(panic_after_guard, text, sizeof text);

	CHECK(WIFSIGNALED(status));
	CHECK_EQ(SIGABRT, WTERMSIG(status));
	CHECK_CONTAINS("too late", text);
}

static void *
panic_a_lot(void *arg)
{
	const int depth = *(int *)arg;
	char text[GUARD_TEXT_MAX];

	for (int i = 0; i < 1000; i++)
		CHECK(call(fall, depth, text));
	return NULL;
}

TEST(threads_have_guards_of_their_own)
{
	int depths[4] = { 1, 5, 9, 20 };
	pthread_t threads[4];

	EACH(i, threads)
		CHECK_EQ(0, pthread_create(&threads[i], NULL, panic_a_lot, &depths[i]));
	EACH(i, threads)
		pthread_join(threads[i], NULL);
}
