/*
 * inbox.h - a queue between threads: many post, one takes everything at once.
 *
 *      any thread                         the owner
 *      inbox_post ──┐
 *      inbox_post ──┼──> | mail, in order | ──> inbox_take: all of it at once,
 *      inbox_post ──┘                           or sleeps until some comes
 *
 * Mail is any struct with a struct list in it. A post allocates nothing, and fails only after
 * a close.
 *
 *  INBOX-1  Mail comes out in the order of the posts, each once.
 *  INBOX-2  The stamp of a post and the `now` of a take are read under the lock: a take returns
 *           all mail with stamps up to its `now`.
 *  INBOX-3  After a close only inbox_post_owed adds mail.
 *  INBOX-4  A post makes a system call only to wake a sleeping owner, once, and only if the mail
 *           is enough for the owner.
 *  INBOX-5  The owner may take and finish mail before its post has returned. The inbox is
 *           released after all posts have returned.
 *
 * Times are of clock_boot, which also counts while the machine is suspended.
 */
#ifndef EXEC_INBOX_H
#define EXEC_INBOX_H

#include "base/clock.h"
#include "base/list.h"

#include <sluice/err.h>

#include <stdatomic.h>

struct inbox {
	struct clock *clock;
	pthread_mutex_t mtx;
	pthread_cond_t wake;

	/* Shared, under mtx. */
	struct list mail;
	uint32_t n;      /* pieces of mail */
	uint32_t enough; /* the owner sleeps until n has reached this */
	bool sleeping;   /* the owner, on wake */
	bool news;       /* inbox_poke or inbox_close was called */
	bool closed;
	_Atomic bool any; /* there is mail or news; read without mtx, as a hint */
};

/* Returns SLU_EDOWN if the system has no more locks. */
int inbox_init(struct inbox *in, struct clock *clock, struct slu_err *err);
void inbox_release(struct inbox *in);

/* stamp: set to the time of the post; may be NULL. Returns SLU_ECLOSED after a close. */
int inbox_post(struct inbox *in, struct list *node, slu_time *stamp);

/* The same for mail that the owner waits for before it ends: also after a close. */
void inbox_post_owed(struct inbox *in, struct list *node);

/* Refuses later posts, and wakes the owner. Any thread, any number of times. */
void inbox_close(struct inbox *in);

/* Returns whether inbox_close was called. Any thread. */
bool inbox_is_closed(struct inbox *in);

/* Wakes the owner without mail. */
void inbox_poke(struct inbox *in);

/* For the owner: appends all mail to out. If there are fewer than `enough` pieces (1 or more),
 * sleeps until they have come, a poke or a close, or until the clock reaches `until`. Returns
 * now. */
slu_time inbox_take(struct inbox *in, slu_time until, uint32_t enough, struct list *out,
		    bool *closed);

/* Returns whether inbox_take would return at once, with 1 as enough. */
static inline bool
inbox_has_news(const struct inbox *in)
{
	return atomic_load_explicit(&in->any, memory_order_acquire);
}

#endif
