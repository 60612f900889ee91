/*
 * request.h - the parameters of an SQS request, read from JSON or from a form.
 *
 *      {"QueueUrl": "...", "Entries": [{"Id": "a", "MessageBody": "hello"}]}
 *      Action=SendMessageBatch&SendMessageBatchRequestEntry.1.Id=a&...MessageBody=hello
 *
 * Both become the same struct. One table has the parameters of all actions: their names do not
 * contradict each other. Parameters of a message are in an entry: entries[0] for an action
 * without a batch. Unknown parameters are ignored, as SDKs send new ones.
 *
 *  SQSREQUEST-1  Texts point into the body or into the arena: the form is decoded into it.
 *  SQSREQUEST-2  The readers check the form of what they read and how much of it there is. An action
 *                checks the values.
 */
#ifndef API_SQS_REQUEST_H
#define API_SQS_REQUEST_H

#include "form/arena.h"
#include "base/bytes.h"

#include <sluice/err.h>

enum {
	SQS_ENTRIES_MAX = 11,    /* one more than a batch may have: the action refuses it */
	SQS_ATTRIBUTES_MAX = 10, /* of a message */
	SQS_NAMES_MAX = 64,      /* of a list of names */
	SQS_PAIRS_MAX = 64       /* of a map of texts */
};

#define SQS_NOT_GIVEN INT64_MIN

struct sqs_pair {
	struct slice name, value;
};

struct sqs_pairs {
	struct sqs_pair *items;
	uint32_t n;
	bool given;
};

struct sqs_names {
	struct slice *items;
	uint32_t n;
	bool given;
};

/* A message attribute; exactly one of the values is given. */
struct sqs_attribute {
	struct slice name, type;
	struct slice text;  /* StringValue */
	struct slice bytes; /* BinaryValue, decoded */
	bool has_text, has_bytes;
};

struct sqs_attributes {
	struct sqs_attribute *items;
	uint32_t n;
	bool given;
};

struct sqs_entry {
	struct slice id; /* of a batch */
	struct slice body, receipt, group, deduplication;
	bool has_body, has_group, has_deduplication, has_receipt;
	int64_t delay, visibility; /* SQS_NOT_GIVEN, as below */
	struct sqs_attributes attributes, system;
};

struct sqs_request {
	struct slice action; /* a form names it; n 0: JSON */
	struct slice queue_url, queue_name, owner, prefix, token, label;
	struct slice source, destination, handle; /* of a move task */
	int64_t max_results, max_messages, wait, rate;
	struct sqs_pairs attributes, tags;
	struct sqs_names names;         /* AttributeNames, MessageSystemAttributeNames */
	struct sqs_names message_names; /* MessageAttributeNames */
	struct sqs_names tag_keys;
	struct sqs_entry *entries; /* at least one, also if none was sent */
	uint32_t n_entries;
	bool batch; /* entries were sent as a list */
};

/* Return SLU_EINVAL with the parameter, or SLU_ENOMEM. */
int sqs_request_json(struct sqs_request *q, struct arena *a, struct slice body, struct slu_err *err);
int sqs_request_form(struct sqs_request *q, struct arena *a, struct slice body, struct slu_err *err);

/* For both readers: the table of parameters. */
enum sqs_kind {
	SQS_TEXT,    /* struct slice */
	SQS_NUMBER,  /* int64_t */
	SQS_NAMES,   /* struct sqs_names */
	SQS_MAP,     /* struct sqs_pairs */
	SQS_MESSAGE, /* struct sqs_attributes */
	SQS_BODIES   /* entries */
};

struct sqs_parameter {
	const char *json;
	const char *form; /* NULL: as json. A list: the name before .1 */
	enum sqs_kind kind;
	bool of_entry; /* a member of struct sqs_entry */
	uint16_t offset;
	uint16_t has;    /* offset of its `has_` member; 0: none */
	const char *key; /* SQS_MAP in a form: the name of the key; NULL: Name */
};

extern const struct sqs_parameter sqs_parameters[];
extern const unsigned sqs_n_parameters;

/* Sets what a request has before anything is read. SLU_ENOMEM. */
int sqs_request_init(struct sqs_request *q, struct arena *a);

/* The i-th entry, zeroed if it is new. NULL: too many, or no memory. */
struct sqs_entry *sqs_request_entry(struct sqs_request *q, uint32_t i);

/* Room for one more. NULL: too many, or no memory. */
struct slice *sqs_names_add(struct sqs_names *l, struct arena *a);
struct sqs_pair *sqs_pairs_add(struct sqs_pairs *l, struct arena *a);
struct sqs_attribute *sqs_attributes_add(struct sqs_attributes *l, struct arena *a);

#endif
