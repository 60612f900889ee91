/*
 * push_large.h - a payload of any size, sent as it is read (POST /v1/queue/enqueue).
 */
#ifndef CLI_PUSH_LARGE_H
#define CLI_PUSH_LARGE_H

#include "cli/session.h"

#include "base/bytes.h"

struct large {
	struct slice head; /* what was read of it */
	int fd;            /* where the rest is */
	const char *name;  /* of the file, for messages */
};

/* put: the message, but for its payload. SLU_EINVAL names what that route cannot carry: priority,
 * key, idempotency key, trace, kept result. The id comes back in put->id. */
int push_large(struct session *s, const char *queue, struct slu_client_put *put,
	       const struct large *from, struct slu_err *err);

#endif
