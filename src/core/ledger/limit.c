/*
 * limit.c - rates and depths of queues, and the numbers of namespaces.
 */
#include "core/queue/message.h"

#include "core/ledger/ledger_private.h"

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
	const struct policy *const p = ledger_queue(l, queue)->policy;

	if (ledger_is_elsewhere(l, queue, 0))
		return (struct bucket_rule){ 0 };
	if (p->max_rate)
		return (struct bucket_rule){ p->max_rate, p->burst };
	return l->limits.rate;
}

slu_time
ledger_rate_wait(const struct ledger *l, uint32_t queue, uint32_t n, slu_time now)
{
	const struct bucket_rule rule = ledger_rate(l, queue);

	return rule.rate ? bucket_wait(&rule, ledger_queue(l, queue)->full, n, now) : 0;
}

void
ledger_rate_take(struct ledger *l, uint32_t queue, uint32_t n, slu_time now)
{
	const struct bucket_rule rule = ledger_rate(l, queue);
	struct ledger_queue *const q = ledger_queue(l, queue);

	if (rule.rate)
		q->full = bucket_take(&rule, q->full, n, now);
}

/* Depth */

void
ledger_list_weighed(struct ledger *l, struct ledger_queue *q)
{
	q->weighed = true;
	q->next_weighed = l->weighed;
	l->weighed = q->handle;
}

static bool
is_deep(const struct ledger_queue *q)
{
	const uint64_t depth = ledger_depth(q), warn = q->policy->warn_depth;

	if (warn == 0)
		return false;
	return q->deep ? 5 * depth > 4 * warn : depth > warn;
}

uint32_t
ledger_deep(struct ledger *l, bool *deep)
{
	while (l->weighed != SLAB_NONE) {
		struct ledger_queue *q = ledger_queue(l, l->weighed);

		l->weighed = q->next_weighed;
		q->weighed = false;
		*deep = is_deep(q);
		if (*deep == q->deep)
			continue;
		q->deep = *deep;
		return q->handle;
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
