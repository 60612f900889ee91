/*
 * cpu.h - hints to the processor.
 */
#ifndef BASE_CPU_H
#define BASE_CPU_H

/* Starts to load the cache line at p, which may be any address. Always inline: a compiler may
 * remove a call without side effects. */
__attribute__((always_inline)) static inline void
cpu_prefetch(const void *p)
{
	__builtin_prefetch(p);
}

/* For loops that wait for a write of another core. */
static inline void
cpu_pause(void)
{
#if defined __x86_64__ || defined __i386__
	__builtin_ia32_pause();
#elif defined __aarch64__
	__asm__ volatile("yield");
#endif
}

#endif
