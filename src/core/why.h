/*
 * why.h - why a message is not running now: the reasons.
 *
 *      ledger_why ──> facts of the ledger ──> the lane adds WHY_NO_CONSUMER ──> API, CLI, libraries
 *
 * Several reasons may hold at once. The answer is the first of them, in the order of `checks` in core/ledger/why.c.
 * If no reason holds, the message is next. To add a reason: a value of enum why, a row of `rows` in engine/why_text.c (its name and
 * text), and a row of `checks` in core/ledger/why.c if the ledger knows it.
 */
#ifndef CORE_WHY_H
#define CORE_WHY_H

#include <sluice/api.h>

#include <stdint.h>

/* Messages between nodes have the numbers: a number is never given to another reason. */
enum why {
	WHY_NEXT,        /* no reason: the message is the next to be delivered */
	WHY_LEASED,      /* a consumer has it. until: the end of the lease */
	WHY_DEAD,        /* a dead letter. n: enum dead_reason; until: since when */
	WHY_DAMAGED,     /* in quarantine */
	WHY_MOVING,      /* set aside for a move to another shard */
	WHY_PAUSED,      /* its queue is paused */
	WHY_DELAYED,     /* until: its due time */
	WHY_RETRY,       /* n: deliveries so far; until: the time of the retry */
	WHY_BEHIND,      /* behind the head of its key. id: the head; state: of the head; until: the end of the head's
			  * lease, or its due time; n: messages of the key before this one, at most WHY_COUNT + 1 */
	WHY_AHEAD,       /* n: ready messages that go before it, at most WHY_COUNT + 1 */
	WHY_NO_CONSUMER, /* no claim waits for a message of the queue */
	WHY_DOWN,        /* its shard does not answer */
	WHY_LIMIT,       /* its queue, share or value has as many leased messages as it may. n: how many; state: enum
			  * gate_kind */
	WHY_RATE,        /* a rate of deliveries. n: the rate; state: enum gate_kind; until: the next token */
	WHY_HOLD,        /* a hold. state: enum gate_kind; until: its end */
	WHY_BREAKER,     /* a breaker is open. state: enum gate_kind; until: the end of its open time, 0: its probe is under way */
	WHYS
};

enum {
	WHY_COUNT = 10000, /* messages that are counted; WHY_COUNT + 1 means more */
	WHY_FACTS = 6      /* most reasons of one message */
};

/* A reason. Fields that the reason does not have are 0. */
struct why_fact {
	uint64_t why; /* enum why */
	uint64_t id;
	uint64_t n;
	uint64_t state; /* enum msg_state; LIMIT, RATE, HOLD, BREAKER: enum gate_kind */
	slu_time until;
};

struct why_facts {
	uint64_t n;
	slu_time estimate; /* when the message is likely to be delivered; 0: not known */
	struct why_fact facts[WHY_FACTS];
};

/* Adds a reason. More than WHY_FACTS are left out. */
static inline void
why_add(struct why_facts *w, const struct why_fact *f)
{
	if (w->n < WHY_FACTS)
		w->facts[w->n++] = *f;
}

#endif
