/*
 * opwait.h - runs ops from a thread of the server's own and waits for their answers.
 *
 *      opwait_op(&w, &op, OP_LIST, space, queue);
 *      rc = opwait_run(&w, broker, &op, 1);
 *
 * One thread uses an opwait at a time.
 */
#ifndef DUTY_OPWAIT_H
#define DUTY_OPWAIT_H

#include "broker/broker.h"
#include "engine/op.h"

struct opwait {
	pthread_mutex_t mtx;
	pthread_cond_t ended;
	unsigned left; /* under mtx: ops without an answer */
};

void opwait_init(struct opwait *w);
void opwait_release(struct opwait *w);

/* Begins an op. */
void opwait_op(struct opwait *w, struct op *op, enum op_verb verb, struct slice space, struct slice queue);

/* Posts the n ops and waits for all answers: each op has its rc. Returns the rc of the first. */
int opwait_run(struct opwait *w, struct broker *b, struct op *ops, uint32_t n);

#endif
