/*
 * bare_server.h - the least that answers requests: a process that knows how long a
 * request is, looks at nothing in it, and sends the same bytes back. The mark that
 * ours is measured by.
 *
 *      plain      read, answer                                    beside /healthz
 *
 *      durable    read ──inbox──> all that gathered: one pwrite,  beside /enqueue
 *                 answer <──────  one fdatasync
 *                        eventfd
 *
 * The same bytes on the wire and on disk and the same hand-over between two threads as
 * ours; no parsing, no index.
 */
#ifndef BENCH_BARE_SERVER_H
#define BENCH_BARE_SERVER_H

#include "bench/bare_file.h"
#include "client/address.h"

#include <sys/types.h>

struct bare_server_conf {
	size_t request;         /* bytes of one */
	const char *answer;     /* whole, with its head */
	struct bare_file *file; /* NULL: plain */
	size_t record;          /* bytes that a request is on disk */
};

struct bare_server {
	struct address address;
	pid_t pid;
};

/* From a process that has no threads. SLU_EDOWN. */
int bare_server_open(struct bare_server *b, const struct bare_server_conf *conf,
		     struct slu_err *err);
void bare_server_close(struct bare_server *b); /* zeroed is fine */

#endif
