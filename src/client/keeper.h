/*
 * keeper.h - a thread that extends leases while other threads work under them.
 *
 *         keeper_start(&k);
 *         keeper_add(&k, &item, lease);      calls item.keep at half of the lease, again and again
 *         ...
 *         keeper_remove(&k, &item);          item.keep is not running and will not be called
 *         lost = item.lost;
 *         keeper_stop(&k);
 *
 * keep returns 0, or SLU_ELEASE or SLU_ENOTFOUND if the lease is lost. After any other error the keeper
 * tries again soon; the lease is lost when it has ended. A lost lease is not extended any more. Nor is the lease of a message that
 * was canceled (SLU_ESTOP); its holder may settle it until the lease ends. `late` counts the times that less than a quarter of the
 * lease was left when it was extended.
 */
#ifndef CLIENT_KEEPER_H
#define CLIENT_KEEPER_H

#include "base/list.h"

#include <sluice/err.h>

#include <pthread.h>

struct kept {
	/* Runs on the keeper's thread, at most until `until` on the monotonic clock. */
	int (*keep)(struct kept *k, slu_time until);

	/* Under the keeper's mtx. After keeper_remove, `lost` and `late` may be read without it. */
	struct list node;
	slu_time lease; /* length of the lease */
	slu_time due;   /* when to extend it */
	slu_time until; /* until when the lease certainly holds */
	bool busy;      /* keep is running */
	bool lost;
	unsigned late;
};

struct keeper {
	pthread_t thread;
	pthread_mutex_t mtx;
	pthread_cond_t changed; /* signalled when an item was added or extended, or at stop */
	struct list items;
	bool stopping;
};

/* Returns SLU_EDOWN if no thread can be started. */
int keeper_start(struct keeper *k, struct slu_err *err);
void keeper_stop(struct keeper *k); /* call it when no items are left */

/* began: when the lease was requested, on the monotonic clock. */
void keeper_add(struct keeper *k, struct kept *item, slu_time lease, slu_time began);
void keeper_remove(struct keeper *k, struct kept *item);

#endif
