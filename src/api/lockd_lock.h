/*
 * lockd_lock.h - calls about one lock key: which key, by whose right, why not.
 *
 *      key, namespace   body or query; folded
 *      lease            body, or X-Lease-ID
 *      transaction      body, or X-Txn-ID
 *      fencing token    X-Fencing-Token
 *      conditions       X-If-Version, X-If-State-ETag
 *
 * A key `q/<queue>/state/<message id>` is the state of a message: it lives with its queue,
 * and whoever holds the message holds it. Keys `q/<queue>/msg/...` are the queue's own.
 */
#ifndef API_LOCKD_LOCK_H
#define API_LOCKD_LOCK_H

#include "api/lockd.h"
#include "api/rows.h"

enum {
	LOCKD_OWNER_MAX = 256 /* bytes that a client may say */
};

#define LOCKD_LEASE_MAX (30 * 60 * SLU_SEC)

struct lockd_lock {
	/* What was said. */
	struct slice namespace, key, owner, lease_id, txn_id;
	int64_t ttl_seconds, block_seconds;
	bool if_not_exists, rollback;

	/* What that means. */
	struct slice queue;    /* where the key lives */
	uint64_t message;      /* whose state it is, or 0 */
	struct slice lease;    /* trimmed; n 0: none */
	struct lockd_xid txn;  /* zeros: none */
	uint64_t token, fence; /* 0: none */
	int64_t if_version;    /* -1: any */
	uint64_t if_etag;      /* 0: any */
	bool correlated;       /* the message has a correlation id of its own */

	/* Inner: of lockd_lock_run. */
	struct op look;
	struct op_row row;
	struct rows rows;
	void (*answer)(struct ask *a);
};

/* Rows for the body of acquire, keepalive and release. */
extern const struct json_field lockd_lock_fields[];
extern const size_t lockd_lock_n_fields;

/* What a call must bring. */
enum lockd_right {
	LOCKD_NEEDS_LEASE = 1,
	LOCKD_NEEDS_FENCE = 2,
	LOCKD_NEEDS_TXN = 4,
	LOCKD_HOLDER = LOCKD_NEEDS_LEASE | LOCKD_NEEDS_FENCE | LOCKD_NEEDS_TXN
};

/* All of these: false, and it was refused. */
bool lockd_lock_key(struct ask *a, struct lockd_lock *l);   /* a key is required */
bool lockd_lock_place(struct ask *a, struct lockd_lock *l); /* the same of one that is folded */
bool lockd_lock_right(struct ask *a, struct lockd_lock *l, unsigned needs);
bool lockd_lock_conditions(struct ask *a, struct lockd_lock *l);

/* For who reads: a lease and its fencing token, or public=1 and the right to read. */
bool lockd_lock_reader(struct ask *a, struct lockd_lock *l);

/* Begin an op with all of that. */
void lockd_lock_op(struct ask *a, const struct lockd_lock *l, struct op *op,
		   enum op_verb verb);

/* As ask_run, of the op that was begun. The answer to a call about the state of a message has
 * the correlation id of that message, which is looked up first if it has to be. */
void lockd_lock_run(struct ask *a, struct lockd_lock *l, void (*answer)(struct ask *a));

/* Answer with why the op was refused. */
void lockd_lock_refuse(struct ask *a, const struct op *op);

/* Answer a STATE_PUT of the state itself, of so many bytes. */
void lockd_state_answer(struct ask *a, uint64_t bytes);

/* A field of the request, without blanks around it; n 0: none. Until the handler returns. */
struct slice lockd_field(struct ask *a, const char *name);

/* X-Fencing-Token, X-Key-Version and ETag of the answer; 0 is left out. */
void lockd_add_number(struct call *c, const char *name, uint64_t number);
void lockd_add_etag(struct call *c, uint64_t etag);

/* The lease id of a token and its transaction. */
const char *lockd_lock_lease(uint64_t token, const uint8_t txn[static LOCKD_XID],
			     char out[static LOCKD_XID_TEXT]);

#endif
