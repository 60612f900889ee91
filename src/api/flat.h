/*
 * flat.h - the flat queue API: a table of routes. docs/api.md is its contract.
 *
 * A dialect has no queue logic: it makes ops out of requests and answers out of ops.
 *
 *      flat_enqueue   JSON -> messages          flat_view      messages -> JSON
 *      flat_claim     the claim, the return     flat_messages  peek, dead letters
 *      flat_settle    ack, nack, extend         flat_queues    stats, topics
 *      flat_dead      redrive, delete           flat_result    results
 *      flat_policy    the knobs of a queue      plain          health, metrics
 */
#ifndef API_FLAT_H
#define API_FLAT_H

#include "http/route.h"

/* Their arg is a struct api. */
extern const struct route flat_routes[];
extern const unsigned flat_n_routes;

/* Handlers; those that have a codec worth testing are in headers of their own. */
void flat_peek(struct call *c, void *api);
void flat_dlq(struct call *c, void *api);
void flat_redrive(struct call *c, void *api);
void flat_delete(struct call *c, void *api);
void flat_stats(struct call *c, void *api);
void flat_topics(struct call *c, void *api);
void flat_result(struct call *c, void *api);

#endif
