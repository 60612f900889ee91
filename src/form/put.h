/*
 * put.h - messages out of JSON, as /enqueue takes them, and as schedules keep theirs.
 *
 *      [{"namespace":"payments","queue":"process-refund","priority":1,
 *        "payload":"aGVsbG8=","deliver_after":"2023-10-27T10:00:00Z"}, ...]
 *
 * A single message may be an object instead of an array. A payload is base64 in `payload`, a string in `text`, or any
 * value in `json`, which is stored as written. docs/api.md lists all members.
 */
#ifndef FORM_PUT_H
#define FORM_PUT_H

#include "engine/op.h"
#include "form/arena.h"

struct spelled;

/* Texts point into the JSON or into the arena. */
struct form_puts {
	struct op_put *puts; /* a message, then its copies */
	uint32_t n, room;
	uint32_t items; /* messages without copies, if there is an array */
	bool batch;     /* a message is a member of a batch */
	bool copies;    /* a message has copies: all of them are accepted, or none */
};

/* Returns SLU_EINVAL and *index of the invalid item, or -1; or SLU_ENOMEM. */
int form_puts_decode(struct form_puts *e, struct arena *a, struct slice body,
		     int64_t *index, struct slu_err *err);

/* The same for an object without the namespace, which is a member `what` of something else. */
int form_puts_object(struct form_puts *e, struct arena *a, struct slice object, struct slice space, const char *what,
		     struct slu_err *err);

/* The same one by one, with a payload of bytes. members: the others as an object, or n 0. */
int form_puts_begin(struct form_puts *e, struct arena *a, uint32_t room, struct slu_err *err);
int form_puts_add(struct form_puts *e, struct arena *a, const struct spelled *space, const struct spelled *queue,
		  struct slice payload, struct slice members, struct slu_err *err);

#endif
