/*
 * logkit.h - random work on a log engine, and what must be there afterwards.
 *
 * The kit stores what every answer promised (a message is in, out, or unknown) and checks
 * each later answer against it:
 *
 *      I1  what was accepted is there once, with the bytes it came with, or was
 *          settled; what was settled never returns
 *      I2  an idempotency key that was used gives the first message, also when that is
 *          gone; a result and an error text are those that were given
 *      I4  tokens rise, over whatever happens
 *      I5  queues are shown as they were first spelled
 *      I6  a key's messages are handed out in the order of their numbers, and none
 *          while an earlier one is there
 *      I9  counters equal a scan, live bytes equal what is read back at the next open
 *      FILE-2  the payload files that are there after opening are those of messages
 *      K   a key has the state that was committed last, with the bytes it came with; a
 *          lease that was answered is held until its end, and what was staged under it is
 *          there; states of messages are those that were committed, and go with them
 *
 * One payload in sixteen is larger than the log takes, unless more.most is set.
 *
 *         k = logkit_new(64 << 10, seed);
 *         logkit_open(k);
 *         for (...)
 *                 logkit_step(k);
 *         logkit_crash(k, seed);          power cut
 *         logkit_open(k);                 checks
 *
 * The kit is in memory that a child process shares: the child works and is killed, and the
 * parent checks.
 */
#ifndef TESTS_LOGKIT_H
#define TESTS_LOGKIT_H

#include "fakeclock.h"
#include "simdisk.h"
#include "test.h"

#include "engine/log/logengine.h"
#include "wal/wal.h"

enum {
	KIT_IDS = 200000,
	KIT_QUEUES = 3,
	KIT_KEYS = 4,
	KIT_OPS = 4,  /* of a batch, at most */
	KIT_EACH = 8, /* puts, items or rows of an op, at most */
	KIT_HELD = 64,
	KIT_LOCKS = 6 /* lock keys */
};

enum kit_status {
	KIT_NEVER,
	KIT_MAYBE_IN, /* unknown whether it was accepted */
	KIT_IN,
	KIT_MAYBE_OUT,
	KIT_OUT
};

struct kit_msg {
	uint8_t status;
	uint8_t queue;
	uint8_t key;     /* 0: none */
	bool idem;       /* it has an idempotency key */
	bool keep;       /* its result is kept */
	bool result;     /* it was acked with one */
	bool error;      /* it was nacked with a text */
	bool maybe;      /* error is not known */
	bool forgot;     /* unknown whether its idempotency key is remembered */
	bool damaged;    /* it may be that it cannot be read */
	bool seen;       /* by the scan under way */
	uint64_t state;  /* etag that was committed for sure; 0: none was */
	uint64_t staged; /* by its holder */
	uint64_t number; /* KIT_IN */
};

#define KIT_ANY UINT32_MAX

/* What a lock key is. Its documents are known by numbers, from which their bytes follow. */
struct kit_lock {
	uint64_t version;
	uint64_t etag;
	uint32_t doc;   /* 0: none; KIT_ANY: unknown */
	uint64_t token; /* 0: not leased */
	slu_time until;
	uint64_t staged; /* etag; doc 0: removed */
	uint32_t staged_doc;
	bool stages;
	bool broken; /* something of it cannot be read any more */
};

#define KIT_HOLDER "kit-7:311" /* of every lease */

struct kit_held {
	uint64_t id;
	uint64_t token;
	slu_time until;
	bool doubtful; /* the claim may be lost */
};

struct logkit {
	struct simdisk *disk; /* NULL: the real one */
	struct fakeclock clock;
	struct slu_log *log;
	char logged[4096];
	bool stopped;  /* cleaning was, */
	bool may_stop; /* which is a fault unless this is set */
	struct logengine_conf more;

	/* With KIT_STORE in the environment, as walkit.h has it. */
	struct store *store;
	unsigned boots; /* how often the machine has started */
	char boot[16];

	const char *folder;
	bool lossy;       /* the next verify takes what is there for what must be */
	bool unverified;  /* the test has messages that the kit does not know: an open checks none */
	bool unspelled;   /* it did so once: the spelling of queues is unknown */
	struct engine *e; /* NULL: not open */
	struct engine_found found;
	struct slu_err err;
	slu_time now;
	uint64_t random;

	bool breaks; /* calls of the disk fail: SLU_EDOWN refuses an op, and nothing has happened */
	bool no_purge;
	bool no_locks;
	uint32_t enqueues; /* of a hundred ops */
	uint32_t max_payload;
	uint64_t accepted, settled, claims, reopened; /* how much was tested */

	uint64_t next_id;
	uint64_t low;       /* all below are out */
	uint64_t top_token; /* the highest ever granted */
	uint64_t live;      /* bytes, when it was closed */
	uint64_t digest;    /* of the ledger, when it was opened */
	uint64_t files;     /* payloads that were stored in one */
	uint32_t named;     /* of those the last scan has seen */
	struct kit_msg msgs[KIT_IDS];
	struct kit_held held[KIT_HELD];
	uint32_t n_held;
	slu_time policy[KIT_QUEUES]; /* lease time set, 0: none, -1: not known */

	/* Before the batch that may or may not have happened, and after it. */
	struct kit_lock was[KIT_LOCKS];
	struct kit_lock locks[KIT_LOCKS];
	uint32_t next_doc;
	uint64_t told;                      /* top_token before the check under way */
	uint64_t locked, committed, states; /* how much was tested */
};

/* On a simulated disk, or (no_sim) in the folder "log". */
struct logkit *logkit_new(uint32_t segment_size, uint64_t seed, bool no_sim);
void logkit_free(struct logkit *k);

/* Open and check everything that was promised. Other than 0: k->err says why. */
int logkit_open(struct logkit *k);
void logkit_close(struct logkit *k);

/* A batch of random ops, checked; or what run returned. */
int logkit_step(struct logkit *k);

/* Run one batch of one's own; settles nothing in the model. */
int logkit_run(struct logkit *k, struct op *batch);

/* The op that enqueues n puts. */
void logkit_enqueue(struct op *op, struct slice space, struct slice queue, struct op_put *puts, uint32_t n);

/* Everything that can happen now does: purges are freed, what is due is moved. */
int logkit_settle(struct logkit *k);

void logkit_verify(struct logkit *k);

/* The power goes and comes back; the process is killed. Not open afterwards. */
void logkit_crash(struct logkit *k, uint64_t seed);
void logkit_kill(struct logkit *k);

/* What was under way when it failed is not known any more. */
void logkit_doubt(struct logkit *k);

struct wal_stats logkit_stats(struct logkit *k);

#endif
