/*
 * projected.h - the projection of a node, by its settings.
 */
#ifndef SERVER_PROJECTED_H
#define SERVER_PROJECTED_H

#include "projection/projection.h"
#include "server/node_private.h"

/* SLU_EINVAL if the settings of the projection are invalid, or an engine cannot be observed. */
int projected_check(const struct conf *conf, struct slu_err *err);

/* Makes node.projection if the settings ask for it. Before the broker is opened. Returns SLU_ENOMEM. */
int projected_open(struct node *n, struct slu_err *err);

#endif
