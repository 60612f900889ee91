/*
 * log_file.c - which payload files there are, who names them, and when they go.
 */
#include "engine/log_file.h"

#include "base/crc32c.h"
#include "base/hash.h"
#include "base/log.h"
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
log_file_name(uint64_t number, char out[static LOG_FILE_NAME])
{
	snprintf(out, LOG_FILE_NAME, FOLDER "/%08" PRIu64, number);
	return out;
}

/* The one way we write a number: eight digits, or more when it needs them. */
static bool
is_number(const char *name, uint64_t *number)
{
	char again[LOG_FILE_NAME];
	uint64_t v = 0;
	size_t n = 0;

	for (; n < 19 && name[n] >= '0' && name[n] <= '9'; n++)
		v = v * 10 + (uint64_t)(name[n] - '0');
	*number = v;
	log_file_name(v, again);
	return v > 0 && strcmp(again + sizeof FOLDER, name) == 0;
}

/* ---- The table. Under mtx. ---- */

static uint64_t
mixed(uint64_t number)
{
	number *= 0x9e3779b97f4a7c15u;
	return number ^ number >> 32;
}

static uint64_t
file_hash(const void *slab, uint32_t h)
{
	const struct log_file *f = slab_at(slab, h);

	return mixed(f->number);
}

static bool
file_is(const void *slab, uint32_t h, const void *key)
{
	const struct log_file *f = slab_at(slab, h);

	return f->number == *(const uint64_t *)key;
}

static uint32_t
find(const struct log_files *s, uint64_t number)
{
	return map_find(&s->map, mixed(number), &number);
}

static struct log_file *
at(const struct log_files *s, uint32_t handle)
{
	return slab_at(&s->slab, handle);
}

static uint32_t
add(struct log_files *s, uint64_t number)
{
	const bool room = !slab_reserve(&s->slab, 1) && !map_reserve(&s->map, 1);
	const uint32_t h = room ? slab_new(&s->slab) : SLAB_NONE;
	int rc;

	if (h == SLAB_NONE)
		return h;
	*at(s, h) = (struct log_file){ .home = s, .number = number, .fd = -1 };
	list_init(&at(s, h)->node);
	s->last = number > s->last ? number : s->last;
	rc = map_insert(&s->map, mixed(number), h);
	assert(rc == 0); /* reserved */
	(void)rc;
	return h;
}

static void
forget(struct log_files *s, struct log_file *f)
{
	const uint32_t h = find(s, f->number);

	if (f->fd >= 0)
		s->disk->ops->close(s->disk, f->fd);
	map_remove(&s->map, mixed(f->number), h);
	f->number = 0; /* free ones are told by it */
	slab_free(&s->slab, h);
}

/* ---- Names ---- */

/* A maker's file, or one that is met when the log is read. Under mtx. */
static int
name_file(struct log_files *s, const struct message *m, uint32_t *handle,
	  struct slu_err *err)
{
	struct log_file *f;

	*handle = find(s, m->file);
	if (*handle == MAP_NONE && s->replaying)
		*handle = add(s, m->file);
	if (*handle == SLAB_NONE)
		return s->replaying ? slu_fail(err, SLU_ENOMEM, "no memory for a payload file")
				    : slu_fail(err, SLU_EINVAL, "there is no payload file "
								"%" PRIu64,
					       m->file);
	f = at(s, *handle);
	if (s->replaying && f->names == 0) {
		f->size = m->payload_size;
		f->mark = m->mark;
	}
	if (f->state > LOG_FILE_NAMED || f->size != m->payload_size || f->mark != m->mark)
		return slu_fail(err, SLU_EINVAL, "payload file %" PRIu64 " is another's",
				m->file);
	f->state = LOG_FILE_NAMED;
	f->id = m->id;
	f->names++;
	return 0;
}

int
log_files_name(struct log_files *s, const struct message *m, uint32_t *handle,
	       struct slu_err *err)
{
	int rc;

	pthread_mutex_lock(&s->mtx);
	rc = name_file(s, m, handle, err);
	pthread_mutex_unlock(&s->mtx);
	return rc;
}

void
log_files_name_again(struct log_files *s, uint32_t handle)
{
	pthread_mutex_lock(&s->mtx);
	at(s, handle)->names++;
	pthread_mutex_unlock(&s->mtx);
}

void
log_files_unname(struct log_files *s, uint32_t handle)
{
	struct log_file *f = at(s, handle);

	pthread_mutex_lock(&s->mtx);
	if (--f->names == 0 && s->replaying) {
		forget(s, f);
	} else if (f->names == 0) {
		f->state = LOG_FILE_DOOMED;
		f->until = 0;
		list_append(&s->doomed, &f->node);
		s->waiting += f->size;
	}
	pthread_mutex_unlock(&s->mtx);
}

uint64_t
log_files_size(struct log_files *s, uint32_t handle)
{
	uint64_t size;

	pthread_mutex_lock(&s->mtx);
	size = at(s, handle)->size;
	pthread_mutex_unlock(&s->mtx);
	return size;
}

/* ---- Going ---- */

static void
wake(struct log_files *s)
{
	if (s->wake)
		s->wake(s->wake_arg);
	else
		log_files_sweep(s);
}

/* True: there is something to sweep. Under mtx. */
static bool
let_go(struct log_files *s, struct log_file *f)
{
	list_remove(&f->node);
	f->state = LOG_FILE_GONE;
	if (f->pins > 0)
		return false;
	list_append(&s->gone, &f->node);
	return true;
}

void
log_files_committed(struct log_files *s, uint64_t seq, uint64_t durable)
{
	bool any = false;

	if (list_is_empty(&s->doomed))
		return;
	pthread_mutex_lock(&s->mtx);
	LIST_EACH_SAFE(n, &s->doomed) {
		struct log_file *f = CONTAINER(n, struct log_file, node);

		f->until = f->until ? f->until : seq;
		if (f->until > durable)
			continue;
		s->waiting -= f->size;
		any |= let_go(s, f);
	}
	pthread_mutex_unlock(&s->mtx);
	if (any)
		wake(s);
}

static void
remove_file(struct log_files *s, uint64_t number)
{
	char name[LOG_FILE_NAME];
	const int rc = s->disk->ops->remove(s->disk, s->folder, log_file_name(number, name));

	if (rc && rc != -ENOENT) /* the next open tries again: F2 */
		log_warn(s->log, "payload file not removed", F_STR("file", name),
			 F_I64("error", rc));
}

void
log_files_sweep(struct log_files *s)
{
	for (;;) {
		struct log_file *f = NULL;

		pthread_mutex_lock(&s->mtx);
		if (!list_is_empty(&s->gone)) {
			f = CONTAINER(s->gone.next, struct log_file, node);
			list_remove(&f->node);
		}
		pthread_mutex_unlock(&s->mtx);
		if (!f)
			return;
		remove_file(s, f->number);
		pthread_mutex_lock(&s->mtx);
		forget(s, f);
		pthread_mutex_unlock(&s->mtx);
	}
}

/* ---- Makers ---- */

int
log_files_make(struct log_files *s, struct log_file **out, struct slu_err *err)
{
	uint32_t mark, h;
	int rc;

	rc = hash_random(&mark, sizeof mark, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&s->mtx);
	h = add(s, s->last + 1);
	if (h != SLAB_NONE) {
		*out = at(s, h);
		(*out)->mark = mark;
		(*out)->pins = 1; /* its maker's */
	}
	pthread_mutex_unlock(&s->mtx);
	return h == SLAB_NONE ? slu_fail(err, SLU_ENOMEM, "no memory for a payload file") : 0;
}

void
log_files_unmake(struct log_file *f)
{
	struct log_files *s = f->home;

	pthread_mutex_lock(&s->mtx);
	if (f->state == LOG_FILE_MADE)
		f->state = LOG_FILE_GONE;
	pthread_mutex_unlock(&s->mtx);
	log_file_unpin(f);
}

/* ---- Readers ---- */

void
log_file_pin(struct log_file *f)
{
	pthread_mutex_lock(&f->home->mtx);
	f->pins++;
	pthread_mutex_unlock(&f->home->mtx);
}

struct log_file *
log_files_pin(struct log_files *s, uint32_t handle)
{
	log_file_pin(at(s, handle));
	return at(s, handle);
}

/* The last one closes it: a million large messages need no million descriptors. */
void
log_file_unpin(struct log_file *f)
{
	struct log_files *s = f->home;
	bool any = false;

	pthread_mutex_lock(&s->mtx);
	if (--f->pins == 0) {
		if (f->fd >= 0)
			s->disk->ops->close(s->disk, f->fd);
		f->fd = -1;
		any = f->state == LOG_FILE_GONE && let_go(s, f);
	}
	pthread_mutex_unlock(&s->mtx);
	if (any)
		wake(s);
}

/* Under mtx. */
static bool
is_copied(const struct log_file *f)
{
	return f->number && (f->state == LOG_FILE_NAMED || f->state == LOG_FILE_DOOMED);
}

int
log_files_pin_all(struct log_files *s, struct log_file ***out, uint32_t *n)
{
	struct log_file **all = NULL;

	*n = 0;
	pthread_mutex_lock(&s->mtx);
	if (s->slab.used)
		all = mem_array(s->slab.used, sizeof *all);
	for (uint32_t h = 0; all && h < s->slab.fresh; h++)
		if (slab_has(&s->slab, h) && is_copied(at(s, h))) {
			at(s, h)->pins++;
			all[(*n)++] = at(s, h);
		}
	*out = all;
	pthread_mutex_unlock(&s->mtx);
	return all || s->slab.used == 0 ? 0 : SLU_ENOMEM;
}

struct log_file *
log_files_next(struct log_files *s, uint32_t *handle)
{
	while (*handle < s->slab.fresh) {
		const uint32_t h = (*handle)++;

		if (slab_has(&s->slab, h) && at(s, h)->number && at(s, h)->names > 0)
			return at(s, h);
	}
	return NULL;
}

/* ---- Open and close ---- */

/* Under mtx, or alone. */
static int
open_own(struct log_files *s, struct slu_err *err)
{
	s->own = s->disk->ops->folder(s->disk, s->path);
	if (s->own >= 0)
		return 0;
	(void)disk_fail(s->own, "open", s->path, err);
	s->own = -1;
	return err ? (int)err->code : SLU_EDOWN;
}

/* It is made when there is a first file. */
int
log_files_folder(struct log_files *s, struct slu_err *err)
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
open_folders(struct log_files *s, const char *folder, bool read_only, struct slu_err *err)
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

int
log_files_open(struct log_files *s, struct disk *disk, struct slu_log *log,
	       const char *folder, bool read_only, struct slu_err *err)
{
	int rc;

	*s = (struct log_files){
		.disk = disk ? disk : &disk_posix,
		.log = log,
		.folder = -1,
		.own = -1,
		.replaying = true,
	};
	list_init(&s->doomed);
	list_init(&s->gone);
	slab_init_chunked(&s->slab, sizeof(struct log_file), CHUNK_BITS);
	map_init(&s->map, &s->slab, file_hash, file_is);
	pthread_mutex_init(&s->mtx, NULL); /* cannot fail without attributes */
	rc = open_folders(s, folder, read_only, err);
	if (rc)
		log_files_close(s);
	return rc;
}

void
log_files_close(struct log_files *s)
{
	if (!s->disk)
		return;
	if (s->own >= 0)
		s->disk->ops->close(s->disk, s->own);
	if (s->folder >= 0)
		s->disk->ops->close(s->disk, s->folder);
	mem_free(s->path);
	map_release(&s->map);
	slab_release(&s->slab);
	pthread_mutex_destroy(&s->mtx);
	s->disk = NULL;
}

struct leftovers {
	struct log_files *files;
	uint64_t *numbers;
	uint32_t n, max;
};

static int
see_name(void *arg, const char *name)
{
	struct leftovers *l = arg;
	uint64_t number;

	if (!is_number(name, &number))
		return 0; /* not ours */
	l->files->last = number > l->files->last ? number : l->files->last;
	if (find(l->files, number) != MAP_NONE)
		return 0;
	if (l->n == l->max) {
		const uint32_t max = l->max ? 2 * l->max : 64;
		uint64_t *p = mem_realloc(l->numbers, max * sizeof *p);

		if (!p)
			return -ENOMEM;
		l->numbers = p;
		l->max = max;
	}
	l->numbers[l->n++] = number;
	return 0;
}

int
log_files_settle(struct log_files *s, struct slu_err *err)
{
	struct leftovers l = { .files = s };
	int rc;

	s->replaying = false;
	if (s->own < 0)
		return 0; /* there is no folder, so there is no file */
	rc = s->disk->ops->list(s->disk, s->own, see_name, &l);
	for (uint32_t i = 0; i < l.n && !rc; i++)
		remove_file(s, l.numbers[i]);
	if (!rc && l.n)
		log_info(s->log, "payload files without a message removed", F_U64("files", l.n));
	mem_free(l.numbers);
	return rc ? disk_fail(rc, "list", FOLDER, err) : 0;
}

uint32_t
log_file_sum(const struct log_file *f, uint64_t block, const char *p, size_t n)
{
	return crc32c(f->mark + (uint32_t)block, p, n);
}
