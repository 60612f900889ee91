#include "cli/lib/missing.h"

#include "cli/lib/session.h"

#include "base/json/json_table.h"

#include <inttypes.h>

enum {
	ONE_TEXT = 400
};

struct absent {
	uint64_t shard;
	struct slice name, node;
};

static const struct json_field fields[] = {
	JSON_FIELD(u64, struct absent, shard),
	JSON_FIELDS(text, struct absent, name, node),
};

/* A shard of another node is a part of a store, and has a number there. */
static void
describe(const struct absent *a, char out[static ONE_TEXT])
{
	if (a->node.n > 0)
		(void)snprintf(out, ONE_TEXT, "%" PRIu64 " of %.*s", a->shard, (int)a->node.n, a->node.p);
	else
		(void)snprintf(out, ONE_TEXT, "%.*s", (int)a->name.n, a->name.p);
}

/* Later pages may lack the same shard. A list that is too long is cut. */
static void
add(struct missing *m, const char *one)
{
	const size_t n = strlen(m->text);

	if (!strstr(m->text, one))
		(void)snprintf(m->text + n, sizeof m->text - n, "%s%s", n ? ", " : "", one);
}

void
missing_read(struct missing *m, struct json *in)
{
	char one[ONE_TEXT];

	json_array(in);
	while (json_element(in)) {
		struct absent a = { 0 };

		json_fields(in, fields, COUNT(fields), JSON_LENIENT, &a);
		describe(&a, one);
		add(m, one);
	}
}

void
missing_warn(const struct missing *m, const struct session *s)
{
	if (*m->text)
		session_note(s, "incomplete: no answer from shard %s", m->text);
}
