/*
 * node_in.h - what the files of a node share.
 */
#ifndef SERVER_NODE_IN_H
#define SERVER_NODE_IN_H

#include "api/api.h"
#include "broker/broker.h"
#include "engine/redis/redis.h"
#include "engine/spaces.h"
#include "http/server.h"
#include "server/login.h"
#include "server/node.h"
#include "server/secure.h"

#include <sys/stat.h>

enum {
	NODE_SYNC_TEXT = 64
};

struct node {
	const struct conf *conf; /* reload.h R4 */
	struct reload *reload;
	struct slu_log *log;
	const struct node_hand *hand; /* NULL: threads, the system's clock, conf's engine */
	bool hands_over;              /* its sockets are the service manager's: node.h, 2 */
	bool only_checks;             /* server/shards.c: make nothing */
	struct node_shards *shards;   /* server/shards.c: what they were told */
	const char *place;            /* where messages are: a folder, or a server */
	struct peers *peers;          /* server/peers.c: other nodes; NULL: not yet */
	struct broker *broker;
	struct server *server;
	struct login login;
	struct secure secure;
	struct api api;
	struct route *routes; /* of all APIs */
	unsigned n_routes;
	struct broker_progress progress;
	char sync[NODE_SYNC_TEXT];

	struct space_quotas quotas; /* prepared, not in force; its rows are owned */

	/* Set by reloads. */
	_Atomic slu_time drain;
	_Atomic slu_time grace;
	_Atomic slu_time interval; /* of looks at the file */

	/* The thread's that runs it: the file as it was read. */
	struct stat seen;
	slu_time look_at, meet_at, watch_at, tick_at; /* when, by clock_mono */
};

/* node_run.c: has a signal to stop come that nobody has taken yet? */
bool node_stop_pending(void);

#endif
