/*
 * payload.h - an incoming payload: bytes as they arrive, then a message that has them.
 *
 *      payload_open                    any thread that may wait for a disk
 *      payload_write, payload_write    as bytes arrive
 *      payload_seal(p, &put.m)         the payload is complete: the message has it
 *      ... the op is posted, and answered
 *      payload_close                   in any case
 *
 * A small payload stays in memory and becomes m.payload. A payload that does not fit into a
 * record of the engine goes to a file as it arrives, and m.file names the file: memory does
 * not grow with the payload. An engine without files keeps every payload in memory.
 *
 *  PAYLOAD-1  After payload_seal the file is durable, so the op may be posted. The engine owns the
 *      file once it has accepted the message. It removes a file that no message took, at the
 *      latest when it is opened again.
 *  PAYLOAD-2  m.payload points into struct payload, which stays until the op is answered.
 *
 * engine_read of op_row.payload reads a payload, piece by piece.
 */
#ifndef ENGINE_PAYLOAD_H
#define ENGINE_PAYLOAD_H

#include "engine/engine.h"

struct payload;

/* Returns SLU_ENOMEM. */
int payload_open(struct engine *e, struct payload **out, struct slu_err *err);

/* SLU_ETOOBIG if the payload has more than MESSAGE_PAYLOAD_MAX bytes; SLU_EFULL, SLU_EDOWN,
 * SLU_ENOMEM. After a failure the payload can only be closed. */
int payload_write(struct payload *p, const void *bytes, size_t n, struct slu_err *err);

/* Sets payload, payload_size, file and mark of m. */
int payload_seal(struct payload *p, struct message *m, struct slu_err *err);

void payload_close(struct payload *p); /* NULL is fine */

/* True if a payload of n bytes needs a file. Otherwise it can become m.payload directly. */
bool payload_is_large(const struct engine *e, uint64_t n);

/* True if the engine keeps unfinished payloads of any size in memory. */
bool payload_is_in_memory(const struct engine *e);

/* Write all of m.payload, which is large, to a file. Close *out after the op. */
int payload_store(struct engine *e, struct message *m, struct payload **out,
		  struct slu_err *err);

#endif
