/*
 * move_keys.h - remembered idempotency keys as a row of a batch has them: MOVE_REMEMBERED.
 *
 *      0   8  until when the key is remembered: nanoseconds, little-endian as all
 *      8   8  id of the message that had it
 *     16   2  length of the key, 1 .. MESSAGE_KEY_MAX; 0x8000 is added if a digest follows
 *     18   8  digest of the payload, only if the length says so: in a strict queue
 *     18   n  the key, behind the digest if there is one; then the next key
 */
#ifndef ENGINE_MOVE_KEYS_H
#define ENGINE_MOVE_KEYS_H

#include "base/bytes.h"

#include <sluice/err.h>

struct move_key {
	slu_time until;
	uint64_t id;
	uint64_t digest; /* message_digest of the payload; 0: unknown */
	struct slice text;
};

/* Appends a key to b. */
void move_key_put(struct buf *b, const struct move_key *key);

/* Takes the next key off *rest; its text points into *rest. Returns false at the end, and if the
 * bytes are not a key: *rest is not empty then. */
bool move_key_next(struct slice *rest, struct move_key *out);

/* Counts the keys. Returns SLU_EINVAL if the bytes are not a list of keys. */
int move_keys_count(struct slice list, uint32_t *n, struct slu_err *err);

/* Returns whether a key of the list has a digest, which older versions cannot read. */
bool move_keys_have_digests(struct slice list);

#endif
