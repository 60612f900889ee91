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

#endif
