#include "cli/lib/json_line.h"
#include "cli/lib/table.h"
#include "cli/store/store_private.h"

#include <inttypes.h>

/* ---- All shards ---- */

/* What a top-level folder holds. */
struct store_counts {
	uint64_t groups, spans, others;
	uint64_t last; /* the highest number of a group; 0 = none */
};

static int
count(struct store *s, const char *folder, struct store_counts *n, struct slu_err *err)
{
	char prefix[STORE_NAME_MAX + 1];
	struct store_cursor names = { .store = s, .prefix = prefix };
	const char *name;
	int rc;

	*n = (struct store_counts){ 0 };
	(void)snprintf(prefix, sizeof prefix, "%s/", folder);
	while (!(rc = store_cursor_next(&names, &name, err)) && name) {
		uint64_t number = 0;
		const struct store_kind *const kind = store_kind(name, &number);

		if (kind == &store_kinds[STORE_KIND_SPAN]) {
			n->spans++;
		} else if (kind == &store_kinds[STORE_KIND_GROUP]) {
			n->groups++;
			n->last = number; /* names come in order */
		} else {
			n->others++;
		}
	}
	store_cursor_release(&names);
	return rc;
}

static void
print_counts(const struct session *s, struct text_table *t, const char *folder,
	     const struct store_counts *n)
{
	struct json_line line;

	if (s->json) {
		struct json_out *const w = json_line_begin(&line);

		json_out_str(w, "folder", slice_of(folder));
		json_out_u64(w, "groups", n->groups);
		json_out_u64(w, "spans", n->spans);
		json_out_u64(w, "last", n->last);
		json_out_u64(w, "others", n->others);
		json_line_end(&line, stdout);
		return;
	}
	table_cell(t, "%s", folder);
	table_cell(t, "%" PRIu64, n->groups);
	table_cell(t, "%" PRIu64, n->spans);
	table_cell(t, "%" PRIu64, n->last);
	table_cell(t, "%" PRIu64, n->others);
}

static int
ls_shards(struct store_command *c, struct text_table *t, struct slu_err *err)
{
	char folder[STORE_NAME_MAX] = "";
	struct store_counts n;
	int rc;

	while (!(rc = store_next_folder(c->store, folder, err)) && *folder) {
		rc = count(c->store, folder, &n, err);
		if (rc)
			return rc;
		print_counts(&c->s, t, folder, &n);
	}
	return rc;
}

/* ---- The objects of a shard ---- */

static void
print_object(const struct session *s, struct text_table *t, const char *name)
{
	struct json_line line;
	uint64_t number = 0;
	const struct store_kind *const kind = store_kind(name, &number);

	if (s->json) {
		struct json_out *const w = json_line_begin(&line);

		json_out_str(w, "name", slice_of(name));
		json_out_str(w, "kind", slice_of(kind->name));
		if (number)
			json_out_u64(w, "number", number);
		json_line_end(&line, stdout);
		return;
	}
	table_cell(t, "%s", name);
	table_cell(t, "%s", kind->name);
	if (number)
		table_cell(t, "%" PRIu64, number);
	else
		table_cell(t, "-");
}

static int
ls_objects(struct store_command *c, struct text_table *t, const char *shard, struct slu_err *err)
{
	char prefix[STORE_NAME_MAX + 1];
	struct store_cursor names = { .store = c->store, .prefix = prefix };
	const char *name;
	uint64_t n = 0;
	int rc;

	(void)snprintf(prefix, sizeof prefix, "%.*s/", STORE_NAME_MAX - 2, shard);
	while (!(rc = store_cursor_next(&names, &name, err)) && name) {
		print_object(&c->s, t, name);
		n++;
	}
	store_cursor_release(&names);
	return rc || n ? rc : slu_fail(err, SLU_ENOTFOUND, "no such shard: %s", shard);
}

int
store_ls(struct store_command *c, const char *word, struct slu_err *err)
{
	static const char *const shard_heads[] = { "FOLDER", "GROUPS", "SPANS", "LAST", "OTHERS" };
	static const char *const object_heads[] = { "NAME", "KIND", "NUMBER" };
	struct text_table t;
	int rc;

	if (word)
		table_init(&t, object_heads, COUNT(object_heads), 1 << 2);
	else
		table_init(&t, shard_heads, COUNT(shard_heads), 0x1e);
	rc = word ? ls_objects(c, &t, word, err) : ls_shards(c, &t, err);
	if (!rc && !c->s.json)
		rc = table_print(&t, stdout, session_colours(stdout));
	table_release(&t);
	return rc;
}
