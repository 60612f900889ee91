#include "base/shared_text.h"

#include "base/mem.h"

struct shared_text *
shared_text_new(struct slice text)
{
	struct shared_text *const t = text.n ? mem_alloc(sizeof *t + text.n + 1) : NULL;

	if (!t)
		return NULL;
	atomic_init(&t->refs, 1);
	t->n = (uint32_t)text.n;
	memcpy(t->p, text.p, text.n);
	t->p[text.n] = '\0';
	return t;
}

struct shared_text *
shared_text_ref(struct shared_text *t)
{
	atomic_fetch_add(&t->refs, 1);
	return t;
}

void
shared_text_unref(struct shared_text *t)
{
	if (t && atomic_fetch_sub(&t->refs, 1) == 1)
		mem_free(t);
}
