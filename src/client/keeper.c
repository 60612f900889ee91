#include "client/keeper.h"

#include "base/clock.h"

static struct kept *
next_due(const struct keeper *k)
{
	struct kept *first = NULL;

	LIST_EACH(n, &k->items) {
		struct kept *item = CONTAINER(n, struct kept, node);

		if (!item->lost && (!first || item->due < first->due))
			first = item;
	}
	return first;
}

/* Extends one lease. The caller holds mtx; it is released while keep runs. */
static void
keep(struct keeper *k, struct kept *item)
{
	const slu_time began = clock_mono(&clock_system);
	int rc;

	item->busy = true;
	pthread_mutex_unlock(&k->mtx);
	rc = item->keep(item, item->until);
	pthread_mutex_lock(&k->mtx);
	item->busy = false;
	if (!rc) {
		item->late += item->until - clock_mono(&clock_system) < item->lease / 4;
		item->until = time_add(began, item->lease);
		item->due = time_add(began, item->lease / 2);
	} else if (rc == SLU_ESTOP) { /* not extended any more */
		item->due = SLU_NEVER;
	} else if (rc == SLU_ELEASE || rc == SLU_ENOTFOUND ||
		   clock_mono(&clock_system) >= item->until) {
		item->lost = true;
	} else {
		item->due = clock_mono(&clock_system) + item->lease / 10;
	}
	pthread_cond_broadcast(&k->changed);
}

static void *
keeper_main(void *arg)
{
	struct keeper *const k = arg;

	pthread_mutex_lock(&k->mtx);
	while (!k->stopping) {
		struct kept *const item = next_due(k);

		if (item && item->due <= clock_mono(&clock_system))
			keep(k, item);
		else
			clock_wait(&clock_system, &k->changed, &k->mtx, item ? item->due : SLU_NEVER);
	}
	pthread_mutex_unlock(&k->mtx);
	return NULL;
}

int
keeper_start(struct keeper *k, struct slu_err *err)
{
	*k = (struct keeper){ 0 };
	pthread_mutex_init(&k->mtx, NULL);
	pthread_cond_init(&k->changed, NULL);
	list_init(&k->items);
	if (pthread_create(&k->thread, NULL, keeper_main, k) == 0)
		return 0;
	pthread_cond_destroy(&k->changed);
	pthread_mutex_destroy(&k->mtx);
	return slu_fail(err, SLU_EDOWN, "cannot start the thread that extends leases");
}

void
keeper_stop(struct keeper *k)
{
	pthread_mutex_lock(&k->mtx);
	k->stopping = true;
	pthread_cond_broadcast(&k->changed);
	pthread_mutex_unlock(&k->mtx);
	pthread_join(k->thread, NULL);
	pthread_cond_destroy(&k->changed);
	pthread_mutex_destroy(&k->mtx);
}

void
keeper_add(struct keeper *k, struct kept *item, slu_time lease, slu_time began)
{
	pthread_mutex_lock(&k->mtx);
	item->lease = lease;
	item->due = time_add(began, lease / 2);
	item->until = time_add(began, lease);
	item->busy = item->lost = false;
	item->late = 0;
	list_append(&k->items, &item->node);
	pthread_cond_broadcast(&k->changed);
	pthread_mutex_unlock(&k->mtx);
}

void
keeper_remove(struct keeper *k, struct kept *item)
{
	pthread_mutex_lock(&k->mtx);
	while (item->busy)
		pthread_cond_wait(&k->changed, &k->mtx);
	list_remove(&item->node);
	pthread_mutex_unlock(&k->mtx);
}
