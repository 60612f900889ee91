/*
 * The log on a real disk, with real processes that are killed: faults 1 and 16, WAL-7.
 */
#include "test.h"

#include "base/le.h"
#include "wal/wal.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	SEGMENT = 64 * 1024,
	CYCLES = 300
};

/* What the child has promised, in memory that outlives it. */
struct promise {
	_Atomic uint32_t answered; /* the last group */
	_Atomic uint32_t opened;
};

struct seen {
	uint32_t group;
	uint32_t left; /* records of it that must still come */
};

static int
replay(struct wal *w, const struct wal_record *rec, void *arg, struct slu_err *err)
{
	const uint32_t group = le32_get(rec->body.p), count = le32_get(rec->body.p + 4);
	struct seen *seen = arg;

	(void)w;
	(void)err;
	if (seen->group == 0) /* the segment before may be recycled */
		seen->left = count - le32_get(rec->body.p + 8);
	else if (seen->left == 0) {
		CHECK_EQ(seen->group + 1, group);
		seen->left = count;
	} else
		CHECK_EQ(seen->group, group);
	CHECK_EQ(count - seen->left, le32_get(rec->body.p + 8));
	seen->group = group;
	seen->left--;
	return 0;
}

static const struct wal_conf conf = { .folder = "wal", .segment_size = SEGMENT };

static void
write_group(struct wal *w, uint32_t group, uint32_t count)
{
	char body[600] = { 0 };
	const struct slice part = { body, 20 + group * 37 % 500 };
	const uint64_t size = wal_size(part.n);
	struct slu_err err;

	le32_put(body, group);
	le32_put(body + 4, count);
	CHECK_EQ(0, wal_reserve(w, WAL_NEW, count * size, size, &err));
	for (uint32_t i = 0; i < count; i++) {
		le32_put(body + 8, i);
		wal_append(w, 1, &part, 1);
	}
	CHECK_EQ(0, wal_commit(w, group % 3 != 0, &err));
}

/* Writes groups for ever; everything that returned is promised, also what was not
 * synced: a kill loses nothing that was written. */
static void
child(struct promise *promise)
{
	struct seen seen = { 0 };
	struct slu_err err;
	struct wal *w;

	CHECK_EQ(0, wal_open(&w, &conf, replay, &seen, &err));
	atomic_store(&promise->opened, 1);
	for (uint32_t group = seen.group + 1;; group++) {
		write_group(w, group, 1 + group % 7);
		atomic_store(&promise->answered, group);
		while (wal_excess(w) > 20 * SEGMENT)
			CHECK_EQ(0, wal_recycle(w, &err));
	}
}

static void
run_and_kill(struct promise *promise, uint64_t delay)
{
	pid_t pid;
	int status;

	atomic_store(&promise->opened, 0);
	pid = fork();
	if (pid == 0)
		child(promise);
	CHECK(pid > 0);
	if (delay % 4) /* else perhaps in the middle of the open */
		WAIT_UNTIL(atomic_load(&promise->opened) ||
			   waitpid(pid, &status, WNOHANG) == pid);
	nanosleep(&(struct timespec){ .tv_nsec = (long)(delay % 5000000) }, NULL);
	kill(pid, SIGKILL);
	CHECK_EQ(pid, waitpid(pid, &status, 0));
	CHECK(WIFSIGNALED(status));
}

TEST_LIMIT(a_killed_process_loses_nothing_it_has_written, 280)
{
	struct promise *promise = mmap(NULL, sizeof *promise, PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t dice = test_seed();
	struct seen seen = { 0 };

	CHECK(promise != MAP_FAILED);
	for (int i = 0; i < CYCLES; i++) {
		struct slu_err err;
		struct wal *w;

		run_and_kill(promise, test_random(&dice));
		seen = (struct seen){ 0 };
		if (wal_open(&w, &conf, replay, &seen, &err))
			test_fail(__FILE__, __LINE__, "%s", err.text);
		CHECK_EQ(0, seen.left);
		CHECK(seen.group >= atomic_load(&promise->answered));
		CHECK(seen.group <= atomic_load(&promise->answered) + 1);
		atomic_store(&promise->answered, seen.group);
		wal_close(w);
	}
	printf("# %d kills, %u groups\n", CYCLES, seen.group);
	CHECK(seen.group > CYCLES);
	munmap(promise, sizeof *promise);
}

/* Fault 16, WAL-7 */
TEST(a_second_process_is_refused_with_the_id_of_the_first)
{
	struct slu_err err;
	struct wal *w, *second;
	char pid[32];
	int status;
	pid_t other;

	CHECK_EQ(0, wal_open(&w, &conf, NULL, NULL, &err));
	snprintf(pid, sizeof pid, "another process: %ld", (long)getpid());
	other = fork();
	if (other == 0) {
		CHECK_EQ(SLU_EBUSY, wal_open(&second, &conf, NULL, NULL, &err));
		CHECK_CONTAINS(pid, err.text);
		_exit(0);
	}
	CHECK(waitpid(other, &status, 0) == other && status == 0);
	CHECK_EQ(SLU_EBUSY, wal_open(&second, &conf, NULL, NULL, &err));
	CHECK_CONTAINS("wal is in use by this process", err.text);
	write_group(w, 1, 3);
	wal_close(w);
	CHECK_EQ(0, wal_open(&w, &conf, NULL, NULL, &err));
	wal_close(w);
}

TEST(a_folder_that_cannot_be_made_is_an_answer)
{
	static const struct wal_conf missing = { .folder = "no/such/wal" };
	struct slu_err err;
	struct wal *w;

	CHECK_EQ(SLU_EDOWN, wal_open(&w, &missing, NULL, NULL, &err));
	CHECK_CONTAINS("no/such/wal: No such file", err.text);
}

TEST(warm_records_are_read_without_waiting)
{
	const struct slice body = SLICE("hello");
	struct wal_record rec;
	struct wal_where where;
	struct wal_pin pin;
	struct slu_err err;
	char p[64];
	struct wal *w;
	int rc;

	CHECK_EQ(0, wal_open(&w, &conf, NULL, NULL, &err));
	CHECK_EQ(0, wal_reserve(w, WAL_NEW, wal_size(5), wal_size(5), &err));
	where = wal_append(w, 1, &body, 1);
	CHECK_EQ(0, wal_commit(w, true, &err));
	CHECK_EQ(0, wal_pin(w, where, &pin));
	rc = wal_pinned_read_now(&pin, p, sizeof p, &rec, &err);
	CHECK(rc == 0 || rc == SLU_EBUSY); /* not every file system can tell */
	if (rc == 0)
		CHECK(slice_eq(body, rec.body));
	wal_unpin(&pin);
	wal_close(w);
}
