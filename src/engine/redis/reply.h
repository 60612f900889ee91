/*
 * reply.h - checks the replies of a Redis server before anything reads them.
 *
 * A server may be broken, hostile, or no Redis at all. So every reply is compared with a
 * shape first, whole; what does not fit is a malformed reply, and nothing of it is used.
 * Decoders read what fits without checks of types and lengths of their own.
 *
 *         if (!reply_fits(reply, "[u[(it)]]"))
 *                 return malformed;
 *
 *      shape      fits
 *      n          a whole number: an integer, or the same as text; "" and nil are 0
 *      u          the same, 0 to 2^53: counts, tokens, microseconds
 *      i          the same, 0 to 2^63 - 1: ids
 *      p          the same, 32 bits: priorities
 *      t          text; may have any bytes, and ends in a NUL that does not count
 *      T          text or nil
 *      .          anything
 *      [ab]       an array of a and b, no less and no more
 *      [a(bc)]    an array of a, then b and c any number of times; only as its end
 *      {a|b}      a or b
 *
 * Pure.
 */
#ifndef ENGINE_REDIS_REPLY_H
#define ENGINE_REDIS_REPLY_H

#include "base/bytes.h"

#include <hiredis/hiredis.h>
#include <stdint.h>

enum {
	REPLY_ELEMENTS_MAX = 1 << 24, /* of an array: reply_reader refuses more */
	REPLY_BYTES_MAX = 512 << 20   /* of one reply */
};

#define REPLY_NUMBER_MAX ((int64_t)1 << 53) /* exact in Lua */

bool reply_fits(const redisReply *reply, const char *shape);

/* Of what fits n, u, i or p. */
int64_t reply_int(const redisReply *reply);
uint64_t reply_id(const redisReply *reply);

/* Of what fits t. */
static inline struct slice
reply_text(const redisReply *reply)
{
	return (struct slice){ reply->str, (size_t)reply->len };
}

static inline bool
reply_is(const redisReply *reply, const char *text)
{
	return slice_eq(reply_text(reply), slice_of(text));
}

/* A reader that sets memory aside for at most REPLY_ELEMENTS_MAX; NULL: no memory. */
redisReader *reply_reader(void);

#endif
