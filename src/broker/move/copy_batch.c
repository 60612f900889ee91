/*
 * copy_batch.c - copies one batch from shard to shard, or brings it back: COPY-1, COPY-3, COPY-4 of
 * broker/move/copy.h.
 */
#include "broker/broker_private.h"
#include "broker/move/copy_private.h"

#include "base/mem.h"

#include <stdio.h>

enum {
	BATCH_BYTES = 8 << 20, /* of records; a key goes whole, however large it is */
	PAGE_ROWS = 1000,
	FINISH_ROUNDS = 3 /* over batches of earlier moves */
};

/* A batch goes only to the shard for which it was set aside. */
static bool
is_ours(const struct movecopy *mv, const struct cargo *c)
{
	return !c->receiver[0] || strcmp(c->receiver, mv->to) == 0;
}

static int
take_page(const struct movecopy *mv, const struct move_request *ask, uint32_t max, struct cargo *c,
	  struct op_row *rows, uint64_t *cursor, struct slu_err *err)
{
	struct engine *const to = mv->b->lanes[mv->to_lane]->engine;
	struct movewait w;
	int rc;

	movewait_init(&w, mv, OP_MOVE);
	w.op.move.step = MOVE_TAKE;
	w.op.move.force = ask->force;
	w.op.rows = rows;
	w.op.max_rows = max;
	w.op.move.max_bytes = BATCH_BYTES;
	w.op.cursor = *cursor;
	w.op.home.epoch = mv->here.epoch;
	w.op.home.lives = mv->to;
	rc = movewait_at(&w, mv->b, mv->from_lane, err);
	if (!rc && *cursor && w.op.move.batch != c->batch)
		rc = slu_fail(err, SLU_ECONFLICT, "another node has continued with this batch");
	if (!rc) {
		c->batch = w.op.move.batch;
		c->counter = w.op.move.counter;
		memcpy(c->receiver, w.op.move.receiver, sizeof c->receiver);
	}
	if (!rc && is_ours(mv, c))
		rc = cargo_add(c, &w.op, to, err);
	*cursor = w.op.cursor;
	op_unpin(&w.op);
	movewait_release(&w);
	return rc;
}

/* Takes a batch. c->batch is 0 if there is nothing to take. Of a batch for another shard only c->receiver
 * is set. */
static int
take(const struct movecopy *mv, const struct move_request *ask, struct cargo *c, struct slu_err *err)
{
	const uint32_t room = ask->batch > PAGE_ROWS ? ask->batch : PAGE_ROWS;
	struct op_row *const rows = mem_array(room, sizeof *rows);
	uint64_t cursor = 0;
	int rc;

	if (!rows)
		return slu_fail(err, SLU_ENOMEM, "no memory for a batch");
	rc = take_page(mv, ask, ask->batch, c, rows, &cursor, err);
	if (rc == SLU_EINVAL) /* the first message has more documents than that */
		rc = take_page(mv, ask, room, c, rows, &cursor, err);
	while (!rc && cursor && is_ours(mv, c))
		rc = take_page(mv, ask, PAGE_ROWS, c, rows, &cursor, err);
	mem_free(rows);
	return rc;
}

static int
give(const struct movecopy *mv, struct cargo *c, uint64_t *given, struct slu_err *err)
{
	struct movewait w;
	int rc;

	movewait_init(&w, mv, OP_MOVE);
	w.op.move.step = MOVE_GIVE;
	w.op.move.batch = c->batch;
	w.op.move.counter = c->counter;
	(void)snprintf(w.op.move.peer, sizeof w.op.move.peer, "%s", mv->from);
	w.op.home.epoch = mv->here.epoch; /* MOVE-12 */
	w.op.puts = c->puts;
	w.op.n_puts = c->n;
	rc = movewait_at(&w, mv->b, mv->to_lane, err);
	*given = w.op.move.given;
	movewait_release(&w);
	return rc;
}

/* Sets *out if the shard has the batch; if not, it never will. */
static int
was_given(const struct movecopy *mv, uint32_t lane, uint64_t batch, bool *out, struct slu_err *err)
{
	struct movewait w;
	int rc;

	movewait_init(&w, mv, OP_MOVE);
	w.op.move.step = MOVE_REFUSE;
	w.op.move.batch = batch;
	(void)snprintf(w.op.move.peer, sizeof w.op.move.peer, "%s", mv->from);
	rc = movewait_at(&w, mv->b, lane, err);
	*out = w.op.move.given;
	movewait_release(&w);
	return rc;
}

/* COPY-3, COPY-4 */
static int
end_batch(const struct movecopy *mv, uint64_t batch, const char *receiver, struct slu_err *err)
{
	const uint32_t lane = broker_lane_on(mv->b, receiver, mv->space, mv->queue);
	bool given = false;
	int rc = 0;

	if (*receiver && lane == UINT32_MAX)
		return movecopy_no_such_shard(mv, receiver, err);
	if (*receiver)
		rc = was_given(mv, lane, batch, &given, err);
	return rc ? rc : movecopy_step(mv, mv->from_lane, given ? MOVE_DROP : MOVE_UNTAKE, batch, NULL, err);
}

static bool
has_locks(const struct movecopy *mv)
{
	return slice_eq(mv->queue, SLICE(LOCK_QUEUE));
}

/* Counts messages, or lock keys: the documents of a key follow each other. */
static uint64_t
messages_of(const struct movecopy *mv, const struct cargo *c)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		const struct op_put *const put = &c->puts[i];

		n += has_locks(mv) ? i == 0 || !slice_eq(put->m.key, put[-1].m.key)
				   : put->stood.kind == MOVE_MESSAGE;
	}
	return n;
}

/* Gives the batch to the other shard. */
static int
bring(const struct movecopy *mv, struct cargo *c, struct move_report *out, struct slu_err *err)
{
	struct slu_err ignored;
	uint64_t given = 0;
	int rc = give(mv, c, &given, err);

	if (rc && !op_is_failure(rc))
		(void)end_batch(mv, c->batch, mv->to, &ignored); /* COPY-3; the first error says more */
	if (!rc)
		rc = movecopy_step(mv, mv->from_lane, MOVE_DROP, c->batch, NULL, err);
	if (rc)
		return rc;
	out->taken += c->n;
	out->messages += messages_of(mv, c);
	out->moved += has_locks(mv) ? messages_of(mv, c) : given;
	out->batches++;
	return 0;
}

int
movecopy_carry_batch(const struct movecopy *mv, const struct move_request *ask, struct move_report *out, bool *more,
		     struct slu_err *err)
{
	struct slu_err ignored;
	struct cargo c = { 0 };
	int rc = take(mv, ask, &c, err);

	*more = !rc && c.batch != 0;
	if (rc == SLU_EMOVED && c.batch)
		(void)end_batch(mv, c.batch, c.receiver, &ignored); /* COPY-4; the first error says more */
	if (*more && is_ours(mv, &c))
		rc = bring(mv, &c, out, err);
	else if (*more)
		rc = end_batch(mv, c.batch, c.receiver, err);
	cargo_release(&c);
	return rc;
}

/* ---- Batches of earlier moves ---- */

int
movecopy_finish(struct broker *b, struct slice space, struct slice queue, uint32_t lane,
		struct slu_err *err)
{
	struct movecopy mv = { .b = b, .space = space, .queue = queue, .from_lane = lane };
	const struct move_request ask = { .batch = MOVECOPY_BATCH };
	struct move_report told = { 0 };
	bool more;
	int rc = movecopy_step(&mv, lane, MOVE_LOOK, 0, &mv.here, err);

	if (rc || mv.here.batch == 0)
		return rc;
	mv.from = broker_mark_name(b, lane);
	mv.to = mv.here.receiver[0] ? mv.here.receiver : mv.here.lives;
	if (strcmp(mv.to, mv.here.lives) != 0 || !mv.to[0])
		return end_batch(&mv, mv.here.batch, mv.to, err);
	mv.to_lane = broker_lane_on(b, mv.to, space, queue);
	if (mv.to_lane == UINT32_MAX || mv.to_lane == lane)
		return movecopy_no_such_shard(&mv, mv.to, err);
	return movecopy_carry_batch(&mv, &ask, &told, &more, err);
}

int
movecopy_finish_both(struct movecopy *mv, struct move_report *out, struct slu_err *err)
{
	int rc = movecopy_look(mv, err);

	out->resumed = !rc && (mv->here.batch || mv->there.batch);
	for (int i = 0; !rc && (mv->here.batch || mv->there.batch) && i < FINISH_ROUNDS; i++) {
		if (mv->here.batch)
			rc = movecopy_finish(mv->b, mv->space, mv->queue, mv->from_lane, err);
		if (!rc && mv->there.batch)
			rc = movecopy_finish(mv->b, mv->space, mv->queue, mv->to_lane, err);
		if (!rc)
			rc = movecopy_look(mv, err);
	}
	return rc;
}
