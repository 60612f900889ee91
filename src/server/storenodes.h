/*
 * storenodes.h - the nodes of all stores for the API: nodes_ops (api/nodes.h) over membership.h.
 */
#ifndef SERVER_STORENODES_H
#define SERVER_STORENODES_H

#include "api/nodes.h"
#include "server/ownership.h"

/* The functions for api->nodes; arg is the node. The nodes of several stores are one list. */
struct nodes_ops storenodes_ops(struct node *n);

#endif
