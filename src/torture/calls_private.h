/*
 * calls_private.h - makes calls and reads answers; for calls*.c only.
 */
#ifndef TORTURE_CALLS_PRIVATE_H
#define TORTURE_CALLS_PRIVATE_H

#include "base/json/json_out.h"
#include "base/json/json_table.h"
#include "torture/calls.h"

#define N_FIELDS(a) (sizeof(a) / sizeof((a)[0]))

/* Set the request: a path, a path of the queue, a body. */
void caller_path(struct caller *c, const char *path);
void caller_query(struct caller *c, const char *path);
void caller_body(struct caller *c, struct json_out *w);
void caller_place(struct caller *c, struct json_out *w);
void caller_ms(struct json_out *w, const char *name, unsigned ms);

/* Sends the request; e gets the times and the outcome. */
enum outcome caller_ask(struct caller *c, const char *method, struct event *e);

/* Sends a request that may happen twice, and requires the status 200. */
int caller_want(struct caller *c, const char *method, struct slu_err *err);

/* Records a row for each message that the path lists, of the queue of the caller. */
int caller_list(struct caller *c, const char *path, const char *more, enum event_kind kind, struct slu_err *err);

/* Prepares to read the answer. Returns false if memory runs out. */
bool caller_read(struct caller *c, struct json *r);

/* Reads the answer, which is one object. Returns SLU_ENOMEM; SLU_EINVAL if a required member is missing. */
int caller_object(struct caller *c, const struct json_field *fields, size_t n, void *out,
		  struct slu_err *err);

/* Writes a message to push; sets what the event of its push says about it. */
void caller_out_item(struct caller *c, struct json_out *w, const struct push_item *item);
void caller_note_item(struct event *e, const struct push_item *item);

/* Reads the name in a payload. Returns false if the bytes do not match it. */
bool payload_read(struct slice payload, uint64_t *name);

#endif
