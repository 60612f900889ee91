/*
 * node.h - a running server: a broker, and the APIs in front of it.
 *
 *      node_open   binds the addresses, then opens the shards. Until they are open, requests
 *                  wait, at most for `start.wait`, and then get 503 `starting`; /healthz
 *                  answers at once, and /readyz shows the progress
 *      node_run    serves until SIGTERM or SIGINT; SIGHUP reloads, SIGUSR1 flushes front folders
 *      node_close
 *
 * Stop, in this order:
 *  1  The server refuses new work: enqueue and dequeue get 503. Waiting dequeues end without
 *     messages. /readyz answers 503.
 *  2  While clients are connected, at most for `drain`, they may settle messages.
 *     If all sockets belong to the service manager, the next process takes new connections:
 *     this one accepts none, refuses nothing, and closes each connection after its next
 *     answer. Waiting dequeues end without messages.
 *  3  The server closes its sockets and answers running requests, at most for `grace`. After
 *     twice that time (a disk that hangs) the process exits with NODE_UNCLEAN: all that was
 *     answered is on disk.
 *  4  The shards sync and end.
 * A second signal ends the process at once. A signal during node_open cancels it:
 * SLU_ECANCELED, and nothing has changed.
 *
 * The node reports every step to the service manager (server/systemd.h), and that the network
 * threads are alive. It serves the sockets of the service manager unless `listen` is set.
 *
 * The caller of node_open has blocked the signals: node_signals.
 */
#ifndef SERVER_NODE_H
#define SERVER_NODE_H

#include "conf/reload.h"

enum {
	NODE_UNCLEAN = 3 /* exit code of a stop that was not clean */
};

struct clock;
struct dialect;
struct disk;
struct engine_ops;
struct node;

/* Block the signals that node_run waits for, in this thread and all threads that it starts. */
void node_signals(void);

/* The first fault that shows without reading keys and certificates, which node_open does.
 * Returns SLU_EINVAL. */
int node_check(const struct conf *conf, struct slu_err *err);

/* For --check-config: every fault that node_open would find. */
void node_faults(const struct conf *conf, struct conf_faults *faults);

/* For tests: no threads; the test calls node_round and provides these. */
struct node_hand {
	struct clock *clock;
	const struct engine_ops *engine;
	struct disk *disk;
	const struct dialect *const *dialects; /* api/dialect.h; NULL: the dialects of the server */
	const struct protocol *protocol;       /* of addresses without a scheme; NULL: HTTP */
};

/* Borrows all arguments; adds parts to reload. hand: NULL except in tests. SLU_EINVAL if the
 * settings are invalid: another try fails, too. SLU_ECANCELED, SLU_EEXISTS, SLU_EDOWN,
 * SLU_ECORRUPT, SLU_ENOMEM. The error names the address, folder or file. */
int node_open(struct node **out, const struct conf *conf, struct reload *reload,
	      struct slu_log *log, const struct node_hand *hand, struct slu_err *err);

/* With a hand: one round of the network and the shards. True: there is more to do; false
 * LOOP_QUIET times in a row: nothing happens until input arrives or the clock moves. */
bool node_round(struct node *n);

/* Log the addresses, then serve. Returns after the stop: 0 if it was clean. Otherwise a shard
 * had failed or could not be closed, or step 3 cut requests off; the log has the reason. */
int node_run(struct node *n);

void node_close(struct node *n); /* NULL is fine */

#endif
