#include "exec/failures.h"

#include "base/mem.h"

#include <assert.h>

int
failures_init(struct failures *f, uint32_t size)
{
	assert(size > 0);
	*f = (struct failures){ .size = size };
	f->ring = mem_array(size, sizeof *f->ring);
	if (!f->ring)
		return SLU_ENOMEM;
	pthread_mutex_init(&f->mtx, NULL);
	return 0;
}

void
failures_release(struct failures *f)
{
	if (!f->ring)
		return;
	pthread_mutex_destroy(&f->mtx);
	mem_free(f->ring);
	f->ring = NULL;
}

void
failures_add(struct failures *f, const struct slu_failure *failure)
{
	pthread_mutex_lock(&f->mtx);
	f->ring[f->next] = *failure;
	f->next = (f->next + 1) % f->size;
	if (f->n < f->size)
		f->n++;
	pthread_mutex_unlock(&f->mtx);
}

uint32_t
failures_list(struct failures *f, struct slu_failure *list, uint32_t n)
{
	uint32_t at;

	pthread_mutex_lock(&f->mtx);
	if (n > f->n)
		n = f->n;
	at = f->next;
	for (uint32_t i = 0; i < n; i++) {
		at = at ? at - 1 : f->size - 1;
		list[i] = f->ring[at];
	}
	pthread_mutex_unlock(&f->mtx);
	return n;
}
