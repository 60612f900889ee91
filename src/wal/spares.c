#include "wal/spares.h"

#include <assert.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stdio.h>

#define RETRY_EVERY (100 * SLU_MS) /* after a full disk */

enum {
	ZEROS = 1024 * 1024,
	CACHED_ZEROS = 64 * 1024,     /* through the page cache: the processor copies them, so they stay near it */
	SYNC_EVERY = 4 * 1024 * 1024, /* bytes; so that syncs of other files do not wait long */
	KEEP_ONE_IN = 8               /* keeps one extra spare per so many segments */
};

int
spares_init(struct spares *st, const struct spares_conf *conf)
{
	memset(st, 0, sizeof *st);
	st->conf = *conf;
	list_init(&st->spares);
	return pthread_mutex_init(&st->mtx, NULL) ? SLU_ENOMEM : 0;
}

void
spares_release(struct spares *st)
{
	LIST_EACH_SAFE(n, &st->spares) {
		list_remove(n);
		segment_unref(CONTAINER(n, struct segment, node));
	}
	pthread_mutex_destroy(&st->mtx);
}

/* Adds a spare, written ones first, and the newest before the others: SPARES-5. Under mtx. */
static void
add(struct spares *st, struct segment *s)
{
	if (s->was_written)
		list_append(st->spares.next, &s->node); /* before the first */
	else
		list_append(&st->spares, &s->node);
	st->n++;
}

/* How a spare is filled. */
enum fill {
	FILL_NONE,  /* allocated only */
	FILL_CACHE, /* zeros through the page cache: the log writes faster to pages that are there */
	FILL_PAST   /* zeros past the page cache: a quarter of the processor time */
};

static int
write_zeros(const struct spares *st, int file, uint32_t size, enum fill fill)
{
	static alignas(DISK_BLOCK) char zeros[ZEROS]; /* not const: the program file need not have it */
	const struct disk_ops *ops = st->conf.disk->ops;
	const bool past = fill == FILL_PAST && ops->write_past;
	const uint32_t most = past ? ZEROS : CACHED_ZEROS;
	int rc = 0;

	for (uint32_t at = 0; at < size && !rc;) {
		const uint32_t rest = size - at;
		const uint32_t n = rest < most ? rest : most;

		rc = (past ? ops->write_past : ops->write)(st->conf.disk, file, zeros, n, at);
		at += n;
		if (!rc && at % SYNC_EVERY == 0)
			rc = ops->sync(st->conf.disk, file);
	}
	return rc;
}

/* Writes or allocates the file in full size, syncs it, renames it. SPARES-2. */
static int
fill_file(const struct spares *st, int file, const char *tmp, const char *name,
	  uint32_t size, enum fill fill)
{
	const struct disk_ops *ops = st->conf.disk->ops;
	int rc;

	rc = ops->allocate(st->conf.disk, file, size);
	if (!rc && fill)
		rc = write_zeros(st, file, size, fill);
	if (!rc)
		rc = ops->sync(st->conf.disk, file);
	if (!rc)
		rc = ops->rename(st->conf.disk, st->conf.folder, tmp, name);
	return rc ? rc : ops->sync_folder(st->conf.disk, st->conf.folder);
}

/* Makes a spare of an open file. If it fails, the caller removes the file. */
static int
make_file(const struct spares *st, int file, uint32_t number, uint32_t size, enum fill fill,
	  struct segment **out, struct slu_err *err)
{
	char tmp[SEGMENT_NAME + 4], name[SEGMENT_NAME];
	int rc;

	segment_spare_name(number, name);
	snprintf(tmp, sizeof tmp, "%s.tmp", name);
	rc = fill_file(st, file, tmp, name, size, fill);
	if (rc)
		return disk_fail(rc, "make", name, err);
	*out = segment_new(st->conf.disk, file, size);
	if (!*out)
		return slu_fail(err, SLU_ENOMEM, "make %s: out of memory", name);
	memcpy((*out)->name, name, sizeof name);
	(*out)->spare = number;
	(*out)->was_written = fill != FILL_NONE;
	return 0;
}

static int
make_spare(const struct spares *st, uint32_t number, uint32_t size, enum fill fill,
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
	rc = make_file(st, file, number, size, fill, out, err);
	if (rc) {
		disk->ops->close(disk, file);
		/* It has one of the two names. The next open handles a file that stays. */
		(void)disk->ops->remove(disk, st->conf.folder, tmp);
		(void)disk->ops->remove(disk, st->conf.folder, name);
	}
	return rc;
}

/* Whether the disk had no room for a spare of this size. Under mtx. */
static bool
is_too_large(const struct spares *st, uint32_t size)
{
	return st->no_room && size >= st->no_room;
}

/* Counts a file that is about to be made, or refuses it. After a failure, files made ahead
 * are refused until retry_at; after a full disk all files are that are not smaller. Under mtx. */
static int
begin_making(struct spares *st, uint32_t size, bool ahead, uint32_t *number, struct slu_err *err)
{
	if (st->conf.max_segments && st->total >= st->conf.max_segments)
		return slu_fail(err, SLU_EFULL,
				"the log has reached its limit of %" PRIu32 " segments",
				st->conf.max_segments);
	if ((ahead || is_too_large(st, size)) && clock_mono(st->conf.clock) < st->retry_at)
		return slu_fail(err, SLU_EFULL, "disk full");
	st->making++;
	st->total++;
	*number = ++st->last_name;
	return 0;
}

/* How many spares have the size of new spares; `filled`: and were written. Under mtx. */
static uint32_t
right_sized(const struct spares *st, bool filled)
{
	uint32_t n = 0;

	LIST_EACH(node, &st->spares) {
		const struct segment *s = CONTAINER(node, struct segment, node);

		n += s->size == st->conf.size && (!filled || s->was_written);
	}
	return n;
}

/* SPARES-4. Under mtx. */
static uint32_t
planned_ahead(const struct spares *st)
{
	return st->planned < st->conf.ahead ? st->planned : st->conf.ahead;
}

/* Under mtx. */
static uint32_t
have(const struct spares *st)
{
	return right_sized(st, false) + st->making + planned_ahead(st);
}

/* Under mtx. */
static uint32_t
target(const struct spares *st)
{
	return st->conf.reserve + st->conf.ahead;
}

/* Under mtx. */
static uint32_t
have_filled(const struct spares *st)
{
	return right_sized(st, true) + st->filling + planned_ahead(st);
}

/* More spares than these are too many. Under mtx. */
static uint32_t
most(const struct spares *st)
{
	return target(st) + (st->total - st->n) / KEEP_ONE_IN;
}

/* SPARES-5. Under mtx. */
static bool
wants_filled(const struct spares *st)
{
	return have_filled(st) < st->conf.ahead;
}

/* Under mtx. */
static bool
is_missing(const struct spares *st)
{
	return have(st) < target(st) || wants_filled(st);
}

/* Removes the file of a spare that is not needed. Readers that pinned it can go on. If it fails, the
 * caller still has the segment. */
static int
discard(struct spares *st, struct segment *s, bool syncs, struct slu_err *err)
{
	const struct disk_ops *ops = st->conf.disk->ops;
	int rc;

	rc = ops->remove(st->conf.disk, st->conf.folder, s->name);
	if (!rc && syncs)
		rc = ops->sync_folder(st->conf.disk, st->conf.folder);
	if (rc)
		return disk_fail(rc, "remove", s->name, err);
	pthread_mutex_lock(&st->mtx);
	st->total--;
	pthread_mutex_unlock(&st->mtx);
	segment_unref(s);
	return 0;
}

/* Adds a new spare. Returns false if the spare was made ahead and is not missing any more
 * (SPARES-4), or if the size of new spares has changed. Under mtx. */
static bool
keep_made(struct spares *st, struct segment *s, bool ahead)
{
	const bool missing = have(st) < target(st) || (s->was_written && wants_filled(st));

	st->retry_at = 0;
	if (ahead && (!missing || s->size != st->conf.size))
		return false;
	add(st, s);
	return true;
}

static int
make_one(struct spares *st, uint32_t size, enum fill fill, bool ahead, struct slu_err *err)
{
	struct segment *s = NULL;
	uint32_t number = 0;
	bool kept = true;
	int rc;

	pthread_mutex_lock(&st->mtx);
	rc = begin_making(st, size, ahead, &number, err);
	if (!rc)
		st->filling += fill != FILL_NONE;
	pthread_mutex_unlock(&st->mtx);
	if (rc)
		return rc;
	rc = make_spare(st, number, size, fill, &s, err);
	pthread_mutex_lock(&st->mtx);
	st->making--;
	st->filling -= fill != FILL_NONE;
	if (s) {
		kept = keep_made(st, s, ahead);
	} else {
		st->total--;
		st->no_room = rc == SLU_EFULL ? size : 0;
		st->retry_at = clock_mono(st->conf.clock) + RETRY_EVERY;
	}
	pthread_mutex_unlock(&st->mtx);
	if (kept)
		return rc;
	rc = discard(st, s, true, err);
	if (rc)
		segment_unref(s); /* the next open finds the file */
	return rc;
}

/* Adopts an open file, or removes it if its size is not one that spares can have. */
static int
adopt_file(struct spares *st, int file, uint32_t number, const char *name,
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
spares_adopt(struct spares *st, uint32_t number, struct slu_err *err)
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
spares_count(struct spares *st)
{
	pthread_mutex_lock(&st->mtx);
	st->total++;
	pthread_mutex_unlock(&st->mtx);
}

void
spares_set_reserve(struct spares *st, uint32_t reserve)
{
	pthread_mutex_lock(&st->mtx);
	st->conf.reserve = reserve;
	pthread_mutex_unlock(&st->mtx);
}

void
spares_set_size(struct spares *st, uint32_t size)
{
	pthread_mutex_lock(&st->mtx);
	st->conf.size = size;
	pthread_mutex_unlock(&st->mtx);
}

uint32_t
spares_segment_size(const struct spares *st)
{
	return st->conf.size; /* only the log's thread changes it */
}

/* An unpinned spare that is not needed: of another size, or not filled if there are too many.
 * NULL if a spare is missing. Under mtx. */
static struct segment *
find_odd(const struct spares *st)
{
	const bool too_many = right_sized(st, false) > most(st);

	if (is_missing(st))
		return NULL;
	LIST_EACH(node, &st->spares) {
		struct segment *s = CONTAINER(node, struct segment, node);

		if (segment_is_pinned(s))
			continue;
		if (s->size != st->conf.size || (too_many && !s->was_written))
			return s;
	}
	return NULL;
}

bool
spares_wants(struct spares *st)
{
	bool wants;

	pthread_mutex_lock(&st->mtx);
	wants = is_missing(st) || find_odd(st);
	pthread_mutex_unlock(&st->mtx);
	return wants;
}

/* SPARES-5: how the next spare is filled. The reserve is made first. Under mtx. */
static enum fill
next_fill(const struct spares *st)
{
	if (!wants_filled(st) || have(st) < st->conf.reserve)
		return FILL_NONE;
	return st->conf.size == st->conf.largest ? FILL_CACHE : FILL_PAST;
}

int
spares_prepare(struct spares *st, struct slu_err *err)
{
	struct segment *odd;
	enum fill fill;
	bool missing;
	uint32_t size;

	pthread_mutex_lock(&st->mtx);
	missing = is_missing(st);
	fill = next_fill(st);
	size = st->conf.size;
	odd = find_odd(st);
	if (odd) {
		list_remove(&odd->node);
		st->n--;
	}
	pthread_mutex_unlock(&st->mtx);
	if (missing)
		return make_one(st, size, fill, true, err);
	if (odd) /* a recycled segment keeps its old name while others may read it */
		segment_spare_name(odd->spare, odd->name);
	if (odd && discard(st, odd, true, err)) {
		segment_unref(odd); /* the next open finds the file */
		return SLU_EDOWN;
	}
	return 0;
}

/* How many spares of at least that size can be taken now (SPARES-3), and the bytes of all. */
static uint32_t
available(struct spares *st, uint32_t size, uint64_t *bytes)
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

/* SPARES-1 */
static uint64_t
reserve_bytes(struct spares *st)
{
	uint64_t bytes;

	pthread_mutex_lock(&st->mtx);
	bytes = (uint64_t)st->conf.reserve * st->conf.size;
	pthread_mutex_unlock(&st->mtx);
	return bytes;
}

bool
spares_is_short(struct spares *st)
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
spares_need(struct spares *st, uint32_t n, uint32_t size, enum wal_use use, struct slu_err *err)
{
	const uint64_t reserve = use == WAL_NEW ? reserve_bytes(st) : 0;
	const uint32_t usual = spares_segment_size(st);
	uint64_t bytes;
	int rc = 0;

	while (!rc && (available(st, size, &bytes) < n || bytes < (uint64_t)n * size + reserve))
		rc = make_one(st, size > usual || use != WAL_NEW ? size : usual, FILL_NONE, false, err);
	return rc;
}

/* The best spare of that size, or of a larger size if no spare has it. Under mtx. */
static struct segment *
find_spare(const struct spares *st, uint32_t size)
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
spares_take(struct spares *st, uint32_t size)
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
spares_untake(struct spares *st, struct segment *s)
{
	pthread_mutex_lock(&st->mtx);
	assert(st->planned > 0);
	st->planned--;
	add(st, s);
	pthread_mutex_unlock(&st->mtx);
}

void
spares_use(struct spares *st)
{
	pthread_mutex_lock(&st->mtx);
	assert(st->planned > 0);
	st->planned--;
	pthread_mutex_unlock(&st->mtx);
}

static int
to_spare(struct spares *st, struct segment *s, uint32_t number, struct slu_err *err)
{
	const struct disk_ops *ops = st->conf.disk->ops;
	char name[SEGMENT_NAME];
	int rc;

	segment_spare_name(number, name);
	rc = ops->rename(st->conf.disk, st->conf.folder, s->name, name);
	if (!rc) /* before the content changes, so that the old name never shows new bytes */
		rc = ops->sync_folder(st->conf.disk, st->conf.folder);
	if (rc)
		return disk_fail(rc, "recycle", s->name, err);
	pthread_mutex_lock(&st->mtx);
	s->spare = number;
	s->was_written = true; /* by the log, nearly to its end */
	add(st, s);
	pthread_mutex_unlock(&st->mtx);
	return 0;
}

/* Whether to keep a recycled segment. A segment of the right size may replace a spare that is
 * not filled. A segment of another size is kept while spares are missing: on a full disk a
 * removed file may not make room for a new one. Under mtx. */
static bool
is_wanted(const struct spares *st, const struct segment *s)
{
	uint64_t bytes = 0;

	if (s->size == st->conf.size)
		return have_filled(st) < most(st);
	LIST_EACH(node, &st->spares)
		bytes += CONTAINER(node, struct segment, node)->size;
	return s->size >= st->conf.smallest && s->size <= st->conf.largest &&
	       bytes < (uint64_t)target(st) * st->conf.size;
}

/* Takes a spare that is not filled out of the list, if there are enough without it; or NULL. Under
 * mtx. */
static struct segment *
take_unfilled(struct spares *st)
{
	if (have(st) < most(st))
		return NULL;
	LIST_EACH(node, &st->spares) {
		struct segment *s = CONTAINER(node, struct segment, node);

		if (s->size != st->conf.size || s->was_written || segment_is_pinned(s))
			continue;
		list_remove(&s->node);
		st->n--;
		return s;
	}
	return NULL;
}

int
spares_give(struct spares *st, struct segment *s, struct slu_err *err)
{
	struct segment *replaced = NULL;
	uint32_t number;
	bool enough;

	pthread_mutex_lock(&st->mtx);
	enough = !is_wanted(st, s);
	if (!enough && s->size == st->conf.size)
		replaced = take_unfilled(st);
	number = ++st->last_name;
	pthread_mutex_unlock(&st->mtx);
	if (enough)
		return discard(st, s, true, err);
	if (replaced && discard(st, replaced, false, err)) { /* to_spare syncs the folder */
		segment_unref(replaced);                     /* the next open finds the file */
		return (int)err->code;
	}
	return to_spare(st, s, number, err);
}

int64_t
spares_room(struct spares *st)
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
spares_count_kept(struct spares *st, uint64_t *bytes)
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
spares_owed(struct spares *st)
{
	const uint64_t reserve = reserve_bytes(st);
	uint64_t bytes;

	(void)spares_count_kept(st, &bytes);
	return reserve > bytes ? reserve - bytes : 0;
}
