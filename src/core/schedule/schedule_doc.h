/*
 * schedule_doc.h - the stored form of a schedule: the payload of its message in SCHEDULE_QUEUE.
 *
 *      {"version":1,"name":"nightly","when":"0 2 * * *","zone":"Europe/Berlin","missed":"one","overlap":"skip",
 *       "jitter":30000000000,"paused":false,"message":{"queue":"reports","text":"all"},
 *       "anchor":1763424000000000000,"last":1763510400000000000,"fired":1,"lost":0,"overlapped":0,
 *       "last_id":318497266802130945,"queue":"reports",
 *       "events":[[1763510400000000000,1763510400004000000,318497266802130945,0]]}
 *
 * Times are nanoseconds. An event is tick, at, id, outcome. A document of a later version is refused; members that a
 * reader does not know are ignored.
 */
#ifndef CORE_SCHEDULE_SCHEDULE_DOC_H
#define CORE_SCHEDULE_SCHEDULE_DOC_H

#include "core/schedule/schedule.h"

enum {
	SCHEDULE_DOC_VERSION = 1
};

/* Appends the document; out->failed: no memory. */
void schedule_encode(const struct schedule *s, struct buf *out);

/* room: doc.n bytes for texts. The message of *out points into doc. SLU_ECORRUPT if the document is malformed. */
int schedule_decode(struct slice doc, char *room, struct schedule *out, struct slu_err *err);

#endif
