/*
 * pace.h - how fast a queue delivers: counts of the present window and of the window before.
 *
 *      from                         now
 *       |  last, PACE_WINDOW  |  count  |
 *
 * Part of the ledger. Lost at a restart.
 */
#ifndef CORE_QUEUE_PACE_H
#define CORE_QUEUE_PACE_H

#include <sluice/api.h>

#include <stdint.h>

#define PACE_WINDOW (10 * SLU_SEC)

struct pace {
	slu_time from;  /* start of the present window */
	uint32_t count; /* deliveries in it */
	uint32_t last;  /* deliveries in the window before; 0: unknown */
};

static inline void
pace_add(struct pace *p, slu_time at)
{
	if (at - p->from >= PACE_WINDOW) {
		p->last = at - p->from < 2 * PACE_WINDOW ? p->count : 0;
		p->from = at;
		p->count = 0;
	}
	p->count++;
}

/* How long n deliveries take at the recent rate, or 0 if the rate is not known: less than 2 deliveries or less than
 * a second of them, or no delivery for 2 windows. */
static inline slu_time
pace_time(const struct pace *p, uint32_t n, slu_time now)
{
	const slu_time age = now - p->from;
	const slu_time span = age + (p->last ? PACE_WINDOW : 0);
	const uint64_t seen = (uint64_t)p->count + p->last;

	if (age < 0 || age >= 2 * PACE_WINDOW || span < SLU_SEC || seen < 2)
		return 0;
	return (slu_time)((uint64_t)span * n / seen);
}

#endif
