/*
 * lockd.h - the lockd dialect: leases, locks, state and streams under /v1.
 *
 * This file has what its routes share. docs/lockd.md is the contract.
 *
 *      id       xids, leases, etags        settle   ack, nack, extend
 *      enqueue  enqueue                    stats    stats; watch
 *      consume  dequeue, subscribe         parts    a delivery in parts
 *      state.h  locks and state
 *
 * All errors of these routes, also errors of other modules, have one form:
 *
 *      {"error":"waiting","detail":"...","retry_after_seconds":1}
 *
 * The code comes from the table below, or, for a struct slu_err, from `errors` of
 * lockd_dialect. Every error has X-Correlation-Id: the one of the request if it is well
 * formed, otherwise a new one. JSON ends with a line feed.
 *
 * Bodies are read leniently: unknown members are ignored, `null` means left out. The members
 * for safety (lease, token, transaction) are never optional.
 */
#ifndef API_LOCKD_LOCKD_H
#define API_LOCKD_LOCKD_H

#include "api/handler.h"
#include "api/dialect.h"
#include "api/lockd/id.h"
#include "base/json/json_table.h"
#include "core/names.h"

extern const struct dialect lockd_dialect;

/* A row: C name, status, code, text for people. */
/* clang-format off */
#define LOCKD_CODES(X) \
	X(INVALID_BODY,            400, "invalid_body",            "invalid body") \
	X(INVALID_NAMESPACE,       400, "invalid_namespace",       "invalid namespace name") \
	X(INVALID_KEY,             400, "invalid_key",             "invalid key") \
	X(INVALID_VERSION,         400, "invalid_version",         "invalid version; expected a number") \
	X(INVALID_EXPECTED_BYTES,  400, "invalid_expected_bytes",  "invalid number of bytes") \
	X(INVALID_EXPECTED_SHA256, 400, "invalid_expected_sha256", "invalid SHA-256; expected 64 hex digits") \
	X(INVALID_TXN,             400, "invalid_txn",             "invalid transaction id; expected 20 characters of 0-9a-v") \
	X(INVALID_METADATA,        400, "invalid_metadata",        "invalid metadata") \
	X(INVALID_MUTATIONS,       400, "invalid_mutations",       "invalid mutations; expected a list") \
	X(INVALID_QUEUE,           400, "invalid_queue",           "invalid queue name") \
	X(INVALID_QUEUE_KEY,       400, "invalid_queue_key",       "the key belongs to a queue") \
	X(INVALID_QUEUE_STATE_KEY, 400, "invalid_queue_state_key", "invalid key of a message state") \
	X(INVALID_CONTENT_TYPE,    400, "invalid_content_type",    "expected a multipart body") \
	X(MULTIPART_ERROR,         400, "multipart_error",         "invalid multipart body") \
	X(INVALID_NACK_INTENT,     400, "invalid_nack_intent",     "intent: expected failure or defer") \
	X(INVALID_NACK_LAST_ERROR, 400, "invalid_nack_last_error", "last_error: not allowed with intent defer") \
	X(INVALID_FENCING_TOKEN,   400, "invalid_fencing_token",   "invalid fencing token; expected a number") \
	X(MISSING_KEY,             400, "missing_key",             "key is required") \
	X(MISSING_PARAMS,          400, "missing_params",          "a lease, or public=1, is required") \
	X(MISSING_OWNER,           400, "missing_owner",           "owner is required") \
	X(MISSING_QUEUE,           400, "missing_queue",           "queue is required") \
	X(MISSING_LEASE,           400, "missing_lease",           "a lease id is required") \
	X(MISSING_TXN,             400, "missing_txn",             "the id of the transaction of the lease is required") \
	X(MISSING_FIELDS,          400, "missing_fields",          "a required member is missing") \
	X(MISSING_FENCING_TOKEN,   400, "missing_fencing_token",   "a fencing token is required") \
	X(LEASE_REQUIRED,          403, "lease_required",          "this lease is not held") \
	X(LEASE_EXPIRED,           403, "lease_expired",           "the lease has ended") \
	X(FENCING_MISMATCH,        403, "fencing_mismatch",        "wrong fencing token of the lease") \
	X(STATE_KEEPALIVE,         403, "queue_state_keepalive_unsupported", "extend the message instead: its state follows") \
	X(NAMESPACE_FORBIDDEN,     403, "namespace_forbidden",     "not allowed in this namespace") \
	X(TC_CLIENT_REQUIRED,      403, "tc_client_required",      "transactions over several keys are not offered: every key commits by its release") \
	X(TC_SERVER_REQUIRED,      403, "tc_server_required",      "transactions over several servers are not offered") \
	X(NOT_FOUND,               404, "not_found",               "no such message; it may be finished") \
	X(ATTACHMENT_NOT_FOUND,    404, "attachment_not_found",    "no such attachment") \
	X(WAITING,                 409, "waiting",                 "no message or lock is available now") \
	X(ALREADY_EXISTS,          409, "already_exists",          "the key exists") \
	X(VERSION_CONFLICT,        409, "version_conflict",        "the version has changed") \
	X(ETAG_MISMATCH,           409, "etag_mismatch",           "the etag has changed") \
	X(TXN_MISMATCH,            409, "txn_mismatch",            "the lease has another transaction") \
	X(TXN_CONFLICT,            409, "txn_conflict",            "the transaction belongs to another lease: leave txn_id out, and commit each lease by its own release or ack") \
	X(EXPECTED_BYTES,          409, "expected_bytes_mismatch", "the body has another length") \
	X(EXPECTED_SHA256,         409, "expected_sha256_mismatch", "the body has another sum") \
	X(MESSAGE_LEASE,           409, "queue_message_lease_mismatch", "the message has another lease now") \
	X(CAS_MISMATCH,            409, "cas_mismatch",            "wrong meta_etag of this delivery") \
	X(DOCUMENT_TOO_LARGE,      413, "document_too_large",      "document too large") \
	X(ATTACHMENT_TOO_LARGE,    413, "attachment_too_large",    "attachment too large") \
	X(QUEUE_BUSY,              503, "queue_busy",              "too many waiting consumers") \
	X(DRAINING,                503, "shutdown_draining",       "stopping, accepts no new work")
/* clang-format on */

enum lockd_code {
#define X(name, ...) LOCKD_##name,
	LOCKD_CODES(X)
#undef X
};

/* Empty members and 0 are left out of the answer. */
struct lockd_error {
	enum lockd_code code;
	const char *detail; /* NULL: the text of the code */
	int64_t current_version;
	const char *current_etag;
	int64_t retry_after; /* seconds; also Retry-After */
};

/* Answers a call with an error. */
void lockd_refuse(struct call *c, const struct lockd_error *e);

/* The same; detail NULL: the text of the code. */
void lockd_refuse_code(struct call *c, enum lockd_code code, const char *detail);

/* The same; returns false, for a check that ends with `return lockd_reject(...)`. */
bool lockd_reject(struct apicall *a, enum lockd_code code, const char *detail);

/* The same with err; SLU_ETOOBIG has the code too_large. */
void lockd_refuse_body(struct apicall *a, const struct slu_err *err, enum lockd_code too_large);

/* Sets X-Correlation-Id of the answer. */
void lockd_correlate(struct call *c, struct slice id);

/* X-Correlation-Id of the answer; makes an id if the request has none. Until the next field is added
 * to the answer. */
struct slice lockd_correlation(struct api *api, struct call *c);

/* Reads the JSON object in the body; an empty body has no members. Texts point into the body
 * or into the memory of the apicall. Returns false if it refused the call. */
bool lockd_body(struct apicall *a, const struct json_field *fields, size_t n, void *out);

/* The same for any text. */
bool lockd_json(struct apicall *a, struct slice text, const struct json_field *fields, size_t n,
		void *out);

/* s without white space around it. */
struct slice lockd_trim(struct slice s);

/* The value of a query parameter, decoded and trimmed. Empty if the parameter is missing (.p
 * NULL) or empty. For members that a body may leave out. */
struct slice lockd_query(struct apicall *a, const char *name);

/* Trims and folds a name; takes it from the query if the body does not have it. Without a
 * name the namespace is `default`, and a queue is refused with `missing`. Return false if
 * they refused the call. */
bool lockd_space(struct apicall *a, struct slice *namespace);
bool lockd_queue(struct apicall *a, struct slice *queue, enum lockd_code missing);

/* Folds a lock key, and removes slashes before it. Its segments are names, and it has at most
 * 128 bytes. A key that is left out stays empty. A key of spaces and slashes is refused:
 * "?key=" must not get a random key. */
bool lockd_key(struct apicall *a, struct slice *key);

/* Reads a transaction id; empty text is zero. Returns false if it refused the call. */
bool lockd_txn(struct apicall *a, struct slice text, struct lockd_xid *out);

/* seconds as a time: 0 for 0 or less, at most max. */
slu_time lockd_span(int64_t seconds, slu_time max);

/* The length of a lease by default, and at most; also of a state. */
#define LOCKD_VISIBILITY     (30 * SLU_SEC)
#define LOCKD_VISIBILITY_MAX (30 * SLU_MIN)

#define LOCKD_BODY_MAX ((1 << 30) + (1 << 20)) /* an enqueue in parts: MESSAGE_PAYLOAD_MAX and more */

/* Handlers. */
extern const struct handler lockd_dequeue, lockd_dequeue_with_state, lockd_subscribe;
extern const struct handler lockd_subscribe_with_state, lockd_watch, lockd_ack, lockd_nack;
extern const struct handler lockd_extend, lockd_stats;

/* Of bodies in pieces: CALL-8. */
void lockd_enqueue(struct call *c, void *api);
void lockd_enqueue_take(struct call *c, void *api);

#endif
