/*
 * subscribers.h - the register of queue-ready subscriptions: the server calls a subscriber when a command has tasks.
 *
 *      subscribers_add ──> id ── subscribers_beat ──> lives on ── ttl without a beat ──> forgotten
 *
 *      a task is created ── subscribers_ready ──> fanout: calls every subscriber of the command
 *                                                 group: calls one of each group, the least recently called
 *                                                 hash: calls one of all, always the same for a command
 *
 *  SUBSCRIBERS-1  The register has at most SUBSCRIBERS_MAX subscribers, SUBSCRIBERS_SPACE of a namespace, and refuses more. A
 *                 subscriber whose ttl is over is not called. A subscription that differs from another only in its times
 *                 renews it.
 *  SUBSCRIBERS-2  Calls of one subscriber begin at least its interval apart. Tasks that come in between share one call at the
 *                 end of the interval, whatever their commands are. So a call follows every task.
 *  SUBSCRIBERS-3  Nothing is stored: after a start, or on another node, the register is empty, and a beat is refused.
 *
 * Any thread; one mutex, held for a moment.
 */
#ifndef API_CODEQ_SUBSCRIBERS_H
#define API_CODEQ_SUBSCRIBERS_H

#include "base/bytes.h"

#include <sluice/err.h>

enum {
	SUBSCRIBERS_MAX = 1000,
	SUBSCRIBERS_SPACE = 100,
	SUBSCRIBER_ID = 37,     /* with the NUL */
	SUBSCRIBER_GROUP = 128, /* bytes of the name of a group, at most */
	SUBSCRIBER_TYPES = 64   /* commands, at most */
};

enum subscriber_mode {
	SUBSCRIBER_FANOUT,
	SUBSCRIBER_GROUPED,
	SUBSCRIBER_HASHED,
	SUBSCRIBER_MODES
};

struct subscriber {
	struct slice space, url, group;
	const struct slice *types; /* commands, folded */
	unsigned n_types;          /* 0: all */
	enum subscriber_mode mode;
	slu_time ttl, interval;
};

struct subscribers;

/* Returns SLU_ENOMEM. */
int subscribers_new(struct subscribers **out);
void subscribers_free(struct subscribers *s); /* NULL is fine */

/* Writes the id of the new one, or of the equal one, which lives on. Returns SLU_EBUSY by SUBSCRIBERS-1, or SLU_ENOMEM. */
int subscribers_add(struct subscribers *s, const struct subscriber *new, slu_time now, char id[static SUBSCRIBER_ID],
		    struct slu_err *err);

/* It lives for ttl from now. Returns SLU_ENOTFOUND; also for an id of another namespace. */
int subscribers_beat(struct subscribers *s, struct slice space, struct slice id, slu_time ttl, slu_time now);

/* Returns false if the register is empty. */
bool subscribers_any(const struct subscribers *s);

/* Calls tell for each subscriber that is to be called, after the wait. Its texts are valid during the call. */
typedef void subscriber_tell(void *arg, struct slice url, slu_time wait);
void subscribers_ready(struct subscribers *s, struct slice space, struct slice queue, slu_time now, subscriber_tell *tell,
		       void *arg);

#endif
