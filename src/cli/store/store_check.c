/*
 * store_check.c - `sluice admin store check`: the chain of every shard (LINE-5).
 *
 * Groups come from spans and from objects of their own, by rising numbers:
 *
 *      spans    [ 1 2 3 4 ][ 5 6 7 ]
 *      groups     1         5        8 9
 *
 * A group that is in a span may be in the store as well: an opening stays for ever. It is the same
 * group, or an opening that a node put where the name had been free only because its group was
 * removed (LINE-3). Such a stray opening is not part of the line and no damage.
 *
 * A server may remove objects meanwhile. If a name that was listed is absent, the check of the
 * shard begins anew.
 */
#include "cli/lib/json_line.h"
#include "cli/lib/report.h"
#include "cli/store/store_private.h"
#include "line/verify.h"

#include <inttypes.h>

enum {
	TRIES = 5 /* of a shard that changes */
};

struct shard_check {
	struct store_command *c;
	char shard[STORE_NAME_MAX];
	struct line_verify v;
	struct store_problems problems;
	uint64_t spans, loose, stray;

	/* Groups with objects of their own. */
	struct store_cursor names;
	uint64_t number; /* of the next one; 0 = none left */
	struct buf object;
};

static void
on_problem(void *arg, const char *text)
{
	struct shard_check *const k = arg;

	store_problem(&k->problems, "%s", text);
}

/* ---- Groups with objects of their own ---- */

static int
next_name(struct shard_check *k, struct slu_err *err)
{
	const char *name;
	int rc;

	do {
		rc = store_cursor_next(&k->names, &name, err);
		k->number = name ? line_number(name, k->shard, LINE_GROUP) : 0;
	} while (!rc && name && !k->number);
	return rc;
}

static int
read_group(struct shard_check *k, uint64_t number, struct slu_err *err)
{
	char name[LINE_NAME_MAX];

	line_name(name, k->shard, LINE_GROUP, number);
	return store_read(k->c, name, err);
}

/* Checks the groups before `number`. */
static int
loose_before(struct shard_check *k, uint64_t number, struct slu_err *err)
{
	int rc = 0;

	while (!rc && k->number && k->number < number) {
		rc = read_group(k, k->number, err);
		if (rc)
			break;
		line_verify_group(&k->v, k->number, buf_slice(&k->c->object));
		k->loose++;
		rc = next_name(k, err);
	}
	return rc;
}

/* The group has an object of its own, too. */
static int
compare(struct shard_check *k, uint64_t number, struct slice in_span, struct slu_err *err)
{
	struct line_group g;
	const int rc = read_group(k, number, err);

	if (rc)
		return rc;
	if (slice_eq(in_span, buf_slice(&k->c->object)))
		k->loose++;
	else if (line_group_decode(&g, buf_slice(&k->c->object), NULL))
		line_verify_problem(&k->v, "group %" PRIu64 " is damaged, and sound in its span",
				    number);
	else if (g.opening)
		k->stray++;
	else
		line_verify_problem(&k->v, "group %" PRIu64 " differs from the one in its span",
				    number);
	return next_name(k, err);
}

/* ---- Spans ---- */

static int
check_span(struct shard_check *k, uint64_t first, struct slu_err *err)
{
	struct line_span s;
	struct slu_err why = { 0 };
	struct slice group;
	int rc = 0;

	k->spans++;
	if (line_span_decode(&s, buf_slice(&k->object), &why)) {
		line_verify_problem(&k->v, "span %" PRIu64 ": %s", first, why.text);
		return 0;
	}
	if (s.first != first) {
		line_verify_problem(&k->v, "span %" PRIu64 " begins with group %" PRIu64, first,
				    s.first);
		return 0;
	}
	for (uint64_t number = first; !rc && line_span_next(&s, &group); number++) {
		rc = loose_before(k, number, err);
		line_verify_group(&k->v, number, group);
		if (!rc && k->number == number)
			rc = compare(k, number, group, err);
	}
	return rc;
}

static int
check_spans(struct shard_check *k, struct slu_err *err)
{
	char prefix[LINE_NAME_MAX];
	struct store_cursor names = { .store = k->c->store, .prefix = prefix };
	const char *name;
	int rc;

	line_prefix(prefix, k->shard, LINE_SPAN);
	while (!(rc = store_cursor_next(&names, &name, err)) && name) {
		const uint64_t first = line_number(name, k->shard, LINE_SPAN);

		if (!first)
			continue;
		rc = store_read(k->c, name, err);
		if (rc)
			break;
		buf_clear(&k->object);
		buf_put(&k->object, k->c->object.p, k->c->object.n);
		rc = k->object.failed ? slu_fail(err, SLU_ENOMEM, "out of memory")
				      : check_span(k, first, err);
		if (rc)
			break;
	}
	store_cursor_release(&names);
	return rc;
}

/* ---- A shard ---- */

/* The newest group says where the log begins. It is never removed, so it is the last name. */
static int
find_begin(struct shard_check *k, uint64_t *begin, struct slu_err *err)
{
	struct line_group g;
	uint64_t last = 0;
	int rc = next_name(k, err);

	while (!rc && k->number) {
		last = k->number;
		rc = next_name(k, err);
	}
	if (!rc && !last)
		rc = slu_fail(err, SLU_ENOTFOUND, "no such shard: %s", k->shard);
	if (rc)
		return rc;
	rc = read_group(k, last, err);
	if (rc)
		return rc == SLU_ENOTFOUND ? SLU_EBUSY : rc;
	*begin = line_group_decode(&g, buf_slice(&k->c->object), NULL) ? 1 : g.begin;
	return 0;
}

static void
rewind_names(struct shard_check *k)
{
	store_cursor_release(&k->names);
	k->names.next = 0;
	k->names.begun = false;
}

static int
check_once(struct shard_check *k, struct slu_err *err)
{
	uint64_t begin;
	int rc;

	*err = (struct slu_err){ 0 };
	store_problems_clear(&k->problems);
	k->spans = k->loose = k->stray = 0;
	rewind_names(k);
	rc = find_begin(k, &begin, err);
	if (rc)
		return rc;
	line_verify_init(&k->v, begin, on_problem, k);
	rewind_names(k);
	rc = next_name(k, err);
	if (!rc)
		rc = check_spans(k, err);
	if (!rc)
		rc = loose_before(k, UINT64_MAX, err);
	return rc == SLU_ENOTFOUND ? SLU_EBUSY : rc; /* a listed name is absent */
}

static int
check_shard(struct shard_check *k, struct slu_err *err)
{
	char prefix[LINE_NAME_MAX];
	int rc = SLU_EBUSY;

	line_prefix(prefix, k->shard, LINE_GROUP);
	k->names = (struct store_cursor){ .store = k->c->store, .prefix = prefix };
	for (int i = 0; i < TRIES && rc == SLU_EBUSY; i++)
		rc = check_once(k, err);
	store_cursor_release(&k->names);
	return rc == SLU_EBUSY ? slu_fail(err, SLU_EBUSY, "shard %s changes too fast to be checked",
					  k->shard)
			       : rc;
}

/* ---- Output ---- */

static void
print_json(const struct shard_check *k)
{
	struct json_line line;
	struct json_out *const w = json_line_begin(&line);

	json_out_str(w, "shard", slice_of(k->shard));
	json_out_bool(w, "sound", k->problems.n == 0);
	json_out_u64(w, "begin", k->v.begin);
	json_out_u64(w, "first", k->v.first);
	json_out_u64(w, "last", k->v.last);
	json_out_u64(w, "epoch", k->v.epoch);
	json_out_time(w, "time", k->v.time);
	json_out_u64(w, "spans", k->spans);
	json_out_u64(w, "loose", k->loose);
	json_out_u64(w, "stray", k->stray);
	store_problems_put(&k->problems, w);
	json_line_end(&line, stdout);
}

static void
print_plain(const struct shard_check *k)
{
	printf("shard %s: %s, groups %" PRIu64 " to %" PRIu64 ", log begins at %" PRIu64
	       ", epoch %" PRIu64 ", %" PRIu64 " spans, %" PRIu64 " loose groups",
	       k->shard, k->problems.n ? "damaged" : "sound", k->v.first, k->v.last, k->v.begin,
	       k->v.epoch, k->spans, k->loose);
	if (k->stray)
		printf(", %" PRIu64 " stray openings", k->stray);
	printf("\n");
	store_problems_print(&k->problems);
}

static int
check_and_print(struct shard_check *k, struct slu_err *err)
{
	const int rc = check_shard(k, err);

	if (rc)
		return rc;
	if (k->c->s.json)
		print_json(k);
	else
		print_plain(k);
	return 0;
}

/* ---- All shards ---- */

static bool
is_shard(struct store *s, const char *folder)
{
	char prefix[LINE_NAME_MAX];
	struct store_names names = { 0 };
	struct slu_err err;
	bool is;

	if (strlen(folder) > LINE_SHARD_MAX)
		return false;
	line_prefix(prefix, folder, LINE_GROUP);
	is = store_list(s, prefix, "", 1, &names, &err) == STORE_OK && names.n > 0;
	store_names_release(&names);
	return is;
}

/* A store without shards may still have damaged settings: they are printed first. */
static int
check_all(struct shard_check *k, bool *damaged, struct slu_err *err)
{
	bool any = false;
	int rc = store_check_objects(k->c, damaged, err);

	while (!rc && !(rc = store_next_folder(k->c->store, k->shard, err)) && *k->shard) {
		if (!is_shard(k->c->store, k->shard))
			continue;
		rc = check_and_print(k, err);
		*damaged |= !rc && k->problems.n;
		any = true;
	}
	return rc || any || *damaged ? rc : slu_fail(err, SLU_ENOTFOUND, "the store has no shards");
}

int
store_check(struct store_command *c, const char *word, struct slu_err *err)
{
	struct shard_check k = { .c = c };
	bool damaged = false;
	int rc;

	if (word && strlen(word) > LINE_SHARD_MAX)
		return slu_fail(err, SLU_ENOTFOUND, "no such shard: %.100s", word);
	(void)snprintf(k.shard, sizeof k.shard, "%s", word ? word : "");
	store_problems_init(&k.problems);
	buf_init(&k.object, STORE_OBJECT_MAX);
	rc = word ? check_and_print(&k, err) : check_all(&k, &damaged, err);
	damaged |= !rc && k.problems.n;
	store_problems_release(&k.problems);
	buf_release(&k.object);
	if (rc || !damaged)
		return rc;
	c->s.exit = cli_report(c->s.command->name, c->s.json, SLU_ECORRUPT, CLI_FAILED,
			       "the store is damaged");
	return 0;
}
