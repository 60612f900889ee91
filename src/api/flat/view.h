/*
 * view.h - messages and queues as the flat API shows them.
 *
 * All functions write members of an object that the caller has opened. Times are RFC 3339 in
 * UTC. `uid` follows every numeric `id`: ids are above 2^53, where JavaScript and others
 * round.
 */
#ifndef API_FLAT_VIEW_H
#define API_FLAT_VIEW_H

#include "base/json/json_out.h"
#include "engine/op.h"

/* The namespace, and the queue as `topic` and as `queue`: callers may send either. */
void flat_view_place(struct json_out *w, struct slice space, struct slice queue);

void flat_view_id(struct json_out *w, uint64_t id);

enum {
	FLAT_PLACE = 160, /* bytes of the three members, if the names are not long */
	FLAT_FACTS = 512  /* bytes of the members of struct flat_facts, unless the content type is long */
};

/* False: api/stream.h writes the payload as the last member. */
static inline bool
flat_view_has_payload(const struct message *m)
{
	return m->payload.n > 0 || m->payload_size == 0;
}

/* The form of a payload, by the parameter `as`. A payload that does not fit a form has the
 * form before it in this list. A payload that api/stream.h writes is always base64. */
enum flat_as {
	FLAT_BASE64, /* "payload":"eyJuIjoxfQ==", without the parameter */
	FLAT_TEXT,   /* "text":"{\"n\":1}", if it is UTF-8 */
	FLAT_JSON,   /* "json":{"n":1}, if it is JSON */
	FLAT_NOT_SHOWN
};

/* The form of a value of `as`. Returns SLU_EINVAL. */
int flat_view_as(struct slice name, enum flat_as *as, struct slu_err *err);

/* What flat_view_place wrote last, for messages that follow each other in one answer. Zeroed: nothing. */
struct flat_place {
	size_t n;            /* bytes of text */
	size_t space, queue; /* bytes of the two names in it, which need no escapes */
	size_t queue_at;     /* where the queue is */
	char text[FLAT_PLACE];
};

/* The members from `priority` to `deliver_after` that were written last, of a message without others there. Messages of one
 * enqueue have them in common. Zeroed: nothing. */
struct flat_facts {
	size_t n; /* bytes of text */
	slu_time accepted, sent, due;
	int32_t prio;
	uint16_t attempts, failures, max_attempts;
	uint16_t type; /* bytes of the content type */
	char type_text[MESSAGE_TYPE_MAX];
	char text[FLAT_FACTS];
};

/* What messages of one answer have from the message before. */
struct flat_before {
	struct flat_place place;
	struct flat_facts facts;
};

/* A claimed message: message, payload and lease. checkpoint: its state, JSON, or empty. before: of the answer, or NULL. */
void flat_view_claimed(struct json_out *w, const struct op_row *row, const struct message *m, struct slice checkpoint,
		       enum flat_as as, struct flat_before *before);

/* The same as an item of PACKED_MESSAGES (api/flat/packed.h), which has no receipt. */
void flat_view_packed(struct buf *out, const struct op_row *row, const struct message *m, struct slice checkpoint);

/* A message in its current state, without what settles it. error: the text of its last failure, or empty. */
void flat_view_message(struct json_out *w, const struct op_row *row,
		       const struct message *m, struct slice error, enum flat_as as);

/* Writes paused_by, pause_reason and paused_until: what is known of them. */
void flat_view_pause(struct json_out *w, const struct pause_note *p);

void flat_view_queue(struct json_out *w, const struct op_queue *q);
void flat_view_counts(struct json_out *w, const struct op_queue *q); /* by state, and total */

/* The same as flat_view_queue with the age of the oldest message, and what happened since the start. */
void flat_view_queue_details(struct json_out *w, const struct op_queue *q);
void flat_view_since(struct json_out *w, const struct ledger_totals *t);

/* The cursor of the next page, as text: it may be above 2^53. 0: writes nothing. */
void flat_view_cursor(struct json_out *w, uint64_t cursor);

bool flat_view_warns(const struct op_queue *q); /* more messages than warn_depth, or an older ready one than warn_age */

/* "ready", "delayed", "leased", "processing" (leased, and extended), "held", "dead". */
const char *flat_view_status(const struct op_row *row);

/* The state of a name, or MSG_NONE; `processing` is not a state. */
enum msg_state flat_view_state(struct slice name);

/* The state of the parameter `state`. MSG_NONE: all, also if it is left out. Returns
 * SLU_EINVAL. */
int flat_view_only(struct slice name, enum msg_state *only, struct slu_err *err);
extern const char *const flat_view_states[MSG_STATES];
extern const char *const flat_view_reasons[DEAD_REASONS]; /* by enum dead_reason */

#endif
