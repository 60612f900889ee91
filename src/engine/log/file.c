/*
 * file.c - the table of payload files: their names and pins.
 */
#include "engine/log/file_private.h"

#include "base/crc32c.h"
#include "base/hash.h"
#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum {
	CHUNK_BITS = 6 /* files are few */
};

#define FOLDER "payloads"

const char *
logengine_file_name(uint64_t number, char out[static LOGENGINE_FILE_NAME])
{
	snprintf(out, LOGENGINE_FILE_NAME, FOLDER "/%08" PRIu64, number);
	return out;
}

/* In the only valid form: eight digits, or more for large numbers. */
bool
logengine_file_number(const char *name, uint64_t *number)
{
	char again[LOGENGINE_FILE_NAME];
	uint64_t v = 0;
	size_t n = 0;

	for (; n < 19 && name[n] >= '0' && name[n] <= '9'; n++)
		v = v * 10 + (uint64_t)(name[n] - '0');
	*number = v;
	logengine_file_name(v, again);
	return v > 0 && strcmp(again + sizeof FOLDER, name) == 0;
}

/* ---- The table. Under mtx. ---- */

static uint64_t
file_hash(const void *slab, uint32_t h)
{
	const struct logengine_file *f = slab_at(slab, h);

	return hash_number(f->number);
}

static bool
file_is(const void *slab, uint32_t h, const void *key)
{
	const struct logengine_file *f = slab_at(slab, h);

	return f->number == *(const uint64_t *)key;
}

uint32_t
logengine_file_find(const struct logengine_files *s, uint64_t number)
{
	return map_find(&s->map, hash_number(number), &number);
}

struct logengine_file *
logengine_file_at(const struct logengine_files *s, uint32_t handle)
{
	return slab_at(&s->slab, handle);
}

/* Numbers of other nodes are random (FILE-8): no number is counted on from them. */
void
logengine_files_note(struct logengine_files *s, uint64_t number)
{
	if (!(number & LOGENGINE_FILE_BROUGHT) && number > s->last)
		s->last = number;
}

uint32_t
logengine_file_add(struct logengine_files *s, uint64_t number)
{
	const bool room = !slab_reserve(&s->slab, 1) && !map_reserve(&s->map, 1);
	const uint32_t h = room ? slab_new(&s->slab) : SLAB_NONE;
	int rc;

	if (h == SLAB_NONE)
		return h;
	*logengine_file_at(s, h) = (struct logengine_file){ .home = s, .number = number, .stored = number, .fd = -1 };
	list_init(&logengine_file_at(s, h)->node);
	logengine_files_note(s, number);
	rc = map_insert(&s->map, hash_number(number), h);
	assert(rc == 0); /* reserved */
	(void)rc;
	return h;
}

void
logengine_file_forget(struct logengine_files *s, struct logengine_file *f)
{
	const uint32_t h = logengine_file_find(s, f->number);

	if (f->fd >= 0)
		s->disk->ops->close(s->disk, f->fd);
	map_remove(&s->map, hash_number(f->number), h);
	f->number = 0; /* marks a free slot */
	slab_free(&s->slab, h);
}

/* ---- Names ---- */

bool
logengine_file_is_brought(const struct logengine_files *s, uint64_t number)
{
	return number & LOGENGINE_FILE_BROUGHT && number >> LOGENGINE_FILE_EPOCH == s->epoch;
}

/* Whether a file that is not in the table may be added. */
static bool
may_come(const struct logengine_files *s, uint64_t number)
{
	return s->replaying || (logengine_file_is_brought(s, number) && !logengine_file_is_spent(s, number));
}

/* A file of another node that cannot be named is no error of the client: another try has another file. */
static int
fail_name(const struct logengine_files *s, uint64_t number, struct slu_err *err)
{
	if (may_come(s, number))
		return slu_fail(err, SLU_ENOMEM, "no memory for a payload file");
	if (logengine_file_is_brought(s, number))
		return slu_fail(err, SLU_EDOWN, "the payload was removed");
	if (number & LOGENGINE_FILE_BROUGHT)
		return slu_fail(err, SLU_EDOWN, "the payload was stored for an earlier owner of the shard");
	return slu_fail(err, SLU_EINVAL, "no payload file %" PRIu64, number);
}

/* Names the file of a writer or of another node, or, during replay, any file. Under mtx. */
static int
name_file(struct logengine_files *s, const struct message *m, uint32_t *handle,
	  struct slu_err *err)
{
	struct logengine_file *f;
	bool is_new = false;

	*handle = logengine_file_find(s, m->file);
	if (*handle == MAP_NONE && may_come(s, m->file)) {
		*handle = logengine_file_add(s, m->file);
		is_new = true;
	}
	if (*handle == SLAB_NONE)
		return fail_name(s, m->file, err);
	f = logengine_file_at(s, *handle);
	if (is_new || (s->replaying && f->names == 0)) {
		f->size = m->payload_size;
		f->mark = m->mark;
	}
	if (f->state > LOGENGINE_FILE_NAMED || f->size != m->payload_size || f->mark != m->mark)
		return slu_fail(err, m->file & LOGENGINE_FILE_BROUGHT ? SLU_EDOWN : SLU_EINVAL,
				"payload file %" PRIu64 " has another size or mark, or is removed", m->file);
	f->state = LOGENGINE_FILE_NAMED;
	f->id = m->id;
	f->names++;
	return 0;
}

int
logengine_files_name(struct logengine_files *s, const struct message *m, uint32_t *handle,
		     struct slu_err *err)
{
	int rc;

	pthread_mutex_lock(&s->mtx);
	rc = name_file(s, m, handle, err);
	pthread_mutex_unlock(&s->mtx);
	return rc;
}

void
logengine_files_name_again(struct logengine_files *s, uint32_t handle)
{
	pthread_mutex_lock(&s->mtx);
	logengine_file_at(s, handle)->names++;
	pthread_mutex_unlock(&s->mtx);
}

void
logengine_files_unname(struct logengine_files *s, uint32_t handle)
{
	struct logengine_file *f = logengine_file_at(s, handle);

	pthread_mutex_lock(&s->mtx);
	if (--f->names == 0 && s->replaying) {
		logengine_file_forget(s, f);
	} else if (f->names == 0) {
		f->state = LOGENGINE_FILE_DOOMED;
		f->until = s->group;
		list_append(&s->doomed, &f->node);
		s->waiting += f->size;
	}
	pthread_mutex_unlock(&s->mtx);
}

uint64_t
logengine_files_size(struct logengine_files *s, uint32_t handle)
{
	uint64_t size;

	pthread_mutex_lock(&s->mtx);
	size = logengine_file_at(s, handle)->size;
	pthread_mutex_unlock(&s->mtx);
	return size;
}

/* ---- Makers ---- */

/* FILE-8 */
static uint64_t
brought_number(uint64_t epoch, uint64_t random)
{
	return epoch << LOGENGINE_FILE_EPOCH | LOGENGINE_FILE_BROUGHT | (random & (LOGENGINE_FILE_BROUGHT - 1));
}

/* FILE-7, FILE-8. Under mtx. */
static uint64_t
next_number(const struct logengine_files *s, uint64_t random)
{
	const uint64_t first = s->epoch << LOGENGINE_FILE_EPOCH;

	if (s->transit)
		return brought_number(s->epoch, random);
	return (s->last > first ? s->last : first) + 1;
}

/* Adds a file with a pin. The epoch of the owner is known, or there is no other owner. Under mtx. */
static struct logengine_file *
add_pinned(struct logengine_files *s, uint64_t number)
{
	const uint32_t h = logengine_file_find(s, number) == MAP_NONE ? logengine_file_add(s, number) : SLAB_NONE;

	if (h == SLAB_NONE)
		return NULL;
	logengine_file_at(s, h)->pins = 1;
	return logengine_file_at(s, h);
}

int
logengine_files_make(struct logengine_files *s, struct logengine_file **out, struct slu_err *err)
{
	uint64_t random[2];
	int rc;

	rc = hash_random(random, sizeof random, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&s->mtx);
	*out = add_pinned(s, next_number(s, random[0]));
	if (*out)
		(*out)->mark = (uint32_t)random[1];
	pthread_mutex_unlock(&s->mtx);
	return *out ? 0 : slu_fail(err, SLU_ENOMEM, "no memory for a payload file");
}

/* The name in the folder is of this node alone: a reader that comes when the file is removed has another. */
int
logengine_files_borrow(struct logengine_files *s, const struct engine_stored *from,
		       struct logengine_file **out, struct slu_err *err)
{
	pthread_mutex_lock(&s->mtx);
	*out = add_pinned(s, s->last + 1);
	if (*out) {
		(*out)->stored = from->number;
		(*out)->mark = from->mark;
		(*out)->size = from->size;
		(*out)->left = true;
		(*out)->state = LOGENGINE_FILE_GONE; /* with the last pin */
	}
	pthread_mutex_unlock(&s->mtx);
	return *out ? 0 : slu_fail(err, SLU_ENOMEM, "no memory for a payload file");
}

/* The epoch in which this node owns the shard, or (transit) another node does; 0: neither. */
static uint64_t
epoch_of(struct logengine_files *s)
{
	uint64_t epoch;

	pthread_mutex_lock(&s->mtx);
	epoch = s->shut ? 0 : s->epoch;
	pthread_mutex_unlock(&s->mtx);
	return epoch;
}

static uint64_t
current_epoch(struct logengine_files *transit)
{
	const uint64_t epoch = epoch_of(transit);

	return epoch || !transit->owned ? epoch : epoch_of(transit->owned);
}

bool
logengine_file_is_current(struct logengine_file *f)
{
	return f->number >> LOGENGINE_FILE_EPOCH == current_epoch(f->home);
}

/* Under mtx. The writer alone uses the file. */
static int
set_number(struct logengine_files *s, struct logengine_file *f, uint64_t number)
{
	const uint32_t h = logengine_file_find(s, f->number);
	int rc;

	if (logengine_file_find(s, number) != MAP_NONE || map_reserve(&s->map, 1))
		return SLU_ENOMEM;
	map_remove(&s->map, hash_number(f->number), h);
	f->number = f->stored = number;
	rc = map_insert(&s->map, hash_number(number), h);
	assert(rc == 0); /* reserved */
	return rc;
}

int
logengine_file_renumber(struct logengine_file *f, struct slu_err *err)
{
	struct logengine_files *const s = f->home;
	const uint64_t epoch = current_epoch(s), old = f->number;
	char from[LOGENGINE_FILE_NAME], to[LOGENGINE_FILE_NAME];
	uint64_t random;
	int rc;

	if (!epoch)
		return slu_fail(err, SLU_EDOWN, "no node owns the shard now");
	if (old >> LOGENGINE_FILE_EPOCH == epoch)
		return 0;
	rc = hash_random(&random, sizeof random, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&s->mtx);
	rc = set_number(s, f, brought_number(epoch, random));
	pthread_mutex_unlock(&s->mtx);
	if (rc)
		return slu_fail(err, rc, "no memory for a payload file");
	rc = s->disk->ops->rename(s->disk, s->folder, logengine_file_name(old, from), logengine_file_name(f->number, to));
	return rc ? disk_fail(rc, "rename", from, err) : 0;
}

bool
logengine_files_travels(struct logengine_files *s, uint64_t number)
{
	bool travels;

	pthread_mutex_lock(&s->mtx);
	travels = s->epoch && logengine_file_is_brought(s, number);
	pthread_mutex_unlock(&s->mtx);
	return travels;
}

/* ---- Readers ---- */

void
logengine_file_pin(struct logengine_file *f)
{
	pthread_mutex_lock(&f->home->mtx);
	f->pins++;
	pthread_mutex_unlock(&f->home->mtx);
}

struct logengine_file *
logengine_files_pin(struct logengine_files *s, uint32_t handle)
{
	logengine_file_pin(logengine_file_at(s, handle));
	return logengine_file_at(s, handle);
}

/* The last unpin closes the file, so that a million large messages do not need a million
 * descriptors. */
void
logengine_file_unpin(struct logengine_file *f)
{
	struct logengine_files *s = f->home;
	bool any = false;

	pthread_mutex_lock(&s->mtx);
	if (--f->pins == 0) {
		if (f->fd >= 0)
			s->disk->ops->close(s->disk, f->fd);
		f->fd = -1;
		any = f->state == LOGENGINE_FILE_GONE && logengine_file_let_go(s, f);
	}
	s->users += any;
	pthread_mutex_unlock(&s->mtx);
	if (any)
		logengine_files_wake(s);
}

/* Under mtx. */
static bool
is_copied(const struct logengine_file *f)
{
	return f->number && (f->state == LOGENGINE_FILE_NAMED || f->state == LOGENGINE_FILE_DOOMED);
}

int
logengine_files_pin_all(struct logengine_files *s, struct logengine_file ***out, uint32_t *n)
{
	struct logengine_file **all = NULL;

	*n = 0;
	pthread_mutex_lock(&s->mtx);
	if (s->slab.used)
		all = mem_array(s->slab.used, sizeof(struct logengine_file *));
	for (uint32_t h = 0; all && h < s->slab.fresh; h++)
		if (slab_has(&s->slab, h) && is_copied(logengine_file_at(s, h))) {
			logengine_file_at(s, h)->pins++;
			all[(*n)++] = logengine_file_at(s, h);
		}
	*out = all;
	pthread_mutex_unlock(&s->mtx);
	return all || s->slab.used == 0 ? 0 : SLU_ENOMEM;
}

struct logengine_file *
logengine_files_next(struct logengine_files *s, uint32_t *handle)
{
	while (*handle < s->slab.fresh) {
		const uint32_t h = (*handle)++;

		if (slab_has(&s->slab, h) && logengine_file_at(s, h)->number && logengine_file_at(s, h)->names > 0)
			return logengine_file_at(s, h);
	}
	return NULL;
}

/* ---- Open and close ---- */

/* Under mtx, or alone. */
static int
open_own(struct logengine_files *s, struct slu_err *err)
{
	s->own = s->disk->ops->folder(s->disk, s->path);
	if (s->own >= 0)
		return 0;
	(void)disk_fail(s->own, "open", s->path, err);
	s->own = -1;
	return err ? (int)err->code : SLU_EDOWN;
}

int
logengine_files_folder(struct logengine_files *s, struct slu_err *err)
{
	int rc = 0;

	pthread_mutex_lock(&s->mtx);
	if (s->own < 0)
		rc = open_own(s, err);
	pthread_mutex_unlock(&s->mtx);
	return rc;
}

static int
is_own(void *arg, const char *name)
{
	(void)arg;
	return strncmp(name, FOLDER, sizeof FOLDER - 1) == 0;
}

static int
open_folders(struct logengine_files *s, const char *folder, bool read_only, struct slu_err *err)
{
	const size_t size = strlen(folder) + sizeof "/" FOLDER;
	int found;

	s->path = mem_alloc(size);
	if (!s->path)
		return slu_fail(err, SLU_ENOMEM, "no memory for payload files");
	snprintf(s->path, size, "%s/" FOLDER, folder);
	s->folder = s->disk->ops->folder(s->disk, folder);
	if (s->folder < 0)
		return disk_fail(s->folder, "open", folder, err);
	found = s->disk->ops->list(s->disk, s->folder, is_own, NULL);
	if (found < 0)
		return disk_fail(found, "list", folder, err);
	return found && !read_only ? open_own(s, err) : 0;
}

void
logengine_files_init(struct logengine_files *s)
{
	*s = (struct logengine_files){ .folder = -1, .own = -1, .shut = true };
	list_init(&s->doomed);
	list_init(&s->gone);
	list_init(&s->unused);
	pthread_mutex_init(&s->mtx, NULL); /* cannot fail without attributes */
	pthread_mutex_init(&s->fetching, NULL);
}

void
logengine_files_release(struct logengine_files *s)
{
	logengine_files_close(s);
	pthread_mutex_destroy(&s->fetching);
	pthread_mutex_destroy(&s->mtx);
}

int
logengine_files_open(struct logengine_files *s, struct disk *disk, struct slu_log *log,
		     const char *folder, bool read_only, struct slu_err *err)
{
	int rc;

	pthread_mutex_lock(&s->mtx); /* a thread may try to enter */
	s->disk = disk ? disk : &disk_posix;
	s->log = log;
	s->folder = s->own = -1;
	s->replaying = true;
	s->waiting = 0;
	s->last = 0;
	s->store = NULL;
	s->epoch = s->group = s->n_spent = 0;
	slab_init_chunked(&s->slab, sizeof(struct logengine_file), CHUNK_BITS);
	map_init(&s->map, &s->slab, file_hash, file_is);
	pthread_mutex_unlock(&s->mtx);
	rc = open_folders(s, folder, read_only, err);
	if (rc)
		logengine_files_close(s);
	return rc;
}

void
logengine_files_close(struct logengine_files *s)
{
	if (!s->disk)
		return;
	if (s->own >= 0)
		s->disk->ops->close(s->disk, s->own);
	if (s->folder >= 0)
		s->disk->ops->close(s->disk, s->folder);
	mem_free(s->path);
	s->path = NULL;
	mem_free(s->spent);
	s->spent = NULL;
	map_release(&s->map);
	slab_release(&s->slab);
	list_init(&s->doomed);
	list_init(&s->gone);
	list_init(&s->unused);
	s->wants_group = false;
	s->disk = NULL;
}

/* ---- Failing (FILE-6) ---- */

void
logengine_files_shut(struct logengine_files *s, bool shut)
{
	pthread_mutex_lock(&s->mtx);
	s->shut = shut;
	pthread_mutex_unlock(&s->mtx);
}

bool
logengine_files_is_idle(struct logengine_files *s)
{
	bool idle;

	pthread_mutex_lock(&s->mtx);
	idle = s->users == 0;
	for (uint32_t h = 0; s->disk && idle && h < s->slab.fresh; h++)
		idle = !slab_has(&s->slab, h) || logengine_file_at(s, h)->pins == 0;
	pthread_mutex_unlock(&s->mtx);
	return idle;
}

int
logengine_files_enter(struct logengine_files *s, struct slu_err *err)
{
	bool shut;

	pthread_mutex_lock(&s->mtx);
	shut = s->shut;
	s->users += !shut;
	pthread_mutex_unlock(&s->mtx);
	return shut ? slu_fail(err, SLU_EDOWN, "the shard has failed") : 0;
}

void
logengine_files_leave(struct logengine_files *s)
{
	pthread_mutex_lock(&s->mtx);
	s->users--;
	pthread_mutex_unlock(&s->mtx);
}

void
logengine_files_set_wake(struct logengine_files *s, void (*fn)(void *arg), void *arg)
{
	pthread_mutex_lock(&s->mtx);
	s->wake = fn;
	s->wake_arg = arg;
	pthread_mutex_unlock(&s->mtx);
}

void
logengine_files_set_poke(struct logengine_files *s, void (*fn)(void *arg), void *arg)
{
	pthread_mutex_lock(&s->mtx);
	s->poke = fn;
	s->poke_arg = arg;
	pthread_mutex_unlock(&s->mtx);
}

bool
logengine_files_has(struct logengine_files *s, uint64_t number, uint32_t mark)
{
	uint32_t h;
	bool has;

	pthread_mutex_lock(&s->mtx);
	h = logengine_file_find(s, number);
	has = h != MAP_NONE && logengine_file_at(s, h)->mark == mark;
	pthread_mutex_unlock(&s->mtx);
	return has;
}

uint32_t
logengine_file_sum(const struct logengine_file *f, uint64_t block, const char *p, size_t n)
{
	return crc32c(f->mark + (uint32_t)block, p, n);
}
