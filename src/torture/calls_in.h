/*
 * calls_in.h - how calls are made and read; for calls*.c alone.
 */
#ifndef TORTURE_CALLS_IN_H
#define TORTURE_CALLS_IN_H

#include "base/json_out.h"
#include "base/json_table.h"
#include "torture/calls.h"

#define N_FIELDS(a) (sizeof(a) / sizeof((a)[0]))

/* What is asked: a path, one of our queue, a body. */
void caller_path(struct caller *c, const char *path);
void caller_query(struct caller *c, const char *path);
void caller_body(struct caller *c, struct json_out *w);
void caller_place(struct caller *c, struct json_out *w);
void caller_ms(struct json_out *w, const char *name, unsigned ms);

/* Ask it; e gets its times and its outcome. */
enum outcome caller_ask(struct caller *c, const char *method, struct event *e);

/* Read the answer; false: no memory. */
bool caller_read(struct caller *c, struct json *r);

/* Who a payload is; false: these are not its bytes. */
bool payload_read(struct slice payload, uint64_t *name);

#endif
