/*
 * shared_text.h - a constant text with a reference count; any thread.
 */
#ifndef BASE_SHARED_TEXT_H
#define BASE_SHARED_TEXT_H

#include "base/bytes.h"

#include <stdatomic.h>
#include <stdint.h>

struct shared_text {
	_Atomic uint32_t refs;
	uint32_t n;
	char p[]; /* n bytes and a NUL */
};

/* Makes a copy with one reference. Returns NULL if memory is out, or the text is empty. */
struct shared_text *shared_text_new(struct slice text);

struct shared_text *shared_text_ref(struct shared_text *t);
void shared_text_unref(struct shared_text *t); /* NULL is fine */

static inline struct slice
shared_text_slice(const struct shared_text *t)
{
	return (struct slice){ t->p, t->n };
}

#endif
