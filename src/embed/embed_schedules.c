/*
 * embed_schedules.c - the thread that fires the schedules of a user's program (duty/scheduler.h).
 *
 * A program without schedules has no such thread.
 */
#include "embed/embed.h"

/* Any lane. */
static void
on_documents(void *arg, struct slice queue)
{
	const struct slu_broker *const b = arg;

	duty_notify(b->schedules, queue);
}

int
embed_schedules_open(struct slu_broker *b, struct slu_err *err)
{
	b->notice = (struct broker_notice){ b, on_documents };
	return scheduler_new(&b->schedules, &b->zones, b->log, err);
}

int
embed_schedules_start(struct slu_broker *b, struct slu_err *err)
{
	int rc = 0;

	pthread_mutex_lock(&b->duty_mtx);
	if (!b->ended && !b->schedules->runs)
		rc = duty_start(b->schedules, b->broker, err);
	pthread_mutex_unlock(&b->duty_mtx);
	return rc;
}

/* Looks for queues of schedules, in all namespaces: a server may have written the folder. */
static int
look(struct slu_broker *b, bool *any, struct slu_err *err)
{
	struct op_queue queues[8];
	struct embed_call c;
	uint64_t cursor = 0;
	int rc = 0;

	*any = false;
	do {
		rc = embed_begin(b, &c, OP_QUEUES, NULL, err);
		if (rc)
			return rc;
		c.op.space = (struct slice){ 0 };
		c.op.queue = SLICE(SCHEDULE_QUEUE);
		c.op.cursor = cursor;
		c.op.queues = queues;
		c.op.max_queues = COUNT(queues);
		rc = embed_run(b, &c, err);
		*any |= !rc && c.op.n_queues > 0;
		cursor = c.op.cursor;
		embed_end(b, &c);
	} while (!rc && cursor && !*any);
	return rc;
}

int
embed_schedules_start_if_any(struct slu_broker *b, struct slu_err *err)
{
	bool any;
	const int rc = look(b, &any, err);

	return rc || !any ? rc : embed_schedules_start(b, err);
}

void
embed_schedules_stop(struct slu_broker *b)
{
	pthread_mutex_lock(&b->duty_mtx);
	b->ended = true;
	duty_stop(b->schedules);
	pthread_mutex_unlock(&b->duty_mtx);
}

void
embed_schedules_close(struct slu_broker *b)
{
	duty_free(b->schedules);
	zones_release(&b->zones);
	pthread_mutex_destroy(&b->duty_mtx);
}
