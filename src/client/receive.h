/*
 * receive.h - receives messages: one, a page, or a stream.
 */
#ifndef CLIENT_RECEIVE_H
#define CLIENT_RECEIVE_H

#include "client/delivery.h"

enum {
	RECEIVE_PAGE_MAX = 64
};

/* The parameters of a receive. */
struct receiving {
	const char *queue;
	struct slu_receive how;
	char owner[CLIENT_OWNER_TEXT];
	unsigned page;
};

/* Sets defaults: an owner if none is given, page 1. Returns SLU_EINVAL if `given` is invalid. */
int receiving_init(struct receiving *r, struct slu_client *c, const char *queue,
		   const struct slu_receive *given, struct slu_err *err);

/* Sends the request. *link has the head of the answer, its body follows; NULL = no message came. */
int receiving_ask(struct receiving *r, struct slu_client *c, const char *path, slu_time patience,
		  const struct slu_call *call, struct link **link, struct slu_err *err);

/* Receives up to r->page deliveries, spooled: all or none. *n 0 = no message came. patience: see CLIENT-2;
 * less than 0 = none. */
int receive_page(struct receiving *r, struct slu_client *c, slu_time patience,
		 const struct slu_call *call, struct slu_delivery **out, unsigned *n,
		 struct slu_err *err);

/* Receives one delivery, live. *out NULL = no message came. */
int receive_one(struct receiving *r, struct slu_client *c, slu_time patience,
		const struct slu_call *call, struct slu_delivery **out, struct slu_err *err);

#endif
