#include "test.h"

#include "base/lines.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	THREADS = 4,
	EACH_ADDS = 500
};

static _Atomic int told;

static void
hear(void *arg, enum slu_log_level level, const char *line, size_t n)
{
	(void)arg;
	(void)level;
	(void)line;
	(void)n;
	atomic_fetch_add(&told, 1);
}

static size_t
read_file(const char *path, char *out, size_t size)
{
	const int fd = open(path, O_RDONLY);
	size_t n = 0;
	ssize_t some;

	CHECK(fd >= 0);
	while ((some = read(fd, out + n, size - 1 - n)) > 0)
		n += (size_t)some;
	close(fd);
	out[n] = '\0';
	return n;
}

static void
wait_until(const struct lines *l, uint64_t (*count)(const struct lines *l), uint64_t least)
{
	for (int i = 0; i < 10000 && count(l) < least; i++)
		usleep(1000);
	CHECK(count(l) >= least);
}

TEST(lines_are_appended_in_order_and_the_file_is_its_owners)
{
	struct lines *l;
	struct stat st;
	char text[64];

	for (int i = 0; i < 2; i++) {
		CHECK_EQ(0, lines_open(&l, "file", NULL, NULL));
		lines_add(l, SLICE("one\n"));
		lines_add(l, SLICE("two\n"));
		lines_close(l);
	}
	CHECK_EQ(16, read_file("file", text, sizeof text));
	CHECK_STR("one\ntwo\none\ntwo\n", text);
	CHECK_EQ(0, stat("file", &st));
	CHECK_EQ(0600, st.st_mode & 0777);
}

TEST(a_file_that_cannot_be_opened_is_named)
{
	struct lines *l = NULL;
	struct slu_err err;

	CHECK_EQ(SLU_EDOWN, lines_open(&l, "no/such/file", NULL, &err));
	CHECK(strstr(err.text, "no/such/file"));
}

TEST(after_a_reopen_lines_go_to_a_new_file_of_that_name)
{
	struct lines *l;
	char text[64];

	CHECK_EQ(0, lines_open(&l, "file", NULL, NULL));
	lines_add(l, SLICE("old\n"));
	wait_until(l, lines_written, 1);
	CHECK_EQ(0, rename("file", "file.1"));
	lines_reopen(l);
	for (int i = 0; i < 10000 && access("file", F_OK); i++)
		usleep(1000);
	lines_add(l, SLICE("new\n"));
	lines_close(l);
	read_file("file.1", text, sizeof text);
	CHECK_STR("old\n", text);
	read_file("file", text, sizeof text);
	CHECK_STR("new\n", text);
}

TEST(a_full_disk_costs_the_lines_and_is_logged_once)
{
	struct slu_log *log = slu_log_new(SLU_LOG_INFO, SLU_LOG_LOGFMT, hear, NULL);
	struct lines *l;

	CHECK_EQ(0, lines_open(&l, "/dev/full", log, NULL));
	for (uint64_t i = 1; i <= 3; i++) {
		lines_add(l, SLICE("lost\n"));
		wait_until(l, lines_dropped, i);
	}
	CHECK_EQ(0, lines_written(l));
	lines_close(l);
	CHECK_EQ(1, told);
	slu_log_free(log);
}

/* The pipe has no reader: the thread that writes hangs, a thread that adds does not. */
TEST(adding_a_line_never_waits_for_the_file)
{
	static char line[64 << 10];
	struct lines *l;
	char sink[64 << 10];
	int fd;

	CHECK_EQ(0, mkfifo("pipe", 0600));
	fd = open("pipe", O_RDWR | O_NONBLOCK);
	CHECK_EQ(0, lines_open(&l, "pipe", NULL, NULL));
	memset(line, 'x', sizeof line - 1);
	line[sizeof line - 1] = '\n';
	for (int i = 0; i < 200; i++) /* 12.5 MiB */
		lines_add(l, (struct slice){ line, sizeof line });
	CHECK(lines_dropped(l) > 0);
	CHECK(lines_dropped(l) < 200);
	while (lines_written(l) + lines_dropped(l) < 200)
		if (read(fd, sink, sizeof sink) < 0)
			usleep(1000);
	lines_close(l);
	close(fd);
}

static void *
add_many(void *arg)
{
	for (int i = 0; i < EACH_ADDS; i++)
		lines_add(arg, SLICE("0123456789abcdef\n"));
	return NULL;
}

TEST(lines_of_many_threads_are_whole)
{
	static char text[THREADS * EACH_ADDS * 17 + 1];
	pthread_t threads[THREADS];
	struct lines *l;

	CHECK_EQ(0, lines_open(&l, "file", NULL, NULL));
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(0, pthread_create(&threads[i], NULL, add_many, l));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	lines_close(l);
	CHECK_EQ(sizeof text - 1, read_file("file", text, sizeof text));
	for (size_t i = 0; i < sizeof text - 1; i += 17)
		CHECK_EQ(0, memcmp(text + i, "0123456789abcdef\n", 17));
}
