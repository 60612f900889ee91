/*
 * survey.h - queues as they stand on all shards: what stats and lists are made of.
 *
 *      one queue    STATS to every shard that may have some of it ──> each, and the sum
 *      all queues   TOPICS to the lanes from the cursor on, at once ──> one page
 *
 * Shards that do not answer in time are left out and named (api/gather.h). Only when nobody
 * has answered it is a failure.
 */
#ifndef API_SURVEY_H
#define API_SURVEY_H

#include "api/gather.h"

enum {
	SURVEY_ROWS = 8192 /* of all lanes together, that one page asks for */
};

struct survey {
	int rc; /* 0; SLU_ENOTFOUND; or why there is nothing to tell, in missing.err */
	struct gather_missing missing;
	void (*then)(struct ask *a);

	/* One queue. */
	struct op_queue sum;
	struct op_queue each[SUPPLIED_MAX]; /* where it lives comes first */
	const char *shard[SUPPLIED_MAX];
	unsigned n;

	/* All queues. */
	struct op_queue *queues; /* limit of them, in the memory of the ask */
	uint32_t *lanes;         /* on which they are */
	uint32_t n_queues, limit;
	uint64_t cursor; /* where the next page begins; 0: there is none */
};

/* Each calls `then` on the loop, unless it was refused. s lives as long as the ask. */
void survey_queue(struct ask *a, struct survey *s, struct slice space, struct slice queue,
		  void (*then)(struct ask *a));
void survey_queues(struct ask *a, struct survey *s, struct slice space, uint64_t cursor,
		   uint32_t limit, void (*then)(struct ask *a));

/* Refuse what has failed; a queue that is not there in these words. False: it has not. */
bool survey_refused(struct ask *a, const struct survey *s, const char *not_there);

/* Members of an object, where there are several shards: on which the queue is, or how much of it on
 * each; and on which the i-th of a list is. */
void survey_write_shards(struct json_out *w, const struct ask *a, const struct survey *s);
void survey_write_shard(struct json_out *w, const struct ask *a, const struct survey *s,
			uint32_t i);

#endif
