/*
 * batch.h - a group of messages of sluice.h, and a message that begins when all of them have ended.
 *
 *         slu_batch_create(b, &options, &id, &err);      options.callback: the message that begins
 *         put.batch = id;
 *         slu_enqueue(b, "letters", &put, 1, &err);      a member; as many as you like
 *         slu_batch_close(b, id, &err);                  no more members
 *
 * A member has ended when it is acked (done), or when it dies, expires or is deleted (failed). Members are
 * counted exactly, over retries and kills. docs/scheduling.md has the rules.
 */
#ifndef SLUICE_BATCH_H
#define SLUICE_BATCH_H

#include <sluice/sluice.h>

SLU_BEGIN_DECLS

/* Zeros are the defaults. */
struct slu_batch_options {
	size_t struct_size;             /* SLU_OPTIONS_INIT */
	const struct slu_put *callback; /* begins once, when all members have ended; with a queue, and at most 32 KiB. Its
					 * attributes get batch, outcome, members, done and failed. NULL: none */
	slu_time timeout;               /* from now; then the batch ends, whatever its members do; 0: never */
};

/* Makes a batch. options may be NULL. */
SLU_API int slu_batch_create(struct slu_broker *b, const struct slu_batch_options *options, uint64_t *id, struct slu_err *err);

/* The batch takes no more members. Any number of times. Returns SLU_ENOTFOUND if there is no such batch. */
SLU_API int slu_batch_close(struct slu_broker *b, uint64_t id, struct slu_err *err);

struct slu_batch {
	char status[16]; /* "open", "closed"; at its end "done", "failed" (some members have), "deadline" */
	uint32_t members;
	uint32_t done;
	uint32_t failed;
	slu_time created;     /* wall clock, as the next two */
	slu_time deadline;    /* 0: none */
	slu_time ended;       /* 0: not yet */
	uint64_t callback;    /* the id of the message that began; 0: none yet */
	uint64_t reserved[6]; /* 0 */
};

/* Counters follow the end of a member within milliseconds. A batch is there until 24 h after its end. Returns
 * SLU_ENOTFOUND if there is no such batch. */
SLU_API int slu_batch_get(struct slu_broker *b, uint64_t id, struct slu_batch *out, struct slu_err *err);

SLU_END_DECLS

#endif
