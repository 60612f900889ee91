#include "duty/opwait.h"

void
opwait_init(struct opwait *w)
{
	*w = (struct opwait){ 0 };
	pthread_mutex_init(&w->mtx, NULL); /* these cannot fail without attributes */
	pthread_cond_init(&w->ended, NULL);
}

void
opwait_release(struct opwait *w)
{
	pthread_cond_destroy(&w->ended);
	pthread_mutex_destroy(&w->mtx);
}

/* Any thread. */
static void
on_done(struct op *op)
{
	struct opwait *const w = op->owner;

	pthread_mutex_lock(&w->mtx);
	if (--w->left == 0)
		pthread_cond_signal(&w->ended);
	pthread_mutex_unlock(&w->mtx);
}

void
opwait_op(struct opwait *w, struct op *op, enum op_verb verb, struct slice space, struct slice queue)
{
	op_init(op, verb, space, queue, on_done, w);
}

int
opwait_run(struct opwait *w, struct broker *b, struct op *ops, uint32_t n)
{
	pthread_mutex_lock(&w->mtx);
	w->left = n;
	pthread_mutex_unlock(&w->mtx);
	for (uint32_t i = 0; i < n; i++) {
		const int rc = broker_post(b, &ops[i]);

		if (rc) {
			op_fail(&ops[i], rc, &ops[i].err);
			on_done(&ops[i]);
		}
	}
	pthread_mutex_lock(&w->mtx);
	while (w->left > 0)
		pthread_cond_wait(&w->ended, &w->mtx);
	pthread_mutex_unlock(&w->mtx);
	return ops[0].rc;
}
