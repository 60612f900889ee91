/*
 * store.h - the document of a queue: attributes and tags that its policy has no place for.
 *
 *      {"created":1700000000,"modified":1700000000,"attributes":{"DelaySeconds":"5"},"tags":{"team":"a"}}
 *
 * The document is kept by api/queue/ownstate.h under the key ~sqs/QUEUE. A queue that was not made here has no document: all its values are defaults.
 *
 * All functions run on the loop, and either call `then` or refuse the call.
 */
#ifndef API_SQS_STORE_H
#define API_SQS_STORE_H

#include "api/sqs/sqs.h"

struct sqs_document {
	int64_t created, modified; /* seconds; 0: not known */
	struct sqs_pairs attributes, tags;
};

/* Reads the document of the queue of the call. */
void sqs_store_load(struct apicall *a, void (*then)(struct apicall *a));

/* Reads it, lets `edit` change it, and writes it. If edit returns a code, with its text in err, nothing is
 * written, and the call is refused. */
void sqs_store_change(struct apicall *a, enum sqs_code (*edit)(struct apicall *a, struct slu_err *err),
		      void (*then)(struct apicall *a));

/* Removes it. */
void sqs_store_remove(struct apicall *a, void (*then)(struct apicall *a));

/* The document that was read. */
struct sqs_document *sqs_document(struct apicall *a);

/* The value of a pair; p NULL: it is not set. */
struct slice sqs_pairs_find(const struct sqs_pairs *l, const char *name);

/* Sets a pair. Returns false if there is no room. */
bool sqs_pairs_set(struct sqs_pairs *l, struct arena *a, struct slice name, struct slice value);
void sqs_pairs_remove(struct sqs_pairs *l, struct slice name);

#endif
