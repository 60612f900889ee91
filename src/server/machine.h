/*
 * machine.h - the memory that this process may use.
 */
#ifndef SERVER_MACHINE_H
#define SERVER_MACHINE_H

#include <stdint.h>

/* The smaller of the machine's memory and the limits of this process's cgroups (version 2 or 1,
 * the group and all above it). 0: unknown. */
uint64_t machine_memory(void);

/* For tests: the limit of the cgroups by these files: "/proc/self/cgroup", "/sys/fs/cgroup". */
uint64_t machine_cgroup_memory(const char *own, const char *root);

#endif
