/*
 * cpu.h - hints to the processor.
 */
#ifndef BASE_CPU_H
#define BASE_CPU_H

/* Fetch the cache line at p, which will be needed soon. p may be anything. Always
 * inline: a call that does nothing else has no effect that the compiler must keep. */
__attribute__((always_inline)) static inline void
cpu_prefetch(const void *p)
{
	__builtin_prefetch(p);
}

/* Said while waiting for what another core is about to write. */
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
