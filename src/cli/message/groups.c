/*
 * groups.c - `sluice dlq groups`: the dead letters of a queue by group of like errors.
 *
 * The server groups a page of dead letters at a time. Groups with one name on several pages are one group.
 */
#include "cli/lib/rows.h"

#include "base/json/json_out.h"
#include "base/json/json_table.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	MOST = 1000, /* groups; letters of further ones are in one more, "other" */
	VERSIONS = 8 /* of a group */
};

/* How many letters workers of a version have failed last. */
struct letter_version {
	char version[72];
	uint64_t count; /* 0: no more */
};

/* A group as the server writes it; texts are copies. */
struct letter_group {
	char group[24];
	char reason[24];
	char sample_uid[40];
	char error[640];
	struct slice listed; /* versions, JSON */
	struct letter_version versions[VERSIONS];
	slu_time first_at, last_at;
	uint64_t count;
};

struct letter_groups {
	struct letter_group *all;
	uint32_t n, room;
};

static const struct json_field fields[] = {
	JSON_FIELD(chars, struct letter_group, group),
	JSON_FIELD(chars, struct letter_group, reason),
	JSON_FIELD(time, struct letter_group, first_at),
	JSON_FIELD(time, struct letter_group, last_at),
	JSON_FIELD(chars, struct letter_group, sample_uid),
	JSON_FIELD(chars, struct letter_group, error),
	JSON_FIELD(u64, struct letter_group, count),
	JSON_ROW("versions", json_read_raw, struct letter_group, listed),
};

static const struct json_field version_fields[] = {
	JSON_FIELD(chars, struct letter_version, version),
	JSON_FIELD(u64, struct letter_version, count),
};

static const struct column columns[] = {
	{ "count", "COUNT", COLUMN_NUMBER },
	{ "group", "GROUP", COLUMN_TEXT },
	{ "reason", "REASON", COLUMN_TEXT },
	{ "first_at", "FIRST", COLUMN_TIME },
	{ "last_at", "LAST", COLUMN_TIME },
	{ "sample_uid", "SAMPLE", COLUMN_TEXT },
	{ "versions", "VERSIONS", COLUMN_MAYBE },
	{ "error", "ERROR", COLUMN_TEXT },
};

static const struct rows_list groups = { .member = "groups", ROWS_COLUMNS(columns) };

static void
add_version(struct letter_group *g, const struct letter_version *v)
{
	for (unsigned i = 0; i < VERSIONS; i++) {
		if (g->versions[i].count && strcmp(g->versions[i].version, v->version) != 0)
			continue;
		memcpy(g->versions[i].version, v->version, sizeof v->version);
		g->versions[i].count += v->count;
		return;
	}
}

static void
read_versions(struct letter_group *g)
{
	struct json in;

	if (!g->listed.n)
		return;
	json_init(&in, g->listed, JSON_DEPTH);
	json_array(&in);
	while (json_element(&in)) {
		struct letter_version v = { 0 };

		json_fields(&in, version_fields, COUNT(version_fields), JSON_LENIENT, &v);
		if (v.count)
			add_version(g, &v);
	}
	(void)json_end(&in, NULL);
}

static void
merge(struct letter_group *into, const struct letter_group *g)
{
	for (unsigned i = 0; i < VERSIONS && g->versions[i].count; i++)
		add_version(into, &g->versions[i]);
	into->count += g->count;
	into->first_at = g->first_at < into->first_at ? g->first_at : into->first_at;
	into->last_at = g->last_at > into->last_at ? g->last_at : into->last_at;
}

static bool
is_known(const struct letter_groups *s, const struct letter_group *g)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (strcmp(s->all[i].group, g->group) == 0)
			return true;
	return false;
}

static void
become_other(struct letter_group *g)
{
	g->reason[0] = g->error[0] = '\0';
	(void)snprintf(g->group, sizeof g->group, "other");
}

static int
add(void *arg, struct json *in, struct slu_err *err)
{
	struct letter_groups *const s = arg;
	struct letter_group g = { 0 };

	json_fields(in, fields, COUNT(fields), JSON_LENIENT, &g);
	read_versions(&g);
	if (s->n >= MOST && !is_known(s, &g))
		become_other(&g);
	for (uint32_t i = 0; i < s->n; i++) {
		if (strcmp(s->all[i].group, g.group) != 0)
			continue;
		merge(&s->all[i], &g);
		return 0;
	}
	if (!mem_room(&s->all, &s->room, s->n + 1, sizeof *s->all))
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	s->all[s->n++] = g;
	return 0;
}

static int
most_first(const void *a, const void *b)
{
	const struct letter_group *const x = a, *const y = b;

	return (x->count < y->count) - (x->count > y->count);
}

/* "1.4.2 (400), 1.4.1 (12)" */
static void
write_versions(struct json_out *w, const struct letter_group *g)
{
	char text[VERSIONS * 96];
	int n = 0;

	for (unsigned i = 0; i < VERSIONS && g->versions[i].count; i++)
		n += snprintf(text + n, sizeof text - (size_t)n, "%s%s (%" PRIu64 ")", i ? ", " : "", g->versions[i].version, g->versions[i].count); /* fits */
	if (n)
		json_out_str(w, "versions", slice_of(text));
}

static void
write_groups(const struct letter_groups *s, struct buf *out)
{
	struct json_out w;

	json_out_open(&w, out);
	json_out_array(&w, "groups");
	for (uint32_t i = 0; i < s->n; i++) {
		const struct letter_group *const g = &s->all[i];

		json_out_object(&w, NULL);
		json_out_u64(&w, "count", g->count);
		json_out_str(&w, "group", slice_of(g->group));
		json_out_str(&w, "reason", slice_of(g->reason));
		json_out_time(&w, "first_at", g->first_at);
		json_out_time(&w, "last_at", g->last_at);
		json_out_str(&w, "sample_uid", slice_of(g->sample_uid));
		write_versions(&w, g);
		json_out_str(&w, "error", slice_of(g->error));
		json_out_close(&w);
	}
	json_out_close(&w);
	json_out_finish(&w);
}

static int
print(struct session *s, const struct letter_groups *found, struct slu_err *err)
{
	struct buf text;
	int rc;

	buf_init(&text, 16 << 20);
	write_groups(found, &text);
	rc = text.failed ? slu_fail(err, SLU_ENOMEM, "out of memory") : rows_print(s, &groups, buf_slice(&text), err);
	buf_release(&text);
	return rc;
}

static int
run(struct session *s, struct slu_err *err)
{
	struct letter_groups found = { 0 };
	const struct query_list list = { .path = "/v1/admin/dlq/groups", .space = s->space, .array = "groups", .queue = s->words[0] };
	int rc = query_each(&s->query, &list, add, &found, err);

	if (!rc && found.n > 1)
		qsort(found.all, found.n, sizeof *found.all, most_first);
	if (!rc && found.n == 0)
		session_nothing(s, "no dead letters in %s", s->words[0]);
	else if (!rc)
		rc = print(s, &found, err);
	mem_free(found.all);
	return rc;
}

const struct command cli_dlq_groups = {
	.name = "dlq groups",
	.summary = "dead letters by group of like errors",
	.usage = "QUEUE [options]",
	.text = "Groups the dead letters of a queue: errors that differ in numbers and ids only are alike. The\n"
		"largest group comes first. --group GROUP of `dlq list`, `dlq redrive`, `dlq delete` and\n"
		"`task start` selects one. Exits 3 if there are none.\n",
	.examples = "  sluice dlq groups mail\n"
		    "  sluice task start redrive mail --group $(sluice dlq groups mail --json | head -1 | jq -r .group)\n",
	.options = CLI_QUEUE,
	.run = run,
};
