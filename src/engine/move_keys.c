#include "engine/move_keys.h"

#include "base/le.h"
#include "engine/message.h"

enum {
	HEAD = 18,
	DIGEST = 8,
	HAS_DIGEST = 0x8000 /* in the length of the key */
};

void
move_key_put(struct buf *b, const struct move_key *key)
{
	const uint16_t n = (uint16_t)(key->text.n | (key->digest ? HAS_DIGEST : 0));
	char head[HEAD + DIGEST];

	le64_put(head, (uint64_t)key->until);
	le64_put(head + 8, key->id);
	le16_put(head + 16, n);
	le64_put(head + HEAD, key->digest);
	buf_put(b, head, key->digest ? HEAD + DIGEST : HEAD);
	buf_put(b, key->text.p, key->text.n);
}

bool
move_key_next(struct slice *rest, struct move_key *out)
{
	size_t n, head = HEAD;

	if (rest->n < HEAD)
		return false;
	n = le16_get(rest->p + 16);
	if (n & HAS_DIGEST)
		head += DIGEST;
	n &= ~(size_t)HAS_DIGEST;
	if (n == 0 || n > MESSAGE_KEY_MAX || rest->n < head + n)
		return false;
	out->until = (slu_time)le64_get(rest->p);
	out->id = le64_get(rest->p + 8);
	out->digest = head > HEAD ? le64_get(rest->p + HEAD) : 0;
	out->text = (struct slice){ rest->p + head, n };
	if (out->until < 0 || !out->id || (head > HEAD && !out->digest))
		return false;
	slice_skip(rest, head + n);
	return true;
}

int
move_keys_count(struct slice list, uint32_t *n, struct slu_err *err)
{
	struct move_key key;

	*n = 0;
	while (move_key_next(&list, &key))
		++*n;
	return list.n ? slu_fail(err, SLU_EINVAL, "invalid batch; expected idempotency keys") : 0;
}

bool
move_keys_have_digests(struct slice list)
{
	struct move_key key;

	while (move_key_next(&list, &key))
		if (key.digest)
			return true;
	return false;
}
