/*
 * move_keys.h - remembered idempotency keys as a row of a batch has them: MOVE_REMEMBERED.
 *
 *      0   8  until when the key is remembered: nanoseconds, little-endian as all
 *      8   8  id of the message that had it
 *     16   2  length of the key, 1 .. MESSAGE_KEY_MAX
 *     18   n  the key; then the next one
 */
#ifndef ENGINE_MOVE_KEYS_H
#define ENGINE_MOVE_KEYS_H

#include "base/bytes.h"

#include <sluice/err.h>

struct move_key {
	slu_time until;
	uint64_t id;
	struct slice text;
};

/* Behind what is in b, which may have failed then. */
void move_key_put(struct buf *b, const struct move_key *key);

/* The next one of *rest, whose text points into it. False: there is no more, or what is left
 * is no key: then *rest is not empty. */
bool move_key_next(struct slice *rest, struct move_key *out);

/* How many there are. SLU_EINVAL when it is not a list of keys. */
int move_keys_count(struct slice list, uint32_t *n, struct slu_err *err);

#endif
