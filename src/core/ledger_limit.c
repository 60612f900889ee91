/*
 * ledger_limit.c - how fast a queue takes messages, and when it has too many.
 */
#include "core/message.h"

#include "core/ledger_in.h"

#include <assert.h>

void
ledger_set_limits(struct ledger *l, const struct ledger_limits *limits)
{
	if (limits->idle != l->limits.idle)
		l->look_at = 0; /* it may be shorter */
	l->limits = *limits;
}

bool
ledger_has_rates(const struct ledger *l)
{
	return l->limits.rate.rate || l->rated;
}

struct bucket_rule
ledger_rate(const struct ledger *l, uint32_t queue)
{
	const struct policy *const p = &ledger_topic(l, queue)->policy;

	if (p->max_rate)
		return (struct bucket_rule){ p->max_rate, p->burst };
	return l->limits.rate;
}

slu_time
ledger_rate_wait(const struct ledger *l, uint32_t queue, uint32_t n, slu_time now)
{
	const struct bucket_rule rule = ledger_rate(l, queue);

	return rule.rate ? bucket_wait(&rule, ledger_topic(l, queue)->full, n, now) : 0;
}

void
ledger_rate_take(struct ledger *l, uint32_t queue, uint32_t n, slu_time now)
{
	const struct bucket_rule rule = ledger_rate(l, queue);
	struct topic *const t = ledger_topic(l, queue);

	if (rule.rate)
		t->full = bucket_take(&rule, t->full, n, now);
}

/* Depth */

void
ledger_weigh(struct ledger *l, struct topic *t)
{
	if (t->weighed || (!t->policy.warn_depth && !t->deep))
		return;
	t->weighed = true;
	t->next_weighed = l->weighed;
	l->weighed = t->handle;
}

static bool
is_deep(const struct topic *t)
{
	const uint64_t depth = ledger_depth(t), warn = t->policy.warn_depth;

	if (warn == 0)
		return false;
	return t->deep ? 5 * depth > 4 * warn : depth > warn;
}

uint32_t
ledger_deep(struct ledger *l, bool *deep)
{
	while (l->weighed != SLAB_NONE) {
		struct topic *t = ledger_topic(l, l->weighed);

		l->weighed = t->next_weighed;
		t->weighed = false;
		*deep = is_deep(t);
		if (*deep == t->deep)
			continue;
		t->deep = *deep;
		return t->handle;
	}
	return SLAB_NONE;
}

/* ---- Namespaces ---- */

void
ledger_space_add(struct ledger *l, uint32_t space, uint64_t messages, uint64_t bytes,
		 uint32_t queues)
{
	struct space *s = slab_at(&l->spaces, space);

	s->messages += messages;
	s->bytes += bytes;
	s->queues += queues;
	if (s->changed)
		return;
	s->changed = true;
	s->next_changed = l->changed;
	l->changed = space;
}

uint32_t
ledger_space_changed(struct ledger *l)
{
	const uint32_t space = l->changed;
	struct space *s;

	if (space == SLAB_NONE)
		return SLAB_NONE;
	s = slab_at(&l->spaces, space);
	l->changed = s->next_changed;
	s->changed = false;
	return space;
}

void
ledger_space_get(const struct ledger *l, uint32_t space, struct ledger_space *out)
{
	const struct space *s = slab_at(&l->spaces, space);

	*out = (struct ledger_space){
		.name = s->name,
		.messages = s->messages,
		.bytes = s->bytes,
		.queues = s->queues,
	};
}
