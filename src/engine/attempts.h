/*
 * attempts.h - what is kept of the failures of a message: its last error, and its last attempts.
 *
 *      nack, or the end of a lease          the record of the RETRY or DIE           ledger_view.error
 *      +----------------------------+       +-----------------------------------+
 *      | attempt 4: worker, times,  | ────> | attempts 1, 2, 3 and 4 | error    | <── its place
 *      | error                      |       +-----------------------------------+
 *      +----------------------------+                   ^
 *                   the record of the failure before ───┘ is read, and is not needed any more
 *
 * Each record carries the attempts before it, so a message needs no memory beside the place of its last error, and
 * one that never failed has none. The bytes travel as the error of the message: in records, in moves between shards,
 * between nodes. Who shows an error takes it out with attempts_error.
 *
 * The bytes, little-endian; times are microseconds, so that a script of Redis can write them:
 *
 *      8  mark: NUL, "attempt"
 *      1  n: attempts that follow, 1 to 10, oldest first
 *         for each:
 *           8  when it began    8  how long it took    8  token    2  number: deliveries up to it
 *           1  outcome          1  h                   2  e
 *           h  the holder, may be empty                e  the error, may be empty
 *         the last error, to the end
 *
 *  ATTEMPTS-1  A text without the mark is an error alone: records of versions before 0.3.0 have it. An error that a
 *      consumer sends never begins with a NUL (op_error_text), so it is never taken for attempts.
 *  ATTEMPTS-2  Ten attempts are kept, with 256 bytes of each error, cut at the end of a character. The last error is
 *      kept as before.
 *      On a full disk, and in a store with a server that cannot read attempts, the error alone is kept.
 *  ATTEMPTS-3  An attempt is a delivery that failed: a nack, a rejection, the end of a lease. A deferral is one if it
 *      has a text.
 */
#ifndef ENGINE_ATTEMPTS_H
#define ENGINE_ATTEMPTS_H

#include "base/bytes.h"
#include "base/time.h"

enum {
	ATTEMPTS_KEPT = 10,
	ATTEMPTS_TEXT = 256, /* bytes of the error of an attempt */
	ATTEMPTS_HEAD = 9,
	ATTEMPTS_FIXED = 30,   /* bytes of an attempt without its texts */
	ATTEMPTS_HOLDER = 128, /* bytes of a holder: HOLDER_MAX of core/queue/holders.h */
	ATTEMPTS_ERROR = 4096, /* bytes of the last error */
	ATTEMPTS_MAX = ATTEMPTS_HEAD + ATTEMPTS_KEPT * (ATTEMPTS_FIXED + ATTEMPTS_HOLDER + ATTEMPTS_TEXT) + ATTEMPTS_ERROR
};

/* The numbers are in records. */
enum attempt_outcome {
	ATTEMPT_NONE,
	ATTEMPT_FAILED,   /* nacked */
	ATTEMPT_EXPIRED,  /* its lease ran out */
	ATTEMPT_REJECTED, /* nacked for good */
	ATTEMPT_DEFERRED, /* put back with a text; counts as no failure */
	ATTEMPT_OUTCOMES
};

struct attempt_row {
	slu_time began; /* shard time, cut to microseconds, as all times here */
	slu_time took;
	uint64_t token;
	uint16_t number; /* deliveries of the message up to this one, 1 or more */
	uint8_t outcome; /* enum attempt_outcome */
	struct slice holder;
	struct slice error;
};

struct attempts {
	unsigned n;
	struct attempt_row list[ATTEMPTS_KEPT]; /* oldest first */
	struct slice error;                     /* the last one */
};

/* Reads what is kept of a message. Any text without the mark is an error alone. Returns false if the text has the
 * mark and is malformed; then all of it is the error. The slices of out point into kept. */
bool attempts_read(struct slice kept, struct attempts *out);

/* The last error. */
struct slice attempts_error(struct slice kept);

/* Whether the text has the mark. */
bool attempts_marked(struct slice kept);

/* Adds an attempt; the oldest of more than ten goes. An error that is longer than ATTEMPTS_TEXT is cut. */
void attempts_add(struct attempts *a, const struct attempt_row *one);

/* Writes them; an error that is longer than ATTEMPTS_ERROR is cut. Returns the number of bytes. */
size_t attempts_write(const struct attempts *a, char out[static ATTEMPTS_MAX]);

/* "failed" */
extern const char *const attempt_outcomes[ATTEMPT_OUTCOMES];

#endif
