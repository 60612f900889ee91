/*
 * priorities.c - GET /v1/admin/queue/priorities: how many messages of a queue each priority has.
 *
 *      {"namespace":"ops", "queue":"jobs", "priorities":[{"priority":0,"messages":12,"ready":10,"leased":2}, ...],
 *       "looked":128000, "cursor":"128000"}
 *
 *  PRIORITIES-1  An answer counts PAGES pages of messages of the shard (ADMIN-1). Nothing is read from the disk. The caller adds the
 *                counts of several answers, by priority.
 */
#include "api/admin/admin.h"

#include "api/flat/view.h"
#include "api/handler.h"
#include "base/parse.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	PAGES = 16
};

struct state {
	struct slice namespace;
	struct slice queue;
	uint64_t cursor;

	uint32_t pages;
	uint64_t looked;
	struct op_use *found; /* room for OP_USES_PRIORITIES */
	uint32_t n;
};

static const struct param params[] = {
	PARAM_QUEUE(struct state),
	PARAM(number, struct state, cursor),
};

/* The name of such a use is the priority. */
static int64_t
priority_of(const struct op_use *u)
{
	struct slu_err err;
	int64_t n = 0;

	(void)parse_i64(slice_of(u->name), INT32_MIN, INT32_MAX, &n, &err);
	return n;
}

static int
lowest_first(const void *a, const void *b)
{
	const int64_t x = priority_of(a), y = priority_of(b);

	return (x > y) - (x < y);
}

static void
add(struct state *s, const struct op_use *u)
{
	uint32_t i = 0;

	while (i < s->n && strcmp(s->found[i].name, u->name) != 0)
		i++;
	if (i == OP_USES_PRIORITIES)
		return;
	if (i == s->n)
		s->found[s->n++] = (struct op_use){ 0 };
	memcpy(s->found[i].name, u->name, sizeof u->name);
	s->found[i].messages += u->messages;
	s->found[i].ready += u->ready;
	s->found[i].leased += u->leased;
}

static void
answer(struct apicall *a)
{
	struct state *const s = a->state;
	struct json_out w;

	qsort(s->found, s->n, sizeof *s->found, lowest_first);
	apicall_object(a, &w);
	flat_view_place(&w, s->namespace, s->queue);
	json_out_array(&w, "priorities");
	for (uint32_t i = 0; i < s->n; i++) {
		json_out_object(&w, NULL);
		json_out_i64(&w, "priority", priority_of(&s->found[i]));
		json_out_u64(&w, "messages", s->found[i].messages);
		json_out_u64(&w, "ready", s->found[i].ready);
		json_out_u64(&w, "leased", s->found[i].leased);
		json_out_close(&w);
	}
	json_out_close(&w);
	json_out_u64(&w, "looked", s->looked);
	flat_view_cursor(&w, a->op.cursor);
	apicall_reply_object(a, &w, 200);
}

static void look(struct apicall *a, uint64_t cursor);

static void
looked(struct apicall *a)
{
	struct state *const s = a->state;
	char text[320];

	(void)snprintf(text, sizeof text, "namespace %.*s has no queue %.*s", (int)s->namespace.n, s->namespace.p, (int)s->queue.n,
		       s->queue.p);
	if (a->op.rc == SLU_ENOTFOUND ? apicall_refused(a, a->op.rc, text) : apicall_failed(a))
		return;
	s->looked += a->op.limits.looked;
	for (uint32_t i = 0; i < a->op.n_uses; i++)
		add(s, &a->op.uses[i]);
	if (a->op.cursor && ++s->pages < PAGES)
		look(a, a->op.cursor);
	else
		answer(a);
}

static void
look(struct apicall *a, uint64_t cursor)
{
	const struct state *const s = a->state;
	struct op_use *const uses = a->op.uses;

	apicall_op(a, &a->op, OP_LIMITS, s->namespace, s->queue);
	a->op.limits.by_priority = true;
	a->op.cursor = cursor;
	a->op.uses = uses;
	a->op.max_uses = OP_USES_PRIORITIES;
	apicall_run(a, looked);
}

static void
begin(struct apicall *a)
{
	struct state *const s = a->state;

	s->found = arena_array(&a->memory, OP_USES_PRIORITIES, sizeof *s->found);
	a->op.uses = arena_array(&a->memory, OP_USES_PRIORITIES, sizeof *a->op.uses);
	if (s->found && a->op.uses)
		look(a, s->cursor);
	else
		apicall_refuse(a, SLU_ENOMEM, NULL);
}

const struct handler admin_priorities = { begin, sizeof(struct state), QUERY_ROWS(params) };
