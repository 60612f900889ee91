/*
 * file_remove.c - how payload files go: FILE-2, FILE-3, FILE-9.
 */
#include "engine/log/file_private.h"

#include "base/log.h"
#include "base/mem.h"

#include <errno.h>

bool
logengine_file_is_spent(const struct logengine_files *s, uint64_t number)
{
	const uint64_t n = s->n_spent < LOGENGINE_FILE_SPENT ? s->n_spent : LOGENGINE_FILE_SPENT;

	for (uint64_t i = 0; i < n; i++)
		if (s->spent[i] == number)
			return true;
	return false;
}

void
logengine_files_wake(struct logengine_files *s)
{
	void (*fn)(void *arg);
	void *arg;

	pthread_mutex_lock(&s->mtx);
	fn = s->wake;
	arg = s->wake_arg;
	pthread_mutex_unlock(&s->mtx);
	if (fn)
		fn(arg);
	else
		logengine_files_sweep(s);
	logengine_files_leave(s);
}

bool
logengine_file_let_go(struct logengine_files *s, struct logengine_file *f)
{
	list_remove(&f->node);
	f->state = LOGENGINE_FILE_GONE;
	if (f->pins > 0)
		return false;
	list_append(&s->gone, &f->node);
	return true;
}

/* FILE-9: the file waits for a group, which begin names. Under mtx. */
static void
wait_for_group(struct logengine_files *s, struct logengine_file *f)
{
	f->state = LOGENGINE_FILE_UNUSED;
	list_append(&s->unused, &f->node);
	s->wants_group = true;
}

static void
poke(struct logengine_files *s)
{
	void (*fn)(void *arg);
	void *arg;

	pthread_mutex_lock(&s->mtx);
	fn = s->wants_group ? s->poke : NULL;
	arg = s->poke_arg;
	pthread_mutex_unlock(&s->mtx);
	if (fn)
		fn(arg);
}

bool
logengine_files_begin(struct logengine_files *s, uint64_t group)
{
	s->group = group;
	if (!s->wants_group)
		return !list_is_empty(&s->doomed);
	pthread_mutex_lock(&s->mtx);
	while (!list_is_empty(&s->unused)) {
		struct logengine_file *f = CONTAINER(s->unused.next, struct logengine_file, node);

		list_remove(&f->node);
		f->until = group;
		list_append(&s->doomed, &f->node);
		s->waiting += f->size;
	}
	s->wants_group = false;
	pthread_mutex_unlock(&s->mtx);
	return true;
}

/* Whether this node owns the shard, no record names the file, and the file was not removed. Under mtx. */
static bool
is_useless(const struct logengine_files *s, uint64_t number)
{
	return !s->shut && s->store && logengine_file_is_brought(s, number) &&
	       logengine_file_find(s, number) == MAP_NONE && !logengine_file_is_spent(s, number);
}

/* Without memory the next open removes the objects. */
void
logengine_files_refuse(struct logengine_files *s, const struct message *m)
{
	uint32_t h;

	pthread_mutex_lock(&s->mtx);
	h = is_useless(s, m->file) ? logengine_file_add(s, m->file) : SLAB_NONE;
	if (h != SLAB_NONE) {
		struct logengine_file *f = logengine_file_at(s, h);

		f->size = m->payload_size;
		f->mark = m->mark;
		wait_for_group(s, f);
	}
	pthread_mutex_unlock(&s->mtx);
	if (h != SLAB_NONE)
		poke(s);
}

void
logengine_files_committed(struct logengine_files *s, uint64_t seq, uint64_t durable)
{
	bool any = false;

	if (list_is_empty(&s->doomed))
		return;
	pthread_mutex_lock(&s->mtx);
	LIST_EACH_SAFE(n, &s->doomed) {
		struct logengine_file *f = CONTAINER(n, struct logengine_file, node);

		f->until = f->until ? f->until : seq;
		if (f->until > durable)
			continue;
		s->waiting -= f->size;
		any |= logengine_file_let_go(s, f);
	}
	s->users += any;
	pthread_mutex_unlock(&s->mtx);
	if (any)
		logengine_files_wake(s);
}

static void
remove_file(struct logengine_files *s, uint64_t number)
{
	char name[LOGENGINE_FILE_NAME];
	const int rc = s->disk->ops->remove(s->disk, s->folder, logengine_file_name(number, name));

	if (rc && rc != -ENOENT) /* the next open removes it: FILE-2 */
		log_warn(s->log, "payload file not removed", F_STR("file", name),
			 F_I64("error", rc));
}

/* FILE-8. Without memory the number is forgotten. Under mtx. */
static void
note_spent(struct logengine_files *s, uint64_t number)
{
	if (s->transit || !logengine_file_is_brought(s, number))
		return;
	if (!s->spent)
		s->spent = mem_array(LOGENGINE_FILE_SPENT, sizeof *s->spent);
	if (s->spent)
		s->spent[s->n_spent++ % LOGENGINE_FILE_SPENT] = number;
}

void
logengine_files_sweep(struct logengine_files *s)
{
	for (;;) {
		struct logengine_file *f = NULL;

		pthread_mutex_lock(&s->mtx);
		if (!list_is_empty(&s->gone)) {
			f = CONTAINER(s->gone.next, struct logengine_file, node);
			list_remove(&f->node);
		}
		pthread_mutex_unlock(&s->mtx);
		if (!f)
			return;
		remove_file(s, f->number);
		if (s->store && !f->left)
			logengine_file_unstore(f);
		pthread_mutex_lock(&s->mtx);
		note_spent(s, f->number);
		logengine_file_forget(s, f);
		pthread_mutex_unlock(&s->mtx);
	}
}

/* FILE-9. Under mtx. */
static void
drop_made(struct logengine_files *s, struct logengine_file *f)
{
	if (s->store && !s->transit && !s->shut) {
		wait_for_group(s, f);
		return;
	}
	f->left = true;
	f->state = LOGENGINE_FILE_GONE; /* with the last pin */
}

void
logengine_files_unmake(struct logengine_file *f)
{
	struct logengine_files *s = f->home;

	const struct message m = { .file = f->number, .mark = f->mark, .payload_size = f->size };

	pthread_mutex_lock(&s->mtx);
	s->users++; /* the file may be gone after the unpin */
	if (f->state == LOGENGINE_FILE_MADE)
		drop_made(s, f);
	pthread_mutex_unlock(&s->mtx);
	logengine_file_unpin(f);
	if (s->owned) /* this node may own the shard by now */
		logengine_files_refuse(s->owned, &m);
	poke(s);
	logengine_files_leave(s);
}

/* ---- Open ---- */

struct leftovers {
	struct logengine_files *files;
	uint64_t *numbers;
	uint32_t n, max;
};

static int
see_name(void *arg, const char *name)
{
	struct leftovers *l = arg;
	uint64_t number;

	if (!logengine_file_number(name, &number))
		return 0; /* not a payload file */
	logengine_files_note(l->files, number);
	if (logengine_file_find(l->files, number) != MAP_NONE)
		return 0;
	if (!mem_room(&l->numbers, &l->max, l->n + 1, sizeof *l->numbers))
		return -ENOMEM;
	l->numbers[l->n++] = number;
	return 0;
}

static int
drop_name(void *arg, const char *name)
{
	struct logengine_files *s = arg;
	uint64_t number;

	if (logengine_file_number(name, &number))
		remove_file(s, number);
	return 0;
}

void
logengine_files_drop(struct logengine_files *s)
{
	if (s->own >= 0)
		(void)s->disk->ops->list(s->disk, s->own, drop_name, s); /* readers check what stays */
}

int
logengine_files_settle(struct logengine_files *s, struct slu_err *err)
{
	struct leftovers l = { .files = s };
	int rc;

	s->replaying = false;
	rc = s->store ? logengine_files_settle_store(s, err) : 0;
	if (rc)
		return rc;
	if (s->own < 0)
		return 0; /* without the folder there are no files */
	rc = s->disk->ops->list(s->disk, s->own, see_name, &l);
	for (uint32_t i = 0; i < l.n && !rc; i++)
		remove_file(s, l.numbers[i]);
	if (!rc && l.n)
		log_info(s->log, "payload files without a message removed", F_U64("files", l.n));
	mem_free(l.numbers);
	return rc ? disk_fail(rc, "list", s->path, err) : 0;
}
