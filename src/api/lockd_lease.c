/*
 * lockd_lease.c - /v1/acquire, /v1/keepalive, /v1/release, /v1/describe.
 */
#include "api/lockd_lock.h"
#include "api/lockd_state.h"
#include "api/lockd_txn.h"

#include "api/limits.h"
#include "base/hash.h"
#include "base/log.h"
#include "net/tls_peer.h"

#include <stdio.h>

struct state {
	struct lockd_lock l;
	char holder[LOCK_OWNER_MAX + 1];
	struct lockd_txn_lock txn;
};

static struct ask *
begin(struct call *c, void *api, struct state **s)
{
	struct ask *const a = ask_new(api, c);

	*s = a ? ask_state(a, sizeof **s) : NULL;
	return *s && lockd_body(a, lockd_lock_fields, lockd_lock_n_fields, &(*s)->l) ? a : NULL;
}

static slu_time
ttl_of(const struct lockd_lock *l)
{
	const slu_time ttl = lockd_span(l->ttl_seconds, LOCKD_LEASE_MAX);

	return ttl ? ttl : LOCK_TTL;
}

/* --- acquire ------------------------------------------------------------------ */

/* On the shard's thread: the last that is heard of it. */
static void
returned(struct op *op)
{
	ask_free(op->owner);
}

/* A lease that its holder did not get goes back. */
static void
acquire_ended(struct call *c, bool sent)
{
	struct ask *const a = c->user;
	const struct state *const s = a->state;
	struct op *const op = &a->op;

	if ((sent && !s->txn.op.rc) || op->rc || op->lock.token == 0) {
		ask_free(a);
		return;
	}
	log_debug(a->api->log, "lease not received", F_CALL(c));
	op->done = returned;
	if (broker_return(a->api->broker, op, 0))
		ask_free(a); /* stopped: the lease ends by itself */
}

static void
answer_acquired(struct ask *a)
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
	lockd_add_number(a->call, "X-Fencing-Token", op->lock.token);
	lockd_add_number(a->call, "X-Key-Version", op->lock.version);
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	json_out_str(&w, "namespace", s->l.namespace);
	json_out_str(&w, "lease_id", slice_of(lockd_lock_lease(op->lock.token, op->lock.txn, lease)));
	json_out_str(&w, "txn_id", slice_of(lockd_xid_text(&own, txn)));
	json_out_str(&w, "key", s->l.key);
	json_out_str(&w, "owner", op->lock.owner);
	json_out_i64(&w, "expires_at_unix", op->lock.until / SLU_SEC);
	json_out_u64(&w, "version", op->lock.version);
	if (op->lock.etag)
		json_out_str(&w, "state_etag", slice_of(lockd_etag_text(op->lock.etag, etag)));
	json_out_u64(&w, "fencing_token", op->lock.token);
	json_out_str(&w, "correlation_id", lockd_correlation(a->api, a->call));
	json_out_close(&w);
	lockd_reply(a, 200);
}

static void
acquired(struct ask *a)
{
	struct state *const s = a->state;
	const struct op *const op = &a->op;

	if (op->rc && op->lock.why == LOCK_HELD && s->l.if_not_exists)
		lockd_refuse_code(a->call, LOCKD_ALREADY_EXISTS, NULL);
	else if (op->rc)
		lockd_lock_refuse(a, op);
	else if (lockd_txn_is_brought(&s->l.txn))
		lockd_txn_take(a, &s->txn, s->l.namespace, &s->l.txn, ttl_of(&s->l), answer_acquired);
	else
		answer_acquired(a);
}

/* A key of nobody's, when none was said. */
static bool
mint_key(struct ask *a, struct lockd_lock *l)
{
	char *const text = arena_alloc(&a->memory, LOCKD_UUID_TEXT);
	uint64_t dice[2];
	struct slu_err err;
	int rc = text ? 0 : slu_fail(&err, SLU_ENOMEM, "out of memory");

	if (!rc)
		rc = hash_random(dice, sizeof dice, &err);
	if (rc) {
		ask_refuse(a, rc, err.text);
		return false;
	}
	l->key = slice_of(lockd_uuid_text(clock_wall(a->api->clock), dice[0], dice[1], text));
	return true;
}

/* Who a client says it is, and, when it has shown a certificate, who that says it is. */
static bool
name_owner(struct ask *a, struct lockd_lock *l, char holder[static LOCK_OWNER_MAX + 1])
{
	const struct tls_peer *const peer = call_peer(a->call);
	const int n = (int)l->owner.n;

	if (n == 0 || n > LOCKD_OWNER_MAX) {
		lockd_refuse_code(a->call, n ? LOCKD_INVALID_BODY : LOCKD_MISSING_OWNER,
				  n ? "owner: expected at most 256 bytes" : NULL);
		return false;
	}
	if (!peer)
		return true;
	(void)snprintf(holder, LOCK_OWNER_MAX + 1, "%.*s/%.*s#%.64s", n, l->owner.p, /* cut to fit */
		       LOCK_OWNER_MAX - n - 66, peer->subject, peer->serial);
	l->owner = slice_of(holder);
	return true;
}

/* Below 0: not at all. 0: as long as it takes. */
static slu_time
wait_of(const struct lockd_lock *l)
{
	if (l->block_seconds < 0 || l->if_not_exists)
		return 0; /* a key that exists does not go away by that */
	return l->block_seconds == 0 ? API_DELAY_MAX : lockd_span(l->block_seconds, API_DELAY_MAX);
}

void
lockd_acquire(struct call *c, void *api)
{
	struct state *s;
	struct ask *const a = begin(c, api, &s);
	struct lockd_lock *const l = a ? &s->l : NULL;

	if (!a || !lockd_space(a, &l->namespace) || !lockd_key(a, &l->key) ||
	    (l->key.n == 0 && !mint_key(a, l)) || !lockd_lock_place(a, l) ||
	    !name_owner(a, l, s->holder) || !lockd_lock_right(a, l, 0) ||
	    !lockd_txn_check(a, &l->txn))
		return;
	if (l->message) {
		lockd_refuse_code(c, LOCKD_INVALID_QUEUE_STATE_KEY, "claim the message: its state goes with it");
		return;
	}
	l->token = l->fence = 0;
	lockd_lock_op(a, l, &a->op, OP_ACQUIRE);
	a->op.lock.owner = l->owner;
	a->op.lock.ttl = ttl_of(l);
	a->op.lock.if_absent = l->if_not_exists;
	a->op.wait = wait_of(l);
	if (a->op.wait > 0)
		c->gone = ask_gone;
	c->ended = acquire_ended;
	ask_run(a, acquired);
}

/* --- keepalive, release ------------------------------------------------------- */

static void
answer_kept_alive(struct ask *a)
{
	const struct op *const op = &a->op;
	struct json_out w;

	lockd_add_number(a->call, "X-Fencing-Token", op->lock.token);
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	json_out_i64(&w, "expires_at_unix", op->lock.until / SLU_SEC);
	json_out_close(&w);
	lockd_reply(a, 200);
}

static void
kept_alive(struct ask *a)
{
	struct state *const s = a->state;

	if (a->op.rc)
		lockd_lock_refuse(a, &a->op);
	else if (lockd_txn_is_brought(&s->l.txn))
		lockd_txn_keep(a, &s->txn, s->l.namespace, &s->l.txn, ttl_of(&s->l), answer_kept_alive);
	else
		answer_kept_alive(a);
}

void
lockd_keepalive(struct call *c, void *api)
{
	struct state *s;
	struct ask *const a = begin(c, api, &s);

	if (!a || !lockd_lock_key(a, &s->l) ||
	    !lockd_lock_right(a, &s->l, LOCKD_NEEDS_LEASE | LOCKD_NEEDS_FENCE))
		return;
	if (s->l.message) {
		lockd_refuse_code(c, LOCKD_STATE_KEEPALIVE, NULL);
		return;
	}
	lockd_lock_op(a, &s->l, &a->op, OP_KEEPALIVE);
	a->op.lock.ttl = ttl_of(&s->l);
	ask_run(a, kept_alive);
}

static void
answer_released(struct ask *a)
{
	struct json_out w;

	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
	json_out_bool(&w, "released", true);
	json_out_close(&w);
	lockd_reply(a, 200);
}

static void
released(struct ask *a)
{
	struct state *const s = a->state;

	if (a->op.rc)
		lockd_lock_refuse(a, &a->op);
	else if (a->op.lock.why == LOCK_OK && lockd_txn_is_brought(&s->l.txn))
		lockd_txn_drop(a, &s->txn, s->l.namespace, &s->l.txn, answer_released);
	else
		answer_released(a);
}

void
lockd_release(struct call *c, void *api)
{
	struct state *s;
	struct ask *const a = begin(c, api, &s);

	if (!a || !lockd_lock_key(a, &s->l) || !lockd_lock_right(a, &s->l, LOCKD_HOLDER))
		return;
	if (s->l.message) {
		lockd_refuse_code(c, LOCKD_INVALID_QUEUE_STATE_KEY, "ack or nack the message: its state goes with it");
		return;
	}
	lockd_lock_op(a, &s->l, &a->op, OP_RELEASE);
	a->op.lock.rollback = s->l.rollback;
	ask_run(a, released);
}

/* --- describe ----------------------------------------------------------------- */

/* With a lease id anybody could release the key, so it is shown to a caller that has sent it,
 * and to no other. */
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
described(struct ask *a)
{
	const struct state *const s = a->state;
	const struct op_lock *const l = &a->op.lock;
	char etag[LOCKD_ETAG_TEXT];
	struct json_out w;

	if (a->op.rc) {
		lockd_lock_refuse(a, &a->op);
		return;
	}
	json_out_init(&w, &a->call->out);
	json_out_object(&w, NULL);
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
	json_out_close(&w);
	lockd_reply(a, 200);
}

void
lockd_describe(struct call *c, void *api)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;

	if (!s || !lockd_lock_key(a, &s->l))
		return;
	s->l.lease = lockd_field(a, "x-lease-id");
	lockd_lock_op(a, &s->l, &a->op, OP_DESCRIBE);
	a->op.lock.holder = s->holder;
	ask_run(a, described);
}
