#include "test.h"

#include "base/disk.h"

#include <errno.h>
#include <stdalign.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct disk *const d = &disk_posix;

struct names {
	unsigned n;
	char all[256];
};

static int
collect(void *arg, const char *name)
{
	struct names *names = arg;

	names->n++;
	strcat(names->all, name);
	strcat(names->all, " ");
	return 0;
}

static int
stop_at_first(void *arg, const char *name)
{
	++*(int *)arg;
	return name[0] ? -ECANCELED : 0;
}

TEST(a_folder_is_made_once_and_opened_again)
{
	const int first = d->ops->folder(d, "data");
	const int second = d->ops->folder(d, "data");

	CHECK(first >= 0 && second >= 0 && first != second);
	CHECK_EQ(0, d->ops->sync_folder(d, first));
	d->ops->close(d, first);
	d->ops->close(d, second);
	CHECK_EQ(-ENOENT, d->ops->folder(d, "missing/data"));
}

TEST(create_wants_a_new_name_and_open_an_old_one)
{
	const int folder = d->ops->folder(d, "data");
	const int file = d->ops->create(d, folder, "a");

	CHECK(file >= 0);
	CHECK_EQ(-EEXIST, d->ops->create(d, folder, "a"));
	CHECK_EQ(-ENOENT, d->ops->open(d, folder, "b"));
	d->ops->close(d, file);
	d->ops->close(d, folder);
}

TEST(what_is_written_is_read_and_reads_end_with_the_file)
{
	const int folder = d->ops->folder(d, "data");
	const int file = d->ops->create(d, folder, "a");
	char p[16] = "";

	CHECK_EQ(0, d->ops->write(d, file, "hello", 5, 3));
	CHECK_EQ(0, d->ops->sync(d, file));
	CHECK_EQ(8, d->ops->size(d, file));
	CHECK_EQ(8, d->ops->read(d, file, p, sizeof p, 0));
	CHECK(memcmp(p, "\0\0\0hello", 8) == 0);
	CHECK_EQ(2, d->ops->read(d, file, p, 2, 6));
	CHECK_EQ(0, d->ops->read(d, file, p, 2, 8));
	d->ops->close(d, file);
	d->ops->close(d, folder);
}

TEST(a_read_that_may_not_wait_gives_all_or_says_so)
{
	const int folder = d->ops->folder(d, "data");
	const int file = d->ops->create(d, folder, "a");
	char p[8];
	int64_t got;

	CHECK_EQ(0, d->ops->write(d, file, "12345678", 8, 0));
	got = d->ops->read_now(d, file, p, 8, 0);
	CHECK(got == 8 || got == -EAGAIN); /* not every file system can tell */
	CHECK_EQ(-EAGAIN, d->ops->read_now(d, file, p, 8, 4));
	d->ops->close(d, file);
	d->ops->close(d, folder);
}

TEST(an_allocated_file_has_its_size_and_zeros)
{
	const int folder = d->ops->folder(d, "data");
	const int file = d->ops->create(d, folder, "a");
	char p[4096], zeros[4096] = { 0 };

	CHECK_EQ(0, d->ops->allocate(d, file, 65536));
	CHECK_EQ(65536, d->ops->size(d, file));
	CHECK_EQ(sizeof p, d->ops->read(d, file, p, sizeof p, 61440));
	CHECK(memcmp(p, zeros, sizeof p) == 0);
	CHECK(d->ops->room(d, folder) > 0);
	d->ops->close(d, file);
	d->ops->close(d, folder);
}

TEST(bytes_written_past_the_page_cache_are_read_back_beside_others)
{
	static alignas(DISK_BLOCK) char block[2 * DISK_BLOCK], p[2 * DISK_BLOCK];
	const int folder = d->ops->folder(d, "data");
	const int file = d->ops->create(d, folder, "a");

	memset(block, 'x', sizeof block);
	CHECK_EQ(0, d->ops->allocate(d, file, 3 * DISK_BLOCK));
	CHECK_EQ(0, d->ops->write(d, file, "cached", 6, DISK_BLOCK));
	CHECK_EQ(0, d->ops->write_past(d, file, block, sizeof block, DISK_BLOCK));
	CHECK_EQ(0, d->ops->write(d, file, "odd", 3, 2 * DISK_BLOCK + 1), "any place again");
	memcpy(block + DISK_BLOCK + 1, "odd", 3);
	CHECK_EQ(sizeof p, d->ops->read(d, file, p, sizeof p, DISK_BLOCK));
	CHECK(memcmp(p, block, sizeof p) == 0);
	CHECK_EQ(0, d->ops->sync(d, file));
	d->ops->close(d, file);
	d->ops->close(d, folder);
}

TEST(names_are_listed_renamed_and_removed)
{
	const int folder = d->ops->folder(d, "data");
	struct names names = { 0 };
	int calls = 0;

	d->ops->close(d, d->ops->create(d, folder, "a"));
	CHECK_EQ(0, d->ops->rename(d, folder, "a", "b"));
	CHECK_EQ(0, d->ops->list(d, folder, collect, &names));
	CHECK_STR("b ", names.all);
	CHECK_EQ(-ECANCELED, d->ops->list(d, folder, stop_at_first, &calls));
	CHECK_EQ(1, calls);
	CHECK_EQ(0, d->ops->remove(d, folder, "b"));
	CHECK_EQ(-ENOENT, d->ops->remove(d, folder, "b"));
	CHECK_EQ(-ENOENT, d->ops->rename(d, folder, "b", "c"));
	names = (struct names){ 0 };
	CHECK_EQ(0, d->ops->list(d, folder, collect, &names));
	CHECK_EQ(0, names.n);
	d->ops->close(d, folder);
}

TEST(a_lock_is_one_process_s_and_ends_with_it)
{
	const int folder = d->ops->folder(d, "data");
	const int file = d->ops->create(d, folder, "lock");
	int status, other;
	pid_t pid;

	other = d->ops->open(d, folder, "lock");
	CHECK_EQ(0, d->ops->lock(d, file));
	CHECK_EQ(-EWOULDBLOCK, d->ops->lock(d, other));
	pid = fork();
	if (pid == 0) {
		const int mine = d->ops->open(d, folder, "lock");

		_exit(d->ops->lock(d, mine) == -EWOULDBLOCK ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	d->ops->close(d, file);
	CHECK_EQ(0, d->ops->lock(d, other));
	d->ops->close(d, other);
	d->ops->close(d, folder);
}

/* Fault 10. */
TEST(running_out_of_files_is_an_answer)
{
	const int folder = d->ops->folder(d, "data");
	struct names names = { 0 };

	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ (rlim_t)folder + 1, 4096 });
	CHECK_EQ(-EMFILE, d->ops->create(d, folder, "a"));
	CHECK_EQ(-EMFILE, d->ops->open(d, folder, "a"));
	CHECK_EQ(-EMFILE, d->ops->folder(d, "data"));
	CHECK_EQ(-EMFILE, d->ops->list(d, folder, collect, &names));
	d->ops->close(d, folder);
}

TEST(a_failure_names_what_and_why)
{
	static const struct {
		int error;
		int code;
	} cases[] = {
		{ ENOSPC, SLU_EFULL },
		{ EDQUOT, SLU_EFULL },
		{ ENOMEM, SLU_ENOMEM },
		{ EIO, SLU_EDOWN },
		{ EMFILE, SLU_EDOWN },
	};
	struct slu_err err;

	EACH(i, cases) {
		CHECK_EQ(cases[i].code, disk_fail(-cases[i].error, "create", "x", &err));
		CHECK_CONTAINS("create x: ", err.text);
		CHECK_CONTAINS(strerror(cases[i].error), err.text);
	}
}
