/*
 * lock_record.c - a lock key and its documents as the fields of a record.
 *
 * Behind the fields of record.c, for every document, without gaps:
 *
 *      0  8  etag of the committed document, or 0
 *      8  8  etag of the staged document, or 0
 *     16  1  1 = its removal is staged, 0 = it is not
 *     17  1  length of its name; 0 = the state of the key
 *     18  n  name
 */
#include "engine/log/record.h"

#include "base/le.h"

enum {
	DOC_FIXED = 18,
	FLAG_OVER = 1,
	FLAG_FRESH = 2,
	FLAG_HIDDEN = 4,
	FLAG_HIDES = 8,
	FLAG_HIDE = 16,
	FLAGS_ALL = 31
};

static void
put_doc(struct buf *out, const struct lock_doc *doc)
{
	char *p = buf_add(out, DOC_FIXED);

	if (!p)
		return;
	le64_put(p, doc->etag);
	le64_put(p + 8, doc->staged);
	p[16] = doc->removed;
	p[17] = (char)doc->name.n;
	buf_put(out, doc->name.p, doc->name.n);
}

void
logengine_fill_lock(struct logengine_entry *entry, const struct lock *lock, struct buf *docs)
{
	const size_t from = docs->n;

	entry->lock.lock = *lock;
	entry->lock_flags = (uint8_t)(lock->over * FLAG_OVER | lock->fresh * FLAG_FRESH |
				      lock->hidden * FLAG_HIDDEN | lock->hides * FLAG_HIDES |
				      lock->hide * FLAG_HIDE);
	for (uint32_t i = 0; i < lock->n; i++)
		if (lock->docs[i].etag || lock->docs[i].staged)
			put_doc(docs, &lock->docs[i]);
	entry->text = (struct slice){ 0 };
	if (docs->n > from)
		entry->text = (struct slice){ docs->p + from, docs->n - from };
}

/* ---- Reading ---- */

static bool
take_doc(struct slice *in, struct lock *lock)
{
	struct lock_doc *doc = &lock->docs[lock->n];
	const char *p = in->p;
	size_t name;

	if (in->n < DOC_FIXED || lock->n == LOCK_DOCS_MAX)
		return false;
	name = (uint8_t)p[17];
	if (name > LOCK_NAME_MAX || in->n - DOC_FIXED < name || (uint8_t)p[16] > 1)
		return false;
	*doc = (struct lock_doc){
		.name = { p + DOC_FIXED, name },
		.etag = le64_get(p),
		.staged = le64_get(p + 8),
		.removed = p[16],
	};
	*in = (struct slice){ p + DOC_FIXED + name, in->n - DOC_FIXED - name };
	if (lock_doc(lock, doc->name)) /* an earlier document has the same name */
		return false;
	lock->n++;
	return doc->removed ? doc->etag && !doc->staged : doc->etag || doc->staged;
}

/* Whether the engine could have written the key: RECORD-1. */
static bool
is_sound(const struct lock *lock, uint8_t flags)
{
	const bool named = lock->id == 0;

	if (flags > FLAGS_ALL || (lock->hide && !lock->hides))
		return false;
	if (named ? !lock->key.n || !lock->space.n : lock->key.n || lock->space.n)
		return false;
	if (lock->over && !lock->token)
		return false;
	return !lock_is_staged(lock) || (lock->token && !lock->over);
}

bool
logengine_take_lock(struct logengine_entry *entry)
{
	struct lock *lock = &entry->lock.lock;
	const uint8_t flags = entry->lock_flags;
	struct slice docs = entry->text;

	lock->docs = entry->lock.docs;
	lock->n = 0;
	lock->over = flags & FLAG_OVER;
	lock->fresh = flags & FLAG_FRESH;
	lock->hidden = flags & FLAG_HIDDEN;
	lock->hides = flags & FLAG_HIDES;
	lock->hide = flags & FLAG_HIDE;
	while (docs.n > 0)
		if (!take_doc(&docs, lock))
			return false;
	return is_sound(lock, flags);
}

uint64_t
logengine_lock_top(const struct lock *lock)
{
	uint64_t top = lock->token;

	for (uint32_t i = 0; i < lock->n; i++) {
		top = lock->docs[i].etag > top ? lock->docs[i].etag : top;
		top = lock->docs[i].staged > top ? lock->docs[i].staged : top;
	}
	return top;
}
