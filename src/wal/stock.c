#include "wal/stock.h"

#include "base/mem.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define RETRY_EVERY (100 * SLU_MS) /* after a full disk */

enum {
	ZEROS = 256 * 1024,
	SYNC_EVERY = 4 * 1024 * 1024, /* so that nobody else's sync waits long */
	KEEP_ONE_IN = 8               /* segments: cleaning gives some back, then takes none for a while */
};

int
stock_init(struct stock *st, const struct stock_conf *conf)
{
	memset(st, 0, sizeof *st);
	st->conf = *conf;
	list_init(&st->spares);
	return pthread_mutex_init(&st->mtx, NULL) ? SLU_ENOMEM : 0;
}

void
stock_release(struct stock *st)
{
	LIST_EACH_SAFE(n, &st->spares) {
		list_remove(n);
		segment_unref(CONTAINER(n, struct segment, node));
	}
	pthread_mutex_destroy(&st->mtx);
}

/* Best first: those that were written. Under mtx. */
static void
add(struct stock *st, struct segment *s)
{
	if (s->was_written)
		list_append(st->spares.next, &s->node); /* before the first */
	else
		list_append(&st->spares, &s->node);
	st->n++;
}

static int
write_zeros(const struct stock *st, int file)
{
	static const char zeros[ZEROS];
	const struct disk_ops *ops = st->conf.disk->ops;
	int rc = 0;

	for (uint32_t at = 0; at < st->conf.segment_size && !rc;) {
		const uint32_t rest = st->conf.segment_size - at;
		const uint32_t n = rest < ZEROS ? rest : ZEROS;

		rc = ops->write(st->conf.disk, file, zeros, n, at);
		at += n;
		if (!rc && at % SYNC_EVERY == 0)
			rc = ops->sync(st->conf.disk, file);
	}
	return rc;
}

/* Full size, on disk, under its name. K2. */
static int
fill_file(const struct stock *st, int file, const char *tmp, const char *name,
	  bool with_zeros)
{
	const struct disk_ops *ops = st->conf.disk->ops;
	int rc;

	rc = ops->allocate(st->conf.disk, file, st->conf.segment_size);
	if (!rc && with_zeros)
		rc = write_zeros(st, file);
	if (!rc)
		rc = ops->sync(st->conf.disk, file);
	if (!rc)
		rc = ops->rename(st->conf.disk, st->conf.folder, tmp, name);
	return rc ? rc : ops->sync_folder(st->conf.disk, st->conf.folder);
}

/* The file is open; whatever fails, the caller removes it again. */
static int
make_file(const struct stock *st, int file, uint32_t number, bool with_zeros,
	  struct segment **out, struct slu_err *err)
{
	char tmp[SEGMENT_NAME + 4], name[SEGMENT_NAME];
	int rc;

	segment_spare_name(number, name);
	snprintf(tmp, sizeof tmp, "%s.tmp", name);
	rc = fill_file(st, file, tmp, name, with_zeros);
	if (rc)
		return disk_fail(rc, "make", name, err);
	*out = segment_new(st->conf.disk, file, st->conf.segment_size);
	if (!*out)
		return slu_fail(err, SLU_ENOMEM, "make %s: out of memory", name);
	memcpy((*out)->name, name, sizeof name);
	(*out)->spare = number;
	(*out)->was_written = with_zeros;
	return 0;
}

static int
make_spare(const struct stock *st, uint32_t number, bool with_zeros,
	   struct segment **out, struct slu_err *err)
{
	struct disk *disk = st->conf.disk;
	char tmp[SEGMENT_NAME + 4], name[SEGMENT_NAME];
	int file, rc;

	segment_spare_name(number, name);
	snprintf(tmp, sizeof tmp, "%s.tmp", name);
	file = disk->ops->create(disk, st->conf.folder, tmp);
	if (file < 0)
		return disk_fail(file, "create", tmp, err);
	rc = make_file(st, file, number, with_zeros, out, err);
	if (rc) {
		disk->ops->close(disk, file);
		/* It has one of the two names; what stays, the next open sees to. */
		(void)disk->ops->remove(disk, st->conf.folder, tmp);
		(void)disk->ops->remove(disk, st->conf.folder, name);
	}
	return rc;
}

/* May one more file be made? Under mtx; then it is counted. */
static int
begin_making(struct stock *st, uint32_t *number, struct slu_err *err)
{
	if (st->conf.max_segments && st->total >= st->conf.max_segments)
		return slu_fail(err, SLU_EFULL,
				"the log has its %" PRIu32 " segments, the most it may",
				st->conf.max_segments);
	if (clock_mono(st->conf.clock) < st->retry_at)
		return slu_fail(err, SLU_EFULL, "the disk was full a moment ago");
	st->making++;
	st->total++;
	*number = ++st->last_name;
	return 0;
}

/* K4. Under mtx. */
static uint32_t
have(const struct stock *st)
{
	const uint32_t ahead = st->conf.ahead;

	return st->n + st->making + (st->planned < ahead ? st->planned : ahead);
}

/* Under mtx. */
static uint32_t
target(const struct stock *st)
{
	return st->conf.reserve + st->conf.ahead;
}

/* Too many, or of another size: the file goes; who still reads it may go on. */
static int
discard(struct stock *st, struct segment *s, struct slu_err *err)
{
	const struct disk_ops *ops = st->conf.disk->ops;
	int rc;

	rc = ops->remove(st->conf.disk, st->conf.folder, s->name);
	if (!rc)
		rc = ops->sync_folder(st->conf.disk, st->conf.folder);
	if (rc)
		return disk_fail(rc, "remove", s->name, err);
	pthread_mutex_lock(&st->mtx);
	st->total--;
	pthread_mutex_unlock(&st->mtx);
	segment_unref(s);
	return 0;
}

/* A new one goes to the stock. False: it is not missing any more (K4). Under mtx. */
static bool
keep_made(struct stock *st, struct segment *s, bool with_zeros)
{
	st->making--;
	st->retry_at = 0;
	if (with_zeros && have(st) >= target(st))
		return false;
	add(st, s);
	return true;
}

static int
make_one(struct stock *st, bool with_zeros, struct slu_err *err)
{
	struct segment *s = NULL;
	uint32_t number = 0;
	bool kept = true;
	int rc;

	pthread_mutex_lock(&st->mtx);
	rc = begin_making(st, &number, err);
	pthread_mutex_unlock(&st->mtx);
	if (rc)
		return rc;
	rc = make_spare(st, number, with_zeros, &s, err);
	pthread_mutex_lock(&st->mtx);
	if (s) {
		kept = keep_made(st, s, with_zeros);
	} else {
		st->making--;
		st->total--;
		st->retry_at = clock_mono(st->conf.clock) + RETRY_EVERY;
	}
	pthread_mutex_unlock(&st->mtx);
	if (kept)
		return rc;
	rc = discard(st, s, err);
	if (rc)
		segment_unref(s); /* the next open finds the file */
	return rc;
}

/* A spare of another size is of no use. */
static int
adopt_file(struct stock *st, int file, uint32_t number, const char *name,
	   struct slu_err *err)
{
	struct disk *disk = st->conf.disk;
	struct segment *s;
	int rc;

	if (disk->ops->size(disk, file) != st->conf.segment_size) {
		disk->ops->close(disk, file);
		rc = disk->ops->remove(disk, st->conf.folder, name);
		return rc ? disk_fail(rc, "remove", name, err) : 0;
	}
	s = segment_new(disk, file, st->conf.segment_size);
	if (!s) {
		disk->ops->close(disk, file);
		return slu_fail(err, SLU_ENOMEM, "open %s: out of memory", name);
	}
	snprintf(s->name, sizeof s->name, "%s", name);
	s->spare = number;
	s->was_written = true;
	st->total++;
	add(st, s);
	return 0;
}

int
stock_adopt(struct stock *st, uint32_t number, struct slu_err *err)
{
	struct disk *disk = st->conf.disk;
	char name[SEGMENT_NAME];
	int file;

	segment_spare_name(number, name);
	st->last_name = number > st->last_name ? number : st->last_name;
	file = disk->ops->open(disk, st->conf.folder, name);
	if (file < 0)
		return disk_fail(file, "open", name, err);
	return adopt_file(st, file, number, name, err);
}

void
stock_count(struct stock *st)
{
	pthread_mutex_lock(&st->mtx);
	st->total++;
	pthread_mutex_unlock(&st->mtx);
}

void
stock_set_reserve(struct stock *st, uint32_t reserve)
{
	pthread_mutex_lock(&st->mtx);
	st->conf.reserve = reserve;
	pthread_mutex_unlock(&st->mtx);
}

bool
stock_wants(struct stock *st)
{
	bool wants;

	pthread_mutex_lock(&st->mtx);
	wants = have(st) < target(st);
	pthread_mutex_unlock(&st->mtx);
	return wants;
}

int
stock_prepare(struct stock *st, struct slu_err *err)
{
	return stock_wants(st) ? make_one(st, true, err) : 0;
}

/* Spares that can be taken now: K3. */
static uint32_t
available(struct stock *st)
{
	uint32_t n = 0;

	pthread_mutex_lock(&st->mtx);
	LIST_EACH(node, &st->spares)
		n += !segment_is_pinned(CONTAINER(node, struct segment, node));
	pthread_mutex_unlock(&st->mtx);
	return n;
}

bool
stock_is_short(struct stock *st)
{
	const uint32_t n = available(st);
	bool is_short;

	pthread_mutex_lock(&st->mtx);
	is_short = n < st->conf.reserve &&
		   (st->retry_at || (st->conf.max_segments && st->total >= st->conf.max_segments));
	pthread_mutex_unlock(&st->mtx);
	return is_short;
}

int
stock_need(struct stock *st, uint32_t n, enum wal_use use, struct slu_err *err)
{
	const uint32_t want = n + (use == WAL_NEW ? st->conf.reserve : 0);
	int rc = 0;

	while (!rc && available(st) < want)
		rc = make_one(st, false, err);
	return rc;
}

struct segment *
stock_take(struct stock *st)
{
	struct segment *found = NULL;

	pthread_mutex_lock(&st->mtx);
	LIST_EACH(node, &st->spares) {
		found = CONTAINER(node, struct segment, node);
		if (!segment_is_pinned(found))
			break;
		found = NULL;
	}
	if (found) {
		list_remove(&found->node);
		st->n--;
		st->planned++;
	}
	pthread_mutex_unlock(&st->mtx);
	return found;
}

void
stock_use(struct stock *st)
{
	pthread_mutex_lock(&st->mtx);
	assert(st->planned > 0);
	st->planned--;
	pthread_mutex_unlock(&st->mtx);
}

static int
to_spare(struct stock *st, struct segment *s, uint32_t number, struct slu_err *err)
{
	const struct disk_ops *ops = st->conf.disk->ops;
	char name[SEGMENT_NAME];
	int rc;

	segment_spare_name(number, name);
	rc = ops->rename(st->conf.disk, st->conf.folder, s->name, name);
	if (!rc) /* before its content changes: else an old name could show new bytes */
		rc = ops->sync_folder(st->conf.disk, st->conf.folder);
	if (rc)
		return disk_fail(rc, "recycle", s->name, err);
	pthread_mutex_lock(&st->mtx);
	s->spare = number;
	add(st, s);
	pthread_mutex_unlock(&st->mtx);
	return 0;
}

int
stock_give(struct stock *st, struct segment *s, struct slu_err *err)
{
	uint32_t number;
	bool enough;

	pthread_mutex_lock(&st->mtx);
	enough = have(st) >= target(st) + (st->total - st->n) / KEEP_ONE_IN ||
		 s->size != st->conf.segment_size;
	number = ++st->last_name;
	pthread_mutex_unlock(&st->mtx);
	return enough ? discard(st, s, err) : to_spare(st, s, number, err);
}

int64_t
stock_room(struct stock *st)
{
	const int64_t free = st->conf.disk->ops->room(st->conf.disk, st->conf.folder);
	int64_t more = free < 0 ? 0 : free / st->conf.segment_size;
	int64_t have = available(st);

	pthread_mutex_lock(&st->mtx);
	if (st->conf.max_segments) {
		const int64_t rest = (int64_t)st->conf.max_segments - st->total;

		more = more < rest ? more : rest;
	}
	have += (more > 0 ? more : 0) - (int64_t)st->conf.reserve;
	pthread_mutex_unlock(&st->mtx);
	return have;
}

uint32_t
stock_size(struct stock *st)
{
	uint32_t n;

	pthread_mutex_lock(&st->mtx);
	n = st->n;
	pthread_mutex_unlock(&st->mtx);
	return n;
}

uint64_t
stock_owed(struct stock *st)
{
	uint64_t missing;

	pthread_mutex_lock(&st->mtx);
	missing = st->conf.reserve > st->n ? st->conf.reserve - st->n : 0;
	pthread_mutex_unlock(&st->mtx);
	return missing * st->conf.segment_size;
}
