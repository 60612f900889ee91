/*
 * inbox.h - where threads meet: many post, one takes all that has gathered.
 *
 *      any thread                         the owner
 *      inbox_post ──┐
 *      inbox_post ──┼──> | mail, in order | ──> inbox_take: all of it at once,
 *      inbox_post ──┘                           or sleeps until something comes
 *
 * Mail is whatever has a struct list in it; posting allocates nothing and cannot
 * fail but by closing.
 *
 *  N1  Mail comes out in the order in which it went in, each piece once.
 *  N2  The moment at which mail went in is taken under the lock, as is the `now` of a
 *      take: all mail that is stamped up to `now` has been taken.
 *  N3  Nothing goes in after a close, but what the owner is known to wait for.
 *  N4  Only a sleeper is woken, once: whoever posts while the owner is awake makes no
 *      system call for it.
 *  N5  The owner may have taken and ended mail before the post of it has returned. It
 *      is released when all posts have.
 *
 * Moments are clock_boot's: they go on while the machine sleeps.
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

	/* shared, under mtx */
	struct list mail;
	bool sleeping;
	bool news; /* for the owner, beside mail */
	bool closed;
	_Atomic bool any; /* mail or news: also without mtx, as a hint */
};

/* SLU_EDOWN: the system gives no lock. */
int inbox_init(struct inbox *in, struct clock *clock, struct slu_err *err);
void inbox_release(struct inbox *in);

/* stamp (may be NULL): when it went in. SLU_ECLOSED: it did not. */
int inbox_post(struct inbox *in, struct list *node, slu_time *stamp);

/* The same for mail that the owner does not leave without: also after a close. */
void inbox_post_owed(struct inbox *in, struct list *node);

/* Refuse what comes later; wakes the owner. Any thread, any number of times. */
void inbox_close(struct inbox *in);

/* Wake the owner for something that is no mail. */
void inbox_poke(struct inbox *in);

/* For the owner: append all mail to out, after sleeping, if there is none, until some
 * comes, somebody pokes or closes, or the clock reaches until. Returns now. */
slu_time inbox_take(struct inbox *in, slu_time until, struct list *out, bool *closed);

/* Would a take return at once, whatever the time is? */
static inline bool
inbox_has_news(const struct inbox *in)
{
	return atomic_load_explicit(&in->any, memory_order_acquire);
}

#endif
