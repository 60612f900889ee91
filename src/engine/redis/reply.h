/*
 * reply.h - checks the replies of a Redis server before anything reads them.
 *
 * A server may be broken, hostile, or not a Redis server. So every reply is compared with a
 * shape first, as a whole. A reply that does not fit is malformed, and no part of it is used.
 * Decoders read a reply that fits without further checks of types and lengths.
 *
 *         if (!reply_fits(reply, "[u[(it)]]"))
 *                 return malformed;
 *
 *      shape      fits
 *      n          a whole number: an integer, or a number as text; "" and nil are 0
 *      u          a whole number from 0 to 2^53: counts, tokens, microseconds
 *      i          a whole number from 0 to 2^63 - 1: ids
 *      p          a whole number of 32 bits: priorities
 *      t          text of any bytes, with a NUL behind its end
 *      T          text or nil
 *      .          anything
 *      [ab]       an array of exactly a and b
 *      [a(bc)]    an array of a, then b and c any number of times; only at its end
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
	REPLY_ELEMENTS_MAX = 1 << 24, /* elements of an array; reply_reader refuses more */
	REPLY_BYTES_MAX = 512 << 20   /* bytes of one reply */
};

#define REPLY_NUMBER_MAX ((int64_t)1 << 53) /* exact in Lua */

bool reply_fits(const redisReply *reply, const char *shape);

/* The number of a reply that fits n, u, i or p. */
int64_t reply_int(const redisReply *reply);
uint64_t reply_id(const redisReply *reply);

/* The text of a reply that fits t. */
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

/* A reader that allocates at most REPLY_ELEMENTS_MAX elements. Returns NULL if there is no
 * memory. */
redisReader *reply_reader(void);

#endif
