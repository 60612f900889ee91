/*
 * groups.c - GET /v1/admin/dlq/groups: the dead letters of a page, by group of like errors (core/fingerprint.h).
 *
 *      {"groups":[{"group":"8c1f3a90bc17e2d4","error":"gateway timeout after # ms","reason":"max_attempts","count":412,
 *        "first_at":"...","last_at":"...","hours":[0,...,17],"versions":[{"version":"1.4.2","count":400}],"sample":"gateway timeout after 512 ms","sample_uid":"..."}],
 *       "looked":1000,"cursor":"..."}
 *
 *  GROUPS-1  An answer has the groups of one page of dead letters (ADMIN-1). Groups with one name on several pages are one
 *            group: the caller adds them up.
 *  GROUPS-2  `versions` has the first GROUP_VERSIONS versions of the workers whose attempt was the last one of a letter.
 */
#include "api/admin/admin.h"

#include "api/admin/filter.h"
#include "api/flat/page.h"
#include "api/flat/view.h"
#include "api/handler.h"
#include "base/id.h"
#include "core/fingerprint.h"
#include "core/queue/holders.h"
#include "engine/attempts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	SLOTS = 2048,
	SAMPLE = 256, /* bytes of an error that is shown */
	HOURS = 24,
	GROUP_VERSIONS = 8
};

struct dead_group {
	struct fingerprint print;
	uint64_t count;
	slu_time first, last;  /* deaths */
	uint32_t hours[HOURS]; /* deaths in each of the last hours, the oldest first */
	uint64_t id;           /* of the first one */
	struct {
		struct slice text;
		uint32_t count;
	} versions[GROUP_VERSIONS]; /* count 0: no more */
	struct slice sample;
	uint8_t reason;
};

struct state {
	struct slice namespace;
	struct slice queue;
	uint64_t cursor;
	uint32_t limit;
	struct admin_filter filter;

	slu_time now;
	struct rows rows;
	struct dead_group *groups; /* room for API_PAGE_MAX */
	uint32_t n;
	uint16_t *slots; /* of a hash table: 1 + an index in groups */
	bool failed;     /* no memory */
};

static const struct param params[] = {
	PARAM_QUEUE(struct state),
	PARAM_PAGE(struct state, API_PAGE_MAX),
	ADMIN_FILTER_PARAMS(struct state),
};

static struct dead_group *
find(struct state *s, const struct fingerprint *print)
{
	uint32_t i = (uint32_t)(print->hash >> 8) % SLOTS;

	for (; s->slots[i]; i = (i + 1) % SLOTS)
		if (s->groups[s->slots[i] - 1].print.hash == print->hash)
			return &s->groups[s->slots[i] - 1];
	s->groups[s->n].print = *print;
	s->slots[i] = (uint16_t)++s->n;
	return &s->groups[s->n - 1];
}

static void
begin(struct rows *r, struct dead_group *g, const struct op_row *row, struct slice error)
{
	struct state *const s = r->apicall->state;
	const struct slice cut = { error.p, error.n < SAMPLE ? error.n : SAMPLE };

	g->first = g->last = row->due;
	g->id = row->id;
	g->reason = row->reason;
	g->sample = cut.n ? arena_copy(&r->apicall->memory, cut) : cut;
	s->failed |= g->sample.n != cut.n;
}

static void
note_hour(struct dead_group *g, slu_time died, slu_time now)
{
	const slu_time age = now > died ? now - died : 0;

	if (age < HOURS * SLU_HOUR)
		g->hours[HOURS - 1 - age / SLU_HOUR]++;
}

/* GROUPS-2 */
static void
note_version(struct rows *r, struct dead_group *g, struct slice version)
{
	struct state *const s = r->apicall->state;

	for (unsigned i = 0; i < GROUP_VERSIONS; i++) {
		if (!g->versions[i].count)
			g->versions[i].text = arena_copy(&r->apicall->memory, version);
		s->failed |= g->versions[i].text.n == 0;
		if (slice_eq(g->versions[i].text, version)) {
			g->versions[i].count++;
			return;
		}
	}
}

/* The version of the worker whose attempt was the last one. */
static struct slice
version_of(struct slice tried)
{
	struct attempts all;

	if (!attempts_read(tried, &all) || all.n == 0)
		return (struct slice){ 0 };
	return holder_version(all.list[all.n - 1].holder);
}

/* For rows_start: writes nothing. */
static void
take_row(struct json_out *w, const struct op_row *row, const struct message *m, struct slice error)
{
	struct rows *const r = CONTAINER(w, struct rows, w);
	struct state *const s = r->apicall->state;
	struct fingerprint print;
	struct dead_group *g;
	struct slice version;

	s->filter.masked = rows_are_masked(r);
	if (!admin_filter_matches(&s->filter, s->now, r->op->engine, row, rows_searched(r, m), error, &r->bytes))
		return;
	fingerprint_of(row->reason, error, &print);
	g = find(s, &print);
	if (g->count++ == 0)
		begin(r, g, row, error);
	note_hour(g, row->due, s->now);
	version = version_of(r->tried);
	if (version.n)
		note_version(r, g, version);
	g->first = row->due < g->first ? row->due : g->first;
	g->last = row->due > g->last ? row->due : g->last;
}

/* --- the answer --------------------------------------------------------------- */

static int
most_first(const void *a, const void *b)
{
	const struct dead_group *const x = a, *const y = b;

	return (x->count < y->count) - (x->count > y->count);
}

static void
write_versions(struct json_out *w, const struct dead_group *g)
{
	if (!g->versions[0].count)
		return;
	json_out_array(w, "versions");
	for (unsigned i = 0; i < GROUP_VERSIONS && g->versions[i].count; i++) {
		json_out_object(w, NULL);
		json_out_str(w, "version", g->versions[i].text);
		json_out_u64(w, "count", g->versions[i].count);
		json_out_close(w);
	}
	json_out_close(w);
}

static void
write_group(struct json_out *w, const struct dead_group *g)
{
	char name[ADMIN_GROUP_TEXT], uid[ID_UUID_TEXT];

	(void)snprintf(name, sizeof name, "%016" PRIx64, g->print.hash); /* fits */
	json_out_object(w, NULL);
	json_out_str(w, "group", slice_of(name));
	json_out_str(w, "error", slice_of(g->print.text));
	json_out_str(w, "reason", slice_of(flat_view_reasons[g->reason]));
	json_out_u64(w, "count", g->count);
	json_out_time(w, "first_at", g->first);
	json_out_time(w, "last_at", g->last);
	json_out_array(w, "hours");
	for (unsigned i = 0; i < HOURS; i++)
		json_out_u64(w, NULL, g->hours[i]);
	json_out_close(w);
	write_versions(w, g);
	if (g->sample.n)
		json_out_str(w, "sample", g->sample);
	(void)id_to_uuid(g->id, uid);
	json_out_str(w, "sample_uid", slice_of(uid));
	json_out_close(w);
}

static void
taken(struct apicall *a, int rc)
{
	struct state *const s = a->state;
	struct json_out w;

	if (apicall_refused(a, !rc && s->failed ? SLU_ENOMEM : rc, NULL))
		return;
	qsort(s->groups, s->n, sizeof *s->groups, most_first);
	apicall_object(a, &w);
	json_out_array(&w, "groups");
	for (uint32_t i = 0; i < s->n; i++)
		write_group(&w, &s->groups[i]);
	json_out_close(&w);
	json_out_u64(&w, "looked", s->rows.at);
	flat_view_cursor(&w, page_cursor(&s->rows));
	apicall_reply_object(a, &w, 200);
}

static void
found(struct apicall *a)
{
	struct state *const s = a->state;

	if (apicall_failed(a))
		return;
	page_look(&s->rows, a, take_row, taken);
}

static bool
make_room(struct apicall *a, struct state *s)
{
	s->groups = arena_array(&a->memory, API_PAGE_MAX, sizeof *s->groups);
	s->slots = arena_array(&a->memory, SLOTS, sizeof *s->slots);
	if (!s->groups || !s->slots)
		return false;
	(void)memset(s->groups, 0, API_PAGE_MAX * sizeof *s->groups);
	(void)memset(s->slots, 0, SLOTS * sizeof *s->slots);
	return true;
}

static void
look(struct apicall *a)
{
	struct state *const s = a->state;
	struct slu_err err = { 0 };
	int rc = admin_filter_check(&s->filter, &err);

	if (!rc && !make_room(a, s))
		rc = SLU_ENOMEM;
	if (apicall_refused(a, rc, err.text))
		return;
	s->now = clock_wall(a->api->clock);
	apicall_op(a, &a->op, OP_LIST, s->namespace, s->queue);
	a->op.state = MSG_DEAD;
	a->op.cursor = s->cursor;
	apicall_run_rows(a, s->limit, found);
}

const struct handler admin_dlq_groups = { look, sizeof(struct state), QUERY_ROWS(params) };
