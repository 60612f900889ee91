/*
 * limits.c - what a queue uses of its limits, its shares and its holds; and holds that an operator sets or ends.
 *
 *      {"namespace":"default", "queue":"jobs", "shares":2, "values":0, "on_hold":1,
 *       "limits":[{"scope":"queue", "leased":3, "concurrency":10, "rate":5, "burst":5, "tokens":2, ...},
 *                 {"scope":"share", "name":"alice", ...}],
 *       "holds":[{"scope":"key", "name":"customer-7", "until":"..."}], "cursor":"17"}
 */
#include "api/admin/admin.h"

#include "api/audit/change.h"
#include "form/retry.h"
#include "api/flat/view.h"
#include "api/handler.h"
#include "api/limits.h"
#include "engine/why_text.h"

#include <stdio.h>

struct state {
	struct slice namespace;
	struct slice queue;
	struct slice order; /* only for limits */
	uint64_t cursor;
	struct slice scope; /* only for hold */
	struct slice name;
	slu_time hold;
	struct slice breaker; /* only for breaker */
	struct slice state;
};

static const struct param limits_params[] = {
	PARAM_QUEUE(struct state),
	PARAM(word, struct state, order),
	PARAM(number, struct state, cursor),
};

static const struct param hold_params[] = {
	PARAM_QUEUE(struct state),
	PARAM(word, struct state, scope, .required = true),
	PARAM(word, struct state, name),
	PARAM_ROW("for", span, struct state, hold, .max = API_DELAY_MAX),
};

/* Returns whether it refused the call. */
static bool
is_refused(struct apicall *a)
{
	const struct state *const s = a->state;
	char text[320];

	if (!a->op.rc)
		return false;
	(void)snprintf(text, sizeof text, "namespace %.*s has no queue %.*s", (int)s->namespace.n, s->namespace.p,
		       (int)s->queue.n, s->queue.p);
	if (a->op.rc == SLU_ENOTFOUND)
		apicall_refuse(a, a->op.rc, text);
	else
		apicall_refuse_op(a, &a->op);
	return true;
}

/* ---- Limits ---- */

static void
open_scope(struct json_out *w, const struct op_use *u)
{
	json_out_object(w, NULL);
	json_out_str(w, "scope", slice_of(why_scope(u->kind)));
	if (u->name[0])
		json_out_str(w, "name", slice_of(u->name));
}

static void
write_use(struct json_out *w, const struct op_use *u)
{
	open_scope(w, u);
	json_out_u64(w, "messages", u->messages);
	json_out_u64(w, "ready", u->ready);
	json_out_u64(w, "leased", u->leased);
	json_out_u64(w, "concurrency", u->concurrency);
	json_out_u64(w, "rate", u->rate);
	json_out_u64(w, "burst", u->burst);
	json_out_u64(w, "tokens", u->tokens);
	if (u->kind == GATE_SHARE) {
		json_out_u64(w, "weight", u->weight);
		json_out_u64(w, "delivered", u->delivered);
	}
	if (u->oldest)
		json_out_u64(w, "oldest_ready_ms", (uint64_t)(u->oldest / SLU_MS));
	if (u->until)
		json_out_time(w, "next_delivery", u->until);
	if (u->hold)
		json_out_time(w, "hold_until", u->hold);
	json_out_close(w);
}

static void
write_kind(struct json_out *w, const struct op_use *u)
{
	json_out_object(w, NULL);
	json_out_str(w, "kind", kind_of_line(slice_of(u->name)));
	json_out_u64(w, "messages", u->messages);
	json_out_u64(w, "ready", u->ready);
	json_out_u64(w, "leased", u->leased);
	json_out_u64(w, "consumers_waiting", u->waiting);
	json_out_close(w);
}

static void
write_kinds(struct json_out *w, const struct op *op)
{
	json_out_array(w, "kinds");
	for (uint32_t i = 0; i < op->n_uses; i++)
		if (kind_is(slice_of(op->uses[i].name)))
			write_kind(w, &op->uses[i]);
	json_out_close(w);
}

static void
write_hold(struct json_out *w, const struct op_use *u)
{
	open_scope(w, u);
	json_out_time(w, "until", u->hold);
	json_out_close(w);
}

static void
write_circuit(struct json_out *w, const struct op_use *u)
{
	json_out_object(w, NULL);
	json_out_str(w, "breaker", slice_of(u->breaker));
	json_out_str(w, "scope", slice_of(why_scope(u->kind)));
	if (u->name[0])
		json_out_str(w, "name", slice_of(u->name));
	json_out_str(w, "state", u->circuit == CIRCUIT_OPEN ? SLICE("open") : SLICE("half-open"));
	json_out_bool(w, "probing", u->probed);
	json_out_time(w, "until", u->until);
	json_out_close(w);
}

static void
answer_limits(struct apicall *a)
{
	const struct state *const s = a->state;
	const struct op *const op = &a->op;
	struct json_out w;

	if (is_refused(a))
		return;
	apicall_object(a, &w);
	flat_view_place(&w, s->namespace, s->queue);
	json_out_u64(&w, "shares", op->limits.shares);
	json_out_u64(&w, "values", op->limits.values);
	json_out_u64(&w, "on_hold", op->limits.holds);
	json_out_u64(&w, "broken", op->limits.circuits);
	if (op->limits.by_kind)
		write_kinds(&w, op);
	json_out_array(&w, "limits");
	for (uint32_t i = 0; i < op->n_uses; i++)
		if (!op->uses[i].is_hold && !op->uses[i].circuit && !op->limits.by_kind && (op->uses[i].kind != GATE_QUEUE || !op->limits.by_messages))
			write_use(&w, &op->uses[i]);
	json_out_close(&w);
	json_out_array(&w, "holds");
	for (uint32_t i = 0; i < op->n_uses; i++)
		if (op->uses[i].is_hold)
			write_hold(&w, &op->uses[i]);
	json_out_close(&w);
	json_out_array(&w, "breakers");
	for (uint32_t i = 0; i < op->n_uses; i++)
		if (op->uses[i].circuit)
			write_circuit(&w, &op->uses[i]);
	json_out_close(&w);
	flat_view_cursor(&w, op->cursor);
	apicall_reply_object(a, &w, 200);
}

static void
limits(struct apicall *a)
{
	const struct state *const s = a->state;
	const bool by_messages = slice_eq(s->order, SLICE("messages")), by_kind = slice_eq(s->order, SLICE("kind"));

	if (s->order.n && !by_messages && !by_kind && !slice_eq(s->order, SLICE("limit"))) {
		apicall_refuse(a, SLU_EINVAL, "invalid order; expected limit, messages or kind");
		return;
	}
	apicall_op(a, &a->op, OP_LIMITS, s->namespace, s->queue);
	a->op.limits.by_messages = by_messages;
	a->op.limits.by_kind = by_kind;
	a->op.cursor = s->cursor;
	a->op.max_uses = by_kind ? OP_USES_KINDS : 1 + OP_USES_SHARES + OP_USES_VALUES + OP_USES_CIRCUITS + OP_USES_HOLDS;
	a->op.uses = arena_array(&a->memory, a->op.max_uses, sizeof *a->op.uses);
	if (a->op.uses)
		apicall_run(a, answer_limits);
	else
		apicall_refuse(a, SLU_ENOMEM, NULL);
}

/* ---- Holds ---- */

static void
answer_hold(struct apicall *a)
{
	const struct state *const s = a->state;
	struct json_out w;

	if (is_refused(a))
		return;
	apicall_object(a, &w);
	flat_view_place(&w, s->namespace, s->queue);
	json_out_str(&w, "scope", s->scope);
	if (s->name.n)
		json_out_str(&w, "name", s->name);
	json_out_bool(&w, "on_hold", a->op.limits.until != 0);
	if (a->op.limits.until)
		json_out_time(&w, "until", a->op.limits.until);
	apicall_reply_object(a, &w, 200);
}

/* Returns why the question is refused, or NULL. */
static const char *
read_scope(const struct state *s, struct op_limits *out)
{
	out->scope = 0;
	while (out->scope < GATE_KINDS && !slice_eq(s->scope, slice_of(why_scope(out->scope))))
		out->scope++;
	if (out->scope == GATE_KINDS)
		return "invalid scope; expected queue, share, key or attribute";
	if (out->scope == GATE_QUEUE && s->name.n)
		return "invalid name; expected none with scope queue";
	if (out->scope == GATE_KEY && !s->name.n)
		return "invalid name; expected the key with scope key";
	if (out->scope == GATE_VALUE && !s->name.n)
		return "invalid name; expected the value with scope attribute";
	if (s->name.n > MESSAGE_KEY_MAX)
		return "invalid name; expected at most 256 bytes";
	out->name = s->name;
	out->hold = s->hold;
	return NULL;
}

/* Not the name: keys and attributes are not for the audit file. */
static void
note(struct apicall *a, const struct state *s)
{
	struct change_note n;

	if (!change_begin(a, &n))
		return;
	if (s->scope.n)
		json_out_str(&n.after, "scope", s->scope);
	if (s->breaker.n)
		json_out_str(&n.after, "breaker", s->breaker);
	form_span_write(&n.after, "for", s->hold);
	change_end(a, &n);
}

static void
hold(struct apicall *a)
{
	const struct state *const s = a->state;
	const char *wrong;

	apicall_op(a, &a->op, OP_HOLD, s->namespace, s->queue);
	wrong = read_scope(s, &a->op.limits);
	if (wrong) {
		apicall_refuse(a, SLU_EINVAL, wrong);
		return;
	}
	note(a, s);
	apicall_run(a, answer_hold);
}

/* ---- Breakers ---- */

static void
answer_breaker(struct apicall *a)
{
	const struct state *const s = a->state;
	struct json_out w;

	if (a->op.rc == SLU_ENOTFOUND) {
		apicall_refuse(a, SLU_ENOTFOUND, "no such queue, or the queue has no breaker of this name and scope");
		return;
	}
	if (is_refused(a))
		return;
	apicall_object(a, &w);
	flat_view_place(&w, s->namespace, s->queue);
	json_out_str(&w, "breaker", s->breaker);
	json_out_str(&w, "scope", s->scope.n ? s->scope : SLICE("queue"));
	if (s->name.n)
		json_out_str(&w, "name", s->name);
	json_out_str(&w, "state", a->op.limits.until ? SLICE("open") : SLICE("closed"));
	if (a->op.limits.until)
		json_out_time(&w, "until", a->op.limits.until);
	apicall_reply_object(a, &w, 200);
}

static void
breaker(struct apicall *a)
{
	struct state *const s = a->state;
	const bool open = slice_eq(s->state, SLICE("open"));
	const char *wrong = NULL;

	apicall_op(a, &a->op, OP_HOLD, s->namespace, s->queue);
	if (s->scope.n)
		wrong = read_scope(s, &a->op.limits);
	if (!wrong && (!s->breaker.n || s->breaker.n >= BREAKER_NAME))
		wrong = "invalid breaker; expected its name";
	if (!wrong && !open && !slice_eq(s->state, SLICE("closed")))
		wrong = "invalid state; expected open or closed";
	if (!wrong && open != (s->hold > 0))
		wrong = "invalid for; expected how long with state open, none with closed";
	if (wrong) {
		apicall_refuse(a, SLU_EINVAL, wrong);
		return;
	}
	a->op.limits.breaker = s->breaker;
	a->op.limits.hold = s->hold;
	note(a, s);
	apicall_run(a, answer_breaker);
}

static const struct param breaker_params[] = {
	PARAM_QUEUE(struct state),
	PARAM(word, struct state, breaker, .required = true),
	PARAM(word, struct state, state, .required = true),
	PARAM(word, struct state, scope),
	PARAM(word, struct state, name),
	PARAM_ROW("for", span, struct state, hold, .max = API_DELAY_MAX),
};

const struct handler admin_breaker = { breaker, sizeof(struct state), BODY_ROWS(breaker_params) };
const struct handler admin_limits = { limits, sizeof(struct state), QUERY_ROWS(limits_params) };
const struct handler admin_hold = { hold, sizeof(struct state), BODY_ROWS(hold_params) };
