/*
 * lock.h - requests about one lock key: the key, the right of the caller, refusals.
 *
 *      key, namespace   body or query; folded
 *      lease            body, or X-Lease-ID
 *      transaction      body, or X-Txn-ID
 *      fencing token    X-Fencing-Token
 *      conditions       X-If-Version, X-If-State-ETag
 *
 * A key `q/<queue>/state/<message id>` is the state of a message: it lives with the queue, and
 * the lease of the message is its lease. Keys `q/<queue>/msg/...` belong to the queue.
 */
#ifndef API_LOCKD_LOCK_H
#define API_LOCKD_LOCK_H

#include "api/lockd/lockd.h"
#include "api/rows.h"

enum {
	LOCKD_OWNER_MAX = 256 /* bytes of an owner in a request */
};

#define LOCKD_LEASE_MAX (30 * 60 * SLU_SEC)

struct lockd_lock {
	/* As sent. */
	struct slice namespace, key, owner, lease_id, txn_id;
	int64_t ttl_seconds, block_seconds;
	bool if_not_exists, rollback;

	/* As understood. */
	struct slice queue;    /* where the key lives */
	uint64_t message;      /* the message of the state, or 0 */
	struct slice lease;    /* trimmed; n 0: none */
	struct lockd_xid txn;  /* zeros: none */
	uint64_t token, fence; /* 0: none */
	int64_t if_version;    /* -1: any */
	uint64_t if_etag;      /* 0: any */
	bool correlated;       /* the message has a correlation id of its own */

	/* Private to lockd_lock_run. */
	struct op look;
	struct op_row row;
	struct rows rows;
	void (*answer)(struct apicall *a);
};

/* Rows for the body of acquire, keepalive and release. */
extern const struct json_field lockd_lock_fields[];
extern const size_t lockd_lock_n_fields;

/* What a request must have. */
enum lockd_right {
	LOCKD_NEEDS_LEASE = 1,
	LOCKD_NEEDS_FENCE = 2,
	LOCKD_NEEDS_TXN = 4,
	LOCKD_HOLDER = LOCKD_NEEDS_LEASE | LOCKD_NEEDS_FENCE | LOCKD_NEEDS_TXN
};

/* The functions below return false if they refused the call. */

/* Reads the key, which is required. */
bool lockd_lock_key(struct apicall *a, struct lockd_lock *l);

/* Finds where a folded key lives. */
bool lockd_lock_place(struct apicall *a, struct lockd_lock *l);

/* Reads lease, fencing token and transaction. `needs`: values of enum lockd_right. */
bool lockd_lock_right(struct apicall *a, struct lockd_lock *l, unsigned needs);

/* Reads the key and the right to read it: a lease and its fencing token, or public=1 and the right to
 * read the namespace. */
bool lockd_lock_reader(struct apicall *a, struct lockd_lock *l);

/* Reads the key, the right to write it and the conditions. */
bool lockd_lock_writer(struct apicall *a, struct lockd_lock *l);

/* Begins an op on the key, with the right and the conditions of the request. */
void lockd_lock_op(struct apicall *a, const struct lockd_lock *l, struct op *op,
		   enum op_verb verb);

/* As apicall_run. If the key is the state of a message, looks up the correlation id of the
 * message first: the answer has it. Uses apicall.part. */
void lockd_lock_run(struct apicall *a, struct lockd_lock *l, void (*answer)(struct apicall *a));

/* Answers with the reason of a failed op. */
void lockd_lock_refuse(struct apicall *a, const struct op *op);

/* Returns true if op failed: then the call was refused. */
bool lockd_lock_failed(struct apicall *a);

/* Answers a STATE_PUT. `bytes`: the size of the state. */
void lockd_state_answer(struct apicall *a, uint64_t bytes);

/* A header field of the request, trimmed; n 0: not sent. Valid until the handler returns. */
struct slice lockd_field(struct apicall *a, const char *name);

/* Add X-Fencing-Token, X-Key-Version or ETag to the answer, unless the value is 0. */
void lockd_add_number(struct call *c, const char *name, uint64_t number);
void lockd_add_etag(struct call *c, uint64_t etag);

/* The lease id of a token and its transaction. */
const char *lockd_lock_lease(uint64_t token, const uint8_t txn[static LOCKD_XID],
			     char out[static LOCKD_XID_TEXT]);

#endif
