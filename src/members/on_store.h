/*
 * on_store.h - the requests of a state machine (line, members, settings) as requests to a store.
 *
 *      line_next ──> line_request ──on_store_ask──> store_request ──> pool or store_execute
 *      line_reply <── line_answer <──on_store_answer──┘
 */
#ifndef MEMBERS_ON_STORE_H
#define MEMBERS_ON_STORE_H

#include "line/line.h"
#include "store/pool.h"

/* Fills in the question of `to`; due, urgent and done stay as they are. The bytes of a put are
 * borrowed from r. */
void on_store_ask(struct store_request *to, const struct line_request *r);

/* The answer of a request that was executed; it points into r. A refused request has failed for
 * the state machine: a caller that gives up instead looks at r->result. */
struct line_answer on_store_answer(const struct store_request *r);

#endif
