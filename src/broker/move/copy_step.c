/*
 * copy_step.c - the steps of a move as ops that the calling thread waits for.
 */
#include "broker/broker_private.h"
#include "broker/move/copy_private.h"

static void
on_done(struct op *op)
{
	struct movewait *const w = op->owner;

	pthread_mutex_lock(&w->mtx);
	w->done = true;
	pthread_cond_signal(&w->ended);
	pthread_mutex_unlock(&w->mtx);
}

void
movewait_init(struct movewait *w, const struct movecopy *mv, enum op_verb verb)
{
	op_init(&w->op, verb, mv->space, mv->queue, on_done, w);
	w->b = mv->b;
	w->done = false;
	pthread_mutex_init(&w->mtx, NULL); /* cannot fail with these attributes */
	pthread_cond_init(&w->ended, NULL);
}

void
movewait_release(struct movewait *w)
{
	pthread_cond_destroy(&w->ended);
	pthread_mutex_destroy(&w->mtx);
}

static void
await(struct movewait *w)
{
	const struct broker_hand *const hand = w->b->hand;

	if (hand) {
		hand->await(hand->arg, &w->done);
		return;
	}
	pthread_mutex_lock(&w->mtx);
	while (!w->done)
		pthread_cond_wait(&w->ended, &w->mtx);
	pthread_mutex_unlock(&w->mtx);
}

int
movewait_for(struct movewait *w, int posted, struct slu_err *err)
{
	if (posted)
		return slu_fail(err, (enum slu_code)posted, "%s", slu_err_row(posted)->text);
	await(w);
	if (w->op.rc)
		*err = w->op.err;
	return w->op.rc;
}

int
movewait_at(struct movewait *w, struct broker *b, uint32_t lane, struct slu_err *err)
{
	return movewait_for(w, broker_post_at(b, lane, &w->op), err);
}

int
movecopy_step(const struct movecopy *mv, uint32_t lane, enum move_step what, uint64_t batch,
	      struct op_move *out, struct slu_err *err)
{
	struct movewait w;
	int rc;

	movewait_init(&w, mv, OP_MOVE);
	w.op.move.step = what;
	w.op.move.batch = batch;
	rc = movewait_at(&w, mv->b, lane, err);
	if (!rc && out)
		*out = w.op.move;
	movewait_release(&w);
	return rc;
}

int
movecopy_look(struct movecopy *mv, struct slu_err *err)
{
	int rc = movecopy_step(mv, mv->from_lane, MOVE_LOOK, 0, &mv->here, err);

	return rc ? rc : movecopy_step(mv, mv->to_lane, MOVE_LOOK, 0, &mv->there, err);
}

int
movecopy_no_such_shard(const struct movecopy *mv, const char *shard, struct slu_err *err)
{
	return slu_fail(err, SLU_EMOVED,
			"queue %.*s of %.*s moves to shard %s, which this node does not have",
			(int)mv->queue.n, mv->queue.p, (int)mv->space.n, mv->space.p, shard);
}
