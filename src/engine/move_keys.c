#include "engine/move_keys.h"

#include "base/le.h"
#include "engine/message.h"

enum {
	HEAD = 18
};

void
move_key_put(struct buf *b, const struct move_key *key)
{
	char head[HEAD];

	le64_put(head, (uint64_t)key->until);
	le64_put(head + 8, key->id);
	head[16] = (char)(key->text.n & 0xff);
	head[17] = (char)(key->text.n >> 8);
	buf_put(b, head, sizeof head);
	buf_put(b, key->text.p, key->text.n);
}

bool
move_key_next(struct slice *rest, struct move_key *out)
{
	size_t n;

	if (rest->n < HEAD)
		return false;
	n = (uint8_t)rest->p[16] | (size_t)(uint8_t)rest->p[17] << 8;
	out->until = (slu_time)le64_get(rest->p);
	out->id = le64_get(rest->p + 8);
	out->text = (struct slice){ rest->p + HEAD, n };
	if (n == 0 || n > MESSAGE_KEY_MAX || n > rest->n - HEAD || out->until < 0 || !out->id)
		return false;
	rest->p += HEAD + n;
	rest->n -= HEAD + n;
	return true;
}

int
move_keys_count(struct slice list, uint32_t *n, struct slu_err *err)
{
	struct move_key key;

	*n = 0;
	while (move_key_next(&list, &key))
		++*n;
	return list.n ? slu_fail(err, SLU_EINVAL, "bytes that are no idempotency keys") : 0;
}
