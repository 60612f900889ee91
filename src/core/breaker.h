/*
 * breaker.h - the rules of a circuit breaker (include/sluice/breaker.h has the
 * picture).
 *
 * A report does not say which call it is about, and calls let through before the
 * breaker opened may be reported long after. So the breaker counts how many of them
 * are under way, and takes a report for what is safe to believe:
 *
 *   CLOSED     every report counts.
 *   OPEN       none does; it only is one call less under way.
 *   HALF_OPEN  a failure is a failed probe, whoever it comes from: at worst it costs
 *              one more cool-down. A success is taken for one of the old calls as long
 *              as there are any, so an answer from before cannot close the breaker.
 *
 * A call that is never reported would be waited for in vain. When a cool-down has
 * passed since the last probe was let through, probes and old calls that are still
 * under way are given up, and as many probes as were lost are let through again.
 *
 * Pure: the caller passes now, the dice, and holds the lock.
 */
#ifndef CORE_BREAKER_H
#define CORE_BREAKER_H

#include <sluice/breaker.h>

struct breaker_rules {
	uint32_t failures; /* in a row, to open; from 1 */
	uint32_t probes;   /* from 1 */
	slu_time cooldown;
	uint32_t jitter_percent; /* 0..100 */
};

/* Zeros are a closed breaker. */
struct breaker {
	enum slu_breaker_state state;
	uint32_t failures;  /* CLOSED: in a row */
	uint32_t begun;     /* HALF_OPEN: probes let through */
	uint32_t succeeded; /* HALF_OPEN: probes that ended well */
	uint64_t old;       /* calls let through while CLOSED, or probes of an
			     * earlier HALF_OPEN, not reported yet */
	slu_time until;     /* OPEN: the cool-down ends; HALF_OPEN: give up */
};

/* 0, or SLU_EDOWN and in *retry_in, always above 0, when to ask again. While probes
 * are under way that is a guess: soon, since they may end any moment. */
int breaker_allow(struct breaker *b, const struct breaker_rules *rules, slu_time now,
		  slu_time *retry_in);

/* random is used for jitter only. */
void breaker_report(struct breaker *b, const struct breaker_rules *rules, bool ok,
		    slu_time now, uint64_t random);

#endif
