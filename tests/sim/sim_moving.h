/*
 * sim_moving.h - the judge of schedules in which queues move, for its own parts.
 *
 * An op of a queue that moves may run on one shard after the other, so its answer does not show
 * when it ran, and the next hand-out depends on where a message is. So this judge does not know
 * what each answer must be. It knows what must not happen, whatever a mover does: a message that
 * was accepted is lost or there twice, a message that is gone comes back, two clients have one
 * lease, or one key; a token does not rise; a key is out of order; the holder of a lease is
 * refused, another client is not.
 *
 *      sim_move.c          the map, and the movers
 *      sim_moving.c        the judge: posts and answers, rounds, rest
 *      sim_moving_sure.c   what is sure, and what is unknown
 *      sim_moving_put.c    enqueue: accepted once, and once of an idempotency key
 *      sim_moving_take.c   claim, return, ack, nack, extend: by the holder
 *      sim_moving_side.c   operators, views, states of messages
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

slu_time world_latest(struct sim_world *w);   /* of the clocks of all shards */
slu_time world_earliest(struct sim_world *w); /* that any of them may have shown */

/* Is an op on its way that may settle it? note: also marks each such item: a client has seen
 * the message since, so the answer may come late. */
bool world_is_settling(struct sim_world *w, const struct sim_msg *x, bool note);
bool world_is_claiming(const struct sim_world *w, unsigned queue);
bool world_is_setting(const struct sim_world *w, unsigned queue); /* its policy */

bool world_is_sure(struct sim_world *w, const struct sim_msg *x); /* how it stands */
bool world_is_lease_over(struct sim_world *w, const struct sim_msg *x);
bool world_is_held(struct sim_world *w, const struct sim_msg *x); /* for sure */
bool world_may_be_dead(struct sim_world *w, const struct sim_msg *x);

/* Is this answer right because calls of the disk fail? Then nothing has happened. */
bool world_cannot(struct sim_world *w, const struct sim_call *c, int rc);

/* Nobody knows what became of a call, of one of its items, or of all that a queue has. */
void world_doubt_call(struct sim_world *w, struct sim_call *c);
void world_doubt_item(struct sim_world *w, const struct sim_call *c, const struct op_item *it);
void world_doubt_queue(struct sim_world *w, unsigned queue, unsigned doubt);

/* ---- Answers ---- */

void world_expect_puts(struct sim_world *w, const struct sim_call *c);               /* they are posted */
void world_forget_puts(struct sim_world *w, const struct sim_call *c);               /* they were refused */
void world_note_policy(struct sim_world *w, unsigned queue, const struct policy *p); /* it may have it */
void world_gone(struct sim_world *w, struct sim_msg *x, slu_time at);

void judge_enqueue(struct sim_world *w, struct sim_call *c);
void judge_claim(struct sim_world *w, struct sim_call *c);
void judge_return(struct sim_world *w, struct sim_call *c);
void judge_settle(struct sim_world *w, struct sim_call *c);
void judge_manage(struct sim_world *w, struct sim_call *c); /* redrive, delete */
void judge_purge(struct sim_world *w, struct sim_call *c);
void judge_policy(struct sim_world *w, struct sim_call *c);
void judge_forget(struct sim_world *w, struct sim_call *c);
void judge_get(struct sim_world *w, struct sim_call *c);
void judge_look(struct sim_world *w, struct sim_call *c); /* peek, stats */
void judge_result(struct sim_world *w, struct sim_call *c);
void moving_lock(struct sim_world *w, struct sim_call *c);

/* ---- sim_moving_look.c ---- */

/* All that is there against the model, which knows it from then on. adopt: after an open, doubts
 * end. False: the disk failed meanwhile, and the model is as it was. */
bool world_look(struct sim_world *w, bool adopt);
bool world_has_shadow(struct sim_world *w, uint64_t id);                  /* set aside on any shard */
bool world_is_taken(struct sim_world *w, unsigned lane, uint64_t id);     /* set aside there */
uint64_t world_batch(struct sim_world *w, unsigned lane, unsigned queue); /* that is set aside, or 0 */

/* ---- sim_move.c ---- */

bool world_is_behind(const struct sim_world *w, unsigned queue); /* a mover that has to fetch a policy */
void world_pass_hour(struct sim_world *w);                       /* and what falls due in it ends */
void world_let_movers_end(struct sim_world *w);                  /* by themselves */

/* Nothing of the queue can stay on the first shard. */
void world_move_queue(struct sim_world *w, unsigned queue, unsigned from, unsigned to, bool force);

#endif
