/*
 * node_private.h - the state of a node, for the files of src/server.
 */
#ifndef SERVER_NODE_PRIVATE_H
#define SERVER_NODE_PRIVATE_H

#include "api/api.h"
#include "duty/duty.h"
#include "api/nodes.h"
#include "beanstalk/beanstalk.h"
#include "broker/broker.h"
#include "core/names.h"
#include "engine/engine.h"
#include "engine/spaces.h"
#include "http/http.h"
#include "server/nodename.h"
#include "server/login.h"
#include "server/node.h"
#include "server/tlsfiles.h"

#include <sys/stat.h>

enum {
	NODE_SYNC_TEXT = 64,
	NODE_DUTIES = 2
};

struct node {
	const struct conf *conf; /* reload.h RELOAD-4 */
	struct reload *reload;
	struct slu_log *log;
	const struct node_hand *hand;          /* NULL: threads, the system's clock, conf's engine */
	bool hands_over;                       /* the sockets belong to the service manager: node.h, 2 */
	bool only_checks;                      /* server/shards.c: create nothing */
	struct node_shards *shards;            /* server/shards.c: configurations of the shards */
	const char *place;                     /* of the messages: a folder, or an address */
	_Atomic(struct ownership *) ownership; /* server/ownership.c: shards in stores; NULL: none */
	struct nodename nodename;              /* of this server in its stores */
	struct peernet *links;                 /* server/links.c: to the other nodes of a store; NULL: none */
	struct peers *peers;                   /* server/peers.c: other nodes; NULL: not yet */
	struct inboxes *inboxes;               /* server/inboxes.c; NULL: none in the settings of the start */
	unsigned own_listener;                 /* of the inboxes: its number, if there are any */
	struct projection *projection;         /* server/projected.c; NULL: none */
	struct duty *duties[NODE_DUTIES];      /* schedules, tasks; NULL: by hand */
	struct broker_notice notice;           /* for the duties */
	struct webhooks *webhooks;             /* server/webhooks.c; NULL: none yet, or by hand */
	struct broker *broker;
	struct server *server;
	struct login login;
	struct tlsfiles tlsfiles;
	struct nodes_ops nodes; /* for api.nodes */
	struct api api;
	struct route *routes; /* of all dialects */
	unsigned n_routes;
	struct http_conf http;
	struct beanstalk_conf beanstalk;
	char bean_space[NAME_TEXT];
	struct server_protocol protocols[SERVER_PROTOCOLS];
	struct broker_progress progress;
	char sync[NODE_SYNC_TEXT];

	struct space_quotas quotas; /* prepared, not in force; owns its rows */
	struct mask *next_mask;     /* of a reload: server/masking.h */

	/* Set by reloads. */
	_Atomic slu_time drain;
	_Atomic slu_time grace;
	_Atomic slu_time interval; /* between checks of the file */

	/* Of the thread that runs the node. seen: the file when it was last read. */
	struct stat seen;
	slu_time look_at, presence_at, watch_at, tick_at; /* next check of the file, peers, watchdog, episodes, by clock_mono */
};

/* node_run.c: true if a signal to stop is pending. */
bool node_stop_pending(void);

void node_stop_duties(struct node *n);

#endif
