#include "api/lockd/lock.h"

#include "auth/identity.h"
#include "base/id.h"
#include "base/parse.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

const struct json_field lockd_lock_fields[] = {
	JSON_FIELDS(text, struct lockd_lock, namespace, key, owner, lease_id, txn_id),
	JSON_FIELDS(i64, struct lockd_lock, ttl_seconds, block_seconds),
	JSON_FIELDS(bool, struct lockd_lock, if_not_exists, rollback),
};

const size_t lockd_lock_n_fields = COUNT(lockd_lock_fields);

/* --- which key ---------------------------------------------------------------- */

/* The part of a key behind q/<queue>/, or nothing. */
static struct slice
behind_queue(struct slice key)
{
	const char *slash;

	if (key.n < 2 || memcmp(key.p, "q/", 2) != 0)
		return (struct slice){ 0 };
	slash = memchr(key.p + 2, '/', key.n - 2);
	if (!slash)
		return (struct slice){ 0 };
	return (struct slice){ slash + 1, key.n - (size_t)(slash + 1 - key.p) };
}

static bool
begins_with(struct slice s, struct slice part)
{
	return s.n >= part.n && memcmp(s.p, part.p, part.n) == 0;
}

bool
lockd_lock_place(struct apicall *a, struct lockd_lock *l)
{
	const struct slice rest = behind_queue(l->key);

	l->queue = SLICE(LOCK_QUEUE);
	l->message = 0;
	l->if_version = -1;
	if (lock_key_of_message(l->key, &l->queue, &l->message))
		return true;
	if (rest.n > 0 && begins_with(rest, SLICE("state/")))
		return lockd_reject(a, LOCKD_INVALID_QUEUE_STATE_KEY, NULL);
	if (rest.n > 0 && begins_with(rest, SLICE("msg/")))
		return lockd_reject(a, LOCKD_INVALID_QUEUE_KEY, NULL);
	return true;
}

bool
lockd_lock_key(struct apicall *a, struct lockd_lock *l)
{
	if (!lockd_space(a, &l->namespace) || !lockd_key(a, &l->key))
		return false;
	if (l->key.n == 0)
		return lockd_reject(a, LOCKD_MISSING_KEY, NULL);
	return lockd_lock_place(a, l);
}

/* --- by whose right ----------------------------------------------------------- */

struct slice
lockd_field(struct apicall *a, const char *name)
{
	return lockd_trim(call_field(call_of(a->x), name));
}

static bool
read_fence(struct apicall *a, struct lockd_lock *l, bool needed)
{
	const struct slice text = lockd_field(a, "x-fencing-token");
	struct slu_err err;
	int64_t fence;

	l->fence = 0;
	if (text.n == 0)
		return !needed || lockd_reject(a, LOCKD_MISSING_FENCING_TOKEN, NULL);
	if (parse_i64(text, INT64_MIN, INT64_MAX, &fence, &err))
		return lockd_reject(a, LOCKD_INVALID_FENCING_TOKEN, err.text);
	l->fence = fence > 0 ? (uint64_t)fence : LOCKD_NO_TOKEN;
	return true;
}

bool
lockd_lock_right(struct apicall *a, struct lockd_lock *l, unsigned needs)
{
	const struct slice txn = l->txn_id.n > 0 ? l->txn_id : lockd_field(a, "x-txn-id");
	unsigned flags;

	l->lease = l->lease_id.n > 0 ? l->lease_id : lockd_field(a, "x-lease-id");
	if (l->lease.n == 0 && needs & LOCKD_NEEDS_LEASE)
		return lockd_reject(a, LOCKD_MISSING_LEASE, NULL);
	if (!lockd_txn(a, txn, &l->txn))
		return false;
	if (lockd_xid_is_zero(&l->txn) && needs & LOCKD_NEEDS_TXN)
		return lockd_reject(a, LOCKD_MISSING_TXN, NULL);
	l->token = l->lease.n > 0 ? lockd_lease_token(l->lease) : 0;
	(void)lockd_lease_parse(l->lease, &l->txn, &flags);
	l->correlated = flags & LOCKD_CORRELATED;
	return read_fence(a, l, needs & LOCKD_NEEDS_FENCE);
}

static bool
is_true(struct slice text)
{
	return slice_eq(text, SLICE("1")) || slice_eq(text, SLICE("true"));
}

bool
lockd_lock_reader(struct apicall *a, struct lockd_lock *l)
{
	if (!lockd_lock_key(a, l))
		return false;
	if (!is_true(lockd_query(a, "public"))) {
		l->lease = lockd_field(a, "x-lease-id");
		if (l->lease.n == 0)
			return lockd_reject(a, LOCKD_MISSING_PARAMS, NULL);
		return lockd_lock_right(a, l, LOCKD_NEEDS_LEASE | LOCKD_NEEDS_FENCE);
	}
	if (!identity_may(a->x->who, l->namespace, RIGHT_READ))
		return lockd_reject(a, LOCKD_NAMESPACE_FORBIDDEN, NULL);
	return true;
}

static bool
read_conditions(struct apicall *a, struct lockd_lock *l)
{
	const struct slice version = lockd_field(a, "x-if-version");
	const struct slice etag = lockd_field(a, "x-if-state-etag");
	struct slu_err err;

	l->if_version = -1;
	if (version.n > 0 && parse_i64(version, 0, INT64_MAX, &l->if_version, &err))
		return lockd_reject(a, LOCKD_INVALID_VERSION, err.text);
	l->if_etag = etag.n > 0 ? lockd_etag_parse(etag) : 0;
	if (etag.n > 0 && l->if_etag == 0)
		l->if_etag = UINT64_MAX; /* not an etag of this server: no document matches */
	return true;
}

bool
lockd_lock_writer(struct apicall *a, struct lockd_lock *l)
{
	return lockd_lock_key(a, l) && lockd_lock_right(a, l, LOCKD_HOLDER) && read_conditions(a, l);
}

void
lockd_lock_op(struct apicall *a, const struct lockd_lock *l, struct op *op, enum op_verb verb)
{
	apicall_op(a, op, verb, l->namespace, l->queue);
	op->lock.key = l->key;
	op->lock.token = l->token;
	op->lock.fence = l->fence;
	op->lock.if_version = l->if_version;
	op->lock.if_etag = l->if_etag;
	memcpy(op->lock.txn, l->txn.b, LOCKD_XID);
}

/* --- on whose behalf ---------------------------------------------------------- */

static void
take_correlation(struct json_out *w, const struct op_row *row, const struct message *m,
		 struct slice error)
{
	const struct rows *const rows = CONTAINER(w, struct rows, w);

	(void)row;
	(void)error;
	if (m->correlation.n > 0)
		lockd_correlate(call_of(rows->apicall->x), m->correlation);
}

/* Continue also if the message cannot be read. */
static void
correlated(struct apicall *a, int rc)
{
	const struct lockd_lock *const l = a->part;

	(void)rc;
	a->ops = &a->op;
	apicall_run(a, l->answer);
}

static void
looked(struct apicall *a)
{
	struct lockd_lock *const l = a->part;

	l->rows = (struct rows){
		.apicall = a,
		.op = &l->look,
		.write = take_correlation,
		.done = correlated,
	};
	if (l->look.rc)
		correlated(a, l->look.rc);
	else
		rows_start(&l->rows);
}

/* A message without a correlation id uses its message id. */
void
lockd_lock_run(struct apicall *a, struct lockd_lock *l, void (*answer)(struct apicall *a))
{
	char uuid[ID_UUID_TEXT];

	if (l->message && !l->answer)
		lockd_correlate(call_of(a->x), slice_of(id_to_uuid(l->message, uuid)));
	if (!l->message || !l->correlated || l->answer) {
		apicall_run(a, answer);
		return;
	}
	l->answer = answer; /* once is enough */
	apicall_op(a, &l->look, OP_GET, l->namespace, l->queue);
	l->look.id = l->message;
	l->look.rows = &l->row;
	l->look.max_rows = 1;
	a->part = l;
	a->ops = &l->look;
	apicall_run(a, looked);
}

/* --- why not ------------------------------------------------------------------ */

static const enum lockd_code codes[LOCK_WHYS] = {
	[LOCK_HELD] = LOCKD_WAITING,
	[LOCK_KNOWN_KEY] = LOCKD_ALREADY_EXISTS,
	[LOCK_NONE] = LOCKD_LEASE_REQUIRED,
	[LOCK_EXPIRED] = LOCKD_LEASE_EXPIRED,
	[LOCK_FENCE] = LOCKD_FENCING_MISMATCH,
	[LOCK_TXN_MISSING] = LOCKD_MISSING_TXN,
	[LOCK_TXN_OTHER] = LOCKD_TXN_MISMATCH,
	[LOCK_VERSION] = LOCKD_VERSION_CONFLICT,
	[LOCK_ETAG] = LOCKD_ETAG_MISMATCH,
	[LOCK_OF_MESSAGE] = LOCKD_STATE_KEEPALIVE,
};

/* Whole seconds until then, 1 at least. */
static int64_t
seconds_until(const struct apicall *a, slu_time until)
{
	const slu_time left = until - clock_wall(a->api->clock);

	return left > SLU_SEC ? (left + SLU_SEC - 1) / SLU_SEC : 1;
}

void
lockd_lock_refuse(struct apicall *a, const struct op *op)
{
	const enum lock_why why = op->lock.why;
	char etag[LOCKD_ETAG_TEXT];
	struct lockd_error e = { 0 };

	assert(op->rc);
	if (why == LOCK_OK) {
		apicall_refuse_op(a, op);
		return;
	}
	e.code = codes[why];
	if (why == LOCK_HELD || why == LOCK_VERSION || why == LOCK_ETAG) {
		e.current_version = (int64_t)op->lock.version;
		e.current_etag = op->lock.etag ? lockd_etag_text(op->lock.etag, etag) : NULL;
	}
	if (why == LOCK_HELD) {
		e.detail = "somebody holds the key";
		e.retry_after = seconds_until(a, op->lock.until);
	}
	lockd_refuse(call_of(a->x), &e);
}

bool
lockd_lock_failed(struct apicall *a)
{
	if (a->op.rc)
		lockd_lock_refuse(a, &a->op);
	return a->op.rc;
}

/* --- answers ------------------------------------------------------------------ */

void
lockd_add_number(struct call *c, const char *name, uint64_t number)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%" PRIu64, number); /* fits */
	(void)call_set(c, name, slice_of(text));               /* the body has it, too */
}

void
lockd_add_etag(struct call *c, uint64_t etag)
{
	char text[LOCKD_ETAG_TEXT];

	if (etag)
		(void)call_set(c, "ETag", slice_of(lockd_etag_text(etag, text))); /* as above */
}

const char *
lockd_lock_lease(uint64_t token, const uint8_t txn[static LOCKD_XID],
		 char out[static LOCKD_XID_TEXT])
{
	const struct lockd_xid own = lockd_txn_of(token);
	struct lockd_xid given = { { 0 } };

	if (memcmp(txn, own.b, LOCKD_XID) != 0)
		memcpy(given.b, txn, LOCKD_XID);
	return lockd_lease_text(token, &given, 0, out);
}
