/*
 * flat_view.h - messages and queues as the flat API shows them.
 *
 * Members of the object that the caller has opened. Times are RFC 3339 in UTC. Where
 * `id` is a number, `uid` stands beside it: ids are beyond 2^53, where JavaScript and
 * others round.
 */
#ifndef API_FLAT_VIEW_H
#define API_FLAT_VIEW_H

#include "base/json_out.h"
#include "engine/op.h"

/* Where it is: namespace, and the queue as `topic` and as `queue`. Callers may send either. */
void flat_view_place(struct json_out *w, struct slice space, struct slice queue);

void flat_view_id(struct json_out *w, uint64_t id);

/* Is its payload here? Else api/stream.h writes it as the last member. */
static inline bool
flat_view_has_payload(const struct message *m)
{
	return m->payload.n > 0 || m->payload_size == 0;
}

/* How a payload is shown, by the parameter `as`. A payload that does not fit the form takes
 * the next one up. One that api/stream.h writes is always base64. */
enum flat_as {
	FLAT_BASE64, /* "payload":"eyJuIjoxfQ==", without the parameter */
	FLAT_TEXT,   /* "text":"{\"n\":1}", if it is UTF-8 */
	FLAT_JSON,   /* "json":{"n":1}, if it is JSON */
	FLAT_NOT_SHOWN
};

/* The form that the parameter asks for. SLU_EINVAL. */
int flat_view_as(struct slice name, enum flat_as *as, struct slu_err *err);

/* What was handed out: message, payload and lease. */
void flat_view_claimed(struct json_out *w, const struct op_row *row,
		       const struct message *m, enum flat_as as);

/* A message as it stands. error: of its last failure, or empty. */
void flat_view_message(struct json_out *w, const struct op_row *row,
		       const struct message *m, struct slice error, enum flat_as as);

void flat_view_queue(struct json_out *w, const struct op_queue *q);
void flat_view_counts(struct json_out *w, const struct op_queue *q); /* by state, and total */

/* Where a page goes on, as text: it may be beyond 2^53. 0: nowhere, no member. */
void flat_view_cursor(struct json_out *w, uint64_t cursor);

bool flat_view_warns(const struct op_queue *q); /* has more than its warn_depth */

/* "ready", "delayed", "leased", "processing" (leased, and extended), "held", "dead". */
const char *flat_view_status(const struct op_row *row);

/* MSG_NONE when there is no state of that name; `processing` is none. */
enum msg_state flat_view_state(struct slice name);

/* Of a parameter: MSG_NONE for all, which is also what is meant when it is left out.
 * SLU_EINVAL. */
int flat_view_only(struct slice name, enum msg_state *only, struct slu_err *err);
extern const char *const flat_view_states[MSG_STATES];
extern const char *const flat_view_reasons[]; /* by enum dead_reason */

#endif
