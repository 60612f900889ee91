/*
 * peer_bytes.h - a message of another node, and the records that it has or names.
 *
 *      message ──> op_decode_answer ──> op->rows[i].record ──> engine_read, op_unpin
 *                                       op->rows[i].payload ──> the file, by the engine of the lane
 *
 * The message stays in memory while one of its records is pinned. Any thread.
 */
#ifndef PEER_PEER_BYTES_H
#define PEER_PEER_BYTES_H

#include "engine/engine.h"

struct peer_bytes {
	_Atomic uint32_t pins;
	size_t n;
	char p[];
};

/* The engine of answers that came from another node: it only reads and unpins. op_ref.sum is 0, or
 * the code with which the owner failed to read the record; then the bytes are the text of the error. */
extern struct engine peer_engine;

/* Room for n bytes, with one pin. Returns NULL if memory is out. */
struct peer_bytes *peer_bytes_new(size_t n);

/* Pins `size` bytes at `at`. */
struct op_ref peer_bytes_pin(struct peer_bytes *b, size_t at, size_t size, int rc);

/* Pins a payload file that the message names, by the engine of its lane. Returns SLU_EDOWN, SLU_ENOMEM. */
int peer_bytes_pin_stored(struct engine *lane, const struct engine_stored *file, struct op_ref *out,
			  struct slu_err *err);

/* Ends a pin of the message; the last one frees it. NULL is fine. */
void peer_bytes_unpin(struct peer_bytes *b);

#endif
