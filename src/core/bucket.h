/*
 * bucket.h - a token bucket, stored as one moment.
 *
 *      tokens ^ burst ─────╮        ╭────────      a bucket fills by `rate` tokens a
 *             |            ╰─╮   ╭──╯              second up to `burst`; bucket_take
 *             |              ╰───╯                 removes n
 *             +----------------------------> time
 *                            taken   full
 *
 * The state of a bucket is the moment at which it is full again; 0 and every past moment mean
 * full. So a bucket is 8 bytes, needs no timer, can be forgotten when it is full, and can be
 * changed by compare-and-swap:
 *
 *         wait = bucket_wait(&rule, full, n, now);
 *         if (!wait)
 *                 full = bucket_take(&rule, full, n, now);
 *
 *  TOKENBUCKET-1  In any time t, at most burst + rate * t tokens are taken, except for calls of more
 *                 than burst.
 *  TOKENBUCKET-2  A call for more than burst waits for a full bucket, then takes all of its tokens;
 *                 later calls wait until the bucket has recovered. So no call is too large for ever.
 *  TOKENBUCKET-3  After the time of bucket_wait the tokens are there, unless others took some.
 */
#ifndef CORE_BUCKET_H
#define CORE_BUCKET_H

#include <sluice/api.h>

#define BUCKET_RATE_MAX 1000000000u /* tokens a second, and of burst */

struct bucket_rule {
	uint32_t rate;  /* tokens a second, 1 .. BUCKET_RATE_MAX */
	uint32_t burst; /* 0: the same as rate */
};

/* How long n tokens take to come, and the tokens of a full bucket. */
slu_time bucket_time(const struct bucket_rule *r, uint32_t n);
uint32_t bucket_burst(const struct bucket_rule *r);

/* How long until n tokens are there; 0: now. */
slu_time bucket_wait(const struct bucket_rule *r, slu_time full, uint32_t n, slu_time now);

/* The whole tokens that the bucket has. */
uint32_t bucket_tokens(const struct bucket_rule *r, slu_time full, slu_time now);

/* Takes n tokens. Returns the new state: when the bucket is full again. */
slu_time bucket_take(const struct bucket_rule *r, slu_time full, uint32_t n, slu_time now);

#endif
