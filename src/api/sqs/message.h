/*
 * message.h - message attributes: checks them, and keeps them as the JSON object that a message has.
 *
 *      SQS                                             the message, and the flat API
 *      color  String    red                            {"color":"red",
 *      size   Number    3                               "size":{"DataType":"Number","StringValue":"3"},
 *      icon   Binary    ...                             "icon":{"DataType":"Binary","BinaryValue":"iVBO..."}}
 *
 * So a consumer of the flat API reads plain texts. The other way a JSON number is a Number, and any other
 * value that is not of this form is a String with its JSON.
 *
 * Names that begin with AWS. are kept for the server: AWS.TraceHeader, AWS.DeduplicationId.
 */
#ifndef API_SQS_MESSAGE_H
#define API_SQS_MESSAGE_H

#include "api/sqs/sqs.h"
#include "engine/op.h"

#define SQS_TRACE_HEADER  "AWS.TraceHeader"
#define SQS_DEDUPLICATED  "AWS.DeduplicationId"
#define SQS_PRIORITY_NAME "Sluice.Priority"

/* Checks an entry to be sent, and fills a put. *bytes: its size. Returns SQS_OK, or a code with its text in err. */
enum sqs_code sqs_message_take(struct apicall *a, struct sqs_entry *e, struct op_put *put, uint64_t *bytes,
			       struct slu_err *err);

/* Reads the attributes of a message, also the attributes that the server sets. Texts point into json or into the arena. Returns
 * false without memory, or if it is not an object. */
bool sqs_message_attributes(struct slice json, struct arena *a, struct sqs_attributes *out);

/* Returns true if SQS may carry the text: UTF-8 without the control characters that XML lacks. */
bool sqs_message_is_text(struct slice body);

#endif
