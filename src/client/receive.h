/*
 * receive.h - messages as they can be had: one, a page of them, or a stream.
 */
#ifndef CLIENT_RECEIVE_H
#define CLIENT_RECEIVE_H

#include "client/delivery.h"

enum {
	RECEIVE_PAGE_MAX = 64
};

/* Whom they are for, and how. */
struct receiving {
	const char *queue;
	struct slu_receive how;
	char owner[CLIENT_OWNER_TEXT];
	unsigned page;
};

/* owner: made if it is not given. page is 1. SLU_EINVAL: how is not valid. */
int receiving_init(struct receiving *r, struct slu_client *c, const char *queue,
		   const struct slu_receive *how, struct slu_err *err);

/* Ask at path: *link has the answer's head, and its body is to come; NULL: nothing came. */
int receiving_ask(struct receiving *r, struct slu_client *c, const char *path, slu_time patience,
		  const struct slu_call *call, struct link **link, struct slu_err *err);

/* Up to r->page deliveries, spooled; *n 0: nothing came. All or none. patience as Q2 has it;
 * less than 0: none. */
int receive_page(struct receiving *r, struct slu_client *c, slu_time patience,
		 const struct slu_call *call, struct slu_delivery **out, unsigned *n,
		 struct slu_err *err);

/* One, live. *out NULL: nothing came. */
int receive_one(struct receiving *r, struct slu_client *c, slu_time patience,
		const struct slu_call *call, struct slu_delivery **out, struct slu_err *err);

#endif
