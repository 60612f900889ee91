/*
 * usage.h - what a server takes: processor time and memory of a process and of all that it
 * has started (PostgreSQL has a process a connection).
 */
#ifndef PEERS_USAGE_H
#define PEERS_USAGE_H

#include <sluice/api.h>

#include <sys/types.h>

struct usage {
	slu_time cpu;   /* of all threads that run */
	uint64_t bytes; /* memory that is their own, and the largest part that is shared */
};

/* Zeroed when there is no such process. */
void usage_of(pid_t root, struct usage *out);

slu_time usage_own_cpu(void); /* of this process */

#endif
