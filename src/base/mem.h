/*
 * mem.h - the only allocator, so that a test can make memory run out.
 *
 * Any thread may call these functions. They return NULL if memory is out; the caller then
 * returns SLU_ENOMEM and changes nothing.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t size);
void *mem_zalloc(size_t size);           /* zeroed */
void *mem_array(size_t n, size_t size);  /* zeroed; NULL also if n * size overflows */
void *mem_realloc(void *p, size_t size); /* if it returns NULL, p is still valid */
void *mem_aligned(size_t align, size_t size);
char *mem_strdup(const char *s);
void mem_free(void *p); /* NULL is fine */

/* Makes an array large enough for n items. `array`: the address of the pointer to the items. Returns
 * false and changes nothing if memory is out. */
bool mem_resize(void *array, size_t n, size_t size);

/* The same for an array that grows: doubles it if `*room`, the number of items that fit, is too small. */
bool mem_grow(void *array, uint32_t *room, uint32_t n, size_t size);

static inline bool
mem_room(void *array, uint32_t *room, uint32_t n, size_t size)
{
	return n <= *room || mem_grow(array, room, n, size);
}

/* Returns freed memory to the system, as far as the C library can. Slow: call it after much was
 * freed. */
void mem_trim(void);

/*
 * For tests. After mem_fail_at(n) the n-th allocation from now fails (n = 1: the next one), and
 * later ones succeed again; n = 0 turns this off. mem_failed() returns whether an allocation
 * failed that way.
 */
void mem_fail_at(long n);
int mem_failed(void);

#endif
