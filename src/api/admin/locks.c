/*
 * locks.c - lock keys that are held: list them, and release one by force.
 *
 *      GET /v1/admin/locks?namespace=shop&prefix=orders/
 *      {"locks":[{"namespace":"shop","key":"orders/42","holder":"web-7","token":17,"expires_at":"...","waiters":2,"version":3}],
 *       "looked":1, "cursor":"orders/42"}
 *
 *      POST /v1/admin/lock/release  {"namespace":"shop","key":"orders/42","token":17}
 *
 *      OP_KEYS, those that are leased ──> OP_DESCRIBE, one for each
 *      OP_DESCRIBE ──> the same token? ──> OP_RELEASE, rolled back
 *
 *  ADMINLOCK-1  A release names the token that the operator saw: a lease that began since is not touched.
 *  ADMINLOCK-2  What the holder has staged is dropped. It learns with its next call that the lease is not its own any more;
 *               what it does without a call is held off by the fencing token alone.
 */
#include "api/admin/admin.h"

#include "api/audit/change.h"
#include "api/handler.h"
#include "api/limits.h"
#include "core/locks/lock.h"
#include "core/names.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	PAGE = 200
};

struct state {
	struct slice namespace;
	struct slice prefix; /* list */
	struct slice cursor; /* list: the last key of the page before */
	uint32_t limit;
	struct slice key; /* release */
	uint64_t token;

	struct op_key *keys;
	uint32_t looked;
	bool more;
	char last[LOCK_KEY_MAX + 1];
	char folded[NAME_TEXT];
	char *holders; /* LOCK_HOLDER_MAX + 1 bytes for each op */
};

static const struct param list_params[] = {
	PARAM(name, struct state, namespace, .required = true),
	PARAM(word, struct state, prefix),
	PARAM(word, struct state, cursor),
	PARAM(count, struct state, limit, .min = 1, .max = PAGE, .otherwise = PAGE),
};

static const struct param release_params[] = {
	PARAM(name, struct state, namespace, .required = true),
	PARAM(word, struct state, key, .required = true),
	PARAM(number, struct state, token, .required = true),
};

/* --- list --------------------------------------------------------------------- */

static void
write_lock(struct json_out *w, const struct op *op)
{
	json_out_object(w, NULL);
	json_out_str(w, "namespace", op->space);
	json_out_str(w, "key", op->lock.key);
	json_out_str(w, "holder", slice_of(op->lock.held_by));
	json_out_u64(w, "token", op->lock.token);
	json_out_time(w, "expires_at", op->lock.until);
	json_out_u64(w, "waiters", op->count);
	json_out_u64(w, "version", op->lock.version);
	json_out_close(w);
}

static void
answer_list(struct apicall *a)
{
	const struct state *const s = a->state;
	struct json_out w;

	apicall_object(a, &w);
	json_out_array(&w, "locks");
	for (unsigned i = 0; i < a->n_ops; i++)
		if (op_is_of(a->ops[i].verb, OP_OF_LOCK) && !a->ops[i].rc && a->ops[i].lock.token)
			write_lock(&w, &a->ops[i]);
	json_out_close(&w);
	json_out_u64(&w, "looked", s->looked);
	if (s->more)
		json_out_str(&w, "cursor", slice_of(s->last));
	apicall_reply_object(a, &w, 200);
}

static void
describe(struct apicall *a, struct op *op, struct slice key, unsigned i)
{
	struct state *const s = a->state;

	apicall_op(a, op, OP_DESCRIBE, s->namespace, SLICE(LOCK_QUEUE));
	op->lock.key = key;
	op->lock.held_by = s->holders + (size_t)i * (LOCK_HOLDER_MAX + 1);
	op->lock.held_by[0] = '\0';
}

static bool
is_wanted(const struct state *s, const struct op_key *key)
{
	return key->etag && strncmp(key->name, s->prefix.n ? s->prefix.p : "", s->prefix.n) == 0;
}

static void
listed(struct apicall *a)
{
	struct state *const s = a->state;
	struct op *ops;
	unsigned n = 0;

	if (apicall_failed(a))
		return;
	s->looked = a->op.n_keys;
	s->more = a->op.lock.more && a->op.n_keys;
	if (s->more)
		memcpy(s->last, s->keys[a->op.n_keys - 1].name, sizeof s->last);
	for (uint32_t i = 0; i < s->looked; i++)
		n += is_wanted(s, &s->keys[i]);
	ops = n ? arena_array(&a->memory, n, sizeof *ops) : NULL;
	s->holders = n ? arena_array(&a->memory, n, LOCK_HOLDER_MAX + 1) : NULL;
	if (n && (!ops || !s->holders)) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	a->n_ops = n;
	if (!n) {
		answer_list(a);
		return;
	}
	n = 0;
	for (uint32_t i = 0; i < s->looked; i++)
		if (is_wanted(s, &s->keys[i])) {
			describe(a, &ops[n], slice_of(s->keys[i].name), n);
			n++;
		}
	a->ops = ops;
	apicall_run(a, answer_list);
}

static void
list(struct apicall *a)
{
	struct state *const s = a->state;

	s->keys = arena_array(&a->memory, s->limit, sizeof *s->keys);
	if (!s->keys) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	apicall_op(a, &a->op, OP_KEYS, s->namespace, SLICE(LOCK_QUEUE));
	a->op.lock.all = true;
	a->op.lock.key = s->cursor;
	a->op.keys = s->keys;
	a->op.max_keys = s->limit;
	apicall_run(a, listed);
}

/* --- release ------------------------------------------------------------------ */

static void
released(struct apicall *a)
{
	const struct state *const s = a->state;
	struct json_out w;

	if (apicall_failed(a))
		return;
	if (a->op.lock.why != LOCK_OK) {
		apicall_refuse(a, SLU_ECONFLICT, "the lease has ended, or another one has begun; nothing has changed");
		return;
	}
	apicall_object(a, &w);
	json_out_str(&w, "namespace", s->namespace);
	json_out_str(&w, "key", slice_of(s->folded));
	json_out_str(&w, "holder", slice_of(s->holders));
	json_out_bool(&w, "released", true);
	apicall_reply_object(a, &w, 200);
}

static void
note(struct apicall *a, const struct state *s, slu_time until)
{
	struct change_note n;

	if (!change_begin(a, &n))
		return;
	json_out_str(&n.before, "holder", slice_of(s->holders));
	json_out_time(&n.before, "expires_at", until);
	change_end(a, &n);
}

/* ADMINLOCK-1 */
static void
described(struct apicall *a)
{
	struct state *const s = a->state;
	const struct op_lock was = a->op.lock;
	char text[320];

	if (apicall_failed(a))
		return;
	if (!was.token) {
		(void)snprintf(text, sizeof text, "lock key %s is not held", s->folded);
		apicall_refuse(a, SLU_ENOTFOUND, text);
		return;
	}
	if (was.token != s->token) {
		(void)snprintf(text, sizeof text, "lock key %s has another lease, with token %" PRIu64 "; nothing has changed", s->folded,
			       was.token);
		apicall_refuse(a, SLU_ECONFLICT, text);
		return;
	}
	note(a, s, was.until);
	apicall_op(a, &a->op, OP_RELEASE, s->namespace, SLICE(LOCK_QUEUE));
	a->op.lock.key = slice_of(s->folded);
	a->op.lock.token = a->op.lock.fence = s->token;
	memcpy(a->op.lock.txn, was.txn, LOCK_TXN);
	a->op.lock.rollback = true; /* ADMINLOCK-2 */
	apicall_run(a, released);
}

static void
release(struct apicall *a)
{
	struct state *const s = a->state;
	struct slu_err err = { 0 };

	if (apicall_refused(a, lock_key_fold(s->key, "key", s->folded, &err), err.text))
		return;
	s->holders = arena_alloc(&a->memory, LOCK_HOLDER_MAX + 1);
	if (!s->holders) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	describe(a, &a->op, slice_of(s->folded), 0);
	apicall_run(a, described);
}

const struct handler admin_locks = { list, sizeof(struct state), QUERY_ROWS(list_params) };
const struct handler admin_lock_release = { release, sizeof(struct state), BODY_ROWS(release_params) };
