/*
 * anyclaim.h - claims one message from any of several queues: one wait, one grant.
 *
 *      claim each queue, without a wait ── several granted: the best one stays, the others go back
 *          │ none
 *      claim each queue, with the wait  ── the first grant ends the other waits
 *          │
 *      then(a): won, failed, or neither: the wait is over
 *
 *  ANYCLAIM-1  `then` runs on the loop when every claim has its answer and every message but the winner's has gone
 *              back to its place, uncounted: the caller never has two.
 *  ANYCLAIM-2  One queue needs one claim, with the wait.
 *  ANYCLAIM-3  Lanes answer on their own threads. Every answer goes to the loop first, and the loop cancels the others.
 *
 * The claims are the ops of the apicall until `then`. Dialects and protocols use it; it has no form of an answer.
 */
#ifndef API_ANYCLAIM_H
#define API_ANYCLAIM_H

#include "api/apicall.h"

struct anyclaim_one {
	struct op *op; /* in apicall.ops */
	struct op_row row;
	void *tag; /* the caller's */

	/* Private. */
	struct loop_work work;
	struct apicall *apicall;
	void (*done)(struct op *op); /* of the apicall */
};

struct anyclaim {
	/* Set by the caller, after anyclaim_init. */
	void (*begin)(struct apicall *a, struct anyclaim_one *one);                    /* apicall_op with OP_CLAIM, lease, taker */
	bool (*is_better)(const struct anyclaim_one *a, const struct anyclaim_one *b); /* NULL: the first of the list */
	void (*waits)(struct apicall *a);                                              /* the claims wait from now on; or NULL */
	void (*then)(struct apicall *a);                                               /* ANYCLAIM-1 */
	slu_time wait;

	struct anyclaim_one *claims;
	unsigned n;

	/* Answer. */
	struct anyclaim_one *won; /* NULL: no message */
	const struct op *failed;  /* no message, and this claim failed; or NULL */

	/* Private. */
	struct op *ops;
	bool canceled;    /* one claim was granted: the others need not wait */
	unsigned returns; /* claims on their way back */
};

/* Room for n claims in the memory of the apicall, whose `part` is c from now on. Returns SLU_ENOMEM. */
int anyclaim_init(struct anyclaim *c, struct apicall *a, unsigned n);

void anyclaim_run(struct anyclaim *c, struct apicall *a);

/* For x->ended, instead of apicall_end: the message of the winner was not received and goes back. */
void anyclaim_return(struct anyclaim *c, struct apicall *a);

#endif
