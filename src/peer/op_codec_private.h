/*
 * op_codec_private.h - what the parts of the codec share; for op_codec.c and op_values.c alone.
 */
#ifndef PEER_OP_CODEC_PRIVATE_H
#define PEER_OP_CODEC_PRIVATE_H

#include "peer/op_codec.h"
#include "peer/op_fields.h"
#include "peer/wire.h"

/* One message that is read or written. */
struct codec {
	const struct op *op;
	uint64_t verb; /* its bit */
	bool answer;

	/* Writing. */
	struct buf *out;
	bool may_block;
	int rc; /* SLU_EBUSY: a record could not be read at once */

	/* Reading. */
	struct op *into;
	struct wire_reader w;
	struct peer_bytes *message; /* of an answer */
	struct engine *lane;        /* of an answer */
	struct slu_err *err;
};

/* Writes the fields of base that are not zero. */
void op_put_fields(struct codec *c, const struct op_field *fields, unsigned n, const void *base);

/* Reads fields until a byte 0 (ends) or the end of the message. Returns SLU_EINVAL if they are malformed, SLU_ENOMEM. */
int op_get_fields(struct codec *c, const struct op_field *fields, unsigned n, void *base, bool ends);

#endif
