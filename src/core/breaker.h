/*
 * breaker.h - the rules of a circuit breaker (include/sluice/breaker.h has the
 * picture).
 *
 * A report does not name its call, and calls from before the breaker opened may report
 * long after. So the breaker counts the calls under way and interprets a report safely:
 *
 *   CLOSED     every report counts.
 *   OPEN       no report counts; it lowers the number of calls under way.
 *   HALF_OPEN  a failure counts as a failed probe: at worst it costs one more cool-down.
 *              A success counts for an old call as long as any is under way, so that a
 *              late answer cannot close the breaker.
 *
 * Some calls never report. When a cool-down has passed since the last probe was allowed,
 * the breaker gives up probes and old calls that are still under way, and allows as many
 * new probes as it gave up.
 *
 * Pure: the caller passes now and a random number, and holds the lock.
 */
#ifndef CORE_BREAKER_H
#define CORE_BREAKER_H

#include <sluice/breaker.h>

struct breaker_rules {
	uint32_t failures;       /* in a row that open the breaker; from 1 */
	uint32_t probes;         /* successes that close it again; from 1 */
	slu_time cooldown;       /* how long it stays open */
	uint32_t jitter_percent; /* of the cool-down; 0..100 */
};

/* Zeros are a closed breaker. */
struct breaker {
	enum slu_breaker_state state;
	uint32_t failures;  /* CLOSED: in a row */
	uint32_t begun;     /* HALF_OPEN: probes allowed */
	uint32_t succeeded; /* HALF_OPEN: probes that succeeded */
	uint64_t old;       /* calls allowed while CLOSED, or probes of an earlier HALF_OPEN, that
			     * have not reported */
	slu_time until;     /* OPEN: end of the cool-down; HALF_OPEN: give up missing reports */
};

/* Returns 0 if a call may go ahead; otherwise SLU_EDOWN, and *retry_in, above 0, is the time until
 * the next try. While probes are under way that is short: they may end any moment. */
int breaker_allow(struct breaker *b, const struct breaker_rules *rules, slu_time now,
		  slu_time *retry_in);

/* random: for jitter. */
void breaker_report(struct breaker *b, const struct breaker_rules *rules, bool ok,
		    slu_time now, uint64_t random);

#endif
