/*
 * store_check_objects.c - `sluice admin store check`: settings and nodes, which belong to no shard.
 */
#include "cli/lib/json_line.h"
#include "cli/store/store_private.h"
#include "members/beat.h"
#include "members/settings.h"

#include <inttypes.h>

enum {
	TRIES = 5 /* of an object that a node replaces meanwhile (STORE-8) */
};

struct objects {
	struct store_command *c;
	struct store_problems problems;
	uint64_t n;
};

/* Reads an object. wrong->code is 0 if it is sound, or absent by now. */
static int
look(struct store_command *c, const char *name, struct slu_err *wrong, struct slu_err *err)
{
	struct json_line unused;
	uint64_t number;
	const int rc = store_read(c, name, err);

	*wrong = (struct slu_err){ 0 };
	if (rc)
		return rc == SLU_ENOTFOUND ? 0 : rc;
	(void)store_kind(name, &number)->show(json_line_begin(&unused), buf_slice(&c->object), wrong);
	buf_release(&unused.text);
	return 0;
}

static int
check_object(struct objects *o, const char *name, struct slu_err *err)
{
	struct slu_err wrong = { 0 };
	int rc = 0;

	for (int i = 0; i < TRIES && !rc; i++) {
		rc = look(o->c, name, &wrong, err);
		if (!wrong.code)
			break;
	}
	o->n++;
	if (!rc && wrong.code)
		store_problem(&o->problems, "%s: %s", name, wrong.text);
	return rc;
}

static int
check_folder(struct objects *o, const char *prefix, struct slu_err *err)
{
	struct store_cursor names = { .store = o->c->store, .prefix = prefix };
	const char *name;
	int rc;

	while (!(rc = store_cursor_next(&names, &name, err)) && name) {
		rc = check_object(o, name, err);
		if (rc)
			break;
	}
	store_cursor_release(&names);
	return rc;
}

static void
print(const struct objects *o)
{
	struct json_line line;

	if (o->c->s.json) {
		struct json_out *const w = json_line_begin(&line);

		json_out_u64(w, "objects", o->n);
		json_out_bool(w, "sound", o->problems.n == 0);
		store_problems_put(&o->problems, w);
		json_line_end(&line, stdout);
		return;
	}
	printf("settings and nodes: %s, %" PRIu64 " objects\n", o->problems.n ? "damaged" : "sound",
	       o->n);
	store_problems_print(&o->problems);
}

int
store_check_objects(struct store_command *c, bool *damaged, struct slu_err *err)
{
	struct objects o = { .c = c };
	int rc;

	store_problems_init(&o.problems);
	rc = check_folder(&o, SETTINGS_PREFIX, err);
	if (!rc)
		rc = check_folder(&o, BEAT_PREFIX, err);
	if (!rc && o.n)
		print(&o);
	*damaged |= !rc && o.problems.n;
	store_problems_release(&o.problems);
	return rc;
}
