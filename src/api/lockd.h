/*
 * lockd.h - the lockd dialect: leases, locks, state and streams under /v1.
 *
 * What its routes share. docs/lockd.md is its contract. As with the flat API a handler
 * makes ops out of a request and an answer out of ops; it has no queue logic.
 *
 *      lockd_id       xids, leases, etags        lockd_settle   ack, nack, extend
 *      lockd_enqueue  enqueue                    lockd_stats    stats, lockd_watch
 *      lockd_consume  dequeue, subscribe         lockd_parts    a delivery in parts
 *
 * Errors are answered here, in one form, and so are those that others answer for these
 * routes (the guard, the gate, ask.h), by lockd_dialect:
 *
 *      {"error":"waiting","detail":"...","retry_after_seconds":1}
 *
 * The code comes from the table below, or, for a struct slu_err, from the lockd columns
 * of sluice/err.h. Every error has X-Correlation-Id: the request's, if that is well
 * formed, else one that is made up. JSON ends in a line feed.
 *
 * Bodies are read leniently: members that nobody knows are passed over, `null` counts as
 * left out. What decides about safety (lease, token, transaction) is never optional.
 */
#ifndef API_LOCKD_H
#define API_LOCKD_H

#include "api/ask.h"
#include "api/lockd_id.h"
#include "base/json_table.h"
#include "core/names.h"
#include "http/route.h"

/* Their arg is a struct api. A row without a method takes any. */
extern const struct route lockd_routes[];
extern const unsigned lockd_n_routes;

extern const struct dialect lockd_dialect;

/* A row: name, status, code, what a person reads. */
/* clang-format off */
#define LOCKD_CODES(X) \
	X(INVALID_BODY,            400, "invalid_body",            "the body is not what was expected") \
	X(INVALID_NAMESPACE,       400, "invalid_namespace",       "no name of a namespace") \
	X(INVALID_KEY,             400, "invalid_key",             "no name of a key") \
	X(INVALID_TTL,             400, "invalid_ttl",             "no length of time") \
	X(INVALID_VERSION,         400, "invalid_version",         "no number of a version") \
	X(INVALID_EXPECTED_BYTES,  400, "invalid_expected_bytes",  "no number of bytes") \
	X(INVALID_EXPECTED_SHA256, 400, "invalid_expected_sha256", "no SHA-256 sum in hex") \
	X(INVALID_TXN,             400, "invalid_txn",             "no transaction id: 20 characters of 0-9a-v") \
	X(INVALID_METADATA,        400, "invalid_metadata",        "no metadata") \
	X(INVALID_MUTATIONS,       400, "invalid_mutations",       "no list of mutations") \
	X(INVALID_QUEUE,           400, "invalid_queue",           "no name of a queue") \
	X(INVALID_QUEUE_KEY,       400, "invalid_queue_key",       "the key belongs to a queue") \
	X(INVALID_QUEUE_STATE_KEY, 400, "invalid_queue_state_key", "no key of the state of a message") \
	X(INVALID_CONTENT_TYPE,    400, "invalid_content_type",    "expected a multipart body") \
	X(MULTIPART_ERROR,         400, "multipart_error",         "the multipart body cannot be read") \
	X(INVALID_NACK_INTENT,     400, "invalid_nack_intent",     "intent: expected failure or defer") \
	X(INVALID_NACK_LAST_ERROR, 400, "invalid_nack_last_error", "last_error: a defer is no failure") \
	X(INVALID_FENCING_TOKEN,   400, "invalid_fencing_token",   "no number of a fencing token") \
	X(MISSING_KEY,             400, "missing_key",             "key is required") \
	X(MISSING_PARAMS,          400, "missing_params",          "a lease, or public=1, is required") \
	X(MISSING_OWNER,           400, "missing_owner",           "owner is required") \
	X(MISSING_QUEUE,           400, "missing_queue",           "queue is required") \
	X(MISSING_LEASE,           400, "missing_lease",           "a lease id is required") \
	X(MISSING_TXN,             400, "missing_txn",             "the lease has a transaction, whose id is required") \
	X(MISSING_FIELDS,          400, "missing_fields",          "a required member is missing") \
	X(MISSING_FENCING_TOKEN,   400, "missing_fencing_token",   "a fencing token is required") \
	X(LEASE_REQUIRED,          403, "lease_required",          "this lease is not held") \
	X(LEASE_EXPIRED,           403, "lease_expired",           "the lease has ended") \
	X(FENCING_MISMATCH,        403, "fencing_mismatch",        "the fencing token is not that of the lease") \
	X(STATE_KEEPALIVE,         403, "queue_state_keepalive_unsupported", "extend the message: its state goes with it") \
	X(NAMESPACE_FORBIDDEN,     403, "namespace_forbidden",     "not allowed in this namespace") \
	X(TC_CLIENT_REQUIRED,      403, "tc_client_required",      "transactions over several keys are not offered: every key commits by its release") \
	X(TC_SERVER_REQUIRED,      403, "tc_server_required",      "transactions over several servers are not offered") \
	X(NOT_FOUND,               404, "not_found",               "no such message here; perhaps it was finished before") \
	X(STATE_NOT_FOUND,         404, "state_not_found",         "the key has no state") \
	X(STAGED_STATE_MISSING,    404, "staged_state_missing",    "nothing is staged") \
	X(ATTACHMENT_NOT_FOUND,    404, "attachment_not_found",    "no such attachment") \
	X(TXN_NOT_FOUND,           404, "txn_not_found",           "no such transaction") \
	X(WAITING,                 409, "waiting",                 "nothing is available now") \
	X(ALREADY_EXISTS,          409, "already_exists",          "the key exists already") \
	X(VERSION_CONFLICT,        409, "version_conflict",        "the version is another now") \
	X(ETAG_MISMATCH,           409, "etag_mismatch",           "the etag is another now") \
	X(TXN_MISMATCH,            409, "txn_mismatch",            "the lease has another transaction") \
	X(TXN_CONFLICT,            409, "txn_conflict",            "the transaction belongs to another lease: leave txn_id out, and commit each lease by its own release or ack") \
	X(TXN_PENDING,             409, "txn_pending",             "the transaction is not decided") \
	X(EXPECTED_BYTES,          409, "expected_bytes_mismatch", "the body has another length") \
	X(EXPECTED_SHA256,         409, "expected_sha256_mismatch", "the body has another sum") \
	X(MESSAGE_LEASE,           409, "queue_message_lease_mismatch", "the message is leased to somebody else now") \
	X(CAS_MISMATCH,            409, "cas_mismatch",            "meta_etag is not that of this delivery") \
	X(LEASE_CONFLICT,          409, "lease_conflict",          "the lease changed meanwhile") \
	X(DOCUMENT_TOO_LARGE,      413, "document_too_large",      "larger than a document may be") \
	X(ATTACHMENT_TOO_LARGE,    413, "attachment_too_large",    "larger than an attachment may be") \
	X(QUERY_DISABLED,          501, "query_disabled",          "queries are switched off") \
	X(INDEX_UNAVAILABLE,       501, "index_unavailable",       "there is no index") \
	X(QUEUE_BUSY,              503, "queue_busy",              "too many consumers wait already") \
	X(DRAINING,                503, "shutdown_draining",       "stopping, no new work is taken") \
	X(STATE_NOT_PUBLISHED,     503, "state_not_published",     "the state is not published yet")
/* clang-format on */

enum lockd_code {
#define X(name, ...) LOCKD_##name,
	LOCKD_CODES(X)
#undef X
	LOCKD_CODE_COUNT
};

struct lockd_code_row {
	unsigned status;
	const char *name;
	const char *text;
};

const struct lockd_code_row *lockd_code_row(enum lockd_code code);

/* What is empty or 0 is left out of the answer. */
struct lockd_error {
	enum lockd_code code;
	const char *detail; /* NULL: the sentence of the code */
	int64_t current_version;
	const char *current_etag;
	int64_t retry_after; /* seconds; also said in Retry-After */
};

/* Answer a call with an error. */
void lockd_refuse(struct call *c, const struct lockd_error *e);

/* The same with a sentence; NULL: that of the code. */
void lockd_refuse_code(struct call *c, enum lockd_code code, const char *detail);

/* Answer with the JSON in call->out and a line feed, as ask_reply. */
void lockd_reply(struct ask *a, unsigned status);

/* X-Correlation-Id of the answer: this, instead of what came with the request. */
void lockd_correlate(struct call *c, struct slice id);

/* The one that the request brought, if well formed; else a new one. Until the next field
 * is added to the answer. */
struct slice lockd_correlation(struct api *api, struct call *c);

/* Read the JSON object of the body; an empty one has no members. Text points into the body,
 * or into the memory of the ask. False: it was refused. */
bool lockd_body(struct ask *a, const struct json_field *fields, size_t n, void *out);

/* The same from any text. */
bool lockd_json(struct ask *a, struct slice text, const struct json_field *fields, size_t n,
		void *out);

/* Without white space around it. */
struct slice lockd_trim(struct slice s);

/* The value of a parameter in the query, decoded and without blanks around it; empty when
 * there is none (.p NULL) or nothing in it. For what a body may leave out: */
struct slice lockd_query(struct ask *a, const char *name);

/* Fold a name, blanks around it aside; the query has it when the body has not. False: it
 * was refused. Nothing: the namespace is `default`, a queue is refused with `missing`. */
bool lockd_space(struct ask *a, struct slice *namespace);
bool lockd_queue(struct ask *a, struct slice *queue, enum lockd_code missing);

/* A lock key: folded, without the slash before it, its segments names, 128 bytes in all.
 * A key that is left out stays empty. One that is given and has nothing but spaces and slashes
 * is refused: "?key=" must not get a random key. */
bool lockd_key(struct ask *a, struct slice *key);

/* A transaction id, or nothing, which is zero. False: it was refused. */
bool lockd_txn(struct ask *a, struct slice text, struct lockd_xid *out);

/* A length of time in seconds: none for 0 or less, at most max. */
slu_time lockd_span(int64_t seconds, slu_time max);

/* How long a lease lasts for which nobody said it, and at most; and a state's. */
#define LOCKD_VISIBILITY     (30 * SLU_SEC)
#define LOCKD_VISIBILITY_MAX (30 * SLU_MIN)

/* Handlers. */
void lockd_enqueue(struct call *c, void *api);
void lockd_enqueue_take(struct call *c, void *api);
void lockd_dequeue(struct call *c, void *api);
void lockd_dequeue_with_state(struct call *c, void *api);
void lockd_subscribe(struct call *c, void *api);
void lockd_subscribe_with_state(struct call *c, void *api);
void lockd_watch(struct call *c, void *api);
void lockd_ack(struct call *c, void *api);
void lockd_nack(struct call *c, void *api);
void lockd_extend(struct call *c, void *api);
void lockd_stats(struct call *c, void *api);

#endif
