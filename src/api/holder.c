#include "api/holder.h"

#include "auth/identity.h"
#include "base/utf8.h"
#include "core/names.h"

int
holder_check(struct slice name, struct slu_err *err)
{
	if (name.n > 0 && name.n <= HOLDER_MAX && key_check(name, "the owner", NULL) == 0)
		return 0;
	return slu_fail(err, SLU_EINVAL, "expected 1 to %d bytes without control characters", HOLDER_MAX);
}

/* Copies whole characters, up to HOLDER_MAX bytes. */
static size_t
clean(struct slice from, char out[static HOLDER_MAX])
{
	const char *p = from.p, *const end = p + from.n;
	size_t n = 0;

	while (p < end) {
		const size_t length = utf8_length(p, end);
		const bool odd = length == 0 || (unsigned char)*p < ' ' || *p == 0x7f;

		if (n + (odd ? 1 : length) > HOLDER_MAX)
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
holder_of(struct apicall *a, struct slice given)
{
	const struct identity *const who = a->x->who;
	char *room;

	if (given.n == 0 && who && who != identity_anyone())
		given = who->name;
	room = given.n ? arena_alloc(&a->memory, HOLDER_MAX) : NULL;
	if (!room)
		return (struct slice){ 0 };
	return (struct slice){ room, clean(given, room) };
}
