/*
 * Files of a folder, with a server and a watcher of the test. The other half, with a real server and inotify, is
 * tests/cli/test_inbox_file.py.
 */
#include "test.h"

#include "base/clock.h"
#include "base/log.h"
#include "handover/drop_private.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- A server ---- */

static struct {
	int stop;             /* the inbox ends when it has `want` messages */
	_Atomic unsigned got; /* messages */
	unsigned want;
	_Atomic unsigned all; /* lines of the log: the inbox polls */
	_Atomic unsigned one; /* lines of the log: a folder is polled */
} seen;

static unsigned
count(struct slice text, const char *word)
{
	unsigned n = 0;
	const char *p = text.p;

	while ((p = memmem(p, text.n - (size_t)(p - text.p), word, strlen(word))) != NULL) {
		n++;
		p++;
	}
	return n;
}

static void
stop(void)
{
	const uint64_t one = 1;

	CHECK_EQ(sizeof one, write(seen.stop, &one, sizeof one));
}

static int
call(void *arg, const char *path, struct slice body, struct slice *answer, struct slu_err *err)
{
	static char text[4096];
	const unsigned n = count(body, "\"namespace\"");

	(void)arg;
	(void)err;
	if (strstr(path, "places")) {
		size_t at = (size_t)snprintf(text, sizeof text, "{\"shards\":[");

		for (unsigned i = 0; i < n; i++)
			at += (size_t)snprintf(text + at, sizeof text - at, "%s\"s\"", i ? "," : "");
		(void)snprintf(text + at, sizeof text - at, "]}");
	} else {
		(void)snprintf(text, sizeof text, "{\"accepted\":true,\"last\":1,\"messages\":%u}", n);
		if (atomic_fetch_add(&seen.got, n) + n >= seen.want)
			stop();
	}
	*answer = slice_of(text);
	return 0;
}

/* ---- A watcher ---- */

static struct {
	int fd;
	_Atomic int folders; /* that are watched */
	_Atomic int added;   /* folders that were ever watched */
	const char *refuses; /* a folder whose name ends so cannot be watched */
	int code;            /* why */
	_Atomic bool all;    /* the next notice: look at all */
} w;

static int
add(void *arg, const char *folder)
{
	const size_t n = strlen(folder), m = w.refuses ? strlen(w.refuses) : 0;

	(void)arg;
	if (w.refuses && n >= m && strcmp(folder + n - m, w.refuses) == 0) {
		errno = w.code;
		return -1;
	}
	atomic_fetch_add(&w.folders, 1);
	return atomic_fetch_add(&w.added, 1);
}

static void
remove_watch(void *arg, int watch)
{
	(void)arg;
	(void)watch;
	atomic_fetch_sub(&w.folders, 1);
}

static bool
next(void *arg, struct watch_notice *out)
{
	uint64_t n;

	(void)arg;
	if (!atomic_exchange(&w.all, false))
		return false;
	(void)!read(w.fd, &n, sizeof n);
	*out = (struct watch_notice){ .watch = WATCH_ALL };
	return true;
}

static void
notify(void)
{
	const uint64_t one = 1;

	CHECK_EQ(sizeof one, write(w.fd, &one, sizeof one));
	atomic_store(&w.all, true);
}

/* ---- A folder ---- */

static char folder[512];

static void
make(const char *path)
{
	char full[1024];

	(void)snprintf(full, sizeof full, "%s%s", folder, path);
	CHECK_EQ(0, mkdir(full, 0777));
}

static void
put(const char *path)
{
	char full[1024];
	FILE *f;

	(void)snprintf(full, sizeof full, "%s%s", folder, path);
	f = fopen(full, "w");
	CHECK(f);
	fputs("hello", f);
	fclose(f);
}

static void
note(void *arg, enum slu_log_level level, const char *line, size_t n)
{
	(void)arg;
	(void)level;
	(void)n;
	if (strstr(line, "inbox polls"))
		atomic_fetch_add(&seen.all, 1);
	if (strstr(line, "folder is polled"))
		atomic_fetch_add(&seen.one, 1);
}

static struct handover_watcher watcher;
static struct handover_conf conf;
static const struct handover_server server = { NULL, call };

static void
begin(unsigned want)
{
	static char url[600];

	CHECK(getcwd(folder, sizeof folder));
	(void)snprintf(url, sizeof url, "file://%s", folder);
	make("/inbox");
	make("/inbox/ns");
	make("/inbox/ns/a");
	make("/inbox/ns/b");
	seen.stop = eventfd(0, EFD_CLOEXEC);
	seen.want = want;
	w.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	watcher = (struct handover_watcher){ .fd = w.fd, .add = add, .remove = remove_watch, .next = next };
	conf = (struct handover_conf){ .url = url, .settle = 1, .poll_interval = SLU_HOUR, .poll_resilient = SLU_HOUR, .watcher = &watcher, .log = slu_log_new(SLU_LOG_INFO, SLU_LOG_LOGFMT, note, NULL) };
}

/* Works until the server has `want` messages. */
static void *
work(void *arg)
{
	struct handover *in;
	struct slu_err err = { 0 };

	(void)arg;
	CHECK_EQ(0, handover_open(&in, &conf, &server, &err));
	CHECK_EQ(0, handover_run(in, seen.stop, false, &err));
	handover_close(in);
	return NULL;
}

static pthread_t
start(void)
{
	pthread_t thread;

	CHECK_EQ(0, pthread_create(&thread, NULL, work, NULL));
	return thread;
}

static void
finish(pthread_t thread)
{
	CHECK_EQ(0, pthread_join(thread, NULL));
	CHECK_EQ(seen.want, seen.got);
	slu_log_free(conf.log);
}

static void
await(_Atomic int *what, int value)
{
	while (atomic_load(what) != value)
		(void)poll(NULL, 0, 1);
}

/* ---- Cases ---- */

/* LQ-F2, LQ-49: a watch for each folder that is there. */
TEST(a_watcher_that_is_plugged_in_wakes_the_inbox)
{
	pthread_t thread;

	begin(1);
	thread = start();
	await(&w.folders, 4); /* inbox, ns, a, b */
	put("/inbox/ns/a/one");
	notify();
	finish(thread);
}

/* LQ-49 */
TEST(a_watch_ends_with_its_folder)
{
	pthread_t thread;
	char path[1024];

	begin(1);
	thread = start();
	await(&w.folders, 4);
	(void)snprintf(path, sizeof path, "%s/inbox/ns/b", folder);
	CHECK_EQ(0, rmdir(path));
	notify();
	await(&w.folders, 3);
	make("/inbox/ns/c");
	notify();
	await(&w.folders, 4);
	put("/inbox/ns/c/one");
	notify();
	finish(thread);
}

/* LQ-51: only the folder without a watch is polled. */
TEST(a_watch_that_fails_turns_its_folder_to_polling)
{
	pthread_t thread;

	begin(1);
	w.refuses = "/ns/b";
	w.code = ENOSPC;
	conf.poll_interval = 10 * SLU_MS;
	thread = start();
	await(&w.folders, 3);
	put("/inbox/ns/b/found by polling");
	finish(thread);
	CHECK_EQ(1, seen.one);
	CHECK_EQ(0, seen.all);
	CHECK_EQ(3, w.added); /* the others kept theirs */
}

/* LQ-50: one notice, then polling. */
TEST(without_watches_the_inbox_polls_and_says_so_once)
{
	begin(2);
	w.refuses = "";
	w.code = ENOSYS;
	conf.poll_interval = 10 * SLU_MS;
	put("/inbox/ns/a/one");
	put("/inbox/ns/b/two");
	finish(start());
	CHECK_EQ(1, seen.all);
}

/* LQ-52, LQ-56: a change without a notice is found by the safety poll. */
TEST(a_missed_notice_is_made_good_by_the_safety_poll)
{
	pthread_t thread;

	begin(1);
	conf.poll_resilient = 10 * SLU_MS;
	thread = start();
	await(&w.folders, 4);
	put("/inbox/ns/a/one");
	finish(thread);
}

/* LQ-56: 0 is off. */
TEST(without_a_safety_poll_a_watched_folder_is_not_looked_at)
{
	struct handover_place p = { .conf = { .poll_resilient = 0, .poll_interval = SLU_SEC }, .random = 1 };
	struct drop_queue q = { .watch = 1 };

	drop_looked(&p, &q, SLU_NEVER);
	CHECK_EQ(SLU_NEVER, q.look);
	q.watch = -1;
	drop_looked(&p, &q, SLU_NEVER);
	CHECK(q.look < clock_mono(&clock_system) + 2 * SLU_SEC);
}

/* LQ-54, LQ-55 */
TEST(the_time_between_two_looks_is_the_interval_and_some_jitter)
{
	slu_time least = SLU_NEVER, most = 0;
	uint64_t random = 7;

	for (int i = 0; i < 1000; i++) {
		const slu_time after = drop_poll_after(3 * SLU_SEC, 500 * SLU_MS, random = random * 6364136223846793005u + 1442695040888963407u);

		least = after < least ? after : least;
		most = after > most ? after : most;
	}
	CHECK(least >= 3 * SLU_SEC && least < 3 * SLU_SEC + 50 * SLU_MS);
	CHECK(most < 3 * SLU_SEC + 500 * SLU_MS && most > 3 * SLU_SEC + 450 * SLU_MS);
	CHECK_EQ(3 * SLU_SEC, drop_poll_after(3 * SLU_SEC, 0, 12345));
}

/* LQ-48 */
TEST(network_file_systems_are_polled)
{
	CHECK(watch_is_blind(0x6969)); /* NFS */
	CHECK(watch_is_blind(0xff534d42));
	CHECK(!watch_is_blind(0xef53));     /* ext4 */
	CHECK(!watch_is_blind(0x01021994)); /* tmpfs */
}

/* LQ-57, LQ-58: no watcher at all. */
TEST(polling_alone_finds_every_message)
{
	begin(2);
	conf.watcher = NULL;
	conf.poll_interval = 10 * SLU_MS;
	put("/inbox/ns/a/one");
	put("/inbox/ns/b/two");
	finish(start());
	CHECK_EQ(0, w.added);
}
