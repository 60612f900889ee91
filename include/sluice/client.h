/*
 * client.h - the C client of a Sluice server: queues, messages of any size, locks and state.
 *
 *         struct slu_client *c;
 *         struct slu_delivery *d;
 *         struct slu_err err;
 *
 *         if (slu_client_new(&c, &(struct slu_client_config){ SLU_OPTIONS_INIT(struct slu_client_config), .servers = "127.0.0.1:7171" }, &err))
 *                 ...
 *         slu_client_send(c, "mail", &(struct slu_send){ SLU_OPTIONS_INIT(struct slu_send), .payload = "hi", .size = 2 }, NULL, NULL, &err);
 *         if (slu_client_receive(c, "mail", &(struct slu_receive){ SLU_OPTIONS_INIT(struct slu_receive), .wait = SLU_NEVER }, &d, NULL, &err) == 0) {
 *                 slu_delivery_write(d, STDOUT_FILENO, &err);
 *                 slu_delivery_ack(d, NULL, &err);
 *         }
 *         slu_delivery_close(d);
 *         slu_client_free(c);
 *
 * One client serves the whole process: any number of threads may use it at once. Each call uses an
 * idle connection, or opens one, and returns it. All calls block. A delivery or a subscription is for
 * one thread at a time. Programs link libsluice-client (pkg-config sluice-client).
 *
 *  CLIENT-1  There are no hidden timeouts. A call that waits (for a message, a lock, a result)
 *      lasts as long as its waiting time, SLU_NEVER included. Only its own slu_call ends it
 *      earlier: by `timeout` or `cancel_fd`. A call that does not wait has the `timeout` of
 *      the config.
 *  CLIENT-2  If a server is away, restarts, drains, is passive or does not reach the node that has the
 *      queue, a call waits for it and tries the other servers of the list: for the `patience` of the
 *      config, or for the waiting time of a call that waits. Then it returns SLU_EDOWN.
 *  CLIENT-3  A request that was sent and not answered, or whose outcome the server does not know, is
 *      sent again where that is safe: if it changes nothing; if the server takes back what it gave
 *      when the answer does not arrive (messages, leases); if twice is the same as once (ack, release,
 *      setting a state); and for an enqueue whose messages have idempotency keys (see `idempotent`).
 *      Any other request returns SLU_EUNKNOWN: it may have happened.
 *  CLIENT-4  A refusal of the server returns a code of err.h and the server's text. The caller
 *      handles limits (SLU_EBUSY, SLU_EQFULL): err.retry_after has the time to wait.
 *
 * There are two ways to use a queue: many small messages in a call (slu_client_enqueue,
 * slu_client_dequeue, slu_client_settle), and one message of any size (slu_client_send,
 * slu_client_receive, slu_client_subscribe). <sluice/consumer.h> is for programs that only consume.
 */
#ifndef SLUICE_CLIENT_H
#define SLUICE_CLIENT_H

#include <sluice/err.h>
#include <sluice/why.h>
#include <sluice/retry.h>

SLU_BEGIN_DECLS

struct slu_client;

/* Zeros are the defaults. Everything is copied. */
struct slu_client_config {
	size_t struct_size;   /* SLU_OPTIONS_INIT */
	const char *servers;  /* "host:port", "https://host:port" or "unix:/path", or several separated by
			       * commas: the client uses the first that serves. NULL = 127.0.0.1:7171 */
	const char *space;    /* namespace; NULL = "default" */
	const char *token;    /* token of every request; NULL = none */
	const char *ca_file;  /* https: CAs that the servers' certificates are checked against, PEM;
			       * NULL = the system's */
	const char *cert;     /* https: certificate of this client, PEM; NULL = none */
	const char *cert_key; /* https: key of the certificate, PEM; NULL = none */
	slu_time timeout;     /* CLIENT-1: of an answer without waiting; 0 = 30 s */
	slu_time patience;    /* CLIENT-2; 0 = 30 s; less than 0 = none: the first failure is the result */
	bool idempotent;      /* CLIENT-3: slu_client_enqueue adds a key to messages without one */
	uint64_t packed;      /* 1 = slu_client_enqueue sends bytes instead of JSON (docs/batch-format.md),
			       * which costs the server less; older servers refuse them. 0 = JSON */
};

/* Creates a client. It connects with the first call. Returns SLU_EINVAL if an address or a file is invalid. */
SLU_API int slu_client_new(struct slu_client **out, const struct slu_client_config *config,
			   struct slu_err *err);

/* The first half of a shutdown. Waiting calls end. New work is refused: enqueue, send, dequeue, receive,
 * subscribe, watch and acquire return SLU_ECLOSED. Leased messages and locks can still be settled,
 * extended and released. Services of the client end too. Any thread may call it, any number of times. */
SLU_API int slu_client_stop(struct slu_client *c, struct slu_err *err);

/* The second half: call it when no call is running and all deliveries, subscriptions and services of the
 * client are closed. NULL is allowed. */
SLU_API void slu_client_free(struct slu_client *c);

/* The end and the namespace of a call. Zeros are the defaults; NULL = all zeros. */
struct slu_call {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	slu_time timeout;   /* returns SLU_ETIMEOUT after this time; 0 = CLIENT-1; SLU_NEVER = none */
	int cancel_fd;      /* returns SLU_ECANCELED when this is readable (an eventfd, a pipe, a
			     * signalfd); 0 = none. The library does not read from it */
	const char *space;  /* namespace; NULL = the client's */
};

/* --- many at once ----------------------------------------------------------------- */

/* A message to enqueue. NULL and 0 = the queue's default. */
struct slu_client_put {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	const void *payload;
	size_t size;          /* all payloads of a call: at most about 12 MB */
	bool is_json;         /* the payload is a JSON value, stored as JSON */
	const char *priority; /* "high", "normal", "low" or a number; lower numbers go first */
	const char *key;      /* ordering key: messages of a key are delivered in order */
	const char *idempotency_key;
	const char *correlation_id;
	const char *content_type;
	const char *attributes; /* a JSON object */
	slu_time delay;
	slu_time ttl;
	slu_time keep_result;
	unsigned max_attempts;
	slu_time deliver_at;     /* instead of delay: the earliest delivery, wall clock */
	const char *traceparent; /* W3C Trace Context, passed to the consumer */

	/* Answer. */
	uint64_t id;
	bool duplicate; /* the idempotency key was known: id is the id of the first message, and
			 * this one was not accepted */

	const char *share; /* question: the shares of a queue take turns */

	/* Question: terms of its own, in place of the queue's. */
	slu_time lease;                  /* of a claim that names none; 0 = the queue's */
	slu_time max_runtime;            /* after which its lease ends, however often it is extended; 0 = the queue's */
	slu_time deadline;               /* instead of ttl: when it becomes a dead letter, wall clock; 0 = none */
	const struct slu_backoff *retry; /* NULL = the queue's */

	/* Question: the queue has one message with this key, until it is first delivered ("started"), until it is acked,
	 * deleted or dead ("done"), or for a time. Instead of idempotency_key. */
	const char *unique_key;   /* NULL = not unique */
	const char *unique_until; /* "started" or "done"; NULL = unique_for */
	slu_time unique_for;      /* 0 = unique_until */
	bool replace;             /* a message that waits gets this payload; false = it stays as it is */

	/* Answer. */
	bool replaced; /* with duplicate: that message has this payload now */

	const char *kind; /* question: consumers may take some kinds alone; NULL = none. Not with share */

	/* Question: the id of a batch of the namespace, as a number or UUID, that the message is a member of. All messages of a
	 * call have the same. */
	const char *batch; /* NULL = none */
};

/* Enqueues up to 10,000 messages: all or, on one shard, none. When it returns 0 they are on disk. */
SLU_API int slu_client_enqueue(struct slu_client *c, const char *queue,
			       struct slu_client_put *puts, size_t n,
			       const struct slu_call *call, struct slu_err *err);

struct slu_client_claim {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	unsigned limit;     /* 0 = 10; at most 1,000 */
	slu_time lease;     /* 0 = the queue's */
	slu_time wait;      /* waiting time for the first message; 0 = do not wait; SLU_NEVER */

	/* Owner of the leases; at most 128 bytes. NULL = host and process. */
	const char *owner;

	const char *kinds; /* messages of these kinds alone, "resize,crop"; NULL = every message */
};

/* Strings are zero-terminated; "" = no value. */
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
	unsigned attempts;      /* deliveries, including this one */
	unsigned failures;      /* failed deliveries */
	unsigned max_attempts;
	int32_t priority;
	const char *raw; /* the whole message as the server sent it: JSON, not terminated */
	size_t raw_size;
	const char *receipt; /* a text that settles the message: for slu_settle, slu_receipt_parse, or
			      * another program */
	const char *share;
	const char *kind;
	const char *checkpoint; /* JSON that the last holder has stored; see struct slu_settle */
	uint64_t reserved[1];   /* 0 */
};

struct slu_client_messages {
	struct slu_client_message *items;
	size_t n;
	void *memory;         /* used by the library */
	uint64_t reserved[2]; /* 0 */
};

/* Takes messages under a lease. out: a zeroed struct, or one of an earlier call. out->n is 0 if no message
 * came in time. Messages that do not reach the caller for any reason are not taken. */
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
	size_t struct_size; /* SLU_OPTIONS_INIT */
	uint64_t id;
	const char *lease_id;   /* NULL = not given: it acts on the current lease */
	uint64_t fencing_token; /* 0 = not given */
	const char *error;      /* nack: the reason */
	const char *result;     /* ack: JSON, stored if the message has keep_result */
	slu_time time;          /* extend: length of the lease from now; nack: delay; 0 = the queue's */
	bool at_once;           /* nack: no delay */
	bool defer;             /* nack: does not count as a failure */
	bool dead;              /* nack: makes the message a dead letter */

	/* Answer. */
	enum slu_code code; /* 0, or SLU_ENOTFOUND, SLU_ELEASE, SLU_EROUNDED */
	slu_time at;        /* wall clock; nack: when it is due again; extend: when the lease ends */
	bool died;          /* nack: the message is a dead letter now */

	/* The receipt of the message, or NULL. It replaces namespace, queue, id, lease_id and
	 * fencing_token, which are not sent then; the answer sets id. */
	const char *receipt;

	/* Ack and nack: messages to enqueue in the same step, a JSON array as POST /enqueue takes it; NULL = none. The
	 * message is settled and all of them are accepted, or nothing happens. code is SLU_EOUTBOX if too many messages
	 * are on their way to the shard of one of them. Needs the receipt or the queue. */
	const char *enqueue;

	/* Nack: nothing of the scope is delivered for this long: "key", "share", "attribute" or "queue" of the message; NULL = the
	 * message alone. It is not a failure. 0 = no hold. */
	slu_time retry_after;
	const char *scope;
	const char *priority; /* nack: another priority of the message; NULL = the same */

	const char *reason; /* nack: the name of a breaker of the queue that this failure feeds; NULL = none */

	const char *checkpoint; /* extend: how far the work has come, JSON of at most 64 KiB, for the next holder of the message;
				 * NULL = the last one stays. When the call returns 0, it is stored */

	const char *release; /* ack and nack: a lock key that is released in the same step, a JSON object as POST /ack takes it;
			      * NULL = none. code is SLU_ELEASE if the lock is not held, or not the message */
};

/* Settles up to 1,000 messages. queue: NULL = any queue, or the queues of the receipts. Returns the first code
 * that is not 0, and err names its message; the other messages are settled nevertheless. */
SLU_API int slu_client_settle(struct slu_client *c, enum slu_settle_verb verb,
			      const char *queue, struct slu_settle *items, size_t n,
			      const struct slu_call *call, struct slu_err *err);

/* --- one at a time, of any size ----------------------------------------------------- */

/* Writes up to size bytes of a payload to p. Returns how many, 0 at the end, or less than 0 on an error: then
 * the message is not accepted. Runs on the thread that called slu_client_send, before it returns. */
typedef int64_t slu_source_fn(void *arg, void *p, size_t size);

/* Times are rounded up to whole seconds. */
struct slu_send {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	const void *payload;
	size_t size;
	slu_source_fn *source; /* source of the payload; NULL = it is in `payload` */
	void *source_arg;
	const char *content_type;
	const char *attributes; /* a JSON object */
	const char *correlation_id;
	slu_time delay;
	slu_time visibility; /* the lease of a delivery; 0 = 30 s */
	slu_time ttl;
	unsigned max_attempts; /* 0 = the queue's */

	/* As in slu_client_put. */
	const char *priority;
	const char *key;
	const char *share;
	const char *idempotency_key;
	const char *traceparent;
	slu_time keep_result;
	slu_time lease;
	slu_time max_runtime;
	slu_time deadline; /* instead of ttl: when it becomes a dead letter, wall clock */
	const char *kind;
	const struct slu_backoff *retry;
	const char *unique_key; /* the first message stays as it is */
	const char *unique_until;
	slu_time unique_for;
};

struct slu_sent {
	char id[40]; /* a UUID */
	char correlation_id[132];
	bool duplicate;       /* the idempotency key was known: id is the id of the first message */
	uint64_t reserved[2]; /* 0 */
};

/* Sends one message. out may be NULL. */
SLU_API int slu_client_send(struct slu_client *c, const char *queue, const struct slu_send *s,
			    struct slu_sent *out, const struct slu_call *call,
			    struct slu_err *err);

/* A lease on a key: what its holder needs to use it. Plain data: it may be copied, stored and passed to
 * another process. */
struct slu_lease {
	char space[132];
	char key[132];
	char owner[132];
	char id[24];
	char txn[24];
	uint64_t token; /* fencing token: rises with every lease of the key */
	int64_t version;
	char etag[72];        /* etag of the state; "" = no state */
	slu_time until;       /* wall clock, whole seconds */
	uint64_t reserved[2]; /* 0 */
};

/* What is needed to settle a message. Plain data, like slu_lease. */
struct slu_receipt {
	char space[132];
	char queue[132];
	char id[40]; /* a UUID */
	char lease_id[24];
	char txn[24];
	char etag[72]; /* etag of the message's metadata; every extend changes it */
	uint64_t token;
	struct slu_lease state; /* lease of the state of a stateful message; otherwise its id is "" */
	uint64_t reserved[2];   /* 0 */
};

struct slu_delivery_info {
	struct slu_receipt receipt;
	uint64_t size; /* bytes of the payload */
	unsigned attempts;
	unsigned failures;
	unsigned max_attempts;
	slu_time visibility;
	slu_time until;           /* wall clock: when the lease ends */
	const char *content_type; /* "" = none, like the members below */
	const char *correlation_id;
	const char *attributes; /* JSON */
	const char *kind;
};

struct slu_receive {
	size_t struct_size;  /* SLU_OPTIONS_INIT */
	const char *owner;   /* NULL = host, process and a number */
	slu_time visibility; /* length of the lease; 0 = 30 s; at most 30 min; rounded up to seconds */
	slu_time wait;       /* 0 = do not wait; SLU_NEVER; rounded up to seconds */
	slu_time on_close;   /* the delay of the nack of slu_delivery_close */
	bool stateful;       /* with the state of the message: slu_delivery_state */
	unsigned prefetch;   /* subscribe: unsettled messages at a time; 0 = 1; at most 64 */
	const char *kinds;   /* messages of these kinds alone, "resize,crop"; NULL = every message */
};

struct slu_delivery;

/* Receives one message. *out is NULL if no message came in time. */
SLU_API int slu_client_receive(struct slu_client *c, const char *queue,
			       const struct slu_receive *how, struct slu_delivery **out,
			       const struct slu_call *call, struct slu_err *err);

/* The facts of a delivery; valid until it is closed. extend changes them. */
SLU_API const struct slu_delivery_info *slu_delivery_info(const struct slu_delivery *d);

/* Reads up to size bytes of the payload. *n: how many; 0 at the end. The bytes come from the server as
 * they are read. */
SLU_API int slu_delivery_read(struct slu_delivery *d, void *p, size_t size, size_t *n,
			      struct slu_err *err);

/* Write the rest of the payload to a descriptor, or to a new file. The file is removed unless it was written
 * and synced completely. */
SLU_API int slu_delivery_write(struct slu_delivery *d, int fd, struct slu_err *err);
SLU_API int slu_delivery_save(struct slu_delivery *d, const char *path, struct slu_err *err);

enum slu_json_kind {
	SLU_JSON_TEXT,   /* char[]: a string */
	SLU_JSON_INT,    /* int64_t: a whole number */
	SLU_JSON_NUMBER, /* double */
	SLU_JSON_BOOL,   /* bool */
	SLU_JSON_RAW     /* char[]: any value, as it is written */
};

/* A member of a JSON object and of a struct. */
struct slu_json_field {
	const char *name;
	enum slu_json_kind kind;
	bool required;
	size_t offset;
	size_t size;
};

/* SLU_JSON_FIELD(struct order, amount, SLU_JSON_INT): the JSON member and the C member have one name. */
#define SLU_JSON_FIELD(type, member, kind)                                                \
	{                                                                                 \
#member, kind, false, offsetof(type, member), sizeof(((type *)0)->member) \
	}

/* Reads a JSON object into a struct. A missing or null member leaves the C member as it was; a member without
 * a field is skipped. At most 64 fields. Returns SLU_EINVAL, with position and reason, if the text is
 * invalid; out is then partly filled. */
SLU_API int slu_json_decode(const char *text, size_t size, const struct slu_json_field *fields,
			    size_t n, void *out, struct slu_err *err);

/* The same for the rest of the payload: at most 16 MiB. */
SLU_API int slu_delivery_decode(struct slu_delivery *d, const struct slu_json_field *fields,
				size_t n, void *out, struct slu_err *err);

/* The lease on the message's state, for the slu_state calls; NULL unless the message was received with
 * `stateful`. It lasts as long as the lease of the message. An ack removes the state, a nack keeps it. */
SLU_API struct slu_lease *slu_delivery_state(struct slu_delivery *d);

struct slu_nack {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	slu_time delay;     /* rounded up to seconds */
	const char *error;  /* the reason, stored with the message */
	bool defer;         /* does not count as a failure */
	bool dead;          /* makes the message a dead letter */
};

/*
 * Settle a delivery, once. nack may be NULL. Return SLU_ELEASE if the lease has ended (another consumer may
 * have the message), SLU_ENOTFOUND if the message does not exist any more. extend: the lease ends at now + by
 * (0 = its length so far).
 */
SLU_API int slu_delivery_ack(struct slu_delivery *d, const struct slu_call *call,
			     struct slu_err *err);
SLU_API int slu_delivery_nack(struct slu_delivery *d, const struct slu_nack *nack,
			      const struct slu_call *call, struct slu_err *err);
SLU_API int slu_delivery_extend(struct slu_delivery *d, slu_time by,
				const struct slu_call *call, struct slu_err *err);

/* Closes a delivery. A message that was neither acked nor nacked is delivered again after on_close, which
 * counts as a failure. NULL is allowed. */
SLU_API void slu_delivery_close(struct slu_delivery *d);

/* Closes a delivery and keeps the message leased: its receipt can settle it. The rest of the payload is
 * dropped. NULL is allowed. */
SLU_API void slu_delivery_leave(struct slu_delivery *d);

/* The same by a receipt; extend changes it. */
SLU_API int slu_client_ack(struct slu_client *c, const struct slu_receipt *r,
			   const struct slu_call *call, struct slu_err *err);
SLU_API int slu_client_nack(struct slu_client *c, const struct slu_receipt *r,
			    const struct slu_nack *nack, const struct slu_call *call,
			    struct slu_err *err);
SLU_API int slu_client_extend(struct slu_client *c, struct slu_receipt *r, slu_time by,
			      const struct slu_call *call, struct slu_err *err);

/* Write a receipt as one line of text, freed by slu_free; NULL if memory runs out. slu_receipt_parse also reads
 * the receipt of a slu_client_message: then lease_id, txn, etag and state are "", and slu_receipt_write
 * returns the same text. */
SLU_API char *slu_receipt_write(const struct slu_receipt *r);
SLU_API int slu_receipt_parse(struct slu_receipt *r, const char *text, struct slu_err *err);

/*
 * A stream of deliveries: the server sends messages as they come, at most `prefetch` unsettled ones. next
 * returns one delivery at a time; the rest of the previous payload is dropped then (the delivery can still
 * be acked). *out is NULL if no message came in `wait`; the subscription continues. If the server goes away,
 * next waits for it by CLIENT-2 and opens the stream again.
 */
struct slu_subscription;

SLU_API int slu_client_subscribe(struct slu_client *c, const char *queue,
				 const struct slu_receive *how, struct slu_subscription **out,
				 struct slu_err *err);
SLU_API int slu_subscription_next(struct slu_subscription *s, struct slu_delivery **out,
				  const struct slu_call *call, struct slu_err *err);

/* Ends the stream. The last delivery, if it is open and not settled, is extended and stays valid; earlier
 * deliveries keep their leases. NULL is allowed. */
SLU_API void slu_subscription_close(struct slu_subscription *s);

/* An event of a watch: the first comes at once, another whenever a member changes. */
struct slu_queue_event {
	bool available;   /* a message can be received */
	const char *head; /* id of the next message; "" = none */
};

/* Returns 0 when fn returns false; otherwise it ends by slu_call or CLIENT-2. fn runs on the caller's
 * thread. */
typedef bool slu_watch_fn(const struct slu_queue_event *e, void *arg);
SLU_API int slu_client_watch(struct slu_client *c, const char *queue, slu_watch_fn *fn,
			     void *arg, const struct slu_call *call, struct slu_err *err);

/* --- locks and state ---------------------------------------------------------------- */

/*
 * A key is a lock with a JSON document. The holder of the lease may change the document. Others see the
 * change when the lease is released with SLU_COMMIT, and never if it is rolled back or ends by itself.
 */
struct slu_acquire {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	const char *key;    /* names joined by /; NULL = the server makes one */
	const char *owner;  /* NULL = host, process and a number */
	slu_time ttl;       /* 0 = 30 s; at most 30 min; rounded up to seconds */
	slu_time wait;      /* waiting time while another owner has it, like slu_receive */
	bool if_absent;     /* returns SLU_EEXISTS if the key was used before */
	const char *txn;    /* transaction to join; NULL = a new one */
};

/* Acquires the lease of a key. Returns SLU_EBUSY if another owner has it; err.retry_after: its rest, at most. */
SLU_API int slu_lock_acquire(struct slu_client *c, const struct slu_acquire *a,
			     struct slu_lease *out, const struct slu_call *call,
			     struct slu_err *err);

/* Extends the lease to now + ttl (0 = 30 s). Returns SLU_ELEASE if it has ended. */
SLU_API int slu_lock_keep(struct slu_client *c, struct slu_lease *l, slu_time ttl,
			  const struct slu_call *call, struct slu_err *err);

enum slu_lock_end {
	SLU_COMMIT,
	SLU_ROLLBACK
};

/* Releases a lease. Returns 0 for a lease that has ended: nothing is changed then. */
SLU_API int slu_lock_release(struct slu_client *c, const struct slu_lease *l,
			     enum slu_lock_end how, const struct slu_call *call,
			     struct slu_err *err);

/* The public facts of a key. owner is "" if the key is free. id is always "": only the holder has the lease id.
 * A key that was never used has version 0. */
SLU_API int slu_lock_describe(struct slu_client *c, const char *key, struct slu_lease *out,
			      const struct slu_call *call, struct slu_err *err);

/* A document; free text by slu_free. size 0 and text NULL = no document. */
struct slu_state {
	char *text; /* JSON, terminated */
	size_t size;
	int64_t version;
	char etag[72];
	uint64_t reserved[2]; /* 0 */
};

/* A condition: a change returns SLU_ECONFLICT if the document is another one. NULL = no condition. */
struct slu_state_if {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	bool has_version;
	int64_t version;
	const char *etag; /* NULL = any */
};

/* get: the document as the holder sees it, with its own changes. peek: the committed document. */
SLU_API int slu_state_get(struct slu_client *c, const struct slu_lease *l,
			  struct slu_state *out, const struct slu_call *call,
			  struct slu_err *err);
SLU_API int slu_state_peek(struct slu_client *c, const char *key, struct slu_state *out,
			   const struct slu_call *call, struct slu_err *err);

/* Both change version and etag of the lease. A document is any JSON value. */
SLU_API int slu_state_put(struct slu_client *c, struct slu_lease *l, const char *text,
			  size_t size, const struct slu_state_if *only,
			  const struct slu_call *call, struct slu_err *err);
SLU_API int slu_state_remove(struct slu_client *c, struct slu_lease *l,
			     const struct slu_state_if *only, const struct slu_call *call,
			     struct slu_err *err);

/* Returns 0 to commit, or a code to roll back, which slu_lock_update returns. Runs on the caller's
 * thread. */
typedef int slu_update_fn(struct slu_client *c, struct slu_lease *l, struct slu_state *s,
			  void *arg, struct slu_err *err);

/*
 * Acquires the lease, runs fn and commits. fn gets the state and may put another, while a thread extends the
 * lease at half its time. The lease ends with this call. Returns SLU_ELEASE if the lease was lost while fn ran
 * (no server answered for too long): nothing was changed then. A slu_panic in fn rolls back and returns
 * SLU_EPANIC.
 */
SLU_API int slu_lock_update(struct slu_client *c, const struct slu_acquire *a,
			    slu_update_fn *fn, void *arg, const struct slu_call *call,
			    struct slu_err *err);

/* --- why ------------------------------------------------------------------------- */

/* Why the message is not running now. queue NULL = all shards are asked. Returns SLU_ENOTFOUND if the message does not
 * exist. */
SLU_API int slu_client_why(struct slu_client *c, const char *queue, uint64_t id, struct slu_why_answer *out,
			   const struct slu_call *call, struct slu_err *err);

/* --- anything else --------------------------------------------------------------- */

/* A call to any path of the server's API. */
struct slu_request {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	const char *method; /* "GET" */
	const char *path;   /* path and query, encoded: "/stats?namespace=a&queue=b" */
	const void *body;
	size_t size;
	const char *content_type;      /* NULL = application/json */
	const struct slu_lease *lease; /* sent in the head, for paths that need a lease; NULL = none */
	bool repeatable;               /* CLIENT-3; a GET always is */
};

struct slu_answer {
	unsigned status; /* 0 = no answer */
	char *body;      /* zero-terminated; freed by slu_free */
	size_t size;
	uint64_t reserved[2]; /* 0 */
};

/* Sends a request. Returns 0 for a status below 300. Otherwise err has the refusal, and out the whole answer. */
SLU_API int slu_client_call(struct slu_client *c, const struct slu_request *r,
			    struct slu_answer *out, const struct slu_call *call,
			    struct slu_err *err);

SLU_END_DECLS

#endif
