#include "engine/why_text.h"

#include "base/rfc3339.h"
#include "core/queue/holders.h"

#include <inttypes.h>
#include <stdio.h>

typedef void text_fn(const struct why_fact *f, struct slice holder, char *out);

static const char *
moment(const struct why_fact *f, char text[static RFC3339_TEXT])
{
	return rfc3339_format(f->until, text);
}

/* " by HOLDER", or nothing. */
static void
add_holder(struct slice holder, char *out, size_t size)
{
	if (holder.n)
		(void)snprintf(out, size, " by %.*s", (int)(holder.n < HOLDER_MAX ? holder.n : HOLDER_MAX), holder.p);
}

static void
text_leased(const struct why_fact *f, struct slice holder, char *out)
{
	char at[RFC3339_TEXT], by[HOLDER_MAX + 8] = "";

	add_holder(holder, by, sizeof by);
	(void)snprintf(out, WHY_TEXT, "leased%s until %s", by, moment(f, at));
}

static const char *const deaths[] = {
	[DEAD_MAX_ATTEMPTS] = "max_attempts reached",
	[DEAD_EXPIRED] = "its ttl ended",
	[DEAD_REJECTED] = "rejected by a consumer",
};

static void
text_dead(const struct why_fact *f, struct slice holder, char *out)
{
	const char *const death = f->n < sizeof deaths / sizeof deaths[0] ? deaths[f->n] : NULL;
	char at[RFC3339_TEXT];

	(void)holder;
	(void)snprintf(out, WHY_TEXT, "dead letter since %s: %s", moment(f, at), death ? death : "unknown reason");
}

static void
text_delayed(const struct why_fact *f, struct slice holder, char *out)
{
	char at[RFC3339_TEXT];

	(void)holder;
	(void)snprintf(out, WHY_TEXT, "delayed until %s", moment(f, at));
}

static void
text_retry(const struct why_fact *f, struct slice holder, char *out)
{
	char at[RFC3339_TEXT];

	(void)holder;
	(void)snprintf(out, WHY_TEXT, "delivered %" PRIu64 " times; the retry is at %s", f->n, moment(f, at));
}

static void
text_behind(const struct why_fact *f, struct slice holder, char *out)
{
	char at[RFC3339_TEXT], by[HOLDER_MAX + 8] = "";
	int n = snprintf(out, WHY_TEXT, "behind message %" PRIu64 " of its key, which is ", f->id);

	add_holder(holder, by, sizeof by);
	if (f->state == MSG_LEASED)
		n += snprintf(out + n, (size_t)(WHY_TEXT - n), "leased%s until %s", by, moment(f, at));
	else if (f->state == MSG_DELAYED)
		n += snprintf(out + n, (size_t)(WHY_TEXT - n), "due at %s", moment(f, at));
	else
		n += snprintf(out + n, (size_t)(WHY_TEXT - n), "ready");
	if (f->n > WHY_COUNT)
		(void)snprintf(out + n, (size_t)(WHY_TEXT - n), "; more than %d messages of the key are before it",
			       WHY_COUNT);
	else if (f->n > 1)
		(void)snprintf(out + n, (size_t)(WHY_TEXT - n), "; %" PRIu64 " messages of the key are before it",
			       f->n);
}

static void
text_ahead(const struct why_fact *f, struct slice holder, char *out)
{
	(void)holder;
	if (f->n > WHY_COUNT)
		(void)snprintf(out, WHY_TEXT, "more than %d messages are ahead", WHY_COUNT);
	else
		(void)snprintf(out, WHY_TEXT, "%" PRIu64 " message%s ahead", f->n, f->n == 1 ? " is" : "s are");
}

const char *
why_scope(uint64_t kind)
{
	static const char *const scopes[] = {
		[GATE_QUEUE] = "queue",
		[GATE_SHARE] = "share",
		[GATE_KEY] = "key",
		[GATE_VALUE] = "attribute",
	};

	return kind < sizeof scopes / sizeof scopes[0] ? scopes[kind] : "scope of a later version";
}

static void
text_limit(const struct why_fact *f, struct slice holder, char *out)
{
	(void)holder;
	(void)snprintf(out, WHY_TEXT, "its %s has %" PRIu64 " leased message%s, the limit", why_scope(f->state), f->n,
		       f->n == 1 ? "" : "s");
}

static void
text_rate(const struct why_fact *f, struct slice holder, char *out)
{
	char at[RFC3339_TEXT];

	(void)holder;
	(void)snprintf(out, WHY_TEXT, "its %s has had its deliveries, %" PRIu64 " a second; the next is at %s", why_scope(f->state), f->n,
		       moment(f, at));
}

static void
text_hold(const struct why_fact *f, struct slice holder, char *out)
{
	char at[RFC3339_TEXT];

	(void)holder;
	(void)snprintf(out, WHY_TEXT, "its %s is on hold until %s", why_scope(f->state), moment(f, at));
}

static void
text_breaker(const struct why_fact *f, struct slice holder, char *out)
{
	char at[RFC3339_TEXT];

	(void)holder;
	if (f->until)
		(void)snprintf(out, WHY_TEXT, "a breaker of its %s is open until %s", why_scope(f->state), moment(f, at));
	else
		(void)snprintf(out, WHY_TEXT, "a breaker of its %s is half-open: one message is being tried", why_scope(f->state));
}

/* One row for each reason: its name, and its text or the function that writes it. */
static const struct {
	const char *name;
	const char *text;
	text_fn *write;
} rows[WHYS] = {
	[WHY_NEXT] = { "next", "next to be delivered", NULL },
	[WHY_LEASED] = { "leased", NULL, text_leased },
	[WHY_DEAD] = { "dead", NULL, text_dead },
	[WHY_DAMAGED] = { "damaged", "in quarantine: its stored bytes cannot be read", NULL },
	[WHY_MOVING] = { "moving", "on its way to another shard", NULL },
	[WHY_PAUSED] = { "paused", "the queue is paused", NULL },
	[WHY_DELAYED] = { "delayed", NULL, text_delayed },
	[WHY_RETRY] = { "retry", NULL, text_retry },
	[WHY_BEHIND] = { "behind", NULL, text_behind },
	[WHY_AHEAD] = { "ahead", NULL, text_ahead },
	[WHY_NO_CONSUMER] = { "no_consumer", "no consumer is waiting", NULL },
	[WHY_DOWN] = { "down", "its shard does not answer", NULL },
	[WHY_LIMIT] = { "limit", NULL, text_limit },
	[WHY_HOLD] = { "hold", NULL, text_hold },
	[WHY_RATE] = { "rate", NULL, text_rate },
	[WHY_BREAKER] = { "breaker", NULL, text_breaker },
};

const char *
why_name(uint64_t why)
{
	return why < WHYS ? rows[why].name : "unknown";
}

const char *
why_text(const struct why_fact *f, struct slice holder, char out[static WHY_TEXT])
{
	if (f->why < WHYS && rows[f->why].write)
		rows[f->why].write(f, holder, out);
	else
		(void)snprintf(out, WHY_TEXT, "%s", f->why < WHYS ? rows[f->why].text : "a reason of a later version");
	return out;
}

/* "the queue is paused by alice because of the release until 2026-11-19T12:00:00Z" */
static const char *
text_paused(const struct pause_note *p, char out[static WHY_TEXT])
{
	char at[RFC3339_TEXT];
	const bool by = p->by[0], because = p->reason[0];

	(void)snprintf(out, WHY_TEXT, "the queue is paused%s%s%s%s%s%s", by ? " by " : "", p->by, because ? " because " : "", p->reason,
		       p->until ? " until " : "", p->until ? rfc3339_format(p->until, at) : "");
	return out;
}

const char *
why_text_of(const struct op *op, const struct why_fact *f, char out[static WHY_TEXT])
{
	if (f->why == WHY_PAUSED && op->n_queues)
		return text_paused(&op->queues->pause, out);
	if (f->why != WHY_NO_CONSUMER || !op->kind[0])
		return why_text(f, why_holder(op, f), out);
	(void)snprintf(out, WHY_TEXT, "no consumer of kind %s is waiting", op->kind);
	return out;
}

struct slice
why_holder(const struct op *op, const struct why_fact *f)
{
	const uint32_t i = f->why == WHY_BEHIND ? 1 : 0;
	const struct shared_text *const holder = i < op->n_rows ? op->rows[i].holder : NULL;

	return holder ? holder_name(shared_text_slice(holder)) : (struct slice){ 0 };
}
