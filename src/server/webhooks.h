/*
 * webhooks.h - sends the webhooks of the codeQ dialect (api/codeq/webhook.h): threads of their own.
 *
 *      claim ──> POST to the address ──┬─ 2xx ───────────────────────> ack
 *                                      ├─ otherwise, up to 5 times ──> nack, after 2 s, 4 s, ... at most 60 s
 *                                      └─ the last time, refused ────> a line in the log, ack
 *
 *  WEBHOOKS-1  No request waits for a webhook. At most WEBHOOKS_THREADS are sent at once, each for at most 15 seconds.
 *  WEBHOOKS-2  The address that a connection goes to is checked after the name was resolved: loopback, link-local, private,
 *              multicast and unspecified addresses are refused, unless codeq.webhook_allow has their network.
 *              Redirects are not followed, proxies of the environment are not used.
 *  WEBHOOKS-3  With codeq.webhook_secret a body is signed: X-CodeQ-Timestamp has the unix time, X-CodeQ-Signature the
 *              HMAC-SHA256 of "<time>.<body>" in hex.
 *  WEBHOOKS-4  A webhook may be sent more than once: if its answer is lost, or the server is killed before the ack.
 *  WEBHOOKS-5  Results are sent before calls of subscribers (api/codeq/subscribe.h). A call that has waited for a minute is
 *              not sent.
 */
#ifndef SERVER_WEBHOOKS_H
#define SERVER_WEBHOOKS_H

#include "server/node_private.h"

enum {
	WEBHOOKS_THREADS = 4
};

struct webhooks;

/* Returns SLU_EINVAL for an invalid network in codeq.webhook_allow: a conf_check. */
int webhooks_check(const struct conf *conf, struct slu_err *err);

/* Starts the threads, and sets api.webhooks. When the broker is open. Returns SLU_ENOMEM or SLU_EDOWN. */
int webhooks_start(struct node *n, struct slu_err *err);

/* Ends the threads; a webhook on its way goes back, uncounted. Before the broker is closed. */
void webhooks_stop(struct node *n);

/* After the server is closed. */
void webhooks_free(struct node *n);

#endif
