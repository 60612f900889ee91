#include "base/mem.h"

#include <sluice/api.h>

#include <stdatomic.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	PAGE = 4096,
	LARGE = 16 << 20,
	MIN_ROOM = 8 /* items of an array that grows, at least */
};

/* The only variable global of the library, for tests. */
static _Atomic long fail_countdown; /* 0: off; 1: the next allocation fails */
static _Atomic int failed;

static int
must_fail(void)
{
	if (atomic_load_explicit(&fail_countdown, memory_order_relaxed) == 0)
		return 0;
	if (atomic_fetch_sub(&fail_countdown, 1) != 1)
		return 0;
	atomic_store(&failed, 1);
	return 1;
}

void
mem_fail_at(long n)
{
	atomic_store(&failed, 0);
	atomic_store(&fail_countdown, n);
}

int
mem_failed(void)
{
	return atomic_load(&failed);
}

/* Random reads of a large table miss in the TLB as often as in the cache, so ask the kernel for huge
 * pages; a refusal does not matter. Only whole pages that malloc has mapped: otherwise realloc would
 * have to copy. */
static void *
in_large_pages(void *p, size_t size)
{
	const uintptr_t begin = (uintptr_t)p & ~(uintptr_t)(PAGE - 1);
	const uintptr_t end = ((uintptr_t)p + size + PAGE - 1) & ~(uintptr_t)(PAGE - 1);

	if (p && size >= LARGE)
		(void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
	return p;
}

void *
mem_alloc(size_t size)
{
	return must_fail() ? NULL : malloc(size ? size : 1);
}

void *
mem_zalloc(size_t size)
{
	return must_fail() ? NULL : calloc(1, size ? size : 1);
}

void *
mem_array(size_t n, size_t size)
{
	if (must_fail())
		return NULL;
	return in_large_pages(calloc(n ? n : 1, size ? size : 1), n * size);
}

void *
mem_realloc(void *p, size_t size)
{
	if (must_fail())
		return NULL;
	return in_large_pages(realloc(p, size ? size : 1), size);
}

bool
mem_resize(void *array, size_t n, size_t size)
{
	void *p;

	memcpy(&p, array, sizeof p); /* the pointer has the type of the items */
	p = mem_realloc(p, n * size);
	if (p)
		memcpy(array, &p, sizeof p);
	return p;
}

bool
mem_grow(void *array, uint32_t *room, uint32_t n, size_t size)
{
	const uint32_t least = n < MIN_ROOM ? MIN_ROOM : n;
	const uint32_t more = 2 * *room > least ? 2 * *room : least;

	if (!mem_resize(array, more, size))
		return false;
	*room = more;
	return true;
}

void *
mem_aligned(size_t align, size_t size)
{
	void *p = NULL;

	if (must_fail() || posix_memalign(&p, align, size ? size : 1))
		return NULL;
	return p;
}

char *
mem_strdup(const char *s)
{
	size_t size = strlen(s) + 1;
	char *copy = mem_alloc(size);

	return copy ? memcpy(copy, s, size) : NULL;
}

void
mem_free(void *p)
{
	free(p);
}

void
slu_free(void *p)
{
	mem_free(p);
}

void
mem_trim(void)
{
#ifdef __GLIBC__
	(void)malloc_trim(0); /* the result does not matter */
#endif
}
