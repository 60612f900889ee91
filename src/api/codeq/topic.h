/*
 * topic.h - the catalogue of topics: the policy of a command, stored and enforced.
 *
 *      {"priorityTiers":[0,5,9], "maxAttempts":3, "deadLetterTopicRef":"failed", "retentionSeconds":3600, "maxConsumers":4}
 *
 *      maxAttempts          max_attempts of the policy of the queue
 *      maxConsumers         concurrency
 *      deadLetterTopicRef   dead_letter_queue
 *      retentionSeconds     dlq_retention, and how long results are kept
 *      priorityTiers        a task with another priority is refused
 *
 * The document is kept by api/queue/ownstate.h under the key ~codeq/COMMAND, with a version that rises with every change.
 */
#ifndef API_CODEQ_TOPIC_H
#define API_CODEQ_TOPIC_H

#include "api/codeq/codeq.h"
#include "api/queue/ownstate.h"

enum {
	TOPIC_TIERS = 11,        /* 0 to 10 */
	TOPIC_ATTEMPTS = 100,    /* most */
	TOPIC_CONSUMERS = 10000, /* most */
	TOPIC_LABEL = 63,        /* bytes of the name of a topic that another one names */
	TOPIC_TEXT = TOPIC_LABEL + 1
};

struct codeq_topic {
	uint64_t version;
	uint16_t tiers; /* a bit for each; 0: all */
	uint32_t max_attempts, max_consumers;
	int64_t retention; /* seconds; 0: the default */
	char letters[TOPIC_TEXT];
};

/* Reads the body of a PUT, or a stored document. Returns SLU_EINVAL for a text of another form, SLU_ECONFLICT for
 * values out of range. */
int codeq_topic_parse(struct codeq_topic *t, struct slice text, bool stored, struct slu_err *err);
void codeq_topic_write(struct json_out *w, const struct codeq_topic *t);            /* members of an object */
bool codeq_topic_is_same(const struct codeq_topic *a, const struct codeq_topic *b); /* except the version */

/* What a create has to know of the topic of a command; at most a second old. */
struct codeq_facts {
	int64_t retention; /* seconds */
	uint16_t tiers;
};

struct codeq_facts_of {
	struct ownstate kept; /* first: apicall.part */
	struct slice queue;
	struct codeq_facts facts;
	uint64_t changes;
	void (*then)(struct apicall *a);
};

/* Finds f->facts and calls `then`, at once or later, or refuses the call. queue lives as long as the call. */
void codeq_topic_facts(struct codeq_facts_of *f, struct apicall *a, struct slice queue, void (*then)(struct apicall *a));

#endif
