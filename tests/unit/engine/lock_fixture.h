/*
 * lock_fixture.h - lock keys of an engine on the bench: what a holder does, and sees.
 */
#ifndef TESTS_LOCK_FIXTURE_H
#define TESTS_LOCK_FIXTURE_H

#include "move_rig.h"

#include <stdio.h>

/* ---- A key on the bench ---- */

/* What the last answer said; the document is in text. */
struct held {
	struct op op;
	struct op_put put;
	char holder[LOCK_HOLDER_MAX + 1];
	char text[256];
};

static inline void
begin(struct held *h, enum op_verb verb, const char *key)
{
	const struct op_lock was = h->op.lock;

	rig_op(&h->op, verb, RIG_SPACE, LOCK_QUEUE);
	h->op.lock.key = slice_of(key);
	h->op.lock.token = was.token;
	memcpy(h->op.lock.txn, was.txn, LOCK_TXN);
}

static inline int
acquire(struct rig *r, struct held *h, const char *key, const char *owner, slu_time ttl)
{
	rig_op(&h->op, OP_ACQUIRE, RIG_SPACE, LOCK_QUEUE);
	h->op.lock.key = slice_of(key);
	h->op.lock.holder = slice_of(owner);
	h->op.lock.ttl = ttl;
	return rig_do(r, &h->op);
}

static inline int
keepalive(struct rig *r, struct held *h, const char *key, slu_time ttl)
{
	begin(h, OP_KEEPALIVE, key);
	h->op.lock.ttl = ttl;
	return rig_do(r, &h->op);
}

static inline int
end(struct rig *r, struct held *h, const char *key, bool rollback)
{
	begin(h, OP_RELEASE, key);
	h->op.lock.rollback = rollback;
	return rig_do(r, &h->op);
}

static inline void
prepare_put(struct held *h, const char *key, const char *name, const char *text)
{
	begin(h, OP_STATE_PUT, key);
	h->put = (struct op_put){ 0 };
	h->put.m.payload = slice_of(text);
	h->put.m.payload_size = strlen(text);
	h->op.puts = &h->put;
	h->op.n_puts = 1;
	h->op.lock.name = slice_of(name);
}

static inline int
put(struct rig *r, struct held *h, const char *key, const char *text)
{
	prepare_put(h, key, "", text);
	return rig_do(r, &h->op);
}

static inline int
attach(struct rig *r, struct held *h, const char *key, const char *name, const char *text)
{
	prepare_put(h, key, name, text);
	return rig_do(r, &h->op);
}

static inline int
take_away(struct rig *r, struct held *h, const char *key, const char *name)
{
	begin(h, OP_STATE_REMOVE, key);
	h->op.lock.name = slice_of(name);
	return rig_do(r, &h->op);
}

static inline void
read_document(struct rig *r, const struct op_ref *ref, struct held *h)
{
	struct message m;
	char bytes[1024];

	h->text[0] = 0;
	if (!ref->pin)
		return;
	CHECK(ref->size < sizeof bytes);
	CHECK_EQ(0, engine_read(r->e, ref, 0, ref->size, bytes, true, NULL));
	CHECK_EQ(0, message_decode((struct slice){ bytes, ref->size }, &m, NULL));
	CHECK(m.payload.n < sizeof h->text);
	snprintf(h->text, sizeof h->text, "%.*s", (int)m.payload.n, m.payload.p);
}

static inline const char *
get(struct rig *r, struct held *h, const char *key, const char *name)
{
	begin(h, OP_STATE_GET, key);
	h->op.lock.name = slice_of(name);
	if (rig_do(r, &h->op))
		return "refused";
	read_document(r, &h->op.lock.record, h);
	op_unpin(&h->op);
	return h->text;
}

/* As anybody sees it. */
static inline const char *
get_public(struct rig *r, const char *key)
{
	static struct held nobody;

	memset(&nobody, 0, sizeof nobody);
	return get(r, &nobody, key, "");
}

static inline void
describe(struct rig *r, struct held *out, const char *key)
{
	rig_op(&out->op, OP_DESCRIBE, RIG_SPACE, LOCK_QUEUE);
	out->op.lock.key = slice_of(key);
	out->op.lock.held_by = out->holder;
	CHECK_EQ(0, rig_do(r, &out->op));
}

/* Take a key, put a state, commit it. */
static inline void
commit_state(struct rig *r, const char *key, const char *text)
{
	struct held h;

	CHECK_EQ(0, acquire(r, &h, key, "setup", 0));
	CHECK_EQ(0, put(r, &h, key, text));
	CHECK_EQ(0, end(r, &h, key, false));
}

/* On a: a free key with a state and an attachment, and a key that is held. They are to move to `lives`. */
static inline void
fill_locks(struct rig *a, struct rig *b, struct held *h, const char *lives)
{
	commit_state(b, "other", "theirs");
	commit_state(a, "free", "one");
	commit_state(a, "free", "two");
	CHECK_EQ(0, acquire(a, h, "free", "me", 0));
	CHECK_EQ(0, attach(a, h, "free", "more", "three"));
	CHECK_EQ(0, end(a, h, "free", false));
	commit_state(a, "held", "mine");
	CHECK_EQ(0, acquire(a, h, "held", "me", 0));
	move_mark(a, LOCK_QUEUE, MOVE_EPOCH, lives);
}

#endif
