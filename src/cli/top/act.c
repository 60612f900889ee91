/*
 * act.c - the actions of `sluice top` on the selected queue: pause, resume, redrive. The user confirms an
 * action; then the calls run one by one between updates of the screen.
 */
#include "cli/top/top.h"

#include "base/json/json_out.h"
#include "base/json/json_table.h"

#include <inttypes.h>
#include <stdarg.h>

enum {
	PAGE = 1000 /* dead letters in a call */
};

static const struct {
	const char *path, *verb, *past;
} acts[] = {
	[ACT_PAUSE] = { "/v1/admin/queue/pause", "pause", "paused" },
	[ACT_RESUME] = { "/v1/admin/queue/resume", "resume", "resumed" },
	[ACT_REDRIVE] = { "/v1/admin/dlq/redrive", "redrive", "redriven" },
};

void
top_note(struct top *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(t->note, sizeof t->note, fmt, ap); /* cut is fine */
	va_end(ap);
}

/* --- asking --------------------------------------------------------------------- */

void
top_propose(struct top *t, bool redrive)
{
	const struct top_queue *q = t->n_shown ? &t->queues[t->selected] : NULL;
	struct top_act *const a = &t->act;

	if (!q)
		return;
	if (redrive && q->counts[TOP_DEAD] == 0) {
		top_note(t, "%s has no dead letters", q->shown);
		return;
	}
	*a = (struct top_act){ .left = q->counts[TOP_DEAD] };
	a->kind = redrive ? ACT_REDRIVE : q->paused || q->draining ? ACT_RESUME
								   : ACT_PAUSE;
	memcpy(a->space, q->space, sizeof a->space);
	memcpy(a->name, q->name, sizeof a->name);
	memcpy(a->shown, q->shown, sizeof a->shown);
	t->input = TOP_ANSWER;
}

const char *
top_question(const struct top *t, char *out, size_t n)
{
	const struct top_act *const a = &t->act;

	if (a->kind == ACT_REDRIVE)
		(void)snprintf(out, n, "redrive %" PRIu64 " dead letters of %s? y yes, any other key no", a->left, a->shown);
	else
		(void)snprintf(out, n, "%s %s? y yes, any other key no", acts[a->kind].verb, a->shown);
	return out;
}

/* --- doing ---------------------------------------------------------------------- */

static void
write_body(const struct top_act *a, struct buf *body)
{
	struct json_out w;

	json_out_open(&w, body);
	json_out_str(&w, "namespace", slice_of(a->space));
	json_out_str(&w, "queue", slice_of(a->name));
	if (a->kind == ACT_REDRIVE)
		json_out_u64(&w, "limit", a->left < PAGE ? a->left : PAGE);
	if (a->cursor[0])
		json_out_str(&w, "cursor", slice_of(a->cursor));
	json_out_finish(&w);
}

struct redrive_outcome {
	uint64_t redriven, looked;
	bool more;
	char cursor[32];
};

static int
read_outcome(struct top_act *a, struct slice answer, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELDS(u64, struct redrive_outcome, redriven, looked),
		JSON_FIELD(bool, struct redrive_outcome, more),
		JSON_FIELD(chars, struct redrive_outcome, cursor),
	};
	struct redrive_outcome o = { 0 };
	const int rc = query_read(answer, fields, COUNT(fields), &o, err);

	if (rc)
		return rc;
	a->done += o.redriven;
	a->left = o.more && o.looked > 0 && o.looked < a->left ? a->left - o.looked : 0;
	memcpy(a->cursor, o.cursor, sizeof a->cursor);
	return 0;
}

static int
call(struct top *t, struct slu_err *err)
{
	struct cli_query *const q = &t->s.query;
	struct slice answer;
	struct buf body;
	int rc;

	buf_init(&body, 4096);
	write_body(&t->act, &body);
	query_path(q, acts[t->act.kind].path);
	rc = query_post(q, buf_slice(&body), &answer, err);
	buf_release(&body);
	if (!rc && t->act.kind == ACT_REDRIVE)
		rc = read_outcome(&t->act, answer, err);
	return rc;
}

void
top_step(struct top *t)
{
	struct top_act *const a = &t->act;
	struct slu_err err;

	if (call(t, &err)) {
		top_note(t, "%s: %s", a->shown, err.text);
		a->kind = ACT_NONE;
		return;
	}
	if (a->kind == ACT_REDRIVE)
		top_note(t, "%" PRIu64 " of %s redriven", a->done, a->shown);
	else
		top_note(t, "%s is %s", a->shown, acts[a->kind].past);
	if (a->kind != ACT_REDRIVE || a->left == 0)
		a->kind = ACT_NONE;
}
