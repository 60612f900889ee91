/*
 * slot.c - one slot of `sluice work`: claims, runs and settles messages, one after the other.
 */
#include "cli/work/work.h"

#include "base/clock.h"
#include "base/parse.h"
#include "client/address.h"

#include <inttypes.h>
#include <poll.h>
#include <unistd.h>

#define BACKOFF_FIRST (100 * SLU_MS)
#define BACKOFF_MAX   (5 * SLU_SEC)

/* A claim waits at most this long, so that --idle is checked. */
#define QUIET_LOOK (200 * SLU_MS)
#define WAIT_MAX   (30 * SLU_SEC)

static slu_time
now(void)
{
	return clock_mono(&clock_system);
}

static bool
is_told(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* Sleeps, or returns early if fd is readable. */
static void
rest(slu_time t, int fd)
{
	const struct patience until = { .deadline = time_add(now(), t), .stop_fd = fd };

	(void)patience_wait(&until, -1, 0); /* the caller checks why it ended */
}

static slu_time
longer(slu_time t)
{
	if (t == 0)
		return BACKOFF_FIRST;
	return t * 2 < BACKOFF_MAX ? t * 2 : BACKOFF_MAX;
}

/* Prints a note once for all slots, until the server answers again. */
static void
say_away(struct work_slot *s, const struct slu_err *err)
{
	if (!atomic_exchange(&s->work->away, true))
		session_note(&s->work->s, "%s; retrying", err->text);
}

static void
say_back(struct work_slot *s)
{
	if (atomic_load(&s->work->away) && atomic_exchange(&s->work->away, false))
		session_note(&s->work->s, "%s answers again", s->work->s.shown);
}

/* WORK-6: is the error permanent? */
static bool
is_final(int rc)
{
	return slu_err_row(rc)->retry == SLU_RETRY_NO;
}

/* --- the lease ------------------------------------------------------------------ */

static struct slu_settle
item_of(const struct work_slot *s)
{
	return (struct slu_settle){
		SLU_OPTIONS_INIT(struct slu_settle),
		.id = s->message->id,
		.lease_id = s->message->lease_id,
		.fencing_token = s->message->fencing_token,
	};
}

static int
tell_server(struct work_slot *s, enum slu_settle_verb verb, struct slu_settle *item,
	    const struct slu_call *call, struct slu_err *err)
{
	return slu_client_settle(s->work->s.client, verb, s->work->queue, item, 1, call,
				 err);
}

static void
lease_begins(struct work_slot *s, slu_time at)
{
	s->lease_end = time_add(at, s->work->lease);
	s->keep_at = time_add(at, s->work->lease / 2);
}

/* WORK-9 */
static void
obey_cancel(struct work_slot *s)
{
	s->canceled = true;
	s->keep_at = s->lease_end;
	s->end_at = SLU_NEVER;
	child_end(&s->child);
}

/* Whether the server has refused the checkpoint alone: it would extend the lease without. */
static bool
refuses_checkpoint(int rc)
{
	return rc == SLU_EINVAL || rc == SLU_ETOOBIG || rc == SLU_EFULL || rc == SLU_EMEMORY;
}

bool
slot_keep_lease(struct work_slot *s)
{
	struct slu_settle item = item_of(s);
	const slu_time at = now();
	const struct slu_call call = {
		SLU_OPTIONS_INIT(struct slu_call),
		.timeout = s->lease_end > at ? s->lease_end - at : 1,
		.cancel_fd = s->work->force_fd,
	};
	struct slu_err err;
	int rc;

	item.time = s->work->lease;
	item.checkpoint = s->checkpoint.n ? buf_str(&s->checkpoint) : NULL;
	rc = tell_server(s, SLU_EXTEND, &item, &call, &err);
	if (!rc) {
		buf_clear(&s->checkpoint);
		say_back(s);
		if (s->lease_end - now() < s->work->lease / 4)
			atomic_fetch_add(&s->work->late, 1);
		lease_begins(s, at);
		return true;
	}
	if (item.checkpoint && refuses_checkpoint(rc)) {
		session_note(&s->work->s, "message %" PRIu64 ": the checkpoint was refused: %s", s->message->id, err.text);
		buf_clear(&s->checkpoint);
		return slot_keep_lease(s);
	}
	if (rc == SLU_ESTOP && !s->canceled) {
		obey_cancel(s);
		return true;
	}
	if (is_final(rc) && rc != SLU_ECANCELED)
		return false;
	say_away(s, &err);
	s->keep_at = now() + s->work->lease / 10;
	return now() < s->lease_end;
}

/* Handles keep_at and end_at. Returns false if the lease is lost (WORK-3). */
static bool
go_on(struct work_slot *s)
{
	if (now() < s->end_at)
		return slot_keep_lease(s);
	s->end_at = SLU_NEVER;
	s->timed_out = true;
	child_end(&s->child);
	return true;
}

static void
judge_timeout(struct work_slot *s)
{
	char text[DURATION_TEXT];

	s->verdict.outcome = WORK_FAILED;
	buf_printf(&s->verdict.error, "timed out after %s",
		   format_duration(s->work->timeout, text, sizeof text));
	slot_put_tail(s);
}

static void
judge_cancel(struct work_slot *s)
{
	s->verdict.outcome = WORK_CANCELED;
	buf_puts(&s->verdict.error, "an operator canceled it");
}

/* WORK-10. Returns false if the lease is lost. */
static bool
take_checkpoints(struct work_slot *s, bool whole)
{
	children_take_checkpoints(&s->child.written, &s->seen, whole, &s->checkpoint);
	return whole || s->canceled || s->checkpoint.n == 0 || slot_keep_lease(s);
}

enum child_event
slot_wait(struct work_slot *s)
{
	for (;;) {
		const slu_time until = s->end_at < s->keep_at ? s->end_at : s->keep_at;
		const enum child_event e = child_wait(&s->child, until, s->work->force_fd);

		if ((e == CHILD_TIME && go_on(s)) || (e == CHILD_WROTE && take_checkpoints(s, false)))
			continue;
		if (e == CHILD_ENDED)
			(void)take_checkpoints(s, true); /* for finish */
		if (!s->timed_out && !s->canceled && (e == CHILD_ENDED || e == CHILD_LINE))
			return e;
		if (e == CHILD_LINE) {
			(void)child_line(&s->child); /* too late */
			continue;
		}
		if (s->canceled && e != CHILD_STOP)
			judge_cancel(s);
		else if (e == CHILD_ENDED)
			judge_timeout(s);
		else
			s->verdict.outcome = e == CHILD_STOP ? WORK_RETURNED : WORK_LOST;
		child_release(&s->child);
		return CHILD_STOP;
	}
}

/* --- settle --------------------------------------------------------------------- */

static enum slu_settle_verb
fill(struct work_slot *s, struct slu_settle *item)
{
	struct work_verdict *v = &s->verdict;

	item->error = v->error.n > 0 ? buf_str(&v->error) : NULL;
	item->time = v->delay > 0 ? v->delay : 0; /* -1 = by the queue's policy */
	item->at_once = v->delay == 0 || v->outcome == WORK_RETURNED;
	item->defer = v->outcome == WORK_DEFERRED || v->outcome == WORK_RETURNED;
	item->dead = v->outcome == WORK_DEAD;
	if (v->outcome == WORK_DONE) {
		*item = item_of(s);
		item->result = v->result.n > 0 ? buf_str(&v->result) : NULL;
		item->enqueue = v->enqueue.n > 0 ? buf_str(&v->enqueue) : NULL;
		return SLU_ACK;
	}
	return SLU_NACK;
}

/* Settles the message. A forced settle has one try: the lease ends by itself. Otherwise the slot repeats the
 * call until the server decides; after a try that may have reached the server, SLU_ENOTFOUND counts as
 * success. */
static int
settle(struct work_slot *s, struct slu_err *err)
{
	struct slu_settle item = item_of(s);
	const enum slu_settle_verb verb = fill(s, &item);
	const bool forced = s->verdict.outcome == WORK_RETURNED;
	const struct slu_call call = { SLU_OPTIONS_INIT(struct slu_call), .cancel_fd = forced ? 0 : s->work->force_fd };
	bool doubtful = false;
	slu_time pause = 0;
	int rc;

	for (;;) {
		rc = tell_server(s, verb, &item, &call, err);
		if (!rc || (doubtful && rc == SLU_ENOTFOUND)) {
			say_back(s);
			return 0;
		}
		if (forced || is_final(rc) || is_told(s->work->force_fd) ||
		    (is_told(s->work->stop_fd) && now() > s->lease_end))
			return rc;
		doubtful |= rc == SLU_EUNKNOWN || rc == SLU_ETIMEOUT;
		say_away(s, err);
		pause = longer(pause);
		rest(pause, s->work->force_fd);
	}
}

static void
say_verdict(const struct work_slot *s)
{
	static const char *const words[] = {
#define X(name, text) text,
		WORK_OUTCOMES(X)
#undef X
	};
	const struct work_verdict *v = &s->verdict;
	const char *why = v->error.n > 0 ? v->error.p : "";
	size_t n = 0;

	if (v->outcome == WORK_DONE)
		return;
	while (n < v->error.n && n < 200 && why[n] != '\n')
		n++;
	session_note(&s->work->s, "message %" PRIu64 " %s%s%.*s", s->message->id,
		     words[v->outcome], n > 0 ? ": " : "", (int)n, why);
}

/* Whether the server refuses the messages that come with an ack, and not the ack. */
static bool
is_refusal(int rc)
{
	return rc == SLU_EINVAL || rc == SLU_ETOOBIG || rc == SLU_ETOGETHER || rc == SLU_EIDEM || rc == SLU_EFORBIDDEN;
}

static void
finish(struct work_slot *s)
{
	struct slu_err err;
	int rc = 0;

	if (s->checkpoint.n && s->verdict.outcome != WORK_DONE && s->verdict.outcome != WORK_CANCELED)
		(void)slot_keep_lease(s); /* the settle reports a lease that is lost */
	if (s->verdict.outcome != WORK_LOST)
		rc = settle(s, &err);
	if (rc && s->verdict.enqueue.n > 0 && is_refusal(rc)) {
		s->verdict.outcome = WORK_FAILED;
		buf_printf(&s->verdict.error, "the messages were refused: %s", err.text);
		rc = settle(s, &err);
	}
	if (rc) {
		session_note(&s->work->s, "message %" PRIu64 " was not settled: %s",
			     s->message->id, err.text);
		s->verdict.outcome = WORK_LOST;
	}
	say_verdict(s);
	atomic_fetch_add(&s->work->counts[s->verdict.outcome], 1);
}

/* --- the loop ------------------------------------------------------------------- */

/* Ends all slots: no message can be handled any more. */
static void
give_up(struct work_slot *s, const struct slu_err *err)
{
	if (!atomic_exchange(&s->work->broken, true))
		session_note(&s->work->s, "%s", err->text);
	work_stop(s->work);
}

static void
work_on(struct work_slot *s, const struct slu_client_message *m)
{
	struct slu_err err;
	int rc;

	s->message = m;
	lease_begins(s, now());
	atomic_fetch_add(&s->work->busy, 1);
	atomic_store(&s->work->active, now());
	rc = slot_run(s, &err);
	if (rc) {
		give_up(s, &err);
		s->verdict.outcome = WORK_RETURNED;
	}
	finish(s);
	atomic_store(&s->work->active, now());
	atomic_fetch_sub(&s->work->busy, 1);
}

/* How long to wait for a message; 0 = the idle time is over. */
static slu_time
patience_left(const struct work_slot *s)
{
	const slu_time idle = s->work->idle;
	slu_time left;

	if (idle == 0)
		return WAIT_MAX;
	left = atomic_load(&s->work->active) + idle - now();
	if (left <= 0 && atomic_load(&s->work->busy) > 0)
		left = idle;
	return left < 0 ? 0 : left < WAIT_MAX ? left
					      : WAIT_MAX;
}

/* Claims a message. Returns 0, with or without a message, or an error to retry after. */
static int
claim(struct work_slot *s, slu_time wait, struct slu_err *err)
{
	const struct session *const session = &s->work->s;
	const struct slu_client_claim what = {
		SLU_OPTIONS_INIT(struct slu_client_claim),
		.limit = 1,
		.lease = s->work->lease,
		.wait = wait,
		.owner = s->work->owner,
		.kinds = s->work->kinds,
	};
	const struct slu_call call = {
		SLU_OPTIONS_INIT(struct slu_call),
		.timeout = time_add(wait, session->timeout),
		.cancel_fd = s->work->pause_fd,
	};

	return slu_client_dequeue(session->client, s->work->queue, &what, &s->got, &call, err);
}

/* Takes one of the messages that --max allows. Returns false if none is left. */
static bool
take_ticket(struct work *w)
{
	uint64_t left = atomic_load(&w->left);

	while (left > 0)
		if (left == UINT64_MAX || atomic_compare_exchange_weak(&w->left, &left, left - 1))
			return true;
	return false;
}

/* WORK-8 */
static void
stay_quiet(const struct work *w)
{
	while (atomic_load(&w->quiet) && !is_told(w->stop_fd))
		rest(QUIET_LOOK, w->stop_fd);
}

static void
slot_loop(struct work_slot *s)
{
	bool ticket = take_ticket(s->work);
	slu_time pause = 0;

	while (ticket && !is_told(s->work->stop_fd)) {
		slu_time wait;
		struct slu_err err;
		int rc;

		stay_quiet(s->work);
		wait = patience_left(s);
		rc = wait > 0 ? claim(s, wait, &err) : 0;
		if (wait == 0)
			break;
		if (rc == SLU_ECANCELED)
			continue; /* stop, or quiet */
		if (rc && is_final(rc)) {
			give_up(s, &err);
			break;
		}
		if (rc) {
			say_away(s, &err);
			pause = longer(pause);
			rest(pause, s->work->stop_fd);
			continue;
		}
		say_back(s);
		pause = 0;
		for (size_t i = 0; i < s->got.n; i++)
			work_on(s, &s->got.items[i]);
		if (s->got.n > 0)
			ticket = take_ticket(s->work);
	}
}

void *
slot_main(void *arg)
{
	struct work_slot *s = arg;
	struct work *w = s->work;
	const uint64_t one = 1;

	child_init(&s->child);
	buf_init(&s->verdict.error, 4 * CHILD_TAIL);
	buf_init(&s->verdict.result, 8 << 20);
	buf_init(&s->verdict.enqueue, 2 * CHILD_LINE_MAX);
	buf_init(&s->line, 2 * CHILD_LINE_MAX);
	buf_init(&s->checkpoint, CHILD_LINE_MAX);
	buf_init(&s->env, 1 << 20);
	slot_loop(s);
	if (w->lines)
		slot_dismiss(s);
	slu_client_messages_release(&s->got);
	buf_release(&s->verdict.error);
	buf_release(&s->verdict.result);
	buf_release(&s->verdict.enqueue);
	buf_release(&s->line);
	buf_release(&s->checkpoint);
	buf_release(&s->env);
	if (atomic_fetch_sub(&w->slots, 1) == 1)
		(void)!write(w->done_fd, &one, sizeof one); /* an eventfd takes it */
	return NULL;
}
