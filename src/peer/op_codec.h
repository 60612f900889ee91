/*
 * op_codec.h - the question and the answer of an op as bytes, for another node.
 *
 *      entry node                                    owner of the shard
 *      op ── op_encode_question ──> message ──> op_decode_question ──> op of its own
 *                                                                         │ broker_post
 *      op <── op_decode_answer  <── message <── op_encode_answer     <── done
 *
 * A message:
 *      0  1  version: OP_CODEC_VERSION
 *      1  1  number of the verb (op_wire)
 *      2  .  fields: tag (1 byte), value; in the order of their tags
 *
 * Values are numbers and texts (peer/wire.h). A list is the number of its elements, then the fields of
 * each element and a byte 0. A record (struct op_ref) is a code, 0 or why it cannot be read, and a text;
 * or OP_CODEC_STORED and number, mark and size of a payload file. op_fields.c has the fields.
 *
 *  CODEC-1  A message has one form: a field that is zero is absent. So an absent field is set to zero.
 *  CODEC-2  A message of another version, an unknown verb and an unknown field are refused by name.
 *  CODEC-3  Decoding never reads behind the message, and allocates in proportion to the message or to
 *           a room of at most OP_CODEC_LIST elements, whatever its bytes are.
 *  CODEC-4  An id of a new message is no part of its question: the owner of the shard gives ids.
 *  CODEC-5  The bytes of a payload file are no part of a message, only its name: both nodes use the file in
 *           the store (struct engine_away).
 *  CODEC-6  If the answer of an op that changes nothing is malformed, its question stays as it was: the op can be
 *           sent again.
 */
#ifndef PEER_OP_CODEC_H
#define PEER_OP_CODEC_H

#include "peer/peer_bytes.h"

enum {
	OP_CODEC_VERSION = 1,
	OP_CODEC_LIST = 16384,         /* elements of a list */
	OP_CODEC_MAX = 128 << 20,      /* bytes of a message */
	OP_CODEC_STORED = SLU_CODE_END /* the code of a record that is a payload file */
};

/* Returns whether another node can run the op. An op whose payload is in a file that the owner of the
 * shard cannot name cannot. */
bool op_travels(const struct op *op);

/* Appends the question. out->failed: no memory, or out is too small. */
void op_encode_question(const struct op *op, struct buf *out);

/* Makes an op; its texts point into the message. The caller sets done and owner. After a failure
 * the op has nothing to release.
 *   SLU_EINVAL  a malformed message
 *   SLU_ENOMEM */
int op_decode_question(struct op *op, struct slice message, struct slu_err *err);

/* Frees what op_decode_question has allocated, and unpins records. A zeroed op is fine. */
void op_release_question(struct op *op);

/* Appends the answer; reads the records that it refers to. A record that cannot be read is an error in
 * its place. SLU_EBUSY: a read would block, and may_block is false; out is unchanged. */
int op_encode_answer(const struct op *op, bool may_block, struct buf *out);

/* Sets the answer of the op whose question was sent. Its records pin the message, or a file by `lane`,
 * the engine of the op's lane. After a failure the op has no rows and no code, and nothing is pinned (CODEC-6).
 *   SLU_EINVAL  a malformed message, or the answer to another question
 *   SLU_ENOMEM */
int op_decode_answer(struct op *op, struct peer_bytes *message, struct engine *lane, struct slu_err *err);

#endif
