/*
 * delivery.h - the inside of a struct slu_delivery: what is known of a message, where its
 * payload comes from, and how it ends.
 *
 *      live      payload from the link of its own, or of the subscription it came by
 *      spooled   read whole before: small ones in memory, large ones in a file
 *
 * One thread's, but for extend, which a keeper may call meanwhile: what settles and extends
 * is under mtx.
 */
#ifndef CLIENT_DELIVERY_H
#define CLIENT_DELIVERY_H

#include "client/keeper.h"
#include "client/parts.h"

#include <stdio.h>

struct slu_delivery {
	struct kept kept; /* for who keeps its lease alive */
	struct slu_client *client;
	struct slu_delivery_info info;
	char *texts; /* those of info */
	slu_time on_close;
	slu_time taken; /* when its lease began, at the latest; monotonic */

	struct parts *parts;          /* live: NULL when there is nothing more to be had */
	struct parts own;             /* of a delivery that has its own link */
	struct slu_delivery **holder; /* who else points here: a subscription; or NULL */
	struct buf memory;            /* spooled */
	size_t read;                  /* of memory */
	FILE *file;                   /* spooled, and larger */

	pthread_mutex_t mtx;
	bool settled;
};

/* Out of a part `meta`. SLU_EUNKNOWN: it is not understood. */
int delivery_new(struct slu_delivery **out, struct slu_client *c, struct slice meta,
		 const char *owner, slu_time on_close, struct slu_err *err);

/* Give back everything but say nothing to the server. */
void delivery_free(struct slu_delivery *d);

/* Read the whole payload: then the link is free for others. */
int delivery_spool(struct slu_delivery *d, struct slu_err *err);

/* The link that it has of its own goes back. */
void delivery_let_go(struct slu_delivery *d);

#endif
