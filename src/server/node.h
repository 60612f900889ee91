/*
 * node.h - a running server: a broker, and the APIs in front of it.
 *
 *      node_open   addresses are bound, then shards are recovered: until they are, requests
 *                  wait for `start.wait` at most and are then answered 503 `starting`;
 *                  /healthz answers at once, and /readyz says how far it is
 *      node_run    serves until told to stop by SIGTERM or SIGINT; SIGHUP reloads
 *      node_close
 *
 * Stop, in this order:
 *  1  New work is refused: enqueue and dequeue get 503. Waiting dequeues end with
 *     nothing. /readyz says 503.
 *  2  While clients are connected, for `drain` at most: they may settle what they hold.
 *     If all sockets belong to the service manager, the next process takes new connections:
 *     this one accepts no more, refuses nothing, and closes each connection behind its next
 *     answer. Waiting dequeues end with nothing.
 *  3  No more connections; what runs is answered, for `grace` at most. What has not come
 *     back when that has passed twice (a disk that hangs) is given up, and the process
 *     exits with NODE_UNCLEAN: what was answered is on disk.
 *  4  What was accepted is on disk, the shards end.
 * A second signal ends the process at once. One that comes while shards are recovered ends
 * node_open: SLU_ECANCELED, nothing has changed.
 *
 * The service manager, if there is one, is told of every step (server/manager.h), and
 * that the network threads are alive, as often as it wants to hear it. The sockets it
 * passes are served when nobody has set `listen`.
 *
 * The opener must have blocked the signals before: node_signals.
 */
#ifndef SERVER_NODE_H
#define SERVER_NODE_H

#include "conf/reload.h"

enum {
	NODE_UNCLEAN = 3 /* exit code: it has stopped, and not all was well */
};

struct clock;
struct disk;
struct engine_ops;
struct node;

/* Block the signals that node_run waits for, in this thread and all it will start. */
void node_signals(void);

/* Settings that are well-formed each and yet make no server: the first fault that can be found
 * without reading keys and certificates, which node_open does. SLU_EINVAL. */
int node_check(const struct conf *conf, struct slu_err *err);

/* For --check-config: every fault of the settings that node_open would meet. */
void node_faults(const struct conf *conf, struct conf_faults *faults);

/* For tests: no threads, but node_round, and on these. */
struct node_hand {
	struct clock *clock;
	const struct engine_ops *engine;
	struct disk *disk;
};

/* Borrows all; adds itself to reload. hand is NULL but in tests. SLU_EINVAL:
 * the settings are wrong, and another try is of no use. SLU_ECANCELED, SLU_EEXISTS,
 * SLU_EDOWN, SLU_ECORRUPT, SLU_ENOMEM. The sentence names the address, folder or file. */
int node_open(struct node **out, const struct conf *conf, struct reload *reload,
	      struct slu_log *log, const struct node_hand *hand, struct slu_err *err);

/* By hand: the network and the shards do what they would, once. True: they have more to
 * do; false LOOP_QUIET times in a row: nothing, until something comes or the clock moves on. */
bool node_round(struct node *n);

/* Tell where it listens, then serve. Returns when all is stopped: 0 when it was a clean
 * stop. Else a shard had failed or could not be closed, or requests were cut off in step
 * 3: the log says which. */
int node_run(struct node *n);

void node_close(struct node *n); /* NULL is fine */

#endif
