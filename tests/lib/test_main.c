/*
 * test_main.c - the tests of a program, each in a child of its own.
 */
#include "test.h"

#include "base/mem.h"

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct test *tests; /* registered before main, in reverse */
static struct test **tests_end = &tests;
static void (*fixture_before)(void), (*fixture_after)(void);

void
test_register(struct test *t)
{
	*tests_end = t;
	tests_end = &t->next;
}

void
test_fixture(void (*before)(void), void (*after)(void))
{
	fixture_before = before;
	fixture_after = after;
}

static void
run_tortured(const struct test *t)
{
	long n;

	for (n = 1;; n++) {
		mem_fail_at(n);
		t->run();
		if (!mem_failed())
			break;
	}
	mem_fail_at(0);
	printf("# %s: %ld allocations failed, one at a time\n", t->name, n - 1);
}

static void
run_in_fixture(const struct test *t)
{
	if (fixture_before)
		fixture_before();
	t->run();
	if (fixture_after)
		fixture_after();
}

static void
run_body(const struct test *t)
{
	if (t->kind == TEST_TORTURE)
		run_tortured(t);
	else if (t->kind == TEST_WITHOUT)
		t->run();
	else
		run_in_fixture(t);
}

static int
remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

/* TEST_PATIENCE=n: n times the time limit of each test, for a store behind a slow server. */
static unsigned
limit(const struct test *t)
{
	const char *const patience = getenv("TEST_PATIENCE");
	const int times = patience ? atoi(patience) : 1;

	return (unsigned)(t->seconds * (times > 1 ? times : 1));
}

/* In the child: exit() and not _exit(), so that the leak checker runs. */
static void
run_child(const struct test *t, const char *folder)
{
	setpgid(0, 0);
	alarm(limit(t));
	if (chdir(folder))
		test_fail(__FILE__, __LINE__, "chdir %s: %m", folder);
	run_body(t);
	fflush(stdout);
	exit(0);
}

static int
run_forked(const struct test *t)
{
	char folder[] = "/tmp/sluice-test.XXXXXX";
	int status;
	pid_t pid;

	if (!mkdtemp(folder))
		return -1;
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		run_child(t, folder);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		status = -1;
	if (pid > 0)
		kill(-pid, SIGKILL); /* whatever the test left running */
	nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	return status;
}

static int
report(const struct test *t, int number, int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		printf("ok %d %s\n", number, t->name);
		return 0;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == TEST_SKIPPED) {
		printf("ok %d %s # SKIP\n", number, t->name);
		return 0;
	}
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		printf("# still running after %u s\n", limit(t));
	else if (WIFSIGNALED(status))
		printf("# killed by signal %d\n", WTERMSIG(status));
	printf("not ok %d %s\n", number, t->name);
	return 1;
}

static bool
chosen(const struct test *t, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strstr(t->name, argv[i]))
			return true;
	return argc == 1;
}

int
main(int argc, char **argv)
{
	const bool list = argc == 2 && strcmp(argv[1], "-l") == 0;
	const bool debug = argc == 3 && strcmp(argv[1], "-d") == 0;
	int number = 0, failed = 0;

	for (const struct test *t = tests; t; t = t->next) {
		if (list)
			puts(t->name);
		else if (debug && strcmp(t->name, argv[2]) == 0)
			run_body(t);
		else if (!debug && chosen(t, argc, argv))
			failed += report(t, ++number, run_forked(t));
	}
	if (!list && !debug)
		printf("1..%d\n", number);
	return failed ? 1 : 0;
}
