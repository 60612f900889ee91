#include "torture/history.h"

#include "base/mem.h"

#include <assert.h>

enum {
	RESERVE = 4 /* this part of the room is reserved for the end of a round */
};

const char *const event_states[STATES] = {
	[STATE_READY] = "ready",
	[STATE_DELAYED] = "delayed",
	[STATE_LEASED] = "leased",
	[STATE_HELD] = "held",
	[STATE_DEAD] = "dead",
	[STATE_DAMAGED] = "damaged",
	[STATE_TOTAL] = "total",
};

const char *const event_kinds[EVENT_KINDS] = {
	[EVENT_PUSH] = "push",
	[EVENT_CLAIM] = "claim",
	[EVENT_ACK] = "ack",
	[EVENT_NACK] = "nack",
	[EVENT_EXTEND] = "extend",
	[EVENT_ROW] = "scan",
	[EVENT_DEAD] = "dead letters",
	[EVENT_LOOK] = "look",
	[EVENT_REDRIVE] = "redrive",
	[EVENT_FAULT] = "fault",
	[EVENT_EXIT] = "exit",
	[EVENT_GAUGE] = "gauge",
	[EVENT_BATCH] = "batch",
	[EVENT_CALLBACK] = "callback",
	[EVENT_SCHEDULE] = "schedule",
	[EVENT_TICK] = "tick",
	[EVENT_FIRINGS] = "firings",
	[EVENT_ACQUIRE] = "acquire",
	[EVENT_READ] = "read",
	[EVENT_UPDATE] = "update",
	[EVENT_RELEASE] = "release",
};

const char *const outcomes[] = {
	[OUTCOME_OK] = "ok",
	[OUTCOME_FAILED] = "failed",
	[OUTCOME_UNKNOWN] = "unknown",
};

int
history_init(struct history *h, size_t n, struct slu_err *err)
{
	*h = (struct history){ .size = n + n / RESERVE };
	h->events = mem_array(h->size, sizeof *h->events);
	if (!h->events)
		return slu_fail(err, SLU_ENOMEM, "no memory for a history of %zu events", n);
	pthread_mutex_init(&h->mtx, NULL); /* cannot fail without attributes */
	return 0;
}

void
history_release(struct history *h)
{
	if (h->events)
		pthread_mutex_destroy(&h->mtx);
	mem_free(h->events);
	*h = (struct history){ 0 };
}

bool
history_commits(const struct event *e)
{
	return e->kind == EVENT_RELEASE && e->outcome == OUTCOME_OK && e->name && e->end < e->until;
}

static void
raise(uint64_t *floor, uint64_t value)
{
	*floor = value > *floor ? value : *floor;
}

void
history_clear(struct history *h)
{
	for (size_t i = 0; i < h->n; i++) {
		const struct event *e = &h->events[i];

		if (e->kind == EVENT_CLAIM)
			raise(&h->token_floor, e->token);
		else if (e->kind == EVENT_ACQUIRE)
			raise(&h->lock_tokens[e->key], e->token);
		else if (history_commits(e))
			raise(&h->lock_values[e->key], e->name);
	}
	h->n = 0;
	h->n_looks = 0;
	h->must_be_empty = false;
	atomic_store(&h->full, false);
}

void
history_add(struct history *h, const struct event *e)
{
	pthread_mutex_lock(&h->mtx);
	if (h->n < h->size) /* clients stop when it is full; the reserve takes their last events */
		h->events[h->n++] = *e;
	else
		h->overflown = true;
	if (h->n >= h->size - h->size / RESERVE)
		atomic_store(&h->full, true);
	pthread_mutex_unlock(&h->mtx);
}

size_t
history_count(struct history *h)
{
	size_t n;

	pthread_mutex_lock(&h->mtx);
	n = h->n;
	pthread_mutex_unlock(&h->mtx);
	return n;
}

unsigned
history_look_next(const struct history *h)
{
	return h->n_looks;
}

void
history_look(struct history *h, const struct look *look, slu_time start, slu_time end)
{
	const struct event e = {
		.kind = EVENT_LOOK,
		.start = start,
		.end = end,
		.call = h->n_looks,
	};

	assert(h->n_looks < HISTORY_LOOKS);
	history_add(h, &e);
	h->looks[h->n_looks++] = *look;
}

void
history_cut(struct history *h, size_t n)
{
	assert(n <= h->n);
	h->n = n;
}
