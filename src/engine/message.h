/*
 * message.h - the record of a message, written when the message is accepted.
 *
 * The ledger (core/ledger/ledger.h) has the state of a message and no text. The record has
 * the texts, and all that a replay of the log needs to accept the message again; it never
 * changes. Little-endian:
 *
 *      0   1  version: 3 with fields, else 2 with a trace, else 1
 *      1   1  flags: 1 = the payload is in a file of its own; 0 = it is in the record
 *      2   2  max_attempts
 *      4   4  priority
 *      8   8  id
 *     16   8  number
 *     24   8  accepted   nanoseconds of shard time, as the next three
 *     32   8  due        as requested: a time before `accepted` means `accepted`
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
 *     84   4  the file's mark (engine/log/file.h), or 0
 *     88   2  only in versions 2 and 3: length of the trace, in version 3 possibly 0
 *     90   2  only in version 3: length of the fields
 *      .   n  namespace, queue, key, idempotency key, correlation id, content type,
 *             attributes, trace, fields, payload: without NULs or gaps, to the end of the record
 *
 * A field is a tag (1), a length of 1 or more (1) and its bytes; tags rise:
 *
 *      1  share, or kind: core/queue/kind.h
 *      2  value      of the attribute that the queue limits (limit_attribute), when it was accepted
 *     10  rule       the admission rule that applied (core/queue/rules.h)
 *     20  source     of a dead letter that came from another queue: that queue
 *     21  sent       when that queue accepted it
 *     22  reason     why it died (enum dead_reason)
 *     23  error      its last error, cut after 255 bytes
 *     30  lease      of its own; 8 bytes, as every number
 *     31  run        longest run
 *     32  retry      policy of its own: core/queue/terms.h
 *     33  retry base
 *     34  retry max
 *     35  unique     until when it is unique: TERMS-1 of core/queue/terms.h
 *     36  unique for
 *     50  batch      that it is a member of: engine/msgbatch.h
 *
 *  MESSAGE-1  A record has one meaning, and a message has one record: the lengths add up to
 *      the length of the record, and unused fields are zero.
 *  MESSAGE-2  Decoding never reads beyond the record, whatever its bytes are. The engine's
 *      checksum shows whether the bytes are those that were written.
 *  MESSAGE-3  The payload is last: a reader with the first message_head() bytes can pass the
 *      payload on in pieces.
 */
#ifndef ENGINE_MESSAGE_H
#define ENGINE_MESSAGE_H

#include "base/bytes.h"
#include "core/queue/kind.h"
#include "core/queue/terms.h"

#include <sluice/err.h>

struct hash_stream;

enum {
	MESSAGE_VERSION = 1,
	MESSAGE_TRACED = 2, /* version of a record with a trace */
	MESSAGE_TAGGED = 3, /* version of a record with fields */
	MESSAGE_FIXED = 88, /* bytes before the first text in version 1 */
	MESSAGE_NAME_MAX = 128,
	MESSAGE_KEY_MAX = 256, /* ordering and idempotency keys */
	MESSAGE_SHARE_MAX = 128,
	MESSAGE_RULE_MAX = 255,
	MESSAGE_VALUE_MAX = 128,
	MESSAGE_FIELDS_MAX = 2 + MESSAGE_SHARE_MAX + 2 + MESSAGE_VALUE_MAX + 2 + MESSAGE_RULE_MAX + 2 + MESSAGE_NAME_MAX + 10 * (2 + 8) +
			     2 + 255, /* bytes of all fields */
	MESSAGE_CORRELATION_MAX = 128,
	MESSAGE_TYPE_MAX = 128,
	MESSAGE_ATTRIBUTES_MAX = 64 << 10,
	MESSAGE_TRACE_PARENT = 55, /* the first bytes of a trace: its traceparent */
	MESSAGE_TRACE_MAX = 55 + 512,
	MESSAGE_ERROR_MAX = 255, /* of a dead letter of another queue */
	MESSAGE_PAYLOAD_MAX = 1 << 30
};

struct engine;

struct message {
	uint64_t id;
	uint64_t number;   /* from the ledger, like accepted, due and expires */
	slu_time accepted; /* when the ledger accepted it */
	slu_time due;      /* as requested; a time before accepted means accepted */
	slu_time expires;  /* 0: never */
	slu_time keep;     /* how long the result is kept; 0: it is not */
	int32_t prio;
	uint16_t max_attempts; /* 0: the queue's */
	uint64_t file;         /* number of the payload's file; 0: the payload is in the record */
	uint64_t payload_size; /* payload.n unless file is set */
	uint32_t mark;         /* of that file; another file of this number has another mark */
	uint64_t digest;       /* message_digest of a payload in a file; 0: unknown; not in the
				* record */
	struct engine *keeper; /* before it is accepted: the engine that has the file, and the only
				* one that can accept the message; not in the record */

	struct slice space; /* namespace; folded, like the queue */
	struct slice queue;
	struct slice key; /* n 0: none; the same below */
	struct slice idem;
	struct slice correlation;
	struct slice type;       /* of the payload: text/plain */
	struct slice attributes; /* a JSON object, as received */
	struct slice trace;      /* traceparent, tracestate: core/trace.h */
	struct slice share;      /* whose turn it takes; or its kind, as KIND-1 of core/queue/kind.h says */
	struct slice value;      /* of the attribute that the queue limits; set by the engine */
	struct terms terms;      /* of its own: lease, retries, longest run */
	struct slice source;     /* a dead letter of another queue: that queue; with the next three */
	slu_time sent;           /* when that queue accepted it */
	uint64_t reason;         /* enum dead_reason */
	struct slice error;      /* its last error */
	struct slice rule;       /* the admission rule that applied; set by the engine */
	struct slice payload;    /* n 0 when file is set */
};

/* The digest of a payload with an idempotency key, for strict queues: the same on every
 * machine, never 0. It detects mistakes; it does not resist an attacker. */
uint64_t message_digest(struct slice payload);

/* The same of a payload that arrives piece by piece: begin, hash_more of base/hash.h, end. */
void message_digest_begin(struct hash_stream *s);
uint64_t message_digest_end(const struct hash_stream *s);

/* SLU_EINVAL if a text is missing, SLU_ETOOBIG if one is too long for a record. Does not check
 * characters. */
int message_check(const struct message *m, struct slu_err *err);

/* The length of the record of a message that passes message_check, and of the part before the
 * payload. */
size_t message_size(const struct message *m);
size_t message_head(const struct message *m);

/* Write message_size(m) bytes, or the message_head(m) bytes before the payload. */
void message_encode(const struct message *m, char *out);
void message_encode_head(const struct message *m, char *out);

/* The slices of out point into record. SLU_ECORRUPT if the record is malformed; out is then
 * undefined. */
int message_decode(struct slice record, struct message *out, struct slu_err *err);

/* The same from at least message_head() bytes of the record: out->payload is empty, and
 * payload_size is set. SLU_ETOOBIG if head is too short; out->payload_size is then the length
 * that it needs. */
int message_decode_head(struct slice head, struct message *out, struct slu_err *err);

/* The id in a record that may be malformed, and whether the record has an idempotency key; 0: it is malformed. */
uint64_t message_id_of(struct slice record, bool *has_key);

#endif
