/*
 * batch.h - the entries of a batch, and their outcomes.
 *
 * An action without a batch has one entry, and its failure is the failure of the call. A batch answers entry by
 * entry: those that succeeded, then those that failed.
 */
#ifndef API_SQS_BATCH_H
#define API_SQS_BATCH_H

#include "api/sqs/out.h"
#include "api/sqs/sqs.h"

struct sqs_outcome {
	enum sqs_code code; /* SQS_OK: it succeeded */
	struct slice text;
};

/* The number of entries. */
uint32_t sqs_batch_size(const struct sqs_call *s);

/* Checks the number of the entries and their ids. Returns false if it refused the call. */
bool sqs_batch_check(struct apicall *a);

/* Notes a failure. Returns false if it refused the call: the entry is not one of a batch. */
bool sqs_batch_fail(struct apicall *a, struct sqs_outcome *o, enum sqs_code code, const char *text);

/* Writes the ids of the entries without a result of their own, and the failures. tag: the element of XML. */
void sqs_batch_ids(struct sqs_out *o, const struct sqs_call *s, const struct sqs_outcome *outcomes, const char *tag);
void sqs_batch_failed(struct sqs_out *o, const struct sqs_call *s, const struct sqs_outcome *outcomes);

#endif
