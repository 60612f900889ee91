/*
 * rejoin.h - what a log holds behind a place, for a log that went another way than its line (LINE-15).
 *
 *      line      1  2  3 │ 4' 5' 6' ...       another owner went on from group 3
 *      folder    1  2  3 │ 4  5               answered, and not in the line
 *                        └ from
 *
 * Messages that the folder accepted behind the place are in no other log. Messages that it accepted before
 * are also in the line, in the state that they had there: a message that the folder ended behind the place
 * may be delivered again.
 *
 * Reads only. Blocks.
 */
#ifndef ENGINE_LOG_REJOIN_H
#define ENGINE_LOG_REJOIN_H

#include "engine/log/record.h"
#include "engine/message.h"

struct logengine_spot {
	uint32_t segment; /* 0 = nowhere */
	uint32_t offset;
};

struct logengine_rejoin {
	const char *folder;
	struct logengine_spot from; /* records from here on count */
	struct logengine_spot to;   /* records from here on are ignored: they were never confirmed; 0 = all count */

	/* A message that was accepted and has neither ended nor died, with its payload, in the order of the
	 * log. Borrowed for the call. A code ends the call. */
	int (*message)(void *arg, const struct message *m, struct slu_err *err);

	/* A message from before the place that was acked or deleted behind it. */
	void (*ended)(void *arg, uint64_t id);
	void *arg;

	/* What was found. */
	uint64_t accepted;               /* messages that were accepted */
	uint64_t done;                   /* of these: acked, deleted or expired */
	uint64_t dead;                   /* of these: dead letters, or damaged */
	uint64_t types[LOGENGINE_TYPES]; /* records of each type */
};

/* Returns the codes of logengine_check, or the code of `message`. */
int logengine_rejoin(struct logengine_rejoin *r, struct slu_err *err);

#endif
