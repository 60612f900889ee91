/*
 * lease.c - /v1/acquire, /v1/keepalive, /v1/release, /v1/describe.
 */
#include "api/lockd/lock.h"
#include "api/lockd/state.h"
#include "api/lockd/txn.h"

#include "api/limits.h"
#include "base/hash.h"
#include "base/log.h"
#include "net/tls_peer.h"

#include <stdio.h>

struct state {
	struct lockd_lock l;
	char holder[LOCK_HOLDER_MAX + 1];
	struct lockd_txn_lock txn;
};

/* Returns false if it refused the call. */
static bool
read_body(struct apicall *a, struct state *s)
{
	return lockd_body(a, lockd_lock_fields, lockd_lock_n_fields, &s->l);
}

static slu_time
ttl_of(const struct lockd_lock *l)
{
	const slu_time ttl = lockd_span(l->ttl_seconds, LOCKD_LEASE_MAX);

	return ttl ? ttl : LOCK_TTL;
}

/* --- acquire ------------------------------------------------------------------ */

/* On the shard's thread: the end of the apicall. */
static void
returned(struct op *op)
{
	apicall_free(op->owner);
}

/* Returns a lease whose holder did not receive it. */
static void
acquire_ended(struct exchange *x, bool sent)
{
	struct apicall *const a = x->user;
	const struct state *const s = a->state;
	struct op *const op = &a->op;

	if ((sent && !s->txn.op.rc) || op->rc || op->lock.token == 0) {
		apicall_free(a);
		return;
	}
	log_debug(a->api->log, "lease not received", F_APICALL(a));
	op->done = returned;
	if (broker_return(a->api->broker, op, 0))
		apicall_free(a); /* stopped: the lease ends by itself */
}

static void
answer_acquired(struct apicall *a)
{
	const struct state *const s = a->state;
	const struct op *const op = &a->op;
	char lease[LOCKD_XID_TEXT], txn[LOCKD_XID_TEXT], etag[LOCKD_ETAG_TEXT];
	struct lockd_xid own;
	struct json_out w;

	if (s->txn.op.rc) {
		lockd_txn_refuse(a, &s->txn);
		return;
	}
	memcpy(own.b, op->lock.txn, LOCKD_XID);
	lockd_add_number(call_of(a->x), "X-Fencing-Token", op->lock.token);
	lockd_add_number(call_of(a->x), "X-Key-Version", op->lock.version);
	apicall_object(a, &w);
	json_out_str(&w, "namespace", s->l.namespace);
	json_out_str(&w, "lease_id", slice_of(lockd_lock_lease(op->lock.token, op->lock.txn, lease)));
	json_out_str(&w, "txn_id", slice_of(lockd_xid_text(&own, txn)));
	json_out_str(&w, "key", s->l.key);
	json_out_str(&w, "owner", op->lock.holder);
	json_out_i64(&w, "expires_at_unix", op->lock.until / SLU_SEC);
	json_out_u64(&w, "version", op->lock.version);
	if (op->lock.etag)
		json_out_str(&w, "state_etag", slice_of(lockd_etag_text(op->lock.etag, etag)));
	json_out_u64(&w, "fencing_token", op->lock.token);
	json_out_str(&w, "correlation_id", lockd_correlation(a->api, call_of(a->x)));
	apicall_reply_object(a, &w, 200);
}

static void
acquired(struct apicall *a)
{
	struct state *const s = a->state;
	const struct op *const op = &a->op;

	if (op->rc && op->lock.why == LOCK_HELD && s->l.if_not_exists)
		lockd_refuse_code(call_of(a->x), LOCKD_ALREADY_EXISTS, NULL);
	else if (op->rc)
		lockd_lock_refuse(a, op);
	else if (lockd_txn_is_brought(&s->l.txn))
		lockd_txn_take(a, &s->txn, &s->l.txn, ttl_of(&s->l), answer_acquired);
	else
		answer_acquired(a);
}

/* A new random key, if the request has none. */
static bool
mint_key(struct apicall *a, struct lockd_lock *l)
{
	char *const text = arena_alloc(&a->memory, LOCKD_UUID_TEXT);
	uint64_t dice[2];
	struct slu_err err;
	int rc = text ? 0 : slu_fail(&err, SLU_ENOMEM, "out of memory");

	if (!rc)
		rc = hash_random(dice, sizeof dice, &err);
	if (rc)
		return !apicall_refused(a, rc, err.text);
	l->key = slice_of(lockd_uuid_text(clock_wall(a->api->clock), dice[0], dice[1], text));
	return true;
}

/* The owner in the request, and the name in the certificate of the client, if any. */
static bool
name_owner(struct apicall *a, struct lockd_lock *l, char holder[static LOCK_HOLDER_MAX + 1])
{
	const struct tls_peer *const peer = exchange_peer(a->x);
	const int n = (int)l->owner.n;

	if (n == 0 || n > LOCKD_OWNER_MAX)
		return lockd_reject(a, n ? LOCKD_INVALID_BODY : LOCKD_MISSING_OWNER,
				    n ? "owner: expected at most 256 bytes" : NULL);
	if (!peer)
		return true;
	(void)snprintf(holder, LOCK_HOLDER_MAX + 1, "%.*s/%.*s#%.64s", n, l->owner.p, /* cut to fit */
		       LOCK_HOLDER_MAX - n - 66, peer->subject, peer->serial);
	l->owner = slice_of(holder);
	return true;
}

/* block_seconds below 0: do not wait; 0: wait without a limit. */
static slu_time
wait_of(const struct lockd_lock *l)
{
	if (l->block_seconds < 0 || l->if_not_exists)
		return 0; /* waiting does not remove an existing key */
	return l->block_seconds == 0 ? API_DELAY_MAX : lockd_span(l->block_seconds, API_DELAY_MAX);
}

static void
acquire(struct apicall *a)
{
	struct state *const s = a->state;
	struct lockd_lock *const l = &s->l;

	if (!read_body(a, s) || !lockd_space(a, &l->namespace) || !lockd_key(a, &l->key) ||
	    (l->key.n == 0 && !mint_key(a, l)) || !lockd_lock_place(a, l) ||
	    !name_owner(a, l, s->holder) || !lockd_lock_right(a, l, 0) ||
	    !lockd_txn_check(a, &l->txn))
		return;
	if (l->message) {
		lockd_refuse_code(call_of(a->x), LOCKD_INVALID_QUEUE_STATE_KEY, "claim the message: its state goes with it");
		return;
	}
	l->token = l->fence = 0;
	lockd_lock_op(a, l, &a->op, OP_ACQUIRE);
	a->op.lock.holder = l->owner;
	a->op.lock.ttl = ttl_of(l);
	a->op.lock.if_absent = l->if_not_exists;
	a->op.wait = wait_of(l);
	if (a->op.wait > 0)
		a->x->gone = apicall_gone;
	a->x->ended = acquire_ended;
	apicall_run(a, acquired);
}

const struct handler lockd_acquire = { .run = acquire, .state = sizeof(struct state) };

/* --- keepalive, release ------------------------------------------------------- */

static void
answer_kept_alive(struct apicall *a)
{
	const struct op *const op = &a->op;
	struct json_out w;

	lockd_add_number(call_of(a->x), "X-Fencing-Token", op->lock.token);
	apicall_object(a, &w);
	json_out_i64(&w, "expires_at_unix", op->lock.until / SLU_SEC);
	apicall_reply_object(a, &w, 200);
}

static void
kept_alive(struct apicall *a)
{
	struct state *const s = a->state;

	if (a->op.rc)
		lockd_lock_refuse(a, &a->op);
	else if (lockd_txn_is_brought(&s->l.txn))
		lockd_txn_keep(a, &s->txn, &s->l.txn, ttl_of(&s->l), answer_kept_alive);
	else
		answer_kept_alive(a);
}

static void
keepalive(struct apicall *a)
{
	struct state *const s = a->state;

	if (!read_body(a, s) || !lockd_lock_key(a, &s->l) ||
	    !lockd_lock_right(a, &s->l, LOCKD_NEEDS_LEASE | LOCKD_NEEDS_FENCE))
		return;
	if (s->l.message) {
		lockd_refuse_code(call_of(a->x), LOCKD_STATE_KEEPALIVE, NULL);
		return;
	}
	lockd_lock_op(a, &s->l, &a->op, OP_KEEPALIVE);
	a->op.lock.ttl = ttl_of(&s->l);
	apicall_run(a, kept_alive);
}

const struct handler lockd_keepalive = { .run = keepalive, .state = sizeof(struct state) };

static void
answer_released(struct apicall *a)
{
	struct json_out w;

	apicall_object(a, &w);
	json_out_bool(&w, "released", true);
	apicall_reply_object(a, &w, 200);
}

static void
released(struct apicall *a)
{
	struct state *const s = a->state;

	if (a->op.rc)
		lockd_lock_refuse(a, &a->op);
	else if (a->op.lock.why == LOCK_OK && lockd_txn_is_brought(&s->l.txn))
		lockd_txn_drop(a, &s->txn, &s->l.txn, answer_released);
	else
		answer_released(a);
}

static void
release(struct apicall *a)
{
	struct state *const s = a->state;

	if (!read_body(a, s) || !lockd_lock_key(a, &s->l) || !lockd_lock_right(a, &s->l, LOCKD_HOLDER))
		return;
	if (s->l.message) {
		lockd_refuse_code(call_of(a->x), LOCKD_INVALID_QUEUE_STATE_KEY, "ack or nack the message: its state goes with it");
		return;
	}
	lockd_lock_op(a, &s->l, &a->op, OP_RELEASE);
	a->op.lock.rollback = s->l.rollback;
	apicall_run(a, released);
}

const struct handler lockd_release = { .run = release, .state = sizeof(struct state) };

/* --- describe ----------------------------------------------------------------- */

/* A caller with the lease id could release the key, so only a caller that sent it sees it. */
static void
write_holder(struct json_out *w, const struct state *s, const struct op_lock *l)
{
	char text[LOCKD_XID_TEXT];
	const struct slice lease = slice_of(lockd_lock_lease(l->token, l->txn, text));

	json_out_str(w, "owner", slice_of(s->holder));
	if (slice_eq(lease, s->l.lease))
		json_out_str(w, "lease_id", lease);
	json_out_i64(w, "expires_at_unix", l->until / SLU_SEC);
}

static void
described(struct apicall *a)
{
	const struct state *const s = a->state;
	const struct op_lock *const l = &a->op.lock;
	char etag[LOCKD_ETAG_TEXT];
	struct json_out w;

	if (lockd_lock_failed(a))
		return;
	apicall_object(a, &w);
	json_out_str(&w, "namespace", s->l.namespace);
	json_out_str(&w, "key", s->l.key);
	if (l->token)
		write_holder(&w, s, l);
	json_out_u64(&w, "version", l->version);
	if (l->etag)
		json_out_str(&w, "state_etag", slice_of(lockd_etag_text(l->etag, etag)));
	if (l->updated)
		json_out_i64(&w, "updated_at_unix", l->updated / SLU_SEC);
	json_out_object(&w, "metadata");
	if (l->hidden)
		json_out_bool(&w, "query_hidden", true);
	json_out_close(&w);
	apicall_reply_object(a, &w, 200);
}

static void
describe(struct apicall *a)
{
	struct state *const s = a->state;

	if (!lockd_lock_key(a, &s->l))
		return;
	s->l.lease = lockd_field(a, "x-lease-id");
	lockd_lock_op(a, &s->l, &a->op, OP_DESCRIBE);
	a->op.lock.held_by = s->holder;
	apicall_run(a, described);
}

const struct handler lockd_describe = { .run = describe, .state = sizeof(struct state) };
