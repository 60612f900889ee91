#include "exec/mailbox.h"

int
mailbox_init(struct mailbox *in, struct clock *clock, struct slu_err *err)
{
	*in = (struct mailbox){ .clock = clock };
	list_init(&in->mail);
	if (pthread_cond_init(&in->wake, NULL))
		return slu_fail(err, SLU_EDOWN, "mailbox: no condition variable");
	pthread_mutex_init(&in->mtx, NULL); /* cannot fail with these attributes */
	return 0;
}

void
mailbox_release(struct mailbox *in)
{
	pthread_mutex_destroy(&in->mtx);
	pthread_cond_destroy(&in->wake);
}

/* Releases mtx, then wakes the reader if it sleeps (MAILBOX-4): woken earlier, it would block on the
 * lock. */
static void
unlock_and_wake(struct mailbox *in)
{
	const bool wake = in->sleeping && (in->news || in->n >= in->enough);

	atomic_store_explicit(&in->any, true, memory_order_release);
	in->sleeping &= !wake;
	pthread_mutex_unlock(&in->mtx);
	if (wake)
		pthread_cond_signal(&in->wake);
}

int
mailbox_post(struct mailbox *in, struct list *node, slu_time *stamp)
{
	pthread_mutex_lock(&in->mtx);
	if (in->closed) {
		pthread_mutex_unlock(&in->mtx);
		return SLU_ECLOSED;
	}
	if (stamp)
		*stamp = clock_boot(in->clock);
	list_append(&in->mail, node);
	in->n++;
	unlock_and_wake(in);
	return 0;
}

void
mailbox_post_owed(struct mailbox *in, struct list *node)
{
	pthread_mutex_lock(&in->mtx);
	list_append(&in->mail, node);
	in->n++;
	unlock_and_wake(in);
}

void
mailbox_poke(struct mailbox *in)
{
	pthread_mutex_lock(&in->mtx);
	in->news = true;
	unlock_and_wake(in);
}

void
mailbox_close(struct mailbox *in)
{
	pthread_mutex_lock(&in->mtx);
	in->closed = true;
	in->news = true;
	unlock_and_wake(in);
}

bool
mailbox_is_closed(struct mailbox *in)
{
	bool closed;

	pthread_mutex_lock(&in->mtx);
	closed = in->closed;
	pthread_mutex_unlock(&in->mtx);
	return closed;
}

/* Under mtx: waits for enough mail or news, or until the time. */
static slu_time
sleep_until(struct mailbox *in, slu_time until)
{
	slu_time now = clock_boot(in->clock);

	while (in->n < in->enough && !in->news && now < until) {
		const slu_time left = until == SLU_NEVER ? SLU_NEVER : until - now;

		in->sleeping = true;
		clock_wait(in->clock, &in->wake, &in->mtx,
			   time_add(clock_mono(in->clock), left));
		in->sleeping = false;
		now = clock_boot(in->clock);
	}
	return now;
}

slu_time
mailbox_take(struct mailbox *in, slu_time until, uint32_t enough, struct list *out, bool *closed)
{
	slu_time now;

	pthread_mutex_lock(&in->mtx);
	in->enough = enough;
	now = sleep_until(in, until);
	in->news = false;
	in->n = 0;
	atomic_store_explicit(&in->any, false, memory_order_relaxed);
	*closed = in->closed;
	list_take(&in->mail, out);
	pthread_mutex_unlock(&in->mtx);
	return now;
}
