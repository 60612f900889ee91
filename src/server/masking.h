/*
 * masking.h - applies the setting mask (api/mask/mask.h), at the start and at a reload.
 */
#ifndef SERVER_MASKING_H
#define SERVER_MASKING_H

#include "server/node_private.h"

/* Adds the part of the reload, and applies the setting of n->conf. Before the server serves. */
int masking_open(struct node *n, struct slu_err *err);

/* SLU_EINVAL for an invalid rule: a conf_check. */
int masking_check(const struct conf *conf, struct slu_err *err);

#endif
