/*
 * sqs.h - the SQS dialect: what the clients of Amazon SQS speak, JSON 1.0 and Query.
 *
 *      POST /                     X-Amz-Target: AmazonSQS.SendMessage, a JSON object    newer SDKs
 *      POST /000000000000/jobs    Action=SendMessage&MessageBody=..., answered in XML   older SDKs
 *
 *      bytes ──> request.h ──> struct sqs_request ──> an action ──> ops ──> out.h ──> bytes
 *                JSON or form                          (a row of actions)    JSON or XML
 *
 * An account is a namespace; 000000000000 is `default`. The last two segments of a QueueUrl are
 * account and queue; the server ignores the rest of it. A path may begin with /sqs.
 *
 *  SQS-1  The answer has the protocol of the request, also a refusal.
 *  SQS-2  A receipt handle is a receipt of base/receipt.h.
 *  SQS-3  An action runs with the rights of its row in the namespace of its queue (APICALL-5).
 *  SQS-4  A request with a signature reaches no action before the signature is checked
 *         (auth/sigv4.h): the guard knows the access key only.
 */
#ifndef API_SQS_SQS_H
#define API_SQS_SQS_H

#include "api/dialect.h"
#include "api/handler.h"
#include "api/rows.h"
#include "api/sqs/request.h"
#include "core/names.h"

enum {
	SQS_BATCH = 10,             /* entries of a batch */
	SQS_MESSAGE_MAX = 1 << 20,  /* bytes of a message with its attributes, and of a batch */
	SQS_BODY_MAX = 4 << 20,     /* bytes of a request: a form has three for some characters */
	SQS_NAME_MAX = 80,          /* of a queue */
	SQS_URL = 640,              /* a QueueUrl, with the NUL */
	SQS_WAIT_MAX = 20,          /* seconds of a long poll */
	SQS_VISIBILITY_MAX = 43200, /* seconds */
	SQS_RETENTION = 345600,     /* seconds: shown if no retention was set */
	SQS_DEDUPLICATION = 5 * 60, /* seconds */
	SQS_ATTEMPTS = 65535,       /* of a queue without a redrive policy */
	SQS_RECEIVES_MAX = 1000,    /* maxReceiveCount */
	SQS_REQUEST_ID = 37         /* with the NUL */
};

/* Refusals: the shape in JSON, the code in Query, the status, what SDKs show. */
/* clang-format off */
#define SQS_PREFIX "AWS.SimpleQueueService."
#define SQS_ERRORS(X) \
	X(NO_QUEUE,          "QueueDoesNotExist",            SQS_PREFIX "NonExistentQueue",             400) \
	X(NAME_EXISTS,       "QueueNameExists",              "QueueAlreadyExists",                      400) \
	X(PURGING,           "PurgeQueueInProgress",         SQS_PREFIX "PurgeQueueInProgress",         403) \
	X(NOT_IN_FLIGHT,     "MessageNotInflight",           SQS_PREFIX "MessageNotInflight",           400) \
	X(TOO_MANY_ENTRIES,  "TooManyEntriesInBatchRequest", SQS_PREFIX "TooManyEntriesInBatchRequest", 400) \
	X(EMPTY_BATCH,       "EmptyBatchRequest",            SQS_PREFIX "EmptyBatchRequest",            400) \
	X(IDS_NOT_DISTINCT,  "BatchEntryIdsNotDistinct",     SQS_PREFIX "BatchEntryIdsNotDistinct",     400) \
	X(BATCH_TOO_LONG,    "BatchRequestTooLong",          SQS_PREFIX "BatchRequestTooLong",          400) \
	X(BAD_ENTRY_ID,      "InvalidBatchEntryId",          SQS_PREFIX "InvalidBatchEntryId",          400) \
	X(UNSUPPORTED,       "UnsupportedOperation",         SQS_PREFIX "UnsupportedOperation",         400) \
	X(BAD_RECEIPT,       "ReceiptHandleIsInvalid",       "ReceiptHandleIsInvalid",                  404) \
	X(BAD_ATTRIBUTE,     "InvalidAttributeName",         "InvalidAttributeName",                    400) \
	X(BAD_ATTRIBUTE_VALUE, "InvalidAttributeValue",      "InvalidAttributeValue",                   400) \
	X(BAD_CONTENTS,      "InvalidMessageContents",       "InvalidMessageContents",                  400) \
	X(OVER_LIMIT,        "OverLimit",                    "OverLimit",                               403) \
	X(THROTTLED,         "RequestThrottled",             "RequestThrottled",                        403) \
	X(NO_RESOURCE,       "ResourceNotFoundException",    "ResourceNotFoundException",               404) \
	X(BAD_ADDRESS,       "InvalidAddress",               "InvalidAddress",                          404) \
	X(BAD_VALUE,         "InvalidParameterValue",        "InvalidParameterValue",                   400) \
	X(BAD_PARAMETERS,    "InvalidParameterCombination",  "InvalidParameterCombination",             400) \
	X(MISSING,           "MissingParameter",             "MissingParameter",                        400) \
	X(NO_ACTION,         "InvalidAction",                "InvalidAction",                           400) \
	X(MALFORMED,         "SerializationException",       "MalformedInput",                          400) \
	X(NO_TOKEN,          "InvalidSecurity",              "InvalidSecurity",                         403) \
	X(BAD_KEY,           "InvalidClientTokenId",         "InvalidClientTokenId",                    403) \
	X(BAD_SIGNATURE,     "SignatureDoesNotMatch",        "SignatureDoesNotMatch",                   403) \
	X(DENIED,            "AccessDeniedException",        "AccessDenied",                            403) \
	X(INTERNAL,          "InternalFailure",              "InternalFailure",                         500) \
	X(UNAVAILABLE,       "ServiceUnavailable",           "ServiceUnavailable",                      503)
/* clang-format on */

enum sqs_code {
	SQS_OK,
#define X(name, ...) SQS_##name,
	SQS_ERRORS(X)
#undef X
	SQS_CODES
};

struct sqs_error {
	const char *shape;
	const char *query;
	unsigned status;
};

extern const struct sqs_error sqs_errors[SQS_CODES];

/* What an action has to know of its queue: queue.h finds it. */
struct sqs_facts {
	bool content_based; /* the deduplication id is the digest of the body */
	bool group_scope;   /* deduplication ids count in their group */
	uint32_t delay;     /* seconds, of a message that names none */
	uint32_t wait;      /* seconds, of a receive that names none */
	uint32_t max_bytes; /* of a message */
};

struct sqs_action;

/* apicall.state of every action. */
struct sqs_call {
	struct sqs_request q;
	const struct sqs_action *action;
	bool xml;                /* SQS-1 */
	char base[320];          /* of QueueUrls: "http://localhost:7171/sqs" */
	char account[NAME_TEXT]; /* as the client wrote it */
	char space[NAME_TEXT];
	char queue[NAME_TEXT]; /* folded; empty: the action names none */
	char as[NAME_TEXT];    /* as the client wrote it */
	struct sqs_facts facts;
	void (*then)(struct apicall *a); /* queue.h, store.h: what comes next */
	void *own;                       /* of the action */
	struct rows rows;
	bool kept; /* receive: the whole answer was written */
};

struct sqs_action {
	const char *name;
	void (*run)(struct apicall *a);
	unsigned needs; /* auth/guard.h */
	bool queue;     /* has a QueueUrl */
	bool waits;     /* may wait: exchange_hold */
};

static inline struct sqs_call *
sqs_of(struct apicall *a)
{
	return a->state;
}

static inline bool
sqs_is_fifo(const char *queue)
{
	const size_t n = strlen(queue);

	return n > 5 && strcmp(queue + n - 5, ".fifo") == 0;
}

/* Answers with an error of this dialect. */
void sqs_refuse(struct apicall *a, enum sqs_code code, const char *fmt, ...) SLU_PRINTF(3, 4);

/* The error of this dialect that describes an SLU_ code best. */
enum sqs_code sqs_code_of(int rc);

/* Refuses and returns true if the op failed. */
bool sqs_failed(struct apicall *a);

/* Takes the queue of a URL or a path: its last two segments. SLU_EINVAL. */
int sqs_take_url(struct sqs_call *s, struct slice url, struct slu_err *err);

/* Writes the URL of a queue of the namespace of the call. Returns out. */
const char *sqs_url(const struct sqs_call *s, const char *shown, char out[static SQS_URL]);

/* Writes the ARN of a queue: arn:aws:sqs:us-east-1:ACCOUNT:QUEUE. Returns out. */
const char *sqs_arn(const struct sqs_call *s, const char *shown, char out[static SQS_URL]);

/* The actions: each runs with the request in s->q, and answers. */
void sqs_create(struct apicall *a);
void sqs_delete_queue(struct apicall *a);
void sqs_get_url(struct apicall *a);
void sqs_list(struct apicall *a);
void sqs_purge(struct apicall *a);
void sqs_get_attributes(struct apicall *a);
void sqs_set_attributes(struct apicall *a);
void sqs_tag(struct apicall *a);
void sqs_untag(struct apicall *a);
void sqs_list_tags(struct apicall *a);
void sqs_send(struct apicall *a);
void sqs_receive(struct apicall *a);
void sqs_delete(struct apicall *a);
void sqs_change_visibility(struct apicall *a);
void sqs_dead_letter_sources(struct apicall *a);
void sqs_start_move(struct apicall *a);
void sqs_list_moves(struct apicall *a);
void sqs_cancel_move(struct apicall *a);
void sqs_unsupported(struct apicall *a);

extern const struct dialect sqs_dialect;

#endif
