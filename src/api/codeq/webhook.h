/*
 * webhook.h - the result of a task for its webhook: a message of the server's own, which server/webhooks.h sends.
 *
 *      result, last nack ── one step with it ──> message of WEBHOOK_SPACE, WEBHOOK_QUEUE ──> POST to the address
 *
 * The namespace is reserved: no client can name it.
 */
#ifndef API_CODEQ_WEBHOOK_H
#define API_CODEQ_WEBHOOK_H

#include "api/codeq/task.h"

#define WEBHOOK_SPACE ".codeq"
#define WEBHOOK_QUEUE ".webhooks"

enum {
	WEBHOOK_TRIES = 5,
	WEBHOOK_CALL_TRIES = 1, /* of a call of a subscriber */
	WEBHOOK_CALL_PRIO = 1   /* results go first */
};

/* Fills a put with the body and the address. body: a JSON object; it and the task live as long as the put. Returns false
 * if the task has no webhook, or there is no memory. */
bool codeq_webhook_put(struct apicall *a, const struct codeq_task *t, struct slice body, struct op_put *out);

/* Tells the sender that there is work. */
void codeq_webhook_kick(const struct apicall *a);

/* The members that every body begins with: taskId, eventType, status. */
void codeq_webhook_open(struct apicall *a, struct json_out *w, struct buf *b, const struct codeq_task *t, const char *status);

#endif
