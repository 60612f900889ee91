/*
 * What only the file store does: the order of its system calls, full and broken disks, a process
 * that dies in the middle of a put, temporary files of dead processes, file systems.
 *
 * The linker sends the system calls of the store through the functions __wrap_* below.
 */
#include "test.h"

#include "store/file/file_private.h"
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- System calls ---- */

enum fault {
	NONE,
	FAIL_BEFORE, /* the call fails and does nothing */
	FAIL_AFTER,  /* the call works and reports a failure */
	DIE_BEFORE,
	DIE_AFTER
};

/* The fault of one system call, and a trace of all. One thread. */
static struct {
	enum fault fault;
	int at;           /* of the n-th call, from 1 on; 0: by name */
	const char *name; /* of the first call with this name */
	int number;       /* errno */
	int calls;
	char trace[1000]; /* "write fsync linkat fsync-folder unlinkat" */

	void (*before_lock)(void); /* called once, before the next lock is taken */
} plan;

static void
die(void)
{
	kill(getpid(), SIGKILL);
}

/* Before the call: true if the call must not be made. */
static bool
is_stopped(const char *name)
{
	const bool here = ++plan.calls == plan.at || (plan.name && strcmp(plan.name, name) == 0);

	if (strlen(plan.trace) + strlen(name) + 2 < sizeof plan.trace) {
		strcat(plan.trace, plan.trace[0] ? " " : "");
		strcat(plan.trace, name);
	}
	if (!here || plan.fault == NONE)
		return false;
	plan.at = plan.calls; /* only this one */
	plan.name = NULL;
	if (plan.fault == DIE_BEFORE)
		die();
	errno = plan.number;
	return plan.fault == FAIL_BEFORE;
}

static int
after(int rc)
{
	if (plan.calls != plan.at)
		return rc;
	if (plan.fault == DIE_AFTER)
		die();
	if (plan.fault == FAIL_AFTER) {
		errno = plan.number;
		return -1;
	}
	return rc;
}

static bool
is_dir(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

int __real_fsync(int fd);
int __real_fdatasync(int fd);
int __real_linkat(int from, const char *old, int to, const char *new, int flags);
int __real_unlinkat(int folder, const char *name, int flags);
int __real_mkdirat(int folder, const char *name, mode_t mode);
int __real_flock(int fd, int how);
ssize_t __real_pwrite64(int fd, const void *p, size_t n, off_t at);
ssize_t __real_pread64(int fd, void *p, size_t n, off_t at);
struct dirent *__real_readdir64(DIR *dir);
int __wrap_fsync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_linkat(int from, const char *old, int to, const char *new, int flags);
int __wrap_unlinkat(int folder, const char *name, int flags);
int __wrap_mkdirat(int folder, const char *name, mode_t mode);
int __wrap_flock(int fd, int how);
ssize_t __wrap_pwrite64(int fd, const void *p, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *p, size_t n, off_t at);
struct dirent *__wrap_readdir64(DIR *dir);

int
__wrap_fsync(int fd)
{
	return is_stopped(is_dir(fd) ? "fsync-folder" : "fsync") ? -1 : after(__real_fsync(fd));
}

int
__wrap_fdatasync(int fd)
{
	return is_stopped("fdatasync") ? -1 : after(__real_fdatasync(fd));
}

int
__wrap_linkat(int from, const char *old, int to, const char *new, int flags)
{
	return is_stopped("linkat") ? -1 : after(__real_linkat(from, old, to, new, flags));
}

int
__wrap_unlinkat(int folder, const char *name, int flags)
{
	return is_stopped("unlinkat") ? -1 : after(__real_unlinkat(folder, name, flags));
}

int
__wrap_mkdirat(int folder, const char *name, mode_t mode)
{
	return is_stopped("mkdirat") ? -1 : after(__real_mkdirat(folder, name, mode));
}

int
__wrap_flock(int fd, int how)
{
	void (*const before_lock)(void) = plan.before_lock;

	plan.before_lock = NULL;
	if (before_lock)
		before_lock();
	return __real_flock(fd, how);
}

ssize_t
__wrap_pread64(int fd, void *p, size_t n, off_t at)
{
	return is_stopped("read") ? -1 : __real_pread64(fd, p, n, at);
}

struct dirent *
__wrap_readdir64(DIR *dir)
{
	return is_stopped("readdir") ? NULL : __real_readdir64(dir);
}

/* A fault in the middle: a half is written. */
ssize_t
__wrap_pwrite64(int fd, const void *p, size_t n, off_t at)
{
	if (!is_stopped("write"))
		return after((int)__real_pwrite64(fd, p, n, at));
	CHECK_EQ((ssize_t)(n / 2), __real_pwrite64(fd, p, n / 2, at));
	errno = plan.number;
	return -1;
}

static void
set_plan(enum fault fault, int at, const char *name, int number)
{
	memset(&plan, 0, sizeof plan);
	plan.fault = fault;
	plan.at = at;
	plan.name = name;
	plan.number = number;
}

/* ---- Stores ---- */

static const struct store_ops *const rows[] = { &store_file, NULL };
static char url[STORE_URL_MAX];

static enum store_result
try_open(struct store **out, const char *at, bool unsafe, struct slu_err *err)
{
	const struct store_conf conf = { .url = at, .unsafe = unsafe };

	return store_open(out, rows, &conf, err);
}

static struct store *
must_open(void)
{
	struct slu_err err = { 0 };
	struct store *s;

	if (try_open(&s, url, true, &err) != STORE_OK)
		test_fail(__FILE__, __LINE__, "%s", err.text);
	return s;
}

static void
before(void)
{
	char here[STORE_URL_MAX - 20];

	CHECK(getcwd(here, sizeof here));
	snprintf(url, sizeof url, "file://%s/store", here);
	set_plan(NONE, 0, NULL, 0);
}

FIXTURE(before, NULL);

static enum store_result
put(struct store *s, const char *name, const char *text, struct slu_err *err)
{
	return store_put(s, name, slice_of(text), STORE_IF_ABSENT, err);
}

/* The whole object, or the name of the result in brackets; valid until the next call. */
static const char *
get(struct store *s, const char *name)
{
	static char text[100];
	struct buf bytes;
	struct slu_err err;

	buf_init(&bytes, sizeof text - 1);
	const enum store_result r = store_get(s, name, 0, SIZE_MAX, &bytes, NULL, &err);

	if (r == STORE_OK)
		snprintf(text, sizeof text, "%s", buf_str(&bytes));
	else
		snprintf(text, sizeof text, "[%s]", store_result_name(r));
	buf_release(&bytes);
	return text;
}

/* Files below .tmp. */
static unsigned
temporary(void)
{
	DIR *dir = opendir("store/.tmp");
	unsigned n = 0;

	CHECK(dir);
	for (const struct dirent *e = __real_readdir64(dir); e; e = __real_readdir64(dir))
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

static void
write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	CHECK(f);
	fputs(text, f);
	fclose(f);
}

/* ---- Order ---- */

/* STORE-2 and STORE-3 over a power cut: content before name, name before answer. */
TEST(a_put_syncs_the_object_links_it_and_syncs_the_folder)
{
	struct store *s = must_open();
	struct slu_err err;

	set_plan(NONE, 0, NULL, 0);
	CHECK_EQ(STORE_OK, put(s, "0/group/1", "one", &err));
	CHECK_STR("write fsync mkdirat fsync-folder mkdirat fsync-folder linkat fsync-folder unlinkat",
		  plan.trace);
	set_plan(NONE, 0, NULL, 0);
	CHECK_EQ(STORE_OK, put(s, "0/group/2", "two", &err));
	CHECK_STR("write fsync linkat fsync-folder unlinkat", plan.trace);
	CHECK_EQ(1, temporary());
	store_close(s);
	CHECK_EQ(0, temporary());
}

/* Another process may have made the name and not have synced the folder yet. */
TEST(STORE_3_exists_is_as_durable_as_ok)
{
	struct store *s = must_open();
	struct slu_err err;

	CHECK_EQ(STORE_OK, put(s, "0/group/1", "one", &err));
	set_plan(NONE, 0, NULL, 0);
	CHECK_EQ(STORE_EXISTS, put(s, "0/group/1", "two", &err));
	CHECK_STR("write fsync linkat fsync-folder unlinkat", plan.trace);
	store_close(s);
}

/* Another process may have made the folder and not have synced the folder above it. */
TEST(STORE_3_a_store_syncs_folders_that_it_did_not_make)
{
	struct store *s = must_open(), *other = must_open();
	struct slu_err err;

	CHECK_EQ(STORE_OK, put(s, "0/group/1", "one", &err));
	set_plan(NONE, 0, NULL, 0);
	CHECK_EQ(STORE_OK, put(other, "0/group/2", "two", &err));
	CHECK_STR("write fsync mkdirat fsync-folder mkdirat fsync-folder linkat fsync-folder unlinkat",
		  plan.trace);
	store_close(other);
	store_close(s);
}

/* A beat of every second makes no new file. */
TEST(a_replace_writes_in_place)
{
	struct store *s = must_open();
	struct slu_err err;

	CHECK_EQ(STORE_OK, store_put(s, "node/1", SLICE("a"), STORE_REPLACE, &err));
	set_plan(NONE, 0, NULL, 0);
	CHECK_EQ(STORE_OK, store_put(s, "node/1", SLICE("b"), STORE_REPLACE, &err));
	CHECK_STR("write fdatasync", plan.trace);
	store_close(s);
}

/* An NFS client repeats a link whose answer was lost: the answer is EEXIST, the link was ours. */
TEST(STORE_1_a_link_that_was_made_counts_whatever_its_answer_is)
{
	static const int numbers[] = { EEXIST, EIO, ETIMEDOUT, ESTALE };
	struct store *s = must_open();
	char name[32];
	struct slu_err err;

	EACH(i, numbers) {
		snprintf(name, sizeof name, "0/group/%zu", i);
		set_plan(FAIL_AFTER, 0, "linkat", numbers[i]);
		CHECK_EQ(STORE_OK, put(s, name, "mine", &err), strerror(numbers[i]));
		CHECK_STR("mine", get(s, name));
	}
	store_close(s);
}

/* ---- Faults of the disk ---- */

/* Nothing half written stays, and the same put works when the disk does. */
TEST(a_put_that_fails_leaves_nothing_half_written)
{
	static const struct {
		const char *call;
		int number;
		enum store_result want;
		enum slu_code code;
		const char *text;
	} cases[] = {
		{ "write", ENOSPC, STORE_FAILED, SLU_EFULL, "write: No space left on device" },
		{ "write", EDQUOT, STORE_FAILED, SLU_EFULL, "write: Disk quota exceeded" },
		{ "write", EIO, STORE_FAILED, SLU_EDOWN, "write: Input/output error" },
		{ "write", EFBIG, STORE_REFUSED, SLU_ETOOBIG, "write: File too large" },
		{ "fsync", EIO, STORE_FAILED, SLU_EDOWN, "sync: Input/output error" },
		{ "fsync", ENOSPC, STORE_FAILED, SLU_EFULL, "sync: No space left on device" },
		{ "mkdirat", ENOSPC, STORE_FAILED, SLU_EFULL, "make the folder: No space left on device" },
		{ "mkdirat", EACCES, STORE_REFUSED, SLU_EFORBIDDEN, "make the folder: Permission denied" },
		{ "linkat", ENOSPC, STORE_FAILED, SLU_EFULL, "link: No space left on device" },
		{ "linkat", EPERM, STORE_REFUSED, SLU_EFORBIDDEN, "link: Operation not permitted" },
		{ "linkat", EROFS, STORE_REFUSED, SLU_EFORBIDDEN, "link: Read-only file system" },
	};
	struct store *s = must_open();
	char name[32];
	struct slu_err err;

	EACH(i, cases) {
		snprintf(name, sizeof name, "%zu/group/1", i);
		set_plan(FAIL_BEFORE, 0, cases[i].call, cases[i].number);
		CHECK_EQ(cases[i].want, put(s, name, "0123456789", &err), cases[i].text);
		CHECK_EQ(cases[i].code, err.code, cases[i].text);
		CHECK_CONTAINS(cases[i].text, err.text);
		CHECK_CONTAINS(name, err.text);
		CHECK_CONTAINS("file://", err.text);
		CHECK_STR("[absent]", get(s, name));
		CHECK_EQ(1, temporary());
		CHECK_EQ(STORE_OK, put(s, name, "0123456789", &err));
		CHECK_STR("0123456789", get(s, name));
	}
	store_close(s);
}

/* STORE-4: the name is there, and a power cut may undo it; so the outcome is unknown, whatever the
 * cause is. */
TEST(STORE_4_a_folder_that_cannot_be_synced_makes_the_outcome_unknown)
{
	static const int numbers[] = { EIO, EROFS, ENOSPC };
	struct store *s = must_open();
	char name[32];
	struct slu_err err;

	CHECK_EQ(STORE_OK, put(s, "0/group/first", "", &err));
	EACH(i, numbers) {
		snprintf(name, sizeof name, "0/group/%zu", i);
		set_plan(FAIL_BEFORE, 0, "fsync-folder", numbers[i]);
		CHECK_EQ(STORE_FAILED, put(s, name, "mine", &err), strerror(numbers[i]));
		CHECK_EQ(STORE_EXISTS, put(s, name, "mine", &err));
		CHECK_STR("mine", get(s, name));
	}
	store_close(s);
}

TEST(a_get_or_list_that_cannot_read_fails_and_returns_nothing)
{
	struct store *s = must_open();
	struct store_names names = { 0 };
	struct slu_err err;
	struct buf bytes;

	buf_init(&bytes, 100);
	CHECK_EQ(STORE_OK, put(s, "0/group/1", "one", &err));
	set_plan(FAIL_BEFORE, 0, "read", EIO);
	CHECK_EQ(STORE_FAILED, store_get(s, "0/group/1", 0, SIZE_MAX, &bytes, NULL, &err));
	CHECK_EQ(SLU_EDOWN, err.code);
	CHECK_CONTAINS("get 0/group/1: read: Input/output error", err.text);
	CHECK_EQ(0, bytes.n);
	set_plan(FAIL_BEFORE, 0, "readdir", EIO);
	CHECK_EQ(STORE_FAILED, store_list(s, "0/group/", "", 10, &names, &err));
	CHECK_CONTAINS("list 0/group/: read a folder: Input/output error", err.text);
	CHECK_EQ(0, names.n);
	CHECK_EQ(STORE_OK, store_list(s, "0/group/", "", 10, &names, &err));
	CHECK_EQ(1, names.n);
	store_names_release(&names);
	buf_release(&bytes);
	store_close(s);
}

/* ---- Processes that die ---- */

/* Puts in a child that dies at the n-th system call. Returns false if it has fewer. */
static bool
put_and_die(enum fault fault, int at, enum store_mode mode)
{
	int status;
	const pid_t child = fork();

	if (child == 0) {
		struct store *s = must_open();
		struct slu_err err;

		set_plan(fault, at, NULL, 0);
		(void)store_put(s, "0/group/1", SLICE("0123456789"), mode, &err);
		_exit(0);
	}
	CHECK_EQ(child, waitpid(child, &status, 0));
	return WIFSIGNALED(status);
}

/* kill -9 before and after each system call of a put. */
TEST(STORE_2_a_process_that_dies_in_a_put_leaves_the_whole_object_or_none)
{
	static const enum fault faults[] = { DIE_BEFORE, DIE_AFTER };
	unsigned whole = 0, absent = 0;

	EACH(f, faults) {
		for (int at = 1; put_and_die(faults[f], at, STORE_IF_ABSENT); at++) {
			struct store *s = must_open();
			struct slu_err err;
			const char *text = get(s, "0/group/1");

			CHECK(strcmp(text, "0123456789") == 0 || strcmp(text, "[absent]") == 0);
			whole += text[0] == '0';
			absent += text[0] == '[';
			CHECK_EQ(1, temporary()); /* the open has swept */
			CHECK_EQ(text[0] == '0' ? STORE_EXISTS : STORE_OK, put(s, "0/group/1", "x", &err));
			CHECK_EQ(STORE_OK, store_remove(s, "0/group/1", &err));
			store_close(s);
		}
	}
	CHECK(whole >= 3);
	CHECK(absent >= 4);
}

TEST(an_open_removes_temporary_files_of_dead_processes_only)
{
	struct store *living = must_open(), *s;
	char name[FILE_TEMP];
	const struct file_store *f = (const struct file_store *)(const void *)living;
	char path[200];

	snprintf(name, sizeof name, "%s.7", f->temp.owner);
	snprintf(path, sizeof path, "store/.tmp/%s", name);
	write_file(path, "being written");
	write_file("store/.tmp/0123456789abcdef.1", "left");
	write_file("store/.tmp/0123456789abcdef.2", "left");
	write_file("store/.tmp/0123456789abcdef.lock", "");
	write_file("store/.tmp/fedcba9876543210.1", "left without a lock file");
	s = must_open();
	CHECK_EQ(3, temporary()); /* two lock files and the file of the living one */
	CHECK_EQ(0, access(path, F_OK));
	store_close(s);
	store_close(living);
	s = must_open();
	CHECK_EQ(1, temporary());
	store_close(s);
}

/* Another process sweeps between the moments when a store creates its lock file and locks it. */
static void
sweep_now(void)
{
	store_close(must_open());
}

TEST(a_store_whose_lock_file_was_swept_draws_another_name)
{
	struct store *s;

	store_close(must_open());
	plan.before_lock = sweep_now;
	s = must_open();
	CHECK_EQ(1, temporary());
	store_close(s);
	CHECK_EQ(0, temporary());
}

/* Stores come and go, and every open sweeps. */
static void
put_and_close(const char *folder)
{
	struct slu_err err = { 0 };
	char name[64];

	for (unsigned i = 0; i < 50; i++) {
		struct store *s = must_open();

		snprintf(name, sizeof name, "%s/%u", folder, i);
		if (put(s, name, "text", &err) != STORE_OK)
			test_fail(__FILE__, __LINE__, "%s", err.text);
		store_close(s);
	}
}

TEST(a_sweep_leaves_the_living_alone)
{
	static const char *const folders[] = { "a", "b", "c" };
	pid_t children[COUNT(folders)];
	int status;

	EACH(i, folders) {
		children[i] = fork();
		if (children[i] == 0) {
			put_and_close(folders[i]);
			_exit(0);
		}
	}
	EACH(i, folders) {
		CHECK_EQ(children[i], waitpid(children[i], &status, 0));
		CHECK_EQ(0, status);
	}
	CHECK_EQ(0, temporary());
}

/* A store that loses its temporary file to a sweep, as when locks do not work over machines. */
TEST(a_put_whose_temporary_file_was_swept_fails_and_can_be_repeated)
{
	struct store *s = must_open();
	struct slu_err err;

	CHECK_EQ(STORE_OK, put(s, "0/group/0", "", &err));
	set_plan(FAIL_BEFORE, 0, "linkat", ENOENT);
	CHECK_EQ(STORE_FAILED, put(s, "0/group/1", "one", &err));
	CHECK_EQ(STORE_OK, put(s, "0/group/1", "one", &err));
	store_close(s);
}

/* ---- The folder ---- */

static void
check_down(struct store *s)
{
	struct store_names names = { 0 };
	struct buf out;
	struct slu_err err;

	buf_init(&out, 100);
	CHECK_EQ(STORE_FAILED, put(s, "0/group/2", "two", &err));
	CHECK_EQ(STORE_FAILED, store_put(s, "node/1", SLICE("b"), STORE_REPLACE, &err));
	CHECK_EQ(STORE_FAILED, store_get(s, "0/group/1", 0, SIZE_MAX, &out, NULL, &err));
	CHECK_EQ(STORE_FAILED, store_list(s, "0/", "", 10, &names, &err));
	CHECK_EQ(STORE_FAILED, store_remove(s, "0/group/1", &err));
	buf_release(&out);
	store_names_release(&names);
}

TEST(requests_fail_while_the_folder_is_moved_away_or_replaced)
{
	struct store *s = must_open();
	struct slu_err err;

	CHECK_EQ(STORE_OK, put(s, "0/group/1", "one", &err));
	CHECK_EQ(0, rename("store", "away"));
	check_down(s);
	CHECK_EQ(0, mkdir("store", 0700));
	check_down(s);
	CHECK_EQ(0, rmdir("store"));
	CHECK_EQ(0, rename("away", "store"));
	CHECK_EQ(STORE_OK, put(s, "0/group/2", "two", &err));
	CHECK_EQ(STORE_OK, store_remove(s, "0/group/1", &err));
	store_close(s);
}

TEST(a_list_leaves_out_what_is_no_object)
{
	struct store *s = must_open();
	struct store_names names = { 0 };
	struct slu_err err;

	CHECK_EQ(STORE_OK, put(s, "0/group/1", "one", &err));
	write_file("store/0/group/.hidden", "");
	write_file("store/0/group/a+b", "");
	CHECK_EQ(0, mkdir("store/lost+found", 0700));
	CHECK_EQ(0, mkdir("store/empty", 0700));
	CHECK_EQ(STORE_OK, store_list(s, "", "", 10, &names, &err));
	CHECK_EQ(1, names.n);
	CHECK_STR("0/group/1", names.names[0]);
	store_names_release(&names);
	store_close(s);
}

TEST(a_name_that_is_a_folder_of_another_is_refused)
{
	struct store *s = must_open();
	struct slu_err err;

	CHECK_EQ(STORE_OK, put(s, "a/b", "one", &err));
	CHECK_EQ(STORE_REFUSED, put(s, "a/b/c", "two", &err));
	CHECK_CONTAINS("Not a directory", err.text);
	CHECK_STR("[refused]", get(s, "a"));
	CHECK_EQ(STORE_REFUSED, store_remove(s, "a", &err));
	CHECK_STR("[absent]", get(s, "a/b/c"));
	store_close(s);
}

TEST(an_open_makes_the_folder_but_not_those_above_it)
{
	char deep[STORE_URL_MAX + 20];
	struct store *s;
	struct slu_err err = { 0 };

	snprintf(deep, sizeof deep, "%s/../deep/er", url);
	CHECK_EQ(STORE_REFUSED, try_open(&s, deep, true, &err));
	CHECK_EQ(SLU_ENOTFOUND, err.code);
	CHECK_CONTAINS("open: the folder above it does not exist", err.text);
	store_close(must_open());
	CHECK_EQ(0, access("store", F_OK));
	CHECK_EQ(STORE_REFUSED, try_open(&s, "file://srv/x", true, &err));
	CHECK_CONTAINS("expected file:///absolute/path", err.text);
	write_file("plain", "");
	snprintf(deep, sizeof deep, "%s/../plain", url);
	CHECK_EQ(STORE_REFUSED, try_open(&s, deep, true, &err));
	CHECK_CONTAINS("Not a directory", err.text);
}

TEST(an_open_for_reading_makes_nothing)
{
	const struct store_conf conf = { .url = url, .read_only = true };
	struct store *s;
	struct slu_err err;

	CHECK_EQ(STORE_REFUSED, store_open(&s, rows, &conf, &err));
	CHECK_EQ(-1, access("store", F_OK));
	CHECK_EQ(0, mkdir("store", 0700));
	CHECK_EQ(STORE_OK, store_open(&s, rows, &conf, &err));
	store_close(s);
	CHECK_EQ(-1, access("store/.tmp", F_OK));
}

/* ---- File systems ---- */

TEST_BARE(a_file_system_is_trusted_by_its_name)
{
	static const struct {
		const char *label;
		struct file_place place;
		bool safe, unsafe; /* whether it is accepted without and with store.unsafe */
		const char *text;
	} cases[] = {
		{ "ext4", { 0xef53, "" }, true, true, "" },
		{ "XFS", { 0x58465342, "" }, true, true, "" },
		{ "Btrfs", { 0x9123683e, "" }, true, true, "" },
		{ "CephFS", { 0x00c36400, "" }, true, true, "" },
		{ "GFS2", { 0x01161970, "" }, true, true, "" },
		{ "NFSv4 hard", { 0x6969, "nfs4 rw,vers=4.2,rsize=1048576,hard,proto=tcp" }, true, true, "" },
		{ "NFSv4 soft", { 0x6969, "nfs4 rw,vers=4.2,soft,proto=tcp" }, false, true, "NFS (not mounted hard)" },
		{ "NFSv4 softerr", { 0x6969, "nfs4 rw,vers=4.2,softerr,hardly" }, false, true, "NFS (not mounted hard)" },
		{ "NFSv3", { 0x6969, "nfs rw,vers=3,hard" }, false, true, "NFS (not version 4)" },
		{ "NFS, unknown mount", { 0x6969, "" }, false, true, "NFS (not version 4)" },
		{ "tmpfs", { 0x01021994, "" }, false, true, "tmpfs (it forgets everything" },
		{ "overlay", { 0x794c7630, "" }, false, true, "overlay (it usually ends" },
		{ "another", { 0x12345, "" }, false, true, "type 0x12345 (unknown)" },
		{ "SMB", { 0x517b, "" }, false, false, "SMB (two machines" },
		{ "CIFS", { 0xff534d42, "" }, false, false, "CIFS (two machines" },
		{ "SMB2", { 0xfe534d42, "" }, false, false, "SMB2 (two machines" },
		{ "FUSE", { 0x65735546, "" }, false, false, "FUSE (its link" },
	};

	EACH(i, cases) {
		struct slu_err err = { 0 };

		CHECK_EQ(cases[i].safe ? STORE_OK : STORE_REFUSED,
			 file_place_check(&cases[i].place, false, &err), cases[i].label);
		CHECK_CONTAINS(cases[i].text, err.text);
		CHECK_EQ(cases[i].safe || cases[i].unsafe, !strstr(err.text, "file system") || strstr(err.text, "store.unsafe"),
			 cases[i].label);
		CHECK_EQ(cases[i].unsafe ? STORE_OK : STORE_REFUSED,
			 file_place_check(&cases[i].place, true, &err), cases[i].label);
	}
}

TEST(a_store_on_tmpfs_needs_store_unsafe)
{
	char folder[] = "/dev/shm/sluice-test-XXXXXX", at[64], below[64];
	struct file_place place;
	struct store *s;
	struct slu_err err = { 0 };
	const int fd = mkdtemp(folder) ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd < 0 || file_place_read(&place, fd, &err) != STORE_OK || place.type != 0x01021994)
		test_skip("no tmpfs");
	close(fd);
	snprintf(at, sizeof at, "file://%s", folder);
	CHECK_EQ(STORE_REFUSED, try_open(&s, at, false, &err));
	CHECK_CONTAINS("unsafe file system: tmpfs", err.text);
	CHECK_EQ(STORE_OK, try_open(&s, at, true, &err));
	store_close(s);
	snprintf(below, sizeof below, "%s/.tmp", folder);
	CHECK_EQ(0, rmdir(below));
	CHECK_EQ(0, rmdir(folder));
}

TEST_BARE(the_mount_of_a_folder_is_found)
{
	struct file_place place;
	struct slu_err err;
	const int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK_EQ(STORE_OK, file_place_read(&place, fd, &err));
	CHECK_EQ(0x9fa0, place.type);
	CHECK_EQ(0, strncmp(place.mount, "proc rw", 7));
	close(fd);
}

/* ---- Memory ---- */

TORTURE(a_store_without_memory_says_so)
{
	struct store_names names = { 0 };
	struct slu_err err = { 0 };
	struct store *s;
	struct buf bytes;

	before();
	if (try_open(&s, url, true, &err) != STORE_OK) {
		CHECK_EQ(SLU_ENOMEM, err.code);
		return;
	}
	buf_init(&bytes, 100);
	const enum store_result r = put(s, "0/group/1", "one", &err);

	CHECK(r == STORE_OK || r == STORE_EXISTS);
	if (store_get(s, "0/group/1", 0, SIZE_MAX, &bytes, NULL, &err) != STORE_OK)
		CHECK_EQ(SLU_ENOMEM, err.code);
	if (store_list(s, "", "", 10, &names, &err) != STORE_OK)
		CHECK_EQ(SLU_ENOMEM, err.code);
	buf_release(&bytes);
	store_names_release(&names);
	store_close(s);
}
