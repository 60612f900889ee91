/*
 * bare_server.h - the minimal server to compare with: a process that reads requests of a fixed length,
 * parses nothing, and always sends the same answer.
 *
 *      plain      read, answer                                      compared with /healthz
 *
 *      durable    read ──mailbox──> all requests so far: one pwrite,  compared with /enqueue
 *                 answer <────────  one fdatasync
 *                        eventfd
 *
 * It has the same bytes on the wire and on disk, and the same hand-over between two threads, as sluiced;
 * no parsing, no index.
 */
#ifndef BENCH_BARE_SERVER_H
#define BENCH_BARE_SERVER_H

#include "bench/bare_file.h"
#include "client/address.h"

#include <sys/types.h>

struct bare_server_conf {
	size_t request;         /* bytes of a request */
	const char *answer;     /* the whole answer, with its head */
	struct bare_file *file; /* NULL = plain */
	size_t record;          /* bytes of a request on disk */
};

struct bare_server {
	struct address address;
	pid_t pid;
};

/* Call it from a process without threads. Returns SLU_EDOWN on an error. */
int bare_server_open(struct bare_server *b, const struct bare_server_conf *conf,
		     struct slu_err *err);
void bare_server_close(struct bare_server *b); /* a zeroed struct is fine */

#endif
