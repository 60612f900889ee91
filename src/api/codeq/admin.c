/*
 * admin.c - GET /admin/queues, GET /admin/queues/{command}, POST /admin/tasks/cleanup, GET /raft/status.
 *
 * A cleanup removes dead letters that have been dead for longer than finished tasks are kept. Finished tasks go by
 * themselves.
 */
#include "api/codeq/codeq.h"

#include "api/codeq/topic.h"
#include "api/limits.h"
#include "api/queuestats.h"

#include <stdio.h>

/* --- counts ------------------------------------------------------------------- */

struct counts {
	struct queuestats stats;
	char queue[NAME_TEXT], shown[NAME_TEXT];
};

static const struct {
	const char *name;
	enum msg_state state;
} columns[] = {
	{ "ready", MSG_READY },
	{ "delayed", MSG_DELAYED },
	{ "inProgress", MSG_LEASED },
	{ "dlq", MSG_DEAD },
};

static uint64_t
count(const struct op_queue *q, enum msg_state state)
{
	return q->count[state] + (state == MSG_READY ? q->count[MSG_HELD] : 0);
}

/* {"MAIL:ready":3, "MAIL:delayed":0, ...} */
static void
answer_queues(struct apicall *a)
{
	const struct counts *const s = codeq_of(a)->own;
	struct json_out w;

	if (queuestats_refused(a, &s->stats, NULL))
		return;
	apicall_object(a, &w);
	for (uint32_t i = 0; i < s->stats.n_queues; i++)
		for (size_t k = 0; k < COUNT(columns); k++) {
			char name[NAME_TEXT + 16];
			const int n = snprintf(name, sizeof name, "%s:%s", s->stats.queues[i].shown, columns[k].name);

			json_out_name(&w, (struct slice){ name, (size_t)n });
			json_out_u64(&w, NULL, count(&s->stats.queues[i], columns[k].state));
		}
	apicall_reply_object(a, &w, 200);
}

static void
queues(struct apicall *a)
{
	struct counts *const s = codeq_of(a)->own;

	queuestats_queues(a, &s->stats, codeq_space(a), 0, API_PAGE_MAX, answer_queues);
}

static void
answer_queue(struct apicall *a)
{
	const struct counts *const s = codeq_of(a)->own;
	struct json_out w;

	if (s->stats.rc != SLU_ENOTFOUND && queuestats_refused(a, &s->stats, NULL))
		return;
	apicall_object(a, &w);
	json_out_str(&w, "command", slice_of(s->shown));
	for (size_t k = 0; k < COUNT(columns); k++)
		json_out_u64(&w, columns[k].name, s->stats.rc ? 0 : count(&s->stats.sum, columns[k].state));
	apicall_reply_object(a, &w, 200);
}

static void
queue(struct apicall *a)
{
	struct counts *const s = codeq_of(a)->own;
	const struct slice name = codeq_rest(a);
	struct slu_err err = { 0 };

	if (name_fold(name, "command", s->queue, &err)) {
		codeq_refuse(a, 400, "%s", err.text);
		return;
	}
	(void)snprintf(s->shown, sizeof s->shown, "%.*s", (int)name.n, name.p); /* fits: it is a name */
	queuestats_queue(a, &s->stats, codeq_space(a), slice_of(s->queue), answer_queue);
}

/* --- cleanup ------------------------------------------------------------------ */

enum {
	CLEANUP_LIMIT = 1000
};

struct cleanup {
	struct codeq_facts_of facts; /* first: apicall.part */
	struct queuestats stats;
	int64_t limit;
	slu_time before;
	uint32_t at; /* the queue of stats that is looked at */
	struct op_row *rows;
	struct op_item *items;
	uint64_t deleted;
};

static const struct json_field cleanup_fields[] = {
	JSON_FIELD(i64, struct cleanup, limit, .min = 1, .max = API_PAGE_MAX),
	JSON_FIELD(time, struct cleanup, before),
};

static void next_queue(struct apicall *a);

static void
answer_cleanup(struct apicall *a)
{
	const struct cleanup *const s = codeq_of(a)->own;
	struct json_out w;

	apicall_object(a, &w);
	json_out_u64(&w, "deleted", s->deleted);
	json_out_time(&w, "before", s->before);
	json_out_i64(&w, "limit", s->limit);
	apicall_reply_object(a, &w, 200);
}

static void
were_deleted(struct apicall *a)
{
	struct cleanup *const s = codeq_of(a)->own;

	if (apicall_failed(a))
		return;
	for (uint32_t i = 0; i < a->op.n_items; i++)
		s->deleted += s->items[i].rc == 0;
	s->at++;
	next_queue(a);
}

static void
listed(struct apicall *a)
{
	struct cleanup *const s = codeq_of(a)->own;
	const slu_time age = s->facts.facts.retention * SLU_SEC;
	uint32_t n = 0;

	if (apicall_failed(a))
		return;
	for (uint32_t i = 0; i < a->op.n_rows && (int64_t)(s->deleted + n) < s->limit; i++)
		if (s->rows[i].due <= s->before - age)
			s->items[n++] = (struct op_item){ .id = s->rows[i].id };
	op_unpin(&a->op);
	if (n == 0) {
		s->at++;
		next_queue(a);
		return;
	}
	apicall_op(a, &a->op, OP_DELETE, codeq_space(a), s->facts.queue);
	a->op.items = s->items;
	a->op.n_items = n;
	apicall_run(a, were_deleted);
}

/* Dead letters come oldest first: one page of a queue is enough for the limit. */
static void
list(struct apicall *a)
{
	struct cleanup *const s = codeq_of(a)->own;

	apicall_op(a, &a->op, OP_LIST, codeq_space(a), s->facts.queue);
	a->op.state = MSG_DEAD;
	a->op.rows = s->rows;
	a->op.max_rows = API_PAGE_MAX;
	apicall_run(a, listed);
}

static void
next_queue(struct apicall *a)
{
	struct cleanup *const s = codeq_of(a)->own;

	while (s->at < s->stats.n_queues && s->stats.queues[s->at].count[MSG_DEAD] == 0)
		s->at++;
	if (s->at == s->stats.n_queues || (int64_t)s->deleted >= s->limit)
		answer_cleanup(a);
	else
		codeq_topic_facts(&s->facts, a, slice_of(s->stats.queues[s->at].name), list);
}

static void
have_queues(struct apicall *a)
{
	struct cleanup *const s = codeq_of(a)->own;

	if (queuestats_refused(a, &s->stats, NULL))
		return;
	s->rows = arena_array(&a->memory, API_PAGE_MAX, sizeof *s->rows);
	s->items = s->rows ? arena_array(&a->memory, API_PAGE_MAX, sizeof *s->items) : NULL;
	if (s->items)
		next_queue(a);
	else
		apicall_refuse(a, SLU_ENOMEM, NULL);
}

static void
cleanup(struct apicall *a)
{
	struct cleanup *const s = codeq_of(a)->own;
	const struct slice body = call_of(a->x)->body;
	struct slu_err err = { 0 };
	struct json r;

	s->limit = CLEANUP_LIMIT;
	s->before = clock_wall(a->api->clock);
	if (body.n > 0) {
		json_init(&r, body, JSON_DEPTH);
		(void)json_fields(&r, cleanup_fields, COUNT(cleanup_fields), JSON_LENIENT, s); /* absent: the defaults */
		if (json_end(&r, &err)) {
			codeq_refuse(a, 400, "%s", err.text);
			return;
		}
	}
	queuestats_queues(a, &s->stats, codeq_space(a), 0, API_PAGE_MAX, have_queues);
}

/* --- shards ------------------------------------------------------------------- */

/* Sluice has no raft groups: a shard has an owner. */
static void
raft(struct apicall *a)
{
	struct json_out w;

	apicall_object(a, &w);
	json_out_bool(&w, "enabled", false);
	json_out_u64(&w, "numGroups", 0);
	json_out_array(&w, "groups");
	json_out_close(&w);
	apicall_reply_object(a, &w, 200);
}

const struct codeq_action codeq_queues = { queues, sizeof(struct counts), CODEQ_ADMINS, 0 };
const struct codeq_action codeq_queue = { queue, sizeof(struct counts), CODEQ_ADMINS, 0 };
const struct codeq_action codeq_cleanup = { cleanup, sizeof(struct cleanup), CODEQ_ADMINS, 0 };
const struct codeq_action codeq_raft = { raft, 0, CODEQ_EITHER, 0 };
