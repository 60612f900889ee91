/*
 * process.h - CPU time and memory of a process, from /proc.
 */
#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include <sluice/api.h>

/* Nanoseconds that the threads of the process ran; -1 if there is no such process. */
slu_time process_cpu(long pid);

/* Bytes of memory of its own, and of shared memory; 0 if there is no such process. */
void process_memory(long pid, uint64_t *own, uint64_t *shared);

#endif
