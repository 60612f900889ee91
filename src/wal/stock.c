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
write_zeros(const struct stock *st, int file, uint32_t size)
{
	static const char zeros[ZEROS];
	const struct disk_ops *ops = st->conf.disk->ops;
	int rc = 0;

	for (uint32_t at = 0; at < size && !rc;) {
		const uint32_t rest = size - at;
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
	  uint32_t size, bool with_zeros)
{
	const struct disk_ops *ops = st->conf.disk->ops;
	int rc;

	rc = ops->allocate(st->conf.disk, file, size);
	if (!rc && with_zeros)
		rc = write_zeros(st, file, size);
	if (!rc)
		rc = ops->sync(st->conf.disk, file);
	if (!rc)
		rc = ops->rename(st->conf.disk, st->conf.folder, tmp, name);
	return rc ? rc : ops->sync_folder(st->conf.disk, st->conf.folder);
}

/* The file is open; whatever fails, the caller removes it again. */
static int
make_file(const struct stock *st, int file, uint32_t number, uint32_t size, bool with_zeros,
	  struct segment **out, struct slu_err *err)
{
	char tmp[SEGMENT_NAME + 4], name[SEGMENT_NAME];
	int rc;

	segment_spare_name(number, name);
	snprintf(tmp, sizeof tmp, "%s.tmp", name);
	rc = fill_file(st, file, tmp, name, size, with_zeros);
	if (rc)
		return disk_fail(rc, "make", name, err);
	*out = segment_new(st->conf.disk, file, size);
	if (!*out)
		return slu_fail(err, SLU_ENOMEM, "make %s: out of memory", name);
	memcpy((*out)->name, name, sizeof name);
	(*out)->spare = number;
	(*out)->was_written = with_zeros;
	return 0;
}

static int
make_spare(const struct stock *st, uint32_t number, uint32_t size, bool with_zeros,
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
	rc = make_file(st, file, number, size, with_zeros, out, err);
	if (rc) {
		disk->ops->close(disk, file);
		/* It has one of the two names; what stays, the next open sees to. */
		(void)disk->ops->remove(disk, st->conf.folder, tmp);
		(void)disk->ops->remove(disk, st->conf.folder, name);
	}
	return rc;
}

/* May one more file be made? Under mtx; then it is counted. After a failure, files that are
 * made ahead wait, and on a full disk those that are needed now wait, too. */
static int
begin_making(struct stock *st, bool ahead, uint32_t *number, struct slu_err *err)
{
	if (st->conf.max_segments && st->total >= st->conf.max_segments)
		return slu_fail(err, SLU_EFULL,
				"the log has its %" PRIu32 " segments, the most it may",
				st->conf.max_segments);
	if ((ahead || st->was_full) && clock_mono(st->conf.clock) < st->retry_at)
		return slu_fail(err, SLU_EFULL, "the disk was full a moment ago");
	st->making++;
	st->total++;
	*number = ++st->last_name;
	return 0;
}

/* Spares of the size that is made now. Under mtx. */
static uint32_t
right_sized(const struct stock *st)
{
	uint32_t n = 0;

	LIST_EACH(node, &st->spares)
		n += CONTAINER(node, struct segment, node)->size == st->conf.size;
	return n;
}

/* K4. Under mtx. */
static uint32_t
have(const struct stock *st)
{
	const uint32_t ahead = st->conf.ahead;

	return right_sized(st) + st->making + (st->planned < ahead ? st->planned : ahead);
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

/* A new one goes to the stock. False: it is not missing any more (K4), or another size is
 * made by now. Under mtx. */
static bool
keep_made(struct stock *st, struct segment *s, bool with_zeros)
{
	st->making--;
	st->retry_at = 0;
	if (with_zeros && (have(st) >= target(st) || s->size != st->conf.size))
		return false;
	add(st, s);
	return true;
}

static int
make_one(struct stock *st, uint32_t size, bool with_zeros, struct slu_err *err)
{
	struct segment *s = NULL;
	uint32_t number = 0;
	bool kept = true;
	int rc;

	pthread_mutex_lock(&st->mtx);
	rc = begin_making(st, with_zeros, &number, err);
	pthread_mutex_unlock(&st->mtx);
	if (rc)
		return rc;
	rc = make_spare(st, number, size, with_zeros, &s, err);
	pthread_mutex_lock(&st->mtx);
	if (s) {
		kept = keep_made(st, s, with_zeros);
	} else {
		st->making--;
		st->total--;
		st->was_full = rc == SLU_EFULL;
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

/* A spare of a size that is never made is of no use. */
static int
adopt_file(struct stock *st, int file, uint32_t number, const char *name,
	   struct slu_err *err)
{
	struct disk *disk = st->conf.disk;
	const int64_t size = disk->ops->size(disk, file);
	struct segment *s;
	int rc;

	if (size < st->conf.smallest || size > st->conf.largest || size % SEGMENT_PAGE) {
		disk->ops->close(disk, file);
		rc = disk->ops->remove(disk, st->conf.folder, name);
		return rc ? disk_fail(rc, "remove", name, err) : 0;
	}
	s = segment_new(disk, file, (uint32_t)size);
	if (!s) {
		disk->ops->close(disk, file);
		return slu_fail(err, SLU_ENOMEM, "open %s: out of memory", name);
	}
	snprintf(s->name, sizeof s->name, "%s", name);
	s->spare = number;
	s->was_written = true;
	st->total++;
	add(st, s);
	if (s->size > st->conf.size)
		st->conf.size = s->size; /* as it was before */
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

void
stock_set_size(struct stock *st, uint32_t size)
{
	pthread_mutex_lock(&st->mtx);
	st->conf.size = size;
	pthread_mutex_unlock(&st->mtx);
}

uint32_t
stock_segment_size(const struct stock *st)
{
	return st->conf.size; /* which the log's thread alone changes */
}

/* A spare of another size that nobody reads, when there are enough of the right one; or
 * NULL. Under mtx. */
static struct segment *
find_odd(const struct stock *st)
{
	if (have(st) < target(st))
		return NULL;
	LIST_EACH(node, &st->spares) {
		struct segment *s = CONTAINER(node, struct segment, node);

		if (s->size != st->conf.size && !segment_is_pinned(s))
			return s;
	}
	return NULL;
}

bool
stock_wants(struct stock *st)
{
	bool wants;

	pthread_mutex_lock(&st->mtx);
	wants = have(st) < target(st) || find_odd(st);
	pthread_mutex_unlock(&st->mtx);
	return wants;
}

int
stock_prepare(struct stock *st, struct slu_err *err)
{
	struct segment *odd;
	uint32_t size;
	bool missing;

	pthread_mutex_lock(&st->mtx);
	missing = have(st) < target(st);
	size = st->conf.size;
	odd = find_odd(st);
	if (odd) {
		list_remove(&odd->node);
		st->n--;
	}
	pthread_mutex_unlock(&st->mtx);
	if (missing)
		return make_one(st, size, true, err);
	if (odd && discard(st, odd, err)) {
		segment_unref(odd); /* the next open finds the file */
		return SLU_EDOWN;
	}
	return 0;
}

/* Spares that can be taken now (K3): how many of at least that size, and the bytes of all. */
static uint32_t
available(struct stock *st, uint32_t size, uint64_t *bytes)
{
	uint32_t n = 0;

	*bytes = 0;
	pthread_mutex_lock(&st->mtx);
	LIST_EACH(node, &st->spares) {
		const struct segment *s = CONTAINER(node, struct segment, node);

		if (segment_is_pinned(s))
			continue;
		n += s->size >= size;
		*bytes += s->size;
	}
	pthread_mutex_unlock(&st->mtx);
	return n;
}

/* K1 */
static uint64_t
reserve_bytes(struct stock *st)
{
	uint64_t bytes;

	pthread_mutex_lock(&st->mtx);
	bytes = (uint64_t)st->conf.reserve * st->conf.size;
	pthread_mutex_unlock(&st->mtx);
	return bytes;
}

bool
stock_is_short(struct stock *st)
{
	const uint64_t reserve = reserve_bytes(st);
	uint64_t bytes;
	bool is_short;

	(void)available(st, 0, &bytes);
	pthread_mutex_lock(&st->mtx);
	is_short = bytes < reserve &&
		   (st->retry_at || (st->conf.max_segments && st->total >= st->conf.max_segments));
	pthread_mutex_unlock(&st->mtx);
	return is_short;
}

int
stock_need(struct stock *st, uint32_t n, uint32_t size, enum wal_use use, struct slu_err *err)
{
	const uint64_t reserve = use == WAL_NEW ? reserve_bytes(st) : 0;
	const uint32_t usual = stock_segment_size(st);
	uint64_t bytes;
	int rc = 0;

	while (!rc && (available(st, size, &bytes) < n || bytes < (uint64_t)n * size + reserve))
		rc = make_one(st, size > usual || use != WAL_NEW ? size : usual, false, err);
	return rc;
}

/* Best first; of the right size, or else of a larger one. Under mtx. */
static struct segment *
find_spare(const struct stock *st, uint32_t size)
{
	struct segment *larger = NULL;

	LIST_EACH(node, &st->spares) {
		struct segment *s = CONTAINER(node, struct segment, node);

		if (segment_is_pinned(s) || s->size < size)
			continue;
		if (s->size == size)
			return s;
		larger = larger ? larger : s;
	}
	return larger;
}

struct segment *
stock_take(struct stock *st, uint32_t size)
{
	struct segment *found;

	pthread_mutex_lock(&st->mtx);
	found = find_spare(st, size);
	if (found) {
		list_remove(&found->node);
		st->n--;
		st->planned++;
	}
	pthread_mutex_unlock(&st->mtx);
	return found;
}

void
stock_untake(struct stock *st, struct segment *s)
{
	pthread_mutex_lock(&st->mtx);
	assert(st->planned > 0);
	st->planned--;
	add(st, s);
	pthread_mutex_unlock(&st->mtx);
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

/* Is a segment that was recycled worth keeping? One of another size is while the stock is
 * short: a disk that is full may not give its room back in another form. Under mtx. */
static bool
is_wanted(const struct stock *st, const struct segment *s)
{
	uint64_t bytes = 0;

	if (s->size == st->conf.size)
		return have(st) < target(st) + (st->total - st->n) / KEEP_ONE_IN;
	LIST_EACH(node, &st->spares)
		bytes += CONTAINER(node, struct segment, node)->size;
	return s->size >= st->conf.smallest && s->size <= st->conf.largest &&
	       bytes < (uint64_t)target(st) * st->conf.size;
}

int
stock_give(struct stock *st, struct segment *s, struct slu_err *err)
{
	uint32_t number;
	bool enough;

	pthread_mutex_lock(&st->mtx);
	enough = !is_wanted(st, s);
	number = ++st->last_name;
	pthread_mutex_unlock(&st->mtx);
	return enough ? discard(st, s, err) : to_spare(st, s, number, err);
}

int64_t
stock_room(struct stock *st)
{
	const int64_t free = st->conf.disk->ops->room(st->conf.disk, st->conf.folder);
	int64_t more, have;
	uint64_t bytes;
	const int64_t spares = available(st, 0, &bytes);

	pthread_mutex_lock(&st->mtx);
	more = free < 0 ? 0 : free / st->conf.size;
	if (st->conf.max_segments) {
		const int64_t rest = (int64_t)st->conf.max_segments - st->total;

		more = more < rest ? more : rest;
	}
	have = (int64_t)bytes - spares * SEGMENT_HEAD +
	       ((more > 0 ? more : 0) - (int64_t)st->conf.reserve) *
		       ((int64_t)st->conf.size - SEGMENT_HEAD);
	pthread_mutex_unlock(&st->mtx);
	return have;
}

uint32_t
stock_count_spares(struct stock *st, uint64_t *bytes)
{
	uint32_t n;

	*bytes = 0;
	pthread_mutex_lock(&st->mtx);
	n = st->n;
	LIST_EACH(node, &st->spares)
		*bytes += CONTAINER(node, struct segment, node)->size;
	pthread_mutex_unlock(&st->mtx);
	return n;
}

uint64_t
stock_owed(struct stock *st)
{
	const uint64_t reserve = reserve_bytes(st);
	uint64_t bytes;

	(void)stock_count_spares(st, &bytes);
	return reserve > bytes ? reserve - bytes : 0;
}
