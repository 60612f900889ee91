/*
 * machine.h - how much memory there is for this process.
 */
#ifndef SERVER_MACHINE_H
#define SERVER_MACHINE_H

#include <stdint.h>

/* The smaller of the machine's memory and what the cgroups of this process may use (version 2 or
 * 1, the group and all above it). 0: it cannot be told. */
uint64_t machine_memory(void);

/* The same by files below these folders, for tests: "/proc/self/cgroup", "/sys/fs/cgroup". */
uint64_t machine_cgroup_memory(const char *own, const char *root);

#endif
