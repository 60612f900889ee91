/*
 * delivery.h - the inside of a struct slu_delivery: the message, the source of its payload, and how it
 * is settled.
 *
 *      live      the payload comes from its own link, or from the link of its subscription
 *      spooled   the payload was read whole: a small one is in memory, a large one in a file
 *
 * One thread uses it, and a keeper may extend it meanwhile: settling and extending are under mtx.
 */
#ifndef CLIENT_DELIVERY_H
#define CLIENT_DELIVERY_H

#include "client/keeper.h"
#include "client/parts.h"

#include <stdio.h>

struct slu_delivery {
	struct kept kept; /* protects settling and extending */
	struct slu_client *client;
	struct slu_delivery_info info;
	char *texts; /* the texts of info */
	slu_time on_close;
	slu_time taken; /* when its lease began, at the latest; monotonic clock */

	struct parts *parts;          /* live: the source of the payload; NULL = nothing left to read */
	struct parts own;             /* the parts of a delivery with its own link */
	struct slu_delivery **holder; /* the pointer of a subscription to this delivery; NULL = none */
	struct buf memory;            /* spooled payload in memory */
	size_t read;                  /* how many bytes of `memory` were read */
	FILE *file;                   /* spooled payload in a file */

	pthread_mutex_t mtx;
	bool settled;
};

/* Makes a delivery from the text of a part `meta`. Returns SLU_EUNKNOWN if the part is malformed. */
int delivery_new(struct slu_delivery **out, struct slu_client *c, struct slice text,
		 const char *owner, slu_time on_close, struct slu_err *err);

/* Frees everything without a call to the server. */
void delivery_free(struct slu_delivery *d);

/* Reads the whole payload, so that the link is free. */
int delivery_spool(struct slu_delivery *d, struct slu_err *err);

#endif
