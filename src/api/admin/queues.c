/*
 * queues.c - the counts of queues, and changes of a whole queue.
 */
#include "api/admin/admin.h"

#include "api/audit/change.h"
#include "api/flat/flat.h"
#include "api/flat/policy.h"
#include "api/flat/view.h"
#include "api/handler.h"
#include "api/limits.h"
#include "api/queuestats.h"
#include "auth/identity.h"

#include <stdio.h>

struct state {
	struct slice namespace;
	struct slice queue;
	uint64_t cursor; /* only for the list */
	uint32_t limit;
	struct op_queue before;       /* for pause and purge: the queue before the change */
	struct slice reason;          /* only for pause */
	slu_time time;                /* the same: how long; 0: until a resume */
	struct queuestats queuestats; /* for the other calls */
};

static const struct param list_params[] = {
	PARAM(name, struct state, namespace),
	PARAM_PAGE(struct state, API_PAGE_DEFAULT),
};

static const struct param one_params[] = {
	PARAM_QUEUE(struct state),
};

static const struct param pause_params[] = {
	PARAM_QUEUE(struct state),
	PARAM(word, struct state, reason),
	PARAM_ROW("for", span, struct state, time, .max = API_DELAY_MAX),
};

/* --- answer ------------------------------------------------------------------- */

enum {
	NOT_THERE = 320 /* bytes of the text */
};

static const char *
say_not_there(const struct state *s, char text[static NOT_THERE])
{
	(void)snprintf(text, NOT_THERE, "namespace %.*s has no queue %.*s", (int)s->namespace.n,
		       s->namespace.p, (int)s->queue.n, s->queue.p);
	return text;
}

/* Returns false if it refused the call. */
static bool
is_there(struct apicall *a)
{
	char text[NOT_THERE];

	if (!a->op.rc)
		return true;
	if (a->op.rc != SLU_ENOTFOUND) {
		apicall_refuse_op(a, &a->op);
		return false;
	}
	apicall_refuse(a, a->op.rc, say_not_there(a->state, text));
	return false;
}

static void
answer_list(struct apicall *a)
{
	flat_reply_queues(a, &((struct state *)a->state)->queuestats, "queues", flat_view_queue_details);
}

static void
answer_one(struct apicall *a)
{
	const struct state *const s = a->state;
	struct json_out w;

	if (!is_there(a))
		return;
	apicall_object(a, &w);
	flat_view_queue_details(&w, &s->queuestats.sum);
	queuestats_write_shards(&w, a, &s->queuestats);
	json_out_object(&w, "policy");
	flat_policy_encode(&a->op.policy, &w);
	json_out_close(&w);
	fanout_write(&w, a, &s->queuestats.missing);
	apicall_reply_object(a, &w, 200);
}

static void
write_state(struct json_out *w, bool paused, const struct pause_note *pause, bool draining)
{
	json_out_bool(w, "paused", paused);
	flat_view_pause(w, pause);
	if (draining)
		json_out_bool(w, "draining", true);
}

/* For OP_PAUSE and OP_PURGE. */
static void
answer_change(struct apicall *a)
{
	const struct state *const s = a->state;
	struct json_out w;

	if (a->op.rc == SLU_EBUSY && a->op.verb == OP_PURGE) {
		apicall_refuse(a, SLU_EBUSY, "the last purge is still being freed; try again");
		return;
	}
	if (!is_there(a))
		return;
	apicall_object(a, &w);
	flat_view_place(&w, s->namespace, s->queue);
	if (a->op.verb == OP_PURGE)
		json_out_u64(&w, "purged", a->op.count);
	else
		write_state(&w, a->op.policy.paused, &a->op.policy.pause, a->op.policy.draining);
	apicall_reply_object(a, &w, 200);
}

/* --- the calls ---------------------------------------------------------------- */

static void
list(struct apicall *a)
{
	struct state *const s = a->state;

	queuestats_queues(a, &s->queuestats, s->namespace, s->cursor, s->limit, answer_list);
}

/* handler.arg */
enum {
	PAUSE,
	DRAIN,
	RESUME,
	PURGE
};

/* Cuts a text that is too long for the room, between two characters. */
static void
take_text(struct slice text, char *out, size_t room)
{
	size_t n = text.n < room ? text.n : room - 1;

	while (n < text.n && n > 0 && ((unsigned char)text.p[n] & 0xc0) == 0x80)
		n--;
	if (n)
		memcpy(out, text.p, n);
}

static void
write_note(struct apicall *a, struct pause_note *out)
{
	const struct state *const s = a->state;
	const struct identity *const who = a->x->who;

	*out = (struct pause_note){ .until = s->time ? time_add(clock_wall(a->api->clock), s->time) : 0 };
	take_text(s->reason, out->reason, sizeof out->reason);
	if (who && who != identity_anyone())
		take_text(who->name, out->by, sizeof out->by);
}

static void
note(struct apicall *a, const struct state *s)
{
	struct policy after = { .paused = s->before.paused, .pause = s->before.pause, .draining = s->before.draining };
	struct change_note n;

	if (!change_begin(a, &n))
		return;
	op_set_pause(&after, &a->op.policy, a->op.sets);
	write_state(&n.before, s->before.paused, &s->before.pause, s->before.draining);
	write_state(&n.after, after.paused, &after.pause, after.draining);
	change_end(a, &n);
}

static void
found(struct apicall *a)
{
	static const uint8_t sets[] = {
		[PAUSE] = OP_SETS_PAUSE,
		[DRAIN] = OP_SETS_DRAIN,
		[RESUME] = OP_SETS_PAUSE | OP_SETS_DRAIN,
		[PURGE] = 0,
	};
	const struct state *const s = a->state;

	if (!is_there(a))
		return;
	apicall_op(a, &a->op, a->arg == PURGE ? OP_PURGE : OP_PAUSE, s->namespace, s->queue);
	a->op.sets = sets[a->arg];
	a->op.policy.paused = a->arg == PAUSE;
	a->op.policy.draining = a->arg == DRAIN;
	if (a->arg == PAUSE)
		write_note(a, &a->op.policy.pause);
	if (a->arg != PURGE)
		note(a, s);
	apicall_run(a, answer_change);
}

/* Finds the queue; `found` changes it. */
static void
change(struct apicall *a)
{
	struct state *const s = a->state;

	apicall_op(a, &a->op, OP_STATS, s->namespace, s->queue);
	a->op.queues = &s->before;
	a->op.max_queues = 1;
	apicall_run(a, found);
}

static void
stop(struct apicall *a)
{
	const struct state *const s = a->state;

	if (s->reason.n < PAUSE_REASON && (!s->reason.n || !memchr(s->reason.p, 0, s->reason.n)))
		change(a);
	else
		apicall_refuse(a, SLU_EINVAL, "invalid reason; expected a text of at most 200 bytes");
}

/* Has the counts of the queue; asks for its policy. */
static void
show(struct apicall *a)
{
	const struct state *const s = a->state;
	char text[NOT_THERE];

	if (queuestats_refused(a, &s->queuestats, say_not_there(s, text)))
		return;
	apicall_op(a, &a->op, OP_POLICY_GET, s->namespace, s->queue);
	apicall_run(a, answer_one);
}

static void
one(struct apicall *a)
{
	struct state *const s = a->state;

	queuestats_queue(a, &s->queuestats, s->namespace, s->queue, show);
}

const struct handler admin_queues = { list, sizeof(struct state), QUERY_ROWS(list_params) };
const struct handler admin_queue = { one, sizeof(struct state), QUERY_ROWS(one_params) };
const struct handler admin_pause = { stop, sizeof(struct state), BODY_ROWS(pause_params), .arg = PAUSE };
const struct handler admin_drain = { change, sizeof(struct state), BODY_ROWS(one_params), .arg = DRAIN };
const struct handler admin_resume = { change, sizeof(struct state), BODY_ROWS(one_params), .arg = RESUME };
const struct handler admin_purge = { change, sizeof(struct state), BODY_ROWS(one_params), .arg = PURGE };
