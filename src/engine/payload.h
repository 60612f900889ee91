/*
 * payload.h - a payload on its way in: bytes, as many as come, then a message that has
 * them.
 *
 *      payload_open                    any thread that may wait for a disk
 *      payload_write, payload_write    as they come
 *      payload_seal(p, &put.m)         it is whole: the message has it
 *      ... the op is posted, and answered
 *      payload_close                   however that ended
 *
 * What is small is gathered in memory and becomes m.payload. What is more than the
 * engine takes in a record goes to a file as it comes, and m.file names it: memory does
 * not grow with the payload. An engine without files has all of it in memory.
 *
 *  P1  After payload_seal a file is durable, so the op may be posted. The engine has the
 *      file from the moment that it accepts the message; one that no message took is
 *      removed, at the latest when the engine is opened again.
 *  P2  m.payload points into the payload, or into what was written last (below): both
 *      stay until the op is answered.
 *
 * How it is read back: engine_read of op_row.payload, piece by piece.
 */
#ifndef ENGINE_PAYLOAD_H
#define ENGINE_PAYLOAD_H

#include "engine/engine.h"

struct payload;

/* SLU_ENOMEM. */
int payload_open(struct engine *e, struct payload **out, struct slu_err *err);

/* SLU_ETOOBIG: more than MESSAGE_PAYLOAD_MAX. SLU_EFULL, SLU_EDOWN, SLU_ENOMEM. After a
 * failure nothing is left but to close it. */
int payload_write(struct payload *p, const void *bytes, size_t n, struct slu_err *err);

/* Sets payload, payload_size, file and mark of m. */
int payload_seal(struct payload *p, struct message *m, struct slu_err *err);

void payload_close(struct payload *p); /* NULL is fine */

/* Does a payload of n bytes need all this? Else give it to the message as it is. */
bool payload_is_large(const struct engine *e, uint64_t n);

/* Does an unfinished payload of any size stay in memory? */
bool payload_is_in_memory(const struct engine *e);

/* All of a large payload at once: m.payload goes to a file. close *out after the op. */
int payload_store(struct engine *e, struct message *m, struct payload **out,
		  struct slu_err *err);

#endif
