/*
 * upload.h - sends a payload of any size while it is read (POST /v1/queue/enqueue).
 */
#ifndef CLI_MESSAGE_UPLOAD_H
#define CLI_MESSAGE_UPLOAD_H

#include "cli/lib/session.h"

#include "base/bytes.h"

struct large {
	struct slice head; /* the bytes that are read already */
	int fd;            /* the descriptor with the rest */
	const char *name;  /* the name of the file, for error texts */
};

/* put: the message without its payload; put->id becomes the id. Returns SLU_EINVAL if the message has a
 * priority, key, idempotency key, trace or kept result: the route does not support them. */
int push_large(struct session *s, const char *queue, struct slu_client_put *put,
	       const struct large *from, struct slu_err *err);

#endif
