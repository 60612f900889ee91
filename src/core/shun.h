/*
 * shun.h - messages that a stream of claims has just failed, so that it is not handed them again
 * at once.
 *
 * A consumer that fails a message often drops its stream and opens another. For SHUN_TIME after
 * the failure the message is not handed to the stream that had it: it would be pushed into a
 * stream that is about to end. Every other consumer may have it at once.
 *
 * A ring of the newest SHUN_MAX failures. One that is overwritten early, or forgotten by a
 * restart, only loses the pause: the message may go to the stream that failed it.
 */
#ifndef CORE_SHUN_H
#define CORE_SHUN_H

#include <sluice/api.h>

#include <stdint.h>

#define SHUN_TIME (20 * SLU_MS)

enum {
	SHUN_MAX = 64
};

struct shun {
	struct shun_entry {
		uint64_t id; /* of the message */
		slu_time until;
		uint32_t flow;
	} entries[SHUN_MAX];
	uint64_t added; /* how many, ever */
};

/* The stream `flow` has failed the message at the moment now. */
void shun_add(struct shun *s, uint64_t id, uint32_t flow, slu_time now);

/* Until when the stream is not handed the message, or 0: it may have it. */
slu_time shun_until(const struct shun *s, uint64_t id, uint32_t flow, slu_time now);

/* How many messages the stream is not handed now. */
uint32_t shun_count(const struct shun *s, uint32_t flow, slu_time now);

#endif
