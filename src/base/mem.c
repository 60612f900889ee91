#include "base/mem.h"

#include <sluice/api.h>

#include <stdatomic.h>
#include <stdint.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	PAGE = 4096,
	LARGE = 16 << 20
};

/* The one global of the library besides const tables: tests count it down. */
static _Atomic long fail_countdown; /* 0: off; 1: the next one fails */
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

/* A table that large is read here and there, and to look up which page of 4 KiB a place
 * is in takes as long as the place itself. Kernels that are asked give larger pages; it
 * does not matter if they do not. Whole pages of what malloc has mapped, or realloc could
 * not move it any more without a copy. */
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
	(void)malloc_trim(0); /* whether there was any */
#endif
}
