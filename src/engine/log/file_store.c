/*
 * file_store.c - payload files in a store (FILE-7).
 *
 *      <shard>/payload/<epoch>/<counter>-<mark>.<part>
 *
 * An object holds up to PART bytes of a payload file, as they are in the file.
 */
#include "engine/log/file.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/hash.h"
#include "core/backoff.h"
#include "store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
	PART = 8 << 20, /* bytes of a file in one object */
	TRIES = 10      /* of a request that fails: some seconds */
};

#define FETCH "payloads/fetch" /* a file while it is fetched */

static const struct slu_backoff retry = {
	.kind = SLU_BACKOFF_EXPONENTIAL,
	.jitter = SLU_JITTER_FULL,
	.base = 20 * SLU_MS,
	.max = SLU_SEC,
};

void
logengine_files_keep_in(struct logengine_files *s, struct store *store, const char *line, uint64_t epoch)
{
	s->store = store;
	s->line = line;
	s->epoch = epoch;
}

/* ---- Names ---- */

static void
object_name(const struct logengine_file *f, uint32_t part, char out[static STORE_NAME_MAX])
{
	snprintf(out, STORE_NAME_MAX, "%s/payload/%020" PRIu64 "/%012" PRIu64 "-%08" PRIx32 ".%" PRIu32,
		 f->home->line, f->stored >> LOGENGINE_FILE_EPOCH,
		 f->stored & (((uint64_t)1 << LOGENGINE_FILE_EPOCH) - 1), f->mark, part);
}

static uint32_t
parts_of(const struct logengine_file *f)
{
	return (uint32_t)((logengine_file_length(f) + PART - 1) / PART);
}

static size_t
part_size(const struct logengine_file *f, uint32_t part)
{
	const uint64_t rest = logengine_file_length(f) - (uint64_t)part * PART;

	return rest < PART ? (size_t)rest : PART;
}

/* ---- Requests ---- */

/* Waits before the next try. Returns false after the last try. */
static bool
try_again(unsigned *tries)
{
	uint64_t random = 0;
	slu_time wait;

	if (++*tries == TRIES)
		return false;
	(void)hash_random(&random, sizeof random, NULL); /* without it the next try comes at once */
	wait = backoff_delay(&retry, *tries, random);
	nanosleep(&(struct timespec){ wait / SLU_SEC, wait % SLU_SEC }, NULL);
	return true;
}

/* A name is used once, so an object that exists is an earlier try of this put. */
static int
put(struct store *store, const char *name, struct slice object, struct slu_err *err)
{
	enum store_result r;
	unsigned tries = 0;

	do
		r = store_put(store, name, object, STORE_IF_ABSENT, err);
	while (r == STORE_FAILED && try_again(&tries));
	return r == STORE_OK || r == STORE_EXISTS ? 0 : SLU_EDOWN;
}

static int
get(struct store *store, const char *name, struct buf *out, struct slu_err *err)
{
	enum store_result r;
	unsigned tries = 0;

	do {
		buf_clear(out);
		r = store_get(store, name, 0, SIZE_MAX, out, NULL, err);
	} while (r == STORE_FAILED && try_again(&tries));
	if (r == STORE_ABSENT)
		return slu_fail(err, SLU_ECORRUPT, "%s is missing in the store", name);
	return r == STORE_OK ? 0 : SLU_EDOWN;
}

/* ---- Files ---- */

int
logengine_file_upload(struct logengine_file *f, int fd, struct slu_err *err)
{
	struct disk *const disk = f->home->disk;
	char *const p = mem_alloc(PART);
	char name[STORE_NAME_MAX];
	int rc = 0;

	if (!p)
		return slu_fail(err, SLU_ENOMEM, "no memory to store a payload");
	for (uint32_t part = 0; part < parts_of(f) && !rc; part++) {
		const size_t n = part_size(f, part);
		const int64_t got = disk->ops->read(disk, fd, p, n, (uint64_t)part * PART);

		object_name(f, part, name);
		rc = got == (int64_t)n ? put(f->home->store, name, (struct slice){ p, n }, err)
				       : disk_fail(got < 0 ? got : -EIO, "read", name, err);
	}
	mem_free(p);
	return rc;
}

static int
fetch_parts(struct logengine_file *f, int fd, struct slu_err *err)
{
	struct disk *const disk = f->home->disk;
	char name[STORE_NAME_MAX];
	struct buf part_bytes;
	int rc = 0;

	buf_init(&part_bytes, PART);
	for (uint32_t part = 0; part < parts_of(f) && !rc; part++) {
		object_name(f, part, name);
		rc = get(f->home->store, name, &part_bytes, err);
		if (!rc && part_bytes.n != part_size(f, part))
			rc = slu_fail(err, SLU_ECORRUPT, "%s: %zu bytes; expected %zu", name, part_bytes.n,
				      part_size(f, part));
		if (!rc && disk->ops->write(disk, fd, part_bytes.p, part_bytes.n, (uint64_t)part * PART))
			rc = slu_fail(err, SLU_EDOWN, "write a payload that was fetched");
	}
	buf_release(&part_bytes);
	return rc;
}

/* Fetches the file under this name. */
static int
fetch_as(struct logengine_file *f, const char *name, struct slu_err *err)
{
	struct logengine_files *const s = f->home;
	int fd, rc;

	rc = logengine_files_folder(s, err);
	if (rc)
		return rc;
	(void)s->disk->ops->remove(s->disk, s->folder, name); /* of a killed process */
	fd = s->disk->ops->create(s->disk, s->folder, name);
	if (fd < 0)
		return disk_fail(fd, "create", name, err);
	rc = fetch_parts(f, fd, err);
	if (!rc && s->front && s->disk->ops->sync(s->disk, fd))
		rc = slu_fail(err, SLU_EDOWN, "sync a payload that was fetched");
	s->disk->ops->close(s->disk, fd);
	if (rc)
		(void)s->disk->ops->remove(s->disk, s->folder, name); /* the next fetch removes it */
	return rc;
}

static bool
is_in_folder(const struct logengine_file *f)
{
	struct logengine_files *const s = f->home;
	char name[LOGENGINE_FILE_NAME];
	const int fd = s->disk->ops->open(s->disk, s->folder, logengine_file_name(f->number, name));

	if (fd >= 0)
		s->disk->ops->close(s->disk, fd);
	return fd >= 0;
}

/* Under fetching. Another thread may have fetched the file meanwhile. */
static int
fetch(struct logengine_file *f, struct slu_err *err)
{
	struct logengine_files *const s = f->home;
	char name[LOGENGINE_FILE_NAME];
	int rc;

	if (is_in_folder(f))
		return 0;
	rc = fetch_as(f, FETCH, err);
	if (rc)
		return rc;
	rc = s->disk->ops->rename(s->disk, s->folder, FETCH, logengine_file_name(f->number, name));
	return rc ? disk_fail(rc, "rename", FETCH, err) : 0;
}

int
logengine_file_fetch(struct logengine_file *f, struct slu_err *err)
{
	struct logengine_files *const s = f->home;
	char name[LOGENGINE_FILE_NAME];
	int rc;

	if (s->transit) /* it has one reader */
		return fetch_as(f, logengine_file_name(f->number, name), err);
	pthread_mutex_lock(&s->fetching);
	rc = fetch(f, err);
	pthread_mutex_unlock(&s->fetching);
	return rc;
}

int
logengine_file_bring(struct logengine_file *f, struct slu_err *err)
{
	const int rc = is_in_folder(f) ? 0 : logengine_file_fetch(f, err);

	pthread_mutex_lock(&f->home->mtx);
	f->here = !rc;
	pthread_mutex_unlock(&f->home->mtx);
	return rc;
}

bool
logengine_file_is_here(struct logengine_file *f)
{
	bool here;

	pthread_mutex_lock(&f->home->mtx);
	here = f->here || f->fd >= 0;
	pthread_mutex_unlock(&f->home->mtx);
	return here;
}

uint32_t
logengine_files_count(struct logengine_files *s)
{
	uint32_t n;

	pthread_mutex_lock(&s->mtx);
	n = map_count(&s->map);
	pthread_mutex_unlock(&s->mtx);
	return n;
}

void
logengine_file_unstore(struct logengine_file *f)
{
	char name[STORE_NAME_MAX];
	struct slu_err err;

	for (uint32_t part = 0; part < parts_of(f); part++) {
		object_name(f, part, name);
		if (store_remove(f->home->store, name, &err) >= STORE_FAILED) /* a later open does it */
			log_warn(f->home->log, "payload not removed", F_STR("why", err.text));
	}
}

/* ---- Open ---- */

/* Reads the end of a name: <epoch>/<counter>-<mark>.<part>. */
static bool
parse(const char *p, uint64_t *number, uint32_t *mark)
{
	char *end;
	const uint64_t epoch = strtoull(p, &end, 10);
	uint64_t counter;

	if (end - p != 20 || *end != '/')
		return false;
	p = end + 1;
	counter = strtoull(p, &end, 10);
	if (*end != '-')
		return false;
	*mark = (uint32_t)strtoul(end + 1, &end, 16);
	*number = epoch << LOGENGINE_FILE_EPOCH | counter;
	return *end == '.';
}

/* LINE-9: whether the object is of an older epoch and no record names its file. */
static bool
is_left(struct logengine_files *s, const char *end_of_name)
{
	uint64_t number;
	uint32_t mark;

	return parse(end_of_name, &number, &mark) && number >> LOGENGINE_FILE_EPOCH < s->epoch &&
	       !logengine_files_has(s, number, mark);
}

static int
remove_left(struct logengine_files *s, const char *prefix, const struct store_names *names,
	    uint64_t *removed, struct slu_err *err)
{
	for (uint32_t i = 0; i < names->n; i++) {
		if (!is_left(s, names->names[i] + strlen(prefix)))
			continue;
		if (store_remove(s->store, names->names[i], err) >= STORE_FAILED)
			return SLU_EDOWN;
		++*removed;
	}
	return 0;
}

int
logengine_files_settle_store(struct logengine_files *s, struct slu_err *err)
{
	struct store_names names = { 0 };
	char prefix[STORE_NAME_MAX], after[STORE_NAME_MAX] = "";
	uint64_t removed = 0;
	int rc;

	snprintf(prefix, sizeof prefix, "%s/payload/", s->line);
	do {
		unsigned tries = 0;
		enum store_result r;

		do
			r = store_list(s->store, prefix, after, STORE_PAGE_MAX, &names, err);
		while (r == STORE_FAILED && try_again(&tries));
		rc = r == STORE_OK ? remove_left(s, prefix, &names, &removed, err) : SLU_EDOWN;
		if (names.n)
			snprintf(after, sizeof after, "%s", names.names[names.n - 1]);
	} while (!rc && names.more);
	store_names_release(&names);
	if (removed)
		log_info(s->log, "payloads without a message removed", F_U64("objects", removed));
	return rc;
}
