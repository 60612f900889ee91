/*
 * cpu.h - the little that depends on the processor.
 */
#ifndef BASE_CPU_H
#define BASE_CPU_H

/* Inside a short loop that looks at memory another core will change. */
static inline void
cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

/* Fetch the cache line at p, which will be needed soon. p may be anything. */
static inline void
cpu_prefetch(const void *p)
{
	__builtin_prefetch(p);
}

#endif
