/*
 * mover.c - the steps of a move, by a thread that waits for each.
 */
#include "broker/broker_in.h"
#include "broker/mover_in.h"

#include "base/mem.h"
#include "core/policy.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

enum {
	BATCH_BYTES = 8 << 20, /* of records; a key goes whole, however large */
	PAGE_ROWS = 1000,
	PAGE_QUEUES = 100,
	FINISH_ROUNDS = 3 /* of batches that others began */
};

/* Two ends of a move. */
struct move {
	struct broker *b;
	struct slice space, queue;
	const char *from, *to; /* shards */
	uint32_t from_lane, to_lane;
	struct op_move here, there; /* the last look at each */
	slu_time until;
};

/* ---- An op, and whoever waits for it ---- */

struct wait {
	struct op op;
	pthread_mutex_t mtx;
	pthread_cond_t ended;
	bool done;
};

static void
on_done(struct op *op)
{
	struct wait *const w = op->owner;

	pthread_mutex_lock(&w->mtx);
	w->done = true;
	pthread_cond_signal(&w->ended);
	pthread_mutex_unlock(&w->mtx);
}

static void
wait_init(struct wait *w, const struct move *mv, enum op_verb verb)
{
	op_init(&w->op, verb, mv->space, mv->queue, on_done, w);
	w->done = false;
	pthread_mutex_init(&w->mtx, NULL); /* cannot fail with these attributes */
	pthread_cond_init(&w->ended, NULL);
}

static void
wait_release(struct wait *w)
{
	pthread_cond_destroy(&w->ended);
	pthread_mutex_destroy(&w->mtx);
}

static int
wait_for(struct wait *w, int posted, struct slu_err *err)
{
	if (posted)
		return slu_fail(err, (enum slu_code)posted, "%s", slu_err_row(posted)->text);
	pthread_mutex_lock(&w->mtx);
	while (!w->done)
		pthread_cond_wait(&w->ended, &w->mtx);
	pthread_mutex_unlock(&w->mtx);
	if (w->op.rc)
		*err = w->op.err;
	return w->op.rc;
}

static int
run_at(struct wait *w, struct broker *b, uint32_t lane, struct slu_err *err)
{
	return wait_for(w, broker_post_at(b, lane, &w->op), err);
}

/* ---- Looks and marks ---- */

static int
step(const struct move *mv, uint32_t lane, enum move_step what, uint64_t batch,
     uint64_t epoch, const char *lives, struct op_move *out, struct slu_err *err)
{
	struct wait w;
	int rc;

	wait_init(&w, mv, OP_MOVE);
	w.op.move.step = what;
	w.op.move.batch = batch;
	w.op.epoch = epoch;
	w.op.lives = lives;
	rc = run_at(&w, mv->b, lane, err);
	if (!rc && out)
		*out = w.op.move;
	wait_release(&w);
	return rc;
}

static int
look(struct move *mv, struct slu_err *err)
{
	int rc = step(mv, mv->from_lane, MOVE_LOOK, 0, 0, NULL, &mv->here, err);

	if (!rc)
		rc = step(mv, mv->to_lane, MOVE_LOOK, 0, 0, NULL, &mv->there, err);
	return rc;
}

static int
policy_of(const struct move *mv, uint32_t lane, struct policy *out, struct slu_err *err)
{
	struct wait w;
	int rc;

	wait_init(&w, mv, OP_POLICY_GET);
	rc = run_at(&w, mv->b, lane, err);
	*out = w.op.policy;
	wait_release(&w);
	return rc;
}

/* A queue that has a policy of its own keeps it. */
static int
copy_policy(const struct move *mv, struct slu_err *err)
{
	struct policy here, there;
	struct wait w;
	int rc = policy_of(mv, mv->from_lane, &here, err);

	if (!rc)
		rc = policy_of(mv, mv->to_lane, &there, err);
	if (rc || policy_is_default(&here) || !policy_is_default(&there))
		return rc;
	wait_init(&w, mv, OP_POLICY_SET);
	w.op.policy = here;
	rc = run_at(&w, mv->b, mv->to_lane, err);
	wait_release(&w);
	return rc;
}

static uint64_t
highest(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Does the map say that the queue lives on `to`? */
static bool
is_mapped(const struct move *mv, uint64_t *epoch)
{
	const struct routes *const r = broker_routes(mv->b);
	const struct shardmap *const map = broker_map(r);
	struct broker_place place;

	*epoch = map ? shardmap_version(map) << MOVE_EPOCH_BITS : 0;
	return broker_place(mv->b, r, mv->space, mv->queue, &place, NULL) == 0 &&
	       strcmp(place.shard, mv->to) == 0;
}

/* V9 */
static int
lift(const struct move *mv, struct slu_err *err)
{
	struct wait w;
	int rc = 0;

	wait_init(&w, mv, OP_MOVE);
	if (move_lift(&w.op.move, mv->there.counter, mv->here.counter))
		rc = run_at(&w, mv->b, mv->to_lane, err);
	wait_release(&w);
	return rc;
}

/* Z2. Where it lives from now on is told first, then where it lived. */
static int
set_marks(struct move *mv, struct slu_err *err)
{
	const uint64_t before = highest(mv->here.epoch, mv->there.epoch);
	uint64_t epoch;
	const bool mapped = is_mapped(mv, &epoch);
	int rc;

	if (strcmp(mv->here.lives, mv->to) == 0 && mv->here.epoch == before &&
	    (mapped || before > epoch))
		return 0;
	if (!mapped || epoch <= before)
		epoch = highest(epoch, before) + 1;
	rc = copy_policy(mv, err);
	if (!rc)
		rc = lift(mv, err);
	if (!rc)
		rc = step(mv, mv->to_lane, MOVE_MARK, 0, epoch, "", &mv->there, err);
	if (!rc)
		rc = step(mv, mv->from_lane, MOVE_MARK, 0, epoch, mv->to, &mv->here, err);
	if (!rc && strcmp(mv->here.lives, mv->to) != 0)
		rc = slu_fail(err, SLU_ECONFLICT,
			      "queue %.*s of %.*s has just been sent to shard %s: run this again",
			      (int)mv->queue.n, mv->queue.p, (int)mv->space.n, mv->space.p,
			      mv->here.lives);
	return rc;
}

/* ---- One batch ---- */

static int
take_page(const struct move *mv, const struct move_ask *ask, uint32_t max, struct cargo *c,
	  struct op_row *rows, uint64_t *cursor, struct slu_err *err)
{
	struct engine *const to = mv->b->lanes[mv->to_lane]->engine;
	struct wait w;
	int rc;

	wait_init(&w, mv, OP_MOVE);
	w.op.move.step = MOVE_TAKE;
	w.op.move.force = ask->force;
	w.op.rows = rows;
	w.op.max_rows = max;
	w.op.max_bytes = BATCH_BYTES;
	w.op.cursor = *cursor;
	rc = run_at(&w, mv->b, mv->from_lane, err);
	if (!rc && *cursor && w.op.move.batch != c->batch)
		rc = slu_fail(err, SLU_ECONFLICT, "somebody else has gone on with this batch");
	if (!rc)
		rc = cargo_add(c, &w.op, to, err);
	c->batch = w.op.move.batch;
	c->counter = w.op.move.counter;
	*cursor = w.op.cursor;
	op_unpin(&w.op);
	wait_release(&w);
	return rc;
}

/* Nothing when nothing can be taken: c->batch is 0. */
static int
take(const struct move *mv, const struct move_ask *ask, struct cargo *c, struct slu_err *err)
{
	const uint32_t room = ask->batch > PAGE_ROWS ? ask->batch : PAGE_ROWS;
	struct op_row *const rows = mem_array(room, sizeof *rows);
	uint64_t cursor = 0;
	int rc;

	if (!rows)
		return slu_fail(err, SLU_ENOMEM, "no memory for a batch");
	rc = take_page(mv, ask, ask->batch, c, rows, &cursor, err);
	if (rc == SLU_EINVAL) /* the first of the batch has more documents than that */
		rc = take_page(mv, ask, room, c, rows, &cursor, err);
	while (!rc && cursor)
		rc = take_page(mv, ask, PAGE_ROWS, c, rows, &cursor, err);
	mem_free(rows);
	return rc;
}

static int
give(const struct move *mv, struct cargo *c, uint64_t *given, struct slu_err *err)
{
	struct wait w;
	int rc;

	wait_init(&w, mv, OP_MOVE);
	w.op.move.step = MOVE_GIVE;
	w.op.move.batch = c->batch;
	w.op.move.counter = c->counter;
	(void)snprintf(w.op.move.peer, sizeof w.op.move.peer, "%s", mv->from);
	w.op.epoch = mv->here.epoch; /* V12 */
	w.op.puts = c->puts;
	w.op.n_puts = c->n;
	rc = run_at(&w, mv->b, mv->to_lane, err);
	*given = w.op.move.given;
	wait_release(&w);
	return rc;
}

/* Codes after which nobody can say that nothing has happened, or that pass by themselves. */
static bool
is_certain(int rc)
{
	return rc == SLU_EFULL || rc == SLU_EINVAL || rc == SLU_ETOOBIG;
}

static uint64_t
messages_of(const struct cargo *c)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < c->n; i++)
		n += c->puts[i].stood.kind == MOVE_MESSAGE;
	return n;
}

/* False in *more: there was nothing to take. */
static int
carry_batch(const struct move *mv, const struct move_ask *ask, struct move_told *out, bool *more,
	    struct slu_err *err)
{
	struct cargo c = { 0 };
	uint64_t given = 0;
	int rc = take(mv, ask, &c, err);

	*more = !rc && c.batch != 0;
	if (*more)
		rc = give(mv, &c, &given, err);
	if (*more && is_certain(rc)) {
		struct slu_err ignored;

		(void)step(mv, mv->from_lane, MOVE_UNTAKE, c.batch, 0, NULL, NULL,
			   &ignored); /* Z3; the refusal says more */
	}
	if (*more && !rc)
		rc = step(mv, mv->from_lane, MOVE_DROP, c.batch, 0, NULL, NULL, err);
	if (*more && !rc) {
		out->taken += c.n;
		out->messages += messages_of(&c);
		out->moved += given;
		out->batches++;
	}
	cargo_release(&c);
	return rc;
}

/* ---- What others began ---- */

/* Has that shard accepted the batch, before the queue came back? If not it never will: V12. */
static int
has_given(const struct move *mv, uint32_t lane, bool *out, struct slu_err *err)
{
	struct wait w;
	int rc;

	wait_init(&w, mv, OP_MOVE);
	w.op.move.step = MOVE_GIVE;
	w.op.move.batch = mv->here.batch;
	(void)snprintf(w.op.move.peer, sizeof w.op.move.peer, "%s", mv->from);
	w.op.epoch = mv->here.epoch;
	w.op.lives = mv->from;
	rc = run_at(&w, mv->b, lane, err);
	wait_release(&w);
	*out = rc == 0;
	return rc == SLU_EMOVED ? 0 : rc;
}

/* Z4 */
static int
take_back(const struct move *mv, struct slu_err *err)
{
	const uint32_t lanes = broker_shards(mv->b);
	bool given = false;
	int rc = 0;

	for (uint32_t i = 0; !rc && !given && i < lanes; i++) {
		const uint32_t lane = broker_lane_on(mv->b, broker_shard_name(mv->b, i), mv->space, mv->queue);

		if (lane == i && lane != mv->from_lane)
			rc = has_given(mv, lane, &given, err);
	}
	return rc ? rc
		  : step(mv, mv->from_lane, given ? MOVE_DROP : MOVE_UNTAKE, mv->here.batch, 0, NULL, NULL, err);
}

int
mover_finish(struct broker *b, struct slice space, struct slice queue, uint32_t lane,
	     struct slu_err *err)
{
	struct move mv = { .b = b, .space = space, .queue = queue, .from_lane = lane };
	const struct move_ask ask = { .batch = MOVER_BATCH };
	struct move_told told = { 0 };
	bool more;
	int rc = step(&mv, lane, MOVE_LOOK, 0, 0, NULL, &mv.here, err);

	if (rc || mv.here.batch == 0)
		return rc;
	mv.from = broker_shard_name(b, lane);
	if (!mv.here.lives[0])
		return take_back(&mv, err);
	mv.to = mv.here.lives;
	mv.to_lane = broker_lane_on(b, mv.to, space, queue);
	if (mv.to_lane == UINT32_MAX || mv.to_lane == lane)
		return slu_fail(err, SLU_EMOVED,
				"queue %.*s of %.*s moves to shard %s, which this node does not know",
				(int)queue.n, queue.p, (int)space.n, space.p, mv.to);
	return carry_batch(&mv, &ask, &told, &more, err);
}

/* Z1 */
static int
finish_both(struct move *mv, struct move_told *out, struct slu_err *err)
{
	int rc = look(mv, err);

	out->resumed = !rc && (mv->here.batch || mv->there.batch);
	for (int i = 0; !rc && (mv->here.batch || mv->there.batch) && i < FINISH_ROUNDS; i++) {
		if (mv->here.batch)
			rc = mover_finish(mv->b, mv->space, mv->queue, mv->from_lane, err);
		if (!rc && mv->there.batch)
			rc = mover_finish(mv->b, mv->space, mv->queue, mv->to_lane, err);
		if (!rc)
			rc = look(mv, err);
	}
	return rc;
}

/* ---- A queue ---- */

static int
dead_of(const struct move *mv, uint64_t *out, struct slu_err *err)
{
	struct op_queue queue = { 0 };
	struct wait w;
	int rc;

	wait_init(&w, mv, OP_STATS);
	w.op.queues = &queue;
	w.op.max_queues = 1;
	rc = run_at(&w, mv->b, mv->from_lane, err);
	wait_release(&w);
	*out = rc == 0 && w.op.n_queues ? queue.count[MSG_DEAD] : 0;
	return rc == SLU_ENOTFOUND ? 0 : rc;
}

static int
tell(struct move *mv, struct move_told *out, struct slu_err *err)
{
	uint64_t epoch;
	int rc = look(mv, err);

	if (!rc)
		rc = dead_of(mv, &out->dead, err);
	if (rc)
		return rc;
	out->epoch = mv->here.epoch;
	out->by_hand = !is_mapped(mv, &epoch);
	out->left = mv->here.messages;
	out->leased = mv->here.leased;
	out->damaged = mv->here.damaged;
	out->remembered = mv->here.remembered;
	out->results = mv->here.results;
	out->there = mv->there.messages;
	out->done = mv->here.messages <= mv->here.damaged && mv->here.batch == 0 &&
		    mv->here.remembered == 0 && mv->here.results == 0 && mv->here.leased == 0;
	return 0;
}

/* *more: the time was over before there was nothing to take. */
static int
move_all(struct move *mv, const struct move_ask *ask, struct move_told *out, bool *more,
	 struct slu_err *err)
{
	int rc = finish_both(mv, out, err);

	if (!rc)
		rc = set_marks(mv, err);
	*more = true;
	while (!rc && *more) {
		rc = carry_batch(mv, ask, out, more, err);
		if (clock_boot(mv->b->clock) >= mv->until)
			break;
	}
	return rc;
}

int
mover_move(struct broker *b, const struct move_ask *asked, struct move_told *out,
	   struct slu_err *err)
{
	struct move_ask ask = *asked;
	struct move mv = {
		.b = b,
		.space = ask.space,
		.queue = ask.queue,
		.from = ask.from,
		.to = ask.to,
		.from_lane = broker_lane_on(b, ask.from, ask.space, ask.queue),
		.to_lane = broker_lane_on(b, ask.to, ask.space, ask.queue),
		.until = clock_boot(b->clock) + ask.budget,
	};
	struct slu_err ignored;
	bool more;
	int rc;

	*out = (struct move_told){ 0 };
	if (mv.from_lane == UINT32_MAX || mv.to_lane == UINT32_MAX)
		return slu_fail(err, SLU_ENOTFOUND, "there is no shard %s",
				mv.from_lane == UINT32_MAX ? ask.from : ask.to);
	if (mv.from_lane == mv.to_lane)
		return slu_fail(err, SLU_EINVAL, "from %s to %s: that is no move", ask.from, ask.to);
	if (ask.batch == 0)
		ask.batch = MOVER_BATCH;
	if (ask.dry)
		return tell(&mv, out, err);
	rc = move_all(&mv, &ask, out, &more, err);
	if (rc)
		(void)tell(&mv, out, &ignored); /* the first failure says more */
	else
		rc = tell(&mv, out, err);
	out->done = out->done && !more; /* lock keys are not counted: they are taken, or none is left */
	return rc;
}

/* ---- Namespaces ---- */

static int
each_of_page(const struct op *op, int (*each)(void *arg, struct slice space), void *arg)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < op->n_queues; i++)
		rc = each(arg, slice_of(op->queues[i].space));
	return rc;
}

static int
each_of_lane(struct broker *b, uint32_t lane, struct slice queue,
	     int (*each)(void *arg, struct slice space), void *arg, struct slu_err *err)
{
	const struct move mv = { .b = b, .queue = queue };
	struct op_queue *const room = mem_array(PAGE_QUEUES, sizeof *room);
	uint64_t cursor = (uint64_t)lane << BROKER_CURSOR_BITS;
	int rc = room ? 0 : slu_fail(err, SLU_ENOMEM, "no memory for a page of queues");

	while (!rc) {
		struct wait w;

		wait_init(&w, &mv, OP_TOPICS);
		w.op.cursor = cursor;
		w.op.queues = room;
		w.op.max_queues = PAGE_QUEUES;
		rc = wait_for(&w, broker_post(b, &w.op), err);
		cursor = w.op.cursor;
		wait_release(&w);
		if (!rc)
			rc = each_of_page(&w.op, each, arg);
		if (cursor >> BROKER_CURSOR_BITS != lane || (cursor & 0xffffffffffff) == 0)
			break;
	}
	mem_free(room);
	return rc;
}

int
mover_spaces(struct broker *b, const char *shard, struct slice queue,
	     int (*each)(void *arg, struct slice space), void *arg, struct slu_err *err)
{
	const uint32_t lanes = broker_shards(b);
	int rc = 0;

	for (uint32_t i = 0; !rc && i < lanes; i++)
		if (strcmp(broker_shard_name(b, i), shard) == 0)
			rc = each_of_lane(b, i, queue, each, arg, err);
	return rc;
}
