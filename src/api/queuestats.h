/*
 * queuestats.h - the counts of queues on all shards, for stats and lists.
 *
 *      one queue    STATS to every shard that may have some of it ──> each, and the sum
 *      all queues   TOPICS to the lanes from the cursor on, at once ──> one page
 *
 * Shards that do not answer in time are left out and named (api/fanout.h). It fails only if no
 * shard answers.
 */
#ifndef API_QUEUESTATS_H
#define API_QUEUESTATS_H

#include "api/fanout.h"

enum {
	QUEUESTATS_ROWS = 8192 /* most rows that a page asks of all lanes */
};

struct queuestats {
	int rc; /* 0, SLU_ENOTFOUND, or the code of missing.err */
	struct fanout_missing missing;
	void (*then)(struct apicall *a);

	/* One queue. */
	struct op_queue sum;
	struct op_queue each[SUPPLIED_MAX]; /* the first is its home */
	const char *shard[SUPPLIED_MAX];
	unsigned n;

	/* All queues. */
	struct op_queue *queues; /* `limit` of them, in the memory of the apicall */
	uint32_t *lanes;         /* the lane of each */
	uint32_t n_queues, limit;
	uint64_t cursor; /* where the next page begins; 0: no more */
};

/* Both call `then` on the loop, unless they refused the call. s lives as long as a. */
void queuestats_queue(struct apicall *a, struct queuestats *s, struct slice space, struct slice queue,
		      void (*then)(struct apicall *a));
void queuestats_queues(struct apicall *a, struct queuestats *s, struct slice space, uint64_t cursor,
		       uint32_t limit, void (*then)(struct apicall *a));

/* Sets the crew of the queue. */
void queuestats_crew(const struct api *api, struct op_queue *q);

/* Refuses the call if s failed; not_there: the text for a missing queue. Returns true if it
 * did. */
bool queuestats_refused(struct apicall *a, const struct queuestats *s, const char *not_there);

/* With several shards, write members of an object: the shard of the queue, or its counts on
 * each; the shard of the i-th queue of a list. */
void queuestats_write_shards(struct json_out *w, const struct apicall *a, const struct queuestats *s);
void queuestats_write_shard(struct json_out *w, const struct apicall *a, const struct queuestats *s,
			    uint32_t i);

#endif
