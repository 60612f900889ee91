#include "api/taker.h"

#include "auth/identity.h"
#include "base/utf8.h"
#include "core/names.h"

int
taker_check(struct slice owner, struct slu_err *err)
{
	if (owner.n > 0 && owner.n <= OWNER_MAX && key_check(owner, "the owner", NULL) == 0)
		return 0;
	return slu_fail(err, SLU_EINVAL, "expected 1 to %d bytes without control characters", OWNER_MAX);
}

/* Copies whole characters, up to OWNER_MAX bytes. */
static size_t
clean(struct slice from, char out[static OWNER_MAX])
{
	const char *p = from.p, *const end = p + from.n;
	size_t n = 0;

	while (p < end) {
		const size_t length = utf8_length(p, end);
		const bool odd = length == 0 || (unsigned char)*p < ' ' || *p == 0x7f;

		if (n + (odd ? 1 : length) > OWNER_MAX)
			break;
		if (odd)
			out[n] = '?';
		else
			memcpy(out + n, p, length);
		n += odd ? 1 : length;
		p += length ? length : 1;
	}
	return n;
}

struct slice
taker_of(struct apicall *a, struct slice given)
{
	const struct identity *const who = a->x->who;
	char *room;

	if (given.n == 0 && who && who != identity_anyone())
		given = who->name;
	room = given.n ? arena_alloc(&a->memory, OWNER_MAX) : NULL;
	if (!room)
		return (struct slice){ 0 };
	return (struct slice){ room, clean(given, room) };
}
