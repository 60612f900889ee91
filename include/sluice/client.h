/*
 * client.h - a Sluice server from C: queues, messages as streams, locks and state.
 *
 *         struct slu_client_put put = { .payload = "hi", .size = 2 };
 *         struct slu_client_messages got = { 0 };
 *         struct slu_client *c;
 *         struct slu_err err;
 *
 *         if (slu_client_new(&c, &(struct slu_client_config){ .servers = "127.0.0.1:7171" }, &err))
 *                 ...
 *         slu_client_enqueue(c, "mail", &put, 1, NULL, &err);
 *         slu_client_dequeue(c, "mail", &(struct slu_client_claim){ .wait = SLU_NEVER }, &got, NULL, &err);
 *         ...
 *         slu_client_messages_release(&got);
 *         slu_client_free(c);
 *
 * A client is for the whole process: any number of threads may use it at once, each call
 * takes a connection that rests, or makes one, and gives it back. All calls block.
 * Programs link libsluice-client (pkg-config sluice-client).
 *
 *  Q1  Nothing times out in secret. A call that waits (for a message, a lock, a result)
 *      lasts as long as it was told to, SLU_NEVER included, and ends before that only by
 *      its own slu_call: `timeout`, or `cancel_fd`. A call that has nothing to wait for
 *      has `timeout` of the config.
 *  Q2  A server that is away, restarts, drains or is passive is waited for, and the other
 *      servers of the list are tried: for `patience` of the config, a call that waits for
 *      as long as it waits. Then SLU_EDOWN.
 *  Q3  What was sent and not answered is sent again where that is safe: what changes
 *      nothing, what the server takes back when its answer does not arrive (messages,
 *      leases), what is the same done twice (ack, release, a state that is set), and an
 *      enqueue whose messages have idempotency keys (see `idempotent`). Anything else is
 *      SLU_EUNKNOWN: it may have happened.
 *  Q4  A refusal by the server is the code of err.h and the server's sentence. Limits
 *      (SLU_EBUSY, SLU_EQFULL) are the caller's to heed: err.retry_after says when.
 */
#ifndef SLUICE_CLIENT_H
#define SLUICE_CLIENT_H

#include <sluice/err.h>

SLU_BEGIN_DECLS

struct slu_client;

/* Zeros are the defaults. Everything is copied. */
struct slu_client_config {
	const char *servers; /* "host:port", "https://host:port" or "unix:/path"; several, with
			      * commas between them: the first that serves. NULL: 127.0.0.1:7171 */
	const char *space;   /* namespace; NULL: "default" */
	const char *token;   /* shown with every call; NULL: none */
	const char *ca_file; /* https: who may have signed the servers' certificates, PEM;
			      * NULL: whom the system trusts */
	const char *cert;    /* https: what to show of ourselves, PEM; and its key */
	const char *cert_key;
	slu_time timeout;  /* Q1: for an answer that needs no waiting; 0: 30 s */
	slu_time patience; /* Q2; 0: 30 s; less: none, the first failure is the answer */
	bool idempotent;   /* Q3: slu_client_enqueue gives a key to messages without one */
};

/* Connects when there is something to say. SLU_EINVAL: an address, a file. */
SLU_API int slu_client_new(struct slu_client **out, const struct slu_client_config *config,
			   struct slu_err *err);

/* When no call is under way and everything that came from it is closed. NULL is fine. */
SLU_API void slu_client_free(struct slu_client *c);

/* How a call may end, and whose queue it is about. Zeros are the defaults; NULL is all
 * zeros. */
struct slu_call {
	slu_time timeout;  /* SLU_ETIMEOUT so long from now; 0: Q1; SLU_NEVER: none */
	int cancel_fd;     /* SLU_ECANCELED once this is readable (an eventfd, a pipe, a
			    * signalfd); 0: none. Nobody reads from it */
	const char *space; /* NULL: the client's */
};

/* --- many at once ----------------------------------------------------------------- */

/* A message to enqueue. NULL and 0: not said, the queue's default. */
struct slu_client_put {
	const void *payload;
	size_t size;          /* all of a call together: some 12 MB */
	bool is_json;         /* payload is a JSON value, to be kept as one */
	const char *priority; /* "high", "normal", "low" or a number; the lower goes first */
	const char *key;      /* order within the key */
	const char *idempotency_key;
	const char *correlation_id;
	const char *content_type;
	const char *attributes; /* a JSON object */
	slu_time delay;
	slu_time ttl;
	slu_time keep_result;
	unsigned max_attempts;

	uint64_t id; /* answer */
};

/* Up to 10,000, all or (of one shard) none; when it returns 0 they are on disk. */
SLU_API int slu_client_enqueue(struct slu_client *c, const char *queue,
			       struct slu_client_put *puts, size_t n,
			       const struct slu_call *call, struct slu_err *err);

struct slu_client_claim {
	unsigned limit; /* 0: 10; at most 1,000 */
	slu_time lease; /* 0: the queue's */
	slu_time wait;  /* for the first; 0: not at all; SLU_NEVER */
};

/* Strings are terminated, and "" where there is nothing to say. */
struct slu_client_message {
	uint64_t id;
	uint64_t fencing_token;
	const char *uid; /* the id as a UUID */
	const char *lease_id;
	const char *lease_expires_at; /* RFC 3339 */
	const void *payload;
	size_t size;
	const char *content_type;
	const char *key;
	const char *correlation_id;
	const char *attributes; /* JSON */
	unsigned attempts;      /* deliveries, this one included */
	unsigned failures;      /* of those before */
	unsigned max_attempts;
	int32_t priority;
	const char *raw; /* all of it, as the server wrote it: JSON, not terminated */
	size_t raw_size;
};

struct slu_client_messages {
	struct slu_client_message *items;
	size_t n;
	void *memory; /* the library's */
};

/* Zeroed is a fine start for out. n is 0 when nothing came within the wait. What the
 * server sent and this call did not take whole, on whatever way, nobody has taken. */
SLU_API int slu_client_dequeue(struct slu_client *c, const char *queue,
			       const struct slu_client_claim *claim,
			       struct slu_client_messages *out, const struct slu_call *call,
			       struct slu_err *err);
SLU_API void slu_client_messages_release(struct slu_client_messages *m);

enum slu_settle_verb {
	SLU_ACK,
	SLU_NACK,
	SLU_EXTEND
};

struct slu_settle {
	uint64_t id;
	const char *lease_id;   /* NULL: not said; then it acts for the current lease */
	uint64_t fencing_token; /* 0: not said */
	const char *error;      /* nack: why */
	const char *result;     /* ack: JSON, kept if the message asked for that */
	slu_time time;          /* extend: the lease from now on; nack: delay; 0: the queue's */
	bool at_once;           /* nack: no delay */
	bool defer;             /* nack: no failure, just not now */
	bool dead;              /* nack: no use to try again */

	/* Answer. */
	enum slu_code code; /* 0, or why not: SLU_ENOTFOUND, SLU_ELEASE */
	slu_time at;        /* wall clock: nack: due again; extend: when the lease ends */
	bool died;          /* nack: it is a dead letter now */
};

/* Up to 1,000. queue may be NULL: whichever they are in. The first code that is not 0, and
 * err names its id; the others are settled all the same. */
SLU_API int slu_client_settle(struct slu_client *c, enum slu_settle_verb verb,
			      const char *queue, struct slu_settle *items, size_t n,
			      const struct slu_call *call, struct slu_err *err);

/* --- anything else --------------------------------------------------------------- */

/* A call to any path of the server's API. */
struct slu_request {
	const char *method; /* "GET" */
	const char *path;   /* with its query, encoded: "/stats?namespace=a&topic=b" */
	const void *body;
	size_t size;
	const char *content_type; /* NULL: application/json */
	bool repeatable;          /* Q3; GET is */
};

struct slu_answer {
	unsigned status; /* 0: there was no answer */
	char *body;      /* terminated; slu_free it */
	size_t size;
};

/* 0: the status is below 300. Else what the server said is in err, and whole in out. */
SLU_API int slu_client_call(struct slu_client *c, const struct slu_request *r,
			    struct slu_answer *out, const struct slu_call *call,
			    struct slu_err *err);

SLU_END_DECLS

#endif
