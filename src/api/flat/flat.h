/*
 * flat.h - the flat queue API: a table of routes. docs/api.md is its contract.
 *
 *      enqueue   JSON -> messages          view      messages -> JSON
 *      claim     the claim, the return     messages  peek, dead letters
 *      settle    ack, nack, extend         queues    stats, topics
 *      dead      redrive, delete           result    results
 *      policy    the knobs of a queue      error     the form of errors
 *      why       why a message waits       finish    ack and nack with `enqueue`
 *      packed    the binary form of enqueue, claim and settle
 *      worker    a beat of a worker             batch     batches of messages
 */
#ifndef API_FLAT_FLAT_H
#define API_FLAT_FLAT_H

#include "api/dialect.h"

struct json_out;
struct op_queue;
struct queuestats;

extern const struct dialect flat_dialect;

/* Answers with a page of queues, the array `member`; write writes the members of a queue. */
typedef void flat_write_queue(struct json_out *w, const struct op_queue *q);
void flat_reply_queues(struct apicall *a, const struct queuestats *v, const char *member,
		       flat_write_queue *write);

struct given_id;
struct receipt;

/* Takes the id and the names from the receipt, if it has an id. Returns SLU_EINVAL if both are given, or id or
 * namespace are missing. */
int flat_take_receipt(const struct receipt *r, struct given_id *id, struct slice *namespace, struct slice *queue,
		      struct slu_err *err);

/* Handlers. */
extern const struct handler flat_enqueue, flat_claim, flat_ack, flat_nack, flat_extend, flat_result,
	flat_why, flat_worker;
extern const struct handler flat_batch, flat_batches, flat_batch_create, flat_batch_close;
extern const struct handler flat_stats, flat_topics, flat_peek, flat_dlq, flat_redrive, flat_delete;
extern const struct handler flat_policy_get, flat_policy_put, flat_policy_post;

#endif
