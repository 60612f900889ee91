#include "torture/check_private.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
const struct check_rule check_rules[] = {
	{ "I1", "kept", "an accepted message is acked once or still there", .message = rule_kept },
	{ "I1", "had", "a message that is there can be taken", .message = rule_had },
	{ "I1", "bytes", "a message has the bytes that were sent", .message = rule_bytes },
	{ "I1", "sent", "no message exists that was not sent, or was refused", .name_line = rule_sent },
	{ "I2", "once", "a message sent once, or with one idempotency key, exists once", .name_line = rule_once },
	{ "I3", "final", "a message is not delivered, or found, after its ack", .message = rule_final },
	{ "I4", "lease", "a message has one lease at a time", .message = rule_overlap },
	{ "I4", "key", "a key has one lease at a time", .key = rule_key_overlap },
	{ "I4", "unique", "a token is given once, also over restarts", .whole = rule_unique },
	{ "I4", "rising", "the tokens of a message rise", .message = rule_rising },
	{ "I4", "key-rising", "the tokens of a key rise", .key = rule_key_rising },
	{ "I4", "attempts", "every delivery of a message is counted", .message = rule_attempts },
	{ "I5", "stale", "a token that is not the current one changes nothing", .message = rule_stale },
	{ "I6", "order", "the first deliveries of a key come in the order (due, acceptance)", .key = rule_order },
	{ "I7", "due", "a message is not delivered before it is due", .message = rule_due },
	{ "I8", "place", "a message is in one place", .message = rule_place },
	{ "I8", "dead", "the list of dead letters equals a scan", .message = rule_dead },
	{ "I8", "buried", "a dead letter is not delivered until it is redriven", .message = rule_buried },
	{ "I8", "limit", "a message is not delivered after its last failure", .message = rule_limit },
	{ "I9", "counters", "the counters equal a scan", .whole = rule_counters },
	{ "I11", "share", "a message waits for its share's part of the deliveries, and no longer", .whole = rule_share },
	{ "I12", "concurrency", "no limit of leased messages is exceeded", .whole = rule_concurrency },
	{ "I12", "rate", "no rate is exceeded by the server's time", .whole = rule_rate },
	{ "I13", "atomic", "an ack that enqueues happens whole or not at all", .whole = rule_atomic },
	{ "I14", "batch", "a batch that is closed calls back once", .whole = rule_batch },
	{ "I15", "schedule", "a schedule fires once a tick", .whole = rule_schedule },
	{ "I4", "lock", "a lock has one holder at a time", .lock = rule_lock },
	{ "I4", "lock-rising", "the tokens of a lock rise, also over restarts", .lock = rule_lock_rising },
	{ "I5", "lock-stale", "a client that lost a lock changes nothing", .lock = rule_lock_stale },
	{ "I1", "state", "a committed value of a lock's state stays", .lock = rule_state },
	{ "I10", "exit", "the server ends when it is stopped, and cleanly", .whole = rule_exit },
	{ "I10", "bounded", "open files and memory of the server stay bounded", .whole = rule_bounded },
	{ 0 }
};
/* clang-format on */

_Static_assert(sizeof check_rules / sizeof check_rules[0] <= CHECK_RULES, "CHECK_RULES");

/* --- findings ------------------------------------------------------------------- */

static int
by_time(const void *a, const void *b)
{
	const struct event *x = *(const struct event *const *)a;
	const struct event *y = *(const struct event *const *)b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void
found(struct check *c, struct event_list events, const char *fmt, va_list ap)
{
	struct finding *f = &c->found[c->rule - check_rules];
	const size_t n = events.n < CHECK_EVIDENCE ? events.n : CHECK_EVIDENCE;

	c->n_found++;
	if (f->n++ > 0 && f->n_events <= n)
		return;
	(void)vsnprintf(f->text, sizeof f->text, fmt, ap); /* cut is fine */
	for (size_t i = 0; i < n; i++)
		f->events[i] = events.at[i];
	f->n_events = n;
	qsort(f->events, n, sizeof(void *), by_time);
}

void
check_found(struct check *c, struct event_list events, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	found(c, events, fmt, ap);
	va_end(ap);
}

void
check_pair(struct check *c, const struct event *a, const struct event *b, const char *fmt, ...)
{
	const struct event *events[] = { a, b };
	va_list ap;

	va_start(ap, fmt);
	found(c, (struct event_list){ events, 2 }, fmt, ap);
	va_end(ap);
}

const struct check_rule *
check_worst(const struct check *c)
{
	const struct check_rule *worst = NULL;

	for (const struct check_rule *r = check_rules; r->id; r++) {
		const struct finding *f = &c->found[r - check_rules];

		if (f->n && (!worst || f->n_events < c->found[worst - check_rules].n_events))
			worst = r;
	}
	return worst;
}

/* --- the index ------------------------------------------------------------------ */

#define ORDER(a, b)                                \
	do {                                       \
		if ((a) != (b))                    \
			return (a) < (b) ? -1 : 1; \
	} while (0)

/* Sorts claims by token: the order in which the server gave them. */
static int
by_message(const void *a, const void *b)
{
	const struct event *x = *(const struct event *const *)a;
	const struct event *y = *(const struct event *const *)b;

	ORDER(x->id, y->id);
	ORDER(x->kind, y->kind);
	if (x->kind == EVENT_CLAIM)
		ORDER(x->token, y->token);
	return by_time(a, b);
}

static int
by_key(const void *a, const void *b)
{
	const struct event *x = *(const struct event *const *)a;
	const struct event *y = *(const struct event *const *)b;

	ORDER(x->key, y->key);
	ORDER(x->token, y->token);
	return by_time(a, b);
}

static int
by_name(const void *a, const void *b)
{
	const struct event *x = *(const struct event *const *)a;
	const struct event *y = *(const struct event *const *)b;

	ORDER(x->name, y->name);
	return by_time(a, b);
}

static int
by_token(const void *a, const void *b)
{
	const struct event *x = *(const struct event *const *)a;
	const struct event *y = *(const struct event *const *)b;

	ORDER(x->token, y->token);
	return by_time(a, b);
}

/* Does the event have the name of a message? */
static bool
is_named(const struct event *e)
{
	return e->kind == EVENT_PUSH || e->kind == EVENT_CLAIM || e->kind == EVENT_ROW;
}

static bool
is_of_message(const struct event *e)
{
	return e->id && e->kind <= EVENT_DEAD;
}

static void
fill(struct check *c)
{
	const struct history *h = c->history;

	for (size_t i = 0; i < h->n; i++) {
		const struct event *e = &h->events[i];

		if (is_of_message(e))
			c->by_message[c->n_messages++] = e;
		if (e->kind == EVENT_CLAIM)
			c->by_token[c->n_tokens++] = e;
		if (e->kind == EVENT_CLAIM && e->key)
			c->by_key[c->n_keys++] = e;
		if (e->kind >= EVENT_ACQUIRE)
			c->by_lock[c->n_locks++] = e;
		if (is_named(e) && e->name)
			c->by_name[c->n_names++] = e;
		if (e->kind == EVENT_REDRIVE && e->start < c->redriven)
			c->redriven = e->start;
	}
	qsort(c->by_message, c->n_messages, sizeof(void *), by_message);
	qsort(c->by_key, c->n_keys, sizeof(void *), by_key);
	qsort(c->by_name, c->n_names, sizeof(void *), by_name);
	qsort(c->by_lock, c->n_locks, sizeof(void *), by_key);
	qsort(c->by_token, c->n_tokens, sizeof(void *), by_token);
}

/* The events from `at` on that belong to one message, key or name. */
static struct event_list
run_of(const struct event **events, size_t n, size_t at, size_t offset, size_t size)
{
	size_t end = at + 1;

	while (end < n && memcmp((const char *)events[end] + offset,
				 (const char *)events[at] + offset, size) == 0)
		end++;
	return (struct event_list){ events + at, end - at };
}

#define RUN(events, n, at, member)                            \
	run_of(events, n, at, offsetof(struct event, member), \
	       sizeof((struct event *)NULL)->member)

static struct torture_message
message_of(struct event_list all)
{
	struct torture_message m = { .id = all.at[0]->id, .all = all };

	EACH_EVENT(e, all)
	{
		struct event_list *of = &m.of[(*e)->kind];

		if (of->n++ == 0)
			of->at = e;
	}
	return m;
}

size_t
check_next_message(const struct check *c, size_t i, struct torture_message *out)
{
	*out = message_of(RUN(c->by_message, c->n_messages, i, id));
	return i + out->all.n;
}

struct event_list
check_name(const struct check *c, uint64_t name)
{
	size_t from = 0, n = c->n_names;

	while (n > 0) { /* the first event with this name or a higher one */
		const size_t half = n / 2;

		if (c->by_name[from + half]->name < name) {
			from += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	if (from == c->n_names || c->by_name[from]->name != name)
		return (struct event_list){ NULL, 0 };
	return RUN(c->by_name, c->n_names, from, name);
}

/* Finds the first try of each push, and the push of each claim. */
static void
note_names(struct check *c)
{
	for (size_t i = 0; i < c->n_names;) {
		const struct event_list all = RUN(c->by_name, c->n_names, i, name);
		slu_time began = SLU_NEVER;

		EACH_EVENT(e, all)
		{
			if ((*e)->kind != EVENT_PUSH || (*e)->outcome == OUTCOME_FAILED)
				continue;
			began = (*e)->start < began ? (*e)->start : began;
			check_note(c, *e)->began = began;
		}
		i += all.n;
	}
}

/* A settle without an answer may have ended the lease, or shortened it. */
static slu_time
lease_end(const struct torture_message *m, const struct event *claim)
{
	slu_time until = claim->until;

	for (int kind = EVENT_ACK; kind <= EVENT_EXTEND; kind++)
		EACH_EVENT(e, m->of[kind])
		{
			if ((*e)->token != claim->token)
				continue;
			if ((*e)->outcome == OUTCOME_UNKNOWN ||
			    (kind != EVENT_EXTEND && (*e)->outcome == OUTCOME_OK))
				return 0;
			if ((*e)->outcome == OUTCOME_OK)
				until = (*e)->until;
		}
	return until;
}

static void
note_claims(struct check *c, const struct torture_message *m)
{
	const struct event *push = NULL;

	EACH_EVENT(e, m->of[EVENT_PUSH])
	if ((*e)->outcome == OUTCOME_OK && !push)
		push = *e;
	EACH_EVENT(e, m->of[EVENT_CLAIM])
	*check_note(c, *e) = (struct check_note){
		.push = push,
		.is_first = e == m->of[EVENT_CLAIM].at,
		.lease_end = lease_end(m, *e),
	};
}

static int
make_index(struct check *c, struct slu_err *err)
{
	const size_t n = c->history->n + 1;

	c->by_message = mem_array(n, sizeof(void *));
	c->by_key = mem_array(n, sizeof(void *));
	c->by_name = mem_array(n, sizeof(void *));
	c->by_token = mem_array(n, sizeof(void *));
	c->by_lock = mem_array(n, sizeof(void *));
	c->notes = mem_array(n, sizeof *c->notes);
	if (!c->by_message || !c->by_key || !c->by_name || !c->by_token || !c->by_lock ||
	    !c->notes)
		return slu_fail(err, SLU_ENOMEM, "no memory to check %zu events", n - 1);
	fill(c);
	note_names(c);
	for (size_t i = 0; i < c->n_messages;) {
		const struct torture_message m = message_of(RUN(c->by_message, c->n_messages, i, id));

		note_claims(c, &m);
		i += m.all.n;
	}
	return 0;
}

/* --- the rules ------------------------------------------------------------------ */

static void
apply(struct check *c)
{
	const struct check_rule *r = c->rule;

	for (size_t i = 0; r->message && i < c->n_messages;) {
		const struct torture_message m = message_of(RUN(c->by_message, c->n_messages, i, id));

		r->message(c, &m);
		i += m.all.n;
	}
	for (size_t i = 0; r->key && i < c->n_keys;) {
		const struct event_list claims = RUN(c->by_key, c->n_keys, i, key);

		r->key(c, claims);
		i += claims.n;
	}
	for (size_t i = 0; r->lock && i < c->n_locks;) {
		const struct event_list all = RUN(c->by_lock, c->n_locks, i, key);

		r->lock(c, all);
		i += all.n;
	}
	for (size_t i = 0; r->name_line && i < c->n_names;) {
		const struct event_list all = RUN(c->by_name, c->n_names, i, name);

		r->name_line(c, all);
		i += all.n;
	}
	if (r->whole)
		r->whole(c);
}

void
check_init(struct check *c, const struct history *h)
{
	*c = (struct check){ .history = h, .redriven = SLU_NEVER };
}

void
check_release(struct check *c)
{
	mem_free(c->by_message);
	mem_free(c->by_key);
	mem_free(c->by_name);
	mem_free(c->by_token);
	mem_free(c->by_lock);
	mem_free(c->notes);
	*c = (struct check){ 0 };
}

int
check_run(struct check *c, struct slu_err *err)
{
	int rc;

	if (c->history->overflown)
		return slu_fail(err, SLU_EINVAL, "the history is full: events are missing");
	if (c->history->n_looks == 0)
		return slu_fail(err, SLU_EINVAL, "the history does not end with a look");
	rc = make_index(c, err);
	for (c->rule = check_rules; !rc && c->rule->id; c->rule++)
		apply(c);
	return rc;
}
