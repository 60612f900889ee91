/*
 * pipeline.c - sends each call to the server that has its slot, until the call is answered.
 *
 *      every call without an answer ──> its server: connected, with the script
 *      encode all ──> send all ──> read all answers
 *      and again for calls that were lost, redirected or told to wait
 *
 * A call that a server redirects or tells to wait has not happened. A call that was lost may
 * have happened: REDIS-4. It is not sent again to a server that hangs: every op of the lane
 * would wait for another timeout.
 */
#include "engine/redis/redis_private.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <time.h>

enum {
	TRIES = 16, /* rounds per run: a queue may get priorities, or move, meanwhile */
	WAITS = 4   /* rounds with a wait before; 75 ms in all */
};

struct pipeline {
	bool left;  /* another round is needed */
	bool waits; /* the next round begins with a wait */
	bool went;  /* a call with several parts did one of them */
	unsigned waited;
	slu_time began; /* of the round */
	int worst;      /* code of the first failure */
	struct slu_err why;
};

/* The server's reply to this command or call is malformed. Returns SLU_EUNKNOWN. */
static int
distrust(const struct redis *r, struct rnode *n, const char *what, struct slu_err *err)
{
	if (r->outer.log)
		log_error(r->outer.log, "malformed reply from redis; connection closed",
			  F_STR("address", n->address), F_STR("to", what));
	rwire_close(&n->wire);
	return slu_fail(err, SLU_EUNKNOWN, "redis %s: malformed reply to %s", n->address, what);
}

/* Waits a moment before a server is asked again. Returns false if the op has waited too often. */
static bool
wait_a_moment(unsigned *waited)
{
	const struct timespec t = { .tv_nsec = (5 << *waited) * 1000000l };

	if (*waited == WAITS)
		return false;
	(*waited)++;
	(void)nanosleep(&t, NULL); /* an early return is fine */
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
		op_drop_rows(op);
		op_fail(op, rc, err);
	}
	for (uint32_t i = c->from; i < c->to && i < op->n_items; i++)
		op->items[i].rc = rc;
}

static void
give_up(struct pipeline *w, struct rcall *c, int rc, struct slu_err *err)
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

/* REDIS-4: enqueues are identified by their numbers, claims by the number of the op. A settling
 * call is safe to repeat, too: a token counts once. But if the token does not count any more,
 * it is unknown whether this call used it. */
static void
lose(struct redis *r, struct pipeline *w, struct rnode *n, int rc, struct slu_err *err)
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

/* The reply of a call is malformed. Other calls sent to that server are lost, too. */
static void
distrust_call(struct redis *r, struct pipeline *w, struct rcall *c, struct slu_err *err)
{
	struct rnode *const n = c->node;
	const int rc = distrust(r, n, c->verb->name, err);

	give_up(w, c, rc, err);
	lose(r, w, n, rc, err);
}

/* ---- A round ---- */

static int
load_script(struct redis *r, struct rnode *n, struct slu_err *err)
{
	redisReply *reply;
	int rc = rwire_ask(&n->wire, WORDS(SLICE("SCRIPT"), SLICE("LOAD"), slice_of(redis_script)), &reply,
			   err);

	if (!rc && (reply->type != REDIS_REPLY_STRING || reply->len != sizeof r->sha - 1))
		rc = slu_fail(err, SLU_EDOWN, "redis %s: %.160s", n->address,
			      reply->str ? reply->str : "the script was not taken");
	if (!rc)
		memcpy(r->sha, reply->str, sizeof r->sha);
	freeReplyObject(reply);
	n->loaded = rc == 0;
	if (rc) {
		rnode_down(&r->nodes, n, err);
		rc = SLU_EDOWN; /* not a call: nothing has happened */
	}
	return rc;
}

static unsigned
slot_of(const struct redis *r, const struct rcall *c)
{
	return rqueue_at(r, c->queues ? c->queues[0] : c->queue)->slot;
}

/* Finds the servers of all calls before the first call is sent: REDISNODES-3 of nodes.h. */
static void
find_nodes(struct redis *r, struct pipeline *w)
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

/* Gives the call a number: a time in microseconds, so that its age is known. */
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
say_all(struct redis *r, struct pipeline *w)
{
	for (uint32_t i = 0; i < r->n_calls; i++) {
		struct rcall *c = &r->calls[i];

		if (c->done)
			continue;
		if (c->node->wire.fd < 0) { /* the server was lost while another one was searched */
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
		rcall_encode(r, c);
	}
	for (uint32_t i = 0; i < r->nodes.n; i++) {
		struct rnode *n = r->nodes.all[i];
		struct slu_err err;
		const int rc = n->wire.out.n ? rwire_send(&n->wire, &err) : 0;

		if (rc)
			lose(r, w, n, rc, &err);
	}
}

/* The sums of a shard leave out a queue whose slot is moving: the shard has not failed. */
static bool
can_be_missed(const struct pipeline *w, const struct rcall *c, enum rnode_turn turn)
{
	return turn == RNODE_WAIT && w->waited == WAITS && c->op && c->op->verb == OP_SHARD;
}

/* Handles an error reply: fails the call, or has it made again. */
static void
handle_error(struct redis *r, struct pipeline *w, struct rcall *c, const redisReply *reply)
{
	struct rnode *n = c->node;
	struct slu_err err;
	enum rnode_turn turn;

	c->ask = NULL;
	turn = rnodes_error(&r->nodes, n, reply->str, &c->ask);
	(void)slu_fail(&err, turn == RNODE_FULL ? SLU_EMEMORY : SLU_EDOWN, "redis %s: %.160s",
		       n->address, reply->str);
	w->waits |= turn == RNODE_WAIT;
	n->loaded &= turn != RNODE_LOAD;
	if (turn == RNODE_DOWN) {
		n->refuses = true; /* other calls still have answers on this connection */
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

	if (c->ask && !rc) /* the answer of ASKING */
		freeReplyObject(*reply);
	return rc ? rc : rwire_answer(&c->node->wire, reply, err);
}

static void
hear_all(struct redis *r, struct pipeline *w)
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
			handle_error(r, w, c, reply);
		} else {
			rnode_up(c->node);
			c->ask = NULL;
			rc = rcall_decode(r, c, reply, &err);
			if (rc == SLU_EUNKNOWN)
				distrust_call(r, w, c, &err);
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
	struct pipeline w = { .left = r->n_calls > 0 };

	r->nodes.now = r->now;
	for (int i = 0; w.left && i < TRIES; i++) {
		if (w.waits && !wait_a_moment(&w.waited))
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
			(void)slu_fail(&w.why, SLU_EDOWN, "redis %s: a queue changed too often",
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

/* Sends a command to n, with ASKING before it if another server redirected to n. */
static int
ask_once(struct rnode *n, bool asking, struct rwords words, redisReply **out, struct slu_err *err)
{
	int rc = asking ? rwire_ask(&n->wire, WORDS(SLICE("ASKING")), out, err) : 0;

	if (asking)
		freeReplyObject(*out);
	*out = NULL;
	if (!rc)
		rc = rwire_ask(&n->wire, words, out, err);
	if (!rc && (*out)->type != REDIS_REPLY_ERROR)
		rnode_up(n);
	return rc;
}

/* Handles an error reply to a plain command. Returns true if it must be sent again. */
static bool
handle_plain_error(struct redis *r, struct rnode *n, redisReply **out, struct rnode **ask,
		   unsigned *waited, struct slu_err *err)
{
	const enum rnode_turn turn = rnodes_error(&r->nodes, n, (*out)->str, ask);

	(void)slu_fail(err, SLU_EDOWN, "redis %s: %.160s", n->address, (*out)->str);
	freeReplyObject(*out);
	*out = NULL;
	if (turn == RNODE_DOWN) {
		n->refuses = true;
		rnode_down(&r->nodes, n, err);
	}
	return turn == RNODE_AGAIN || turn == RNODE_ASK || (turn == RNODE_WAIT && wait_a_moment(waited));
}

int
redis_ask(struct redis *r, struct rwords words, const char *shape, redisReply **out,
	  struct slu_err *err)
{
	const unsigned slot = rnode_slot(words.at[1]);
	struct rnode *n, *ask = NULL;
	struct slu_err why = { 0 };
	unsigned waited = 0;
	bool lost = false;

	*out = NULL;
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
		rc = ask_once(n, named, words, out, &why);
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
			return distrust(r, n, words.at[0].p, err);
		}
		if (!rc && !handle_plain_error(r, n, out, &ask, &waited, &why))
			break;
	}
	why.code = SLU_EDOWN; /* a plain command changes no message */
	if (err)
		*err = why;
	return SLU_EDOWN;
}

int
redis_ask_number(struct redis *r, struct rwords words, int64_t *out, struct slu_err *err)
{
	redisReply *reply;
	const int rc = redis_ask(r, words, "n", &reply, err);

	*out = rc ? 0 : reply_int(reply);
	freeReplyObject(reply);
	return rc;
}
