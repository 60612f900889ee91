/*
 * attributes.h - the attributes of a queue: one row each.
 *
 * Some are settings of the policy (VisibilityTimeout is `lease`), the others are kept in the document of the
 * queue (store.h). Values are texts on the wire, numbers and flags too.
 */
#ifndef API_SQS_ATTRIBUTES_H
#define API_SQS_ATTRIBUTES_H

#include "api/sqs/out.h"
#include "api/sqs/store.h"
#include "core/queue/policy.h"

/* Returns SQS_OK, or a code with its text in err, if the attributes of a request differ from a queue with
 * the name in s. */
enum sqs_code sqs_attributes_check(const struct sqs_call *s, const struct sqs_pairs *given, bool creating, struct slu_err *err);

/* Sets the policy of a new queue, and the settings that the attributes name. */
void sqs_attributes_new(const char *queue, struct policy *p);
void sqs_attributes_apply(const struct sqs_pairs *given, struct policy *p);

/* What a queue has, for a GetQueueAttributes. */
struct sqs_shown {
	const struct sqs_document *document;
	const struct policy *policy;
	const struct op_queue *counts; /* NULL: the counts are not shown */
};

/* Writes the value of an attribute. Returns it, or p NULL if the queue does not have it. */
struct slice sqs_attributes_value(struct apicall *a, const struct sqs_shown *v, const char *name, char out[static SQS_URL]);

/* Writes the attributes that the request names, as pairs of an open map. */
void sqs_attributes_write(struct sqs_out *o, const struct sqs_shown *v, const struct sqs_names *names);

/* Returns whether a name is one of an attribute, or All. */
bool sqs_attributes_known(struct slice name);

#endif
