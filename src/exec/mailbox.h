/*
 * mailbox.h - a queue between threads: many post, one takes everything at once.
 *
 *      any thread                         the reader
 *      mailbox_post ──┐
 *      mailbox_post ──┼──> | mail, in order | ──> mailbox_take: all of it at once,
 *      mailbox_post ──┘                           or sleeps until some comes
 *
 * The reader is one thread. Mail is any struct with a struct list in it. A post allocates nothing, and fails only after
 * a close.
 *
 *  MAILBOX-1  Mail comes out in the order of the posts, each once.
 *  MAILBOX-2  The stamp of a post and the `now` of a take are read under the lock: a take returns
 *             all mail with stamps up to its `now`.
 *  MAILBOX-3  After a close only mailbox_post_owed adds mail.
 *  MAILBOX-4  A post makes a system call only to wake a sleeping reader, once, and only if the mail
 *             is enough for the reader.
 *  MAILBOX-5  The reader may take and finish mail before its post has returned. The mailbox is
 *             released after all posts have returned.
 *
 * Times are of clock_boot, which also counts while the machine is suspended.
 */
#ifndef EXEC_MAILBOX_H
#define EXEC_MAILBOX_H

#include "base/clock.h"
#include "base/list.h"

#include <sluice/err.h>

#include <stdatomic.h>

struct mailbox {
	struct clock *clock;
	pthread_mutex_t mtx;
	pthread_cond_t wake;

	/* Shared, under mtx. */
	struct list mail;
	uint32_t n;      /* pieces of mail */
	uint32_t enough; /* the reader sleeps until n has reached this */
	bool sleeping;   /* the reader, on wake */
	bool news;       /* mailbox_poke or mailbox_close was called */
	bool closed;
	_Atomic bool any; /* there is mail or news; read without mtx, as a hint */
};

/* Returns SLU_EDOWN if the system has no more locks. */
int mailbox_init(struct mailbox *in, struct clock *clock, struct slu_err *err);
void mailbox_release(struct mailbox *in);

/* stamp: set to the time of the post; may be NULL. Returns SLU_ECLOSED after a close. */
int mailbox_post(struct mailbox *in, struct list *node, slu_time *stamp);

/* The same for mail that the reader waits for before it ends: also after a close. */
void mailbox_post_owed(struct mailbox *in, struct list *node);

/* Refuses later posts, and wakes the reader. Any thread, any number of times. */
void mailbox_close(struct mailbox *in);

/* Returns whether mailbox_close was called. Any thread. */
bool mailbox_is_closed(struct mailbox *in);

/* Wakes the reader without mail. */
void mailbox_poke(struct mailbox *in);

/* For the reader: appends all mail to out. If there are fewer than `enough` pieces (1 or more),
 * sleeps until they have come, a poke or a close, or until the clock reaches `until`. Returns
 * now. */
slu_time mailbox_take(struct mailbox *in, slu_time until, uint32_t enough, struct list *out,
		      bool *closed);

/* Returns whether mailbox_take would return at once, with 1 as enough. */
static inline bool
mailbox_has_news(const struct mailbox *in)
{
	return atomic_load_explicit(&in->any, memory_order_acquire);
}

#endif
