/*
 * mem.h - where all memory comes from, so that a test can make it run out.
 *
 * Thread-safe. Every caller handles NULL: return SLU_ENOMEM, change nothing.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

void *mem_alloc(size_t size);
void *mem_zalloc(size_t size);           /* zeroed */
void *mem_array(size_t n, size_t size);  /* zeroed; NULL when n * size overflows */
void *mem_realloc(void *p, size_t size); /* on NULL p is still valid */
void *mem_aligned(size_t align, size_t size);
char *mem_strdup(const char *s);
void mem_free(void *p); /* NULL is fine */

/* Give memory that was freed back to the system, as far as the C library can. Slow: for when
 * much of it was. */
void mem_trim(void);

/*
 * The seam for tests. After mem_fail_at(n) the n-th allocation from now fails
 * (n = 1: the next one), and the ones after it succeed again; 0 turns it off.
 * mem_failed() tells whether that allocation was reached.
 */
void mem_fail_at(long n);
int mem_failed(void);

#endif
