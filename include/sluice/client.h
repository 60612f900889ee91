/*
 * client.h - a Sluice server from C: queues, messages as streams, locks and state.
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
 * A client is for the whole process: any number of threads may use it at once, each call
 * takes a connection that rests, or makes one, and gives it back. All calls block. What
 * belongs to one receiver (a delivery, a subscription) is for one thread at a time.
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
 *
 * Two ways to the same queues: many small messages a call (slu_client_enqueue,
 * slu_client_dequeue, slu_client_settle), and one at a time of any size (slu_client_send,
 * slu_client_receive, slu_client_subscribe). For programs that only consume there is
 * <sluice/consumer.h>.
 */
#ifndef SLUICE_CLIENT_H
#define SLUICE_CLIENT_H

#include <sluice/err.h>

SLU_BEGIN_DECLS

struct slu_client;

/* Zeros are the defaults. Everything is copied. */
struct slu_client_config {
	size_t struct_size;  /* SLU_OPTIONS_INIT */
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

/* The first half of a shutdown: calls that wait end, nothing new is begun (to enqueue, send,
 * dequeue, receive, subscribe, watch and acquire is SLU_ECLOSED), and what is held can still be
 * settled, extended and released. Services of the client end, too. From any thread, any number
 * of times. */
SLU_API int slu_client_stop(struct slu_client *c, struct slu_err *err);

/* The second half: when no call is under way and everything that came from it is closed. NULL
 * is fine. */
SLU_API void slu_client_free(struct slu_client *c);

/* How a call may end, and whose queue it is about. Zeros are the defaults; NULL is all
 * zeros. */
struct slu_call {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	slu_time timeout;   /* SLU_ETIMEOUT so long from now; 0: Q1; SLU_NEVER: none */
	int cancel_fd;      /* SLU_ECANCELED once this is readable (an eventfd, a pipe, a
			     * signalfd); 0: none. Nobody reads from it */
	const char *space;  /* NULL: the client's */
};

/* --- many at once ----------------------------------------------------------------- */

/* A message to enqueue. NULL and 0: not said, the queue's default. */
struct slu_client_put {
	size_t struct_size; /* SLU_OPTIONS_INIT */
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
	slu_time deliver_at;     /* instead of delay: wall clock, not before then */
	const char *traceparent; /* of W3C Trace Context, handed on */

	/* Answer. */
	uint64_t id;
	bool duplicate; /* its idempotency key was known: id is the first message's, and
			 * this one was not accepted */
};

/* Up to 10,000, all or (of one shard) none; when it returns 0 they are on disk. */
SLU_API int slu_client_enqueue(struct slu_client *c, const char *queue,
			       struct slu_client_put *puts, size_t n,
			       const struct slu_call *call, struct slu_err *err);

struct slu_client_claim {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	unsigned limit;     /* 0: 10; at most 1,000 */
	slu_time lease;     /* 0: the queue's */
	slu_time wait;      /* for the first; 0: not at all; SLU_NEVER */

	/* Who takes them, shown with their leases; at most 128 bytes. NULL: host and process. */
	const char *owner;
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
	const char *receipt;  /* one text that settles it: for slu_settle, for slu_receipt_parse,
			       * or for another program */
	uint64_t reserved[4]; /* 0 */
};

struct slu_client_messages {
	struct slu_client_message *items;
	size_t n;
	void *memory;         /* the library's */
	uint64_t reserved[2]; /* 0 */
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
	size_t struct_size; /* SLU_OPTIONS_INIT */
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
	enum slu_code code; /* 0, or why not: SLU_ENOTFOUND, SLU_ELEASE, SLU_EROUNDED */
	slu_time at;        /* wall clock: nack: due again; extend: when the lease ends */
	bool died;          /* nack: it is a dead letter now */

	/* The receipt of the message, or NULL. It stands for its namespace, queue, id, lease_id
	 * and fencing_token, which are not sent then; id is set by the answer. */
	const char *receipt;
};

/* Up to 1,000. queue may be NULL: whichever they are in, or as their receipts say. The first code that is not 0, and
 * err names its id; the others are settled all the same. */
SLU_API int slu_client_settle(struct slu_client *c, enum slu_settle_verb verb,
			      const char *queue, struct slu_settle *items, size_t n,
			      const struct slu_call *call, struct slu_err *err);

/* --- one at a time, of any size ----------------------------------------------------- */

/* Up to size bytes of a payload into p: how many, 0 at the end, less than 0 when there
 * will be no end: then the message is not accepted. Thread: the one that called
 * slu_client_send, before it returns. */
typedef int64_t slu_source_fn(void *arg, void *p, size_t size);

/* Times are whole seconds, rounded up. */
struct slu_send {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	const void *payload;
	size_t size;
	slu_source_fn *source; /* the payload comes from there; NULL: it is in payload */
	void *source_arg;
	const char *content_type;
	const char *attributes; /* a JSON object */
	const char *correlation_id;
	slu_time delay;
	slu_time visibility; /* the lease it asks for; 0: 30 s */
	slu_time ttl;
	unsigned max_attempts; /* 0: the queue's */
};

struct slu_sent {
	char id[40]; /* a UUID */
	char correlation_id[132];
	uint64_t reserved[2]; /* 0 */
};

/* out may be NULL. */
SLU_API int slu_client_send(struct slu_client *c, const char *queue, const struct slu_send *s,
			    struct slu_sent *out, const struct slu_call *call,
			    struct slu_err *err);

/* A lease on a key, and what a holder shows to use it. Plain data: it may be copied, kept
 * and handed to another process. */
struct slu_lease {
	char space[132];
	char key[132];
	char owner[132];
	char id[24];
	char txn[24];
	uint64_t token; /* rises with every lease of the key: for fencing */
	int64_t version;
	char etag[72];        /* of the state; "": there is none */
	slu_time until;       /* wall clock, whole seconds */
	uint64_t reserved[2]; /* 0 */
};

/* All that it takes to settle a message. Plain data, as above. */
struct slu_receipt {
	char space[132];
	char queue[132];
	char id[40]; /* a UUID */
	char lease_id[24];
	char txn[24];
	char etag[72]; /* of the message's metadata; a new one with every extend */
	uint64_t token;
	struct slu_lease state; /* of a stateful message; else id is "" */
	uint64_t reserved[2];   /* 0 */
};

struct slu_delivery_info {
	struct slu_receipt receipt;
	uint64_t size; /* of the payload */
	unsigned attempts;
	unsigned failures;
	unsigned max_attempts;
	slu_time visibility;
	slu_time until;           /* wall clock: when the lease ends */
	const char *content_type; /* "" where there is nothing to say, as below */
	const char *correlation_id;
	const char *attributes; /* JSON */
};

struct slu_receive {
	size_t struct_size;  /* SLU_OPTIONS_INIT */
	const char *owner;   /* NULL: a name made of host, process and a number */
	slu_time visibility; /* the lease; 0: 30 s; at most 30 min; whole seconds, rounded up */
	slu_time wait;       /* 0: not at all; SLU_NEVER; whole seconds, rounded up */
	slu_time on_close;   /* slu_delivery_close without an ack: the delay of the nack */
	bool stateful;       /* with its state: slu_delivery_state */
	unsigned prefetch;   /* subscribe: messages a round; 0: 1; at most 64 */
};

struct slu_delivery;

/* *out is NULL when nothing came within the wait. */
SLU_API int slu_client_receive(struct slu_client *c, const char *queue,
			       const struct slu_receive *how, struct slu_delivery **out,
			       const struct slu_call *call, struct slu_err *err);

/* Good until it is closed; extend changes it. */
SLU_API const struct slu_delivery_info *slu_delivery_info(const struct slu_delivery *d);

/* Up to size bytes of the payload: *n is how many, 0 at its end. The bytes come from the
 * server as they are asked for. */
SLU_API int slu_delivery_read(struct slu_delivery *d, void *p, size_t size, size_t *n,
			      struct slu_err *err);

/* What is left of the payload, to a descriptor or into a file, which is made and, unless
 * all of it could be written and synced, removed again. */
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

/* SLU_JSON_FIELD(struct order, amount, SLU_JSON_INT): one name for both. */
#define SLU_JSON_FIELD(type, member, kind)                                                \
	{                                                                                 \
#member, kind, false, offsetof(type, member), sizeof(((type *)0)->member) \
	}

/* An object into a struct: what is not there, or null, leaves its member as it was; what
 * no field has is passed over. At most 64 fields. SLU_EINVAL says where and why; then out
 * is half filled. */
SLU_API int slu_json_decode(const char *text, size_t size, const struct slu_json_field *fields,
			    size_t n, void *out, struct slu_err *err);

/* The same of what is left of the payload: at most 16 MiB. */
SLU_API int slu_delivery_decode(struct slu_delivery *d, const struct slu_json_field *fields,
				size_t n, void *out, struct slu_err *err);

/* The lease on the message's own state, for the slu_state calls; NULL when it was not
 * received with `stateful`. It lasts as long as the message's. Ack removes the state, nack
 * keeps what was put. */
SLU_API struct slu_lease *slu_delivery_state(struct slu_delivery *d);

struct slu_nack {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	slu_time delay;     /* whole seconds, rounded up */
	const char *error;  /* why; kept with the message */
	bool defer;         /* no failure: just not now */
	bool dead;          /* no use to try again */
};

/*
 * How it ends: once. nack may be NULL. SLU_ELEASE: the lease has ended, somebody else may
 * have it; SLU_ENOTFOUND: it is gone. extend: the lease ends at now + by (0: what it was).
 */
SLU_API int slu_delivery_ack(struct slu_delivery *d, const struct slu_call *call,
			     struct slu_err *err);
SLU_API int slu_delivery_nack(struct slu_delivery *d, const struct slu_nack *nack,
			      const struct slu_call *call, struct slu_err *err);
SLU_API int slu_delivery_extend(struct slu_delivery *d, slu_time by,
				const struct slu_call *call, struct slu_err *err);

/* One that was neither acked nor nacked goes back, on_close from now, and that counts as a
 * failure. NULL is fine. */
SLU_API void slu_delivery_close(struct slu_delivery *d);

/* It stays leased, for whoever has its receipt; what was not read of the payload is
 * dropped. NULL is fine. */
SLU_API void slu_delivery_leave(struct slu_delivery *d);

/* The same for whoever has the receipt; extend changes it. */
SLU_API int slu_client_ack(struct slu_client *c, const struct slu_receipt *r,
			   const struct slu_call *call, struct slu_err *err);
SLU_API int slu_client_nack(struct slu_client *c, const struct slu_receipt *r,
			    const struct slu_nack *nack, const struct slu_call *call,
			    struct slu_err *err);
SLU_API int slu_client_extend(struct slu_client *c, struct slu_receipt *r, slu_time by,
			      const struct slu_call *call, struct slu_err *err);

/* A receipt as one line of text, to be handed on: slu_free it. NULL: no memory.
 * slu_receipt_parse also reads the receipt of a slu_client_message: then lease_id, txn, etag
 * and state are "", and slu_receipt_write gives the same text back. */
SLU_API char *slu_receipt_write(const struct slu_receipt *r);
SLU_API int slu_receipt_parse(struct slu_receipt *r, const char *text, struct slu_err *err);

/*
 * A stream of deliveries: the server hands out what comes, without being asked again, but no more
 * than `prefetch` that are not settled. next gives one delivery at a time: the payload of the one before is to be read
 * by then, or the rest of it is dropped (it may still be acked). *out is NULL when nothing
 * came within `wait`; the subscription goes on. A server that goes away meanwhile is
 * waited for as Q2 says, and the stream begun anew.
 */
struct slu_subscription;

SLU_API int slu_client_subscribe(struct slu_client *c, const char *queue,
				 const struct slu_receive *how, struct slu_subscription **out,
				 struct slu_err *err);
SLU_API int slu_subscription_next(struct slu_subscription *s, struct slu_delivery **out,
				  const struct slu_call *call, struct slu_err *err);

/* Ends the stream. The last delivery, if it is open and not settled, is extended and stays the
 * caller's; deliveries before it keep their leases. NULL is fine. */
SLU_API void slu_subscription_close(struct slu_subscription *s);

/* What a watcher is told: at once, and whenever one of the two changes. */
struct slu_queue_event {
	bool available;   /* something can be received */
	const char *head; /* id of the next message; "": none */
};

/* Returns 0 when fn returns false; else when the call ends, or as Q2 says. Thread of fn: the
 * caller's, one call at a time. */
typedef bool slu_watch_fn(const struct slu_queue_event *e, void *arg);
SLU_API int slu_client_watch(struct slu_client *c, const char *queue, slu_watch_fn *fn,
			     void *arg, const struct slu_call *call, struct slu_err *err);

/* --- locks and state ---------------------------------------------------------------- */

/*
 * A key is a lock with a JSON document beside it. Who has the lease may change the
 * document; others see the change when the lease is released with SLU_COMMIT, and never
 * when it is rolled back, or ends by itself.
 */
struct slu_acquire {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	const char *key;    /* names joined by /; NULL: the server makes one */
	const char *owner;  /* NULL: made, as for slu_receive */
	slu_time ttl;       /* 0: 30 s; at most 30 min; whole seconds, rounded up */
	slu_time wait;      /* while somebody else has it: as for slu_receive */
	bool if_absent;     /* SLU_EEXISTS when there was such a key before */
	const char *txn;    /* join this one; NULL: a new one */
};

/* SLU_EBUSY: somebody else has it; err.retry_after: until when, at most. */
SLU_API int slu_lock_acquire(struct slu_client *c, const struct slu_acquire *a,
			     struct slu_lease *out, const struct slu_call *call,
			     struct slu_err *err);

/* The lease ends at now + ttl (0: 30 s). SLU_ELEASE: it has ended before. */
SLU_API int slu_lock_keep(struct slu_client *c, struct slu_lease *l, slu_time ttl,
			  const struct slu_call *call, struct slu_err *err);

enum slu_lock_end {
	SLU_COMMIT,
	SLU_ROLLBACK
};

/* Also of a lease that has ended: then there is nothing to be done, and that is 0. */
SLU_API int slu_lock_release(struct slu_client *c, const struct slu_lease *l,
			     enum slu_lock_end how, const struct slu_call *call,
			     struct slu_err *err);

/* What anybody may know of a key: owner is "" when nobody has it. The lease id is its holder's
 * alone: id is "". A key that was never used has version 0. */
SLU_API int slu_lock_describe(struct slu_client *c, const char *key, struct slu_lease *out,
			      const struct slu_call *call, struct slu_err *err);

/* A document: slu_free(text). size 0 and text NULL: there is none. */
struct slu_state {
	char *text; /* JSON, terminated */
	size_t size;
	int64_t version;
	char etag[72];
	uint64_t reserved[2]; /* 0 */
};

/* Change it only if it is still this: SLU_ECONFLICT. NULL: whatever it is. */
struct slu_state_if {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	bool has_version;
	int64_t version;
	const char *etag; /* NULL: any */
};

/* As the holder sees it, with what was put under this lease; and as all see it. */
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

/* 0: commit; anything else: roll back, and that is what slu_lock_update returns. Thread: the
 * caller's. */
typedef int slu_update_fn(struct slu_client *c, struct slu_lease *l, struct slu_state *s,
			  void *arg, struct slu_err *err);

/*
 * Acquire, run fn, commit: fn gets the state as it is (and may put another) while the
 * lease is kept alive by a thread, at half its time. The lease does not outlive this
 * call. SLU_ELEASE: it was lost while fn ran (nobody could be reached for so long), and
 * nothing was changed. A slu_panic in fn rolls back, and is SLU_EPANIC.
 */
SLU_API int slu_lock_update(struct slu_client *c, const struct slu_acquire *a,
			    slu_update_fn *fn, void *arg, const struct slu_call *call,
			    struct slu_err *err);

/* --- anything else --------------------------------------------------------------- */

/* A call to any path of the server's API. */
struct slu_request {
	size_t struct_size; /* SLU_OPTIONS_INIT */
	const char *method; /* "GET" */
	const char *path;   /* with its query, encoded: "/stats?namespace=a&topic=b" */
	const void *body;
	size_t size;
	const char *content_type;      /* NULL: application/json */
	const struct slu_lease *lease; /* goes into the head, for what wants one; or NULL */
	bool repeatable;               /* Q3; GET is */
};

struct slu_answer {
	unsigned status; /* 0: there was no answer */
	char *body;      /* terminated; slu_free it */
	size_t size;
	uint64_t reserved[2]; /* 0 */
};

/* 0: the status is below 300. Else what the server said is in err, and whole in out. */
SLU_API int slu_client_call(struct slu_client *c, const struct slu_request *r,
			    struct slu_answer *out, const struct slu_call *call,
			    struct slu_err *err);

SLU_END_DECLS

#endif
