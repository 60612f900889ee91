#include "core/ledger/use.h"

#include "core/ledger/ledger_private.h"

#include <assert.h>

/* ---- One scope ---- */

static void
fill_rate(const struct ledger_queue *q, uint64_t name, slu_time now, struct ledger_use *out)
{
	const struct gates *g = q->gates;
	const uint32_t h = g ? gates_find(g, out->kind, name) : SLAB_NONE;
	const struct bucket_rule *r = g ? &g->rules[out->kind] : NULL;

	if (h != SLAB_NONE)
		out->hold = gate_at(g, h)->hold > now ? gate_at(g, h)->hold : 0;
	if (!r || !r->rate)
		return;
	out->rate = r->rate;
	out->burst = r->burst ? r->burst : r->rate;
	out->tokens = gates_tokens(g, out->kind, h, now);
	if (!out->tokens && h != SLAB_NONE && gate_at(g, h)->until > out->hold)
		out->until = gate_at(g, h)->until;
}

void
ledger_use_queue(const struct ledger *l, uint32_t queue, slu_time now, struct ledger_use *out)
{
	const struct ledger_queue *q = ledger_queue(l, queue);

	*out = (struct ledger_use){
		.kind = GATE_QUEUE,
		.ready = q->count[MSG_READY],
		.leased = q->count[MSG_LEASED],
		.concurrency = q->policy->concurrency,
		.oldest = ledger_oldest(l, queue),
	};
	for (int s = MSG_READY; s < MSG_STATES; s++)
		out->messages += q->count[s];
	fill_rate(q, 0, now, out);
}

/* A purge that is being freed has messages of shares that the queue does not count any more. */
static uint32_t
less(uint32_t all, uint32_t some)
{
	return all > some ? all - some : 0;
}

/* Messages without a share: all others. */
static void
use_plain(const struct ledger *l, const struct ledger_queue *q, slu_time now, struct ledger_use *out)
{
	struct share_view v;

	ledger_use_queue(l, q->handle, now, out);
	out->kind = GATE_SHARE;
	out->weight = 1;
	out->leased -= q->shares ? shares_leased(q->shares) : 0;
	for (uint32_t h = SLAB_NONE; q->shares && (h = shares_next(q->shares, h)) != SLAB_NONE;) {
		shares_get(q->shares, h, &v);
		out->messages = less(out->messages, v.messages);
		out->ready = less(out->ready, v.ready);
	}
	out->rate = out->burst = out->tokens = 0;
	out->until = out->hold = 0;
	out->concurrency = q->policy->share_concurrency;
	out->oldest = ledger_oldest_plain(l, q);
	fill_rate(q, 0, now, out);
}

static void
use_share(const struct ledger *l, const struct ledger_queue *q, uint32_t share, slu_time now, struct ledger_use *out)
{
	struct share_view v;

	shares_get(q->shares, share, &v);
	*out = (struct ledger_use){
		.kind = GATE_SHARE,
		.name = v.name,
		.messages = v.messages,
		.ready = v.ready,
		.leased = v.leased,
		.concurrency = q->policy->share_concurrency,
		.weight = v.weight,
		.delivered = v.delivered,
		.oldest = shares_oldest_of(q->shares, share, LEDGER_OLDEST_LOOK),
	};
	fill_rate(q, ledger_key_hash(l, q->handle, v.name), now, out);
}

/* ---- The first shares ---- */

/* How near a scope is to a limit: 1000 is at it. */
static uint64_t
nearness(const struct ledger_use *u)
{
	const uint64_t leased = u->concurrency ? u->leased * 1000ull / u->concurrency : 0;
	const uint64_t rate = u->rate ? (u->burst - u->tokens) * 1000ull / u->burst : 0;

	if (u->hold)
		return UINT64_MAX;
	return leased > rate ? leased : rate;
}

static bool
goes_before(const struct ledger_use *a, const struct ledger_use *b, bool by_messages)
{
	if (!by_messages && nearness(a) != nearness(b))
		return nearness(a) > nearness(b);
	return a->messages > b->messages;
}

/* Inserts a row into a sorted list of n rows with room for max. Returns the new number. */
static uint32_t
insert(struct ledger_use *out, uint32_t n, uint32_t max, const struct ledger_use *u, bool by_messages)
{
	uint32_t i = n < max ? n : max - 1;

	if (n == max && !goes_before(u, &out[i], by_messages))
		return n;
	for (; i > 0 && goes_before(u, &out[i - 1], by_messages); i--)
		out[i] = out[i - 1];
	out[i] = *u;
	return n < max ? n + 1 : n;
}

uint32_t
ledger_use_shares(const struct ledger *l, uint32_t queue, bool by_messages, slu_time now, struct ledger_use *out, uint32_t max)
{
	const struct ledger_queue *q = ledger_queue(l, queue);
	struct ledger_use u;
	uint32_t n = 0;

	assert(max > 0);
	for (uint32_t h = SLAB_NONE; q->shares && (h = shares_next(q->shares, h)) != SLAB_NONE;) {
		use_share(l, q, h, now, &u);
		n = insert(out, n, max, &u, by_messages);
	}
	use_plain(l, q, now, &u);
	return u.messages || u.hold ? insert(out, n, max, &u, by_messages) : n;
}

uint32_t
ledger_shares(const struct ledger *l, uint32_t queue)
{
	const struct ledger_queue *q = ledger_queue(l, queue);
	struct ledger_use u;

	use_plain(l, q, 0, &u);
	return (q->shares ? shares_count(q->shares) : 0) + (u.messages > 0);
}

/* ---- Values ---- */

uint32_t
ledger_use_values(const struct ledger *l, uint32_t queue, slu_time now, struct ledger_use *out, uint32_t max)
{
	const struct ledger_queue *q = ledger_queue(l, queue);
	uint32_t n = 0;

	assert(max > 0);
	for (uint32_t h = SLAB_NONE; q->values && (h = values_next(q->values, h)) != SLAB_NONE;) {
		struct ledger_use u = { .kind = GATE_VALUE, .concurrency = q->policy->attribute_concurrency };
		struct value_view v;

		values_get(q->values, h, &v);
		u.name = v.name;
		u.messages = v.messages;
		u.ready = values_ready(q->values, h);
		u.leased = v.leased;
		fill_rate(q, v.hash, now, &u);
		n = insert(out, n, max, &u, false);
	}
	return n;
}

uint32_t
ledger_values(const struct ledger *l, uint32_t queue)
{
	const struct values *v = ledger_queue(l, queue)->values;

	return v ? values_count(v) : 0;
}

/* ---- Kinds ---- */

uint32_t
ledger_use_kinds(const struct ledger *l, uint32_t queue, struct ledger_use *out, uint32_t max)
{
	const struct values *v = ledger_queue(l, queue)->kinds;
	uint32_t n = 0;

	assert(max > 0);
	for (uint32_t h = SLAB_NONE; v && (h = values_next(v, h)) != SLAB_NONE;) {
		struct value_view k;

		values_get(v, h, &k);
		n = insert(out, n, max,
			   &(struct ledger_use){
				   .kind = GATE_SHARE,
				   .name = k.name,
				   .messages = k.messages,
				   .ready = values_ready(v, h),
				   .leased = k.leased,
			   },
			   true);
	}
	return n;
}

uint32_t
ledger_kinds(const struct ledger *l, uint32_t queue)
{
	const struct values *v = ledger_queue(l, queue)->kinds;

	return v ? values_count(v) : 0;
}

/* ---- Priorities ---- */

enum {
	PRIORITIES_LOOK = 8000 /* messages of a page */
};

static struct ledger_priority *
find_priority(struct ledger_priority *rows, uint32_t *n, uint32_t max, int32_t prio)
{
	for (uint32_t i = 0; i < *n; i++)
		if (rows[i].prio == prio)
			return &rows[i];
	if (*n == max)
		return NULL;
	rows[*n] = (struct ledger_priority){ .prio = prio };
	return &rows[(*n)++];
}

uint32_t
ledger_use_priorities(const struct ledger *l, uint32_t queue, uint32_t *cursor, struct ledger_priority *out, uint32_t max,
		      uint32_t *looked)
{
	const struct ledger_browse what = { .space = SLAB_NONE, .queue = queue, .state = MSG_NONE };
	uint32_t msgs[PRIORITIES_LOOK], n = 0;

	*looked = ledger_browse(l, &what, cursor, msgs, PRIORITIES_LOOK);
	for (uint32_t i = 0; i < *looked; i++) {
		const struct msg *const m = ledger_msg(l, msgs[i]);
		const enum msg_state state = msg_state(m);
		struct ledger_priority *const p = state == MSG_DEAD || state == MSG_DAMAGED ? NULL : find_priority(out, &n, max, m->q.prio);

		if (!p)
			continue;
		p->messages++;
		p->ready += state == MSG_READY;
		p->leased += state == MSG_LEASED;
	}
	return n;
}

/* ---- Holds ---- */

bool
ledger_use_hold(const struct ledger *l, uint32_t queue, uint64_t *cursor, slu_time now, struct ledger_use *out)
{
	const struct gates *g = ledger_queue(l, queue)->gates;
	uint32_t h = *cursor ? (uint32_t)*cursor - 1 : SLAB_NONE;

	while (g && (h = gates_next(g, h)) != SLAB_NONE) {
		const struct queue_gate *x = gate_at(g, h);

		*cursor = (uint64_t)h + 1;
		if (x->hold <= now)
			continue;
		*out = (struct ledger_use){ .kind = x->kind, .name = slice_of(x->text), .hold = x->hold };
		return true;
	}
	*cursor = 0;
	return false;
}

uint32_t
ledger_holds(const struct ledger *l, uint32_t queue)
{
	const struct gates *g = ledger_queue(l, queue)->gates;

	return g ? g->held : 0;
}
