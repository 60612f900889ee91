/*
 * keeper.h - a thread that keeps leases alive while somebody works under them.
 *
 *         keeper_start(&k);
 *         keeper_add(&k, &item, lease);      item.keep is called at half of it, and so on
 *         ...
 *         keeper_remove(&k, &item);          keep is not running and will not be called
 *         lost = item.lost;
 *         keeper_stop(&k);
 *
 * keep returns 0, SLU_ELEASE or SLU_ENOTFOUND (it is lost), or anything else: it is tried
 * again soon, and is lost when the lease has ended. One that is lost is left alone.
 */
#ifndef CLIENT_KEEPER_H
#define CLIENT_KEEPER_H

#include "base/list.h"

#include <sluice/err.h>

#include <pthread.h>

struct kept {
	/* Runs on the keeper's thread; at most until `until`, on the monotonic clock. */
	int (*keep)(struct kept *k, slu_time until);

	/* Under the keeper's mtx; whoever removed the item may read `lost` without. */
	struct list node;
	slu_time lease; /* its length */
	slu_time due;   /* when to keep it */
	slu_time until; /* until when it is ours for certain */
	bool busy;      /* keep runs */
	bool lost;
};

struct keeper {
	pthread_t thread;
	pthread_mutex_t mtx;
	pthread_cond_t changed; /* something was added, kept, or it is time to stop */
	struct list items;
	bool stopping;
};

/* SLU_EDOWN: no thread. */
int keeper_start(struct keeper *k, struct slu_err *err);
void keeper_stop(struct keeper *k); /* when it has no items */

/* began: when the lease was asked for, on the monotonic clock. */
void keeper_add(struct keeper *k, struct kept *item, slu_time lease, slu_time began);
void keeper_remove(struct keeper *k, struct kept *item);

#endif
