/*
 * round.c - calls on their way: each to the server that has its slot, until it is answered.
 *
 *      every call without an answer ──> its server: connected, with the script
 *      say all ──> send all ──> hear all
 *      and again, for those that were lost, sent elsewhere or told to wait
 *
 * Nothing has happened when a server sends a call elsewhere, or to wait. A call that was
 * lost may have: D4. It is not said again to a server that hangs: that would cost as long
 * once more, for all that wait for this lane.
 */
#include "engine/redis/redis_in.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>
#include <time.h>

enum {
	TRIES = 16, /* of a call: a queue may get priorities, or move, meanwhile */
	WAITS = 4   /* of these, in all 75 ms */
};

struct round {
	bool left;  /* there will be another */
	bool waits; /* but not at once */
	bool went;  /* a call is on its way through what it has to do */
	unsigned waited;
	slu_time began; /* the round */
	int worst;      /* of what failed: the first */
	struct slu_err why;
};

int
redis_distrust(const struct redis *r, struct rnode *n, const char *what, struct slu_err *err)
{
	if (r->outer.log)
		log_error(r->outer.log, "malformed reply from redis; the connection is closed",
			  F_STR("address", n->address), F_STR("to", what));
	rwire_close(&n->wire);
	return slu_fail(err, SLU_EUNKNOWN, "redis %s: malformed reply to %s", n->address, what);
}

bool
redis_wait(unsigned *waited)
{
	const struct timespec t = { .tv_nsec = (5 << *waited) * 1000000l };

	if (*waited == WAITS)
		return false;
	(*waited)++;
	(void)nanosleep(&t, NULL); /* sooner is fine */
	return true;
}

/* ---- Calls that fail ---- */

void
rcall_fail(struct rcall *c, int rc, const struct slu_err *err)
{
	struct op *op = c->op;

	if (!op)
		return;
	if (!op->n_items) {
		op_unpin(op);
		op->n_rows = 0;
		op_fail(op, rc, err);
	}
	for (uint32_t i = c->from; i < c->to && i < op->n_items; i++)
		op->items[i].rc = rc;
}

static void
give_up(struct round *w, struct rcall *c, int rc, struct slu_err *err)
{
	rc = (c->again || c->cursor) && rc == SLU_EDOWN ? SLU_EUNKNOWN : rc;
	err->code = (enum slu_code)rc;
	rcall_fail(c, rc, err);
	c->done = true;
	if (!w->worst) {
		w->worst = rc;
		w->why = *err;
	}
}

/* D4: enqueues are known by their numbers, claims by that of the op. What settles is safe to
 * repeat, too: a token counts once; but when it counts no more nobody knows whether it
 * was this one that used it. */
static void
lose(struct redis *r, struct round *w, struct rnode *n, int rc, struct slu_err *err)
{
	const bool hangs = rwire_is_late(&n->wire, w->began);
	bool twice = rc != SLU_EUNKNOWN || hangs;

	for (uint32_t i = 0; i < r->n_calls; i++) {
		struct rcall *c = &r->calls[i];

		if (c->done || c->node != n)
			continue;
		c->node = NULL;
		twice |= c->again;
		if (rc != SLU_EUNKNOWN || c->again || hangs)
			give_up(w, c, rc, err);
		c->again = true;
		w->left |= !c->done;
	}
	r->nodes.stale = r->nodes.cluster;
	if (twice && rc != SLU_ENOMEM)
		rnode_down(&r->nodes, n, err);
}

/* Its reply is malformed. What else was sent to that server has been lost with it. */
static void
distrust(struct redis *r, struct round *w, struct rcall *c, struct slu_err *err)
{
	struct rnode *const n = c->node;
	const int rc = redis_distrust(r, n, c->verb->name, err);

	give_up(w, c, rc, err);
	lose(r, w, n, rc, err);
}

/* ---- A round ---- */

static int
load_script(struct redis *r, struct rnode *n, struct slu_err *err)
{
	const struct slice words[] = { SLICE("SCRIPT"), SLICE("LOAD"), slice_of(redis_script) };
	redisReply *reply = NULL;
	int rc = rnode_ask(n, words, 3, &reply, err);

	if (!rc && (reply->type != REDIS_REPLY_STRING || reply->len != sizeof r->sha - 1))
		rc = slu_fail(err, SLU_EDOWN, "redis %s: %.160s", n->address,
			      reply->str ? reply->str : "the script was not taken");
	if (!rc)
		memcpy(r->sha, reply->str, sizeof r->sha);
	if (reply)
		freeReplyObject(reply);
	n->loaded = rc == 0;
	if (rc) {
		rnode_down(&r->nodes, n, err);
		rc = SLU_EDOWN; /* it was no call */
	}
	return rc;
}

static unsigned
slot_of(const struct redis *r, const struct rcall *c)
{
	return rqueue_at(r, c->queues ? c->queues[0] : c->queue)->slot;
}

/* Nothing is said before all servers are found: C3 of nodes.h. */
static void
find_nodes(struct redis *r, struct round *w)
{
	for (uint32_t i = 0; i < r->n_calls; i++) {
		struct rcall *c = &r->calls[i];
		struct slu_err err;
		int rc;

		if (c->done)
			continue;
		c->node = c->ask;
		rc = c->ask ? rnode_ready(&r->nodes, c->ask, &err)
			    : rnodes_at(&r->nodes, slot_of(r, c), &c->node, &err);
		if (!rc && !c->node->loaded)
			rc = load_script(r, c->node, &err);
		if (rc)
			give_up(w, c, rc, &err);
	}
}

/* A microsecond, so that it can be told how long ago it was. */
static void
number_call(struct redis *r, struct rcall *c)
{
	const uint64_t now = (uint64_t)(r->now / 1000);

	if (c->again)
		return;
	r->said = now > r->said ? now : r->said + 1;
	c->said = r->said;
}

static void
say_all(struct redis *r, struct round *w)
{
	for (uint32_t i = 0; i < r->n_calls; i++) {
		struct rcall *c = &r->calls[i];

		if (c->done)
			continue;
		if (c->node->wire.fd < 0) { /* another search has shown that it is gone */
			c->node = NULL;
			w->left = true;
			continue;
		}
		r->wire = &c->node->wire;
		if (c->ask) {
			rwire_begin(r->wire, 1);
			rwire_arg(r->wire, SLICE("ASKING"));
		}
		number_call(r, c);
		rcall_say(r, c);
	}
	for (uint32_t i = 0; i < r->nodes.n; i++) {
		struct rnode *n = r->nodes.all[i];
		struct slu_err err;
		const int rc = n->wire.out.n ? rwire_send(&n->wire, &err) : 0;

		if (rc)
			lose(r, w, n, rc, &err);
	}
}

/* The sum of a shard goes on without a queue whose slot is being moved: it is no reason to
 * say that the shard fails. */
static bool
can_be_missed(const struct round *w, const struct rcall *c, enum rnode_turn turn)
{
	return turn == RNODE_WAIT && w->waited == WAITS && c->op && c->op->verb == OP_SHARD;
}

/* An error: has the call failed, or is it to be made again? */
static void
heed(struct redis *r, struct round *w, struct rcall *c, const redisReply *reply)
{
	struct rnode *n = c->node;
	struct slu_err err;
	enum rnode_turn turn;

	c->ask = NULL;
	turn = rnodes_heed(&r->nodes, n, reply->str, &c->ask);
	(void)slu_fail(&err, turn == RNODE_FULL ? SLU_EMEMORY : SLU_EDOWN, "redis %s: %.160s",
		       n->address, reply->str);
	w->waits |= turn == RNODE_WAIT;
	n->loaded &= turn != RNODE_LOAD;
	if (turn == RNODE_DOWN) {
		n->refuses = true; /* the others still have answers */
		n->down_why = err;
	}
	if (can_be_missed(w, c, turn))
		c->done = true;
	else if (turn == RNODE_FAIL || turn == RNODE_FULL || turn == RNODE_DOWN ||
		 (turn == RNODE_WAIT && w->waited == WAITS))
		give_up(w, c, (int)err.code, &err);
	w->left |= !c->done;
}

static int
next_answer(const struct rcall *c, redisReply **reply, struct slu_err *err)
{
	int rc = c->ask ? rwire_answer(&c->node->wire, reply, err) : 0;

	if (c->ask && !rc) /* that of ASKING */
		freeReplyObject(*reply);
	return rc ? rc : rwire_answer(&c->node->wire, reply, err);
}

static void
hear_all(struct redis *r, struct round *w)
{
	for (uint32_t i = 0; i < r->n_calls; i++) {
		struct rcall *c = &r->calls[i];
		redisReply *reply = NULL;
		struct slu_err err;
		int rc;

		if (c->done || !c->node)
			continue;
		rc = next_answer(c, &reply, &err);
		if (rc) {
			lose(r, w, c->node, rc, &err);
			continue;
		}
		if (reply->type == REDIS_REPLY_ERROR) {
			heed(r, w, c, reply);
		} else {
			rnode_up(c->node);
			c->ask = NULL;
			rc = rcall_hear(r, c, reply, &err);
			if (rc == SLU_EUNKNOWN)
				distrust(r, w, c, &err);
			else if (rc)
				give_up(w, c, rc, &err);
			w->left |= !c->done;
			w->went |= c->goes_on;
		}
		c->node = NULL;
		freeReplyObject(reply);
	}
	for (uint32_t i = 0; i < r->nodes.n; i++)
		if (r->nodes.all[i]->refuses)
			rnode_down(&r->nodes, r->nodes.all[i], &r->nodes.all[i]->down_why);
}

int
rcalls_run(struct redis *r, struct slu_err *err)
{
	struct round w = { .left = r->n_calls > 0 };

	r->nodes.now = r->now;
	for (int i = 0; w.left && i < TRIES; i++) {
		if (w.waits && !redis_wait(&w.waited))
			break;
		w.left = w.waits = w.went = false;
		w.began = clock_mono(&clock_system);
		find_nodes(r, &w);
		say_all(r, &w);
		hear_all(r, &w);
		i -= w.went;
	}
	for (uint32_t i = 0; i < r->n_calls; i++) {
		if (!r->calls[i].done) {
			(void)slu_fail(&w.why, SLU_EDOWN, "redis %s: a queue changes all the time",
				       r->conf.wire.address);
			give_up(&w, &r->calls[i], SLU_EDOWN, &w.why);
		}
		mem_free(r->calls[i].queues);
	}
	r->n_calls = 0;
	if (w.worst && err)
		*err = w.why;
	return w.worst;
}

/* ---- Plain commands ---- */

/* To the server of the slot, or to the one that another has named. */
static int
ask_once(struct redis *r, struct rnode *n, bool asking, const struct slice *words, size_t n_words,
	 redisReply **out, struct slu_err *err)
{
	int rc = 0;

	if (asking)
		rc = rnode_ask(n, (const struct slice[]){ SLICE("ASKING") }, 1, out, err);
	if (asking && !rc)
		freeReplyObject(*out);
	*out = NULL;
	if (!rc)
		rc = rnode_ask(n, words, n_words, out, err);
	if (!rc && (*out)->type != REDIS_REPLY_ERROR)
		rnode_up(n);
	(void)r;
	return rc;
}

/* The answer is an error. True: it is to be said again. */
static bool
heed_plain(struct redis *r, struct rnode *n, redisReply **out, struct rnode **ask,
	   unsigned *waited, struct slu_err *err)
{
	const enum rnode_turn turn = rnodes_heed(&r->nodes, n, (*out)->str, ask);

	(void)slu_fail(err, SLU_EDOWN, "redis %s: %.160s", n->address, (*out)->str);
	freeReplyObject(*out);
	*out = NULL;
	if (turn == RNODE_DOWN)
		rnode_down(&r->nodes, n, err);
	return turn == RNODE_AGAIN || turn == RNODE_ASK || (turn == RNODE_WAIT && redis_wait(waited));
}

int
redis_ask(struct redis *r, const struct slice *words, size_t n_words, const char *shape,
	  redisReply **out, struct slu_err *err)
{
	const unsigned slot = rnode_slot(words[1]);
	struct rnode *n, *ask = NULL;
	struct slu_err why = { 0 };
	unsigned waited = 0;
	bool lost = false;

	r->nodes.now = r->now;
	for (int i = 0; i < TRIES; i++) {
		const slu_time began = clock_mono(&clock_system);
		struct rnode *const named = ask;
		int rc = named ? rnode_ready(&r->nodes, named, &why)
			       : rnodes_at(&r->nodes, slot, &n, &why);

		if (rc)
			break;
		n = named ? named : n;
		ask = NULL;
		rc = ask_once(r, n, named, words, n_words, out, &why);
		lost |= rc && rwire_is_late(&n->wire, began);
		if (rc && lost)
			rnode_down(&r->nodes, n, &why);
		if (rc && (lost || rc != SLU_EUNKNOWN))
			break;
		lost |= rc != 0;
		if (!rc && (*out)->type != REDIS_REPLY_ERROR && reply_fits(*out, shape))
			return 0;
		if (!rc && (*out)->type != REDIS_REPLY_ERROR) {
			freeReplyObject(*out);
			*out = NULL;
			return redis_distrust(r, n, words[0].p, err);
		}
		if (!rc && !heed_plain(r, n, out, &ask, &waited, &why))
			break;
	}
	why.code = SLU_EDOWN; /* whatever it was, no message has changed */
	if (err)
		*err = why;
	return SLU_EDOWN;
}
