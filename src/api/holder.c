#include "api/holder.h"

#include "api/api.h"
#include "api/worker/workers.h"
#include "auth/identity.h"
#include "base/utf8.h"
#include "core/names.h"
#include "core/queue/holders.h"

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

struct slice
holder_with_version(struct apicall *a, struct slice namespace, struct slice name)
{
	struct slice version = { 0 };
	char known[WORKERS_WORD + 1];
	char *room;

	if (!name.n)
		return name;
	if (a->worker && slice_eq(a->worker->name, name))
		version = a->worker->version;
	if (!version.n)
		version = workers_version(a->api->workers, namespace, name, known);
	if (!version.n || name.n + 1 + version.n > HOLDER_MAX)
		return name;
	room = arena_alloc(&a->memory, HOLDER_MAX);
	if (!room)
		return name;
	memcpy(room, name.p, name.n);
	room[name.n] = HOLDER_MARK;
	memcpy(room + name.n + 1, version.p, version.n);
	return (struct slice){ room, name.n + 1 + version.n };
}
