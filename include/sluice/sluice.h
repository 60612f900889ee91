/*
 * sluice.h - the broker in your process: a durable work queue without a server.
 *
 *      slu_enqueue ──> queue ──> slu_claim ──┬── slu_ack      done: gone
 *                        ^                   ├── slu_nack     failed: again later,
 *                        │                   │                or a dead letter
 *                        └───────────────────┘── the lease ran out: again
 *
 * When slu_enqueue or slu_ack has returned 0, its effect is on disk: it survives kill -9 and
 * a power cut. Delivery is at least once. One claimer at a time holds a message, for the
 * length of a lease; slu_extend makes the lease longer. The order is priority (the lower
 * number first), then due time, then arrival. Messages with the same key are delivered one
 * at a time, in order.
 *
 * policy.h has the settings of a queue: limits, weights of shares, breakers. schedule.h has messages
 * that begin by themselves, batch.h groups of messages.
 *
 * All functions block until they are done. Any thread may call them. One process at a time
 * may have a folder open. For a clean end call slu_stop, then slu_close.
 */
#ifndef SLUICE_SLUICE_H
#define SLUICE_SLUICE_H

#include <sluice/err.h>
#include <sluice/log.h>
#include <sluice/why.h>
#include <sluice/retry.h>

SLU_BEGIN_DECLS

struct slu_broker;

/* When a change is on disk. All of them survive kill -9. */
enum slu_durability {
	SLU_DURABLE_SYNC,     /* before the call returns */
	SLU_DURABLE_INTERVAL, /* within sync_interval: a power cut may lose that much */
	SLU_DURABLE_NONE      /* when the kernel writes it */
};

/* Zeros are the defaults. */
struct slu_open_config {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	const char *space;  /* namespace of all queues; NULL: "default" */
	enum slu_durability durability;
	slu_time sync_interval; /* 0: 10 ms */
	unsigned node;          /* 0 .. 1023, part of every id */
	struct slu_log *log;    /* NULL: warnings and errors go to stderr */
};

/*
 * Opens the queues in folder, and makes it if it is missing. folder NULL: queues in memory, gone
 * when closed. config may be NULL. Returns
 *   SLU_EBUSY     if the folder is open; err names this process or another
 *   SLU_ECORRUPT  if the files are damaged; err has the file and the offset. Changes nothing
 *   SLU_EINVAL    if a server wrote the folder with several shards; the library has one
 */
SLU_API int slu_open(struct slu_broker **out, const char *folder,
		     const struct slu_open_config *config, struct slu_err *err);

/*
 * The first half of a shutdown: ends waits and refuses new work (slu_enqueue, slu_claim and
 * slu_watch return SLU_ECLOSED); held messages can still be acked, nacked and extended. Then call
 * slu_close. Any thread, any number of times.
 */
SLU_API int slu_stop(struct slu_broker *b, struct slu_err *err);

/* The second half, also without the first: ends waits, finishes calls under way, and frees
 * everything. Accepted messages that were not acked are stored. No call may follow but
 * slu_message_release: end your threads between slu_stop and slu_close. NULL is fine. */
SLU_API void slu_close(struct slu_broker *b);

/* Reads up to size bytes of a payload into p. Returns their number, 0 at the end, less than 0 on a
 * failure: then the message is not accepted. Runs on the thread that called slu_enqueue, before it
 * returns. */
typedef int64_t slu_read_fn(void *arg, void *p, size_t size);

/* Until when a message is unique. */
enum slu_unique {
	SLU_UNIQUE_NOT,
	SLU_UNIQUE_STARTED,
	SLU_UNIQUE_DONE,
	SLU_UNIQUE_TIME
};

/* A message to enqueue. Zeros are the defaults. Strings and payload are copied. A payload may have up
 * to 1 GiB; more than 1 MiB goes to a file, directly from payload (a file that you have mapped) or
 * from read, so that memory does not grow with it. */
struct slu_put {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	const void *payload;
	size_t size;
	slu_read_fn *read; /* source of the payload; NULL: payload */
	void *read_arg;
	int32_t priority;         /* lower ones go first */
	slu_time delay;           /* until it is due */
	slu_time due;             /* instead of delay: a moment of the wall clock; 0: none */
	slu_time ttl;             /* until it becomes a dead letter; 0: never */
	slu_time keep_result;     /* how long slu_result finds its result after the ack; 0: not */
	unsigned max_attempts;    /* failures until it is a dead letter; 0: 5 */
	const char *key;          /* ordering key; NULL: none */
	const char *idempotency;  /* idempotency key: a second message with it is not accepted */
	const char *correlation;  /* NULL: none */
	const char *content_type; /* NULL: none */
	const char *attributes;   /* a JSON object, at most 64 KiB, nested 62 deep; NULL: none */

	/* Result. */
	uint64_t id;
	bool existed; /* the idempotency key was known: id names the first message */

	const char *share; /* question: the shares of a queue take turns; NULL: none */

	/* Question: terms of its own, in place of the queue's. */
	slu_time lease;                  /* of a claim that names none; 0: the queue's */
	slu_time max_runtime;            /* after which its lease ends, however often it is extended; 0: none */
	slu_time deadline;               /* instead of ttl: when it becomes a dead letter, wall clock; 0: none */
	const struct slu_backoff *retry; /* delays after failures; NULL: the queue's */

	/* Question: the queue has one message with the key `idempotency` until it is first delivered, until it is gone or
	 * dead, or for a time; not for the window of the queue. */
	enum slu_unique unique;
	slu_time unique_for; /* SLU_UNIQUE_TIME: for how long */
	bool replace;        /* a message that waits gets this payload; false: it stays as it is */

	/* Result. */
	bool replaced; /* with existed: the message has this payload now */

	/* Question. */
	const char *queue; /* instead of the queue of the call; NULL: that one */
	const char *kind;  /* of work, which claims may name; instead of a share. NULL: none */
	uint64_t batch;    /* the message is a member of it (batch.h), as all messages of the call; 0: of none */
};

/*
 * Accepts n messages, all or none, with one sync. Returns
 *   SLU_EINVAL, SLU_ETOOBIG  if a message is not valid or too large; err names it
 *   SLU_EQFULL               if the queue is full
 *   SLU_EFULL                if the disk is full; acks still work
 */
SLU_API int slu_enqueue(struct slu_broker *b, const char *queue, struct slu_put *puts,
			size_t n, struct slu_err *err);

/* A claimed message, yours until its lease ends. Pass it to slu_message_release when you do not need
 * it any more, acked or not. */
struct slu_message {
	uint64_t id;
	uint64_t token;      /* fencing token: rises with every delivery */
	const void *payload; /* NULL: use slu_read, see slu_claim_options */
	size_t size;
	int32_t priority;
	unsigned attempts;        /* deliveries, with this one */
	unsigned failures;        /* of the deliveries before */
	slu_time accepted;        /* wall clock */
	slu_time due;             /* wall clock */
	slu_time lease_until;     /* wall clock */
	const char *key;          /* "": none */
	const char *correlation;  /* "": none */
	const char *content_type; /* "": none */
	const char *attributes;   /* "": none */
	void *memory;             /* of the library */
	const char *share;        /* "": none */
	const char *kind;         /* "": none */
	const char *checkpoint;   /* JSON that the last holder has stored (slu_checkpoint); "": none */
	uint64_t reserved[1];     /* 0 */
};

struct slu_claim_options {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	slu_time lease;     /* 0: of the queue, 30 s */
	slu_time wait;      /* for the first message; 0: not at all; SLU_NEVER */
	bool in_pieces;     /* do not read payloads over 1 MiB into memory: payload is NULL; release
			     * these messages before slu_close */
	const char *kinds;  /* up to 64 kinds, with commas: only messages of these; NULL: every message */
};

/* Claims up to max messages; *n is their number, which may be 0. options may be NULL. Damaged
 * messages go into quarantine and are never delivered. */
SLU_API int slu_claim(struct slu_broker *b, const char *queue,
		      const struct slu_claim_options *options, struct slu_message *messages,
		      size_t max, size_t *n, struct slu_err *err);
SLU_API void slu_message_release(struct slu_message *m);

/* Reads n bytes of the payload from `at` on, also after the ack. Returns SLU_EINVAL if the payload is
 * shorter, SLU_ECORRUPT if the stored bytes are damaged. */
SLU_API int slu_read(struct slu_broker *b, const struct slu_message *m, uint64_t at, void *p,
		     size_t n, struct slu_err *err);

/*
 * Operations of the holder. They return
 *   SLU_ELEASE     if the lease has ended: another claimer may have the message
 *   SLU_ENOTFOUND  if the message is gone
 *
 * slu_ack: the message is done. result (may be NULL) is kept if the message has keep_result.
 */
SLU_API int slu_ack(struct slu_broker *b, const struct slu_message *m, const void *result,
		    size_t size, struct slu_err *err);

struct slu_nack_options {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	const char *error;  /* kept with the message */
	bool has_delay;     /* use `delay` instead of the queue's retry policy */
	slu_time delay;     /* until the retry */
	bool defer;         /* later, and not a failure */
	bool dead;          /* make it a dead letter */

	/* Nothing of the scope is delivered for this long: "key", "share", "attribute" or "queue" of the message. It is not a failure.
	 * 0 = no hold. */
	slu_time retry_after;
	const char *scope;

	bool has_priority; /* use `priority` from now on */
	int32_t priority;

	const char *reason; /* the breaker (policy.h) that counts this failure; NULL: none */
};

/* options may be NULL. */
SLU_API int slu_nack(struct slu_broker *b, const struct slu_message *m,
		     const struct slu_nack_options *options, struct slu_err *err);

/* Zeros: an ack without a result. */
struct slu_finish_options {
	size_t struct_size;                  /* SLU_OPTIONS_INIT */
	const struct slu_nack_options *nack; /* the message is nacked, not acked; NULL: acked */
	const void *result;                  /* of an ack, as for slu_ack */
	size_t result_size;
	struct slu_put *puts; /* the messages that begin, at most 1 MiB each; without `queue` in the queue of m */
	size_t n;
};

/* One message ends, others begin, in one step: after a crash at any moment they are there exactly if m was
 * acked or nacked. Also returns what slu_enqueue returns; then the lease stays. m is not released yet. */
SLU_API int slu_finish(struct slu_broker *b, const struct slu_message *m,
		       const struct slu_finish_options *options, struct slu_err *err);

/* Extends the lease to now + lease (0: the lease of the queue). */
SLU_API int slu_extend(struct slu_broker *b, struct slu_message *m, slu_time lease,
		       struct slu_err *err);

/*
 * Extends the lease as slu_extend, and stores how far the work has come: JSON of at most 64 KiB. The next holder of the
 * message gets it, however this lease ends: slu_message.checkpoint. It replaces the one before, and goes with the message.
 * Lease and checkpoint change in one step. Also returns
 *   SLU_EINVAL, SLU_ETOOBIG  if checkpoint is not JSON, or too large
 *   SLU_EFULL                if the disk is full; slu_extend still works
 */
SLU_API int slu_checkpoint(struct slu_broker *b, struct slu_message *m, slu_time lease,
			   const char *checkpoint, struct slu_err *err);

/* Waits until a message can be claimed, without claiming it. Returns SLU_ETIMEOUT if no message
 * is ready within `wait`. */
SLU_API int slu_watch(struct slu_broker *b, const char *queue, slu_time wait,
		      struct slu_err *err);

/*
 * Gets the result of a message that was enqueued with keep_result. Free it with slu_free. Returns
 *   SLU_ETIMEOUT   if the message is not acked in time
 *   SLU_ENOTFOUND  if the message is unknown, or its result was not kept or has expired
 */
SLU_API int slu_result(struct slu_broker *b, const char *queue, uint64_t id,
		       slu_time wait, void **result, size_t *size, struct slu_err *err);

struct slu_queue_stats {
	uint64_t ready;
	uint64_t delayed;
	uint64_t leased;
	uint64_t held; /* behind another message of their key */
	uint64_t dead;
	uint64_t damaged;     /* in quarantine: their stored bytes cannot be read */
	uint64_t reserved[4]; /* 0 */
};

/* An unknown queue has zeros. */
SLU_API int slu_stats(struct slu_broker *b, const char *queue, struct slu_queue_stats *out,
		      struct slu_err *err);

/* Why the message is not running now. Returns SLU_ENOTFOUND if the queue does not have the message. */
SLU_API int slu_why(struct slu_broker *b, const char *queue, uint64_t id, struct slu_why_answer *out,
		    struct slu_err *err);

SLU_END_DECLS

#endif
