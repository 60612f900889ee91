/*
 * sim_moving.h - the judge of schedules in which queues move, for its own parts.
 *
 * An op of such a queue may be asked on one shard after the other, so its answer does not say
 * when it was carried out, and what is handed out next hangs on where it is. So this judge does
 * not know what each answer must be. It knows what must not be, whoever moves, stands still or
 * dies: what was accepted is lost or there twice, what is gone comes back, two have one
 * lease, or one key; a token does not rise; a key is out of order; who holds a lease is
 * refused, who does not is not.
 *
 *      sim_move.c          the map, and those who move: what it is all about
 *      sim_moving.c        the judge: posts and answers, rounds, rest
 *      sim_moving_sure.c   what is sure, and what nobody knows
 *      sim_moving_put.c    enqueue: accepted once, and once of an idempotency key
 *      sim_moving_take.c   claim, return, ack, nack, extend: by whoever has it
 *      sim_moving_side.c   operators, those who look, states of messages
 *      sim_moving_look.c   all that is there, on whichever shard
 *      sim_moving_end.c    the end: one shard gets all, and all of it can be had
 *
 * Which of two things came first it knows by world.turn: an op is posted in one and answered in
 * a later one, and what it does happens between them. What an op does that is still on its way
 * may have happened long ago, so whatever it names is not sure until it is answered.
 */
#ifndef SIM_MOVING_H
#define SIM_MOVING_H

#include "sim_world.h"

/* ---- sim_moving_sure.c ---- */

slu_time world_latest(struct world *w);   /* of the clocks of all shards */
slu_time world_earliest(struct world *w); /* that any of them may have shown */

/* Is an op on its way that may settle it? note: and each such item is told that somebody saw
 * the message since, so its answer may come late. */
bool world_is_settling(struct world *w, const struct model_msg *x, bool note);
bool world_is_claiming(const struct world *w, unsigned queue);
bool world_is_setting(const struct world *w, unsigned queue); /* its policy */

bool world_is_sure(struct world *w, const struct model_msg *x); /* how it stands */
bool world_is_lease_over(struct world *w, const struct model_msg *x);
bool world_is_held(struct world *w, const struct model_msg *x); /* for sure */
bool world_may_be_dead(struct world *w, const struct model_msg *x);

/* Is this answer right because calls of the disk fail? Then nothing has happened. */
bool world_cannot(struct world *w, const struct call *c, int rc);

/* Nobody knows what became of a call, of one of its items, or of all that a queue has. */
void world_doubt_call(struct world *w, struct call *c);
void world_doubt_item(struct world *w, const struct call *c, const struct op_item *it);
void world_doubt_queue(struct world *w, unsigned queue, unsigned doubt);

/* ---- Answers ---- */

void world_expect_puts(struct world *w, const struct call *c);                   /* they are posted */
void world_forget_puts(struct world *w, const struct call *c);                   /* they were refused */
void world_note_policy(struct world *w, unsigned queue, const struct policy *p); /* it may have it */
void world_gone(struct world *w, struct model_msg *x, slu_time at);

void moving_enqueue(struct world *w, struct call *c);
void moving_claim(struct world *w, struct call *c);
void moving_return(struct world *w, struct call *c);
void moving_settle(struct world *w, struct call *c);
void moving_manage(struct world *w, struct call *c); /* redrive, delete */
void moving_purge(struct world *w, struct call *c);
void moving_policy(struct world *w, struct call *c);
void moving_forget(struct world *w, struct call *c);
void moving_get(struct world *w, struct call *c);
void moving_look(struct world *w, struct call *c); /* peek, stats */
void moving_result(struct world *w, struct call *c);
void moving_lock(struct world *w, struct call *c);

/* ---- sim_moving_look.c ---- */

/* All that is there against the model, which knows it from then on. adopt: after an open, doubts
 * end. False: the disk failed meanwhile, and the model is as it was. */
bool world_look(struct world *w, bool adopt);
bool world_has_shadow(struct world *w, uint64_t id);                  /* set aside on any shard */
bool world_is_taken(struct world *w, unsigned lane, uint64_t id);     /* set aside there */
uint64_t world_batch(struct world *w, unsigned lane, unsigned queue); /* that is set aside, or 0 */

/* ---- sim_move.c ---- */

bool world_is_behind(const struct world *w, unsigned queue); /* one who has to fetch a policy */
void world_let_movers_end(struct world *w);                  /* by themselves */

/* Nothing of the queue can stay on the first shard. */
void world_move_queue(struct world *w, unsigned queue, unsigned from, unsigned to, bool force);

#endif
