/*
 * ledger_unique.h - steps of a random ledger: unique messages, records that are replaced, other priorities.
 */
#ifndef LEDGER_UNIQUE_H
#define LEDGER_UNIQUE_H

#include "ledger_world.h"

static inline void
random_unique(struct ledger_world *w, struct terms *t)
{
	t->unique = dice(w, UNIQUES);
	t->unique_for = t->unique == UNIQUE_TIME ? (slu_time)(1 + dice(w, 60)) * SLU_SEC : 0;
}

/* What a purge has taken is freed in steps, and a key counts until it is. */
static inline bool
is_purging(struct ledger_world *w, unsigned q)
{
	struct ledger_queue_view v;

	ledger_queue_get(w->l, w->queues[q], &v);
	return v.purging;
}

/* Somebody's message, rightly or wrongly named. */
static inline void
random_ref(struct ledger_world *w, struct ledger_ref *ref, unsigned *space, int *queue)
{
	const struct ledger_model_msg *x = &w->m.msgs[dice(w, MODEL_MSGS)];

	for (int i = 0; i < 6 && x->state != M_LEASED; i++)
		x = &w->m.msgs[dice(w, MODEL_MSGS)];
	*space = one_in(w, 10) ? (unsigned)dice(w, 2) : x->queue / 2;
	*queue = one_in(w, 2) ? -1 : (int)x->queue;
	if (one_in(w, 20))
		*queue = (int)dice(w, MODEL_QUEUES);
	*ref = (struct ledger_ref){
		.space = space_of(w, *space),
		.queue = *queue < 0 ? SLAB_NONE : w->queues[*queue],
		.id = one_in(w, 15) ? dice(w, w->last_id + 2) : x->id,
		.token = one_in(w, 4) ? 0 : x->token,
	};
	if (one_in(w, 8))
		ref->token += dice(w, 3) - 1;
}

/* What a replacement by the offer must be. due: of the message then. */
static inline bool
expect_replace(struct ledger_world *w, struct ledger_model_msg *x, int key, unsigned share, const struct ledger_offer *o,
	       slu_time *due)
{
	*due = x->due;
	if (x->state != M_WAIT || key != x->key || share != (x->kind ? MODEL_SHARES - 1 + x->kind : x->share))
		return false;
	if (key < 0 && o->due > w->now)
		*due = o->due;
	else if (key < 0 && model_state(&w->m, x, w->now) == MSG_DELAYED)
		*due = w->now;
	return true;
}

/* A second message with a key that is taken. */
static inline void
do_replace(struct ledger_world *w)
{
	const unsigned q = (unsigned)dice(w, MODEL_QUEUES), idem = (unsigned)dice(w, MODEL_IDEMS);
	struct ledger_model_msg *x = w->m.idems[q][idem].live ? model_find(&w->m, w->m.idems[q][idem].id) : NULL;
	struct ledger_offer o = { .id = 1, .prio = (int32_t)dice(w, 3) - 1, .idem = slice_of(idem_names[idem]) };
	struct change c;
	slu_time due;
	unsigned share;
	bool replaces;
	int key;

	if (!x || is_purging(w, q))
		return;
	tick(w, UINT32_MAX); /* what is due is ready */
	if (x->state == M_FREE || x->idem != (int)idem)
		return;
	key = one_in(w, 8) ? -1 : x->key;
	share = one_in(w, 8) ? 0 : x->kind ? MODEL_SHARES - 1 + x->kind
					   : x->share;
	o.due = one_in(w, 3) ? w->now + (slu_time)dice(w, 20) * SLU_SEC : 0;
	if (key >= 0)
		o.key = slice_of(key_names[key]);
	if (share)
		o.share = slice_of(share_names[share]);
	replaces = expect_replace(w, x, key, share, &o, &due);
	CHECK_EQ(0, ledger_replace(w->l, ledger_find(w->l, space_of(w, q / 2), x->id), &o, w->now, &c));
	CHECK_EQ(replaces ? CHANGE_REPLACE : CHANGE_NONE, c.kind);
	if (!replaces)
		return;
	CHECK_EQ(x->number, c.number);
	CHECK_EQ(due, c.due);
	c.where = ++w->last_where;
	emit(w, &c);
	x->where = c.where;
	x->due = due;
	x->prio = key < 0 ? o.prio : x->prio;
	sync_shares(w, 0);
	w->ticked = false;
}

static inline void
do_priority(struct ledger_world *w)
{
	const int32_t prio = (int32_t)dice(w, 3) - 1;
	struct ledger_ref ref;
	struct ledger_model_msg *x;
	struct change c;
	unsigned space;
	int queue, want;

	random_ref(w, &ref, &space, &queue);
	want = model_right(&w->m, &ref, space, queue, w->now, &x);
	CHECK_EQ(want, ledger_set_priority(w->l, &ref, prio, w->now, &c));
	if (want)
		return;
	emit(w, &c);
	x->prio = prio;
}

#endif
