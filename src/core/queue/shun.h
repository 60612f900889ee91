/*
 * shun.h - messages that a stream has just failed, and does not get again at once.
 *
 * A consumer that fails a message often drops its stream and opens another. For SHUN_TIME after
 * the failure that stream does not get the message: it would go into a stream that is about to
 * end. Other consumers get it at once.
 *
 * A ring of the newest SHUN_MAX failures. A failure that is overwritten early, or lost at a
 * restart, only costs the pause.
 */
#ifndef CORE_QUEUE_SHUN_H
#define CORE_QUEUE_SHUN_H

#include <sluice/api.h>

#include <stdint.h>

#define SHUN_TIME (20 * SLU_MS)

enum {
	SHUN_MAX = 64
};

struct shun {
	struct shun_entry {
		uint64_t id;    /* of the message */
		slu_time until; /* end of the pause */
		uint32_t stream_no;
	} entries[SHUN_MAX];
	uint64_t added; /* entries ever added */
};

/* The stream has failed the message at the moment now. */
void shun_add(struct shun *s, uint64_t id, uint32_t stream_no, slu_time now);

/* The end of the pause of this stream and message; 0: there is no pause. */
slu_time shun_until(const struct shun *s, uint64_t id, uint32_t stream_no, slu_time now);

/* The number of messages that the stream does not get now. */
uint32_t shun_count(const struct shun *s, uint32_t stream_no, slu_time now);

#endif
