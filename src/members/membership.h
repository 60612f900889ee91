/*
 * membership.h - members.h over a store, in a thread.
 *
 *      membership thread            pool threads (store/pool.h)
 *      members_next ──────────────> store_put, store_list, store_get
 *      members_event                        │
 *        │                members_reply <───┘
 *        v
 *      conf.event: take, hand over, close or publish a shard
 *
 * Any thread uses the functions of members.h between membership_lock and membership_unlock:
 *
 *         m = membership_lock(ms);
 *         members_opened(m, shard, epoch);
 *         membership_unlock(ms);
 *
 * The time of all these functions is membership_now.
 */
#ifndef MEMBERS_MEMBERSHIP_H
#define MEMBERS_MEMBERSHIP_H

#include "members/members.h"

struct membership;
struct slu_log;
struct store;

struct membership_conf {
	struct store *store;         /* borrowed until membership_close, as all pointers here */
	struct members_conf members; /* its lease is longer than a request to the store takes */
	struct slu_log *log;         /* receives log lines */

	/* Something has to be done. The membership thread calls it without a lock, also before
	 * membership_open has returned. It must not block for long: the thread sends the beats. */
	void (*event)(void *arg, struct membership *ms, const struct members_event *e);
	void *arg;
};

/* Starts the threads. Returns SLU_ENOMEM, or SLU_EDOWN if the system has no more threads. */
int membership_open(struct membership **out, const struct membership_conf *conf, struct slu_err *err);

/* Ends the beats; `event` is not called any more. Other nodes take the shards after a lease, or at
 * once if members_is_drained. NULL is fine. */
void membership_close(struct membership *ms);

struct members *membership_lock(struct membership *ms);
void membership_unlock(struct membership *ms); /* wakes the thread */

/* The boot clock. */
slu_time membership_now(void);

#endif
