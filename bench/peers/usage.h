/*
 * usage.h - CPU time and memory of a process and its descendants (PostgreSQL has a process for each
 * connection).
 */
#ifndef PEERS_USAGE_H
#define PEERS_USAGE_H

#include <sluice/api.h>

#include <sys/types.h>

struct usage {
	slu_time cpu;   /* CPU time of all running threads */
	uint64_t bytes; /* their own memory, and the largest shared part */
};

/* Sets *out to zero if there is no such process. */
void usage_of(pid_t root, struct usage *out);

slu_time usage_own_cpu(void); /* CPU time of this process */

#endif
