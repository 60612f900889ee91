#include "core/locks/lock.h"

#include "base/hash.h"
#include "base/id.h"
#include "base/mem.h"

#include <assert.h>

void
lock_draft(struct lock_draft *d, const struct lock *from)
{
	d->lock = from ? *from : (struct lock){ 0 };
	d->lock.docs = d->docs;
	assert(d->lock.n <= LOCK_DOCS_MAX);
	if (d->lock.n)
		memcpy(d->docs, from->docs, d->lock.n * sizeof d->docs[0]);
}

static bool
is_empty(const struct lock_doc *doc)
{
	return !doc->etag && !doc->staged;
}

static size_t
size_of(const struct lock *lock)
{
	size_t n = sizeof *lock + lock->space.n + lock->key.n + lock->holder.n;

	for (uint32_t i = 0; i < lock->n; i++)
		if (!is_empty(&lock->docs[i]))
			n += sizeof lock->docs[i] + lock->docs[i].name.n;
	return n;
}

/* Texts follow the documents, one after the other. */
static void
keep_text(struct slice *s, char **end)
{
	if (s->n)
		memcpy(*end, s->p, s->n);
	s->p = *end;
	*end += s->n;
}

struct lock *
lock_new(const struct lock *like)
{
	const size_t size = size_of(like);
	struct lock *lock = mem_alloc(size);
	char *end;

	if (!lock)
		return NULL;
	*lock = *like;
	lock->size = (uint32_t)size;
	lock->docs = (struct lock_doc *)(lock + 1);
	lock->n = 0;
	for (uint32_t i = 0; i < like->n; i++)
		if (!is_empty(&like->docs[i]))
			lock->docs[lock->n++] = like->docs[i];
	end = (char *)(lock->docs + lock->n);
	keep_text(&lock->space, &end);
	keep_text(&lock->key, &end);
	keep_text(&lock->holder, &end);
	for (uint32_t i = 0; i < lock->n; i++)
		keep_text(&lock->docs[i].name, &end);
	return lock;
}

struct lock_doc *
lock_doc(const struct lock *lock, struct slice name)
{
	for (uint32_t i = 0; i < lock->n; i++)
		if (slice_eq(lock->docs[i].name, name))
			return &lock->docs[i];
	return NULL;
}

bool
lock_is_staged(const struct lock *lock)
{
	if (lock->hides)
		return true;
	for (uint32_t i = 0; i < lock->n; i++)
		if (lock->docs[i].staged || lock->docs[i].removed)
			return true;
	return false;
}

bool
lock_has_state(const struct lock *lock)
{
	for (uint32_t i = 0; i < lock->n; i++)
		if (lock->docs[i].etag)
			return true;
	return false;
}

static void
drop_place(uint64_t *where, lock_drop_fn *drop, void *arg)
{
	if (*where && drop)
		drop(arg, *where);
	*where = 0;
}

/* Removes documents with neither etag nor staged content. */
static void
leave_out_empty(struct lock *lock)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < lock->n; i++)
		if (!is_empty(&lock->docs[i]))
			lock->docs[n++] = lock->docs[i];
	lock->n = n;
}

static void
commit_doc(struct lock_doc *doc, lock_drop_fn *drop, void *arg)
{
	if (doc->staged || doc->removed) {
		drop_place(&doc->where, drop, arg);
		doc->etag = doc->staged;
		doc->where = doc->staged_where;
	}
	doc->staged = doc->staged_where = 0;
	doc->removed = false;
}

void
lock_commit(struct lock *lock, slu_time at, lock_drop_fn *drop, void *arg)
{
	if (!lock_is_staged(lock))
		return;
	for (uint32_t i = 0; i < lock->n; i++)
		commit_doc(&lock->docs[i], drop, arg);
	leave_out_empty(lock);
	if (lock->hides)
		lock->hidden = lock->hide;
	lock->hides = lock->hide = false;
	lock->version++;
	lock->updated = at;
}

void
lock_rollback(struct lock *lock, lock_drop_fn *drop, void *arg)
{
	for (uint32_t i = 0; i < lock->n; i++) {
		drop_place(&lock->docs[i].staged_where, drop, arg);
		lock->docs[i].staged = 0;
		lock->docs[i].removed = false;
	}
	leave_out_empty(lock);
	lock->hides = lock->hide = false;
}

void
lock_txn(uint64_t token, uint8_t out[static LOCK_TXN])
{
	uint32_t check;

	for (int i = 0; i < 8; i++)
		out[i] = (uint8_t)(token >> (56 - 8 * i));
	check = fnv1a32(out, 8);
	for (int i = 0; i < 4; i++)
		out[8 + i] = (uint8_t)(check >> (24 - 8 * i));
}

bool
lock_key_of_message(struct slice key, struct slice *queue, uint64_t *id)
{
	static const char mid[] = "/state/";
	const size_t tail = sizeof mid - 1 + ID_UUID_TEXT - 1;
	const char *end;

	if (key.n < 2 + 1 + tail || memcmp(key.p, "q/", 2) != 0)
		return false;
	end = key.p + key.n - tail;
	if (memcmp(end, mid, sizeof mid - 1) != 0)
		return false;
	*queue = (struct slice){ key.p + 2, (size_t)(end - key.p) - 2 };
	if (memchr(queue->p, '/', queue->n))
		return false;
	return id_from_uuid((struct slice){ end + sizeof mid - 1, ID_UUID_TEXT - 1 }, id,
			    NULL) == 0;
}
