/*
 * remote.h - the flat queue API as calls: what the commands need of it.
 *
 *         struct remote rem;
 *
 *         remote_init(&rem, &address, 30 * SLU_SEC, -1);
 *         remote_put_begin(&rem);
 *         remote_put(&rem, &(struct remote_put){ .space = "default", .queue = "mail", ... });
 *         rc = remote_put_send(&rem, ids, &err);
 *         remote_release(&rem);
 *
 * One connection, one call at a time, one thread (client/http.h). A refusal by the
 * server is the code of the error table and the server's sentence.
 *
 *  C1  What changes nothing, or what the server takes back when the client did not get
 *      the answer, is asked again when a kept connection broke. An enqueue is not:
 *      SLU_EUNKNOWN, unless every message has an idempotency key.
 *  C2  `timeout` is for an answer beyond what the call itself waits for.
 */
#ifndef CLIENT_REMOTE_H
#define CLIENT_REMOTE_H

#include "client/http.h"

enum {
	REMOTE_PUT_MAX = 10000, /* messages of an enqueue, and bytes of it */
	REMOTE_BODY_MAX = 15 << 20,
	REMOTE_CLAIM_MAX = 1000,
	REMOTE_SETTLE_MAX = 1000
};

/* A longer wait is made of several: proxies and half-open connections like it better. */
#define REMOTE_WAIT_MAX (30 * SLU_SEC)

struct remote {
	struct http http;
	slu_time timeout;
	int stop_fd; /* readable: the caller wants no answer any more; or -1 */

	/* Inner: what is being written. */
	struct buf path, body;
	size_t n_puts;
	bool all_keyed; /* C1 */
};

void remote_init(struct remote *rem, const struct address *address, slu_time timeout,
		 int stop_fd);
void remote_release(struct remote *rem);

/* --- enqueue -------------------------------------------------------------------- */

struct remote_put {
	const char *space, *queue;
	struct slice payload;
	bool is_json;         /* payload is a JSON value, to be kept as one */
	const char *priority; /* "high", "-3"; NULL: not said, as all below */
	const char *key;
	const char *idempotency_key;
	const char *correlation_id;
	slu_time delay; /* 0: none, as the next two */
	slu_time ttl;
	slu_time keep_result;
	uint64_t max_attempts; /* 0: the queue's */
};

void remote_put_begin(struct remote *rem);
void remote_put(struct remote *rem, const struct remote_put *put);
size_t remote_put_bytes(const struct remote *rem);

/* ids has room for every put since begin; all are accepted, or on one shard none. */
int remote_put_send(struct remote *rem, uint64_t *ids, struct slu_err *err);

/* --- dequeue -------------------------------------------------------------------- */

struct remote_claim {
	const char *space, *queue;
	uint64_t limit;
	slu_time lease; /* 0: the queue's */
	slu_time wait;  /* at most REMOTE_WAIT_MAX */
};

/* Slices are empty, numbers 0 where the server said nothing. */
struct remote_message {
	uint64_t id;
	struct slice uid;
	struct slice namespace, topic;
	struct slice payload;
	struct slice content_type;
	struct slice key, correlation_id;
	struct slice lease_id, lease_expires_at;
	uint64_t fencing_token;
	uint64_t attempts, failure_attempts, max_attempts;
	int64_t priority;
	struct slice attributes; /* JSON, as the next */
	struct slice raw;        /* all of it, as it came */
};

struct remote_messages {
	struct remote_message *items;
	size_t n;
	struct buf document; /* what the slices point into, and the next */
	char *room;
};

/* n is 0 when nothing came within the wait. Zeroed is a fine start for out; it is
 * emptied first. */
int remote_dequeue(struct remote *rem, const struct remote_claim *claim,
		   struct remote_messages *out, struct slu_err *err);
void remote_messages_release(struct remote_messages *m);

/* --- settle --------------------------------------------------------------------- */

enum remote_verb {
	REMOTE_ACK,
	REMOTE_NACK,
	REMOTE_EXTEND
};

struct remote_settle {
	const char *space;
	const char *queue; /* NULL: whichever it is in */
	uint64_t id;
	struct slice lease_id; /* n 0: not said */
	uint64_t token;        /* 0: not said */
	struct slice error;    /* nack */
	struct slice result;   /* ack: JSON */
	slu_time time;         /* extend: lease; nack: delay; 0 or less: by the queue's policy */
	bool at_once;          /* nack: a delay of 0 */
	bool defer, dead;      /* nack: no failure; no more attempts */
};

/* SLU_ENOTFOUND: no such message, or it was acked before. SLU_ELEASE: lost. What the
 * server answered is in rem->http.answer.body. */
int remote_settle(struct remote *rem, enum remote_verb verb, const struct remote_settle *s,
		  struct slu_err *err);

/* The same for n at once, at most REMOTE_SETTLE_MAX. When not all went well, the code of
 * the first that did not, and err names its id; the others are settled all the same. */
int remote_settle_all(struct remote *rem, enum remote_verb verb,
		      const struct remote_settle *items, size_t n, struct slu_err *err);

/* --- looking -------------------------------------------------------------------- */

/* Begin a path and append to its query. A NULL value is left out. */
void remote_path(struct remote *rem, const char *path);
void remote_param(struct remote *rem, const char *name, const char *value);
void remote_param_u64(struct remote *rem, const char *name, uint64_t value);

/* Ask for the path; what came is good until the next call. */
int remote_get(struct remote *rem, struct slice *out, struct slu_err *err);

/* POST body to the path; or PUT, which may be repeated. */
int remote_post(struct remote *rem, struct slice body, struct slice *out, struct slu_err *err);
int remote_put_to(struct remote *rem, struct slice body, struct slice *out,
		  struct slu_err *err);

#endif
