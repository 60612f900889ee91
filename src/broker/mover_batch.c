/*
 * mover_batch.c - one batch is carried from shard to shard, or goes back: Z1, Z3, Z4 of
 * broker/mover.h.
 */
#include "broker/broker_in.h"
#include "broker/mover_in.h"

#include "base/mem.h"

#include <stdio.h>

enum {
	BATCH_BYTES = 8 << 20, /* of records; a key goes whole, however large */
	PAGE_ROWS = 1000,
	FINISH_ROUNDS = 3 /* of batches that others began */
};

/* Nobody but the shard for which it was set aside may be given a batch. */
static bool
is_ours(const struct move *mv, const struct cargo *c)
{
	return !c->whom[0] || strcmp(c->whom, mv->to) == 0;
}

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
	w.op.epoch = mv->here.epoch;
	w.op.lives = mv->to;
	rc = wait_at(&w, mv->b, mv->from_lane, err);
	if (!rc && *cursor && w.op.move.batch != c->batch)
		rc = slu_fail(err, SLU_ECONFLICT, "somebody else has gone on with this batch");
	if (!rc) {
		c->batch = w.op.move.batch;
		c->counter = w.op.move.counter;
		memcpy(c->whom, w.op.move.whom, sizeof c->whom);
	}
	if (!rc && is_ours(mv, c))
		rc = cargo_add(c, &w.op, to, err);
	*cursor = w.op.cursor;
	op_unpin(&w.op);
	wait_release(&w);
	return rc;
}

/* Nothing when nothing can be taken: c->batch is 0. Of a batch for another shard only whose it
 * is. */
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
	while (!rc && cursor && is_ours(mv, c))
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
	rc = wait_at(&w, mv->b, mv->to_lane, err);
	*given = w.op.move.given;
	wait_release(&w);
	return rc;
}

/* A shard that could not answer. */
static bool
is_failure(int rc)
{
	return rc == SLU_EDOWN || rc == SLU_EUNKNOWN || rc == SLU_ECLOSED;
}

/* Has that shard the batch? If not it never will. */
static int
was_given(const struct move *mv, uint32_t lane, uint64_t batch, bool *out, struct slu_err *err)
{
	struct wait w;
	int rc;

	wait_init(&w, mv, OP_MOVE);
	w.op.move.step = MOVE_REFUSE;
	w.op.move.batch = batch;
	(void)snprintf(w.op.move.peer, sizeof w.op.move.peer, "%s", mv->from);
	rc = wait_at(&w, mv->b, lane, err);
	*out = w.op.move.given;
	wait_release(&w);
	return rc;
}

/* Z3, Z4 */
static int
end_batch(const struct move *mv, uint64_t batch, const char *whom, struct slu_err *err)
{
	const uint32_t lane = broker_lane_on(mv->b, whom, mv->space, mv->queue);
	bool given = false;
	int rc = 0;

	if (*whom && lane == UINT32_MAX)
		return no_such_shard(mv, whom, err);
	if (*whom)
		rc = was_given(mv, lane, batch, &given, err);
	return rc ? rc : step(mv, mv->from_lane, given ? MOVE_DROP : MOVE_UNTAKE, batch, NULL, err);
}

static bool
has_locks(const struct move *mv)
{
	return slice_eq(mv->queue, SLICE(LOCK_QUEUE));
}

/* Messages; or lock keys, of each of which the documents stand side by side. */
static uint64_t
messages_of(const struct move *mv, const struct cargo *c)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		const struct op_put *const put = &c->puts[i];

		n += has_locks(mv) ? i == 0 || !slice_eq(put->m.key, put[-1].m.key)
				   : put->stood.kind == MOVE_MESSAGE;
	}
	return n;
}

/* What was taken goes to the other shard. */
static int
bring(const struct move *mv, struct cargo *c, struct move_told *out, struct slu_err *err)
{
	struct slu_err ignored;
	uint64_t given = 0;
	int rc = give(mv, c, &given, err);

	if (rc && !is_failure(rc))
		(void)end_batch(mv, c->batch, mv->to, &ignored); /* Z3; the refusal says more */
	if (!rc)
		rc = step(mv, mv->from_lane, MOVE_DROP, c->batch, NULL, err);
	if (rc)
		return rc;
	out->taken += c->n;
	out->messages += messages_of(mv, c);
	out->moved += has_locks(mv) ? messages_of(mv, c) : given;
	out->batches++;
	return 0;
}

int
carry_batch(const struct move *mv, const struct move_ask *ask, struct move_told *out, bool *more,
	    struct slu_err *err)
{
	struct slu_err ignored;
	struct cargo c = { 0 };
	int rc = take(mv, ask, &c, err);

	*more = !rc && c.batch != 0;
	if (rc == SLU_EMOVED && c.batch)
		(void)end_batch(mv, c.batch, c.whom, &ignored); /* Z4; the refusal says more */
	if (*more && is_ours(mv, &c))
		rc = bring(mv, &c, out, err);
	else if (*more)
		rc = end_batch(mv, c.batch, c.whom, err);
	cargo_release(&c);
	return rc;
}

/* ---- What others began ---- */

int
mover_finish(struct broker *b, struct slice space, struct slice queue, uint32_t lane,
	     struct slu_err *err)
{
	struct move mv = { .b = b, .space = space, .queue = queue, .from_lane = lane };
	const struct move_ask ask = { .batch = MOVER_BATCH };
	struct move_told told = { 0 };
	bool more;
	int rc = step(&mv, lane, MOVE_LOOK, 0, &mv.here, err);

	if (rc || mv.here.batch == 0)
		return rc;
	mv.from = broker_shard_name(b, lane);
	mv.to = mv.here.whom[0] ? mv.here.whom : mv.here.lives;
	if (strcmp(mv.to, mv.here.lives) != 0 || !mv.to[0])
		return end_batch(&mv, mv.here.batch, mv.to, err);
	mv.to_lane = broker_lane_on(b, mv.to, space, queue);
	if (mv.to_lane == UINT32_MAX || mv.to_lane == lane)
		return no_such_shard(&mv, mv.to, err);
	return carry_batch(&mv, &ask, &told, &more, err);
}

int
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
