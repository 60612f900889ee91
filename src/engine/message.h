/*
 * message.h - the record of a message: all that is said about it when it is accepted.
 *
 * The ledger (core/ledger.h) knows where a message stands and nothing textual. What
 * is textual, and what is needed to accept it once more when a log is read back, is
 * in its record, which never changes. Little-endian:
 *
 *      0   1  version: 2 with a trace, else 1
 *      1   1  flags: 1 = the payload is not here but in a file of its own; else 0
 *      2   2  max_attempts
 *      4   4  priority
 *      8   8  id
 *     16   8  number
 *     24   8  accepted   nanoseconds of shard time, as the next three
 *     32   8  due        as it was asked for: one before `accepted` means accepted
 *     40   8  expires    0: never
 *     48   8  keep       how long a result is kept
 *     56   8  length of the payload
 *     64   8  number of the file that has the payload, or 0
 *     72   1  length of the namespace, 1 .. 128
 *     73   1  length of the queue, 1 .. 128
 *     74   2  length of the key
 *     76   2  length of the idempotency key
 *     78   1  length of the correlation id
 *     79   1  length of the content type
 *     80   4  length of the attributes
 *     84   4  the file's mark (engine/log_file.h), or 0
 *     88   2  only in version 2: length of the trace
 *      .   n  namespace, queue, key, idempotency key, correlation id, content type,
 *             attributes, trace, payload: without ends or gaps, to the end of the record
 *
 *  M1  A record has one meaning and a message has one record: lengths add up to the
 *      record's, what is said to be zero is.
 *  M2  Decoding reads nothing beyond the record, whatever the bytes are. That they
 *      are the bytes that were written is for the engine's checksum to say.
 *  M3  The payload is last: who has the first message_head() bytes can pass the
 *      payload on as it comes.
 */
#ifndef ENGINE_MESSAGE_H
#define ENGINE_MESSAGE_H

#include "base/bytes.h"

#include <sluice/err.h>

enum {
	MESSAGE_VERSION = 1,
	MESSAGE_TRACED = 2, /* of a record with a trace */
	MESSAGE_FIXED = 88, /* bytes before the first text, of version 1 */
	MESSAGE_NAME_MAX = 128,
	MESSAGE_KEY_MAX = 256, /* ordering and idempotency keys */
	MESSAGE_CORRELATION_MAX = 128,
	MESSAGE_TYPE_MAX = 128,
	MESSAGE_ATTRIBUTES_MAX = 64 << 10,
	MESSAGE_TRACE_PARENT = 55, /* the first bytes of a trace: its traceparent */
	MESSAGE_TRACE_MAX = 55 + 512,
	MESSAGE_PAYLOAD_MAX = 1 << 30
};

struct message {
	uint64_t id;
	uint64_t number;   /* from the ledger, as the next three */
	slu_time accepted; /* when */
	slu_time due;      /* as it was asked for; it counts from accepted on */
	slu_time expires;  /* 0: never */
	slu_time keep;     /* how long its result is kept; 0: not */
	int32_t prio;
	uint16_t max_attempts; /* 0: the queue's */
	uint64_t file;         /* that has the payload, or 0: it is in the record */
	uint64_t payload_size; /* wherever it is; payload.n unless file is set */
	uint32_t mark;         /* of that file: another one of its number is not it */
	uint64_t digest;       /* message_digest of a payload that is in a file; 0: not known. Not in
				* the record */
	const void *keeper;    /* the engine that has the file, while it is on its way in, and can
				* alone accept it; not in the record */

	struct slice space; /* namespace; folded, as the queue */
	struct slice queue;
	struct slice key; /* n 0: none, as all below */
	struct slice idem;
	struct slice correlation;
	struct slice type;       /* of the payload: text/plain */
	struct slice attributes; /* a JSON object, as it came */
	struct slice trace;      /* traceparent, tracestate: core/trace.h */
	struct slice payload;    /* n 0 when file is set */
};

/* A payload under an idempotency key, for queues that are strict: the same on every
 * machine, never 0. It guards against mistakes, not against somebody who looks for two
 * payloads with the same digest. */
uint64_t message_digest(struct slice payload);

/* SLU_EINVAL, or SLU_ETOOBIG: what is missing or longer than a record may have. For
 * edges that accept messages. Says nothing about characters. */
int message_check(const struct message *m, struct slu_err *err);

/* The length of the record of a message that passes message_check; and of what comes
 * before the payload. */
size_t message_size(const struct message *m);
size_t message_head(const struct message *m);

/* Write message_size(m) bytes, or only those before the payload. */
void message_encode(const struct message *m, char *out);
void message_encode_head(const struct message *m, char *out);

/* The slices of out point into record. SLU_ECORRUPT when it is none; out is then
 * undefined. */
int message_decode(struct slice record, struct message *out, struct slu_err *err);

/* The same from message_head() bytes of it or more; the payload is left empty but
 * payload_size is set. SLU_ETOOBIG when head is too short, and out->payload_size is
 * how long it has to be. */
int message_decode_head(struct slice head, struct message *out, struct slu_err *err);

#endif
