/*
 * inboxes.h - the inboxes of a server: messages of databases and folders, handed over to the server itself.
 *
 *      inboxes:                      thread of an inbox (handover/handover.h)
 *        - postgres://db/shop  ──>     │ POST /v1/admin/intake, with the secret of this process
 *        - file:///srv/drop            v
 *                                    a listener of its own on the loopback address ──> as for any caller
 *
 *  INBOXES-1  An inbox is a client of its own server: a batch takes the same way as a batch of `sluice inbox`. The listener
 *      accepts no caller without the secret, which is random and known to this process alone.
 *  INBOXES-2  An inbox that fails for good (a missing table, a wrong password) is tried again: the server goes on.
 *  INBOXES-3  A reload starts inboxes that are new, stops inboxes that are gone, and restarts inboxes whose settings have
 *      changed.
 *      A server that started without inboxes has no listener for them: the first inbox needs a restart.
 *  INBOXES-4  The inboxes end before the server drains, so a batch on its way is answered.
 */
#ifndef SERVER_INBOXES_H
#define SERVER_INBOXES_H

#include "server/node_private.h"

struct inboxes;

/* Returns SLU_EINVAL for a URL that no inbox has, or one with a password: a conf_check. */
int inboxes_check(const struct conf *conf, struct slu_err *err);

/* Opens the listener, and adds a part to reload. Does nothing if the settings have no inbox. After the other
 * listeners of the server, before it starts. */
int inboxes_open(struct node *n, unsigned listener, struct slu_err *err);

/* Starts the threads. When the server serves. */
void inboxes_start(struct node *n);

/* Ends the threads: INBOXES-4. */
void inboxes_stop(struct node *n);

/* After the server is closed. */
void inboxes_close(struct node *n);

/* Appends the metrics of the inboxes. */
void inboxes_metrics(const struct node *n, struct buf *out);

#endif
