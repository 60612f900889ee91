/*
 * bucket.h - a token bucket, kept as one moment.
 *
 *      tokens ^ burst ─────╮        ╭────────      a bucket fills by `rate` tokens a
 *             |            ╰─╮   ╭──╯              second up to `burst`; taking n of
 *             |              ╰───╯                 them makes it emptier
 *             +----------------------------> time
 *                            taken   full
 *
 * All there is to know is when the bucket will be full again: 0, or any moment that
 * has passed, is a full one. So a bucket is 8 bytes, needs no timer, is forgotten
 * without loss once it is full, and can be taken from by compare-and-swap:
 *
 *         wait = bucket_wait(&rule, full, n, now);
 *         if (!wait)
 *                 full = bucket_take(&rule, full, n, now);
 *
 *  B1  Over any time t at most burst + rate * t tokens are taken, a call of more than
 *      burst aside.
 *  B2  A call for more than burst waits for a full bucket, then takes all it wants:
 *      later ones wait until that is paid off. So no call is too large for ever.
 *  B3  After waiting for what bucket_wait says there is enough, if nobody else took.
 */
#ifndef CORE_BUCKET_H
#define CORE_BUCKET_H

#include <sluice/api.h>

#define BUCKET_RATE_MAX 1000000000u /* tokens a second, and of burst */

struct bucket_rule {
	uint32_t rate;  /* tokens a second, 1 .. BUCKET_RATE_MAX */
	uint32_t burst; /* 0: as many as a second brings */
};

/* 0: n tokens are there; else how long until they are. */
slu_time bucket_wait(const struct bucket_rule *r, slu_time full, uint32_t n, slu_time now);

/* When it is full again after n were taken. */
slu_time bucket_take(const struct bucket_rule *r, slu_time full, uint32_t n, slu_time now);

#endif
