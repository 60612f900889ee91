/*
 * sluice.h - the broker in your process: a durable work queue without a server.
 *
 *      slu_enqueue ──> queue ──> slu_claim ──┬── slu_ack      done: gone
 *                        ^                   ├── slu_nack     failed: again later,
 *                        │                   │                or a dead letter
 *                        └───────────────────┘── the lease ran out: again
 *
 * What slu_enqueue and slu_ack said is done is on disk: it is there after kill -9 and
 * after a power cut. Delivery is at least once. A message is handed to one claimer at
 * a time, for the length of a lease; while it works longer, it calls slu_extend.
 * Messages go by priority (the lower number first), then by when they are due, then
 * in order of arrival. Messages with one key are handed out one at a time, in order.
 *
 * All functions block until they are done, and may be called from any thread. One
 * process at a time may have a folder open. To end cleanly: slu_stop, then slu_close.
 */
#ifndef SLUICE_SLUICE_H
#define SLUICE_SLUICE_H

#include <sluice/err.h>
#include <sluice/log.h>

SLU_BEGIN_DECLS

struct slu_broker;

/* How soon what was answered is on disk. */
enum slu_durability {
	SLU_DURABLE_SYNC,     /* before it is answered */
	SLU_DURABLE_INTERVAL, /* within sync_interval: a power cut may lose that much */
	SLU_DURABLE_NONE      /* when the kernel likes; survives kill -9 all the same */
};

/* Zeros are the defaults. */
struct slu_open_config {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	const char *space;  /* namespace of all queues; NULL: "default" */
	enum slu_durability durability;
	slu_time sync_interval; /* 0: 10 ms */
	unsigned node;          /* 0 .. 1023, part of every id */
	struct slu_log *log;    /* NULL: warnings go to stderr */
};

/*
 * Open the queues in folder, which is made when it is missing; NULL: in memory, gone
 * when closed. config may be NULL.
 *   SLU_EBUSY     the folder is open already: err says whether by this process or another
 *   SLU_ECORRUPT  the files are damaged; err names file and offset. Nothing is changed
 *   SLU_EINVAL    a server wrote the folder with several shards; here there is one
 */
SLU_API int slu_open(struct slu_broker **out, const char *folder,
		     const struct slu_open_config *config, struct slu_err *err);

/*
 * The first half of a shutdown: waits end, new work is refused (slu_enqueue, slu_claim and
 * slu_watch return SLU_ECLOSED), and those who hold messages can still ack, nack and extend
 * them. When they are done, slu_close. From any thread, any number of times.
 */
SLU_API int slu_stop(struct slu_broker *b, struct slu_err *err);

/* The second half, with or without the first: calls that wait return, those under way are
 * finished, and everything is freed; what was accepted and not acked is stored. No call may
 * come later, but slu_message_release: end your threads between slu_stop and slu_close. NULL
 * is fine. */
SLU_API void slu_close(struct slu_broker *b);

/* Up to size bytes of a payload into p: how many, 0 at the end, less than 0 when there
 * will be no end: then the message is not accepted. Thread: the one that called slu_enqueue,
 * before it returns. */
typedef int64_t slu_read_fn(void *arg, void *p, size_t size);

/* A message to enqueue. Strings and payload are copied. Zeros are the defaults. A payload
 * may have up to 1 GiB; more than 1 MiB goes to a file of its own, from where it is (a
 * file that you have mapped) or as read brings it: memory does not grow with it. */
struct slu_put {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	const void *payload;
	size_t size;
	slu_read_fn *read; /* the payload comes from there; NULL: it is in payload */
	void *read_arg;
	int32_t priority;        /* the lower goes first */
	slu_time delay;          /* due so long from now */
	slu_time due;            /* or at this moment of the wall clock; 0: see delay */
	slu_time ttl;            /* then it is a dead letter; 0: never */
	slu_time keep_result;    /* for slu_result, so long after the ack; 0: not */
	unsigned max_attempts;   /* failures until it is a dead letter; 0: 5 */
	const char *key;         /* order within the key; NULL: none, as all below */
	const char *idempotency; /* a second message with it is the first */
	const char *correlation;
	const char *content_type;
	const char *attributes; /* a JSON object, checked; at most 64 KiB, nested 62 deep */

	/* Answer. */
	uint64_t id;
	bool existed; /* the idempotency key was known: id is the first message's */
};

/*
 * Accept n messages, all or none; in any number they cost one sync.
 *   SLU_EINVAL, SLU_ETOOBIG  what a message may not be; err says which
 *   SLU_EQFULL               the queue is full
 *   SLU_EFULL                the disk is full: nothing new, but acks still work
 */
SLU_API int slu_enqueue(struct slu_broker *b, const char *queue, struct slu_put *puts,
			size_t n, struct slu_err *err);

/* A message that is yours until its lease ends. Give it to slu_message_release when
 * you need it no more, acked or not. */
struct slu_message {
	uint64_t id;
	uint64_t token;      /* rises with every hand-out: for fencing */
	const void *payload; /* NULL: it is to be had by slu_read, see slu_claim_options */
	size_t size;
	int32_t priority;
	unsigned attempts; /* deliveries, this one included */
	unsigned failures; /* of those before */
	slu_time accepted; /* wall clock, as the next two */
	slu_time due;
	slu_time lease_until;
	const char *key; /* "" when there is none, as all below */
	const char *correlation;
	const char *content_type;
	const char *attributes;
	void *memory;         /* the library's */
	uint64_t reserved[4]; /* 0 */
};

struct slu_claim_options {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	slu_time lease;     /* 0: the queue's, 30 s */
	slu_time wait;      /* for the first message; 0: not at all; SLU_NEVER */
	bool in_pieces;     /* payloads over 1 MiB are not read into memory: their payload is
			     * NULL, and they are to be released before slu_close */
};

/* Up to max messages; *n is how many. None is no error. options may be NULL. What is found
 * to be damaged is set aside and never handed out. */
SLU_API int slu_claim(struct slu_broker *b, const char *queue,
		      const struct slu_claim_options *options, struct slu_message *messages,
		      size_t max, size_t *n, struct slu_err *err);
SLU_API void slu_message_release(struct slu_message *m);

/* n bytes of the payload, from `at` on; also after the ack. SLU_EINVAL: there are not so
 * many. SLU_ECORRUPT: they are not those that were enqueued. */
SLU_API int slu_read(struct slu_broker *b, const struct slu_message *m, uint64_t at, void *p,
		     size_t n, struct slu_err *err);

/*
 * What a holder may do.
 *   SLU_ELEASE     the lease has ended: somebody else may have it now
 *   SLU_ENOTFOUND  it is gone
 *
 * ack: done. result (may be NULL) is kept if the message asked for that.
 */
SLU_API int slu_ack(struct slu_broker *b, const struct slu_message *m, const void *result,
		    size_t size, struct slu_err *err);

struct slu_nack_options {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	const char *error;  /* why; kept with the message */
	bool has_delay;     /* else as the queue's retry policy says */
	slu_time delay;
	bool defer; /* no failure: just not now */
	bool dead;  /* no use to try again */
};

/* options may be NULL. */
SLU_API int slu_nack(struct slu_broker *b, const struct slu_message *m,
		     const struct slu_nack_options *options, struct slu_err *err);

/* The lease now ends at now + lease (0: the queue's lease time). */
SLU_API int slu_extend(struct slu_broker *b, struct slu_message *m, slu_time lease,
		       struct slu_err *err);

/* Wait until something can be claimed, without claiming it. SLU_ETIMEOUT: nothing. */
SLU_API int slu_watch(struct slu_broker *b, const char *queue, slu_time wait,
		      struct slu_err *err);

/*
 * The result of a message that was enqueued with keep_result: slu_free it.
 *   SLU_ETIMEOUT   not acked yet
 *   SLU_ENOTFOUND  there is none: not kept, not any more, or the message is unknown
 */
SLU_API int slu_result(struct slu_broker *b, const char *queue, uint64_t id,
		       slu_time wait, void **result, size_t *size, struct slu_err *err);

struct slu_queue_stats {
	uint64_t ready;
	uint64_t delayed;
	uint64_t leased;
	uint64_t held; /* behind another message of their key */
	uint64_t dead;
	uint64_t damaged;     /* set aside: their bytes on disk are not those that were written */
	uint64_t reserved[4]; /* 0 */
};

/* A queue that nobody used has zeros. */
SLU_API int slu_stats(struct slu_broker *b, const char *queue, struct slu_queue_stats *out,
		      struct slu_err *err);

SLU_END_DECLS

#endif
